#!/usr/bin/env node
/* The hub as an ACP agent, driven by the client of the official SDK: "weft acp" on stdio, /acp by WebSocket and by HTTP, with the demo
 * agent behind. Every message that the hub sends is checked with ACP's own JSON Schema as well, because a client may be more
 * tolerant than its protocol. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { build, check, cleanup, lines, needed, output, patiently, run, same, scratch, test } from './kit.mjs';
import { conforms, refusesEmpty } from './acp_schema.mjs';

const acp = needed('@agentclientprotocol/sdk');
const { createWebSocketStream } = needed('@agentclientprotocol/sdk/experimental/ws-client');
const { createHttpStream } = needed('@agentclientprotocol/sdk/experimental/http-client');
const WebSocket = needed('ws');
const { agent: to, client: from } = acp.methods;
const weft = path.join(build, 'weft');
delete process.env.WEFT_STORE_KIND; /* sessions survive the hub: that is part of the test */

/* ---- the schema ---- */

const answers = { [to.initialize]: 'InitializeResponse', [to.session.new]: 'NewSessionResponse', [to.session.load]: 'LoadSessionResponse',
    [to.session.resume]: 'ResumeSessionResponse', [to.session.prompt]: 'PromptResponse', [to.session.list]: 'ListSessionsResponse',
    [to.session.close]: 'CloseSessionResponse', [to.session.delete]: 'DeleteSessionResponse', [to.session.setMode]: 'SetSessionModeResponse',
    [to.session.setConfigOption]: 'SetSessionConfigOptionResponse' };

/* ---- the hub's folder: the first editor starts the hub ---- */

const folder = scratch('project');
fs.mkdirSync(folder, { mode: 0o700 });
const env = { ...process.env, XDG_CONFIG_HOME: scratch('config'), XDG_STATE_HOME: scratch('state') };
const verb = (...args) => new Promise((resolve, reject) => {
    const child = spawn(weft, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '', talk = '';
    child.stdout.setEncoding('utf8').on('data', piece => { text += piece; });
    child.stderr.setEncoding('utf8').on('data', piece => { talk += piece; });
    child.on('error', reject).on('close', code => resolve({ code, text, talk }));
});
cleanup(async () => {
    await verb('stop');
    const log = path.join(folder, '.weft/daemon.log');
    const said = fs.existsSync(log) ? fs.readFileSync(log, 'utf8') : '';
    if (/Sanitizer|runtime error:/.test(said))
        console.log(said), process.exit(1);
});
const endpoint = () => JSON.parse(fs.readFileSync(path.join(folder, '.weft/endpoint.json'), 'utf8'));
const token = () => fs.readFileSync(path.join(folder, '.weft/token'), 'utf8').trim();

/* ---- an editor: a client of the SDK, and a record of what went by ---- */

function onStdio(editor, ...args) {
    const child = spawn(weft, ['acp', ...args], { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe'] });
    editor.child = child;
    editor.exited = once(child, 'exit');
    editor.talk = '';
    child.stderr.setEncoding('utf8').on('data', text => { editor.talk += text; });
    child.stdin.on('error', () => {});
    editor.hangUp = async () => {
        child.stdin.end();
        return (await patiently(editor.exited, 'weft acp to end'))[0];
    };
    return acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

function onWebSocket(editor) {
    const url = endpoint().urls.find(one => one.endsWith('/acp'));
    check(url, 'the hub tells of /acp');
    const stream = createWebSocketStream(url, { WebSocket: WebSocket.WebSocket ?? WebSocket, headers: { Authorization: `Bearer ${token()}` } });
    editor.hangUp = async () => { await stream.writable.abort?.().catch(() => {}); };
    return stream;
}

const httpUrl = () => endpoint().urls.find(one => one.endsWith('/acp')).replace(/^ws/, 'http');
function onHttp(editor) {
    const stream = createHttpStream(httpUrl(), { headers: { Authorization: `Bearer ${token()}` } });
    editor.hangUp = async () => { await stream.writable.abort?.().catch(() => {}); };
    return stream;
}

class Editor {
    messages = []; /* what the hub sent, in order */
    asked = {};    /* our methods by id */
    questions = [];
    watchers = new Set();
    choice = 'allow_once'; /* an option's id; undefined: never answers; a function */
    static async open(connect = onStdio, ...args) {
        const editor = new Editor();
        const stream = connect(editor, ...args);
        const recorded = { readable: stream.readable.pipeThrough(editor.#record(one => editor.#received(one))), writable: editor.#outgoing(stream) };
        editor.connection = acp.client({ name: 'test' })
            .onRequest(from.session.requestPermission, ({ params }) => editor.#permit(params))
            .onNotification(from.session.update, () => {})
            .connect(recorded);
        editor.agent = editor.connection.agent;
        cleanup(() => editor.hangUp());
        editor.info = await patiently(editor.agent.request(to.initialize, { protocolVersion: 1, clientCapabilities: { _meta: { 'weft/positions': true } } }), 'initialize');
        return editor;
    }
    #record(note) {
        return new TransformStream({ transform(one, controller) { note(one); controller.enqueue(one); } });
    }
    #outgoing(stream) {
        const tap = this.#record(one => {
            if (one.method && one.id !== undefined)
                this.asked[one.id] = one.method;
        });
        tap.readable.pipeTo(stream.writable).catch(() => {});
        return tap.writable;
    }
    #received(one) {
        this.messages.push(one);
        this.validate(one);
        this.watchers.forEach(look => look());
    }
    wrong = [];
    validate({ method, params, id, result, error }) {
        try {
            if (method === from.session.update)
                conforms(params, 'SessionNotification');
            else if (method === from.session.requestPermission)
                conforms(params, 'RequestPermissionRequest');
            else if (method === '$/cancel_request')
                check(params.requestId !== undefined, 'requestId');
            else if (result !== undefined)
                conforms(result, answers[this.asked[id]]);
            else
                check(error && id !== undefined, `unexpected ${method}`);
        } catch (failure) {
            this.wrong.push(failure.message);
        }
    }
    #permit(params) {
        this.questions.push(params);
        this.watchers.forEach(look => look());
        if (typeof this.choice === 'function')
            return this.choice(params);
        if (this.choice === undefined)
            return new Promise(() => {});
        return { outcome: { outcome: 'selected', optionId: this.choice } };
    }
    async begin(more = {}) {
        const made = await patiently(this.agent.request(to.session.new, { cwd: folder, mcpServers: [], ...more }), 'session/new');
        this.id = made.sessionId;
        return made;
    }
    prompt(text, id = this.id) {
        const blocks = typeof text === 'string' ? [{ type: 'text', text }] : text;
        return patiently(this.agent.request(to.session.prompt, { sessionId: id, prompt: blocks }), `the turn "${text}" to end`);
    }
    load(id) {
        this.id = id;
        return patiently(this.agent.request(to.session.load, { sessionId: id, cwd: folder, mcpServers: [] }), 'session/load');
    }
    cancel() {
        return this.agent.notify(to.session.cancel, { sessionId: this.id });
    }
    get updates() {
        return this.messages.filter(one => one.method === from.session.update).map(one => one.params.update);
    }
    of(kind) {
        return this.updates.filter(one => one.sessionUpdate === kind);
    }
    text(kind = 'agent_message_chunk') {
        return this.of(kind).map(one => one.content.text).join('');
    }
    /* On its standard error, which comes when it comes. */
    async says(part) {
        while (!this.talk.includes(part))
            await patiently(once(this.child.stderr, 'data'), `"${part}" on standard error`);
    }
    /* When something is so, after any message. */
    until(right, what) {
        return patiently(new Promise(resolve => {
            const look = () => right() && (this.watchers.delete(look), resolve());
            this.watchers.add(look);
            look();
        }), what);
    }
    fine() {
        same(this.wrong, [], 'what does not conform');
    }
}

const refusal = promise => promise.then(() => { throw new Error('it was not refused'); }, error => error);
const written = () => path.join(folder, 'weft-demo.txt');
const transports = [['stdio', onStdio], ['WebSocket', onWebSocket], ['HTTP', onHttp]];

/* ---- beginning ---- */

test('the schema refuses what is wrong', async () => {
    for (const name of ['SessionNotification', 'RequestPermissionRequest', 'NewSessionResponse', 'PromptResponse', 'ListSessionsResponse'])
        check(refusesEmpty(name), name);
});

test('weft acp starts the hub, and says what it can', async () => {
    check(!fs.existsSync(path.join(folder, '.weft')), 'there is no hub yet');
    const editor = await Editor.open();
    await editor.says('started in');
    const { protocolVersion, agentCapabilities, agentInfo, authMethods } = editor.info;
    same([protocolVersion, agentInfo.name, authMethods, agentCapabilities.loadSession], [1, 'weft', [], true]);
    same(Object.keys(agentCapabilities.sessionCapabilities).sort(), ['close', 'delete', 'list', 'resume']);
    same((await editor.agent.request(to.initialize, { protocolVersion: 65535, clientCapabilities: {} })).protocolVersion, 1);
    editor.fine();
    same(await editor.hangUp(), 0);
    same((await verb('status')).code, 0, 'the hub stays');
});

test('an agent that there is not is refused before anything passes', async () => {
    const { code, talk } = await new Promise(resolve => {
        const child = spawn(weft, ['acp', '--agent', 'nobody'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe'] });
        let said = '';
        child.stderr.setEncoding('utf8').on('data', text => { said += text; });
        child.on('close', status => resolve({ code: status, talk: said }));
    });
    check(code !== 0 && talk.includes('nobody') && talk.includes('demo'), talk);
});

test('what there is not is refused', async () => {
    for (const [name, connect] of transports) {
        const editor = await Editor.open(connect);
        const session = { sessionId: 'session-9999', cwd: folder, mcpServers: [] };
        editor.wrong.length = 0;
        same((await refusal(editor.agent.request(to.session.load, session))).code, -32002, name);
        same((await refusal(editor.agent.request(to.session.resume, session))).code, -32002, name);
        same((await refusal(editor.prompt('hello', 'session-9999'))).code, -32002, name);
        same((await refusal(editor.agent.request('session/frobnicate', {}))).code, -32601, name);
        same((await refusal(editor.agent.request(to.session.new, { cwd: '/', mcpServers: [] }))).code, -32602, name);
        same((await refusal(editor.agent.request(to.session.new, { cwd: 'relative', mcpServers: [] }))).code, -32602, name);
        same((await refusal(editor.agent.request(to.session.new, { cwd: folder }))).code, -32602, name);
        same((await refusal(editor.agent.request(to.session.new, { cwd: folder, mcpServers: [], _meta: { 'weft/agent': 'nobody' } }))).code, -32602, name);
        same((await refusal(editor.agent.request('authenticate', { methodId: 'x' }))).code, -32602, name);
        await editor.begin();
        same((await refusal(editor.prompt([{ type: 'image', data: '', mimeType: 'image/png' }]))).code, -32602, name);
        same((await refusal(editor.prompt([]))).code, -32602, name);
        editor.fine();
    }
});

test('batches and lines that are no JSON', async () => {
    const pipe = await lines(`unix:${path.join(folder, '.weft/daemon.sock')}`);
    pipe.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}');
    same(JSON.parse(await pipe.receive()).result.protocolVersion, 1);
    pipe.send('[{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}},{"jsonrpc":"2.0","id":3,"method":"session/list"}]');
    const refused = JSON.parse(await pipe.receive());
    same([refused.id, refused.error.code], [null, -32600]);
    pipe.send('{"jsonrpc":');
    same(JSON.parse(await pipe.receive()).error.code, -32700);
    pipe.send('{"jsonrpc":"2.0","id":4,"method":"session/list","params":{}}');
    same(JSON.parse(await pipe.receive()).id, 4);
    pipe.close();
});

test('HTTP: what is wrong with a request is said by its status', async () => {
    const own = { Authorization: `Bearer ${token()}` }, json = { 'Content-Type': 'application/json' };
    const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}';
    const post = (body, headers = {}) => fetch(httpUrl(), { method: 'POST', body, headers: { ...own, ...json, ...headers } });
    same((await fetch(httpUrl(), { method: 'POST', body: hello, headers: json })).status, 401);
    same((await post(hello, { Origin: 'https://evil.example' })).status, 403);
    same((await post(hello, { 'Content-Type': 'text/plain' })).status, 415);
    same((await post('{')).status, 400);
    same((await post('7')).status, 400);
    const batch = await post(`[${hello}]`);
    same([batch.status, (await batch.json()).error.code], [400, -32600]);
    same((await post('{"jsonrpc":"2.0","id":2,"method":"session/list"}')).status, 400);
    same((await post('{"jsonrpc":"2.0","id":2,"method":"session/list"}', { 'Acp-Connection-Id': 'x' })).status, 404);
    same((await post('{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}')).status, 400);
    same((await post('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')).status, 400);
    const begun = await post(hello);
    const connection = { 'Acp-Connection-Id': begun.headers.get('Acp-Connection-Id') };
    same([begun.status, (await begun.json()).result.protocolVersion], [200, 1]);
    same((await post(hello, connection)).status, 400);
    const prompt = '{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"a","prompt":[]}}';
    same((await post(prompt, connection)).status, 400);
    same((await post(prompt, { ...connection, 'Acp-Session-Id': 'b' })).status, 400);
    same((await post(prompt, { ...connection, 'Acp-Session-Id': 'a' })).status, 202);
    const events = { Accept: 'text/event-stream' };
    same((await fetch(httpUrl(), { headers: own })).status, 406);
    same((await fetch(httpUrl(), { headers: { ...own, ...events } })).status, 400);
    same((await fetch(httpUrl(), { headers: { ...own, ...events, 'Acp-Connection-Id': 'x' } })).status, 404);
    const stop = new AbortController();
    const stream = await fetch(httpUrl(), { headers: { ...own, ...events, ...connection, 'Acp-Session-Id': 'a' }, signal: stop.signal });
    same([stream.status, stream.headers.get('Content-Type')], [200, 'text/event-stream']);
    same((await fetch(httpUrl(), { headers: { ...own, ...events, ...connection, 'Acp-Session-Id': 'a' } })).status, 409);
    let text = '';
    for await (const piece of stream.body) {
        text += Buffer.from(piece).toString();
        if (text.includes('"id":3'))
            break;
    }
    check(/^data: \{.*"code":-32602.*\}$/m.test(text), text);
    stop.abort();
    /* Somebody else's connection is none. */
    const { text: made } = await verb('token', 'add', 'other', '--scope', 'read,work', '--json');
    const other = { Authorization: `Bearer ${JSON.parse(made).token}` };
    same((await post('{"jsonrpc":"2.0","id":4,"method":"session/list"}', { ...connection, ...other })).status, 404);
    same((await fetch(httpUrl(), { method: 'DELETE', headers: { ...own, ...connection } })).status, 202);
    same((await fetch(httpUrl(), { method: 'DELETE', headers: { ...own, ...connection } })).status, 404);
    same((await fetch(httpUrl(), { method: 'PUT', headers: own })).status, 405);
});

test('WebSocket: the handshake names the connection, and needs a token', async () => {
    const url = endpoint().urls.find(one => one.endsWith('/acp'));
    const shake = headers => patiently(new Promise((resolve, reject) => {
        const ws = new WebSocket(url, { headers });
        ws.on('upgrade', answer => resolve([answer.statusCode, answer.headers['acp-connection-id']]));
        ws.on('unexpected-response', (_, answer) => resolve([answer.statusCode]));
        ws.on('open', () => ws.close()).on('error', reject);
    }), 'the handshake');
    const [one, other] = [await shake({ Authorization: `Bearer ${token()}` }), await shake({ Authorization: `Bearer ${token()}` })];
    check(one[0] === 101 && /^[0-9a-f]{32}$/.test(one[1]) && one[1] !== other[1], String(one));
    same((await shake({}))[0], 401);
    same((await shake({ Authorization: `Bearer ${token()}`, Origin: 'https://evil.example' }))[0], 403);
});

/* ---- turns ---- */

test('a whole turn: text, a plan, a permission, a file', async () => {
    for (const [name, connect] of transports) {
        fs.rmSync(written(), { force: true });
        const editor = await Editor.open(connect);
        await editor.begin();
        editor.choice = params => {
            check(!fs.existsSync(written()), 'nothing is written before the answer');
            editor.shown = params.toolCall.content[0].newText;
            return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
        };
        same(await editor.prompt('please write a poem'), { stopReason: 'end_turn' }, name);
        same(editor.questions.length, 1, name);
        same(editor.questions[0].options.map(one => one.kind), ['allow_once', 'allow_always', 'reject_once', 'reject_always']);
        same(fs.readFileSync(written(), 'utf8'), editor.shown, name);
        same(editor.of('tool_call').map(one => [one.kind, one.status]), [['edit', 'pending']], name);
        same(editor.of('tool_call_update').map(one => one.status), ['in_progress', 'completed'], name);
        check(editor.of('plan').length > 1 && editor.text().includes('please write a poem'), name);
        same(editor.of('user_message_chunk'), [], `${name}: its own words`);
        check(editor.messages.at(-1).result?.stopReason, `${name}: the answer comes last`);
        check(editor.messages.every(one => !one.method || one.method.startsWith('session/')), 'nothing but ACP');
        editor.fine();
        await editor.hangUp();
    }
});

test('links and texts that come with a prompt', async () => {
    const editor = await Editor.open();
    await editor.begin();
    await editor.prompt([{ type: 'text', text: 'echo look at ' }, { type: 'resource_link', name: 'a.c', uri: 'file:///a.c' },
        { type: 'resource', resource: { uri: 'file:///b.c', text: 'int b;' } }]);
    same(editor.text(), 'look at [a.c](file:///a.c)\n<context ref="file:///b.c">\nint b;\n</context>\n');
    editor.fine();
});

test('what an agent fails with is said', async () => {
    const editor = await Editor.open();
    await editor.begin();
    same((await refusal(editor.prompt('fail'))).code, -32603);
    same(await editor.prompt('refuse'), { stopReason: 'refusal' });
    same((await refusal(editor.prompt('crash'))).code, -32603);
    same(await editor.prompt('echo still here'), { stopReason: 'end_turn' });
    same(editor.text().slice(-10), 'still here');
    editor.fine();
});

test('a prompt waits for the turn that runs', async () => {
    const editor = await Editor.open();
    await editor.begin();
    const turns = [editor.prompt('slow 200ms echo one '), editor.prompt('echo two '), editor.prompt('echo three')];
    same(await Promise.all(turns), Array(3).fill({ stopReason: 'end_turn' }));
    same(editor.text(), 'one two three');
    editor.fine();
});

test('a long turn arrives whole, and its answer behind it', async () => {
    for (const [name, connect] of transports) {
        const editor = await Editor.open(connect);
        await editor.begin();
        await editor.prompt('lines 20000');
        const said = editor.text().split('\n');
        same([said.length, said[0], said[19999]], [20001, 'line 1', 'line 20000'], name);
        check(editor.messages.at(-1).result?.stopReason, `${name}: the answer comes last`);
        editor.fine();
        await editor.hangUp();
    }
});

/* ---- cancelling ---- */

test('session/cancel: the turn, and what was queued behind it', async () => {
    for (const [name, connect] of transports) {
        const editor = await Editor.open(connect);
        await editor.begin();
        const turns = [editor.prompt('hang'), editor.prompt('echo never')];
        await editor.until(() => editor.updates.length > 0, 'the turn to begin');
        /* By HTTP each message has a connection of its own. */
        while (JSON.parse((await verb('call', 'task.stats')).text).queued < 1);
        await editor.cancel();
        same(await Promise.all(turns), Array(2).fill({ stopReason: 'cancelled' }), name);
        check(!editor.text().includes('never'), name);
        same(await editor.prompt('echo again'), { stopReason: 'end_turn' }, name);
        editor.fine();
        await editor.hangUp();
    }
});

test('session/cancel while a question is open', async () => {
    const editor = await Editor.open();
    await editor.begin();
    let close;
    editor.choice = () => new Promise(resolve => { close = () => resolve({ outcome: { outcome: 'cancelled' } }); });
    const turn = editor.prompt('edit it');
    await editor.until(() => editor.questions.length === 1, 'the question');
    await editor.cancel();
    close();
    same(await turn, { stopReason: 'cancelled' });
    same(JSON.parse((await verb('call', 'question.list')).text).questions, []);
    editor.fine();
});

test('a question that a person closes is a no', async () => {
    fs.rmSync(written(), { force: true });
    const editor = await Editor.open();
    await editor.begin();
    editor.choice = () => ({ outcome: { outcome: 'cancelled' } });
    same(await editor.prompt('edit it'), { stopReason: 'end_turn' });
    check(!fs.existsSync(written()), 'nothing was written');
    editor.fine();
});

test('$/cancel_request of a prompt ends its turn', async () => {
    const pipe = await lines(`unix:${path.join(folder, '.weft/daemon.sock')}`);
    const receive = async right => {
        for (;;) {
            const one = JSON.parse(await pipe.receive());
            if (right(one))
                return one;
        }
    };
    pipe.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}');
    pipe.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: folder, mcpServers: [] } }));
    const { result: { sessionId } } = await receive(one => one.id === 2);
    pipe.send(JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'session/prompt', params: { sessionId, prompt: [{ type: 'text', text: 'hang' }] } }));
    await receive(one => one.method === 'session/update');
    pipe.send('{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}');
    same((await receive(one => one.id === 3)).result, { stopReason: 'cancelled' });
    pipe.close();
});

/* ---- several clients, and coming back ---- */

test('two editors on one session: both see all, both are asked, the first answer counts', async () => {
    fs.rmSync(written(), { force: true });
    const [first, second] = [await Editor.open(), await Editor.open(onWebSocket)];
    await first.begin();
    await second.load(first.id);
    [first.choice, second.choice] = [undefined, undefined];
    let answer;
    second.choice = () => new Promise(resolve => { answer = () => resolve({ outcome: { outcome: 'selected', optionId: 'allow_once' } }); });
    const turn = first.prompt('write it');
    await first.until(() => first.questions.length, 'the question at the first');
    await second.until(() => second.questions.length, 'the question at the second');
    answer();
    same(await turn, { stopReason: 'end_turn' });
    check(fs.existsSync(written()), 'it was allowed');
    check(first.messages.some(one => one.method === '$/cancel_request'), 'the first one\'s question was withdrawn');
    await second.until(() => second.text().includes('one more line'), 'the end of the turn');
    same(second.text('user_message_chunk'), 'write it');
    const said = ({ updates }) => updates.filter(one => !['user_message_chunk', 'current_mode_update'].includes(one.sessionUpdate));
    same(said(second), said(first));
    first.fine();
    second.fine();
});

test('a question is answered by weft answer, and the editor\'s is withdrawn', async () => {
    const editor = await Editor.open();
    await editor.begin();
    editor.choice = undefined;
    const turn = editor.prompt('ask me');
    await editor.until(() => editor.questions.length, 'the question');
    const [open] = JSON.parse((await verb('call', 'question.list')).text).questions;
    same((await verb('answer', open.id, 'deny')).code, 0);
    same(await turn, { stopReason: 'end_turn' });
    check(editor.messages.some(one => one.method === '$/cancel_request'), 'withdrawn');
    check(editor.text().includes('You chose reject_once.'), editor.text());
});

test('load tells the whole conversation before it answers, then what happens', async () => {
    const editor = await Editor.open();
    await editor.begin();
    await editor.prompt('echo one');
    await editor.prompt('echo two');
    const past = [['user_message_chunk', 'echo one'], ['agent_message_chunk', 'one'], ['user_message_chunk', 'echo two'], ['agent_message_chunk', 'two']];
    for (const [name, connect] of transports) {
        const late = await Editor.open(connect);
        await late.load(editor.id);
        const told = late.updates.map(one => [one.sessionUpdate, one.content?.text]).filter(([kind]) => kind.endsWith('message_chunk'));
        same(told, past, name);
        check(late.messages.at(-1).id !== undefined, `${name}: the answer comes last`);
        await late.prompt('echo three');
        check(late.text().endsWith('three'), name);
        past.push(['user_message_chunk', 'echo three'], ['agent_message_chunk', 'three']);
        late.fine();
        await late.hangUp();
    }
    /* Also its own words, if it is the one who said them. */
    await editor.until(() => editor.text().endsWith('three'.repeat(transports.length)), 'what the others said');
    editor.messages.length = 0;
    await editor.load(editor.id);
    same(editor.text('user_message_chunk'), `echo oneecho two${'echo three'.repeat(transports.length)}`);
    editor.fine();
});

test('load in the middle of a turn: no gap, no double', async () => {
    const editor = await Editor.open();
    await editor.begin();
    const turn = editor.prompt('lines 5000');
    await editor.until(() => editor.updates.length > 3, 'the turn to begin');
    const late = await Editor.open(onWebSocket);
    await late.load(editor.id);
    await turn;
    await late.until(() => late.text().endsWith('line 5000\n'), 'the last line');
    same(late.text(), editor.text());
    late.fine();
});

test('resume goes on from now, or from the position that was seen', async () => {
    const editor = await Editor.open();
    await editor.begin();
    await editor.prompt('echo one');
    const position = editor.messages.filter(one => one.method === from.session.update).at(-1).params._meta['weft/position'];
    await editor.prompt('echo two');
    const late = await Editor.open(onWebSocket);
    const session = { sessionId: editor.id, cwd: folder };
    late.id = editor.id;
    await late.agent.request(to.session.resume, session);
    same(late.updates, []);
    const exact = await Editor.open();
    await exact.agent.request(to.session.resume, { ...session, _meta: { 'weft/position': position } });
    same([exact.text('user_message_chunk'), exact.text()], ['echo two', 'two']);
    const lost = await Editor.open();
    const answer = await lost.agent.request(to.session.resume, { ...session, _meta: { 'weft/position': `${'0'.repeat(32)}:5` } });
    same([lost.updates, answer._meta['weft/resumed'], answer._meta['weft/reason']], [[], false, 'epochChanged']);
    await editor.prompt('echo three');
    for (const one of [late, exact, lost])
        await one.until(() => one.text().endsWith('three'), 'what happens');
    same((await refusal(exact.agent.request(to.session.resume, { ...session, _meta: { 'weft/position': 'nonsense' } }))).code, -32602);
    [editor, late, exact, lost].forEach(one => one.fine());
});

test('who does not ask for positions is not told any', async () => {
    const editor = await Editor.open();
    await editor.begin();
    await editor.prompt('echo x');
    const plain = await lines(`unix:${path.join(folder, '.weft/daemon.sock')}`);
    plain.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}');
    await plain.receive();
    plain.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'session/load', params: { sessionId: editor.id, cwd: folder, mcpServers: [] } }));
    const told = JSON.parse(await plain.receive());
    same([told.method, told.params._meta], ['session/update', undefined]);
    plain.close();
});

test('list, by pages', async () => {
    const editor = await Editor.open();
    await editor.begin();
    const { sessions } = await editor.agent.request(to.session.list, {});
    same([sessions[0].sessionId, sessions[0].cwd, sessions[0]._meta['weft/agent']], [editor.id, folder, 'demo']);
    same((await editor.agent.request(to.session.list, { cwd: '/elsewhere' })).sessions, []);
    same((await editor.agent.request(to.session.list, { cwd: folder })).sessions.length, sessions.length);
    same((await refusal(editor.agent.request(to.session.list, { cursor: 'nonsense' }))).code, -32602);
    editor.fine();
});

test('close ends the work, and load takes it up again; delete forgets it', async () => {
    const editor = await Editor.open();
    await editor.begin();
    await editor.prompt('echo one');
    const turn = editor.prompt('hang');
    await editor.until(() => editor.text('agent_message_chunk').length > 3, 'the turn to begin');
    await patiently(editor.agent.request(to.session.close, { sessionId: editor.id }), 'session/close');
    same(await turn, { stopReason: 'cancelled' });
    const other = await Editor.open(onWebSocket);
    await other.load(editor.id);
    check(other.text().startsWith('one'), other.text());
    same(await other.prompt('echo two'), { stopReason: 'end_turn' });
    await patiently(other.agent.request(to.session.delete, { sessionId: editor.id }), 'session/delete');
    await other.agent.request(to.session.delete, { sessionId: editor.id });
    same((await refusal(other.load(editor.id))).code, -32002);
    const { sessions } = await editor.agent.request(to.session.list, {});
    check(!sessions.some(one => one.sessionId === editor.id), 'it is not listed');
    editor.fine();
    other.fine();
});

test('modes and options are the agent\'s', async () => {
    const editor = await Editor.open(onStdio, '--agent', 'demo');
    const { modes } = await editor.begin();
    check(modes.availableModes.length > 1, JSON.stringify(modes));
    const other = modes.availableModes.find(one => one.id !== modes.currentModeId).id;
    const late = await Editor.open(onWebSocket);
    same((await late.load(editor.id)).modes, modes);
    await editor.agent.request(to.session.setMode, { sessionId: editor.id, modeId: other });
    same((await late.load(editor.id)).modes.currentModeId, other);
    same((await refusal(editor.agent.request(to.session.setMode, { sessionId: editor.id, modeId: 'no such mode' }))).code, -32602);
    same((await refusal(editor.agent.request(to.session.setConfigOption, { sessionId: editor.id, configId: 'none', value: 'x' }))).code, -32602);
    editor.fine();
    late.fine();
});

test('sessions survive the hub and the editor', async () => {
    const editor = await Editor.open();
    await editor.begin();
    await editor.prompt('echo before');
    const { pid } = JSON.parse((await verb('call', 'daemon.status')).text);
    process.kill(pid, 'SIGKILL');
    same(await editor.hangUp(), 0);
    const next = await Editor.open();
    await next.says('started in');
    await next.load(editor.id);
    same(next.text(), 'before');
    same(await next.prompt('echo after'), { stopReason: 'end_turn' });
    same(next.text(), 'beforeafter');
    next.fine();
});

test('a turn goes on when its editor goes', async () => {
    const editor = await Editor.open(onWebSocket);
    await editor.begin();
    editor.prompt('slow 300ms echo still done').catch(() => {});
    await editor.until(() => editor.messages.some(one => one.method === from.session.update) || true, 'it to begin');
    const watcher = await Editor.open();
    await watcher.load(editor.id);
    await editor.hangUp();
    await watcher.until(() => watcher.text().includes('still done'), 'the turn to go on');
    watcher.fine();
});

await run();
