#!/usr/bin/env node
/* Terminals, the whole way: an agent written with the official SDK asks the hub for terminals; people cancel, come later, and
 * look from an editor. Every message that the hub sends to the agent, and to the editor, is checked with ACP's schema.
 *
 * With "agent FILE" this is the agent: what a prompt says is what it does, and FILE gets what it hears, a line each. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Hub, about, follow, weft } from './hub.mjs';
import { check, needed, patiently, run, same, scratch, test } from './kit.mjs';

const acp = needed('@agentclientprotocol/sdk');
const { agent: here, client: there } = acp.methods;

/* ---- the agent ---- */

if (process.argv[2] === 'agent') {
    const record = fs.openSync(process.argv[3], 'a');
    const heard = new TransformStream({ transform(piece, next) { fs.writeSync(record, piece); next.enqueue(piece); } });
    const cancelled = new Map();
    const say = (client, sessionId, words) => client.notify(there.session.update,
        { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: words } } });
    const show = (client, sessionId, sessionUpdate, more) => client.notify(there.session.update,
        { sessionId, update: { sessionUpdate, toolCallId: 'call', ...more } });
    const terminal = terminalId => [{ type: 'terminal', terminalId }];
    const create = (client, sessionId, command, more) => client.request(there.terminal.create, { sessionId, command, ...more });
    const known = { sessionId: undefined, terminalId: undefined };

    const turns = {
        /* As an agent should: shown while it runs, released, and done. */
        async run(client, sessionId, words) {
            const { terminalId } = await create(client, sessionId, words, { outputByteLimit: 1000 });
            const about = { sessionId, terminalId };
            await show(client, sessionId, 'tool_call', { title: words, kind: 'execute', status: 'in_progress', content: terminal(terminalId) });
            const exit = await client.request(there.terminal.waitForExit, about);
            const output = await client.request(there.terminal.output, about);
            same(output.exitStatus, exit);
            await client.request(there.terminal.release, about);
            await show(client, sessionId, 'tool_call_update', { status: exit.exitCode === 0 ? 'completed' : 'failed', content: terminal(terminalId) });
            await say(client, sessionId, JSON.stringify([output.output, output.truncated, exit.exitCode ?? null, exit.signal ?? null]));
        },
        async kill(client, sessionId, words) {
            const { terminalId } = await create(client, sessionId, words), about = { sessionId, terminalId };
            await show(client, sessionId, 'tool_call', { title: words, content: terminal(terminalId) });
            const waits = client.request(there.terminal.waitForExit, about);
            while (!(await client.request(there.terminal.output, about)).output.includes('ready'))
                await new Promise(resolve => setImmediate(resolve));
            await client.request(there.terminal.kill, about);
            const exit = await waits;
            await say(client, sessionId, `${exit.exitCode ?? null} ${exit.signal ?? null}`);
        },
        /* Waits for what never ends; the hub cancels. */
        async wait(client, sessionId, words) {
            const { terminalId } = await create(client, sessionId, words);
            await show(client, sessionId, 'tool_call', { title: words, content: terminal(terminalId) });
            const exit = await client.request(there.terminal.waitForExit, { sessionId, terminalId });
            const later = await create(client, sessionId, 'echo more').catch(error => error.message);
            await say(client, sessionId, `${exit.signal} ${later}`);
            return { stopReason: 'cancelled' };
        },
        /* Begun and never released. */
        async leave(client, sessionId, words) {
            const { terminalId } = await create(client, sessionId, words);
            Object.assign(known, { sessionId, terminalId });
            await show(client, sessionId, 'tool_call', { title: words, content: terminal(terminalId) });
            while (!(await client.request(there.terminal.output, { sessionId, terminalId })).output.includes('ready'))
                await new Promise(resolve => setImmediate(resolve));
        },
        /* In another session, or in another turn of the same. */
        async steal(client, sessionId, words) {
            const target = words === 'theirs' ? known.sessionId : sessionId;
            const why = await client.request(there.terminal.output, { sessionId: target, terminalId: known.terminalId }).catch(error => error);
            await say(client, sessionId, `${why.code} ${why.message}`);
        },
        async refused(client, sessionId, words) {
            const why = await create(client, sessionId, words, { cwd: '/' }).catch(error => error);
            await say(client, sessionId, `${why.code} ${why.message}`);
        },
        async plain(client, sessionId, words) {
            const why = await create(client, sessionId, words).catch(error => error);
            await say(client, sessionId, `${why.code} ${why.message}`);
        },
    };

    let sessions = 0;
    const modes = process.argv[4] && { currentModeId: process.argv[4], availableModes: [{ id: process.argv[4], name: 'Mode' }] };
    const app = acp.agent({ name: 'terminals' })
        .onRequest(here.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
        .onRequest(here.session.new, () => ({ sessionId: `s${++sessions}`, modes }))
        .onRequest(here.session.prompt, async ({ params, client }) => {
            const [what, ...words] = params.prompt[0].text.split(' ');
            return await turns[what](client, params.sessionId, words.join(' ')) ?? { stopReason: 'end_turn' };
        })
        .onNotification(here.session.cancel, ({ params }) => cancelled.set(params.sessionId, true));
    const connection = app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin).pipeThrough(heard)));
    await connection.closed;
    process.exit(0);
}

/* ---- the hub ---- */

const { conforms, refusesEmpty } = await import('./acp_schema.mjs');
const record = scratch('heard'), mark = `terminal-${process.pid}`;
const command = [process.execPath, fileURLToPath(import.meta.url), 'agent', record];
const agents = {
    it: { driver: 'acp', command, max_turns: 4, idle_ms: 60000, env: { WEFT_MARK: mark } },
    reader: { driver: 'acp', command, permission: 'deny' },
    planner: { driver: 'acp', command: [...command, 'plan'] },
};
const hub = await new Hub({ config: { agents, default_agent: 'it' } }).start();
const { folder, env } = hub;
const { call, event, ended, output, updates, session } = await follow(hub);
const submit = async (prompt, more) => (await call('task.submit', { prompt, ...more })).taskId;

/* Run it to its end; what it said. */
async function turn(prompt, more) {
    const id = await submit(prompt, more);
    const end = await ended(id);
    same(end.type, 'task.completed', JSON.stringify(end.data));
    return { id, said: await output(id) };
}

/* Programs with this in their environment. */
const marked = text => fs.readdirSync('/proc').filter(pid => /^\d+$/.test(pid)).filter(pid => {
    try {
        return fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(text);
    } catch {
        return false;
    }
});
const texts = update => (update.content ?? []).filter(one => one.type === 'content').map(one => one.content.text);

/* ---- the tests ---- */

test('a command in a terminal, from its beginning to its release', async () => {
    execFileSync('mkfifo', [path.join(folder, 'go')]);
    const id = await submit('run read line <go; test -t 1 && echo here: $PWD $WEFT_MARK; exit 3');
    await event(one => about(id, 'session.update')(one) && one.data.update.sessionUpdate === 'tool_call', 'the terminal');
    fs.writeFileSync(path.join(folder, 'go'), '\n'); /* it is shown before it ends */
    same((await ended(id)).type, 'task.completed');
    same(JSON.parse((await call('task.get', { taskId: id })).output), [`here: ${folder} ${mark}\n`, false, 3, null]);
    const calls = updates(id).filter(one => one.toolCallId === 'call');
    same(calls.map(one => one.sessionUpdate), ['tool_call', 'tool_call_update', 'tool_call_update']);
    const shown = `\`\`\`\nhere: ${folder} ${mark}\n\`\`\`\nexit code 3`;
    same(texts(calls[0]), []);
    same(texts(calls[1]), [shown], 'what the hub adds when it has ended');
    same([calls[2].status, texts(calls[2])], ['failed', [shown]], 'what the agent says afterwards');
    calls.forEach(one => conforms({ sessionId: 's', update: one }, 'SessionNotification'));
});

test('output over the limit is cut from the front', async () => {
    const { said } = await turn('run for i in $(seq 1000 1999); do printf "%d\u00e9\\n" $i; done');
    const [output, truncated, code] = JSON.parse(said);
    same([truncated, code], [true, 0]);
    check(output.endsWith('1999\u00e9\n') && Buffer.byteLength(output) <= 1000 && Buffer.byteLength(output) > 990, output);
});

test('it is killed, and its end is told', async () => {
    const { id, said } = await turn('kill echo ready; exec sleep 1000');
    same(said, 'null SIGTERM');
    const last = updates(id).filter(one => one.toolCallId === 'call').at(-1);
    same(texts(last), ['```\nready\n```\nended by SIGTERM']);
});

test('a wait is answered when the turn is cancelled, and nothing is left', async () => {
    const id = await submit(`wait trap "" TERM HUP; (setsid sleep 1000 &); while :; do sleep 1000; done`);
    await event(one => about(id, 'session.update')(one) && one.data.update.sessionUpdate === 'tool_call', 'the terminal');
    same(await call('task.cancel', { taskId: id }), { cancelled: true });
    same((await ended(id)).type, 'task.cancelled');
    const said = updates(id).filter(one => one.content?.text).map(one => one.content.text);
    check(said.length === 1 && /^SIG(KILL|TERM) The turn is being ended$/.test(said[0]), said.join()); /* it may not be deaf yet */
    const all = marked(mark);
    check(all.length <= 1, `the agent alone is left: ${all}`);
});

test('what was not released ends with the turn, and nobody else reaches it', async () => {
    const first = await turn('leave echo ready; (setsid sleep 1000 &) ; while :; do sleep 1000; done');
    const last = updates(first.id).filter(one => one.toolCallId === 'call').at(-1);
    same(texts(last), ['```\nready\n```\nended when it was released']);
    await patiently((async () => {
        while (marked(mark).length > 1)
            await new Promise(resolve => setTimeout(resolve, 5));
    })(), 'everything to go');
    same((await turn('steal mine', { sessionId: session(first.id) })).said, '-32002 There is no such terminal in this turn');
    /* Two sessions in one process, at the same time. */
    const holder = await submit('wait sleep 1000');
    await event(one => about(holder, 'session.update')(one) && one.data.update.sessionUpdate === 'tool_call', 'the terminal');
    same((await turn('steal mine')).said, '-32002 There is no such terminal in this turn');
    await call('task.cancel', { taskId: holder });
});

test('what cannot be is said in words', async () => {
    same((await turn('refused ls')).said, '-32602 "cwd" must be in the folder of the session');
    same((await turn('plain there-is-no-such-program')).said, '-32603 The program cannot be started: No such file or directory');
    same((await turn('plain ls', { agent: 'reader' })).said, '-32603 This agent may only read ("permission": "deny"): it gets no terminal');
    same((await turn('plain ls', { agent: 'planner' })).said, '-32603 The session is in a mode that changes nothing: there is no terminal in it');
});

test('who comes later sees what was printed: an editor by session/load', async () => {
    const { id } = await turn('run echo seen later');
    const child = spawn(weft, ['acp'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
    const told = [];
    const editor = acp.client({ name: 'editor' })
        .onNotification(there.session.update, ({ params }) => { told.push(params); })
        .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
    await editor.agent.request(here.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    await editor.agent.request(here.session.load, { sessionId: session(id), cwd: folder, mcpServers: [] });
    told.forEach(one => conforms(one, 'SessionNotification'));
    const last = told.map(one => one.update).filter(one => one.toolCallId === 'call').at(-1);
    same(texts(last), ['```\nseen later\n```']);
    check(!JSON.stringify(told).includes('"terminal"'), 'an editor is not told of a terminal that it did not make');
    child.stdin.end();
    await once(child, 'exit');
});

test('people watch a terminal and type into it; agents do not type', async () => {
    same((await call('terminal.list', {})).terminals, []);
    const id = await submit(`run stty -echo; echo ready; read line; echo "got $line"; "${weft}" call terminal.write terminalId=x text=x 2>&1; trap 'echo stopped; exit 9' INT; echo again; while :; do read line; done`);
    await event(one => about(id, 'session.update')(one) && one.data.update.sessionUpdate === 'tool_call', 'the terminal');
    const [one, ...more] = (await call('terminal.list', { sessionId: session(id) })).terminals;
    same([more, one.taskId, one.sessionId, one.running, one.cols, one.rows], [[], id, session(id), true, 120, 40]);
    check(one.command.startsWith('stty -echo; echo ready'), one.command);
    same((await call('terminal.list', { sessionId: 'session-nobody' })).terminals, []);
    const shows = async text => patiently((async () => {
        for (;;) {
            const { terminal, output } = await call('terminal.get', { terminalId: one.id });
            if (output.includes(text))
                return output;
            check(terminal.running, `it has ended: ${output}`);
        }
    })(), text);
    await shows('ready');
    same(await call('terminal.resize', { terminalId: one.id, cols: 90, rows: 30 }), { resized: true });
    same((await call('terminal.list', {})).terminals[0].cols, 90);
    same(await call('terminal.write', { terminalId: one.id, text: 'h\u00e9llo\n' }), { written: true });
    const output = await shows('again');
    check(output.includes('got h\u00e9llo\n') && output.includes('agentMayNot'), output);
    same((await call('terminal.get', { terminalId: one.id, bytes: 3 })).truncated, true);
    same(await call('terminal.write', { terminalId: one.id, text: '\u0003' }), { written: true });
    same((await ended(id)).type, 'task.completed');
    check((await call('task.get', { taskId: id })).output.includes(',9,null]'), 'it was interrupted');
    same((await call('terminal.get', { terminalId: one.id }).catch(error => error)).data.reason, 'terminalNotFound');
});

test('all that the agent heard is as the schema has it', async () => {
    const heard = fs.readFileSync(record, 'utf8').trim().split('\n').map(line => JSON.parse(line));
    const first = heard.find(one => one.method === 'initialize');
    conforms(first.params, 'InitializeRequest');
    same(first.params.clientCapabilities.terminal, true);
    heard.filter(one => one.method === 'session/prompt').forEach(one => conforms(one.params, 'PromptRequest'));
    const results = heard.filter(one => one.result !== undefined).map(one => one.result);
    const outputs = results.filter(one => 'output' in one), created = results.filter(one => 'terminalId' in one);
    const exits = results.filter(one => 'exitCode' in one);
    outputs.forEach(one => conforms(one, 'TerminalOutputResponse'));
    created.forEach(one => conforms(one, 'CreateTerminalResponse'));
    exits.forEach(one => conforms(one, 'WaitForTerminalExitResponse'));
    check(outputs.length > 2 && created.length > 4 && exits.length > 4, `${outputs.length} ${created.length} ${exits.length}`);
    check(refusesEmpty('TerminalOutputResponse') && refusesEmpty('CreateTerminalResponse'), 'the schema can refuse');
    same(new Set(created.map(one => one.terminalId)).size, created.length, 'no id is given twice');
    heard.filter(one => one.error).forEach(one => conforms(one.error, 'Error'));
});

await run();
