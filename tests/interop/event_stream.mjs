#!/usr/bin/env node
/* GET /events with Node's own EventSource, whose connection is cut again and again, also by a daemon that is killed: it comes back
 * with its Last-Event-ID, and in the end has seen every event once, in order. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { Hub } from './hub.mjs';
import { check, cleanup, patiently, request, run, same, skip, test } from './kit.mjs';

if (typeof EventSource === 'undefined' && !process.execArgv.includes('--experimental-eventsource')) {
    const again = spawnSync(process.execPath, ['--experimental-eventsource', ...process.argv.slice(1)], { stdio: 'inherit' });
    process.exit(again.status ?? 1);
}
if (typeof EventSource === 'undefined') {
    skip('event_stream', 'this Node has no EventSource (tools/install.sh test installs one that has)');
    await run();
}

delete process.env.WEFT_STORE_KIND; /* positions are to survive the daemon */
const hub = await new Hub().start();
const { token } = hub;

/* What a proxy or a lost network does: all connections through it end at once. */
const through = new Set();
const proxy = net.createServer(client => {
    const [host, port] = hub.host.split(':');
    const server = net.connect(Number(port), host);
    for (const [one, other] of [[client, server], [server, client]]) {
        through.add(one);
        one.on('close', () => { through.delete(one); other.destroy(); }).on('error', () => {});
    }
    client.pipe(server);
    server.pipe(client);
}).listen(0, '127.0.0.1');
await once(proxy, 'listening');
cleanup(() => { cut(); proxy.close(); });
const cut = () => through.forEach(socket => socket.destroy());
const url = query => `http://127.0.0.1:${proxy.address().port}/events?token=${token}&${query}`;

async function call(method, params) {
    const { body } = await request(`http://${hub.host}/rpc`, { method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
    const answer = JSON.parse(body);
    if (answer.error)
        throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
}

/* Everything an EventSource tells; until(test) waits for an event like that. */
function listen(query) {
    const source = new EventSource(url(query));
    const seen = [], waiting = new Set();
    const take = event => {
        seen.push({ type: event.type, id: event.lastEventId, ...JSON.parse(event.data).params });
        waiting.forEach(look => look());
    };
    source.addEventListener('message', take);
    source.addEventListener('gap', take);
    cleanup(() => source.close());
    const until = (wanted, what) => patiently(new Promise(resolve => {
        const look = () => seen.some(wanted) && (waiting.delete(look), resolve(seen.find(wanted)));
        waiting.add(look);
        look();
    }), what);
    const opened = patiently(new Promise(resolve => source.addEventListener('open', resolve, { once: true })), 'the stream to open');
    return { source, seen, until, opened };
}

test('every event once, in order, over cuts and a kill', async () => {
    const seen = [];
    let source, over = false, changed = () => {};
    /* Node's gives up for good when it is cut in the middle of an event; then a new one goes on where it stopped. Its state may
     * change only after the error was told. */
    const open = since => {
        const opened = source = new EventSource(url(`since=${since}`));
        const goOn = () => source === opened && opened.readyState === EventSource.CLOSED && !over && open(seen.at(-1)?.id ?? 0);
        source.addEventListener('error', () => setImmediate(goOn));
        source.addEventListener('message', event => {
            const { params } = JSON.parse(event.data);
            seen.push({ ...params, id: event.lastEventId });
            changed();
        });
    };
    open(0);
    cleanup(() => { over = true; source.close(); });
    const until = (wanted, what) => patiently(new Promise(resolve => {
        (changed = () => seen.some(wanted) && resolve())();
    }), what);
    for (let i = 0; i < 6; i++) {
        const { taskId } = await call('task.submit', { prompt: `hello ${i}` });
        cut();
        if (i === 3) {
            await hub.stop('SIGKILL');
            await hub.start();
            cut();
        }
        await until(event => event.data.taskId === taskId && /^task\.(completed|failed)$/.test(event.type), `the end of ${taskId}`);
    }
    const gseqs = seen.map(event => event.gseq);
    same(gseqs, [...new Set(gseqs)].sort((a, b) => a - b));
    same(gseqs[0], 1);
    same(gseqs.at(-1), gseqs.length); /* nothing was trimmed: there is no hole */
    check(seen.every(event => event.id.endsWith(`:${event.gseq}`)), 'the id is the position');
    over = true;
    source.close();
});

test('only the types that were asked for, from now on', async () => {
    const { seen, until, opened } = listen('types=task.queued,task.completed');
    await opened;
    await call('task.submit', { prompt: 'hello' });
    await until(event => event.stream === 'hub' && seen.length > 1, 'two events');
    check(seen.every(event => event.data.taskId), 'events of tasks');
    same(new Set(seen.map(event => event.data.prompt !== undefined)).size, 2);
});

test('a position that cannot be resumed from is told, and the stream goes on', async () => {
    const { seen, until } = listen('since=anotherepoch:5&types=task.queued');
    const gap = await until(event => event.type === 'gap', 'the gap');
    same(gap.reason, 'epochChanged');
    same(gap.id, `${gap.epoch}:${gap.head}`);
    await call('task.submit', { prompt: 'hello' });
    await until(event => event.gseq > gap.head, 'what happens next');
    same(seen.length, 2);
});

const status = (query, headers) => new Promise((resolve, reject) =>
    http.get(`http://${hub.host}/events?${query}`, { headers }, answer => { answer.destroy(); resolve(answer.statusCode); })
        .on('error', reject));

test('what is refused', async () => {
    same(await status('since=0', {}), 401);
    same(await status('since=yesterday', { Authorization: `Bearer ${token}` }), 400);
    same(await status('since=-1', { Authorization: `Bearer ${token}` }), 400);
    same(await status('since=0', { Authorization: `Bearer ${token}`, Origin: 'http://evil.example' }), 403);
    same(await status(`since=${'e'.repeat(300)}:1`, { Authorization: `Bearer ${token}` }), 200);
});

await run();
