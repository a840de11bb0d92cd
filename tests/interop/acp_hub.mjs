#!/usr/bin/env node
/* The whole way: a client of the hub, its engine, the ACP driver, and an agent that is not ours, written with the official SDK
 * (tests/agents/sdk_agent.mjs); and the same with the demo agent. */
import fs from 'node:fs';
import path from 'node:path';
import { Hub, about, follow } from './hub.mjs';
import { check, needed, run, same, source, test } from './kit.mjs';

needed('@agentclientprotocol/sdk');
const modules = path.join(source, 'build/tools/node_modules');

const hub = await new Hub({ config: { agents: {
    sdk: { driver: 'acp', command: [process.execPath, path.join(source, 'tests/agents/sdk_agent.mjs'), modules] },
    gone: { driver: 'acp', command: ['weft-test-no-such-program'] },
} } }).start();
const { call, event, ended, updates, session } = await follow(hub);
const submit = async params => (await call('task.submit', params)).taskId;

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
    const second = await submit({ prompt: 'hello', agent: 'sdk', sessionId: session(first) });
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
    const next = await submit({ prompt: 'quiet', sessionId: session(id) });
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
