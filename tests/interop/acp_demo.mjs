#!/usr/bin/env node
/* The demo agent (weft __demo), driven by the client of the official ACP SDK. Everything it says is checked with ACP's own
 * JSON Schema by ajv as well, because a client may be more tolerant than its protocol. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { build, check, cleanup, needed, output, patiently, run, same, scratch, test } from './kit.mjs';
import { conforms, refusesEmpty } from './acp_schema.mjs';

const acp = needed('@agentclientprotocol/sdk');
const { agent: to, client: from } = acp.methods;
const weft = path.join(build, 'weft');

/* ---- the schema ---- */

const answers = { [to.initialize]: 'InitializeResponse', [to.session.new]: 'NewSessionResponse', [to.session.load]: 'LoadSessionResponse',
    [to.session.resume]: 'ResumeSessionResponse', [to.session.prompt]: 'PromptResponse' };

/* ---- one agent, with a client of the SDK, and a record of what went by ---- */

class Demo {
    messages = []; /* what the agent sent */
    asked = {};    /* methods by id */
    choice = 'allow_once';
    questions = [];
    constructor() {
        const env = { ...process.env, XDG_STATE_HOME: scratch('state') };
        this.child = spawn(weft, ['__demo'], { stdio: ['pipe', 'pipe', 'pipe'], env });
        this.exited = once(this.child, 'exit');
        this.stderr = '';
        this.child.stderr.setEncoding('utf8').on('data', text => { this.stderr += text; });
        this.child.stdin.on('error', () => {});
        const input = this.#tee(this.child.stdout, line => this.messages.push(JSON.parse(line)));
        const toAgent = new PassThrough();
        this.#tee(toAgent, line => this.#note(JSON.parse(line))).pipe(this.child.stdin);
        const stream = acp.ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(input));
        this.connection = acp.client({ name: 'test' })
            .onRequest(from.session.requestPermission, ({ params }) => this.#permit(params))
            .onNotification(from.session.update, () => {})
            .connect(stream);
        this.agent = this.connection.agent;
        cleanup(() => this.end());
    }
    #tee(readable, onLine) {
        const out = new PassThrough();
        let rest = '';
        readable.on('data', bytes => {
            const lines = (rest + bytes.toString('utf8')).split('\n');
            rest = lines.pop();
            lines.forEach(onLine);
        });
        return readable.pipe(out);
    }
    #note(message) {
        if (message.method && message.id !== undefined)
            this.asked[message.id] = message.method;
    }
    #permit(params) {
        this.questions.push(params);
        if (typeof this.choice === 'function')
            return this.choice(params);
        return { outcome: { outcome: 'selected', optionId: this.choice } };
    }
    async open(cwd = scratch('project')) {
        fs.mkdirSync(cwd, { recursive: true });
        this.cwd = cwd;
        await this.agent.request(to.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
        ({ sessionId: this.id } = await this.agent.request(to.session.new, { cwd, mcpServers: [] }));
        return this;
    }
    prompt(text) {
        return patiently(this.agent.request(to.session.prompt, { sessionId: this.id, prompt: [{ type: 'text', text }] }), 'the turn to end');
    }
    get updates() {
        return this.messages.filter(one => one.method === from.session.update).map(one => one.params.update);
    }
    of(kind) {
        return this.updates.filter(one => one.sessionUpdate === kind);
    }
    get said() {
        return this.of('agent_message_chunk').map(one => one.content.text).join('');
    }
    async until(condition, what) {
        while (!condition())
            await patiently(once(this.child.stdout, 'data'), what);
    }
    validate() {
        for (const { method, params, id, result } of this.messages) {
            if (method === from.session.update)
                conforms(params, 'SessionNotification');
            else if (method === from.session.requestPermission)
                conforms(params, 'RequestPermissionRequest');
            else if (result !== undefined)
                conforms(result, answers[this.asked[id]]);
            else
                check(id !== undefined, `unexpected ${method}`);
        }
    }
    async end() {
        this.child.stdin.end();
        const [code, signal] = await patiently(this.exited, 'the agent to exit');
        check(!/Sanitizer|runtime error:/.test(this.stderr), this.stderr);
        return signal ?? code;
    }
}

const refusal = promise => promise.then(() => { throw new Error('it was not refused'); }, error => error);
const scratchFile = demo => path.join(demo.cwd, 'weft-demo.txt');
const marker = /^This file was written by Weft's demo agent/;

/* ---- beginning ---- */

test('the schema refuses what is wrong', async () => {
    for (const name of ['SessionNotification', 'RequestPermissionRequest', ...Object.values(answers).slice(0, 2)])
        check(refusesEmpty(name), name);
});

test('a version that it does not speak is not promised', async () => {
    for (const protocolVersion of [1, 65535, 2, 0]) {
        const demo = new Demo();
        const answer = await demo.agent.request('initialize', { protocolVersion, clientCapabilities: {} });
        same(answer.protocolVersion, 1);
        conforms(answer, 'InitializeResponse');
        same(await demo.end(), 0);
    }
});

test('what it does not know, it refuses', async () => {
    const demo = await new Demo().open();
    same((await refusal(demo.agent.request('session/frobnicate', {}))).code, -32601);
    same((await refusal(demo.agent.request(to.session.prompt, { sessionId: 'nobody', prompt: [] }))).code, -32002);
    same((await refusal(demo.agent.request(to.session.load, { sessionId: '../../etc/passwd', cwd: '/', mcpServers: [] }))).code, -32002);
    same((await refusal(demo.agent.request(to.session.load, { sessionId: 'demo-0123456789abcdef', cwd: '/', mcpServers: [] }))).code, -32002);
    same((await refusal(demo.agent.request(to.session.new, { cwd: 'relative', mcpServers: [] }))).code, -32602);
    same((await refusal(demo.agent.request(to.session.new, { cwd: '/' }))).code, -32602);
    same(await demo.end(), 0);
});

test('help names every word', async () => {
    const { stdout, code } = await output(weft, ['__demo', '--help']);
    same(code, 0);
    for (const word of ['edit', 'ask', 'quiet', 'echo', 'lines', 'slow', 'fail', 'refuse', 'crash', 'exit', 'hang'])
        check(stdout.includes(word), word);
});

/* ---- turns ---- */

test('a plain prompt: text, a plan that is completed, a tool call, no question, nothing changed', async () => {
    const demo = await new Demo().open(scratch('plain'));
    same((await demo.prompt('hello')).stopReason, 'end_turn');
    demo.validate();
    check(demo.of('agent_message_chunk').length >= 3, 'several chunks');
    check(demo.said.includes('"hello"') && demo.said.includes('echo TEXT'), demo.said);
    const plans = demo.of('plan').map(one => one.entries.map(entry => entry.status));
    same(plans[0], ['in_progress', 'pending', 'pending']);
    same(plans.at(-1), ['completed', 'completed', 'completed']);
    same(demo.of('tool_call').map(one => one.kind), ['read']);
    same(demo.of('tool_call_update').map(one => one.status), ['completed']);
    same(demo.questions, []);
    same(fs.readdirSync(demo.cwd), []);
    same(await demo.end(), 0);
});

test('an edit that is allowed', async () => {
    const demo = await new Demo().open(scratch('allowed'));
    demo.choice = params => {
        check(!fs.existsSync(scratchFile(demo)), 'nothing is written before the answer');
        const [diff] = params.toolCall.content;
        same([diff.type, diff.path, diff.oldText], ['diff', scratchFile(demo), null]);
        demo.shown = diff.newText;
        return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
    };
    same((await demo.prompt('please write a poem')).stopReason, 'end_turn');
    demo.validate();
    same(demo.questions[0].options.map(option => option.kind), ['allow_once', 'allow_always', 'reject_once', 'reject_always']);
    same(fs.readFileSync(scratchFile(demo), 'utf8'), demo.shown);
    check(marker.test(demo.shown) && demo.shown.includes('please write a poem'), demo.shown);
    same(demo.of('tool_call').map(one => [one.kind, one.status]), [['edit', 'pending']]);
    same(demo.of('tool_call_update').map(one => one.status), ['in_progress', 'completed']);
    /* Once is once: the next edit asks again, and adds to the file. */
    demo.choice = 'allow_once';
    await demo.prompt('fix it');
    same(demo.questions.length, 2);
    same(demo.questions[1].toolCall.content[0].oldText, demo.shown);
    same(fs.readFileSync(scratchFile(demo), 'utf8'), `${demo.shown}- fix it\n`);
    same(await demo.end(), 0);
});

test('an edit that is rejected, or that nobody decided', async () => {
    for (const outcome of [{ outcome: 'selected', optionId: 'reject_once' }, { outcome: 'selected', optionId: 'no such option' }, { outcome: 'cancelled' }]) {
        const demo = await new Demo().open(scratch('rejected'));
        demo.choice = () => ({ outcome });
        same((await demo.prompt('edit something')).stopReason, 'end_turn');
        demo.validate();
        same(demo.of('tool_call_update').map(one => one.status), ['failed']);
        same(fs.readdirSync(demo.cwd), []);
        same(await demo.end(), 0);
    }
});

test('an answer for good is remembered, also by the next process', async () => {
    const demo = await new Demo().open(scratch('always'));
    demo.choice = 'allow_always';
    await demo.prompt('edit one');
    await demo.prompt('edit two');
    same(demo.questions.length, 1);
    same(await demo.end(), 0);
    const next = new Demo();
    await next.agent.request(to.initialize, { protocolVersion: 1, clientCapabilities: {} });
    await next.agent.request(to.session.resume, { sessionId: demo.id, cwd: demo.cwd });
    same(next.updates, []);
    Object.assign(next, { id: demo.id, cwd: demo.cwd });
    await next.prompt('edit three');
    same(next.questions, []);
    same(fs.readFileSync(scratchFile(demo), 'utf8').split('\n').slice(1, 4), ['- edit one', '- edit two', '- edit three']);
    next.validate();
    same(await next.end(), 0);
});

test('somebody else\'s file is not touched', async () => {
    const demo = await new Demo().open(scratch('theirs'));
    fs.writeFileSync(scratchFile(demo), 'mine\n');
    fs.writeFileSync(path.join(demo.cwd, 'target'), 'also mine\n');
    fs.symlinkSync('target', path.join(demo.cwd, 'weft-demo-2.txt'));
    await demo.prompt('edit');
    same(fs.readFileSync(scratchFile(demo), 'utf8'), 'mine\n');
    same(fs.readFileSync(path.join(demo.cwd, 'target'), 'utf8'), 'also mine\n');
    check(marker.test(fs.readFileSync(path.join(demo.cwd, 'weft-demo-3.txt'), 'utf8')), 'it took the next name');
    same(await demo.end(), 0);
});

test('what was allowed is the change that was shown', async () => {
    const demo = await new Demo().open(scratch('stale'));
    await demo.prompt('edit one');
    demo.choice = () => {
        fs.appendFileSync(scratchFile(demo), 'a line of a person\n');
        return { outcome: { outcome: 'selected', optionId: 'allow_once' } };
    };
    await demo.prompt('edit two');
    same(demo.of('tool_call_update').at(-1).status, 'failed');
    check(fs.readFileSync(scratchFile(demo), 'utf8').endsWith('a line of a person\n'), 'the line is still there');
    same(await demo.end(), 0);
});

test('ask, and the answer in its own words', async () => {
    const demo = await new Demo().open(scratch('ask'));
    demo.choice = 'reject_once';
    same((await demo.prompt('ask me')).stopReason, 'end_turn');
    demo.validate();
    same(demo.questions.length, 1);
    check(demo.said.endsWith('You chose reject_once.\n'), demo.said);
    same(fs.readdirSync(demo.cwd), []);
    same(await demo.end(), 0);
});

test('words', async () => {
    const demo = await new Demo().open(scratch('words'));
    const rows = [
        ['echo  two blanks ä \u{1F980}', ' two blanks ä \u{1F980}'],
        ['slow 50ms echo a b  c\nd', 'a b  c\nd'],
        ['echo', ''],
        ['lines 3', 'line 1\nline 2\nline 3\n'],
        ['ECHO loud', 'loud'],
    ];
    for (const [prompt, said] of rows) {
        demo.messages.length = 0;
        same((await demo.prompt(prompt)).stopReason, 'end_turn', prompt);
        same(demo.said, said, prompt);
    }
    for (const prompt of ['quiet edit', 'please fix the crash, no questions', 'the failure', 'echoes']) {
        demo.messages.length = 0;
        same((await demo.prompt(prompt)).stopReason, 'end_turn', prompt);
        check(demo.of('plan').length > 0, `${prompt} is a plain prompt`);
    }
    same(demo.questions, []);
    same(fs.readdirSync(demo.cwd), []);
    demo.validate();
    same(await demo.end(), 0);
});

test('many lines arrive whole, however slowly they are read', async () => {
    const demo = await new Demo().open(scratch('lines'));
    const turn = demo.prompt('lines 50000');
    demo.child.stdout.pause();
    await new Promise(resolve => setImmediate(resolve));
    demo.child.stdout.resume();
    same((await turn).stopReason, 'end_turn');
    const lines = demo.said.split('\n');
    same([lines.length, lines[0], lines[49999]], [50001, 'line 1', 'line 50000']);
    same(await demo.end(), 0);
});

/* ---- turns that end otherwise ---- */

test('an error, a refusal', async () => {
    const demo = await new Demo().open();
    const error = await refusal(demo.prompt('fail'));
    same(error.code, -32603);
    same((await demo.prompt('refuse')).stopReason, 'refusal');
    same((await demo.prompt('echo still here')).stopReason, 'end_turn');
    same(await demo.end(), 0);
});

test('a crash, an exit', async () => {
    for (const [prompt, end] of [['crash', 'SIGABRT'], ['exit 3', 3]]) {
        const demo = await new Demo().open(scratch('crash'));
        await refusal(demo.prompt(prompt));
        const [code, signal] = await patiently(demo.exited, 'the crash');
        same(signal ?? code, end);
        check(demo.said.includes('as asked'), 'it said something before');
        same(fs.readdirSync(demo.cwd), []);
    }
});

test('a cancelled turn ends with "cancelled", and nothing follows', async () => {
    const demo = await new Demo().open();
    const turn = demo.prompt('slow 1h echo a b c');
    await demo.agent.notify(to.session.cancel, { sessionId: demo.id });
    same((await turn).stopReason, 'cancelled');
    const count = demo.messages.length;
    same((await demo.prompt('echo next')).stopReason, 'end_turn');
    same(demo.messages.slice(count).map(one => one.method ?? one.result), [from.session.update, { stopReason: 'end_turn' }]);
    same(await demo.end(), 0);
});

test('a turn is cancelled while its question is open', async () => {
    const demo = await new Demo().open(scratch('cancelled'));
    demo.choice = async () => {
        await demo.agent.notify(to.session.cancel, { sessionId: demo.id });
        return { outcome: { outcome: 'cancelled' } };
    };
    same((await demo.prompt('edit')).stopReason, 'cancelled');
    same(fs.readdirSync(demo.cwd), []);
    same((await demo.prompt('echo next')).stopReason, 'end_turn');
    same(demo.messages.at(-2).params.update.content.text, 'next');
    same(await demo.end(), 0);
});

test('two turns at once are one too many, two sessions are not', async () => {
    const demo = await new Demo().open();
    const first = demo.id, turn = demo.prompt('slow 1h echo x');
    same((await refusal(demo.prompt('echo y'))).code, -32600);
    ({ sessionId: demo.id } = await demo.agent.request(to.session.new, { cwd: demo.cwd, mcpServers: [] }));
    same((await demo.prompt('echo z')).stopReason, 'end_turn');
    await demo.agent.notify(to.session.cancel, { sessionId: first });
    same((await turn).stopReason, 'cancelled');
    same(await demo.end(), 0);
});

test('it ends with its input, also in the middle of a turn', async () => {
    for (const prompt of ['slow 1h echo x', 'ask']) {
        const demo = await new Demo().open();
        demo.choice = () => new Promise(() => {});
        demo.prompt(prompt).catch(() => {});
        await demo.until(() => prompt !== 'ask' || demo.questions.length, 'the question');
        same(await demo.end(), 0, prompt);
    }
});

test('deaf to everything but SIGKILL', async () => {
    const demo = await new Demo().open();
    demo.prompt('hang').catch(() => {});
    await demo.until(() => demo.said.includes('not answer'), 'its last words');
    const status = () => fs.readFileSync(`/proc/${demo.child.pid}/status`, 'utf8');
    const ignores = () => BigInt(`0x${/^SigIgn:\s*(\w+)/m.exec(status())[1]}`) & (1n << 14n);
    for (const end = Date.now() + 30000; !ignores() && Date.now() < end;)
        await new Promise(resolve => setTimeout(resolve, 5));
    check(ignores(), 'SIGTERM is ignored');
    await demo.agent.notify(to.session.cancel, { sessionId: demo.id });
    demo.child.kill('SIGTERM');
    demo.child.kill('SIGKILL');
    same(await demo.end(), 'SIGKILL');
});

/* ---- going on ---- */

test('a session is loaded by another process, with its history', async () => {
    const demo = await new Demo().open();
    await demo.prompt('echo first answer');
    await demo.prompt('echo second answer');
    same(await demo.end(), 0);
    const next = new Demo();
    const { agentCapabilities } = await next.agent.request(to.initialize, { protocolVersion: 1, clientCapabilities: {} });
    same([agentCapabilities.loadSession, agentCapabilities.sessionCapabilities.resume], [true, {}]);
    await next.agent.request(to.session.load, { sessionId: demo.id, cwd: demo.cwd, mcpServers: [] });
    same(next.updates.map(one => [one.sessionUpdate, one.content.text]), [['user_message_chunk', 'echo first answer'],
        ['agent_message_chunk', 'first answer'], ['user_message_chunk', 'echo second answer'], ['agent_message_chunk', 'second answer']]);
    check(next.messages.at(-1).result, 'the history comes before the answer');
    next.id = demo.id;
    await next.prompt('quiet');
    check(next.said.includes('turn 3 of our conversation'), next.said);
    next.validate();
    same(await next.end(), 0);
});

await run();
