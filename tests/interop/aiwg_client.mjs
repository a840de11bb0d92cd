#!/usr/bin/env node
/* AIWG's own programs, unchanged, with "weft start --aiwg" in the place of its daemon: its IPC client, and its command line,
 * which reads the pid file, the log and the state file besides. The agent is a claude of ours that says what it was given.
 *
 * The original is not among the packages of tests/npm. Name the folder of its package (the one with tools/daemon in it) in
 * WEFT_TEST_AIWG, or install it as "aiwg" where those are; made for 2026.2.10. Without it a client of ours asks the same, and
 * what only its command line can try is skipped. */
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';
import { build, check, cleanup, output, patiently, run, same, scratch, skip, source, test } from './kit.mjs';

const weft = process.env.WEFT ?? path.join(build, 'weft');
const original = [process.env.WEFT_TEST_AIWG, path.join(source, 'build/tools/node_modules/aiwg')]
    .find(folder => folder && fs.existsSync(path.join(folder, 'tools/daemon/index.mjs')));
const tools = original && path.join(original, 'tools/daemon');

/* Lines of JSON, numbered requests, answers by their number: all that the original's client does. */
class OurClient extends EventEmitter {
    #waiting = new Map();
    #last = 0;
    async open(socketPath) {
        this.socket = net.connect(socketPath);
        await once(this.socket, 'connect');
        readline.createInterface({ input: this.socket }).on('line', line => this.#take(JSON.parse(line)));
        return this;
    }
    #take(message) {
        if (message.id === undefined) {
            this.emit('notification', message.method, message.params);
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
    disconnect() {
        this.socket.destroy();
    }
}
const { createClient } = original ? await import(pathToFileURL(path.join(tools, 'ipc-client.mjs')))
    : { createClient: socketPath => new OurClient().open(socketPath) };

/* A test of its command line. */
const cliTest = original ? test : name => skip(name, 'needs AIWG\'s own package; WEFT_TEST_AIWG names its folder');

/* ---- a project with an AIWG daemon ---- */

const project = scratch('project');
const SOCKET = path.join(project, '.aiwg/daemon/daemon.sock');
fs.mkdirSync(path.join(project, '.aiwg'), { recursive: true });
fs.mkdirSync(path.join(project, 'src'));
fs.mkdirSync(scratch('bin'));
fs.writeFileSync(scratch('bin/claude'), `#!/bin/sh
case $2 in
*fail*) echo "no $2" >&2; exit 3 ;;
*sleep*) echo begun; exec sleep 300 ;;
esac
printf '%s|' "$@"
`, { mode: 0o755 });
fs.writeFileSync(path.join(project, '.aiwg/daemon.json'), JSON.stringify({
    daemon: { heartbeat_interval_seconds: 30, max_parallel_actions: 2, action_timeout_minutes: 5, log: { level: 'info' } },
    watch: { enabled: true, paths: [{ path: 'src/', events: ['create', 'modify'], extensions: ['.ts'] },
        { path: '.aiwg/', events: ['create', 'modify', 'delete'], ignore: ['*.tmp', 'working/**', 'daemon/**'] }], debounce_ms: 500 },
    webhook: { enabled: false, port: 9471 },
    schedule: { enabled: true, jobs: [{ id: 'health-check', cron: '0 */6 * * *', action: 'doctor' }] },
    rules: [{ id: 'look', trigger: { type: 'file.create', source: 'watch' },
        action: { type: 'agent', prompt: 'look at {{payload.path}}', priority: 1 }, cooldownMs: 1 }],
}, null, 2), { mode: 0o600 });

const env = { ...process.env, PATH: `${scratch('bin')}:${process.env.PATH}` };
delete env.WEFT_STORE_KIND;
const within = (program, ...args) => output('/usr/bin/env', ['-C', project, program, ...args], { env });
/* "node tools/daemon/index.mjs ...", as "aiwg daemon ..." runs it. */
const aiwg = (...args) => within(process.execPath, path.join(tools, 'index.mjs'), ...args);

let pid;
async function start() {
    const { stdout, stderr, code } = await within(weft, 'start', '--aiwg', '--json');
    check(code === 0, `weft start: ${stdout}${stderr}`);
    ({ pid } = JSON.parse(stdout));
}
cleanup(() => within(weft, 'stop', '--aiwg', '--force', '--timeout', '5s'));

/* A client of the original's, with what it was told. */
const clients = [];
async function client() {
    const found = await createClient(SOCKET);
    found.told = [];
    found.on('notification', (method, params) => found.told.push({ method, params }));
    clients.push(found);
    return found;
}
cleanup(() => clients.forEach(each => each.disconnect()));

/* Ask until the answer is as it should be. */
async function until(ask, right, what) {
    let last;
    await patiently((async () => {
        do
            last = await ask();
        while (!right(last) && await new Promise(resolve => setTimeout(resolve, 20, true)));
    })(), what).catch(error => check(false, `${error.message}; the last was ${JSON.stringify(last)}`));
    return last;
}
const ended = (ipc, taskId) => until(() => ipc.request('task.get', { taskId }), task => task.completedAt, `the end of ${taskId}`);
const submitted = ({ stdout, stderr }) => {
    const found = /^Task submitted: (task-\d+)/.exec(stdout);
    check(found, stdout + stderr);
    return found[1];
};

async function refused(promise, code) {
    const error = await promise.then(value => check(false, `was answered: ${JSON.stringify(value)}`), each => each);
    same(error.code, code, error.message);
}

/* ---- the tests, in order ---- */

cliTest('its command line sees that none runs', async () => {
    same((await aiwg('status')).stdout, 'Daemon: stopped\n');
    same((await aiwg('task', 'list')).code, 1);
});

test('ours starts', start);

cliTest('it sees ours', async () => {
    const { stdout } = await aiwg('status');
    check(stdout.startsWith(`Daemon: running (PID: ${pid})\nStarted: `), stdout);
    for (const line of ['Health: healthy', '  Running: 0', '  Queued: 0', '  Max concurrent: 2', 'Automation: enabled (1 rules)',
        'File watcher: enabled (0 events)', 'Scheduler: enabled (1 jobs)'])
        check(stdout.includes(`${line}\n`), `${line}: ${stdout}`);
});

cliTest('it does not start its own beside it', async () => {
    const { stderr, code } = await aiwg('start');
    same(code, 1);
    same(stderr, `Daemon is already running (PID: ${pid})\n`);
});

test('its client: ping, status, stats', async () => {
    const ipc = await client();
    const { pong, timestamp } = await ipc.request('ping');
    same([pong, new Date(timestamp).toISOString()], [true, timestamp]);
    const status = await ipc.request('daemon.status');
    same([status.pid, status.health, status.subsystems.supervisor.maxConcurrency], [pid, 'healthy', 2]);
    same(await ipc.request('task.stats'), { total: 0, queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0 });
    same(await ipc.request('task.list'), []);
});

test('its client: a task from its beginning to its end', async () => {
    const ipc = await client();
    const { taskId, state } = await ipc.request('task.submit', { prompt: 'hello there', agent: 'reviewer', priority: 3 });
    check(/^task-\d{4}$/.test(taskId) && ['queued', 'running'].includes(state), `${taskId} ${state}`);
    const task = await ended(ipc, taskId);
    same([task.state, task.agent, task.priority, task.error, task.pid], ['completed', 'reviewer', 3, null, null]);
    same(task.result, '-p|hello there|--agent|reviewer|');
    await until(() => ipc.told.map(each => each.method), told => told.includes('event.taskCompleted'), 'being told');
    const told = ipc.told.filter(({ params }) => params.taskId === taskId).map(each => each.method);
    same(told.filter(each => each !== 'event.taskOutput'), ['event.taskQueued', 'event.taskStarted', 'event.taskCompleted']);
    check(told.includes('event.taskOutput'), 'no output was told');
});

test('its client: a task that fails', async () => {
    const ipc = await client();
    const { taskId } = await ipc.request('task.submit', { prompt: 'fail please' });
    const task = await ended(ipc, taskId);
    same([task.state, task.result], ['failed', null]);
    check(task.error.includes('no fail please'), task.error);
});

test('its client: refusals', async () => {
    const ipc = await client();
    await refused(ipc.request('task.get', { taskId: 'task-9999' }), -32000);
    await refused(ipc.request('task.cancel', { taskId: 'task-9999' }), -32000);
    await refused(ipc.request('task.cancel', { taskId: 'task-0000' }), -32001);
    await refused(ipc.request('task.submit', {}), -32602);
    await refused(ipc.request('no.such.method'), -32601);
});

cliTest('its command line: submit, list, get, stats', async () => {
    const ipc = await client();
    const id = submitted(await aiwg('task', 'submit', 'write', 'a', 'poem', '--priority', '2', '--agent', 'poet'));
    const task = await ended(ipc, id);
    /* Its own options stay in the prompt: it has always been like that. */
    same(task.result, '-p|write a poem --priority 2 --agent poet|--agent|poet|');
    const list = (await aiwg('task', 'list')).stdout.split('\n');
    check(list[0].startsWith('ID ') && list[2].startsWith(`${id}    completed    write a poem`), list.join('\n'));
    same(JSON.parse((await aiwg('task', 'get', id)).stdout), task);
    same(JSON.parse((await aiwg('task', 'stats')).stdout).completed, 2);
    const none = await aiwg('task', 'list', '--state', 'queued');
    same(none.stdout, 'No tasks found\n');
});

test('its client: a task that is cancelled leaves nothing behind', async () => {
    const ipc = await client();
    const { taskId: id } = await ipc.request('task.submit', { prompt: 'sleep' });
    await until(() => ipc.request('task.get', { taskId: id }), task => task.output.includes('begun'), 'its output');
    const { running } = (await ipc.request('daemon.status')).subsystems.supervisor.tasks;
    same(running.map(each => [each.id, each.prompt]), [[id, 'sleep']]);
    process.kill(running[0].pid, 0);
    same(await ipc.request('task.cancel', { taskId: id }), { cancelled: true });
    same((await ended(ipc, id)).state, 'cancelled');
    let alive = true;
    try {
        process.kill(running[0].pid, 0);
    } catch {
        alive = false;
    }
    check(!alive, 'its process is still there');
    await refused(ipc.request('task.cancel', { taskId: id }), -32001);
});

cliTest('its command line: cancel', async () => {
    const id = submitted(await aiwg('task', 'submit', 'sleep'));
    same((await aiwg('task', 'cancel', id)).stdout, `Task ${id} cancelled\n`);
    same((await aiwg('task', 'cancel', id)).code, 1);
});

test('its client: chat', async () => {
    const ipc = await client();
    const { taskId } = await ipc.request('chat.send', { message: 'hello again' });
    const task = await ended(ipc, taskId);
    same([task.prompt, task.priority, task.metadata.source, task.result], ['hello again', 5, 'ipc-chat', '-p|hello again|']);
});

cliTest('its command line: chat', async () => {
    const ipc = await client();
    const task = await ended(ipc, submitted(await aiwg('chat', 'how', 'are', 'you')));
    same([task.prompt, task.priority, task.metadata.source, task.result], ['how are you', 5, 'ipc-chat', '-p|how are you|']);
});

test('no more at a time than its configuration says', async () => {
    const ipc = await client();
    const ids = [];
    for (let i = 0; i < 3; i++)
        ids.push((await ipc.request('task.submit', { prompt: 'sleep' })).taskId);
    const all = () => Promise.all(ids.map(taskId => ipc.request('task.get', { taskId })));
    const tasks = await until(all, found => found.filter(each => each.output.includes('begun')).length === 2, 'two that run');
    same(tasks.map(each => each.state), ['running', 'running', 'queued']);
    for (const taskId of ids.reverse())
        same(await ipc.request('task.cancel', { taskId }), { cancelled: true });
});

test('its rules fire, for the files it would have told of', async () => {
    const ipc = await client();
    fs.writeFileSync(path.join(project, 'src/other.c'), 'x');
    fs.writeFileSync(path.join(project, 'src/new.ts'), 'x');
    const byRule = async () => (await ipc.request('task.list')).filter(each => each.prompt.startsWith('look at'));
    const [task] = await until(byRule, found => found.length, 'a task of the rule');
    same([task.prompt, task.priority], ['look at src/new.ts', 1]);
    same((await ended(ipc, task.id)).state, 'completed');
    same((await byRule()).length, 1, 'tasks of the rule');
    fs.mkdirSync(path.join(project, '.aiwg/working'), { recursive: true });
    fs.writeFileSync(path.join(project, '.aiwg/working/draft.md'), 'x');
    fs.writeFileSync(path.join(project, '.aiwg/plan.md'), 'x');
    await until(byRule, found => found.length > 1, 'a task for a file of AIWG\'s own');
    same((await byRule())[0].prompt, 'look at .aiwg/plan.md');
    const { rules, recentExecutions } = await ipc.request('automation.status');
    same([rules[0].id, recentExecutions[0].ruleId, recentExecutions[0].taskId], ['look', 'look', task.id]);
});

test('its rules can be switched', async () => {
    const ipc = await client();
    same((await ipc.request('automation.disable')).enabled, false);
    same((await ipc.request('daemon.status')).subsystems.automation.enabled, false);
    same((await ipc.request('automation.enable', { ruleId: 'look' })).success, true);
    same((await ipc.request('automation.enable')).enabled, true);
});

cliTest('its command line: logs', async () => {
    const { stdout } = await aiwg('logs', '--lines', '500');
    check(/IPC server listening/.test(stdout) && /Daemon started successfully/.test(stdout), stdout);
});

test('the log and the state files', () => {
    const read = name => fs.readFileSync(path.join(project, '.aiwg/daemon', name), 'utf8');
    check(/IPC server listening[^]*Daemon started successfully/.test(read('daemon.log')), read('daemon.log'));
    const state = JSON.parse(read('state.json')), heartbeat = JSON.parse(read('heartbeat'));
    same([state.pid, heartbeat.pid, state.ipc.socket], [pid, pid, '.aiwg/daemon/daemon.sock']);
    same(state.automation, { enabled: true, rule_count: 1 });
});

cliTest('what it reads when it cannot ask', async () => {
    /* The socket is made again at once, so that it asks after all; the file has the same to say. */
    fs.unlinkSync(SOCKET);
    const { stdout } = await aiwg('status');
    check(stdout.includes('Health: healthy\n'), stdout);
    await until(() => fs.existsSync(SOCKET), Boolean, 'the socket');
    const state = JSON.parse(fs.readFileSync(path.join(project, '.aiwg/daemon/state.json')));
    check(state.pid === pid && state.last_heartbeat && state.health.status === 'healthy', JSON.stringify(state));
});

cliTest('its command line stops ours', async () => {
    const { stdout } = await aiwg('stop');
    same(stdout, `Stopping daemon (PID: ${pid})...\nDaemon stopped gracefully\n`);
    same((await aiwg('status')).stdout, 'Daemon: stopped\n');
    await start();
});

test('tasks are there after a restart', async () => {
    const asker = await client();
    let before;
    do /* a rule may just have started one */
        before = await asker.request('task.list', { limit: 100 });
    while (before.some(({ state }) => state === 'running' || state === 'queued'));
    check(before.length > 5, JSON.stringify(before));
    same((await within(weft, 'stop', '--aiwg')).code, 0);
    await start();
    same(await (await client()).request('task.list', { limit: 100 }), before);
});

test('AIWG_IPC_DEBUG=1 logs every message', async () => {
    await within(weft, 'stop', '--aiwg');
    env.AIWG_IPC_DEBUG = '1';
    await start();
    await (await client()).request('ping', { token: 'geheim' });
    const log = fs.readFileSync(path.join(project, '.aiwg/daemon/daemon.log'), 'utf8');
    check(log.includes('"method":"ping"') && log.includes('"pong":true'), log.slice(-1000));
    check(!log.includes('geheim'), 'secrets are removed');
});

await run();
