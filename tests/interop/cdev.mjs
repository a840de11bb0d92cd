#!/usr/bin/env node
/* cdev's clients against the real hub, with the agent that is built in: its own OpenRPC document (params made from it, results
 * checked with it), its REST endpoints, its commands from before JSON-RPC, and several of them on one session. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { Hub, weft } from './hub.mjs';
import { check, examples, needed, optional, output, patiently, request, run, same, skip, source, test, webSocket } from './kit.mjs';

const Ajv = needed('ajv');
needed('ws');

/* ---- a hub in a repository ---- */

const hub = new Hub({ config: { agents: Object.fromEntries(['claude', 'gemini', 'codex'].map(name => [name, { driver: 'demo' }])) },
    env: { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' } });
const { folder: project, env } = hub;
const git = (...args) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: project, env, stdio: 'pipe' });
git('init', '-q', '-b', 'main');
fs.writeFileSync(path.join(project, 'a.txt'), 'one\n');
fs.writeFileSync(path.join(project, 'b.txt'), 'b\n');
git('add', '.');
git('commit', '-qm', 'first');
fs.writeFileSync(path.join(project, 'a.txt'), 'one\ntwo\n');
fs.writeFileSync(path.join(project, 'new.txt'), 'new\n');
fs.writeFileSync(path.join(project, 'staged.txt'), 'staged\n');
git('add', 'staged.txt');
fs.writeFileSync(path.join(project, 'bytes'), Buffer.from([0, 255, 1]));
fs.symlinkSync('/etc/passwd', path.join(project, 'out'));

const { host, token } = await hub.start();
const bearer = { Authorization: `Bearer ${token}` };

/* ---- clients ---- */

class Phone {
    static async connect() {
        return new Phone(await webSocket(`ws://${host}/ws`, { headers: bearer }));
    }
    constructor(pipe) {
        this.pipe = pipe;
        this.told = [];
        this.open = new Map();
        this.watchers = new Set();
        this.lastId = 0;
        this.read();
    }
    async read() {
        for (;;) {
            const text = await this.pipe.inbox.take('a message').catch(() => undefined);
            if (text === undefined)
                return;
            const message = JSON.parse(text);
            if (message.id !== undefined && !message.method)
                this.open.get(message.id)?.(message);
            else
                this.told.push(message);
            this.watchers.forEach(look => look());
        }
    }
    ask(method, params) {
        const id = ++this.lastId;
        const answer = new Promise(resolve => this.open.set(id, resolve));
        this.pipe.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
        return patiently(answer, `the answer to ${method}`);
    }
    async call(method, params) {
        const { result, error } = await this.ask(method, params);
        check(!error, `${method}: ${JSON.stringify(error)}`);
        return result;
    }
    hears(right, what) {
        let at = 0; /* each message is looked at once, for there may be tens of thousands */
        return patiently(new Promise(resolve => {
            const look = () => {
                while (at < this.told.length && !right(this.told[at]))
                    at++;
                if (at < this.told.length) {
                    this.watchers.delete(look);
                    resolve(this.told[at]);
                }
            };
            this.watchers.add(look);
            look();
        }), what);
    }
    heard(method) {
        return this.told.filter(message => message.method === method).map(({ params }) => params);
    }
    close() {
        this.pipe.close();
    }
}
const is = (method, right = () => true) => message => message.method === method && right(message.params);
const isState = (state, session) => is('claude_status', params => params.state === state && params.session_id === session);
const rest = async (verb, where, body, headers = bearer) => {
    const answer = await request(`http://${host}${where}`, { method: verb, headers, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body) });
    const json = /json/.test(answer.headers['content-type'] ?? '') ? JSON.parse(answer.body) : undefined;
    return { ...answer, json };
};
/* One run from its start to its end. */
async function runs(phone, params) {
    const started = await phone.call('agent/run', params);
    await phone.hears(isState('idle', started.session_id), 'the end of the run');
    phone.told = phone.told.filter(message => !isState('idle', started.session_id)(message));
    return started;
}

/* ---- its own document ---- */

const file = path.join(source, '../shared/data/cdev/openrpc-2025-12-21-4538edf.json');
const document = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined;
if (!document)
    skip('cdev\'s OpenRPC document', 'shared/data/cdev is not there');

/* Values for a schema: all of an enumeration, and for a string what the hub has, besides one it has not. */
function values(name, schema, known) {
    if (schema.$ref)
        return [{}, { name: 'x', version: '1' }];
    if (schema.enum)
        return schema.enum;
    return { string: known[name] ?? ['something'], integer: [1, 20], boolean: [true, false], object: [{}, { a: 1 }] }[schema.type];
}

/* Required params alone, then each optional one besides them, with each of its values. */
function* paramsOf(method, known) {
    const required = method.params.filter(param => param.required), optional = method.params.filter(param => !param.required);
    let bases = [{}];
    for (const { name, schema } of required)
        bases = bases.flatMap(base => values(name, schema, known).map(value => ({ ...base, [name]: value })));
    for (const base of bases) {
        yield base;
        for (const { name, schema } of optional)
            for (const value of values(name, schema, known))
                yield { ...base, [name]: value };
    }
}

if (document) {
    const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
    ajv.addSchema({ $id: 'doc', components: document.components });
    const refer = schema => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/'));
    const codes = Object.values(document.components.errors).map(({ code }) => code);
    for (const method of document.methods)
        test(`by its own document: ${method.name}`, async () => {
            const phone = await Phone.connect(), validate = ajv.compile(refer(method.result.schema));
            const { session_id } = await runs(phone, { prompt: 'echo for the document' });
            const known = { session_id: [session_id, 'nope'], path: ['a.txt', 'new.txt', 'nope'], prompt: ['echo hi'], tool_use_id: ['nope'], response: ['yes'] };
            let results = 0;
            for (const params of paramsOf(method, known)) {
                const { result, error } = await phone.ask(method.name, params);
                if (result) {
                    results++;
                    check(validate(result), `${JSON.stringify(params)} → ${JSON.stringify(result)}: ${JSON.stringify(validate.errors)}`);
                    check(!JSON.stringify(result).includes(':null'), `a null in ${JSON.stringify(result)}`);
                } else
                    check(codes.includes(error.code) || error.code === -32602, `${JSON.stringify(params)} → ${JSON.stringify(error)}`);
                if (method.name === 'agent/run' && result) {
                    await phone.hears(isState('idle', result.session_id), 'its end');
                    phone.told = [];
                }
            }
            check(results > 0 || ['agent/stop', 'agent/respond'].includes(method.name), 'no call of it had a result');
            phone.close();
        });
    test('by its own document: the names of params and errors are the hub\'s', async () => {
        const { json } = await rest('GET', '/openrpc.json');
        for (const method of document.methods) {
            const ours = json.methods.find(({ name }) => name === method.name);
            check(ours, `${method.name} is not there`);
            /* A name that several protocols have says nothing of its params: they are the connection's protocol's. */
            for (const { name } of method.params)
                check(ours['x-params'] === 'any' || ours.params.some(param => param.name === name), `${method.name} has no ${name}`);
            for (const { $ref } of method.errors ?? []) {
                const { code } = document.components.errors[$ref.split('/').pop()];
                check(ours.errors.some(error => error.code === code), `${method.name} does not list ${code}`);
            }
        }
    });
}

test('rpc.discover passes OpenRPC\'s own tools', async () => {
    const tools = optional('@open-rpc/schema-utils-js');
    if (!tools)
        return skip('OpenRPC\'s own tools', 'the npm package @open-rpc/schema-utils-js is not installed (tools/install.sh test)');
    const phone = await Phone.connect();
    const ours = await phone.call('rpc.discover');
    const validated = tools.validateOpenRPCDocument(ours);
    check(validated === true, String(validated));
    check(tools.validateOpenRPCDocument({ ...ours, methods: [{}] }) !== true, 'the tool refuses nothing');
    phone.close();
});

/* ---- both protocols ---- */

test('a client finds out by initialize; both protocols say the same', async () => {
    const phone = await Phone.connect();
    const { capabilities } = await phone.call('initialize', { clientInfo: { name: 'cdev-ios', version: '1.0.0' }, capabilities: {} });
    check(capabilities.features.includes('jsonrpc'), JSON.stringify(capabilities));
    const pairs = [['status/get', {}, '/api/status'], ['session/list', { limit: 3 }, '/api/claude/sessions?limit=3'], ['git/status', {}, '/api/git/status'],
        ['git/diff', { path: 'a.txt' }, '/api/git/diff?path=a.txt'], ['git/diff', { path: 'new.txt' }, '/api/git/diff?path=new.txt'],
        ['file/get', { path: 'a.txt' }, '/api/file?path=a.txt'], ['file/get', { path: 'bytes' }, '/api/file?path=by%74es'], ['file/list', {}, '/api/files/list']];
    for (const [method, params, where] of pairs) {
        const answer = await rest('GET', where);
        const { uptime_seconds: _, connected_clients: __, ...other } = answer.json;
        const { uptime_seconds: ___, connected_clients: ____, ...one } = await phone.call(method, params);
        same([answer.status, other], [200, one], where);
    }
    same((await rest('GET', '/health')).status, 200);
    phone.close();
});

test('REST: a run from its start to what was said', async () => {
    const listener = await Phone.connect();
    const started = await rest('POST', '/api/claude/run', { prompt: 'echo by REST' });
    same([started.status, started.json.status, started.json.prompt, started.json.mode], [200, 'started', 'echo by REST', 'new']);
    await listener.hears(isState('idle', started.json.session_id), 'its end');
    const messages = await rest('GET', `/api/claude/sessions/messages?session_id=${started.json.session_id}&limit=10&order=asc`);
    same(messages.json.messages.map(({ role, content }) => [role, content.trim()]), [['user', 'echo by REST'], ['assistant', 'by REST']]);
    same([messages.json.total, messages.json.has_more], [2, false]);
    const elements = await rest('GET', `/api/claude/sessions/elements?session_id=${started.json.session_id}`);
    same(elements.json.elements.map(({ type }) => type), ['user_input', 'assistant_text']);
    same((await rest('POST', '/api/claude/stop', '')).status, 409);
    listener.close();
});

test('REST: stop, busy, respond', async () => {
    const listener = await Phone.connect();
    const { json: { session_id } } = await rest('POST', '/api/claude/run', { prompt: 'hang' });
    const busy = await rest('POST', '/api/claude/run', { prompt: 'echo no' });
    same([busy.status, busy.json.code, busy.json.error], [409, -32001, 'An agent is already running']);
    same((await rest('GET', '/api/status')).json.agent_state, 'running');
    const stopped = await rest('POST', '/api/claude/stop');
    same([stopped.status, stopped.json], [200, { status: 'stopped' }]);
    await listener.hears(isState('idle', session_id), 'its end');
    await rest('POST', '/api/claude/run', { prompt: 'ask' });
    const { params } = await listener.hears(is('claude_permission'), 'its question');
    const unknown = await rest('POST', '/api/claude/respond', { tool_use_id: 'nope', response: 'yes' });
    same([unknown.status, unknown.json.code], [409, -32002]);
    const sent = await rest('POST', '/api/claude/respond', { tool_use_id: params.tool_use_id, response: 'allow' });
    same([sent.status, sent.json], [200, { status: 'sent', tool_use_id: params.tool_use_id }]);
    same((await rest('POST', '/api/claude/respond', { tool_use_id: params.tool_use_id, response: 'deny' })).status, 409);
    await listener.hears(isState('idle', params.session_id), 'the end of the question');
    listener.close();
});

test('REST: what is wrong is said with the right status', async () => {
    const rows = [
        [400, 'POST', '/api/claude/run', {}], [400, 'POST', '/api/claude/run', '{'], [400, 'POST', '/api/claude/run', '[]'],
        [400, 'POST', '/api/claude/run', { prompt: 'x', mode: 'again' }], [400, 'POST', '/api/claude/run', { prompt: 'x', agent_type: 'nobody' }],
        [404, 'POST', '/api/claude/run', { prompt: 'x', mode: 'continue', session_id: 'nope' }],
        [400, 'GET', '/api/claude/sessions/messages'], [404, 'GET', '/api/claude/sessions/messages?session_id=nope'],
        [400, 'GET', '/api/claude/sessions?limit=many'], [400, 'GET', '/api/file'], [404, 'GET', '/api/file?path=nope'], [404, 'GET', '/api/file?path=..%2Fx'],
        [404, 'GET', '/api/file?path=%2Fetc%2Fpasswd'], [404, 'GET', '/api/file?path=out'], [404, 'GET', '/api/file?path=.weft%2Ftoken'],
        [404, 'GET', '/api/file?path=.git%2Fconfig'], [404, 'GET', '/api/git/diff?path=nope'], [405, 'GET', '/api/claude/run'], [405, 'POST', '/api/status', {}],
        [404, 'GET', '/api/nothing'],
    ];
    for (const [status, verb, where, body] of rows) {
        const answer = await rest(verb, where, body);
        same(answer.status, status, `${verb} ${where} ${JSON.stringify(body)}`);
        if (status !== 405 && where !== '/api/nothing')
            check(typeof answer.json?.error === 'string' && answer.json.error, `${where} has no error: ${answer.body}`);
    }
});

test('REST: no token, a wrong one, a strange Host or Origin: nothing, on any path', async () => {
    const paths = [['GET', '/api/status'], ['GET', '/api/claude/sessions'], ['GET', '/api/claude/sessions/messages?session_id=x'], ['GET', '/api/claude/sessions/elements?session_id=x'],
        ['GET', '/api/git/status'], ['GET', '/api/git/diff?path=a.txt'], ['GET', '/api/file?path=a.txt'], ['GET', '/api/files/list'], ['GET', '/openrpc.json'],
        ['POST', '/api/claude/run'], ['POST', '/api/claude/stop'], ['POST', '/api/claude/respond']];
    for (const [verb, where] of paths) {
        const body = verb === 'POST' ? '{"prompt":"echo never","tool_use_id":"x","response":"yes"}' : undefined;
        same((await rest(verb, where, body, {})).status, 401, `${where} without a token`);
        check([401, 429].includes((await rest(verb, where, body, { Authorization: 'Bearer wrong' })).status), `${where} with a wrong one`); /* too many are slowed down */
        same((await rest(verb, where, body, { ...bearer, Host: 'evil.example' })).status, 421, `${where} with a strange Host`);
        same((await rest(verb, where, body, { ...bearer, Origin: 'http://evil.example' })).status, 403, `${where} from a strange page`);
    }
    for (const headers of [{}, { Authorization: 'Bearer wrong' }, { ...bearer, Host: 'evil.example' }, { ...bearer, Origin: 'http://evil.example' }]) {
        const phone = await webSocket(`ws://${host}/ws`, { headers }).catch(() => undefined);
        check(!phone, `a WebSocket with ${JSON.stringify(headers)} was opened`);
    }
    for (const open of ['/health', '/readyz'])
        same((await rest('GET', open, undefined, {})).status, 200, open);
    const phone = await Phone.connect();
    check(!JSON.stringify(await phone.call('session/list', { limit: 1000 })).includes('echo never'), 'something ran');
    phone.close();
});

/* ---- what docs/phones.md says ---- */

test('the lines of docs/phones.md work when pasted', async () => {
    const section = fs.readFileSync(path.join(source, 'docs/phones.md'), 'utf8').split('## Lines to paste')[1].split('\n## ')[0];
    const pasted = section.split('\n').map(line => line.trim()).filter(line => /^(weft call|curl) /.test(line));
    check(pasted.length >= 5, 'there are some');
    const phone = await Phone.connect();
    for (const line of pasted) {
        const { code, stdout, stderr } = await output('sh', ['-c', line.replace('curl', 'curl -sS')], { env: { ...process.env, PATH: `${path.dirname(weft)}:${process.env.PATH}`, HUB: host, WEFT_TOKEN: token } });
        if (code === 127)
            return skip('the lines of docs/phones.md', `${line.split(' ')[0]} is not installed`);
        same(code, 0, `${line}: ${stderr}`);
        const answer = JSON.parse(stdout);
        check(!answer.error, `${line}: ${stdout}`);
        if (answer.session_id && answer.status === 'started')
            await phone.hears(isState('idle', answer.session_id), 'its end');
    }
    phone.close();
});

/* ---- the example ---- */

const client = (where, protocol, ...words) => output(path.join(examples, 'cdev-client'), [...protocol ? ['--protocol', protocol] : [], where, ...words], { env: { ...process.env, WEFT_TOKEN: token } });

test('the example runs an agent by either protocol, and finds out which', async () => {
    for (const [protocol, said] of [[undefined, 'JSON-RPC'], ['auto', 'JSON-RPC'], ['jsonrpc', 'JSON-RPC'], ['rest', 'REST']]) {
        const { code, stdout, stderr } = await client(host, protocol, `echo hello ${protocol}`);
        same([code, stdout, stderr], [0, `hello ${protocol}\n`, `cdev-client: ${said}\n`], protocol);
    }
    const refused = await client(host, 'jsonrpc', '');
    same([refused.code, /-32602/.test(refused.stderr)], [1, true]);
});

/* A server of the time before JSON-RPC: it drops what it does not know without a word, or says that it does not know it. */
test('the example falls back where a server knows no JSON-RPC', async () => {
    const { WebSocketServer } = needed('ws');
    for (const words of ['nothing', 'no']) {
        const told = new Set();
        const server = http.createServer((asked, answer) => {
            asked.resume().on('end', () => {
                answer.setHeader('Content-Type', 'application/json').end(JSON.stringify({ status: 'started', session_id: 's1', pid: 1, mode: 'new' }));
                for (const payload of [['claude_log', { line: 'old line', stream: 'stdout' }], ['claude_status', { state: 'idle', session_id: 's1' }]])
                    told.forEach(socket => socket.send(JSON.stringify({ event: payload[0], timestamp: new Date().toISOString(), payload: payload[1] })));
            });
        }).listen(0, '127.0.0.1');
        await once(server, 'listening');
        const sockets = new WebSocketServer({ server, path: '/ws' });
        sockets.on('connection', socket => {
            told.add(socket);
            socket.on('message', text => {
                const { jsonrpc, id } = JSON.parse(text);
                if (jsonrpc && words === 'no')
                    socket.send(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
            });
        });
        const { code, stdout, stderr } = await client(`127.0.0.1:${server.address().port}`, 'auto', 'hello');
        same([code, stdout, stderr], [0, 'old line\n', 'cdev-client: REST\n'], words);
        sockets.close();
        server.closeAllConnections();
        server.close();
    }
});

/* ---- what changes in the project ---- */

test('a change of a file is told, what git makes of it, and its diff', async () => {
    const [phone, app] = [await Phone.connect(), await Phone.connect()];
    await phone.call('initialize', {});
    app.pipe.send(JSON.stringify({ command: 'get_status' }));
    await app.hears(({ event }) => event === 'status_response', 'the old form');
    /* The watch begins with the first client and needs a moment to look at everything: until then nothing is told. */
    let written = 0;
    const told = phone.hears(is('file_changed', ({ path: name }) => name.startsWith('watched-')), 'that a file was made');
    const writing = setInterval(() => fs.writeFileSync(path.join(project, `watched-${written++}.txt`), 'hello\n'), 200);
    const { params } = await told.finally(() => clearInterval(writing));
    same([params.change, params.size], ['created', 6]);
    check(/^ws-[0-9a-f]{16}$/.test(params.workspace_id) && params.timestamp, JSON.stringify(params));
    const status = await phone.hears(is('git_status_changed', ({ changed_files: files }) => files.includes(params.path)), 'git\'s status');
    same([status.params.branch, status.params.has_conflicts, status.params.is_clean, status.params.staged_count], ['main', false, false, 1]);
    const diff = await phone.hears(is('git_diff', ({ file }) => file.startsWith('watched-')), 'a diff');
    same([diff.params.additions, diff.params.deletions, diff.params.is_new_file, diff.params.is_staged], [1, 0, true, false]);
    check(diff.params.diff.includes('+hello'), diff.params.diff);
    await app.hears(({ event, payload }) => event === 'file_changed' && payload.path === params.path, 'the same in the old form');
    fs.appendFileSync(path.join(project, 'b.txt'), 'more\n');
    const changed = await phone.hears(is('git_diff', ({ file }) => file === 'b.txt'), 'the diff of a file that git knows');
    same([changed.params.additions, changed.params.is_new_file], [1, false]);
    fs.rmSync(path.join(project, params.path));
    await phone.hears(is('file_changed', ({ path: name, change }) => name === params.path && change === 'deleted'), 'that it was deleted');
    git('add', 'b.txt');
    git('commit', '-qm', 'second');
    await phone.hears(is('git_status_changed', params => params.staged_count === 0), 'a commit');
    same((await phone.call('status/get')).watcher_enabled, true);
    phone.close();
    app.close();
});

/* ---- before JSON-RPC ---- */

test('commands of the old protocol on the same socket', async () => {
    const app = await Phone.connect();
    const event = (name, right = () => true) => message => message.event === name && right(message.payload, message);
    const say = (command, payload, request_id) => app.pipe.send(JSON.stringify({ command, payload, request_id }));
    say('get_status', undefined, 's');
    const status = await app.hears(event('status_response', (_, { request_id }) => request_id === 's'), 'the status');
    for (const name of ['claude_state', 'connected_clients', 'repo_path', 'repo_name', 'uptime_seconds', 'agent_version', 'watcher_enabled', 'git_enabled'])
        check(name in status.payload, `${name} is missing`);
    say('run_claude', { prompt: 'echo old words', mode: 'new' });
    await app.hears(event('claude_log', ({ line }) => line === 'old words'), 'its line');
    await app.hears(event('claude_status', ({ state }) => state === 'idle'), 'its end');
    say('get_file', { path: 'a.txt' }, 'f');
    const { payload } = await app.hears(event('file_content'), 'the file');
    same([payload.content, payload.encoding, payload.size, payload.truncated], ['one\ntwo\n', 'utf-8', 8, false]);
    say('run_claude', { prompt: '' }, 'e');
    const error = await app.hears(event('error', (_, { request_id }) => request_id === 'e'), 'the error');
    same(error.payload.code, 'INVALID_PAYLOAD');
    check(app.told.every(message => message.event && message.timestamp && !message.jsonrpc), 'everything in the old form');
    /* What REST starts is told there too, as it was. */
    const { json: { session_id } } = await rest('POST', '/api/claude/run', { prompt: 'echo from REST' });
    await app.hears(event('claude_log', payload => payload.line === 'from REST' && payload.session_id === session_id), 'the line of a run by REST');
    await app.hears(event('claude_status', payload => payload.state === 'idle' && payload.session_id === session_id), 'its end');
    app.close();
});

/* ---- several on one session ---- */

/* The lines of a transcript and those that were told live, as one text. */
const textOf = messages => messages.filter(({ role, kind }) => role === 'assistant' && kind === 'text').map(({ content }) => content).join('');

/* A line may be cut by the end of a chunk: there the transcript and what is told meet within it. */
function linesOf(phone, messages, since_seq) {
    const live = phone.heard('claude_log').filter(({ line }) => !line.startsWith('{'));
    check(live.every(({ seq }) => seq > since_seq), 'something was told twice');
    const text = textOf(messages), lines = text.split('\n'), rest = live.map(({ line }) => line);
    const joined = lines.pop() + (rest.length && !text.endsWith('\n') ? rest.shift() : '');
    return [...lines, joined, ...rest].filter(line => line);
}

test('who joins late has everything once: the transcript, then what is told', async () => {
    const first = await Phone.connect();
    const { session_id } = await first.call('agent/run', { prompt: 'lines 20000' });
    const late = [];
    for (let i = 0; i < 4; i++) {
        const phone = await Phone.connect();
        const { since_seq } = await phone.call('session/watch', { session_id });
        const messages = [];
        for (let more = true; more;) {
            const page = await phone.call('session/messages', { session_id, until_seq: since_seq, offset: messages.length, limit: 500 });
            messages.push(...page.messages);
            more = page.has_more;
            same(page.last_seq, since_seq);
        }
        late.push({ phone, messages, since_seq });
    }
    const { params: end } = await first.hears(isState('idle', session_id), 'the end of the run');
    const whole = textOf((await first.call('session/messages', { session_id, limit: 500 })).messages);
    const want = whole.split('\n').filter(line => line);
    same(want.length, 20000);
    same(first.heard('claude_log').map(({ line }) => line).filter(line => line).length, 20000);
    for (const { phone, messages, since_seq } of late) {
        if (since_seq < end.seq) /* otherwise the run was over when it came */
            await phone.hears(isState('idle', session_id), 'the end of the run');
        same(linesOf(phone, messages, since_seq), want, 'all lines');
        phone.close();
    }
    first.close();
});

test('a question goes to all; the first answer wins; the rest are told', async () => {
    const phones = [];
    for (let i = 0; i < 5; i++)
        phones.push(await Phone.connect());
    const { session_id } = await phones[0].call('agent/run', { prompt: 'ask' });
    const mine = is('claude_permission', params => params.session_id === session_id);
    const asked = await Promise.all(phones.map(phone => phone.hears(mine, 'the question')));
    const { tool_use_id } = asked[0].params;
    const late = await Phone.connect();
    same((await late.call('initialize')).pending.map(question => question.tool_use_id), [tool_use_id]);
    const { pending, since_seq } = await late.call('session/watch', { session_id });
    same(pending.map(question => question.tool_use_id), [tool_use_id]);
    const { messages } = await late.call('session/messages', { session_id, until_seq: since_seq });
    same(messages[0].content, 'ask');
    const answers = await Promise.all(phones.map(phone => phone.ask('agent/respond', { tool_use_id, response: 'allow' })));
    same(answers.filter(({ result }) => result).length, 1, 'winners');
    same(answers.filter(({ error }) => error?.code === 409).length, 4, 'the others');
    const resolved = is('claude_permission_resolved', params => params.tool_use_id === tool_use_id);
    for (const phone of [...phones, late])
        same((await phone.hears(resolved, 'that it is answered')).params.state, 'answered');
    await late.hears(isState('idle', session_id), 'its end');
    const whole = textOf((await late.call('session/messages', { session_id })).messages);
    check(late.heard('claude_log').length > 0 && textOf(messages).length < whole.length, 'it came in the middle');
    same(linesOf(late, messages, since_seq).join(''), whole.replaceAll('\n', ''), 'what it knows');
    for (const phone of [...phones, late]) {
        same(phone.told.filter(resolved).length, 1, 'told once');
        phone.close();
    }
});

/* ---- an editor on the same session ---- */

class Editor extends Phone {
    static async connect() {
        const editor = new Editor(await webSocket(`ws://${host}/acp`, { headers: bearer }));
        await editor.call('initialize', { protocolVersion: 1 });
        return editor;
    }
    prompt(sessionId, text) {
        return this.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
    }
    said(kind = 'agent_message_chunk') {
        return this.heard('session/update').map(({ update }) => update).filter(update => update.sessionUpdate === kind).map(update => update.content.text).join('');
    }
}

test('an editor and a phone on one session: who joins late has everything once', async () => {
    const editor = await Editor.connect();
    const { sessionId: session_id } = await editor.call('session/new', { cwd: fs.realpathSync(project), mcpServers: [] });
    same((await editor.prompt(session_id, 'echo before')).stopReason, 'end_turn');
    const turn = editor.prompt(session_id, 'lines 5000');
    await editor.hears(is('session/update', ({ update }) => update.content?.text?.includes('line 1')), 'the turn to begin');
    const phone = await Phone.connect(), second = await Editor.connect();
    const { since_seq } = await phone.call('session/watch', { session_id });
    const messages = [];
    for (let more = true; more;) {
        const page = await phone.call('session/messages', { session_id, until_seq: since_seq, offset: messages.length, limit: 500 });
        messages.push(...page.messages);
        more = page.has_more;
    }
    await second.call('session/load', { sessionId: session_id, cwd: fs.realpathSync(project), mcpServers: [] });
    same((await turn).stopReason, 'end_turn');
    /* The phone prompts, and the editors hear its words. */
    await phone.hears(isState('idle', session_id), 'the end of the turn');
    phone.told = phone.told.filter(message => !isState('idle', session_id)(message));
    await phone.call('agent/run', { prompt: 'echo from the phone', mode: 'continue', session_id });
    await phone.hears(isState('idle', session_id), 'the end of its run');
    const last = is('session/update', ({ update }) => update.sessionUpdate === 'agent_message_chunk' && update.content.text.includes('from the phone'));
    await editor.hears(last, 'what the phone made the agent say');
    await second.hears(last, 'the same');
    const lines = Array.from({ length: 5000 }, (_, i) => `line ${i + 1}`);
    const whole = `before${lines.join('\n')}\nfrom the phone`;
    same(editor.said(), whole, 'the editor that was there');
    same(second.said(), whole, 'the editor that came late');
    same(editor.said('user_message_chunk'), 'echo from the phone');
    same(second.said('user_message_chunk'), 'echo beforelines 5000echo from the phone');
    same(linesOf(phone, messages, since_seq).join(''), ['before', ...lines, 'from the phone'].join(''), 'the phone that came late');
    [phone, editor, second].forEach(one => one.close());
});

test('an editor and a phone are both asked, and the first answer wins', async () => {
    for (const winner of ['phone', 'editor']) {
        const editor = await Editor.connect(), phone = await Phone.connect();
        const { sessionId: session_id } = await editor.call('session/new', { cwd: fs.realpathSync(project), mcpServers: [] });
        await phone.call('session/watch', { session_id });
        const turn = editor.prompt(session_id, 'ask');
        const { params: { tool_use_id } } = await phone.hears(is('claude_permission', params => params.session_id === session_id), 'the phone\'s question');
        const question = await editor.hears(is('session/request_permission'), 'the editor\'s question');
        const choose = () => editor.pipe.send(JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { outcome: { outcome: 'selected',
            optionId: question.params.options.find(({ kind }) => kind === 'reject_once').optionId } } }));
        if (winner === 'phone') {
            same((await phone.call('agent/respond', { tool_use_id, response: 'allow' })).status, 'sent');
            await editor.hears(is('$/cancel_request', ({ requestId }) => requestId === question.id), 'that it is withdrawn');
            choose(); /* too late */
        } else
            choose();
        same((await phone.hears(is('claude_permission_resolved', params => params.tool_use_id === tool_use_id), 'that it is answered')).params.state, 'answered');
        if (winner === 'editor')
            same((await phone.ask('agent/respond', { tool_use_id, response: 'allow' })).error?.code, 409);
        same((await turn).stopReason, 'end_turn');
        same(/You chose (\w+)/.exec(editor.said())[1], winner === 'phone' ? 'allow_once' : 'reject_once');
        phone.close();
        editor.close();
    }
});

test('the end of a session is told to phones', async () => {
    const editor = await Editor.connect(), phone = await Phone.connect();
    for (const method of ['session/close', 'session/delete']) {
        const { sessionId: session_id } = await editor.call('session/new', { cwd: fs.realpathSync(project), mcpServers: [] });
        await phone.call('session/watch', { session_id });
        await editor.call(method, { sessionId: session_id });
        const { params } = await phone.hears(is('session_end', one => one.session_id === session_id), 'session_end');
        check(params.session_id === session_id && typeof (params.reason ?? '') === 'string', JSON.stringify(params));
    }
    phone.close();
    editor.close();
});

await run();
