/* What webjs_runtimes.mjs runs in every JavaScript there is: webjs_everywhere.js ADDRESS TOKEN. Calls over a channel, with a worker
 * and with a hub, a stream of the hub, a signed request. Each line that it prints is one thing that works. Not a test itself. */
import { JSONRPCClient, JSONRPCServer, portTransport, selfTransport, webSocketTransport, workerTransport } from '../../web/weft/weft.js';
import { subscribe } from '../../web/weft/subscribe.js';
import { signer } from '../../web/weft/sign.js';

const ok = name => console.log(`ok ${name}`);
const isWorker = typeof WorkerGlobalScope !== 'undefined' && globalThis instanceof WorkerGlobalScope || globalThis.Bun?.isMainThread === false;

async function channel() {
    const { port1, port2 } = new MessageChannel();
    const server = new JSONRPCServer(portTransport(port2));
    server.method('count', async function* ({ to }) {
        for (let i = 1; i <= to; i++)
            yield i;
        return 'done';
    });
    const client = new JSONRPCClient(portTransport(port1));
    const stream = client.stream('count', { to: 3 }), parts = [];
    for await (const part of stream)
        parts.push(part);
    if (parts.join() === '1,2,3' && await stream.result === 'done')
        ok('channel');
    client.destroy();
    server.destroy();
}

async function worker() {
    const own = new Worker(import.meta.url, { type: 'module' });
    const client = new JSONRPCClient(workerTransport(own));
    if (await client.request('add', [1, 2]) === 3)
        ok('worker');
    client.destroy();
    own.terminate();
}

async function hub(url, token) {
    const WebSocket = globalThis.WebSocket ?? (await import('ws')).WebSocket;
    const crypto = globalThis.crypto ?? (await import('node:crypto')).webcrypto;
    const client = new JSONRPCClient(webSocketTransport(url, { token, WebSocket, sign: signer({ keyId: 'ci', secret: 'a secret of the two sides', crypto }) }));
    for await (const { value, fresh } of subscribe(client, 'tasks')) {
        if (fresh && Array.isArray(value))
            ok('stream');
        break;
    }
    if ((await client.request('echo', { é: 1 })).é === 1)
        ok('signed');
    client.destroy();
}

if (isWorker) {
    new JSONRPCServer(selfTransport()).method('add', ([a, b]) => a + b);
} else {
    const [url, token] = globalThis.Deno?.args ?? process.argv.slice(2);
    await channel();
    if (typeof Worker !== 'undefined')
        await worker();
    await hub(url, token);
}
