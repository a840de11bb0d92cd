#!/usr/bin/env node
/* Streams of tinyvex on a real daemon, by WebSocket (text and binary frames), Unix socket and stdio: a client that was away,
 * while the daemon was killed and started again, has exactly what it missed. And the token that is shown later. */
import fs from 'node:fs';
import { Hub, weft } from './hub.mjs';
import { check, childPipe, lines, needed, patiently, run, same, scratch, test, webSocket } from './kit.mjs';

needed('ws');
delete process.env.WEFT_STORE_KIND; /* what happens is kept: that is part of the test */
const hub = await new Hub().start();

/* A client of tinyvex: calls, and the values of its subscriptions, joined from their pieces. */
class Client {
    constructor(pipe, binary = false) {
        this.pipe = pipe;
        this.binary = binary;
        this.values = {}; /* subId: [{seq, value, journal}] */
        this.pieces = {};
        this.told = [];
        this.nextId = 1;
    }
    take(subId, seq, value, journal) {
        (this.values[subId] ??= []).push({ seq, value, journal });
    }
    hear({ method, params }) {
        if (method === 'tinyvex/data') {
            this.take(params.subId, params.seq, params.value, params.journal);
        } else if (method === 'tinyvex/transitionChunk') {
            check(Buffer.byteLength(params.chunk) <= 65536, 'a piece is longer than was announced');
            if (params.part === 1)
                this.pieces[params.subId] = [];
            const pieces = this.pieces[params.subId];
            pieces.push(params.chunk);
            same(pieces.length, params.part, 'part');
            if (params.part === params.total)
                this.take(params.subId, params.seq, JSON.parse(pieces.join('')), params.journal);
        } else {
            this.told.push({ method, params });
        }
    }
    async next() {
        const message = JSON.parse(await this.pipe.receive());
        if (message.method)
            this.hear(message);
        return message;
    }
    send(message) {
        const text = JSON.stringify({ jsonrpc: '2.0', ...message });
        this.pipe.send(this.binary ? Buffer.from(text) : text);
    }
    async call(method, params) {
        const id = this.nextId++;
        this.send({ id, method, params });
        for (;;) {
            const message = await this.next();
            if (message.id === id)
                return message.result ?? message;
        }
    }
    subscribe(subId, name, params, last) {
        return this.call('tinyvex/subscribe', { subId, name, params, lastSeq: last?.seq, journal: last?.journal });
    }
    async until(right, what) {
        await patiently((async () => {
            while (!right(this))
                await this.next();
        })(), what);
    }
    last(subId) {
        return this.values[subId]?.at(-1);
    }
    close() {
        this.pipe.close();
    }
}
const local = async () => new Client(await lines(hub.socket));
const open = options => webSocket(`ws://${hub.host}/ws`, options);
const phone = async (binary = false) => new Client(await open({ headers: { Authorization: `Bearer ${hub.token}` } }), binary);
const ends = ({ value }) => value.type === 'task.completed';

for (const [name, connect] of [['WebSocket', phone], ['binary frames', () => phone(true)], ['Unix socket', local]]) {
    test(`${name}: away over a kill, and nothing lost or doubled`, async () => {
        let client = await connect();
        const hello = await client.call('tinyvex/connect', { client: { name: 'test', version: '1' } });
        same([hello.features, typeof hello.nowTs, typeof hello.sessionId], [{ chunks: true, maxChunkBytes: 65536 }, 'number', 'string']);
        const begun = await client.subscribe('e', 'events', { types: ['task.'] });
        same([begun.accepted, begun.resumed, begun.mode], [true, false, 'log']);
        await client.subscribe('t', 'tasks');
        await client.call('task.submit', { prompt: 'echo one' });
        await client.until(() => client.values.e?.some(ends) && client.last('t').value[0].state === 'completed', 'the first task');
        const { e: first, t: states } = client.values;
        client.close();
        const other = await local();
        await other.subscribe('e', 'events', { types: ['task.'] });
        await other.call('task.submit', { prompt: 'echo two' });
        await other.until(() => other.values.e?.some(ends), 'the second task');
        other.close();
        await hub.stop('SIGKILL');
        await hub.start();
        client = await connect();
        const again = await client.subscribe('e', 'events', { types: ['task.'] }, first.at(-1));
        same([again.resumed, again.startSeq, again.journal], [true, first.at(-1).seq, begun.journal]);
        await client.until(() => client.values.e?.some(ends), 'what was missed');
        const all = [...first, ...client.values.e];
        check(all.every(({ seq }, i) => !i || seq > all[i - 1].seq), 'not in order, or doubled');
        same(all.map(({ value }) => value.type).filter(type => type !== 'task.process'),
            [1, 2].flatMap(() => ['queued', 'started', 'snapshot', 'changed', 'completed']).map(type => `task.${type}`));
        const viewed = await client.subscribe('t', 'tasks', {}, states.at(-1));
        same([viewed.resumed, viewed.mode], [true, 'state']);
        await client.until(() => client.last('t'), 'the value that has changed');
        same(client.last('t').value[0].prompt, 'echo two');
        const known = await client.subscribe('same', 'tasks', {}, client.last('t'));
        same([known.resumed, known.startSeq], [true, client.last('t').seq]);
        same(await client.call('tinyvex/ping', { t: 1 }), { t: 1 });
        same(client.values.same, undefined, 'a value that it has');
        client.close();
    });
}

test('a long value comes in pieces', async () => {
    const client = await phone();
    await client.subscribe('d', 'documents', { collection: 'long' });
    const value = 'ä€😀'.repeat(22000);
    same((await client.call('tinyvex/mutation', { requestId: 'long-1', name: 'doc.put', args: { collection: 'long', key: 'k', value } })).requestId, 'long-1');
    await client.until(() => client.last('d').value.length === 1, 'the value');
    check(client.last('d').value[0].value === value, 'another value');
    client.close();
});

test('stdio', async () => {
    const place = scratch('child');
    fs.mkdirSync(place);
    const pipe = childPipe(process.execPath, ['-e', `process.chdir(${JSON.stringify(place)});
        require('child_process').spawn(${JSON.stringify(weft)}, ['serve', '--listen', 'stdio:'], { stdio: 'inherit' })
            .on('exit', code => process.exit(code ?? 1));`]);
    const client = new Client(pipe);
    check((await client.call('tinyvex/connect')).serverVersion, 'no version');
    same((await client.subscribe('t', 'threads')).mode, 'state');
    await client.until(() => client.last('t'), 'the value');
    same(client.last('t').value, []);
    client.close();
});

test('a token that is shown later', async () => {
    const client = new Client(await webSocket(`ws://${hub.host}/tinyvex`));
    same((await client.call('tinyvex/connect')).error.code, 401);
    same((await client.call('tinyvex/auth.setToken', { token: 'wrong' })).error.data.code, 'TVX006');
    same(await client.call('tinyvex/auth.setToken', { token: hub.token }), { ok: true });
    check((await client.call('tinyvex/connect')).serverVersion, 'no version');
    await client.subscribe('t', 'tasks');
    await client.until(() => client.last('t'), 'a value');
    const had = client.values.t.length;
    same(await client.call('tinyvex/auth.setToken', { token: null }), { ok: true });
    same((await client.subscribe('t', 'tasks')).error.code, 401);
    same((await client.call('tinyvex/ping', {})).error.code, 401);
    const other = await local();
    await other.subscribe('t', 'tasks');
    await other.call('task.submit', { prompt: 'echo unseen' });
    await other.until(() => other.last('t').value[0].state === 'completed', 'the task');
    same(await client.call('tinyvex/auth.setToken', { token: hub.token }), { ok: true });
    check((await client.call('tinyvex/connect')).serverVersion, 'no version');
    same(client.values.t.length, had, 'values for a stranger');
    client.close();
    other.close();
    for (const refused of [open({}), webSocket(`ws://${hub.host}/tinyvex`, { headers: { Authorization: 'Bearer wrong' } }),
        webSocket(`ws://${hub.host}/tinyvex`, { headers: { Origin: 'http://evil.example' } })])
        await patiently(refused.then(() => check(false, 'it was let in'), () => {}), 'the refusal');
});

await run();
