#!/usr/bin/env node
/* Input that is wrong, too large, too slow or cut off. After each the same process still answers, and in the end its memory is
 * what a server needs and not what an attacker sent. */
import { once } from 'node:events';
import { ask, check, childPipe, build, connect, headers, interopServer, lines, message, patiently, run, same, scratch, test, webSocket } from './kit.mjs';

const MEBIBYTE = 1 << 20;
/* An AddressSanitizer build needs several times as much, and its quarantine more. */
const BOUND = (/asan|tsan/.test(build) ? 1024 : 64) * MEBIBYTE;

const server = await interopServer('--max-body', String(MEBIBYTE), `unix:${scratch('hostile.sock')}`, 'tcp://127.0.0.1:0', 'ws://127.0.0.1:0/ws');
const transports = {
    'lines, Unix': () => lines(server.url('unix:')),
    'lines, TCP': () => lines(server.url('tcp:')),
    'Content-Length, TCP': () => headers(server.url('tcp:')),
    WebSocket: () => webSocket(server.url('ws:')),
};

async function stillAnswers() {
    check(server.alive, 'the server died');
    const pipe = await lines(server.url('unix:'));
    same(await ask(pipe, 'echo', [1], 'still'), { jsonrpc: '2.0', id: 'still', result: [1] });
    pipe.close();
}

/* Without a good-bye; a Unix socket knows no other way than closing. */
const vanish = socket => socket.remoteAddress ? socket.resetAndDestroy() : socket.destroy();

/* A test after which the server must live. */
const hostile = (name, body) => test(name, async () => {
    await body();
    await stillAnswers();
    check(server.memory() < BOUND, `memory is ${server.memory() / MEBIBYTE | 0} MiB`);
});

const nested = depth => `{"jsonrpc":"2.0","id":1,"method":"echo","params":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
const sized = (size, id = 1) => {
    const empty = message('length', [''], id);
    return message('length', ['x'.repeat(size - empty.length)], id);
};

for (const [transport, open] of Object.entries(transports)) {
    hostile(`${transport}: nesting of 128 is taken, of 129 is not`, async () => {
        const pipe = await open();
        pipe.send(nested(128));
        same(JSON.parse(await pipe.receive()).id, 1);
        for (const depth of [129, 1000, 300000]) {
            pipe.send(nested(depth));
            same(JSON.parse(await pipe.receive()).error.code, -32700, `depth ${depth}`);
        }
        pipe.send('['.repeat(100000));
        same(JSON.parse(await pipe.receive()).error.code, -32700);
        pipe.close();
    });
    hostile(`${transport}: numbers of a million digits`, async () => {
        const pipe = await open();
        const digits = '9'.repeat(1000000);
        pipe.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[${digits}]}`);
        check((await pipe.receive()).includes(`[${digits}]`), 'it comes back as it was');
        pipe.send(`{"jsonrpc":"2.0","id":${digits},"method":"echo"}`);
        same(JSON.parse(await pipe.receive()).error.code, -32600, 'as an id');
        pipe.send(`{"jsonrpc":"2.0","id":1,"method":"count","params":{"to":${digits}}}`);
        check(JSON.parse(await pipe.receive()), 'as a count');
        pipe.send(`{"jsonrpc":"2.0","id":1,"method":"fail","params":{"code":1e${digits}}}`);
        same(JSON.parse(await pipe.receive()).error.code, -32050, 'as an exponent');
        pipe.close();
    });
    hostile(`${transport}: ids of 256 bytes, and of 257`, async () => {
        const pipe = await open();
        const id = 'i'.repeat(254);
        same((await ask(pipe, 'nothing', [], id)).id, id);
        same((await ask(pipe, 'nothing', [], `${id}i`)).error.code, -32600);
        pipe.close();
    });
    hostile(`${transport}: names of a million bytes, a million members`, async () => {
        const pipe = await open();
        pipe.send(message('m'.repeat(1000000), [], 1));
        same(JSON.parse(await pipe.receive()).error.code, -32601);
        pipe.send(`{"jsonrpc":"2.0","id":1,"method":"nothing"${',"":0'.repeat(200000)}}`);
        same(JSON.parse(await pipe.receive()).result, null);
        pipe.close();
    });
    hostile(`${transport}: bad UTF-8`, async () => {
        for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82]]) {
            const pipe = await open();
            const body = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"method":"echo","params":["'), Buffer.from(bytes), Buffer.from('"]}')]);
            if (pipe.ws)
                pipe.ws.send(body, { binary: true });
            else
                await pipe.raw(Buffer.concat([Buffer.from(transport.startsWith('lines') ? '' : `Content-Length: ${body.length}\r\n\r\n`), body, Buffer.from('\n')]));
            same(JSON.parse(await pipe.receive()).error.code, -32700, bytes);
            pipe.close();
        }
    });
    hostile(`${transport}: a client that vanishes while it is answered`, async () => {
        for (let i = 0; i < 20; i++) {
            const pipe = await open();
            for (let n = 0; n < 10; n++)
                pipe.send(message('big', { size: 100000 }, n));
            await pipe.receive();
            if (pipe.ws)
                pipe.ws.terminate();
            else
                vanish(pipe.writable);
        }
    });
}

for (const transport of ['lines, Unix', 'lines, TCP', 'Content-Length, TCP'])
    hostile(`${transport}: a message at the limit, one byte over it, and the next one`, async () => {
        const pipe = await transports[transport]();
        pipe.send(sized(MEBIBYTE));
        same(typeof JSON.parse(await pipe.receive()).result, 'number');
        pipe.send(sized(MEBIBYTE + 1, 2));
        const refused = JSON.parse(await pipe.receive());
        same([refused.id, refused.error.code, refused.error.data.reason], [null, -32600, 'tooLarge']);
        same((await ask(pipe, 'echo', ['next'], 3)).result, ['next']);
        pipe.close();
    });

hostile('lines: 64 MiB without a newline are skipped', async () => {
    const pipe = await lines(server.url('tcp:'));
    const piece = Buffer.alloc(MEBIBYTE, 'x');
    for (let i = 0; i < 64; i++)
        await pipe.raw(piece);
    await pipe.raw('\n');
    same(JSON.parse(await pipe.receive()).error.data.reason, 'tooLarge');
    same((await ask(pipe, 'echo', [1])).result, [1]);
    pipe.close();
});

hostile('lines: garbage, and then a good line', async () => {
    const pipe = await lines(server.url('unix:'));
    await pipe.raw('{"\u0000\u0001\u0002\n');
    same(JSON.parse(await pipe.receive()).error.code, -32700);
    await pipe.raw('\r\n\n \r\n'); /* blank lines are nothing */
    await pipe.raw(Buffer.concat([Buffer.from('{'), Buffer.from([...Array(256).keys()].filter(byte => byte !== 10)), Buffer.from('\n')]));
    same(JSON.parse(await pipe.receive()).error.code, -32700);
    same((await ask(pipe, 'echo', [1])).result, [1]);
    pipe.close();
});

for (const [name, bytes] of Object.entries({
    'a length that is no number': 'Content-Length: abc\r\n\r\n{}',
    'a negative length': 'Content-Length: -1\r\n\r\n{}',
    'a length of 30 digits': `Content-Length: ${'9'.repeat(30)}\r\n\r\n{}`,
    'two lengths': 'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    'no length': 'Content-Type: x\r\n\r\n{}',
    'endless headers': `Content-Length: 2\r\n${'X: y\r\n'.repeat(100000)}`,
}))
    hostile(`Content-Length: ${name} ends the connection with an error`, async () => {
        const socket = await connect(server.url('tcp:'));
        let text = '';
        const ended = Promise.race([once(socket.setEncoding('utf8').on('data', piece => { text += piece; }), 'end'), once(socket, 'error').catch(() => {}), once(socket, 'close')]);
        socket.on('error', () => {});
        /* The first message decides for Content-Length. */
        const first = message('nothing', [], 1);
        socket.write(`Content-Length: ${first.length}\r\n\r\n${first}${bytes}`);
        if (name === 'no length')
            socket.end();
        await patiently(ended, `the end; so far ${text}`);
        check(text.includes('"result":null'), `the first answer: ${text}`);
        socket.destroy();
    });

hostile('half-closed sockets: every answer still comes', async () => {
    for (const open of [transports['lines, Unix'], transports['lines, TCP'], transports['Content-Length, TCP']]) {
        const pipe = await open();
        for (let i = 0; i < 100; i++)
            pipe.send(message('big', { size: 10000 }, i));
        pipe.end();
        for (let i = 0; i < 100; i++)
            same(JSON.parse(await pipe.receive()).id, i);
        const error = await pipe.receive().catch(problem => problem.message);
        same(error, 'the connection ended');
    }
});

hostile('half-closed with a deferred answer', async () => {
    const pipe = await lines(server.url('tcp:'));
    pipe.send(message('keep', {}, 'late'));
    pipe.end();
    const other = await lines(server.url('unix:'));
    while ((await ask(other, 'release', {})).result === 0);
    same(JSON.parse(await pipe.receive()), { jsonrpc: '2.0', id: 'late', result: 'released' });
    other.close();
});

hostile('a last line without a newline, then half-closed', async () => {
    const pipe = await lines(server.url('tcp:'));
    await pipe.raw(message('echo', ['last'], 1));
    pipe.end();
    same(JSON.parse(await pipe.receive()).result, ['last']);
});

hostile('slow senders: byte by byte, a code point cut in two, 50 at once', async () => {
    await Promise.all(Array.from({ length: 50 }, async (_, n) => {
        const pipe = n % 2 ? await lines(server.url('tcp:')) : await headers(server.url('tcp:'));
        const body = message('echo', ['h\u00e9 \ud83d\ude00', n], n);
        for (const byte of Buffer.from(n % 2 ? `${body}\n` : `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`))
            await pipe.raw(Buffer.from([byte]));
        same(JSON.parse(await pipe.receive()).result, ['h\u00e9 \ud83d\ude00', n]);
        pipe.close();
    }));
});

/* Whoever never reads must not make the server collect answers for it without end. */
for (const [transport, url] of [['Unix', () => server.url('unix:')], ['TCP', () => server.url('tcp:')]])
    hostile(`${transport}: a client that never reads`, async () => {
        const socket = await connect(url());
        socket.pause();
        const request = Buffer.from(`${message('big', { size: 500000 }, 1)}\n`.repeat(100));
        let written = 0;
        /* As long as the server reads on, go on: until it has stopped or has been asked for 5 GB. */
        for (let i = 0; i < 100; i++) {
            const took = await new Promise(resolve => {
                const timer = setTimeout(() => resolve(false), 1000);
                socket.write(request, () => { clearTimeout(timer); resolve(true); });
            });
            written++;
            if (!took || !server.alive)
                break;
        }
        check(server.memory() < BOUND, `memory is ${server.memory() / MEBIBYTE | 0} MiB after ${written * 100} requests`);
        await stillAnswers();
        socket.destroy();
    });

hostile('a client that never reads what is broadcast is dropped, the others are not', async () => {
    const deaf = await connect(server.url('unix:'));
    deaf.on('error', () => {});
    deaf.write(`${message('nothing', [], 1)}\n`);
    await once(deaf, 'data');
    deaf.pause();
    const other = await lines(server.url('unix:'));
    const text = 'x'.repeat(100000);
    for (let i = 0; i < 300; i++) {
        other.send(message('publish', { text }, i));
        let answer;
        do
            answer = JSON.parse(await other.receive());
        while (answer.method === 'message');
        same(answer.id, i);
    }
    check(server.memory() < BOUND, `memory is ${server.memory() / MEBIBYTE | 0} MiB`);
    deaf.destroy();
    other.close();
});

hostile('1000 connections that vanish', async () => {
    for (let round = 0; round < 10; round++)
        await Promise.all(Array.from({ length: 100 }, async (_, n) => {
            const socket = await connect(n % 2 ? server.url('tcp:') : server.url('unix:'));
            socket.on('error', () => {});
            const bytes = [message('wait', {}, 1) + '\n', '{"jsonrpc":', 'Content-Length: 1000\r\n\r\n{', '', '\n'][n % 5];
            await new Promise(resolve => socket.write(bytes, resolve));
            /* With a request open and no reset, TCP cannot tell leaving from half-closing before the kernel's minute is over. */
            n % 3 === 0 && n % 5 !== 0 ? socket.destroy() : vanish(socket);
        }));
    const pipe = await lines(server.url('unix:'));
    let clients;
    do
        ({ clients } = (await ask(pipe, 'report', {})).result);
    while (clients > 1);
    same(clients, 1, 'only we are left');
    pipe.close();
});

hostile('1000 connections at once', async () => {
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => connect(server.url('unix:'))));
    const answers = sockets.map(socket => once(socket.setEncoding('utf8'), 'data'));
    sockets.forEach((socket, n) => socket.write(`${message('echo', [n], n)}\n`));
    for (const [n, [text]] of (await Promise.all(answers)).entries())
        same(JSON.parse(text).id, n);
    sockets.forEach(socket => socket.destroy());
});

test('stdio: a reader that goes away does not kill by SIGPIPE, end of input ends the process', async () => {
    const pipe = childPipe(`${build}/tests/interop_server`, ['stdio:']);
    same((await ask(pipe, 'echo', [1])).result, [1]);
    pipe.child.stdout.destroy();
    for (let i = 0; i < 100; i++)
        pipe.send(message('big', { size: 100000 }, i));
    pipe.child.stdin.end();
    const [code, signal] = await patiently(pipe.exited, 'the child to exit');
    same(signal, null, `signal (exit status ${code})`);
});

test('the server stops gracefully, with requests open', async () => {
    const pipe = await lines(server.url('unix:'));
    const waiting = await lines(server.url('tcp:'));
    waiting.send(message('keep', {}, 7));
    while ((await ask(pipe, 'report', {})).result.clients < 2);
    same((await ask(pipe, 'stop', {})).result, true);
    const [code, signal] = await patiently(server.exited, 'the server to exit');
    same([code, signal], [0, null]);
});

await run();
