#!/usr/bin/env node
/* A conversation that was recorded with AIWG's own daemon, held again with ours, line by line. What we answer otherwise is in
 * the table below, each with the rule of the wire contract that says so; everything else must be the same. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { check, cleanup, headers, lines, message, optional, patiently, run, same, scratch, skip, source, test } from './kit.mjs';

const recording = path.resolve(source, '../shared/data/aiwg/aiwg-2026.2.10-wire-transcript.txt');
if (!fs.existsSync(recording)) {
    skip('aiwg_recorded', `${path.relative(source, recording)} is not there`);
    await run();
}

/* ---- the daemon, and an agent that does what the recorded one did ---- */

const CLAUDE = `#!/bin/sh
# claude -p PROMPT [--agent NAME]
prompt=$2
[ "\${3-}" = --agent ] && agent=$4
case $prompt in
"fail now") echo boom >&2; exit 1 ;;
sleep*) while [ ! -e "$RELEASE/\${prompt#sleep }" ]; do sleep 0.02; done ;;
*) echo "echo:$prompt agent=\${agent-}" ;;
esac
`;
const CONFIG = {
    daemon: { max_parallel_actions: 2 },
    watch: { enabled: false },
    schedule: { enabled: true, jobs: [{ id: 'j1', cron: '0 0 1 1 *', action: 'doctor' }] },
    automation: {
        enabled: true,
        rules: [{ id: 'r1', trigger: { type: 'file.modify' }, action: { type: 'agent', prompt: 'check {{payload.path}}' }, cooldownMs: 0 }],
    },
};
const project = scratch('project');
const bin = scratch('bin');
const release = scratch('release');
const socket = path.join(project, '.aiwg/daemon/daemon.sock');

async function startDaemon() {
    for (const folder of [path.join(project, '.aiwg'), bin, release])
        fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(project, '.aiwg/daemon.json'), JSON.stringify(CONFIG));
    fs.writeFileSync(path.join(bin, 'claude'), CLAUDE, { mode: 0o755 });
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, RELEASE: release };
    const daemon = spawn(process.env.WEFT ?? 'build/weft', ['serve', '--aiwg'], { cwd: project, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let talk = '';
    daemon.stderr.setEncoding('utf8').on('data', text => { talk += text; });
    const exited = once(daemon, 'exit');
    cleanup(async () => {
        if (daemon.exitCode === null)
            daemon.kill('SIGTERM');
        await patiently(exited, 'the daemon to end').catch(() => daemon.kill('SIGKILL'));
        check(!/Sanitizer|runtime error:/.test(talk), talk);
    });
    const until = Date.now() + 20000;
    for (;;) {
        const pipe = await lines(`unix:${socket}`).catch(() => undefined);
        if (pipe)
            return { pipe, daemon, exited };
        check(daemon.exitCode === null && Date.now() < until, `the daemon does not answer: ${talk}`);
        await new Promise(resolve => setTimeout(resolve, 20));
    }
}

/* ---- what was recorded ---- */

const exchanges = [];
for (const line of fs.readFileSync(recording, 'utf8').split('\n')) {
    if (line.startsWith('>>> '))
        exchanges.push({ said: line.slice(4) });
    else if (line.startsWith('<<< '))
        exchanges.at(-1).answer = line.slice(4);
}

/* ---- what differs ---- */

const S0 = 'everywhere: ';
const S1 = 'aiwg: ';
const error = (id, code) => ({ jsonrpc: '2.0', id, error: { code } });
const result = (id, value) => ({ jsonrpc: '2.0', id, result: value });
const pong = { pong: true, timestamp: '<time>' };

/* By what was said: what we answer instead (undefined: nothing), and why. */
const DIFFERENCES = new Map(Object.entries({
    '{"jsonrpc":"2.0","method":"ping","id":null}': [result(null, pong), `${S0}"id":null is a request and is answered`],
    '{"jsonrpc":"2.0","method":"ping","id":{"a":1}}': [error(null, -32600), `${S0}objects, arrays, booleans as id: -32600`],
    '{"jsonrpc":"2.0","method":"ping","id":[1]}': [error(null, -32600), `${S0}objects, arrays, booleans as id: -32600`],
    '{"jsonrpc":"2.0","method":"ping","id":true}': [error(null, -32600), `${S0}objects, arrays, booleans as id: -32600`],
    '{"jsonrpc":"2.0","method":"nope"}': [undefined, `${S0}a notification is never answered, not even with an error`],
    '{"jsonrpc":"2.0","method":"daemon.stop","id":8}': [result(8, { stopping: true }), `${S1}daemon.stop works`],
    '{"jsonrpc":"2.0","method":"ping","params":"str","id":9}': [error(9, -32600), `${S0}params neither object nor array: -32600`],
    '[{"jsonrpc":"2.0","method":"ping","id":1},{"jsonrpc":"2.0","method":"ping","id":2}]': [[result(1, pong), result(2, pong)], `${S0}batch on all transports`],
    '{"jsonrpc":"2.0","method":"task.submit","params":{"prompt":123},"id":10}': [error(10, -32602), `${S1}a non-string prompt is -32602 and nothing is stored`],
    '{"jsonrpc":"2.0","method":"task.get","params":{"taskId":"nope"},"id":13}': [error(13, -32000), `${S1}task.get of an unknown task: -32000`],
    '{"jsonrpc":"2.0","method":"task.cancel","params":{"taskId":"nope"},"id":14}': [error(14, -32000), `${S1}task.cancel of an unknown task: -32000`],
    '{"jsonrpc":"2.0","method":"automation.disable","id":19}': [result(19, { enabled: false, success: true }), `${S1}both spellings of the answer`],
    '{"jsonrpc":"2.0","method":"automation.disable","params":{"ruleId":"r1"},"id":19}': [result(19, { enabled: false, success: true }), `${S1}both spellings of the answer`],
    '{"jsonrpc":"2.0","method":"automation.enable","params":{"ruleId":"zz"},"id":19}': [result(19, { enabled: false, success: false }), `${S1}both spellings of the answer`],
    '{"jsonrpc":"2.0","method":"automation.enable","params":{},"id":19}': [result(19, { enabled: true, success: true }), `${S1}both spellings of the answer`],
}));

/* In every answer, wherever they are. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const ALWAYS = [
    /* Errors carry data.reason, which is the stable part; the text of the message is for people. */
    (key, value) => (key === 'error' && value && typeof value === 'object' ? { code: value.code } : value),
    (key, value) => (typeof value === 'string' && TIME.test(value) ? '<time>' : value),
    (key, value) => (key === 'pid' && Number.isInteger(value) ? '<pid>' : value),
    (key, value) => (key === 'uptime_seconds' ? '<seconds>' : value),
    /* Members of ours are in daemon.status's "weft". */
    (key, value) => (key === 'weft' ? undefined : value),
];
const normal = text => JSON.parse(text, (key, value) => ALWAYS.reduce((is, rule) => rule(key, is), value));

/* A prompt that is no string is not stored, so the numbers of later tasks are lower than in the recording. */
const theirs = new Map(), ours = new Map();
const rename = (text, names) => text.replace(/task-\d{4}/g, id => names.get(id) ?? id);
function learn(recorded, answered) {
    const [a, b] = [recorded, answered].map(text => /"taskId":"(task-\d{4})"/.exec(text)?.[1]);
    if (a && b) {
        theirs.set(a, b);
        ours.set(b, a);
    }
}

/* ---- one conversation ---- */

const { pipe, exited } = await startDaemon();
const notifications = [];
let nextId = 0;

/* The next answer; notifications are kept: they come to every aiwg connection, the recorded daemon had none. */
async function answer() {
    for (;;) {
        const text = await pipe.receive();
        if (!/^\{"jsonrpc":"2\.0","method":/.test(text))
            return text;
        notifications.push(JSON.parse(text));
    }
}

async function call(method, params) {
    const id = `own-${nextId++}`;
    pipe.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    const message = JSON.parse(await answer());
    same(message.id, id, 'the id of the answer');
    return message;
}

async function until(id, state) {
    await patiently((async () => {
        while ((await call('task.get', { taskId: theirs.get(id) })).result?.state !== state)
            await new Promise(resolve => setTimeout(resolve, 20));
    })(), `${id} to be ${state}`);
}

const free = seconds => fs.writeFileSync(path.join(release, String(seconds)), '');

/* The recording was made with pauses of 0.4 s; we wait for what had happened by then instead. */
const BEFORE = new Map(Object.entries({
    '{"jsonrpc":"2.0","method":"task.list","params":{},"id":11}': () => until('task-0000', 'completed'),
    '{"jsonrpc":"2.0","method":"task.get","params":{"taskId":"task-0002"},"id":13}': () => until('task-0002', 'failed'),
    '{"jsonrpc":"2.0","method":"daemon.status","id":16}': async () => {
        await patiently((async () => {
            for (;;) {
                const { running } = (await call('daemon.status')).result.subsystems.supervisor.tasks;
                if (running.length === 2 && running.every(task => task.pid))
                    return;
            }
        })(), 'two processes');
    },
    '{"jsonrpc":"2.0","method":"task.list","params":{"state":"running","limit":1},"id":21}': async () => {
        free(3);
        await until('task-0005', 'running');
        await patiently((async () => {
            while (!(await call('task.get', { taskId: theirs.get('task-0005') })).result.pid)
                await new Promise(resolve => setTimeout(resolve, 20));
        })(), 'a process');
    },
    '{"jsonrpc":"2.0","method":"task.list","params":{"limit":0},"id":21}': async () => {
        free(4);
        await until('task-0006', 'completed');
        await until('task-0004', 'completed');
    },
}));

/* The task whose prompt was 123 is in their lists and counts, not in ours. */
const stored = list => list.filter(task => typeof task.prompt === 'string');
const SPECIAL = new Map(Object.entries({
    '{"jsonrpc":"2.0","method":"task.list","params":{},"id":11}': (recorded, is) => {
        recorded.result = stored(recorded.result);
        same(is, recorded);
    },
    '{"jsonrpc":"2.0","method":"task.stats","id":17}': (recorded, is) => {
        recorded.result.total--;
        recorded.result.completed--;
        same(is, recorded);
    },
}));

/* What we answer is what rpc.discover says we answer. */
const Ajv = optional('ajv/dist/2020')?.default;
const schemas = new Map();
async function discover() {
    const { result: { methods } } = await call('rpc.discover');
    const ajv = Ajv && new Ajv({ strict: false, validateFormats: false });
    for (const { name, result: { schema } } of methods)
        schemas.set(name, ajv?.compile(schema) ?? (() => true));
}
async function checkResult(said, text) {
    const { method } = JSON.parse(said);
    const { result: value } = JSON.parse(text);
    if (!schemas.size)
        await discover();
    const valid = value === undefined ? undefined : schemas.get(method);
    check(!valid || valid(value), `${method} is not as described: ${JSON.stringify(valid?.errors)} in ${text}`);
}

const used = new Set();
for (const [index, { said, answer: recorded }] of exchanges.entries()) {
    const name = `${index}: ${said.slice(0, 100)}`;
    if (said.includes('"daemon.stop"'))
        continue; /* at the end */
    test(name, async () => {
        await BEFORE.get(said)?.();
        pipe.send(rename(said, theirs));
        const [different] = DIFFERENCES.get(said) ?? [];
        const differs = DIFFERENCES.has(said);
        if (differs)
            used.add(said);
        const expected = differs ? different : recorded === '(nothing)' ? undefined : 'an answer';
        if (expected === undefined) {
            /* What was said after it is answered next. */
            same((await call('ping')).result.pong, true);
            return;
        }
        const text = await answer();
        learn(recorded, text);
        if (said.startsWith('{"jsonrpc":"2.0","method":"'))
            await checkResult(said, text);
        const is = normal(rename(text, ours));
        if (differs)
            same(Array.isArray(is) ? is.sort((a, b) => a.id - b.id) : is, different);
        else if (!recorded.endsWith('}')) {
            /* The recording was cut here: as many tasks as it has whole. */
            const cut = recorded.slice(recorded.indexOf('['), recorded.lastIndexOf('},{"id"') + 1);
            const whole = normal(`${cut}]`);
            same(is.result.slice(0, whole.length), whole);
        } else if (SPECIAL.has(said))
            SPECIAL.get(said)(normal(recorded), is);
        else
            same(is, normal(recorded));
    });
}

test('every difference in the table is one', async () => {
    const stop = '{"jsonrpc":"2.0","method":"daemon.stop","id":8}';
    same([...DIFFERENCES.keys()].filter(said => said !== stop && !used.has(said)), []);
});

/* ---- what the recorded daemon could not do ---- */

test('a line containing null is refused, and the next is answered', async () => {
    pipe.send('null');
    same(normal(await answer()), error(null, -32600));
    same((await call('ping')).result.pong, true);
});

test('a character that is split over two writes arrives whole', async () => {
    const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id: 'split', method: 'chat.send', params: { message: 'ä€😀' } })}\n`);
    const other = await lines(`unix:${socket}`);
    for (let at = 0; at < bytes.length; at++) {
        await pipe.raw(bytes.subarray(at, at + 1));
        if (!(bytes[at] & 0x80))
            continue;
        other.send(message('ping', {}, at)); /* who answers another connection has read this byte */
        while (JSON.parse(await other.receive()).id !== at);
    }
    other.close();
    const { id, result: { taskId } } = JSON.parse(await answer());
    same(id, 'split');
    same((await call('task.get', { taskId })).result.prompt, 'ä€😀');
});

test('Content-Length is answered in kind', async () => {
    const other = await headers(`unix:${socket}`);
    other.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'task.stats' }));
    same(JSON.parse(await other.receive()).result.failed, 1);
    other.close();
});

test('a batch', async () => {
    pipe.send('[{"jsonrpc":"2.0","id":1,"method":"task.stats"},{"jsonrpc":"2.0","method":"ping"},1,{"jsonrpc":"2.0","id":2,"method":"nope"}]');
    const items = normal(await answer()).sort((a, b) => (a.id ?? 0) - (b.id ?? 0));
    same(items.map(item => [item.id, item.error?.code]), [[null, -32600], [1, undefined], [2, -32601]]);
});

test('what happened was told, in order', async () => {
    const about = notifications.filter(({ params }) => params.taskId === 'task-0000');
    same(about.map(({ method }) => method), ['event.taskQueued', 'event.taskStarted', 'event.taskOutput', 'event.taskCompleted']);
    const [queued, started, output, completed] = about.map(({ params }) => params);
    same(queued, { taskId: 'task-0000', prompt: 'hello', agent: 'rev', priority: 5, state: 'queued' });
    check(TIME.test(started.startedAt) && started.agent === 'rev', JSON.stringify(started));
    same(output, { taskId: 'task-0000', stream: 'stdout', output: 'echo:hello agent=rev\n' });
    same(completed.result, 'echo:hello agent=rev\n');
    const failed = notifications.find(({ method }) => method === 'event.taskFailed');
    same(failed?.params,
        { taskId: theirs.get('task-0002'), error: 'boom\n', reason: 'exited' });
});

test('a running task is cancelled with all its processes, once', async () => {
    const taskId = theirs.get('task-0005');
    same((await call('task.cancel', { taskId })).result, { cancelled: true });
    same((await call('task.cancel', { taskId })).error.code, -32001);
    const { result: task } = await call('task.get', { taskId });
    same([task.state, task.pid], ['cancelled', null]);
});

test('daemon.stop', async () => {
    pipe.send('{"jsonrpc":"2.0","method":"daemon.stop","id":8}');
    same(normal(await answer()), result(8, { stopping: true }));
    const [code] = await patiently(exited, 'the daemon to end');
    same(code, 0);
    check(!fs.existsSync(socket), 'the socket is still there');
});

await run();
