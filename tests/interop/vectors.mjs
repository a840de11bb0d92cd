#!/usr/bin/env node
/* The exchanges of the JSON-RPC specification's section 7 and of own-vectors.json with spec-server over every transport. That
 * nothing comes back is proved by a request that follows and whose answer comes first. */
import fs from 'node:fs';
import path from 'node:path';
import { check, childPipe, examples, headers, lines, posts, run, same, scratch, skip, source, specServer, test, webSocket } from './kit.mjs';

const server = await specServer(`unix:${scratch('spec.sock')}`, 'tcp://127.0.0.1:0', 'ws://127.0.0.1:0/ws', 'http://127.0.0.1:0/rpc');
const program = path.join(examples, 'spec-server');

const transports = {
    'lines on a Unix socket': () => lines(server.url('unix:')),
    'lines on TCP': () => lines(server.url('tcp:')),
    'Content-Length on a Unix socket': () => headers(server.url('unix:')),
    'Content-Length on TCP': () => headers(server.url('tcp:')),
    'lines on stdio': () => childPipe(program, ['stdio:']),
    'Content-Length on stdio': () => childPipe(program, ['stdio:'], 'headers'),
    WebSocket: () => webSocket(server.url('ws:'), { perMessageDeflate: false }),
    'WebSocket, compressed': () => webSocket(server.url('ws:'), { perMessageDeflate: { threshold: 0 } }),
    'HTTP POST': () => posts(server.url('http:')),
};

/* The members of want are in is; an array matches in any order. */
function matches(is, want) {
    if (Array.isArray(want))
        return Array.isArray(is) && is.length === want.length && matchesInAnyOrder([...is], want);
    if (want === null || typeof want !== 'object')
        return is === want;
    return is !== null && typeof is === 'object' && Object.keys(want).every(name => matches(is[name], want[name]));
}

function matchesInAnyOrder(left, want) {
    return want.every(item => {
        const at = left.findIndex(one => matches(one, item));
        if (at >= 0)
            left.splice(at, 1);
        return at >= 0;
    });
}

const arrayOf = ({ count, item }) => `[${Array.from({ length: count }, (_, i) => item.replace('%d', String(i))).join(',')}]`;

async function nothingCame(pipe) {
    pipe.send('{"jsonrpc":"2.0","id":"probe","method":"get_data"}');
    same(JSON.parse(await pipe.receive()), { jsonrpc: '2.0', id: 'probe', result: ['hello', 5] }, 'the next answer');
}

async function exchange(pipe, vector) {
    pipe.send(vector.send ?? arrayOf(vector.repeat));
    if (vector.none)
        return nothingCame(pipe);
    const text = await pipe.receive();
    const answer = JSON.parse(text);
    check(vector.accept?.(answer) || !vector.expect || matches(answer, vector.expect), `the answer is ${text.slice(0, 300)}`);
    check(!vector.raw || text.includes(vector.raw), `${vector.raw} is not in ${text}`);
    if (vector.expectCount)
        same(answer.length, vector.expectCount, 'answers');
    for (const one of [answer].flat())
        check(one.jsonrpc === '2.0' && ('result' in one) !== ('error' in one), `no proper answer: ${text.slice(0, 300)}`);
    return nothingCame(pipe);
}

/* The published file says some things in other words. A message text is the specification's own and therefore only advice. */
function fromPublished(vector) {
    const expect = structuredClone(vector.expect);
    for (const one of [expect].flat())
        delete one?.error?.message;
    const accept = ({ result, error }) =>
        vector.altCodes?.includes(error?.code) || (vector.altResult === true && result !== undefined);
    const raw = vector.rawIdText && `"id":${vector.rawIdText}`;
    return { name: vector.name, send: vector.send, none: vector.noResponse, expect, accept, raw };
}

const own = JSON.parse(fs.readFileSync(path.join(source, 'tests/interop/own-vectors.json'))).vectors;
const vectors = [...own];
const published = path.join(source, '../shared/data/jsonrpc2-spec/vectors.json');
if (fs.existsSync(published)) {
    const { section7, extra } = JSON.parse(fs.readFileSync(published));
    vectors.push(...[...section7, ...extra].map(fromPublished));
} else {
    skip('the specification\'s own vectors', 'shared/data/jsonrpc2-spec/vectors.json is not there');
}

for (const [transport, open] of Object.entries(transports)) {
    let pipe;
    for (const vector of vectors)
        test(`${transport}: ${vector.name}`, async () => {
            pipe ??= await open();
            try {
                await exchange(pipe, vector);
            } catch (error) {
                pipe.close();
                pipe = undefined; /* the next vector begins afresh */
                throw error;
            }
        });
    test(`${transport}: all of them, nothing awaited`, async () => {
        pipe?.close();
        pipe = await open();
        const answered = vectors.filter(vector => !vector.none);
        for (const vector of vectors)
            pipe.send(vector.send ?? arrayOf(vector.repeat));
        for (const vector of answered) {
            const answer = JSON.parse(await pipe.receive());
            check(vector.accept?.(answer) || !vector.expect || matches(answer, vector.expect),
                `${vector.name}: ${JSON.stringify(answer).slice(0, 300)}`);
        }
        await nothingCame(pipe);
        pipe.close();
        await pipe.exited;
    });
}

await run();
