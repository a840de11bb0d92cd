#!/usr/bin/env node
/* vscode-jsonrpc, the peer of the language servers, on both ends of Content-Length. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { build, check, cleanup, connect, interopServer, needed, patiently, run, same, scratch, source, test, weftClient } from './kit.mjs';

needed('vscode-jsonrpc');
const rpc = needed('vscode-jsonrpc/node');
const MEGABYTE = 1 << 20;

/* ---- Weft serves ---- */

const server = await interopServer(`unix:${scratch('code.sock')}`, 'tcp://127.0.0.1:0');
const program = path.join(build, 'tests/interop_server');

function peerOn(readable, writable) {
    const peer = rpc.createMessageConnection(new rpc.StreamMessageReader(readable), new rpc.StreamMessageWriter(writable));
    peer.onError(() => {});
    peer.listen();
    return peer;
}

async function onSocket(url) {
    const socket = await connect(url);
    return { peer: peerOn(socket, socket), close: () => socket.destroy() };
}

function onChild() {
    const child = spawn(program, ['stdio:'], { stdio: ['pipe', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    const close = async () => {
        child.stdin.end();
        same((await patiently(exited, 'the child to exit'))[0], 0, 'exit status');
    };
    return { peer: peerOn(child.stdout, child.stdin), close };
}

/* What the other side refused, as an error. */
async function refusal(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    throw new Error('was not refused');
}

const { byPosition, byName } = rpc.ParameterStructures;

const conversations = {
    'positional params': async peer => {
        same(await peer.sendRequest('echo', 1, 'two', [3]), [1, 'two', [3]]);
        same(await peer.sendRequest('echo', byPosition, { a: 1 }), [{ a: 1 }]);
    },
    'named params': async peer => same(await peer.sendRequest('echo', byName, { a: 1, b: 'h\u00e9 \ud83d\ude00' }), { a: 1, b: 'h\u00e9 \ud83d\ude00' }),
    'no params': async peer => same(await peer.sendRequest('echo'), null),
    'a null result': async peer => same(await peer.sendRequest('nothing'), null),
    'an error with data': async peer => {
        const error = await refusal(peer.sendRequest('fail', { code: -32042, message: 'no', more: [1] }));
        same([error.code, error.message, error.data], [-32042, 'no', { code: -32042, message: 'no', more: [1] }]);
    },
    'an unknown method': async peer => same((await refusal(peer.sendRequest('no/such'))).code, rpc.ErrorCodes.MethodNotFound),
    'a handler that fails': async peer => same((await refusal(peer.sendRequest('broken'))).code, rpc.ErrorCodes.InternalError),
    'cancel, answered by the handler': async peer => {
        const source = new rpc.CancellationTokenSource();
        const answer = refusal(peer.sendRequest('wait', {}, source.token));
        source.cancel();
        same((await answer).code, -32800);
        same(await peer.sendRequest('nothing'), null);
    },
    'cancel, answered by the library': async peer => {
        const source = new rpc.CancellationTokenSource();
        const answer = refusal(peer.sendRequest('keep', {}, source.token));
        source.cancel();
        same((await answer).code, -32800);
        await peer.sendRequest('release');
        same(await peer.sendRequest('nothing'), null);
    },
    'cancel one of many': async peer => {
        const source = new rpc.CancellationTokenSource();
        const before = peer.sendRequest('keep');
        const cancelled = refusal(peer.sendRequest('keep', {}, source.token));
        const after = peer.sendRequest('keep');
        source.cancel();
        same((await cancelled).code, -32800);
        await peer.sendRequest('release');
        same(await Promise.all([before, after]), ['released', 'released']);
    },
    progress: async peer => {
        const type = new rpc.ProgressType();
        for (const token of ['a token', 17]) {
            const seen = [];
            const listening = peer.onProgress(type, token, value => seen.push(value));
            same(await peer.sendRequest('count', { to: 5, partialResultToken: token }), 5);
            same(seen, [1, 2, 3, 4, 5].map(at => ({ at })), 'progress');
            listening.dispose();
        }
    },
    'calls from the server': async peer => {
        peer.onRequest('add', ({ a, b }) => a + b);
        peer.onRequest('positional', (a, b) => [b, a]);
        peer.onRequest('refuse', () => new rpc.ResponseError(-32001, 'not now', { retry: true }));
        same(await peer.sendRequest('callback', { method: 'add', params: { a: 40, b: 2 } }), 42);
        same(await peer.sendRequest('callback', { method: 'positional', params: [1, 2] }), [2, 1]);
        const error = await refusal(peer.sendRequest('callback', { method: 'refuse' }));
        same([error.code, error.message, error.data], [-32001, 'not now', { retry: true }]);
        same((await refusal(peer.sendRequest('callback', { method: 'no/such' }))).code, rpc.ErrorCodes.MethodNotFound);
    },
    'calls inside calls': async peer => {
        peer.onRequest('deeper', n => n === 0 ? 'bottom' : peer.sendRequest('callback', { method: 'deeper', params: [n - 1] }));
        same(await peer.sendRequest('callback', { method: 'deeper', params: [20] }), 'bottom');
    },
    notifications: async peer => {
        const heard = [];
        peer.onNotification('told', params => heard.push(params.n));
        await peer.sendNotification('count_me');
        await peer.sendNotification('no/such', [1]);
        check(await peer.sendRequest('count_me') >= 1, 'the notification came');
        same(await peer.sendRequest('tell_me', { times: 50 }), 50);
        same(heard, Array.from({ length: 50 }, (_, i) => i + 1), 'notifications, in order');
    },
    '1 MB both ways': async peer => {
        const text = '\u00e9'.repeat(MEGABYTE / 2);
        same(await peer.sendRequest('length', { s: text }), MEGABYTE);
        same((await peer.sendRequest('big', { size: MEGABYTE })).length, MEGABYTE);
        same(await peer.sendRequest('echo', byName, { text }), { text });
    },
    '1 MB from the client when asked': async peer => {
        peer.onRequest('page', () => 'z'.repeat(MEGABYTE));
        same((await peer.sendRequest('callback', { method: 'page' })).length, MEGABYTE);
    },
    '100 in flight': async peer => {
        const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => peer.sendRequest('echo', i, 'x'.repeat(i * 100))));
        same(answers.map(answer => answer[0]), Array.from({ length: 100 }, (_, i) => i));
    },
    '100 in flight, answered late and backwards': async peer => {
        const kept = Array.from({ length: 100 }, () => peer.sendRequest('keep'));
        same(await peer.sendRequest('release'), 100);
        same(new Set(await Promise.all(kept)), new Set(['released']));
    },
    '100 in flight both ways': async peer => {
        peer.onRequest('add', ({ a, b }) => a + b);
        const answers = await Promise.all(Array.from({ length: 100 }, (_, a) => peer.sendRequest('callback', { method: 'add', params: { a, b: 1 } })));
        same(answers, Array.from({ length: 100 }, (_, a) => a + 1));
    },
};

const transports = {
    'on a Unix socket': () => onSocket(server.url('unix:')),
    'on TCP': () => onSocket(server.url('tcp:')),
    'on stdio': () => onChild(),
};
for (const [transport, open] of Object.entries(transports))
    for (const [name, talk] of Object.entries(conversations))
        test(`Weft serves ${transport}: ${name}`, async () => {
            const { peer, close } = await open();
            await talk(peer);
            peer.dispose();
            await close();
        });

/* ---- vscode-jsonrpc serves ---- */

const theirs = net.createServer(socket => {
    socket.on('error', () => {});
    const peer = rpc.createMessageConnection(new rpc.SocketMessageReader(socket), new rpc.SocketMessageWriter(socket));
    peer.onError(() => {});
    peer.onRequest('echo', (...params) => params.slice(0, -1)); /* the last is the cancellation token */
    peer.onRequest('named', params => params);
    peer.onRequest('nothing', () => null);
    peer.onRequest('fail', () => new rpc.ResponseError(-32042, 'no', { more: [1] }));
    peer.onRequest('big', ({ size }) => 'x'.repeat(size));
    peer.onRequest('call_me', params => peer.sendRequest('add', params));
    peer.onRequest('refuse_me', () => peer.sendRequest('refuse').catch(error => [error.code, error.message, error.data]));
    peer.onRequest('tell_me', async () => {
        await peer.sendNotification('told', { n: 1 });
        return 'told';
    });
    peer.onRequest('count', async ({ partialResultToken }) => {
        for (let at = 1; at <= 3; at++)
            await peer.sendProgress(new rpc.ProgressType(), partialResultToken, { at });
        return 3;
    });
    let cancelled = 0;
    peer.onRequest('wait', (_, token) => new Promise(resolve => token.onCancellationRequested(() => resolve(++cancelled))));
    peer.onRequest('cancelled', () => cancelled);
    peer.listen();
});
const address = { host: '127.0.0.1', port: 0 };
await new Promise(resolve => theirs.listen(address, resolve));
cleanup(() => theirs.close());
const theirUrl = `tcp://127.0.0.1:${theirs.address().port}`;
const weft = (...args) => weftClient('--content-length', ...args);

test('Weft calls: params, results and errors', async () => {
    same(await weft(theirUrl, 'named', '{"a":1,"b":"\u00e9"}', 'nothing', 'echo', '[1,[2],{}]', 'fail', 'no/such'), [
        { result: { a: 1, b: '\u00e9' } },
        { result: null },
        { result: [1, [2], {}] },
        { error: { code: -32042, message: 'no', data: { more: [1] } } },
        { error: { code: -32601, message: 'Unhandled method no/such' } },
    ]);
});
test('Weft calls: the server calls back', async () => {
    same(await weft(theirUrl, 'call_me', '{"a":1,"b":2}', 'refuse_me', 'tell_me'), [
        { result: 3 }, { result: [-32099, 'no', { why: 'I am a client' }] }, { notification: 'told', params: { n: 1 } }, { result: 'told' },
    ]);
});
test('Weft calls: progress', async () => {
    same(await weft('--parts', theirUrl, 'count', '{}', 'count'),
        [1, 2, 3].map(at => ({ part: { at } })).concat({ result: 3 }, [1, 2, 3].map(at => ({ part: { at } })), { result: 3 }));
});
test('Weft calls: cancel', async () => {
    const lines = await weft('--cancel', theirUrl, 'wait', '{}', 'wait', '{}');
    same(lines, [{ failed: 'cancelled' }, { failed: 'cancelled' }]);
});
test('Weft calls: 1 MB and 100 in flight', async () => {
    const lines = await weft(theirUrl, 'big', `{"size":${MEGABYTE}}`);
    same(lines[0].result.length, MEGABYTE);
    const calls = Array.from({ length: 100 }, (_, i) => ['echo', `[${i}]`]).flat();
    same((await weft('--together', theirUrl, ...calls)).map(line => line.result[0]).sort((a, b) => a - b), Array.from({ length: 100 }, (_, i) => i));
});
test('Weft calls: a child that speaks Content-Length on stdio', async () => {
    const child = path.join(source, 'tests/interop/vscode_child.cjs');
    same(await weft(`exec:${process.execPath} ${child}`, 'double', '[21]', 'shout', '{"s":"\u00e9t\u00e9"}'), [{ result: 42 }, { result: '\u00c9T\u00c9' }]);
});

await run();
