/* Moving a boundary from messages of its own to JSON-RPC, without a day on which everything changes.
 *
 * The worker here spoke { type: 'build', ... } and answered { type: 'result' } or { type: 'error' }. Now it serves both: the
 * transport takes the messages that have jsonrpc "2.0" and leaves the others alone, so the old listener stays until its last
 * caller is gone. Run it: node web/weft/examples/migrate.mjs */
import { MessageChannel } from 'node:worker_threads';
import { BUILD_FAILED, JSONRPCClient, JSONRPCServer, RPCError, portTransport } from '../weft.js';

const { port1: page, port2: worker } = new MessageChannel(); /* in a browser: a Worker, and workerTransport() and selfTransport() */

/* ---- the worker ---- */

function build(entry) {
    if (!entry.endsWith('.tsx'))
        throw new RPCError(BUILD_FAILED, 'Build failed with 1 error',
            { diagnostics: [{ file: entry, line: 1, severity: 'error', message: 'not TypeScript' }] });
    return { output: `built ${entry}` };
}

/* Before. */
worker.addEventListener('message', ({ data }) => {
    if (data?.type !== 'build')
        return;
    try {
        worker.postMessage({ type: 'result', ...build(data.entry) });
    } catch (error) {
        worker.postMessage({ type: 'error', message: error.message });
    }
});

/* After. Errors that are thrown become error answers; request and answer find each other by id. */
const server = new JSONRPCServer(portTransport(worker));
server.method('build', ({ entry }) => build(entry));

/* ---- the page ---- */

/* Before: who waits for which result? */
const old = new Promise(resolve => page.addEventListener('message', ({ data }) => data?.type === 'result' && resolve(data.output)));
page.postMessage({ type: 'build', entry: 'src/Old.tsx' });

/* After. */
const client = new JSONRPCClient(portTransport(page), { timeout: 60_000 });
const [result, failure] = await Promise.allSettled(['src/App.tsx', 'README.md'].map(entry => client.request('build', { entry })));

console.log('old:', await old);
console.log('new:', result.value.output);
console.log('new:', failure.reason.code, failure.reason.data.diagnostics[0].message);
client.destroy();
