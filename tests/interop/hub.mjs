/* What the tests of a running hub share: "weft serve" in a folder of its own, and clients on its socket. Not a test itself. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { build, cleanup, failIfSanitizer, lines, message, patiently, scratch } from './kit.mjs';

export const weft = path.resolve(process.env.WEFT ?? path.join(build, 'weft'));

/* A hub whose folder, configuration and state belong to this test. It is stopped when the script ends. */
export class Hub {
    stderr = ''; /* since it was started last */
    host; /* host:port of HTTP and WebSocket; a hub that is started again may have another port */
    /* config: what its config.json says, if there is one. env: variables besides those of the test. name: of its folder. args: of weft serve. */
    constructor({ config, env, name = 'project', args = [] } = {}) {
        this.folder = scratch(name);
        this.args = args;
        fs.mkdirSync(this.folder, { mode: 0o700 });
        this.env = { ...process.env, ...env, XDG_CONFIG_HOME: scratch('config'), XDG_STATE_HOME: scratch('state') };
        if (!config)
            return;
        fs.mkdirSync(scratch('config/weft'), { recursive: true });
        fs.writeFileSync(scratch('config/weft/config.json'), JSON.stringify(config));
    }
    /* Start it and wait until it listens. Also after a stop(). */
    async start() {
        if (!this.child)
            cleanup(() => this.stop());
        this.stderr = '';
        this.child = spawn(weft, ['serve', ...this.args], { cwd: this.folder, env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
        this.child.stderr.setEncoding('utf8').on('data', text => { this.stderr += text; });
        this.exited = once(this.child, 'exit');
        const failed = this.exited.then(([code]) => { throw new Error(`weft serve ended (${code}): ${this.stderr}`); });
        failed.catch(() => {});
        while (!/^Try, /m.test(this.stderr)) /* this comes after all that it listens on */
            await patiently(Promise.race([once(this.child.stderr, 'data'), failed]), 'the hub to listen');
        this.host = /listening on ws:\/\/(\S+)\/ws/.exec(this.stderr)[1];
        return this;
    }
    async stop(signal = 'SIGTERM') {
        if (this.alive)
            this.child.kill(signal);
        await patiently(this.exited, 'the hub to stop').catch(error => {
            this.child.kill('SIGKILL');
            throw error;
        });
        failIfSanitizer('weft serve', this.stderr);
    }
    get alive() {
        return this.child.exitCode === null && this.child.signalCode === null;
    }
    get socket() {
        return `unix:${path.join(this.folder, '.weft/daemon.sock')}`;
    }
    get token() {
        return fs.readFileSync(path.join(this.folder, '.weft/token'), 'utf8').trim();
    }
}

/* ---- clients ---- */

/* A connection to the hub's socket. The result is ask(method, params), which resolves to the whole answer. Every message that is
 * not an answer goes to hear(message, pipe). */
export async function connectTo(hub, { hear = () => {}, patience } = {}) {
    const pipe = await lines(hub.socket);
    const open = new Map();
    let lastId = 0;
    pipe.inbox.deliver(text => {
        const one = JSON.parse(text);
        if (one.method)
            hear(one, pipe);
        else
            open.get(one.id)?.(one);
    });
    return (method, params) => {
        const id = ++lastId;
        const answer = new Promise(resolve => open.set(id, resolve));
        pipe.send(message(method, params, id));
        return patiently(answer, `the answer to ${method} ${JSON.stringify(params)?.slice(0, 200)}`, patience);
    };
}

/* Is it an event of one of these types about the task? */
export const about = (taskId, ...types) => one => types.includes(one.type) && one.data.taskId === taskId;

/* A client that remembers every event of the hub in events.
 *   call(method, params)   its result; an error is thrown
 *   event(is, what)        the first event that is so, whether it has come or will
 *   ended(taskId)          the event that ended the task
 *   output(taskId)         what the task has said, when it has ended
 *   updates(taskId)        what its agent has told so far
 *   session(taskId)        the session that it runs in */
export async function follow(hub) {
    const events = [], watchers = new Set();
    const ask = await connectTo(hub, { hear({ method, params }) {
        if (method !== 'event')
            return;
        events.push(params);
        watchers.forEach(look => look());
    } });
    const call = async (method, params) => {
        const { result, error } = await ask(method, params);
        if (error)
            throw Object.assign(new Error(error.message), error);
        return result;
    };
    const event = (is, what) => patiently(new Promise(resolve => {
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
    const ended = taskId => event(about(taskId, 'task.completed', 'task.failed', 'task.cancelled'), `${taskId} to end`);
    const output = async taskId => (await ended(taskId), (await call('task.get', { taskId })).output);
    const updates = taskId => events.filter(about(taskId, 'session.update')).map(one => one.data.update);
    const session = taskId => events.find(about(taskId, 'task.queued')).data.sessionId;
    await call('event.subscribe', { after: 0 });
    return { events, call, event, ended, output, updates, session };
}
