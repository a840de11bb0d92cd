#!/usr/bin/env node
/* webSocketTransport() with a socket that this script plays, on virtual time: when it tries again and how long it waits, what
 * happens to calls meanwhile, silence, and signing that is slow or fails. */
import path from 'node:path';
import { check, run, same, source, test } from './kit.mjs';

const real = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, now: performance.now.bind(performance) };
const settle = async () => {
    for (let i = 0; i < 3; i++)
        await new Promise(resolve => real.setImmediate(resolve));
};
const fails = async promise => promise.then(result => { throw new Error(`it gave ${JSON.stringify(result)}`); }, error => error);

/* Virtual time while a test runs; the harness itself has real time. */
const clock = { at: 0, timers: new Map(), last: 0 };
function virtual() {
    const add = (action, ms, every) => (clock.timers.set(++clock.last, { action, due: clock.at + ms, every }), clock.last);
    globalThis.setTimeout = (action, ms) => add(action, ms);
    globalThis.setInterval = (action, ms) => add(action, ms, ms);
    globalThis.clearTimeout = globalThis.clearInterval = id => void clock.timers.delete(id);
    performance.now = () => clock.at;
    clock.timers.clear();
}
function back() {
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout, setInterval: real.setInterval, clearInterval: real.clearInterval });
    performance.now = real.now;
}
async function advance(ms) {
    for (const until = clock.at + ms; ;) {
        const [id, next] = [...clock.timers].sort(([, a], [, b]) => a.due - b.due)[0] ?? [];
        if (!next || next.due > until) {
            clock.at = until;
            break;
        }
        clock.at = next.due;
        if (next.every)
            next.due += next.every;
        else
            clock.timers.delete(id);
        next.action();
        await settle();
    }
    await settle();
}
const timed = (name, play) => test(name, async () => {
    await settle(); /* the harness has set its own timer */
    virtual();
    try {
        await play();
    } finally {
        back();
    }
});

const { JSONRPCClient, webSocketTransport } = await import(path.join(source, 'web/weft/weft.js'));

class Socket {
    static all = [];
    bufferedAmount = 0;
    said = [];
    constructor(url, protocols) {
        Object.assign(this, { url, protocols });
        Socket.all.push(this);
    }
    static get last() {
        return Socket.all.at(-1);
    }
    send(text) {
        this.said.push(text);
    }
    close() {
        this.closed = true;
    }
    break(code = 1006) {
        this.onclose({ code, reason: '' });
    }
}
async function connect(options = {}) {
    Socket.all = [];
    const transport = webSocketTransport('ws://x/ws', { WebSocket: Socket, ...options });
    await settle();
    return transport;
}

timed('it tries again: 100 ms, twice as long each time, at most 16 s, half more or less', async () => {
    const random = Math.random;
    try {
        for (const [chance, factor] of [[0.5, 1], [0, 0.5], [1 - 1e-12, 1.5]]) {
            Math.random = () => chance;
            const transport = await connect(), delays = [];
            for (let i = 0; i < 10; i++) {
                Socket.last.break();
                const began = clock.at, count = Socket.all.length;
                while (Socket.all.length === count)
                    await advance(10);
                delays.push(clock.at - began);
            }
            const wanted = [100, 200, 400, 800, 1600, 3200, 6400, 12800, 16000, 16000].map(ms => ms * factor);
            check(delays.every((ms, i) => Math.abs(ms - wanted[i]) <= 10), `${delays}`);
            transport.destroy();
            same(clock.timers.size, 0, 'timers that are left');
        }
    } finally {
        Math.random = random;
    }
});

timed('a connection on which something came begins the delays anew; one that is accepted and dropped does not', async () => {
    const transport = await connect({ reconnect: { jitter: 0 } });
    const cycle = async talk => {
        Socket.last.onopen();
        if (talk)
            Socket.last.onmessage({ data: '{"jsonrpc":"2.0","method":"x"}' });
        Socket.last.break();
        const delay = Math.round(transport.state.retryAt - Date.now());
        await advance(delay + 50);
        return Math.round(delay / 50) * 50;
    };
    same([await cycle(false), await cycle(false), await cycle(true), await cycle(false)], [100, 200, 100, 100]);
    transport.destroy();
});

timed('states are told in order, with code and time; retry() does not wait; destroy() ends it', async () => {
    const transport = await connect({ token: 'T', protocols: ['mine'] }), told = [];
    transport.onState(({ name, code }) => told.push(code ? `${name} ${code}` : name));
    same(Socket.last.protocols, ['weft', 'mine', 'weft.token.T']);
    Socket.last.onopen();
    Socket.last.break(1013);
    transport.retry();
    await settle();
    same(Socket.all.length, 2);
    Socket.last.onopen();
    transport.destroy();
    Socket.last.break(1000);
    await advance(60_000);
    same([told, Socket.all.length, Socket.last.closed], [['open', 'waiting 1013', 'connecting', 'open', 'closed'], 2, true]);
});

timed('calls that are open when it breaks fail at once; none is repeated', async () => {
    const transport = await connect(), client = new JSONRPCClient(transport);
    const early = client.request('early');
    same(Socket.last.said, []);
    Socket.last.onopen();
    same(Socket.last.said.length, 1);
    Socket.last.onmessage({ data: '{"jsonrpc":"2.0","id":1,"result":1}' });
    same(await early, 1);
    const open = fails(client.request('open'));
    Socket.last.break();
    const lost = await open;
    same([lost.reason, lost.message], ['disconnected', 'JSON-RPC connection lost: open (id=2)']);
    same((await fails(client.request('offline'))).reason, 'disconnected');
    await advance(1000);
    Socket.last.onopen();
    same(Socket.last.said, []);
    client.destroy();
});

timed('a connection that falls silent is given up', async () => {
    const transport = await connect({ silence: 1000 });
    Socket.last.onopen();
    await advance(900);
    Socket.last.onmessage({ data: '{}' });
    await advance(900);
    same(transport.state.name, 'open');
    await advance(600);
    check(Socket.all[0].closed && Socket.all.length === 2, `it has ${Socket.all.length} sockets`);
    same(transport.state.name, 'connecting');
    transport.destroy();
});

timed('a socket that only says that it failed, as that of Node does, is tried again; one that also closes, once', async () => {
    const transport = await connect({ reconnect: { jitter: 0 } });
    for (const closes of [false, true, false]) {
        const count = Socket.all.length, one = Socket.last;
        one.onerror({ message: 'refused' });
        if (closes)
            one.break(1006);
        await advance(0);
        same([transport.state.name, transport.state.code, transport.state.reason], ['waiting', 1006, closes ? '' : 'refused']);
        same(clock.timers.size, 1, 'timers');
        await advance(500);
        same(Socket.all.length, count + 1, 'attempts');
    }
    Socket.last.onopen();
    Socket.last.onerror({ message: 'a frame that is none' });
    await advance(0);
    same(transport.state.name, 'open', 'a connection that was made closes');
    transport.destroy();
});

timed('an address or a token that cannot be had is tried again', async () => {
    let asked = 0;
    Socket.all = [];
    const transport = webSocketTransport('ws://x', { WebSocket: Socket, token: async () => { if (++asked < 3) throw new Error('not yet'); return 'T'; } });
    await settle();
    same([transport.state.name, transport.state.reason], ['waiting', 'not yet']);
    await advance(2000);
    same([asked, Socket.all.length], [3, 1]);
    transport.destroy();
});

timed('what is signed goes out in the order in which it was sent; a signature that fails fails its call', async () => {
    let first;
    const sign = message => message.method === 'slow' ? new Promise(resolve => { first = () => resolve('slow'); }) :
        message.method === 'bad' ? Promise.reject(new Error('no key')) : Promise.resolve(message.method);
    const transport = await connect({ sign }), client = new JSONRPCClient(transport);
    Socket.last.onopen();
    client.request('slow').catch(() => {});
    client.request('quick').catch(() => {});
    const bad = fails(client.request('bad'));
    client.notify('last');
    await settle();
    same(Socket.last.said, []);
    first();
    await settle();
    same([Socket.last.said, (await bad).message], [['slow', 'quick', 'last'], 'no key']);
    client.destroy();
});

await run();
