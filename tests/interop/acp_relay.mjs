#!/usr/bin/env node
/* "weft acp" outlives its hub: the hub is killed, stopped and started again beneath an editor, which is told everything once, whose
 * open prompts end truthfully, and which never has to connect again. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { build, check, cleanup, patiently, run, same, scratch, test } from './kit.mjs';

const weft = path.join(build, 'weft');
delete process.env.WEFT_STORE_KIND; /* what is kept is the point */

/* ---- a project ---- */

class Project {
    constructor(name, config = {}) {
        this.folder = scratch(name);
        fs.mkdirSync(this.folder, { mode: 0o700 });
        fs.mkdirSync(scratch(`${name}-config/weft`), { recursive: true });
        fs.writeFileSync(scratch(`${name}-config/weft/config.json`), JSON.stringify(config));
        this.env = { ...process.env, XDG_CONFIG_HOME: scratch(`${name}-config`), XDG_STATE_HOME: scratch(`${name}-state`) };
        cleanup(async () => {
            await this.verb('stop');
            const log = path.join(this.folder, '.weft/daemon.log');
            if (fs.existsSync(log) && /Sanitizer|runtime error:/.test(fs.readFileSync(log, 'utf8')))
                console.log(fs.readFileSync(log, 'utf8')), process.exit(1);
        });
    }
    async verb(...args) {
        const child = spawn(weft, args, { cwd: this.folder, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
        let text = '';
        child.stdout.setEncoding('utf8').on('data', piece => { text += piece; });
        child.stderr.resume();
        const [code] = await once(child, 'close');
        return { code, text };
    }
    pid() {
        return Number(/\d+/.exec(fs.readFileSync(path.join(this.folder, '.weft/daemon.pid'), 'utf8'))[0]);
    }
    kill() {
        process.kill(this.pid(), 'SIGKILL');
    }
}

/* ---- an editor ---- */

class Editor {
    messages = [];
    watchers = new Set();
    talk = '';
    last = 0;
    constructor(project) {
        this.project = project;
        this.child = spawn(weft, ['acp'], { cwd: project.folder, env: project.env, stdio: ['pipe', 'pipe', 'pipe'] });
        this.exited = once(this.child, 'exit');
        this.child.stderr.setEncoding('utf8').on('data', text => { this.talk += text; });
        this.child.stdin.on('error', () => {});
        let rest = '';
        this.child.stdout.setEncoding('utf8').on('data', text => {
            rest += text;
            for (let at; (at = rest.indexOf('\n')) >= 0; rest = rest.slice(at + 1))
                this.messages.push(JSON.parse(rest.slice(0, at)));
            this.watchers.forEach(look => look());
        });
        this.exited.then(() => this.watchers.forEach(look => look()));
        cleanup(async () => {
            this.child.stdin.end();
            await this.exited;
            check(!/Sanitizer|runtime error:/.test(this.talk), this.talk);
        });
    }
    say(message) {
        this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    }
    when(right, what) {
        return patiently(new Promise((resolve, reject) => {
            const look = () => {
                const found = this.messages.find(right);
                if (found || this.child.exitCode !== null) {
                    this.watchers.delete(look);
                    found ? resolve(found) : reject(new Error(`weft acp ended: ${this.talk}`));
                }
            };
            this.watchers.add(look);
            look();
        }), what);
    }
    ask(method, params) {
        const id = ++this.last;
        this.say({ id, method, params });
        return this.when(one => one.id === id && !one.method, `the answer to ${method}`);
    }
    async open() {
        const { result } = await this.ask('initialize', { protocolVersion: 1 });
        same(result.protocolVersion, 1);
        this.session = (await this.ask('session/new', { cwd: this.project.folder, mcpServers: [] })).result.sessionId;
    }
    prompt(text) {
        return this.ask('session/prompt', { sessionId: this.session, prompt: [{ type: 'text', text }] });
    }
    updates(kind) {
        return this.messages.filter(one => one.method === 'session/update' && one.params.update.sessionUpdate === kind).map(one => one.params.update);
    }
    said() {
        return this.updates('agent_message_chunk').map(one => one.content.text).join('');
    }
    begun() {
        return this.when(one => one.params?.update?.content?.text?.includes('You said'), 'the turn to begin');
    }
}

const project = new Project('project'), editor = new Editor(project);

test('a hub is started for it', async () => {
    await editor.open();
    same((await editor.prompt('echo one')).result?.stopReason, 'end_turn');
    same(editor.said(), 'one');
});

test('the hub dies in a turn: the prompt ends truthfully, and the next one runs', async () => {
    const turn = editor.prompt('slow 60s hello');
    await editor.begun();
    const before = project.pid();
    project.kill();
    const { error } = await turn;
    same([error?.code, error?.data?.reason], [-32603, 'daemonRestarted']);
    check(project.pid() !== before, 'another hub runs');
    same((await editor.prompt('echo two')).result?.stopReason, 'end_turn');
    check(editor.said().endsWith('two'), editor.said());
    same(editor.updates('user_message_chunk'), [], 'its own words');
});

test('a person stops the hub: it stays stopped until the editor wants something', async () => {
    same((await project.verb('stop')).code, 0);
    check(!fs.existsSync(path.join(project.folder, '.weft/daemon.sock')), 'it is stopped');
    const { result } = await editor.ask('session/list', {});
    same(result.sessions.map(one => one.sessionId), [editor.session]);
    same((await editor.prompt('echo three')).result?.stopReason, 'end_turn');
});

test('a hub that somebody else starts is found, and what happens there is told once', async () => {
    same((await project.verb('restart')).code, 0);
    const other = new Editor(project);
    same((await other.ask('initialize', { protocolVersion: 1 })).result.protocolVersion, 1);
    other.session = editor.session;
    await other.ask('session/resume', { sessionId: editor.session, cwd: project.folder });
    same((await other.prompt('echo from another editor')).result?.stopReason, 'end_turn');
    await editor.when(one => one.params?.update?.content?.text === 'from another editor', 'the words of the other editor');
    same(editor.updates('user_message_chunk').map(one => one.content.text), ['echo from another editor']);
    same(editor.said().split('from another editor').length, 2, 'once');
    same(editor.said().split('three').length, 2, 'nothing is told again');
});

test('a question of a hub that has gone is withdrawn, and a late answer to it answers nothing else', async () => {
    const questions = () => editor.messages.filter(one => one.method === 'session/request_permission');
    const turn = editor.prompt('edit something');
    const first = await editor.when(one => one.method === 'session/request_permission', 'the question');
    project.kill();
    same((await turn).error?.data?.reason, 'daemonRestarted');
    check(editor.messages.some(one => one.method === '$/cancel_request' && one.params.requestId === first.id), 'it was withdrawn');
    const again = editor.prompt('edit something');
    const second = await editor.when(one => one.method === 'session/request_permission' && one !== first, 'the next question');
    check(first.id !== second.id, 'its id is another');
    const choose = (question, kind) => editor.say({ id: question.id, result: { outcome: { outcome: 'selected', optionId: question.params.options.find(one => one.kind === kind).optionId } } });
    choose(first, 'allow_once');
    choose(second, 'reject_once');
    same((await again).result?.stopReason, 'end_turn');
    check(editor.said().includes('it was not allowed'), 'the second answer counted');
    same(questions().length, 2);
});

test('it ends with its editor', async () => {
    const one = new Editor(project);
    await one.open();
    one.child.stdin.end();
    same((await patiently(one.exited, 'its end'))[0], 0);
});

test('where tasks are queued again, the prompt goes on, and is run once more and not twice', async () => {
    const keeps = new Project('requeue', { tasks: { on_restart: 'requeue' } }), writer = new Editor(keeps);
    await writer.open();
    const turn = writer.prompt('slow 3s hello');
    await writer.begun();
    keeps.kill();
    same((await turn).result?.stopReason, 'end_turn');
    const { text } = await keeps.verb('call', 'task.list', '--json');
    same(JSON.parse(text).map(one => one.state), ['completed'], text);
});

test('an editor that reads too slowly is told that something is missing, before the turn is said to be over', async () => {
    const fast = new Project('fast'), slow = new Editor(fast);
    await slow.open();
    slow.child.stdout.pause();
    const turn = slow.prompt('lines 200000');
    for (let state; state !== 'completed';) {
        await new Promise(resolve => setTimeout(resolve, 200));
        const { text } = await fast.verb('call', 'task.list', '--json');
        [state] = text ? JSON.parse(text).map(one => one.state) : [];
        check(state !== 'failed', text);
    }
    slow.child.stdout.resume();
    same((await turn).result?.stopReason, 'end_turn');
    const lines = slow.said().trimEnd().split('\n'), whole = lines.length === 200000;
    const missing = slow.updates('agent_thought_chunk').filter(one => one.content.text.includes('is missing here'));
    check(lines.every((line, at) => line === `line ${at + 1}`) || !whole, 'in order');
    same(missing.length, whole ? 0 : 1, `${lines.length} lines`);
    const { id } = await turn;
    check(slow.messages.findLastIndex(one => one.method === 'session/update') < slow.messages.findIndex(one => one.id === id && !one.method), 'the answer is last');
});

await run();
