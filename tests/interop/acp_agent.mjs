#!/usr/bin/env node
/* An agent of the official SDK (tests/agents/sdk_agent.mjs) under the hub that asks for everything an agent may ask for: files,
 * forms, pages, a way to log in. Every message that the hub sends it is checked with ACP's own JSON Schema. Then the same with
 * an editor of the SDK in front of the hub, which has the files and shows the forms. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { conforms, refusesEmpty } from './acp_schema.mjs';
import { Hub, about, follow, weft } from './hub.mjs';
import { check, cleanup, needed, patiently, run, same, scratch, source, test } from './kit.mjs';

const acp = needed('@agentclientprotocol/sdk');
const { agent: to, client: from } = acp.methods;
const modules = path.join(source, 'build/tools/node_modules');
const record = scratch('record');

/* ---- a hub, and a person who follows its events ---- */

const sdk = (...more) => ({ driver: 'acp', command: [process.execPath, path.join(source, 'tests/agents/sdk_agent.mjs'), modules, record, ...more] });
const hub = await new Hub({ config: { agents: { sdk: sdk(), locked: sdk('locked'), reader: { ...sdk(), permission: 'deny' } } } }).start();
const { folder, env } = hub;
const { events, call, event, ended, output } = await follow(hub);
const submit = async (prompt, agent = 'sdk') => (await call('task.submit', { prompt, agent })).taskId;
const asked = taskId => event(about(taskId, 'question.asked'), `${taskId} to ask`);

/* ---- files ---- */

test('files are read and written beneath the folder', async () => {
    fs.writeFileSync(path.join(folder, 'a.txt'), 'one\ntwo\nthree\n');
    same(JSON.parse(await output(await submit('read a.txt'))), { content: 'one\ntwo\nthree\n' });
    same(JSON.parse(await output(await submit('read a.txt 2 1'))), { content: 'two\n' });
    same(JSON.parse(await output(await submit('read none.txt'))), { content: '' });
    same(JSON.parse(await output(await submit('read none.txt 1 1'))).code, -32002);
    same(JSON.parse(await output(await submit('write new/b.txt hello'))), {});
    same(fs.readFileSync(path.join(folder, 'new/b.txt'), 'utf8'), 'hello');
    for (const place of ['../outside.txt', '.weft/token', '.git/config'])
        check(JSON.parse(await output(await submit(`read ${place}`))).code < 0, place);
    check(JSON.parse(await output(await submit('write new/c.txt no', 'reader'))).code < 0, 'who may only read');
    check(!fs.existsSync(path.join(folder, 'new/c.txt')), 'does not write');
});

/* ---- forms and pages ---- */

test('a form is filled in by whoever is there', async () => {
    const id = await submit('form');
    const { data } = await asked(id);
    same([data.kind, data.title], ['elicitation', 'How shall I deploy?']);
    const wrong = await call('question.answer', { questionId: data.questionId, option: 'accept', content: { port: 0 } }).catch(error => error);
    same(wrong.code, -32602);
    await call('question.answer', { questionId: data.questionId, option: 'accept', content: { name: 'x', tags: ['a'] } });
    same(JSON.parse(await output(id)), { action: 'accept', content: { name: 'x', port: 80, tags: ['a'] } });
    const declined = await submit('form');
    await call('question.answer', { questionId: (await asked(declined)).data.questionId, option: 'deny' });
    same(JSON.parse(await output(declined)), { action: 'decline' });
});

test('a page, and what was done there', async () => {
    const id = await submit('page');
    const { data } = await asked(id);
    same([data.detail.mode, data.detail.url], ['url', 'https://example.org/consent?x=1']);
    await call('question.answer', { questionId: data.questionId, option: 'accept' });
    same(JSON.parse(await output(id)), { action: 'accept' });
    check(events.some(about(id, 'session.elicited')), 'the agent said that it is done');
});

test('cancelling answers what is open', async () => {
    const id = await submit('form');
    const { data } = await asked(id);
    await call('task.cancel', { taskId: id });
    same((await ended(id)).type, 'task.cancelled');
    same((await event(one => one.type === 'question.withdrawn' && one.data.questionId === data.questionId, 'its end')).data.reason, 'taskEnded');
});

test('an agent that is not logged in asks how', async () => {
    const id = await submit('hello', 'locked');
    const { data } = await asked(id);
    same([data.kind, data.options.map(one => one.id)], ['login', ['key', 'weft:retry', 'weft:stop']]);
    await call('question.answer', { questionId: data.questionId, option: 'key' });
    check((await output(id)).startsWith('hello'), 'it goes on');
    const given = await submit('hello', 'locked');
    await call('question.answer', { questionId: (await asked(given)).data.questionId, option: 'weft:stop' });
    same((await ended(given)).data.reason, 'authRequired');
});

test('what a turn cost', async () => {
    const id = await submit('usage');
    await ended(id);
    same((await call('task.get', { taskId: id })).usage, { tokens: { totalTokens: 12, inputTokens: 10, outputTokens: 2 },
        context: { used: 100, size: 1000 }, sessionCost: { amount: 0.5, currency: 'USD' }, cost: { amount: 0.5, currency: 'USD' } });
    same((await call('cost.get', { taskId: id })).spent, { turns: 1, tokens: { total: 12, input: 10, output: 2, thought: null, cachedRead: null, cachedWrite: null },
        tokensUnknown: 0, cost: [{ amount: 0.5, currency: 'USD' }], costUnknown: 0 });
});

/* ---- with an editor in front ---- */

class Editor {
    buffers = new Map([['a.txt', 'not saved yet']]);
    wrong = [];
    forms = [];
    done = [];
    static async open(capabilities) {
        const editor = new Editor();
        const child = spawn(weft, ['acp', '--agent', 'sdk'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
        child.stdin.on('error', () => {});
        cleanup(async () => {
            child.stdin.end();
            await patiently(once(child, 'exit'), 'weft acp to end');
        });
        const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
        const tap = new TransformStream({ transform(one, controller) { editor.#validate(one); controller.enqueue(one); } });
        editor.agent = acp.client({ name: 'test' })
            .onRequest(from.fs.readTextFile, ({ params }) => editor.#read(params))
            .onRequest(from.fs.writeTextFile, ({ params }) => { editor.buffers.set(path.relative(folder, params.path), params.content); return {}; })
            .onRequest(from.elicitation.create, ({ params }) => { editor.forms.push(params); return { action: 'accept', content: params.mode === 'form' ? { name: 'from the editor' } : undefined }; })
            .onNotification(from.elicitation.complete, ({ params }) => { editor.done.push(params.elicitationId); })
            .onRequest(from.session.requestPermission, () => ({ outcome: { outcome: 'cancelled' } }))
            .onNotification(from.session.update, ({ params: { update } }) => {
                editor[update.sessionUpdate === 'agent_message_chunk' ? 'text' : 'aside'] += update.content?.text ?? '';
            })
            .connect({ readable: stream.readable.pipeThrough(tap), writable: stream.writable }).agent;
        await patiently(editor.agent.request(to.initialize, { protocolVersion: 1, clientCapabilities: capabilities }), 'initialize');
        editor.id = (await patiently(editor.agent.request(to.session.new, { cwd: folder, mcpServers: [] }), 'session/new')).sessionId;
        return editor;
    }
    #validate({ method, params }) {
        const names = { 'fs/read_text_file': 'ReadTextFileRequest', 'fs/write_text_file': 'WriteTextFileRequest', 'elicitation/create': 'CreateElicitationRequest',
            'elicitation/complete': 'CompleteElicitationNotification', 'session/update': 'SessionNotification' };
        try {
            if (names[method])
                conforms(params, names[method]);
        } catch (failure) {
            this.wrong.push(failure.message);
        }
    }
    #read({ path: file }) {
        const name = path.relative(folder, file);
        if (!this.buffers.has(name))
            throw acp.RequestError.resourceNotFound(file);
        return { content: this.buffers.get(name) };
    }
    async prompt(words) {
        this.text = this.aside = '';
        await patiently(this.agent.request(to.session.prompt, { sessionId: this.id, prompt: [{ type: 'text', text: words }] }), words);
        return this.text;
    }
}

test('the editor has the files and the forms', async () => {
    fs.writeFileSync(path.join(folder, 'saved.txt'), 'on the disk');
    const editor = await Editor.open({ fs: { readTextFile: true, writeTextFile: true }, elicitation: { form: {}, url: {} } });
    same(JSON.parse(await editor.prompt('read a.txt')), { content: 'not saved yet' });
    same(JSON.parse(await editor.prompt('read saved.txt')), { content: 'on the disk' });
    check(editor.aside.includes('read from the disk'), 'and it is said');
    same(JSON.parse(await editor.prompt('write a.txt changed')), {});
    same([editor.buffers.get('a.txt'), fs.readFileSync(path.join(folder, 'a.txt'), 'utf8')], ['changed', 'one\ntwo\nthree\n']);
    same(JSON.parse(await editor.prompt('form')), { action: 'accept', content: { name: 'from the editor', port: 80 } });
    same(JSON.parse(await editor.prompt('page')), { action: 'accept' });
    same([editor.forms.map(one => one.mode), editor.done], [['form', 'url'], ['consent']]);
    same(editor.wrong, []);
});

test('an editor without them loses nothing', async () => {
    const editor = await Editor.open({});
    same(JSON.parse(await editor.prompt('read saved.txt')), { content: 'on the disk' });
    const turn = editor.prompt('form');
    const { data } = await event(one => one.type === 'question.asked' && one.data.sessionId === editor.id, 'the form');
    await call('question.answer', { questionId: data.questionId, option: 'accept', content: { name: 'y' } });
    same(JSON.parse(await turn), { action: 'accept', content: { name: 'y', port: 80 } });
    check(editor.aside.includes(`weft answer ${data.questionId}`), editor.aside);
    same(editor.forms, []);
    same(editor.wrong, []);
});

/* ---- what the hub said to the agents ---- */

test('every message to the agent conforms', async () => {
    const requests = { initialize: 'InitializeRequest', authenticate: 'AuthenticateRequest', 'session/new': 'NewSessionRequest', 'session/load': 'LoadSessionRequest',
        'session/prompt': 'PromptRequest', 'session/cancel': 'CancelNotification' };
    const results = { 'fs/read_text_file': 'ReadTextFileResponse', 'fs/write_text_file': 'WriteTextFileResponse', 'elicitation/create': 'CreateElicitationResponse' };
    const sent = new Map(), seen = new Set();
    for (const line of fs.readFileSync(record, 'utf8').trim().split('\n')) {
        const { pid, from: whose, one } = JSON.parse(line);
        if (whose === 'agent' && one.method && one.id !== undefined)
            sent.set(`${pid} ${one.id}`, one.method);
        if (whose === 'agent')
            continue;
        const name = one.method ? requests[one.method] : results[sent.get(`${pid} ${one.id}`)];
        seen.add(one.method ?? sent.get(`${pid} ${one.id}`));
        if (one.method && !one.method.startsWith('$/'))
            check(name, `${one.method} is checked`);
        if (name && !one.error)
            conforms(one.method ? one.params : one.result, name);
        if (one.error)
            check(Number.isInteger(one.error.code) && typeof one.error.message === 'string', line);
    }
    for (const name of [...Object.keys(requests), ...Object.keys(results)])
        check(seen.has(name) || name === 'session/load', `${name} was said`);
    for (const name of ['InitializeRequest', 'PromptRequest', 'ReadTextFileResponse', 'CreateElicitationResponse'])
        check(refusesEmpty(name), name);
});

await run();
