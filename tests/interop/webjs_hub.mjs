#!/usr/bin/env node
/* weft.js with the real hub over a WebSocket: calls, refusals, withdrawal, subscriptions as iterators, and a hub that is killed
 * and started again under them: nothing is lost, nothing comes twice. And requests that are signed. */
import fs from 'node:fs';
import path from 'node:path';
import { Hub } from './hub.mjs';
import { check, needed, output, patiently, run, same, scratch, skip, source, test } from './kit.mjs';

const ws = needed('ws');
const { JSONRPCClient, JSONRPCServer, RPCError, webSocketTransport } = await import(path.join(source, 'web/weft/weft.js'));
const { Subscriptions, subscribe } = await import(path.join(source, 'web/weft/subscribe.js'));
const { signer } = await import(path.join(source, 'web/weft/sign.js'));

delete process.env.WEFT_STORE_KIND; /* what happens is kept: that is part of the test */
const secret = 'a secret that only the two sides have';
const key = scratch('ci.key');
fs.writeFileSync(key, secret + '\n', { mode: 0o600 });
const hub = await new Hub({ config: { keys: { ci: { file: key, scopes: 'read work' } }, gates: [{ methods: ['echo'], require: 'signature' }] } }).start();

const sockets = [['ws', ws.WebSocket ?? ws], ...(globalThis.WebSocket ? [['the global WebSocket', globalThis.WebSocket]] : [])];
function connect(options = {}) {
    const transport = webSocketTransport(() => `ws://${hub.host}/ws`, { token: () => hub.token, WebSocket: sockets[0][1], ...options });
    return new JSONRPCClient(transport);
}
/* Until a condition holds; look again at each change of the state, and every few milliseconds. */
async function until(holds, what) {
    await patiently((async () => {
        while (!holds())
            await new Promise(resolve => setTimeout(resolve, 5));
    })(), what);
}
const fails = async promise => promise.then(result => { throw new Error(`it gave ${JSON.stringify(result)}`); }, error => error);
const isEnd = ({ value }) => /^task\.(completed|failed)$/.test(value.type);
const rising = items => items.every(({ seq }, i) => !i || seq > items[i - 1].seq);

for (const [name, WebSocket] of sockets)
    test(`${name}: a hub that cannot be reached yet is tried again`, async () => {
        let attempts = 0;
        const transport = webSocketTransport(() => ++attempts < 4 ? 'ws://127.0.0.1:1/ws' : `ws://${hub.host}/ws`, { token: () => hub.token, WebSocket, reconnect: { max: 100 } });
        await patiently(new Promise(resolve => transport.onState(({ name }) => name === 'open' && resolve())), 'a connection');
        same(attempts, 4);
        const client = new JSONRPCClient(transport);
        same((await client.request('ping')).pong, true);
        client.destroy();
    });
for (const [name, WebSocket] of sockets)
    test(`${name}: a call before it is open, a refusal, a batch, a server on the same transport`, async () => {
        const client = connect({ WebSocket });
        const server = new JSONRPCServer(client.transport);
        server.method('never', () => null);
        same((await client.request('ping')).pong, true);
        const error = await fails(client.request('task.get', { taskId: 'task-9999' }));
        check(error instanceof RPCError && error.code === -32000 && error.reason === 'taskNotFound', `${error.code} ${error.reason}`);
        const [pong, missing] = client.batch(() => [client.request('ping'), fails(client.request('no.such'))]);
        same([(await pong).pong, (await missing).code], [true, -32601]);
        client.destroy();
        same([client.transport.state.name, (await fails(client.request('ping'))).reason], ['closed', 'destroyed']);
    });

test('a wrong token: it says that it waits, and when it tries again', async () => {
    const client = connect({ token: 'wrong' });
    const call = fails(client.request('ping'));
    await until(() => client.transport.state.name === 'waiting', 'the refusal');
    const { retryAt, attempt } = client.transport.state;
    check(retryAt > Date.now() - 1000 && attempt === 1, JSON.stringify(client.transport.state));
    same([(await call).reason, (await fails(client.request('ping'))).reason], ['disconnected', 'disconnected']);
    client.destroy();
});

test('a page as executor: the hub calls it, and what is withdrawn here is withdrawn there', async () => {
    const executor = connect(), server = new JSONRPCServer(executor.transport);
    let begun, over;
    const started = new Promise(resolve => { begun = resolve; }), ended = new Promise(resolve => { over = resolve; });
    const output = code => ({ status: 'success', output: { code, explanation: '', files_modified: [], files_created: [] }, metadata: { execution_time_ms: 1 } });
    server.method('execute_task', ({ prompt }, { signal }) => prompt === 'quick' ? output('done') : new Promise((_, reject) => {
        begun();
        signal.onabort = () => { over(signal.reason.reason); reject(signal.reason); };
    }));
    await executor.request('role.register', { role: 'executor', task_types: ['of_the_page'] });
    const client = connect(), leave = new AbortController();
    same((await client.request('execute_task', { task_type: 'of_the_page', prompt: 'quick' }, { timeout: 120_000 })).output.code, 'done');
    const call = fails(client.request('execute_task', { task_type: 'of_the_page', prompt: 'for ever' }, { signal: leave.signal, timeout: 120_000 }));
    await patiently(started, 'the task to start');
    leave.abort();
    same((await call).name, 'AbortError');
    same(await patiently(ended, 'the executor to be told'), 'cancelled');
    client.destroy();
    executor.destroy();
});

test('a state and a log as iterators', async () => {
    const client = connect();
    const states = subscribe(client, 'tasks')[Symbol.asyncIterator]();
    const first = (await states.next()).value;
    check(first.fresh && Array.isArray(first.value), 'the first value is the whole state');
    const { taskId } = await client.request('task.submit', { prompt: 'echo hello' });
    let text = '';
    for await (const { value } of subscribe(client, 'taskOutput', { taskId })) {
        text += value.text ?? '';
        if (value.text === undefined)
            break;
    }
    check(/hello/.test(text), `the output is ${text}`);
    let latest;
    do
        latest = (await states.next()).value;
    while (latest.value.find(task => task.id === taskId)?.state !== 'completed');
    check(!latest.fresh, 'a later value does not begin anew');
    await states.return();
    const refused = await fails((async () => { for await (const _ of subscribe(client, 'no such stream')); })());
    same([refused instanceof RPCError, refused.data.code], [true, 'TVX002']);
    client.destroy();
});

test('the hub is killed and started again: subscriptions go on where they were', async () => {
    const client = connect(), other = () => connect();
    const subs = Subscriptions.of(client), said = [], states = [];
    subs.onState(({ name }) => said.at(-1) === name || said.push(name));
    const events = [];
    subscribe(client, 'events', { types: ['task.'] }, { onValue: (_, item) => events.push(item), onState: state => states.push(state) });
    const iterated = [];
    const log = subscribe(client, 'events', { types: ['task.'] });
    const reading = (async () => { for await (const item of log) iterated.push(item); })();
    await until(() => log.state.name === 'live', 'the subscription');
    await client.request('task.submit', { prompt: 'echo one' });
    await until(() => events.some(isEnd), 'the first task');
    for (let round = 0; round < 3; round++) {
        hub.child.kill('SIGSTOP'); /* so that the call is open when the connection breaks */
        const open = fails(client.request('session/list'));
        await hub.stop('SIGKILL');
        same((await open).reason, 'disconnected');
        await until(() => subs.state.name === 'offline', 'to be offline');
        const { since, retryAt } = subs.state;
        check(since <= Date.now() && (retryAt === undefined || retryAt > since), JSON.stringify(subs.state));
        same((await fails(client.request('ping'))).reason, 'disconnected');
        await hub.start();
        const helper = other(), { taskId } = await helper.request('task.submit', { prompt: `echo ${round}` });
        await until(() => events.some(item => isEnd(item) && item.value.data.taskId === taskId), 'what happened meanwhile');
        helper.destroy();
    }
    await until(() => subs.state.name === 'live' && iterated.length >= events.length, 'to be live');
    check(rising(events), 'the events are not in order, or doubled');
    same(iterated.map(({ seq }) => seq), events.map(({ seq }) => seq), 'iterator and callback');
    same(events.filter(({ fresh }) => fresh).length, 1, `how often it began anew, of ${JSON.stringify(states)}`);
    same(states.filter(({ name }) => name === 'catchingUp').every(({ resumed }) => resumed === true), true);
    for (const name of ['offline', 'catchingUp', 'live'])
        check(said.includes(name), `${name} was never said: ${said}`);
    const truth = connect(), all = [];
    subscribe(truth, 'events', { types: ['task.'] }, { position: { seq: events[0].seq - 1, journal: events[0].journal }, onValue: (_, item) => all.push(item) });
    await until(() => all.length >= events.length, 'the whole log');
    same(all.slice(0, events.length).map(({ seq, value }) => [seq, value]), events.map(({ seq, value }) => [seq, value]), 'what the store has');
    log.close();
    await reading;
    client.destroy();
    truth.destroy();
});

test('how far it is behind is said while it catches up', async () => {
    const client = connect(), events = [], behind = [];
    const sub = subscribe(client, 'events', {}, { onValue: (_, item) => { events.push(item); behind.push(sub.state.behind); } });
    await until(() => sub.state.name === 'live', 'the subscription');
    await client.request('task.submit', { prompt: 'echo x' });
    await until(() => events.some(isEnd), 'the task');
    sub.close();
    const { position } = sub;
    for (let i = 0; i < 5; i++)
        await client.request('task.submit', { prompt: `echo ${i}` });
    await until(() => client.transport.state.name === 'open', 'a connection');
    const told = [], watch = Subscriptions.of(client).onState(state => told.push(state));
    const again = subscribe(client, 'events', {}, { position, onValue: () => {} });
    await until(() => again.state.name === 'live', 'to be live');
    const said = told.filter(({ name }) => name === 'catchingUp').map(one => one.behind);
    check(said.length && Math.max(...said) > 0, `behind: ${JSON.stringify(told)}`);
    watch();
    client.destroy();
});

test('a reader that is slow pauses a log, and gets everything', async () => {
    const client = connect(), seen = [];
    const all = subscribe(client, 'events', {}, { position: { seq: 0 }, onValue: (_, item) => seen.push(item) });
    const states = new Set();
    const slow = subscribe(client, 'events', {}, { position: { seq: 0 }, maxWaiting: 4, onState: ({ name }) => states.add(name) });
    await until(() => all.state.name === 'live' && seen.length > 20, 'the log');
    const read = [];
    for await (const item of slow) {
        read.push(item);
        await new Promise(resolve => setTimeout(resolve, 1));
        if (read.length >= 20)
            break;
    }
    check(states.has('paused'), `it never paused: ${[...states]}`);
    same(read.map(({ seq }) => seq), seen.slice(0, 20).map(({ seq }) => seq));
    client.destroy();
});

test('a long value comes in pieces and is one', async () => {
    const client = connect();
    const value = 'ä€😀'.repeat(22_000);
    const iterator = subscribe(client, 'documents', { collection: 'long' })[Symbol.asyncIterator]();
    await iterator.next();
    await client.request('tinyvex/mutation', { requestId: `long-${Date.now()}`, name: 'doc.put', args: { collection: 'long', key: 'k', value } });
    const { value: item } = await iterator.next();
    check(item.value[0].value === value, 'another value');
    client.destroy();
});

test('a position of another journal begins anew, and says so', async () => {
    const client = connect(), states = [];
    const sub = subscribe(client, 'events', {}, { position: { seq: 3, journal: 'another' }, onValue: () => {}, onState: state => states.push(state) });
    await until(() => sub.state.name === 'live', 'an answer');
    same([states[0].resumed, states[0].reason], [false, 'epochChanged']);
    client.destroy();
});

test('signed requests, alone and in a batch; unsigned and wrongly signed ones are refused', async () => {
    const sign = signer({ keyId: 'ci', secret });
    const client = connect({ sign });
    /* Nothing counts that was stamped in the second in which the hub started. */
    await until(() => Date.now() / 1000 > Math.ceil(fs.statSync(path.join(hub.folder, '.weft/daemon.sock')).mtimeMs / 1000) + 1, 'the next second');
    same(await client.request('echo', { text: 'é 日本 \u2028 "', list: [1, 2.5e3, null] }), { text: 'é 日本 \u2028 "', list: [1, 2500, null] });
    same(await Promise.all([1, 2, 3].map(n => client.request('echo', [n]))), [[1], [2], [3]]);
    same(await Promise.all(client.batch(() => [client.request('echo', ['a']), client.request('echo', ['b'])])), [['a'], ['b']]);
    client.destroy();
    const plain = connect();
    same((await fails(plain.request('echo', [1]))).reason, 'signatureMissing');
    plain.destroy();
    const wrong = connect({ sign: signer({ keyId: 'ci', secret: 'another' }) });
    const error = await fails(wrong.request('echo', [1]));
    same([error.code, error.reason], [-32003, 'signatureWrong']);
    wrong.destroy();
    const bytes = new TextEncoder().encode(secret);
    const kept = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
    const third = connect({ sign: signer({ keyId: 'ci', secret: kept }) });
    same(await third.request('echo', [3]), [3]);
    third.destroy();
});

if (globalThis.WebSocket)
    test('the example that follows a task', async () => {
        const { code, stdout, stderr } = await output(process.execPath, [path.join(source, 'web/weft/examples/follow.mjs'), `ws://${hub.host}/ws`, path.join(hub.folder, '.weft/token'), 'echo from the example']);
        check(code === 0 && /from the example/.test(stdout) && /live/.test(stderr) && !/offline/.test(stderr), `${code} ${stdout}${stderr}`);
    });
else
    test('the example that follows a task says what it needs', async () => {
        const { code, stderr } = await output(process.execPath, [path.join(source, 'web/weft/examples/follow.mjs'), `ws://${hub.host}/ws`, path.join(hub.folder, '.weft/token'), 'x']);
        check(code === 1 && /^This Node has no WebSocket/.test(stderr), `${code} ${stderr}`);
    });

await run();
