#!/usr/bin/env node
/* weft.js over ports and workers of Node: with the seed's own TypeScript in both roles, and what goes beyond the seed: time-outs
 * and withdrawal for each call, batches, parts of an answer, what is handed over, strangers on the same port, two channels. */
import fs from 'node:fs';
import path from 'node:path';
import { MessageChannel, Worker } from 'node:worker_threads';
import { check, cleanup, run, same, scratch, skip, source, test } from './kit.mjs';
import { importSeed } from './webjs_seed.mjs';

const weft = await import(path.join(source, 'web/weft/weft.js'));
const { JSONRPCClient, JSONRPCServer, RPCError, portTransport, workerTransport } = weft;
scratch();
fs.mkdirSync(scratch('x'), { recursive: true });
const { seed, why } = await importSeed(scratch('x'));

/* Two ends of a channel with a client here and a server there. */
function pair(here = weft, there = weft, options) {
    const { port1, port2 } = new MessageChannel();
    const client = new here.JSONRPCClient(here.portTransport(port1), options), server = new there.JSONRPCServer(there.portTransport(port2));
    cleanup(() => { port1.close(); port2.close(); });
    return { client, server, port1, port2 };
}
const fails = async promise => promise.then(result => { throw new Error(`it gave ${JSON.stringify(result)}`); }, error => error);

/* What the document promises; both libraries must keep it with each other. */
function seedTests(name, here, there) {
    const both = options => pair(here, there, options);
    test(`${name}: a result, in another order than asked`, async () => {
        const { client, server } = both();
        let release;
        const first = new Promise(resolve => { release = resolve; });
        server.method('slow', () => first);
        server.method('echo', params => params);
        const slow = client.request('slow');
        same(await client.request('echo', { url: '/dist/app.js', deep: [1, { a: null }] }), { url: '/dist/app.js', deep: [1, { a: null }] });
        release({ status: 200 });
        same(await slow, { status: 200 });
    });
    test(`${name}: an error with code, message and data`, async () => {
        const { client, server } = both();
        server.method('build', () => { throw new there.RPCError(-32001, 'Build failed', { diagnostics: [{ line: 3 }] }); });
        server.method('plain', async () => { throw new Error('it broke'); });
        const error = await fails(client.request('build', {}));
        check(error instanceof here.RPCError && error.name === 'RPCError', 'not an RPCError');
        same([error.code, error.message, error.data], [-32001, 'Build failed', { diagnostics: [{ line: 3 }] }]);
        const plain = await fails(client.request('plain'));
        same([plain.code, plain.message], [-32603, 'it broke']);
    });
    test(`${name}: an unknown method, in the seed's words`, async () => {
        const error = await fails(both().client.request('nonexistent'));
        same([error.code, error.message], [-32601, 'Method not found: nonexistent']);
    });
    test(`${name}: notifications, known and unknown`, async () => {
        const { client, server } = both();
        const heard = new Promise(resolve => server.onNotify('console', resolve));
        client.notify('unknown', { x: 1 });
        client.notify('console', { level: 'error', message: 'Uncaught TypeError...' });
        same(await heard, { level: 'error', message: 'Uncaught TypeError...' });
    });
    test(`${name}: a time-out and a destroyed client, in the seed's words`, async () => {
        const { client, server } = both({ timeout: 20 });
        server.method('never', () => new Promise(() => {}));
        same((await fails(client.request('never'))).message, 'JSON-RPC timeout: never (id=1)');
        const open = fails(client.request('never'));
        client.destroy();
        same((await open).message, 'JSON-RPC client destroyed');
    });
}
seedTests('weft.js with itself', weft, weft);
if (seed) {
    seedTests('the seed\'s client, our server', seed, weft);
    seedTests('our client, the seed\'s server', weft, seed);
    test('the seed\'s transports under our client and server', async () => {
        const { port1, port2 } = new MessageChannel();
        const server = new JSONRPCServer(seed.portTransport(port2));
        server.method('echo', params => params);
        const client = new JSONRPCClient(seed.portTransport(port1));
        same(await client.request('echo', { a: 1 }), { a: 1 });
        client.destroy();
    });
    test('the seed\'s client and server on one of our transports', async () => {
        const { port1, port2 } = new MessageChannel();
        const ends = [port1, port2].map(port => {
            const transport = portTransport(port);
            return { client: new seed.JSONRPCClient(transport), server: new seed.JSONRPCServer(transport) };
        });
        ends.forEach(({ server }, i) => server.method('who', () => i));
        same(await Promise.all(ends.map(({ client }) => client.request('who'))), [1, 0]);
        port1.close();
    });
} else {
    skip('the seed\'s TypeScript', why);
}

test('a client and a server on one transport, both ways at once', async () => {
    const { port1, port2 } = new MessageChannel();
    const ends = [port1, port2].map(port => {
        const transport = portTransport(port);
        return { client: new JSONRPCClient(transport), server: new JSONRPCServer(transport) };
    });
    ends.forEach(({ server }, i) => server.method('add', ([a, b]) => [i, a + b]));
    same(await Promise.all(ends.map(({ client }) => client.request('add', [1, 2]))), [[1, 3], [0, 3]]);
    port1.close();
});

test('the default time-out is 10 s, and a call may have its own', async () => {
    const { client, server } = pair();
    const before = globalThis.setTimeout, delays = [];
    server.method('never', () => new Promise(() => {}));
    globalThis.setTimeout = (action, ms) => (delays.push(Math.round(ms / 100) * 100), before(action, ms));
    const open = [fails(client.request('never')), fails(client.request('never', {}, { timeout: 20 }))];
    globalThis.setTimeout = before;
    same(delays, [10_000, 0]);
    same((await open[1]).reason, 'timeout');
    const without = client.request('never', {}, { timeout: Infinity });
    client.destroy();
    await fails(without);
});

test('extras: deadline and key go along where they are asked for, and params stay as they are', async () => {
    const { client, server } = pair(weft, weft, { extras: true, timeout: 5000 });
    server.method('echo', params => params);
    same([await client.request('echo', [1, 2]), await client.request('echo'), await client.request('echo', { a: 1 })], [[1, 2], null, { a: 1 }]);
    same(await client.request('echo', { _meta: { x: 1 } }, { idempotencyKey: 'k', sendDeadline: true }),
        { _meta: { x: 1, 'weft/deadlineMs': 5000, 'weft/idempotencyKey': 'k' } });
    check(await fails(client.request('echo', [1], { idempotencyKey: 'k' })) instanceof TypeError, 'a key beside a list');
    const told = new Promise(resolve => server.method('slow', (params, { signal }) => new Promise(() => { signal.onabort = () => resolve('withdrawn'); })));
    same([(await fails(client.request('slow', {}, { timeout: 10 }))).reason, await told], ['timeout', 'withdrawn']);
    client.destroy();
});

test('a call is withdrawn: it ends at once, and the handler is told', async () => {
    const { client, server } = pair();
    const leave = new AbortController();
    const told = new Promise(resolve => server.method('work', (params, { signal }) => new Promise((_, reject) => {
        signal.onabort = () => { resolve(signal.reason.reason); reject(signal.reason); };
    })));
    const call = fails(client.request('work', {}, { signal: leave.signal }));
    leave.abort();
    same((await call).name, 'AbortError');
    same(await told, 'cancelled');
    const gone = new AbortController();
    gone.abort(new Error('not now'));
    same((await fails(client.request('work', {}, { signal: gone.signal }))).message, 'not now');
    client.destroy();
});

test('a batch, with notifications and a refusal in it', async () => {
    const { client, server, port2 } = pair();
    let frames = 0;
    port2.addEventListener('message', () => frames++);
    const heard = new Promise(resolve => server.onNotify('note', resolve));
    server.method('add', ([a, b]) => a + b);
    server.method('slow', async ([ms]) => (await new Promise(resolve => setTimeout(resolve, ms)), 'slow'));
    const [sum, missing, slow] = client.batch(() => {
        client.notify('note', { x: 1 });
        return [client.request('add', [1, 2]), fails(client.request('none')), client.request('slow', [5])];
    });
    same([await sum, (await missing).code, await slow, await heard], [3, -32601, 'slow', { x: 1 }]);
    same(frames, 1);
    let error;
    try {
        client.batch(() => { for (let i = 0; i < 1001; i++) client.notify('x'); });
    } catch (caught) {
        error = caught;
    }
    check(error instanceof RangeError, 'a batch of 1001');
    client.destroy();
});

test('parts of an answer, from a generator and from part(); leaving the loop withdraws the call', async () => {
    const { client, server } = pair();
    server.method('count', async function* ({ to }) {
        for (let i = 1; i <= to; i++)
            yield i;
        return { counted: to };
    });
    let stopped;
    const ended = new Promise(resolve => { stopped = resolve; });
    server.method('endless', (params, context) => new Promise((_, reject) => {
        const timer = setInterval(() => context.part('tick'), 1);
        context.signal.onabort = () => { clearInterval(timer); stopped(true); reject(context.signal.reason); };
    }));
    const parts = [], stream = client.stream('count', { to: 3 });
    for await (const part of stream)
        parts.push(part);
    same([parts, await stream.result], [[1, 2, 3], { counted: 3 }]);
    same(await client.request('count', { to: 5 }), { counted: 5 });
    let ticks = 0;
    for await (const part of client.stream('endless'))
        if (part === 'tick' && ++ticks === 3)
            break;
    same([ticks, await ended], [3, true]);
    const broken = client.stream('none');
    same((await fails((async () => { for await (const _ of broken); })())).code, -32601);
    client.destroy();
});

test('a handler may take what it needs out of its context', async () => {
    const { client, server } = pair();
    server.method('read', (params, { part, transfer }) => {
        const bytes = new ArrayBuffer(4);
        transfer(bytes);
        return { told: part('first'), bytes };
    });
    const stream = client.stream('read'), parts = [];
    for await (const one of stream)
        parts.push(one);
    const { told, bytes } = await stream.result;
    same([parts, told, bytes.byteLength], [['first'], true, 4]);
});

test('parts that nobody reads have a limit', async () => {
    const { client, server } = pair();
    server.method('flood', (params, context) => { for (let i = 0; i < 50; i++) context.part(i); return new Promise(() => {}); });
    const stream = client.stream('flood', {}, { maxParts: 10 });
    await fails(stream.result);
    const read = [];
    const error = await fails((async () => { for await (const part of stream) read.push(part); })());
    same([read.length, error.reason], [10, 'tooManyParts']);
    client.destroy();
});

test('buffers are handed over, both ways', async () => {
    const { client, server } = pair();
    server.method('double', ({ bytes }, context) => {
        const out = new Uint8Array(bytes.length * 2).fill(bytes[0]);
        context.transfer(out.buffer);
        setTimeout(() => { server.kept = out.byteLength; }, 0);
        return out;
    });
    const bytes = new Uint8Array([7, 7]);
    const out = await client.request('double', { bytes }, { transfer: [bytes.buffer] });
    await new Promise(resolve => setTimeout(resolve, 5));
    same([bytes.byteLength, out.length, server.kept], [0, 4, 0]);
    client.destroy();
});

test('what cannot be sent fails the call that it belongs to', async () => {
    const { client, server } = pair();
    server.method('bad', () => () => {});
    server.method('worse', () => { throw new RPCError(7, 'no', { f() {} }); });
    same((await fails(client.request('x', { f() {} }))).name, 'DataCloneError');
    same((await fails(client.request('bad'))).code, -32603);
    same([(await fails(client.request('worse'))).code], [7]);
    client.destroy();
});

test('messages of others pass untouched, and nobody answers them', async () => {
    const { port1, port2 } = new MessageChannel();
    const foreign = [], back = [];
    port2.on('message', data => { if (data?.jsonrpc !== '2.0') foreign.push(data); });
    port1.on('message', data => { if (data?.jsonrpc !== '2.0') back.push(data); });
    const server = new JSONRPCServer(portTransport(port2)), client = new JSONRPCClient(portTransport(port1));
    server.method('echo', params => params);
    const others = [{ type: 'build', entry: 'a.ts' }, 'text', 7, null, [1, 2], [{ jsonrpc: '1.0' }], [], { jsonrpc: '1.0', method: 'echo', id: 1 }];
    others.forEach(one => port1.postMessage(one));
    port2.postMessage({ action: 'probe' });
    same(await client.request('echo', { a: 1 }), { a: 1 });
    same([foreign, back], [others, [{ action: 'probe' }]]);
    client.destroy();
});

test('two channels side by side do not hear each other', async () => {
    const a = pair(), b = pair();
    a.server.method('who', () => 'a');
    b.server.method('who', () => 'b');
    same(await Promise.all([a.client.request('who'), b.client.request('who')]), ['a', 'b']);
    a.client.destroy();
    same(await b.client.request('who'), 'b');
});

test('what comes before somebody listens is not lost', async () => {
    const { port1, port2 } = new MessageChannel();
    const transport = portTransport(port2);
    new JSONRPCClient(portTransport(port1)).notify('early', { n: 1 });
    await new Promise(resolve => setTimeout(resolve, 20));
    const server = new JSONRPCServer(transport);
    same(await new Promise(resolve => server.onNotify('early', resolve)), { n: 1 });
    port1.close();
});

test('a worker of Node: workerTransport and selfTransport', async () => {
    const file = scratch('worker.mjs');
    fs.writeFileSync(file, `import { parentPort } from 'node:worker_threads';
        import { JSONRPCServer, selfTransport } from ${JSON.stringify(path.join(source, 'web/weft/weft.js'))};
        const transport = globalThis.process.getBuiltinModule ? selfTransport() : selfTransport(parentPort);
        const server = new JSONRPCServer(transport);
        server.method('add', ([a, b]) => a + b);`);
    const worker = new Worker(file);
    const client = new JSONRPCClient(workerTransport(worker));
    same(await client.request('add', [2, 3]), 5);
    client.destroy();
    await worker.terminate();
    let error;
    try {
        weft.selfTransport();
    } catch (caught) {
        error = caught;
    }
    check(/dedicated workers/.test(error.message), 'selfTransport() in the main thread');
});

test('the helpers for Ralph, the harness and Chief', async () => {
    const ralph = await import(path.join(source, 'web/weft/ralph.js'));
    const [asks, tasks] = [new MessageChannel(), new MessageChannel()], told = [];
    const harness = ralph.serveRalph(portTransport(asks.port1), {
        requestPermission: ({ tool }) => { if (tool === 'rm') throw ralph.permissionDenied(); return { allowed: true }; },
        askUser: ({ question }) => ({ answer: question.toUpperCase() }),
        onIterationStart: one => told.push(['iterationStart', one.iteration]), onGateResult: one => told.push(['gateResult', one.passed]),
    });
    const own = ralph.ralphToHarness(portTransport(asks.port2));
    const complete = new Promise(resolve => {
        const chief = ralph.chiefToRalph(portTransport(tasks.port1), { onProgress: one => told.push(['progress', one.text]), onComplete: resolve });
        const worker = ralph.serveChief(portTransport(tasks.port2), {
            sendTask({ prompt, gates }) {
                setTimeout(() => { worker.progress({ taskId: 't1', text: prompt }); worker.complete({ taskId: 't1', gates: gates.length }); }, 0);
                return { taskId: 't1' };
            },
            cancelTask({ taskId }) { throw ralph.taskCancelled(taskId); },
        });
        chief.sendTask({ prompt: 'fix it', gates: ['test'] }).then(({ taskId }) => told.push(['sent', taskId]));
        fails(chief.cancelTask({ taskId: 't1' })).then(error => told.push(['cancel', error.code]));
    });
    own.iterationStart({ iteration: 1 });
    own.gateResult({ gate: 'test', passed: false });
    same(await own.requestPermission({ tool: 'edit' }), { allowed: true });
    const denied = await fails(own.requestPermission({ tool: 'rm' }));
    same([denied.code, denied.reason, await own.askUser({ question: 'why' })], [-32003, 'permissionDenied', { answer: 'WHY' }]);
    same(await complete, { taskId: 't1', gates: 1 });
    same(told.sort(), [['cancel', -32004], ['gateResult', false], ['iterationStart', 1], ['progress', 'fix it'], ['sent', 't1']]);
    const { gateFailed, contextOverflow } = ralph;
    same([gateFailed('lint', ['x']).code, gateFailed('lint', ['x']).data.findings, contextOverflow().code], [-32002, ['x'], -32008]);
    own.destroy();
    harness.destroy();
    [tasks.port1, tasks.port2].forEach(port => port.close());
});

await run();
