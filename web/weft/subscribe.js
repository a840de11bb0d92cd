/* Subscriptions to streams of the hub: values by name and params, as an async iterator or by a callback. After a lost
 * connection, or a restart of the hub, a subscription asks again behind the last value that it got, so that nothing is lost
 * and nothing comes twice.
 *
 * idle ──connected──▶ asking ──answer──▶ following ──lost──▶ idle
 *                            ──"later"─▶ idle, with a timer
 *                            ──refused─▶ ended
 * following ──the reader is slow (a log)──▶ paused ──it has caught up──▶ asking
 *
 * Each time it asks under a new subId, so what still comes for an old one is not mistaken for the new. */
import { Queue } from './weft.js';

const MAX_WAITING = 1000; /* values of a log that wait for their reader; then it pauses */
const MAX_CHUNKS = 32 << 20; /* characters of one value that comes in pieces */
const QUIET_MS = 500; /* the hub does not say where a replay ends: nothing for so long means that it is over */
const HEAD_MS = 1000, HEAD_TIMEOUT = 2000;
const TEMPORARY = ['timeout', 'storageFailed', 'tooManyStreams'];
const FIRST_DELAY = 100, MAX_DELAY = 16_000;

let lastNumber = 0;
const known = new WeakMap();

/* The subscriptions of a client; there is one of these for each client. */
export class Subscriptions {
    #client;
    #byId = new Map();
    #all = new Set();
    #watchers = new Set();
    #head; /* { at, promise, seq }: the last position of the journal, as it was asked for last */
    #offlineSince;
    #told = '';

    static of(client) {
        let found = known.get(client);
        if (!found)
            known.set(client, found = new Subscriptions(client));
        return found;
    }

    constructor(client) {
        known.set(client, this);
        this.#client = client;
        client.onNotify('tinyvex/data', params => this.#byId.get(params?.subId)?.take(params));
        client.onNotify('tinyvex/transitionChunk', params => this.#byId.get(params?.subId)?.takeChunk(params));
        client.onNotify('tinyvex/error', params => this.#byId.get(params?.subId)?.takeNotice(params));
        client.transport.onState?.(({ name }) => {
            if (name !== 'open')
                this.#head = undefined;
            if (name === 'open')
                this.#all.forEach(sub => sub.connected());
            else if (name === 'waiting')
                this.#all.forEach(sub => sub.lost());
            else if (name === 'closed')
                this.#all.forEach(sub => sub.close());
            this.changed();
        });
    }

    get client() {
        return this.#client;
    }
    get connected() {
        return (this.#client.transport.state?.name ?? 'open') === 'open';
    }

    subscribe(name, params, options) {
        return new Subscription(this, name, params, options);
    }

    /* In one place what a person wants to know: { name: 'live' | 'catchingUp' | 'offline', behind?, since?, retryAt? }. */
    get state() {
        const { name, since, retryAt } = this.#client.transport.state ?? { name: 'open' };
        if (name !== 'open')
            return { name: 'offline', since: this.#offlineSince ?? since, retryAt };
        const late = [...this.#all].filter(sub => sub.state.name === 'catchingUp' || sub.state.name === 'lost');
        const behind = late.map(sub => sub.state.behind ?? 0); /* 0: it is not known yet */
        return behind.length ? { name: 'catchingUp', behind: Math.max(...behind) } : { name: 'live' };
    }
    onState(watch) {
        this.#watchers.add(watch);
        return () => this.#watchers.delete(watch);
    }

    /* ---- for subscriptions ---- */

    changed() {
        const { name } = this.#client.transport.state ?? {};
        this.#offlineSince = name === 'open' ? undefined : this.#offlineSince ?? Date.now();
        const state = this.state, text = JSON.stringify(state);
        if (text === this.#told)
            return;
        this.#told = text;
        [...this.#watchers].forEach(watch => watch(state));
    }
    add(sub) {
        this.#all.add(sub);
    }
    remove(sub) {
        this.#all.delete(sub);
        this.changed();
    }
    listen(id, sub) {
        this.#byId.set(id, sub);
    }
    unlisten(id) {
        this.#byId.delete(id);
    }
    /* Ask for the position of the last event of the journal. Subscriptions that come back together ask once. */
    head() {
        if (!(performance.now() - this.#head?.at < HEAD_MS)) {
            const head = this.#head = { at: performance.now(), seq: undefined };
            head.promise = this.#askHead().then(seq => { head.seq = seq; }, () => {}); /* who may not know it goes without */
        }
        return this.#head;
    }
    async #askHead() {
        const id = `weft-js-head-${++lastNumber}`;
        const { head } = await this.#client.request('event.subscribe', { id, types: ['weft-js.none'] }, { timeout: HEAD_TIMEOUT });
        this.#client.notify('event.unsubscribe', { id });
        return typeof head === 'number' ? head : undefined;
    }
}

export const subscribe = (client, name, params, options) => Subscriptions.of(client).subscribe(name, params, options);

export class Subscription {
    #owner;
    #name;
    #params;
    #options;
    #phase = 'idle';
    #id;
    #number = 0; /* of asking */
    #stash = []; /* what came before the answer was looked at */
    #received; /* position of the last value that came; asked behind */
    #fresh = true; /* the next value begins anew */
    #mode;
    #waiting; /* values for the iterator */
    #latest; /* of a state only the last value waits: this one */
    #chunks;
    #wasLost = false;
    #delay = FIRST_DELAY;
    #timer;
    #quiet;
    #head; /* of the journal, while it catches up */

    constructor(owner, name, params, options = {}) {
        this.#owner = owner;
        this.#name = name;
        this.#params = params;
        this.#options = options;
        this.#waiting = new Queue(Infinity);
        /* The position of the last value that was handed over: keep it to go on here another day. */
        this.position = options.position;
        this.#received = options.position;
        this.state = { name: 'asking' };
        options.signal?.addEventListener('abort', () => this.close(), { once: true });
        owner.add(this);
        if (options.signal?.aborted)
            this.close();
        else if (owner.connected)
            this.#ask();
    }

    get name() {
        return this.#name;
    }
    get mode() {
        return this.#mode;
    }

    close() {
        if (this.#phase === 'ended')
            return;
        this.#unsubscribe();
        this.#end();
    }

    [Symbol.asyncIterator]() {
        return {
            next: async () => {
                const item = await this.#waiting.next();
                if (item.value) {
                    if (this.#latest === item.value)
                        this.#latest = undefined;
                    this.position = { seq: item.value.seq, journal: item.value.journal };
                    this.#goOn();
                }
                return item;
            },
            return: async () => {
                this.close();
                return { done: true, value: undefined };
            },
        };
    }

    /* ---- asking ---- */

    connected() {
        if (this.#phase === 'idle')
            this.#ask();
    }

    lost() {
        if (this.#phase === 'ended')
            return;
        this.#stop('idle');
        this.#wasLost = true;
        this.#tell({ name: 'lost' });
    }

    async #ask() {
        clearTimeout(this.#timer);
        const id = this.#id = `weft-js-${++lastNumber}`, number = ++this.#number;
        /* Nothing is known of a state before its first value: with a position the hub would take us for one that has it. */
        const behind = this.#received;
        this.#phase = 'asking';
        this.#stash = [];
        this.#owner.listen(id, this);
        const current = () => number === this.#number && this.#phase === 'asking';
        if (behind && this.#mode !== 'state') {
            this.#head = this.#owner.head();
            await this.#head.promise; /* so that it is known when the first value comes */
            if (!current())
                return;
        }
        try {
            const answer = await this.#owner.client.request('tinyvex/subscribe', {
                subId: id, name: this.#name, params: this.#params, lastSeq: behind?.seq, journal: behind?.journal,
            });
            if (current())
                this.#begin(answer, behind);
        } catch (error) {
            if (current())
                this.#refused(error);
        }
    }

    #begin(answer, behind) {
        const resumed = behind !== undefined && answer?.resumed === true;
        this.#phase = 'following';
        this.#mode = answer?.mode;
        this.#delay = FIRST_DELAY;
        if (!resumed) {
            this.#fresh = true;
            this.#waiting.clear();
            this.#latest = undefined;
            this.#received = this.#mode === 'log' ? { seq: answer?.startSeq, journal: answer?.journal } : undefined;
        }
        const more = { resumed, reason: answer?.reason };
        if (resumed && this.#mode === 'log')
            this.#catchUp(more);
        else
            this.#tell({ name: 'live', ...more });
        this.#wasLost = false;
        for (const { params, chunk } of this.#stash.splice(0))
            chunk ? this.takeChunk(params) : this.take(params);
    }

    #refused(error) {
        const temporary = TEMPORARY.includes(error.reason) || error.code === 429 || error.code === 503;
        this.#stop('idle');
        if (error.reason === 'disconnected') {
            this.lost();
        } else if (temporary) {
            this.#tell({ name: 'lost', reason: error.reason, retryAt: Date.now() + this.#delay });
            this.#timer = setTimeout(() => this.#owner.connected && this.connected(), this.#delay);
            this.#delay = Math.min(2 * this.#delay, MAX_DELAY);
        } else {
            this.#end(error);
        }
    }

    #stop(phase) {
        this.#phase = phase;
        this.#chunks = undefined;
        clearTimeout(this.#quiet);
        clearTimeout(this.#timer);
        this.#owner.unlisten(this.#id);
    }

    #unsubscribe() {
        if (this.#phase !== 'asking' && this.#phase !== 'following')
            return;
        try {
            this.#owner.client.notify('tinyvex/unsubscribe', { subId: this.#id });
        } catch {
            /* Not connected: the hub has forgotten it. */
        }
    }

    #end(error) {
        this.#stop('ended');
        this.#waiting.end(error);
        this.#tell({ name: 'ended', error });
        this.#owner.remove(this);
    }

    /* ---- values ---- */

    take(params) {
        if (this.#phase === 'asking')
            this.#stash.push({ params });
        else if (this.#phase === 'following' && !this.#isDouble(params))
            this.#hand(params.value, params.seq, params.journal);
    }

    takeChunk(params) {
        if (this.#phase === 'asking')
            this.#stash.push({ params, chunk: true });
        else if (this.#phase === 'following' && !this.#isDouble(params))
            this.#join(params);
    }

    takeNotice(params) {
        this.#options.onNotice?.(params);
    }

    #join({ chunk, part, total, transitionId, seq, journal }) {
        if (part === 1)
            this.#chunks = { transitionId, pieces: [], size: 0 };
        const chunks = this.#chunks;
        const fits = chunks?.transitionId === transitionId && chunks.pieces.length + 1 === part && typeof chunk === 'string';
        if (!fits || (chunks.size += chunk.length) > MAX_CHUNKS) {
            this.#damaged();
            return;
        }
        chunks.pieces.push(chunk);
        if (part !== total)
            return;
        let value;
        try {
            value = JSON.parse(chunks.pieces.join(''));
        } catch {
            this.#damaged();
            return;
        }
        this.#hand(value, seq, journal);
    }

    #damaged() {
        this.#unsubscribe();
        this.#end(Object.assign(new Error('A value in pieces is damaged or too long'), { reason: 'malformed' }));
    }

    #isDouble({ seq }) {
        return !(typeof seq === 'number') || !this.#fresh && seq <= this.#received?.seq;
    }

    #hand(value, seq, journal = this.#received?.journal) {
        const item = { value, seq, journal, fresh: this.#fresh };
        this.#chunks = undefined;
        this.#fresh = false;
        this.#received = { seq, journal };
        this.#countDown(seq);
        if (this.#options.onValue) {
            this.position = this.#received;
            this.#options.onValue(value, item);
        } else if (this.#mode === 'state') {
            item.fresh ||= this.#latest?.fresh === true;
            this.#waiting.clear();
            this.#waiting.put(item);
            this.#latest = this.#waiting.size ? item : undefined; /* a reader who waited has it already */
        } else {
            this.#waiting.put(item);
            if (this.#waiting.size >= (this.#options.maxWaiting ?? MAX_WAITING))
                this.#pause();
        }
    }

    /* The rest of a log waits in the hub's store, not here. */
    #pause() {
        this.#unsubscribe();
        this.#stop('paused');
        this.#tell({ name: 'paused' });
    }

    #goOn() {
        if (this.#phase !== 'paused' || this.#waiting.size > 0)
            return;
        this.#phase = 'idle';
        if (this.#owner.connected)
            this.#ask();
    }

    /* ---- what is told ---- */

    #tell(state) {
        this.state = state;
        this.#options.onState?.(state, this);
        this.#owner.changed();
    }

    #catchUp(more) {
        this.#tell({ name: 'catchingUp', behind: this.#distance(this.#received.seq), ...more });
        this.#countDown(this.#received.seq);
    }

    #countDown(seq) {
        if (this.state.name !== 'catchingUp')
            return;
        this.#waitForQuiet();
        const behind = this.#distance(seq);
        if (behind === 0)
            this.#live();
        else
            this.state = { ...this.state, behind };
        this.#owner.changed();
    }

    #distance(seq) {
        return this.#head.seq === undefined ? undefined : Math.max(0, this.#head.seq - seq);
    }

    #waitForQuiet() {
        clearTimeout(this.#quiet);
        this.#quiet = setTimeout(() => this.#live(), QUIET_MS);
        this.#quiet.unref?.();
    }

    #live() {
        clearTimeout(this.#quiet);
        if (this.state.name === 'catchingUp')
            this.#tell({ name: 'live', resumed: true });
    }
}
