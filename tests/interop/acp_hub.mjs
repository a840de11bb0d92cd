#!/usr/bin/env node
/* The whole way: a client of the hub, its engine, the ACP driver, and an agent that is not ours, written with the official SDK
 * (tests/agents/sdk_agent.mjs); and the same with the demo agent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { build, check, cleanup, lines, message, needed, patiently, run, same, scratch, source, test } from './kit.mjs';

needed('@agentclientprotocol/sdk');
const modules = path.join(source, 'build/tools/node_modules');
const weft = path.join(build, 'weft');

/* ---- a hub in a folder of its own ---- */

const folder = scratch('project');
fs.mkdirSync(path.join(scratch('config'), 'weft'), { recursive: true });
fs.mkdirSync(folder, { mode: 0o700 });
fs.writeFileSync(path.join(scratch('config'), 'weft/config.json'), JSON.stringify({ agents: {
    sdk: { driver: 'acp', command: [process.execPath, path.join(source, 'tests/agents/sdk_agent.mjs'), modules] },
    gone: { driver: 'acp', command: ['weft-test-no-such-program'] },
} }));
const env = { ...process.env, XDG_CONFIG_HOME: scratch('config'), XDG_STATE_HOME: scratch('state') };
const hub = spawn(weft, ['serve'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
let talk = '';
hub.stderr.setEncoding('utf8').on('data', text => { talk += text; });
hub.stdout.resume();
const exited = once(hub, 'exit');
cleanup(async () => {
    hub.kill('SIGTERM');
    await patiently(exited, 'the hub to stop');
    if (/Sanitizer|runtime error:/.test(talk))
        console.log(talk), process.exit(1);
});
while (!/^Try, /m.test(talk))
    await patiently(Promise.race([once(hub.stderr, 'data'), exited.then(() => { throw new Error(talk); })]), 'the hub to listen');

/* ---- a client that remembers every event ---- */

const pipe = await lines(`unix:${path.join(folder, '.weft/daemon.sock')}`);
const events = [], open = new Map(), watchers = new Set();
let lastId = 0;
(async () => {
    for (;;) {
        const one = JSON.parse(await pipe.inbox.take('a message').catch(() => '{"over":true}'));
        if (one.over)
            return;
        if (one.method === 'event')
            events.push(one.params);
        else if (open.has(one.id))
            open.get(one.id)(one);
        watchers.forEach(look => look());
    }
})();

async function call(method, params) {
    const id = ++lastId;
    const answer = new Promise(resolve => open.set(id, resolve));
    pipe.send(message(method, params, id));
    const { result, error } = await patiently(answer, `the answer to ${method}`);
    if (error)
        throw Object.assign(new Error(error.message), error);
    return result;
}

/* The first event that is so, whether it has come or will. */
function event(is, what) {
    return patiently(new Promise(resolve => {
        const look = () => {
            const found = events.find(is);
            if (found) {
                watchers.delete(look);
                resolve(found);
            }
        };
        watchers.add(look);
        look();
    }), what);
}

const about = (taskId, ...types) => one => types.includes(one.type) && one.data.taskId === taskId;
const ended = taskId => event(about(taskId, 'task.completed', 'task.failed', 'task.cancelled'), `${taskId} to end`);
const updates = taskId => events.filter(about(taskId, 'session.update')).map(one => one.data.update);

async function submit(params) {
    const { taskId } = await call('task.submit', params);
    return taskId;
}

await call('event.subscribe', { after: 0 });

/* ---- both agents ---- */

test('a turn of an agent that is not ours', async () => {
    const id = await submit({ prompt: 'hello', agent: 'sdk' });
    const end = await ended(id);
    same(end.type, 'task.completed');
    same(end.data.stopReason, 'end_turn');
    same(updates(id).map(one => one.sessionUpdate), ['agent_thought_chunk', 'agent_message_chunk']);
    const task = await call('task.get', { taskId: id });
    same([task.state, task.output], ['completed', 'hello, I remember 0']);
});

test('its question is answered by a person', async () => {
    const id = await submit({ prompt: 'permission', agent: 'sdk' });
    const asked = await event(about(id, 'question.asked'), 'the question');
    same([asked.data.kind, asked.data.title], ['permission', 'Run it']);
    same(asked.data.options.map(one => one.id), ['go', 'stop']);
    await call('question.answer', { questionId: asked.data.questionId, option: 'stop' });
    same((await ended(id)).type, 'task.completed');
    same((await call('task.get', { taskId: id })).output, '{"outcome":"selected","optionId":"stop"}');
});

test('it is cancelled in its own words', async () => {
    const id = await submit({ prompt: 'wait', agent: 'sdk' });
    await event(one => about(id, 'session.update')(one) && one.data.update.content?.text === 'waiting', 'the turn');
    same(await call('task.cancel', { taskId: id }), { cancelled: true });
    same((await ended(id)).type, 'task.cancelled');
    check(updates(id).some(one => one.content?.text === 'stopping'), 'the agent ended its turn itself');
});

test('it is not logged in, or not there at all', async () => {
    const auth = await ended(await submit({ prompt: 'auth', agent: 'sdk' }));
    same([auth.type, auth.data.reason], ['task.failed', 'authRequired']);
    check(/log in/.test(auth.data.error), auth.data.error);
    const gone = await ended(await submit({ prompt: 'hello', agent: 'gone' }));
    same([gone.type, gone.data.reason], ['task.failed', 'spawnFailed']);
});

test('a conversation goes on in the next process', async () => {
    const first = await submit({ prompt: 'hello', agent: 'sdk' });
    await ended(first);
    const { sessionId } = events.find(about(first, 'task.queued')).data;
    const second = await submit({ prompt: 'hello', agent: 'sdk', sessionId });
    same((await ended(second)).type, 'task.completed');
    same((await call('task.get', { taskId: second })).output, 'hello, I remember 1');
    same(updates(second).map(one => one.sessionUpdate), ['agent_thought_chunk', 'agent_message_chunk']);
});

test('the demo agent is the default, edits when it is allowed to, and remembers', async () => {
    const id = await submit({ prompt: 'write something' });
    const asked = await event(about(id, 'question.asked'), 'the question');
    const { path: file, newText } = asked.data.detail.content[0];
    check(!fs.existsSync(file), 'not yet');
    await call('question.answer', { questionId: asked.data.questionId, option: 'allow' });
    same((await ended(id)).type, 'task.completed');
    same(fs.readFileSync(file, 'utf8'), newText);
    const { sessionId } = events.find(about(id, 'task.queued')).data;
    const next = await submit({ prompt: 'quiet', sessionId });
    await ended(next);
    const { output } = await call('task.get', { taskId: next });
    check(output.includes('turn 2 of our conversation'), output);
});

test('ten at once, each with its own answer', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, (_, i) => submit({ prompt: `echo number ${i}` })));
    for (const [i, id] of ids.entries()) {
        same((await ended(id)).type, 'task.completed');
        same((await call('task.get', { taskId: id })).output, `number ${i}`);
    }
});

await run();
