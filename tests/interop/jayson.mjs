#!/usr/bin/env node
/* jayson on both ends of TCP, HTTP and WebSocket. */
import net from 'node:net';
import { check, cleanup, interopServer, needed, patiently, run, same, scratch, test, weftClient } from './kit.mjs';

const jayson = needed('jayson');
const WebSocket = needed('ws');

/* ---- Weft serves ---- */

const server = await interopServer(`unix:${scratch('jayson.sock')}`, 'tcp://127.0.0.1:0', 'http://127.0.0.1:0/rpc', 'ws://127.0.0.1:0/ws');

const clients = {
    TCP: () => jayson.Client.tcp({ host: '127.0.0.1', port: server.port('tcp:') }),
    'a Unix socket': () => jayson.Client.tcp({ path: server.url('unix:').slice(5) }),
    HTTP: () => jayson.Client.http({ host: '127.0.0.1', port: server.port('http:'), path: '/rpc' }),
    WebSocket: async () => {
        const ws = new WebSocket(server.url('ws:'));
        await new Promise((resolve, reject) => ws.on('open', resolve).on('error', reject));
        cleanup(() => ws.terminate());
        return jayson.Client.websocket({ ws });
    },
};

/* One request or batch; the whole answer. */
const ask = (client, ...args) => patiently(new Promise((resolve, reject) => {
    client.request(...args, (error, answer) => error ? reject(error) : resolve(answer));
}), 'jayson');
const sorted = answers => [...answers].sort((a, b) => String(a.id).localeCompare(String(b.id)));

const conversations = {
    'params by position and by name': async client => {
        same((await ask(client, 'echo', [1, 'two', null])).result, [1, 'two', null]);
        same((await ask(client, 'echo', { a: { b: ['h\u00e9 \ud83d\ude00'] } })).result, { a: { b: ['h\u00e9 \ud83d\ude00'] } });
    },
    'ids of the caller': async client => {
        same(await ask(client, 'nothing', [], 'an id'), { jsonrpc: '2.0', id: 'an id', result: null });
        same(await ask(client, 'nothing', [], 4711), { jsonrpc: '2.0', id: 4711, result: null });
    },
    errors: async client => {
        same((await ask(client, 'fail', { code: -1, message: 'no' })).error, { code: -1, message: 'no', data: { code: -1, message: 'no' } });
        same((await ask(client, 'no.such', [])).error.code, -32601);
    },
    'a batch': async client => {
        const answers = await ask(client, [
            client.request('echo', [1], 'a'), client.request('count_me', [], null), client.request('fail', {}, 'b'), client.request('no.such', [], 'c'),
        ]);
        same(sorted(answers).map(({ id, result, error }) => [id, result ?? error.code]), [['a', [1]], ['b', -32050], ['c', -32601]]);
    },
    'a batch of 500': async client => {
        const answers = await ask(client, Array.from({ length: 500 }, (_, i) => client.request('echo', [i])));
        same(answers.map(answer => answer.result[0]).sort((a, b) => a - b), Array.from({ length: 500 }, (_, i) => i));
    },
    'a notification': async client => {
        const before = (await ask(client, 'count_me', [])).result;
        await ask(client, 'count_me', [], null);
        /* jayson uses a connection of its own for it, so nothing orders it before the next request: ask until it has come. */
        let after = before;
        while (after === before)
            after = (await ask(client, 'count_me', [])).result;
        same(after, before + 1);
    },
    '1 MB both ways': async client => {
        const text = 'x'.repeat(1 << 20);
        same((await ask(client, 'length', [text])).result, 1 << 20);
        same((await ask(client, 'big', { size: 1 << 20 })).result.length, 1 << 20);
    },
    '100 at once': async client => {
        const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => ask(client, 'echo', [i])));
        same(answers.map(answer => answer.result[0]), Array.from({ length: 100 }, (_, i) => i));
    },
};

for (const [transport, open] of Object.entries(clients))
    for (const [name, talk] of Object.entries(conversations))
        test(`Weft serves on ${transport}: ${name}`, async () => talk(await open()));

/* ---- jayson serves ---- */

const theirs = new jayson.Server({
    add: (params, done) => done(null, Array.isArray(params) ? params[0] + params[1] : params.a + params.b),
    nothing: (params, done) => done(null, null),
    echo: (params, done) => done(null, params),
    fail: (params, done) => done({ code: 42, message: 'no', data: ['why'] }),
    big: ({ size }, done) => done(null, 'x'.repeat(size)),
});

async function listen(one, ...args) {
    await new Promise(resolve => one.listen(...args, resolve));
    cleanup(() => one.close());
    return one;
}

const http = await listen(theirs.http(), 0, '127.0.0.1');
const tcp = await listen(theirs.tcp(), 0, '127.0.0.1'); /* puts nothing between its answers */
const wss = new WebSocket.Server({ port: 0, host: '127.0.0.1' });
theirs.websocket({ wss });
await new Promise(resolve => wss.address() ? resolve() : wss.on('listening', resolve));
cleanup(() => wss.close());
const urls = {
    HTTP: `http://127.0.0.1:${http.address().port}/`,
    TCP: `tcp://127.0.0.1:${tcp.address().port}`,
    WebSocket: `ws://127.0.0.1:${wss.address().port}/`,
};

for (const [transport, url] of Object.entries(urls)) {
    test(`Weft calls over ${transport}: params, results and errors`, async () => {
        same(await weftClient(url, 'add', '[1,2]', 'add', '{"a":3,"b":4}', 'nothing', '[]', 'echo', '{"s":"h\u00e9 \ud83d\ude00"}', 'fail', '[]'), [
            { result: 3 }, { result: 7 }, { result: null }, { result: { s: 'h\u00e9 \ud83d\ude00' } }, { error: { code: 42, message: 'no', data: ['why'] } },
        ]);
        const [unknown] = await weftClient(url, 'no.such', '[]');
        same(unknown.error.code, -32601);
    });
    test(`Weft calls over ${transport}: a batch`, async () => {
        const lines = await weftClient('--batch', url, 'add', '[1,2]', 'fail', '[]', 'add', '[3,4]');
        check(lines.length === 3, `three answers: ${JSON.stringify(lines)}`);
        same(lines.filter(line => line.result).map(line => line.result).sort(), [3, 7]);
        same(lines.find(line => line.error).error.code, 42);
    });
    test(`Weft calls over ${transport}: 50 at once, 1 MB`, async () => {
        const calls = Array.from({ length: 50 }, (_, i) => ['add', `[${i},0]`]).flat();
        same((await weftClient('--together', url, ...calls)).map(line => line.result).sort((a, b) => a - b), Array.from({ length: 50 }, (_, i) => i));
        same((await weftClient(url, 'big', '{"size":1048576}'))[0].result.length, 1 << 20);
    });
}

test('Weft calls over TCP: a server that ends no line is understood once it closes', async () => {
    const once = await listen(net.createServer(socket => socket.once('data', () => socket.end('{"jsonrpc":"2.0","id":1,"result":"last"}'))), 0, '127.0.0.1');
    same(await weftClient(`tcp://127.0.0.1:${once.address().port}`, 'any'), [{ result: 'last' }]);
});

await run();
