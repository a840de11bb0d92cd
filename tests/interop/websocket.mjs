#!/usr/bin/env node
/* The ws package as client and as server, and frames that no library would send, from a bare socket. */
import crypto from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { ask, check, cleanup, connect, examples, Inbox, interopServer, message, needed, output, patiently, run, same, scratch, serve, test, weftClient, webSocket } from './kit.mjs';

const WebSocket = needed('ws');
const server = await interopServer('ws://127.0.0.1:0/ws');
const echo = await serve(path.join(examples, 'ws-echo'), ['ws://127.0.0.1:0/']);
const url = server.url('ws:');
const echoUrl = echo.url('ws:');
const closing = ws => patiently(once(ws, 'close').then(([code, reason]) => [code, String(reason)]), 'the close');

/* ---- ws as the client ---- */

const kinds = {
    plain: { perMessageDeflate: false },
    compressed: { perMessageDeflate: { threshold: 0 } },
    'compressed, small window': { perMessageDeflate: { threshold: 0, serverMaxWindowBits: 9, clientMaxWindowBits: 9 } },
    'compressed, no context': { perMessageDeflate: { threshold: 0, serverNoContextTakeover: true, clientNoContextTakeover: true } },
};
const sizes = [0, 1, 125, 126, 127, 65535, 65536, 65537, 1 << 20];

for (const [kind, options] of Object.entries(kinds)) {
    test(`${kind}: text and binary of every length form`, async () => {
        const pipe = await webSocket(echoUrl, options);
        same(pipe.ws.extensions !== '', kind !== 'plain', 'compression was agreed on');
        for (const size of sizes) {
            const binary = crypto.randomBytes(size);
            pipe.ws.send(binary);
            check(binary.equals(await pipe.receive()), `binary of ${size} bytes`);
            const text = '\u00e9\ud83d\ude00x'.repeat(size / 7 | 0);
            pipe.ws.send(text);
            same(await pipe.receive(), text, `text of ${size} bytes`);
        }
        pipe.ws.close(1000);
        same(await closing(pipe.ws), [1000, '']);
    });
    test(`${kind}: fragments, with pings between them`, async () => {
        const { ws, inbox } = await webSocket(echoUrl, options);
        const pongs = [];
        ws.on('pong', data => pongs.push(String(data)));
        for (let i = 0; i < 100; i++) {
            ws.send(`${i} \u00e9 `, { fin: i === 99 });
            if (i % 10 === 0)
                ws.ping(`p${i}`);
        }
        same(await inbox.take(), Array.from({ length: 100 }, (_, i) => `${i} \u00e9 `).join(''));
        same(pongs, Array.from({ length: 10 }, (_, i) => `p${i * 10}`), 'pongs');
        ws.terminate();
    });
    test(`${kind}: 1000 messages at once`, async () => {
        const pipe = await webSocket(url, options);
        for (let i = 0; i < 1000; i++)
            pipe.send(message('echo', [i, 'x'.repeat(i * 3)], i));
        for (let i = 0; i < 1000; i++) {
            const answer = JSON.parse(await pipe.receive());
            same([answer.id, answer.result[0], answer.result[1].length], [i, i, i * 3]);
        }
        pipe.close();
    });
    test(`${kind}: 1 MB both ways as JSON-RPC`, async () => {
        const pipe = await webSocket(url, options);
        same((await ask(pipe, 'length', ['\u00e9'.repeat(1 << 19)])).result, 1 << 20);
        same((await ask(pipe, 'big', { size: 1 << 20 })).result.length, 1 << 20);
        pipe.close();
    });
    test(`${kind}: parts, notifications, calls to the client`, async () => {
        const pipe = await webSocket(url, options);
        pipe.send(message('count', { to: 2, partialResultToken: 'p' }, 1));
        for (const at of [1, 2])
            same(JSON.parse(await pipe.receive()), { jsonrpc: '2.0', method: '$/progress', params: { token: 'p', value: { at } } });
        same(JSON.parse(await pipe.receive()).result, 2);
        pipe.send(message('callback', { method: 'add', params: { a: 1, b: 2 } }, 2));
        const call = JSON.parse(await pipe.receive());
        same([call.method, call.params], ['add', { a: 1, b: 2 }]);
        pipe.send(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: 3 }));
        same(JSON.parse(await pipe.receive()), { jsonrpc: '2.0', id: 2, result: 3 });
        pipe.close();
    });
}

test('JSON in binary frames, and several texts in one frame', async () => {
    const pipe = await webSocket(url);
    pipe.ws.send(Buffer.from(message('echo', [1], 1)));
    same(JSON.parse(await pipe.receive()), { jsonrpc: '2.0', id: 1, result: [1] });
    pipe.send(`${message('echo', [2], 2)}\n${message('echo', [3], 3)}\r\n\n${message('echo', [4], 4)}\n`);
    for (const id of [2, 3, 4])
        same(JSON.parse(await pipe.receive()), { jsonrpc: '2.0', id, result: [id] });
    pipe.close();
});

test('bad JSON is answered and the connection lives', async () => {
    const pipe = await webSocket(url);
    for (const bad of ['', ' ', '{', 'x', '{"jsonrpc":"2.0"} x']) {
        pipe.send(bad);
        same(JSON.parse(await pipe.receive()).error.code, -32700, bad);
    }
    same((await ask(pipe, 'echo', [1])).result, [1]);
    pipe.close();
});

for (const [code, reason] of [[1000, 'bye'], [1001, ''], [1011, 'x'.repeat(123)], [3000, '\u00e9'], [4999, 'mine']])
    test(`close code ${code} is answered in kind`, async () => {
        const { ws } = await webSocket(url);
        ws.close(code, reason);
        same((await closing(ws))[0], code);
    });

test('a close without a code', async () => {
    const { ws } = await webSocket(url);
    ws.close();
    same((await closing(ws))[0], 1005);
});

test('the server closes with a code and a reason, after its answer', async () => {
    const pipe = await webSocket(url);
    const closed = closing(pipe.ws);
    same((await ask(pipe, 'hang_up', [])).result, 'bye');
    same(await closed, [4001, 'as you wished']);
});

test('a message over the limit closes with 1009, compressed or not', async () => {
    const small = await interopServer('--max-body', '1000', 'ws://127.0.0.1:0/ws');
    for (const options of Object.values(kinds)) {
        const at = await webSocket(small.url('ws:'), options);
        const fits = message('length', ['x'.repeat(1000 - message('length', [''], 1).length)], 1);
        at.send(fits);
        same(JSON.parse(await at.receive()).id, 1, 'exactly at the limit');
        at.send(`${fits} `);
        same((await closing(at.ws))[0], 1009);
    }
    const bomb = await webSocket(small.url('ws:'), kinds.compressed);
    bomb.send('x'.repeat(64 << 20));
    same((await closing(bomb.ws))[0], 1009);
    check(small.memory() < 64 << 20, `memory is ${small.memory()}`);
});

test('a client that vanishes with requests open', async () => {
    const { ws, send } = await webSocket(url);
    send(message('wait', {}, 1));
    send(message('keep', {}, 2));
    ws.terminate();
    const pipe = await webSocket(url);
    same((await ask(pipe, 'echo', [1])).result, [1]);
    await ask(pipe, 'release', []);
    pipe.close();
});

/* ---- the handshake ---- */

const status = (target, options) => patiently(new Promise(resolve => {
    const ws = new WebSocket(target, options);
    ws.on('open', () => { ws.terminate(); resolve(101); });
    ws.on('unexpected-response', (_, response) => { response.resume(); resolve(response.statusCode); });
    ws.on('error', () => {});
}), 'the handshake');

test('the handshake: Origin, Host, path, token', async () => {
    same(await status(url), 101);
    same(await status(url, { origin: 'http://evil.example' }), 403);
    same(await status(url, { origin: 'null' }), 403);
    same(await status(url, { origin: url.replace('ws:', 'http:').replace('/ws', '') }), 101);
    same(await status(url, { headers: { Host: 'evil.example' } }), 421);
    same(await status(url.replace('/ws', '/elsewhere')), 404);
    const guarded = await interopServer('--token', 'open-sesame', '--origin', 'https://good.example', 'ws://127.0.0.1:0/ws');
    const target = guarded.url('ws:');
    same(await status(target, { headers: { Authorization: 'Bearer open-sesame' } }), 101);
    same(await status(target, { headers: { Authorization: 'Bearer open-sesam' } }), 401);
    same(await status(target, { headers: { Authorization: 'Bearer open-sesame' }, origin: 'https://good.example' }), 101);
    same(await status(target, { headers: { Authorization: 'Bearer open-sesame' }, origin: 'https://bad.example' }), 403);
    same(await status(`${target}?token=open-sesame`), 101);
});

/* ---- frames from a bare socket ---- */

async function bare() {
    const socket = await connect(echoUrl.replace('ws:', 'tcp:'));
    const bytes = new Inbox();
    let seen = Buffer.alloc(0);
    socket.on('data', data => { seen = Buffer.concat([seen, data]); bytes.put(seen); });
    socket.on('end', () => bytes.end()).on('error', () => bytes.end()).on('close', () => bytes.end());
    socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n` +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
    while (!seen.includes('\r\n\r\n'))
        await bytes.take('the handshake');
    check(seen.includes('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='), `handshake: ${seen}`);
    seen = Buffer.alloc(0);
    return {
        send: data => socket.write(data),
        /* The first whole frame that came. */
        async frame() {
            while (seen.length < 2 || seen.length < 2 + (seen[1] & 127))
                await bytes.take('a frame');
            const found = seen.subarray(0, 2 + (seen[1] & 127));
            seen = seen.subarray(found.length);
            return found;
        },
        close: () => socket.destroy(),
        ended: () => patiently(new Promise(resolve => socket.once('close', resolve).end()), 'the end'),
    };
}

const MASK = [0, 0, 0, 0];
const frame = (first, payload, masked = true) => Buffer.from([first, (masked ? 128 : 0) | payload.length, ...(masked ? MASK : []), ...Buffer.from(payload)]);
const broken = {
    'an unmasked frame': [frame(0x81, 'x', false), 1002],
    'a reserved bit': [frame(0xc1, 'x'), 1002],
    'a reserved opcode': [frame(0x83, 'x'), 1002],
    'a reserved control opcode': [frame(0x8b, 'x'), 1002],
    'a ping in fragments': [frame(0x09, 'x'), 1002],
    'a ping over 125 bytes': [Buffer.concat([Buffer.from([0x89, 254, 0, 126, ...MASK]), Buffer.alloc(126)]), 1002],
    'a continuation of nothing': [frame(0x80, 'x'), 1002],
    'a new message inside another': [Buffer.concat([frame(0x01, 'x'), frame(0x81, 'y')]), 1002],
    'bad UTF-8': [frame(0x81, [0xc3, 0x28]), 1007],
    'UTF-8 cut off at the end': [frame(0x81, [0xc3]), 1007],
    'bad UTF-8 in a close reason': [frame(0x88, [0x03, 0xe8, 0xff]), 1007],
    'a close code that may not be sent': [frame(0x88, [0x03, 0xed]), 1002],
    'a close with half a code': [frame(0x88, [0x03]), 1002],
    'a 64-bit length with its top bit set': [Buffer.from([0x82, 255, 128, 0, 0, 0, 0, 0, 0, 0, ...MASK]), 1002],
    'a 64-bit length of 2^62': [Buffer.from([0x82, 255, 64, 0, 0, 0, 0, 0, 0, 0, ...MASK]), 1009],
};
for (const [name, [bytes, code]] of Object.entries(broken))
    for (const [how, parts] of [['whole', [bytes]], ['byte by byte', [...bytes].map(byte => Buffer.from([byte]))]])
        test(`${name}, ${how}: ${code}`, async () => {
            const socket = await bare();
            for (const part of parts)
                socket.send(part);
            const close = await socket.frame();
            same([close[0], close.readUInt16BE(2)], [0x88, code], 'close frame');
            await socket.ended();
        });

test('frames byte by byte and a code point cut in two', async () => {
    const socket = await bare();
    for (const byte of Buffer.concat([frame(0x01, [0xc3]), frame(0x89, 'p'), frame(0x80, [0xa9])]))
        socket.send(Buffer.from([byte]));
    same(await socket.frame(), Buffer.from([0x8a, 1, 0x70]), 'pong');
    same(await socket.frame(), Buffer.from([0x81, 2, 0xc3, 0xa9]), 'echo');
    socket.close();
});

/* ---- ws as the server ---- */

async function theirServer(options, onConnection) {
    const wss = new WebSocket.Server({ host: '127.0.0.1', port: 0, ...options });
    wss.on('connection', onConnection);
    await once(wss, 'listening');
    cleanup(() => { for (const ws of wss.clients) ws.terminate(); wss.close(); });
    return `ws://127.0.0.1:${wss.address().port}/`;
}

function answer(ws) {
    ws.on('message', data => {
        const { id, method, params } = JSON.parse(data);
        const result = method === 'big' ? 'x'.repeat(params.size) : params ?? null;
        const text = JSON.stringify({ jsonrpc: '2.0', id, result });
        if (method === 'fragments')
            for (const [at, letter] of [...text].entries()) {
                ws.send(letter, { fin: at === [...text].length - 1 });
                ws.ping();
            }
        else if (method === 'close')
            ws.close(4002, 'enough');
        else
            ws.send(method === 'binary' ? Buffer.from(text) : text);
    });
}

for (const [kind, options] of Object.entries(kinds)) {
    test(`Weft calls, ${kind}`, async () => {
        let extensions, pongs = 0;
        const target = await theirServer(options, ws => { extensions = ws.extensions; ws.on('pong', () => pongs++); answer(ws); });
        const lines = await weftClient(target, 'echo', '["h\u00e9"]', 'big', '{"size":1048576}', 'binary', '[1]', 'fragments', '["\u00e9t\u00e9"]');
        same(lines.map(line => line.result.length), [1, 1 << 20, 1, 1]);
        same([lines[0].result, lines[3].result], [['h\u00e9'], ['\u00e9t\u00e9']]);
        same(extensions !== '', kind !== 'plain', 'compression was agreed on');
    });
    test(`Weft sends 1 MB, ${kind}`, async () => {
        const target = await theirServer(options, answer);
        fs.writeFileSync(scratch('params'), JSON.stringify(['\u00e9y'.repeat(350000)]));
        same(await weftClient(target, 'echo', `@${scratch('params')}`), [{ result: ['\u00e9y'.repeat(350000)] }]);
    });
}

test('Weft refuses compression when it is told to', async () => {
    let extensions;
    const target = await theirServer(kinds.compressed, ws => { extensions = ws.extensions; answer(ws); });
    same(await weftClient('--no-deflate', target, 'echo', '[1]'), [{ result: [1] }]);
    same(extensions, '');
});

test('Weft answers pings and a close, and says good-bye itself', async () => {
    const closes = [];
    const pongs = [];
    const target = await theirServer({}, ws => {
        ws.on('close', (code, reason) => closes.push([code, String(reason)])).on('pong', data => pongs.push(String(data)));
        ws.ping('are you there');
        answer(ws);
    });
    same(await weftClient(target, 'echo', '[1]'), [{ result: [1] }]);
    same((await weftClient(target, 'close'))[0].failed !== undefined, true);
    while (closes.length < 2)
        await new Promise(resolve => setImmediate(resolve));
    same(pongs, ['are you there', 'are you there']);
    same(closes.map(([code]) => code), [1000, 4002]);
});

test('a server that masks is broken', async () => {
    let closed;
    const target = await theirServer({}, ws => {
        closed = closing(ws);
        ws._socket.write(frame(0x81, '{}'));
    });
    check((await weftClient(target, 'echo'))[0].failed, 'the call fails');
    same((await closed)[0], 1002);
});

for (const [name, head] of Object.entries({
    'no upgrade': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    'a refused token': 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n',
    'a wrong key': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n',
    'an extension nobody offered': null,
    garbage: '\0\x01\x02\r\n\r\n',
}))
    test(`Weft's handshake meets ${name}`, async () => {
        const { createServer } = await import('node:net');
        const listener = createServer(socket => socket.on('error', () => {}).once('data', data => {
            const key = /Sec-WebSocket-Key: (.*)\r/i.exec(data)[1];
            const accept = crypto.createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
            socket.end(head ?? `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Extensions: x-nonsense\r\n\r\n`);
        }));
        await new Promise(resolve => listener.listen(0, '127.0.0.1', resolve));
        const lines = await weftClient(`ws://127.0.0.1:${listener.address().port}/`, 'echo');
        listener.close();
        check(lines.length === 1 && lines[0].failed && lines[0].trouble, JSON.stringify(lines));
    });

test('ws-echo --client echoes until the server closes', async () => {
    const heard = [];
    const target = await theirServer({}, ws => {
        ws.on('message', (data, binary) => {
            heard.push([String(data), binary]);
            if (heard.length === 2)
                ws.close(1000);
        });
        ws.send('h\u00e9');
        ws.send(Buffer.from('bytes'));
    });
    const { code } = await output(path.join(examples, 'ws-echo'), ['--client', target]);
    same([code, heard], [0, [['h\u00e9', false], ['bytes', true]]]);
});

test('both servers still answer', async () => {
    const pipe = await webSocket(url);
    same((await ask(pipe, 'echo', [1])).result, [1]);
    pipe.close();
    const other = await webSocket(echoUrl);
    other.send('x');
    same(await other.receive(), 'x');
    other.close();
});

await run();
