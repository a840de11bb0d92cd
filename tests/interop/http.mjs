#!/usr/bin/env node
/* HTTP with curl, and with bytes from a bare socket where curl is too well-behaved. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { check, connect, interopServer, message, output, patiently, request, run, same, scratch, skip, test, weftClient } from './kit.mjs';

if (spawnSync('curl', ['--version']).error) {
    skip('http', 'curl is not installed (tools/install.sh test)');
    await run();
}

const server = await interopServer('http://127.0.0.1:0/rpc');
const url = server.url('http:');
const root = url.replace('/rpc', '');
const JSON_TYPE = ['-H', 'Content-Type: application/json'];
const call = message('echo', [1], 1);
const answer = { jsonrpc: '2.0', id: 1, result: [1] };

/* Status, head and body of the last answer; connects says how many connections it took. */
async function curl(...args) {
    const { stdout, stderr } = await output('curl', ['-sS', '-i', '--max-time', '20', '-w', '\n%{num_connects} %{http_code}', ...args]);
    const [, text, connects, status] = /^([^]*)\n(\d+) (\d+)$/.exec(stdout) ?? [, '', '0', '0'];
    const at = text.lastIndexOf('\r\n\r\n');
    return { status: Number(status), connects: Number(connects), head: text.slice(0, at), body: text.slice(at + 4), stderr };
}

test('a call', async () => {
    const { status, head, body } = await curl(...JSON_TYPE, '-d', call, url);
    same([status, JSON.parse(body)], [200, answer]);
    check(/^content-type: application\/json/im.test(head), head);
});

test('a batch', async () => {
    const { status, body } = await curl(...JSON_TYPE, '-d', `[${call},${message('nothing', [], 2)}]`, url);
    same(status, 200);
    same(JSON.parse(body).map(one => one.id).sort(), [1, 2]);
});

test('nothing to say is an empty answer', async () => {
    for (const body of [message('count_me', []), `[${message('count_me', [])}]`, '{"jsonrpc":"2.0","id":1,"result":1}']) {
        const got = await curl(...JSON_TYPE, '-d', body, url);
        check([202, 204].includes(got.status) && got.body === '', `${got.status} ${got.body}`);
    }
});

test('errors are JSON-RPC errors in a 200 or a 400 with the error in it', async () => {
    const unknown = await curl(...JSON_TYPE, '-d', message('no.such', [], 1), url);
    same([unknown.status, JSON.parse(unknown.body).error.code], [200, -32601]);
    const bad = await curl(...JSON_TYPE, '-d', '{', url);
    check([200, 400].includes(bad.status), `${bad.status}`);
    same(JSON.parse(bad.body).error.code, -32700);
});

test('a deferred answer', async () => {
    const kept = curl(...JSON_TYPE, '-d', message('keep', [], 1), url);
    let released = 0;
    while (released === 0)
        released = JSON.parse((await request(url, { body: message('release', [], 2), headers: { 'Content-Type': 'application/json' } })).body).result;
    same(JSON.parse((await kept).body).result, 'released');
});

test('keep-alive: three calls on one connection', async () => {
    const three = [url, '--next', ...JSON_TYPE, '-sS', '-d', call, url, '--next', ...JSON_TYPE, '-sS', '-w', '\n%{num_connects}', '-d', call, url];
    const { stdout } = await output('curl', ['-sS', ...JSON_TYPE, '-d', call, ...three]);
    same(stdout, `${JSON.stringify(answer)}${JSON.stringify(answer)}${JSON.stringify(answer)}\n0`);
});

test('Connection: close and HTTP/1.0 close', async () => {
    const { status, head } = await curl(...JSON_TYPE, '-H', 'Connection: close', '-d', call, url);
    check(status === 200 && /^connection: close/im.test(head), head);
    const old = await curl('--http1.0', ...JSON_TYPE, '-d', call, url);
    same([old.status, JSON.parse(old.body)], [200, answer]);
});

test('chunked upload', async () => {
    const got = await curl(...JSON_TYPE, '-H', 'Transfer-Encoding: chunked', '-d', message('echo', ['x'.repeat(100000)], 1), url);
    same([got.status, JSON.parse(got.body).result[0].length], [200, 100000]);
});

test('Expect: 100-continue', async () => {
    const body = scratch('large.json');
    fs.writeFileSync(body, message('length', ['x'.repeat(1000000)], 1));
    const { stdout } = await output('curl', ['-sS', '-i', '--max-time', '20', '--expect100-timeout', '15', ...JSON_TYPE, '-H', 'Expect: 100-continue', '--data-binary', `@${body}`, url]);
    check(/^HTTP\/1\.1 100 [^]*HTTP\/1\.1 200 [^]*"result":1000000/.test(stdout), stdout.slice(0, 400));
});

test('1 MB both ways', async () => {
    const got = await curl(...JSON_TYPE, '-d', message('big', { size: 1 << 20 }, 1), url);
    same(JSON.parse(got.body).result.length, 1 << 20);
});

test('a body over the limit: 413, also when chunked and when asked first', async () => {
    const small = await interopServer('--max-body', '1000', 'http://127.0.0.1:0/rpc');
    const empty = message('length', [''], 1).length;
    const fits = message('length', ['x'.repeat(1000 - empty)], 1);
    same((await curl(...JSON_TYPE, '-d', fits, small.url('http:'))).status, 200);
    const over = message('length', ['x'.repeat(1001 - empty)], 1);
    for (const more of [[], ['-H', 'Transfer-Encoding: chunked'], ['-H', 'Expect: 100-continue'], ['-H', 'Expect:']])
        same((await curl(...JSON_TYPE, ...more, '-d', over, small.url('http:'))).status, 413, more.join(' '));
});

test('a head over the limit: 431', async () => {
    same((await curl(...JSON_TYPE, '-H', `X-Large: ${'x'.repeat(17000)}`, '-d', call, url)).status, 431);
    const many = Array.from({ length: 101 }, (_, i) => ['-H', `X-${i}: 1`]).flat();
    same((await curl(...JSON_TYPE, ...many, '-d', call, url)).status, 431);
});

test('a wrong Content-Type: 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])
        same((await curl('-H', `Content-Type: ${type}`, '-d', call, url)).status, 415, type);
    for (const type of ['application/json; charset=utf-8', 'application/json-rpc', 'application/vnd.api+json'])
        check([200, 415].includes((await curl('-H', `Content-Type: ${type}`, '-d', call, url)).status), type);
    same((await curl('-H', 'Content-Type: application/json; charset=utf-8', '-d', call, url)).status, 200);
});

test('other methods and paths', async () => {
    same((await curl(`${root}/health`)).status, 200);
    const head = await output('curl', ['-sS', '-I', '--max-time', '5', `${root}/health`]);
    check(/^HTTP\/1\.1 200 /.test(head.stdout) && head.code === 0, head.stdout + head.stderr);
    same((await curl(`${root}/nowhere`)).status, 404);
    const put = await curl('-X', 'PUT', ...JSON_TYPE, '-d', call, url);
    check(put.status === 405 && /^allow: .*POST/im.test(put.head), put.head);
    const options = await curl('-X', 'OPTIONS', url);
    check([200, 204, 405].includes(options.status), `OPTIONS ${options.status}`);
    const get = await curl(url);
    check([405, 406].includes(get.status), `GET ${get.status}`);
});

test('Host and Origin', async () => {
    same((await curl(...JSON_TYPE, '-H', 'Host: evil.example', '-d', call, url)).status, 421);
    same((await curl(...JSON_TYPE, '-H', 'Host: localhost:1', '-d', call, url)).status, 200);
    same((await curl(...JSON_TYPE, '-H', 'Origin: http://evil.example', '-d', call, url)).status, 403);
    same((await curl(...JSON_TYPE, '-H', 'Origin: null', '-d', call, url)).status, 403);
    same((await curl(...JSON_TYPE, '-H', `Origin: ${root}`, '-d', call, url)).status, 200);
});

test('tokens', async () => {
    const guarded = await interopServer('--token', 'open-sesame', 'http://127.0.0.1:0/rpc');
    const target = guarded.url('http:');
    same((await curl(...JSON_TYPE, '-d', call, target)).status, 401);
    same((await curl(...JSON_TYPE, '-H', 'Authorization: Bearer nonsense', '-d', call, target)).status, 401);
    const good = await curl(...JSON_TYPE, '-H', 'Authorization: Bearer open-sesame', '-d', message('whoami', [], 1), target);
    same([good.status, JSON.parse(good.body).result.name], [200, 'tester']);
    same((await curl(`${target.replace('/rpc', '')}/health`)).status, 200);
    same(await weftClient('--token', 'open-sesame', target, 'echo', '[1]'), [{ result: [1] }]);
    check((await weftClient('--token', 'wrong', target, 'echo', '[1]'))[0].failed, 'Weft with a wrong token');
});

/* ---- server-sent events ---- */

const publish = async params => JSON.parse((await request(url, { body: message('publish', params, 1), headers: { 'Content-Type': 'application/json' } })).body).result;
const event = { jsonrpc: '2.0', method: 'message', params: { text: 'h\u00e9\nllo' } };

test('events: the head comes at once, a broadcast reaches every listener', async () => {
    const streams = await Promise.all(Array.from({ length: 5 }, () => patiently(new Promise(resolve => {
        http.get(url, { headers: { Accept: 'text/event-stream' } }, resolve);
    }), 'the head', 10000))); /* less patient than the comment that comes every 15 seconds and would bring the head along */
    for (const stream of streams)
        same([stream.statusCode, stream.headers['content-type']], [200, 'text/event-stream']);
    const events = streams.map(stream => once(stream.setEncoding('utf8'), 'data'));
    same(await publish(event.params), 5);
    for (const [text] of await Promise.all(events))
        same(JSON.parse(/^data: (.*)\n\n$/.exec(text)[1]), event);
    for (const stream of streams)
        stream.destroy();
});

test('events: with curl', async () => {
    const child = spawn('curl', ['-sS', '-N', '-H', 'Accept: text/event-stream', url], { stdio: ['ignore', 'pipe', 'ignore'] });
    const data = once(child.stdout.setEncoding('utf8'), 'data');
    while (await publish(event.params) !== 1);
    same(JSON.parse(/^data: (.*)$/m.exec((await patiently(data, 'an event'))[0])[1]), event);
    child.kill();
});

test('events: listeners that vanish are forgotten', async () => {
    await Promise.all(Array.from({ length: 20 }, () => new Promise(resolve => {
        const socket = net.connect(server.port('http:'), '127.0.0.1', () => socket.write('GET /rpc HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n'));
        socket.once('data', () => { socket.resetAndDestroy(); resolve(); });
    })));
    while (await publish({ n: 1 }));
});

/* ---- what curl would not send ---- */

/* Send bytes, read until the server closes or enough answers have come. */
async function bare(bytes, { answers = Infinity, byByte = false, end = true } = {}) {
    const socket = await connect(url.replace('http:', 'tcp:'));
    let text = '';
    const finished = new Promise(resolve => {
        socket.setEncoding('utf8').on('data', piece => {
            text += piece;
            if (text.split('HTTP/1.1 ').length - 1 >= answers && text.endsWith('}'))
                resolve();
        });
        socket.on('end', resolve).on('close', resolve).on('error', resolve);
    });
    if (byByte)
        for (const byte of Buffer.from(bytes))
            socket.write(Buffer.from([byte]));
    else
        socket.write(bytes);
    if (end && answers === Infinity)
        socket.end();
    await patiently(finished, `the answers; so far ${text}`);
    socket.destroy();
    return text;
}

const post = (body, more = '') => `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const statuses = text => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(match => Number(match[1]));

test('pipelining: answers come in order', async () => {
    const bodies = Array.from({ length: 50 }, (_, i) => message('echo', [i], i));
    const text = await bare(bodies.map(body => post(body)).join(''), { answers: 50 });
    same([...text.matchAll(/"id":(\d+)/g)].map(match => Number(match[1])), Array.from({ length: 50 }, (_, i) => i));
});

test('pipelining: byte by byte, and half-closed', async () => {
    const bodies = [1, 2, 3].map(i => post(message('echo', [i], i)));
    same([...(await bare(bodies.join(''), { byByte: true, answers: 3 })).matchAll(/"id":(\d+)/g)].length, 3);
    same([...(await bare(bodies.join(''))).matchAll(/"id":(\d+)/g)].length, 3, 'answers after the client closed its half');
});

test('chunks in every cut', async () => {
    const body = message('echo', ['chunks'], 1);
    const chunks = [...body].map(letter => `1;ext="x"\r\n${letter}\r\n`).join('');
    const whole = `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\nTrailer: 1\r\n\r\n`;
    check((await bare(whole, { answers: 1 })).includes('"result":["chunks"]'), 'whole');
    check((await bare(whole + whole, { byByte: true, answers: 2 })).match(/"result":\["chunks"\]/g)?.length === 2, 'byte by byte');
});

const smuggling = {
    'two lengths': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    'a length and chunks': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'a length with a sign': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: +2\r\n\r\n{}',
    'chunked not last': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
    'space before the colon': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length : 2\r\n\r\n{}',
    'a folded header': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}',
    'a bare CR': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\nContent-Length: 2\r\n\r\n{}',
    'no Host': 'POST /rpc HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}',
    'two Hosts': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}',
    'a bad chunk size': 'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n',
    'garbage': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'a NUL in the target': 'POST /rpc\0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}',
};
for (const [name, bytes] of Object.entries(smuggling))
    test(`refused and closed: ${name}`, async () => {
        const text = await bare(`${bytes}${post(call)}`, { end: false });
        const [first, ...rest] = statuses(text);
        check([400, 411, 501].includes(first) && rest.length === 0, `${name}: ${text.slice(0, 300)}`);
    });

test('gzip both ways, with curl', async () => {
    const long = message('echo', ['x'.repeat(100000)], 1), file = scratch('long.json');
    fs.writeFileSync(file, long);
    check(spawnSync('gzip', ['-kf', file]).status === 0, 'gzip');
    const { head, body } = await curl('--compressed', ...JSON_TYPE, '-H', 'Content-Encoding: gzip', '--data-binary', `@${file}.gz`, url);
    same(JSON.parse(body).result, JSON.parse(long).params);
    check(/^content-encoding: gzip\r$/im.test(head), head);
});

test('the server still answers', async () => {
    same(JSON.parse((await curl(...JSON_TYPE, '-d', call, url)).body), answer);
});

await run();
