#!/usr/bin/env node
/* What AIWG 2026.5.1 asks of its daemon in its own live acceptance test, case by case: its life and methods, tasks of a real
 * agent (here a stand-in on PATH), and its web interface. Two cases contradict what its daemon answers in the recording; there
 * we answer as the recording does. */
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { check, cleanup, patiently, run, same, scratch, test, webSocket } from './kit.mjs';

const weft = process.env.WEFT ?? path.resolve('build/weft');
const CLAUDE = `#!/bin/sh
# Creates the file that the prompt names, with the text in it.
case $2 in
*'containing exactly the text'*)
    file=$(printf %s "$2" | sed 's/.*file at "\\([^"]*\\)".*/\\1/')
    text=$(printf %s "$2" | sed 's/.*exactly the text "\\([^"]*\\)".*/\\1/')
    printf %s "$text" >"$file" ;;
fail*) echo "no $2" >&2; exit 3 ;;
hang*) exec sleep 300 ;;
esac
echo "done: $2"
`;
const bin = scratch('bin');
fs.mkdirSync(bin, { recursive: true });
fs.writeFileSync(path.join(bin, 'claude'), CLAUDE, { mode: 0o755 });

const BASE = {
    daemon: { heartbeat_interval_seconds: 5, max_parallel_actions: 2, action_timeout_minutes: 5, log: { max_size_mb: 10, max_files: 2, level: 'info' } },
    watch: { enabled: false, paths: [] },
    schedule: { enabled: false, jobs: [] },
    supervisor: { max_concurrent: 2, max_queue_depth: 2, restart_intensity: { max_restarts: 2, window_seconds: 60 },
        circuit_breaker: { failure_threshold: 3, cooldown_ms: 60000 }, daily_budget_usd: 0, behaviors: [] },
    interface: { web: { enabled: false } },
    rules: [],
};

class Client extends EventEmitter {
    #waiting = new Map();
    #last = 0;
    told = [];
    async open(socketPath) {
        this.socket = net.connect(socketPath);
        await once(this.socket, 'connect');
        this.socket.on('error', () => {});
        readline.createInterface({ input: this.socket }).on('line', line => this.#take(JSON.parse(line)));
        return this;
    }
    #take(message) {
        if (message.id === undefined) {
            this.told.push(message.method);
            return;
        }
        const { resolve, reject } = this.#waiting.get(message.id);
        if (message.error)
            reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
        else
            resolve(message.result);
    }
    request(method, params = {}) {
        const id = ++this.#last;
        this.socket.write(`${JSON.stringify({ jsonrpc: '2.0', method, params, id })}\n`);
        return patiently(new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject })), `the answer to ${method}`);
    }
}

let projects = 0;
class Daemon {
    async start(config = {}, extra = {}) {
        this.folder = scratch(`project-${projects++}`);
        this.socketPath = path.join(this.folder, '.aiwg/daemon/daemon.sock');
        fs.mkdirSync(path.join(this.folder, '.aiwg'), { recursive: true });
        fs.writeFileSync(path.join(this.folder, '.aiwg/daemon.json'), JSON.stringify({ ...BASE, ...config }, null, 2));
        const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, ...extra };
        delete env.WEFT_STORE_KIND;
        this.process = spawn(weft, ['serve', '--aiwg'], { cwd: this.folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
        this.talk = '';
        for (const stream of [this.process.stdout, this.process.stderr])
            stream.setEncoding('utf8').on('data', text => { this.talk += text; });
        this.exited = once(this.process, 'exit');
        cleanup(() => this.stop());
        await until(() => this.log().includes('Daemon started successfully'), () => `the daemon to start: ${this.talk}`);
        this.client = await new Client().open(this.socketPath);
        return this;
    }
    log() {
        const file = path.join(this.folder, '.aiwg/daemon/daemon.log');
        return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    }
    async stop() {
        this.client?.socket.destroy();
        if (this.process.exitCode === null)
            this.process.kill('SIGTERM');
        await patiently(this.exited, 'the daemon to end').catch(() => this.process.kill('SIGKILL'));
        check(!/Sanitizer|runtime error:/.test(this.talk), this.talk);
    }
}

async function until(right, what) {
    for (const end = Date.now() + 30000; !await right();) {
        check(Date.now() < end, `waited in vain for ${typeof what === 'function' ? what() : what}`);
        await new Promise(resolve => setTimeout(resolve, 20));
    }
}

const refused = async (promise, code, text) => {
    const error = await promise.then(() => undefined, each => each);
    check(error && error.code === code && error.message === text, `refused with ${error?.code} ${error?.message}`);
};

/* ---- life and methods ---- */

let daemon, client;
test('life: it starts', async () => {
    daemon = await new Daemon().start();
    ({ client } = daemon);
});
test('life: ping', async () => {
    const pong = await client.request('ping');
    check(pong.pong === true && pong.timestamp, 'pong');
});
test('life: daemon.status', async () => {
    const status = await client.request('daemon.status');
    same([status.health, status.pid], ['healthy', daemon.process.pid]);
    check(typeof status.uptime_seconds === 'number' && status.subsystems.supervisor && status.subsystems.automation, 'parts');
});
test('life: task.stats', async () => same(typeof await client.request('task.stats'), 'object'));
test('life: task.list', async () => same(await client.request('task.list', {}), []));
test('life: automation.status', async () => same(typeof (await client.request('automation.status')).enabled, 'boolean'));
test('life: the circuit is closed', async () => {
    same(await client.request('daemon.circuit.status'), { state: 'closed', consecutiveFailures: 0, lastFailureAt: null, cooldownRemainingMs: 0 });
});
test('life: resources', async () => {
    const is = await client.request('daemon.resource.snapshot');
    for (const value of [is.cpu.percent, is.cpu.cores, is.memory.heapUsedMb, is.memory.totalMb, is.memory.usedMb, is.memory.freeMb,
        is.memory.percentUsed, is.loadAvg['1m'], is.loadAvg['5m'], is.loadAvg['15m'], is.queueDepth, is.uptime])
        same(typeof value, 'number');
    check(is.memory.totalMb > is.memory.usedMb && is.memory.usedMb > 0, JSON.stringify(is));
});
test('life: the queue is empty', async () => {
    same(await client.request('daemon.queue.inspect'), { depth: 0, maxDepth: 2, oldest: null, priorityDistribution: {}, estimatedWaitMs: null });
});
test('life: no budget is no limit', async () => {
    /* Its test wants a number here; its daemon says "unlimited". */
    same(await client.request('daemon.budget.remaining'), { dailyLimit: 0, spent: 0, remaining: 'unlimited', percentUsed: 0, currency: 'USD' });
});
test('life: no loops', async () => {
    for (const filter of [undefined, 'all', 'running', 'queued', 'failed'])
        same(await client.request('daemon.process.list', { filter }), []);
});
test('life: what it has not', async () => {
    same(await client.request('rooms.list'), { totalRooms: 0, totalBindings: 0, platforms: {} });
    same(await client.request('autonomous.status'), { enabled: false });
});
test('life: no history', async () => same(await client.request('daemon.loop.history', { limit: 5 }), []));
test('life: killing what is not there', async () => {
    /* Its test wants an error here; its daemon says that nothing was killed. */
    same(await client.request('daemon.process.kill', { loopId: 'nonexistent-loop', signal: 'SIGTERM' }), { killed: false, loopId: 'nonexistent-loop', signal: 'SIGTERM' });
    await refused(client.request('daemon.process.kill', { loopId: 'x', signal: 'SIGBOGUS' }), -32602, 'Invalid signal: SIGBOGUS. Must be one of: SIGTERM, SIGKILL, SIGINT');
    await refused(client.request('daemon.process.kill', {}), -32602, 'Missing required parameter: loopId');
});
test('life: errors are in its words', async () => {
    await refused(client.request('task.submit', {}), -32602, 'Missing required parameter: prompt');
    await refused(client.request('task.submit', { prompt: '' }), -32602, 'Missing required parameter: prompt');
    await refused(client.request('task.get', {}), -32602, 'Missing required parameter: taskId');
    await refused(client.request('chat.send', {}), -32602, 'Missing required parameter: message');
    await refused(client.request('task.get', { taskId: 'no-such-task' }), -32000, 'Task not found: no-such-task');
    await refused(client.request('nope'), -32601, 'Method not found: nope');
});
test('life: the log', async () => {
    check(daemon.log().includes('IPC server listening'), daemon.log());
    await daemon.stop();
});

/* ---- tasks ---- */

test('tasks: a real agent', async () => {
    daemon = await new Daemon().start();
    ({ client } = daemon);
    const file = path.join(daemon.folder, 'uat-done.txt');
    const first = await client.request('task.submit', { prompt: `Create a file at "${path.join(daemon.folder, 'probe.txt')}" containing exactly the text "ok"`, priority: 0 });
    check(first.taskId && ['queued', 'running'].includes(first.state), JSON.stringify(first));
    check((await client.request('task.list', {}))[0].prompt, 'it is listed');
    const { taskId } = await client.request('task.submit', { prompt: `Create a file at "${file}" containing exactly the text "daemon-uat-success" with no trailing newline.`, priority: 5 });
    await until(async () => (await client.request('task.get', { taskId })).state === 'completed', 'the task to complete');
    same(fs.readFileSync(file, 'utf8'), 'daemon-uat-success');
});
test('tasks: behind them', async () => {
    const [newest] = await client.request('task.list', {});
    const task = await client.request('task.get', { taskId: newest.id });
    check(task.id === newest.id && task.prompt && task.state && task.createdAt, JSON.stringify(task));
    same((await client.request('daemon.circuit.status')).state, 'closed');
    same((await client.request('daemon.resource.snapshot')).queueDepth, 0);
    for (const line of ['IPC server listening', 'Agent task started: task-0000 (PID ', 'Agent task completed: task-0001 ('])
        check(daemon.log().includes(line), `${line} is not in ${daemon.log()}`);
});
test('tasks: it ends in time', async () => {
    await client.request('task.submit', { prompt: 'Echo "shutdown-test"', priority: 0 });
    await daemon.stop();
    same(daemon.process.exitCode, 0);
});

/* ---- the web interface ---- */

let port;
function ask(method, where, { body, headers = {}, keep } = {}) {
    return patiently(new Promise((resolve, reject) => {
        const req = http.request({ host: '127.0.0.1', port, method, path: where, agent: false, headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers } }, res => {
            if (keep) {
                resolve({ res, req });
                return;
            }
            let text = '';
            res.setEncoding('utf8').on('data', chunk => { text += chunk; }).on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: text && JSON.parse(text) }));
        });
        req.on('error', error => (keep ? undefined : reject(error)));
        req.end(body && JSON.stringify(body));
    }), `${method} ${where}`);
}
const freePort = () => new Promise(resolve => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
        const { port: found } = server.address();
        server.close(() => resolve(found));
    });
});
const submit = (body, more) => ask('POST', '/api/submit', { body, ...more });

test('web: it is opened', async () => {
    port = await freePort();
    daemon = await new Daemon().start({ interface: { web: { enabled: true, port, host: '127.0.0.1' } } });
    ({ client } = daemon);
    check(daemon.log().includes(`Web server listening on http://127.0.0.1:${port}`), daemon.log());
    same(JSON.parse(fs.readFileSync(path.join(daemon.folder, '.aiwg/daemon/state.json'))).web_server.url, `http://127.0.0.1:${port}`);
});
test('web: status, loops, resources, history', async () => {
    const status = await ask('GET', '/api/status');
    same([status.status, status.body.status, status.body.concurrency, status.body.queue, status.body.budget, status.body.circuit.state],
        [200, 'healthy', { used: 0, max: 2 }, { depth: 0, max: 2 }, { used: 0, limit: 0 }, 'closed']);
    same((await ask('GET', '/api/loops')).body, { running: [], queued: [] });
    const resources = (await ask('GET', '/api/resources')).body;
    check(resources.cpu.cores > 0 && resources.cpu.loadAvg.length === 3 && resources.memory.totalMb > 0, JSON.stringify(resources));
    same([resources.queueDepth, resources.budgetRemaining], [0, 'unlimited']);
    same((await ask('GET', '/api/history?limit=3')).body, []);
    same((await ask('GET', '/api/nothing')).status, 404);
});
test('web: a loop, and whoever follows it', async () => {
    const { res, req } = await ask('GET', '/sse/events', { keep: true });
    same([res.headers['content-type'], res.headers['cache-control']], ['text/event-stream', 'no-cache']);
    let heard = '';
    res.setEncoding('utf8').on('data', text => { heard += text; });
    const output = await ask('GET', '/sse/output/mine', { keep: true });
    let said = '';
    output.res.setEncoding('utf8').on('data', text => { said += text; });
    await until(() => said.startsWith(':connected to mine\n\n'), 'the greeting');
    const made = await submit({ prompt: 'Echo "web-submit-test"', loopId: 'mine' });
    same([made.status, made.body], [201, { loopId: 'mine', queued: false, position: 0 }]);
    await until(() => /event: loop:completed\ndata: \{"loopId":"mine","taskId":"task-0000"\}\n\n/.test(heard), () => `its end: ${heard}`);
    check(heard.startsWith(':connected\n\nevent: loop:started\n'), heard);
    await until(() => said.includes('data: {"loopId":"mine","chunk":"done: Echo \\"web-submit-test\\"\\n"}'), () => `its output: ${said}`);
    const [end] = (await ask('GET', '/api/history')).body;
    same([end.loopId, end.taskId, end.outcome], ['mine', 'task-0000', 'completed']);
    same(await client.request('daemon.loop.history'), [end]);
    same((await client.request('task.get', { taskId: 'task-0000' })).metadata, { loopId: 'mine' });
    req.destroy();
    output.req.destroy();
});
test('web: a queue with an end', async () => {
    for (const loopId of ['a', 'b'])
        same((await submit({ prompt: 'hang', loopId })).status, 201);
    same((await submit({ prompt: 'hang', loopId: 'low', priority: -1 })).body, { loopId: 'low', queued: true, position: 1 });
    same((await submit({ prompt: 'hang', loopId: 'high', priority: 3 })).body, { loopId: 'high', queued: true, position: 1 });
    same(await submit({ prompt: 'hang', loopId: 'more' }).then(({ status, body }) => [status, body]), [422, { error: 'Queue full: 2/2. Cannot enqueue loop more' }]);
    const queue = await client.request('daemon.queue.inspect');
    same([queue.depth, queue.priorityDistribution], [2, { '3': 1, '-1': 1 }]);
    const listed = await client.request('daemon.process.list');
    same(listed.map(one => [one.loopId, one.status]), [['a', 'running'], ['b', 'running'], ['high', 'queued'], ['low', 'queued']]);
    await until(async () => (await client.request('daemon.process.list', { filter: 'running' })).every(one => one.pid > 0), 'their processes');
    same((await ask('POST', '/api/cancel/low')).body, { cancelled: true, loopId: 'low' });
    same((await client.request('daemon.process.kill', { loopId: 'a', signal: 'SIGKILL' })).killed, true);
    await until(async () => (await ask('GET', '/api/loops')).body.running.some(one => one.loopId === 'high'), 'the next one to run');
    for (const loopId of ['b', 'high'])
        same((await ask('POST', `/api/cancel/${loopId}`)).body, { cancelled: true, loopId });
    await until(async () => (await ask('GET', '/api/loops')).body.running.length === 0, 'all of them to end');
    same((await ask('POST', '/api/cancel/b')).body, { cancelled: false, loopId: 'b' });
});
test('web: failures', async () => {
    same((await submit({ prompt: 'fail', loopId: 'bad' })).status, 201);
    await until(async () => (await client.request('daemon.process.list', { filter: 'failed' })).length === 1, 'it to be given up');
    const [end] = await client.request('daemon.loop.history');
    same([end.loopId, end.outcome, end.reason], ['bad', 'permanently-failed', 'restart intensity exceeded']);
    same((await submit({ prompt: 'x', loopId: 'bad' })).body, { error: 'Loop bad is permanently failed (restart intensity exceeded)' });
    same((await client.request('daemon.circuit.status')).consecutiveFailures, 2);
    same((await submit({ prompt: 'fail', loopId: 'bad2' })).status, 201);
    await until(async () => (await client.request('daemon.circuit.status')).state === 'open', 'the circuit to open');
    await until(async () => (await client.request('daemon.process.list', { filter: 'failed' })).length === 2, 'that one too');
    const { status, body } = await submit({ prompt: 'x' });
    check(status === 422 && /^Circuit breaker is open: 4 consecutive failures. Cooldown remaining: \d+s$/.test(body.error), JSON.stringify(body));
    check(daemon.log().includes('Circuit breaker tripped: 3 failures') && daemon.log().includes('Loop failed: bad (permanent: true)'), daemon.log());
});
test('web: what is no request', async () => {
    same((await submit({})).body, { error: 'Missing required field: prompt' });
    same((await submit({ prompt: '' })).status, 400);
    same((await ask('POST', '/api/submit', { headers: { 'Content-Type': 'application/json' } })).status, 400);
    same((await ask('POST', `/api/cancel/${'x'.repeat(500)}`)).body.cancelled, false);
});
test('web: pages of others are refused', async () => {
    for (const headers of [{ Origin: 'http://evil.example' }, { Host: 'evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
        for (const [verb, where] of [['POST', '/api/submit'], ['POST', '/api/cancel/x'], ...['/api/status', '/api/loops', '/api/history', '/api/resources', '/sse/events'].map(one => ['GET', one])]) {
            const { status } = await ask(verb, where, { ...verb === 'POST' && { body: { prompt: 'x' } }, headers });
            check(status >= 400 && status < 500, `${where} ${JSON.stringify(headers)}: ${status}`);
        }
    }
});
test('web: other users are refused', async () => {
    if (process.getuid() !== 0)
        return;
    const code = `require('http').get({ host: '127.0.0.1', port: ${port}, path: '/api/status', agent: false }, res => process.stdout.write(String(res.resume().statusCode)))`;
    const other = spawn(process.execPath, ['-e', code], { uid: 65534, gid: 65534, cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] });
    let said = '';
    other.stdout.setEncoding('utf8').on('data', text => { said += text; });
    await once(other, 'close');
    if (said) /* it may not be allowed to start the interpreter */
        same(said, '401');
    await daemon.stop();
});
test('web: with a token', async () => {
    port = await freePort();
    daemon = await new Daemon().start({ interface: { web: { enabled: true, port } } }, { AIWG_WEB_TOKEN: 'a-secret-of-ours' });
    const Authorization = 'Bearer a-secret-of-ours';
    same((await ask('GET', '/api/status')).status, 401);
    same((await ask('GET', '/api/status', { headers: { Authorization: 'Bearer another' } })).status, 401);
    same((await ask('GET', '/api/status', { headers: { Authorization } })).body.status, 'healthy');
    same((await ask('GET', '/api/status?token=a-secret-of-ours')).status, 200);
    await daemon.stop();
});

/* ---- events on a WebSocket ---- */

test('a WebSocket gets event.task*', async () => {
    daemon = await new Daemon().start();
    const token = fs.readFileSync(path.join(daemon.folder, '.aiwg/daemon/token'), 'utf8').trim();
    const { urls } = JSON.parse(fs.readFileSync(path.join(daemon.folder, '.aiwg/daemon/endpoint.json')));
    const url = urls.find(each => /^ws:.*\/aiwg$/.test(each));
    check(url, `there is one among ${urls}`);
    const ws = await webSocket(url, { headers: { Authorization: `Bearer ${token}` } });
    await ws.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'task.submit', params: { prompt: 'hello' } }));
    const methods = [];
    while (methods.at(-1) !== 'event.taskCompleted')
        methods.push(JSON.parse(await ws.receive()).method);
    same(methods.filter(Boolean), ['event.taskQueued', 'event.taskStarted', 'event.taskOutput', 'event.taskCompleted']);
    await ws.close();
});

await run();
