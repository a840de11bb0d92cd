/* The connection to the hub, through weft.js: calls, and events from a position. What is followed goes on behind the last event that
 * came, after a lost connection and after a restart of the hub. */
import { JSONRPCClient, webSocketTransport } from '../../weft/weft.js';
import { signal } from './store.js';

const QUIET_MS = 400; /* filtered events do not say where a replay ends: nothing for so long means that it is over */

/* Why something could not be done, in words that say what, why and what next. */
export class Refusal extends Error {
    constructor(what, why, next, reason) {
        super(`${what}: ${why}`);
        Object.assign(this, { what, why, next, reason });
    }
}

const NEXT = {
    disconnected: 'Nothing is sent later by itself. Try again when the state at the top says live.',
    timeout: 'The hub did not answer in time. Look at Health, then try again.',
    forbidden: 'This login may not do it. Log in with a token that has the scope, or ask whoever runs the hub.',
    insufficientScope: 'This login may not do it. Log in with a token that has the scope, or ask whoever runs the hub.',
    queueFull: 'Cancel tasks that wait, or wait until some have ended.',
    questionNotFound: 'The list shows what is still open.',
    alreadyAnswered: 'The card shows who answered, and what.',
    changesGone: 'Snapshots are kept as long as their task. There is nothing to show any more.',
    changesUnknown: 'The task has not begun, or its folder could not be kept. The session says more.',
    changesNotKept: 'Set "changes": {"enabled": true} in the configuration.',
    storageFailed: 'The disk may be full. Health shows the store; then try again.',
    storeBusy: 'Try again in a moment.',
    shuttingDown: 'Try again when the hub is back.',
    sessionNotFound: 'It may have been deleted. Sessions lists those that are there.',
    taskNotFound: 'It may have been forgotten. Tasks lists those that are there.',
    fileNotFound: 'It may have been moved or deleted. Go back to the folder.',
    rateLimited: 'Try again in a moment.',
};

export function explain(what, error) {
    if (error instanceof Refusal)
        return error;
    const reason = error.reason ?? error.data?.reason ?? '';
    const isModule = /module/i.test(error.message) && error.name === 'TypeError';
    if (isModule)
        return new Refusal(what, 'this part of the page did not come from the hub', 'Reload the page when the hub can be reached.', reason);
    const why = reason === 'disconnected' ? 'there is no connection to the hub' : error.message || 'no reason was given';
    const detail = typeof error.data?.detail === 'string' ? ` (${error.data.detail})` : '';
    return new Refusal(what, why + detail, NEXT[reason] ?? 'Try again. If it fails again, search the documentation for the reason.', reason);
}

/* Will it be the same when it is asked again? A hub that has just started, or is busy, says no for a moment. */
export const isFinal = error => [-32602, -32601, -32600, 401, 403, 404].includes(error.code);
const AGAIN_MS = 1000;

/* A key for one submission: sent again after a lost connection, it is still one task. */
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(12))].map(one => one.toString(16).padStart(2, '0')).join('');

class Following {
    #hub;
    #params;
    #handlers;
    #id = '';
    #closed = false;
    #quiet;
    behind = 0;
    /* position: { after, epoch }, absent: from now on. by: which number of an event is its position. */
    constructor(hub, params, handlers, position) {
        this.#hub = hub;
        this.#params = params;
        this.#handlers = handlers;
        this.position = position;
        this.by = params.stream ? 'seq' : 'gseq';
        hub.followings.add(this);
        if (hub.open)
            this.ask();
    }
    close() {
        this.#closed = true;
        clearTimeout(this.#quiet);
        this.#hub.followings.delete(this);
        if (this.#id)
            this.#hub.forget(this.#id);
        this.#hub.told();
    }
    lost() {
        this.#id = '';
        clearTimeout(this.#quiet);
    }
    async ask() {
        const id = this.#id = this.#hub.listen(this);
        const from = this.position;
        try {
            const answer = await this.#hub.call('event.subscribe', { ...this.#params, id, ...from });
            if (id !== this.#id || this.#closed)
                return;
            if (from?.after !== undefined && !answer.resumed)
                return this.#anew(answer);
            this.#begin(answer, from);
        } catch (error) {
            if (id !== this.#id || this.#closed || error.reason === 'disconnected')
                return;
            if (isFinal(error))
                this.#handlers.onError?.(error);
            else
                setTimeout(() => id === this.#id && !this.#closed && this.ask(), AGAIN_MS);
        }
    }
    #begin(answer, from) {
        const last = this.position?.after;
        this.position = { after: Math.max(last ?? 0, from?.after === undefined ? answer.head : last ?? 0), epoch: answer.epoch };
        this.head = answer.head;
        this.behind = Math.max(0, answer.head - this.position.after);
        this.#wait();
        this.#handlers.onReady?.(answer);
    }
    /* The journal is another one, or what we missed is no longer kept: what was known is forgotten. */
    #anew(answer) {
        this.position = { after: answer.head, epoch: answer.epoch };
        this.behind = 0;
        this.#handlers.onReset?.(answer);
    }
    take(event) {
        const at = event[this.by];
        if (this.position && at <= this.position.after)
            return;
        this.position = { after: at, epoch: this.position?.epoch };
        if (this.behind) {
            this.behind = Math.max(0, this.head - at);
            this.#wait();
        }
        this.#handlers.onEvent(event);
    }
    #wait() {
        clearTimeout(this.#quiet);
        if (this.behind)
            this.#quiet = setTimeout(() => {
                this.behind = 0;
                this.#hub.told();
            }, QUIET_MS);
        this.#hub.told();
    }
}

export class Hub {
    followings = new Set();
    #byId = new Map();
    #lastId = 0;
    #toldTimer;
    /* { name: 'connecting'|'live'|'catchingUp'|'offline', behind?, since?, retryAt? } */
    state = signal({ name: 'connecting' });
    methods = signal(null); /* Set of names, when known */
    who = signal(null); /* { name, scopes[], project, folder, version } */
    opened = signal(0); /* how often a connection was made */
    constructor(url) {
        this.transport = webSocketTransport(url);
        this.client = new JSONRPCClient(this.transport, { timeout: 30_000, extras: true });
        this.client.onNotify('event', event => this.#byId.get(event.subscription)?.take(event));
        this.transport.onState(state => this.#changed(state));
        if (this.transport.state?.name === 'open')
            this.#changed(this.transport.state);
    }
    get open() {
        return this.transport.state?.name === 'open';
    }
    call(method, params, options) {
        return this.client.request(method, params, options);
    }
    has(method) {
        return this.methods.value?.has(method) ?? false;
    }
    may(scope) {
        const scopes = this.who.value?.scopes;
        return !scopes || scopes.includes('*') || scopes.includes(scope);
    }
    /* A path as the project knows it, if it lies in there. */
    short(path) {
        const folder = this.who.peek()?.folder;
        return folder && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
    }
    follow(params, handlers, position) {
        return new Following(this, params, handlers, position);
    }
    listen(following) {
        const id = `d${++this.#lastId}`;
        this.#byId.set(id, following);
        return id;
    }
    forget(id) {
        this.#byId.delete(id);
        if (this.open)
            this.call('event.unsubscribe', { id }).catch(() => {});
    }
    #changed({ name }) {
        if (name === 'open') {
            this.#byId.clear();
            this.offlineSince = undefined;
            this.#learn();
            this.opened.value++;
            for (const one of this.followings)
                one.ask();
        } else if (name === 'waiting' || name === 'closed') {
            this.offlineSince ??= Date.now();
            for (const one of this.followings)
                one.lost();
            this.#lookAtLogin();
        }
        this.told(true);
    }
    /* What this hub can do, and what we may. */
    async #learn() {
        try {
            this.who.value = await this.call('hub.whoami', {});
            /* It is long, and nobody waits for it: what is shown first comes first. */
            await new Promise(resolve => setTimeout(resolve, this.methods.peek() ? 1000 : 50));
            const { methods } = await this.call('rpc.discover');
            this.methods.value = new Set(methods.map(one => one.name));
        } catch {
            /* The connection was lost again: the next one asks anew. */
        }
    }
    /* A WebSocket that is refused does not say why. */
    async #lookAtLogin() {
        try {
            const answer = await fetch('/login/state', { cache: 'no-store' });
            if (answer.ok && (await answer.json()).authenticated === false)
                location.assign('/login');
        } catch {
            /* Not reachable: it is tried again by itself. */
        }
    }
    told(now = false) {
        if (!now) { /* while catching up: not for every event */
            this.#toldTimer ??= setTimeout(() => this.told(true), 100);
            return;
        }
        clearTimeout(this.#toldTimer);
        this.#toldTimer = undefined;
        const { name, retryAt } = this.transport.state;
        let behind = 0;
        for (const one of this.followings)
            behind = Math.max(behind, one.behind);
        if (name === 'open')
            this.#say(behind ? { name: 'catchingUp', behind } : { name: 'live' });
        else if (this.offlineSince)
            this.#say({ name: 'offline', since: this.offlineSince, retryAt });
        else
            this.#say({ name: 'connecting' });
    }
    #say(state) {
        if (JSON.stringify(state) !== JSON.stringify(this.state.peek()))
            this.state.value = state;
    }
}
