#!/usr/bin/env node
/* What comes from a page, a frame or a hub is hostile: weft.js drops it, refuses it or fails the one call that it belongs to, and
 * goes on. Prototypes stay as they are, and every limit is reached. */
import path from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { check, run, same, source, test } from './kit.mjs';

const { JSONRPCClient, JSONRPCServer, portTransport, webSocketTransport, windowTransport } = await import(path.join(source, 'web/weft/weft.js'));
const { subscribe } = await import(path.join(source, 'web/weft/subscribe.js'));
const { fetchFile, previewParent } = await import(path.join(source, 'web/weft/preview.js'));
const ports = await import(path.join(source, 'web/weft/ports.js'));
const { frameTransport, parentTransport, invitation } = ports;

const settle = () => new Promise(resolve => setTimeout(resolve, 20));
const fails = async promise => promise.then(result => { throw new Error(`it gave ${JSON.stringify(result)}`); }, error => error);
const throws = action => {
    try {
        action();
    } catch (error) {
        return error;
    }
    throw new Error('it did not throw');
};

/* A WebSocket whose other side is this script. */
function stage(options) {
    const said = [];
    let socket;
    class Socket {
        bufferedAmount = 0;
        constructor() {
            socket = this;
            setTimeout(() => this.onopen());
        }
        send(text) {
            said.push(JSON.parse(text));
        }
        close() {}
    }
    const transport = webSocketTransport('ws://x', { WebSocket: Socket, reconnect: false, ...options });
    return { transport, said, say: data => socket.onmessage({ data }), get socket() { return socket; } };
}

const NASTY = [
    'null', 'true', '1e999', '"x"', '[]', '[[]]', '[[[[[[1]]]]]]', '{}', '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":{"toString":1},"result":1}',
    '{"jsonrpc":"2.0","id":1e308,"result":1}', '{"jsonrpc":"2.0","id":"1","result":1}', '{"jsonrpc":"2.0","id":null,"error":null}',
    '{"jsonrpc":"2.0","method":"__proto__","id":1}', '{"jsonrpc":"2.0","method":"constructor","id":2}', '{"jsonrpc":"2.0","method":"toString","params":{}}',
    '{"jsonrpc":"2.0","method":"$/progress","params":{"token":"__proto__","value":1}}', '{"jsonrpc":"2.0","method":"$/progress","params":[]}',
    '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{"a":1}}}', '{"jsonrpc":"2.0","method":"tinyvex/data","params":{"subId":"__proto__","seq":1}}',
    '{"jsonrpc":"2.0","__proto__":{"polluted":1},"method":"echo","params":{"__proto__":{"polluted":1}},"id":3}',
    '{"jsonrpc":"2.0","method":"echo","params":{"_meta":{"__proto__":{"polluted":1},"weft/deadlineMs":"soon","progressToken":{}}},"id":4}',
    '{"jsonrpc":"2.0","method":"echo","id":"' + 'x'.repeat(100_000) + '"}', '{"jsonrpc":"2.0","method":"' + 'y'.repeat(100_000) + '","id":5}',
    '['.repeat(5000), '\u0000', '{"jsonrpc":"2.0","method":"echo","params":"text","id":6}', '{"jsonrpc":"2.0","method":"echo","params":null,"id":7}',
];

test('nasty messages on a WebSocket: all are survived, and none of them reaches a prototype', async () => {
    const { transport, said, say } = stage();
    const client = new JSONRPCClient(transport), server = new JSONRPCServer(transport);
    server.method('echo', params => params);
    subscribe(client, 'events', {}, { onValue() { throw new Error('a value came'); } });
    await settle();
    for (const text of NASTY)
        say(text);
    say(new TextEncoder().encode('{"jsonrpc":"2.0","method":"echo","params":["bytes"],"id":"b"}').buffer);
    await settle();
    same([{}.polluted, Object.prototype.polluted], [undefined, undefined]);
    same(said.find(one => one.id === 'b').result, ['bytes']);
    const echoed = said.find(one => one.id === 3);
    same([Object.keys(echoed.result), echoed.result.polluted], [['__proto__'], undefined], 'it is echoed as a plain member');
    for (const id of [1, 2])
        same(said.find(one => one.id === id && one.error).error.code, -32601, 'a name of Object.prototype is no method');
    same(said.filter(one => one.id === 6 || one.id === 7).map(one => one.error.code), [-32600, -32600]);
    check(said.some(one => one.id === null && one.error?.code === -32700), 'no parse error');
    client.destroy();
});

/* The same numbers each time. */
function randomly(seed) {
    return below => {
        seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
        return (seed >>> 0) % below;
    };
}

test('20,000 frames that are cut, doubled and mixed at random', async () => {
    const { transport, said, say } = stage();
    const client = new JSONRPCClient(transport, { timeout: 60_000 }), server = new JSONRPCServer(transport);
    server.method('echo', params => params);
    server.method('later', async params => params);
    const sub = subscribe(client, 'events', {}, { onValue() {} });
    await settle();
    say(`{"jsonrpc":"2.0","id":${said.at(-1).id},"result":{"accepted":true,"resumed":false,"startSeq":0,"journal":"J","mode":"log"}}`);
    await settle();
    const { subId } = said.at(-1).params;
    same(sub.state.name, 'live');
    const data = seq => `{"jsonrpc":"2.0","method":"tinyvex/data","params":{"subId":"${subId}","seq":${seq},"value":{"a":1},"journal":"J"}}`;
    const pieces = [...NASTY.filter(one => one.length < 1000), data(1), data(2), '{"jsonrpc":"2.0","method":"later","params":[1],"id":7}',
        '[{"jsonrpc":"2.0","method":"echo","params":[1],"id":8},{"jsonrpc":"2.0","method":"later","id":9}]'];
    const below = randomly(7), pick = () => pieces[below(pieces.length)];
    for (let i = 0; i < 20_000; i++) {
        const one = pick(), other = pick(), cut = below(one.length + 1);
        say([one.slice(0, cut) + other.slice(below(other.length + 1)), one.slice(0, cut) + String.fromCharCode(below(128)) + one.slice(cut + 1),
            one + '\n' + other, `[${one},${other}]`][below(4)]);
    }
    await settle();
    same([{}.polluted, Object.keys(Object.prototype)], [undefined, []]);
    say('{"jsonrpc":"2.0","method":"later","params":["alive"],"id":"end"}');
    await settle();
    same(said.find(one => one.id === 'end').result, ['alive']);
    sub.close();
    client.destroy();
});

test('answers that are doubled, strange or for nobody end a call once, and only theirs', async () => {
    const { transport, say } = stage();
    const client = new JSONRPCClient(transport);
    await settle();
    const calls = Array.from({ length: 8 }, (_, i) => client.request(`m${i + 1}`).then(result => ['is', result], error => ['fails', error.reason ?? error.code, error.message]));
    const frames = ['{"jsonrpc":"2.0","id":1,"result":"first"}', '{"jsonrpc":"2.0","id":1,"result":"second"}', '{"jsonrpc":"2.0","id":2,"result":1,"error":{"code":1,"message":"both"}}',
        '{"jsonrpc":"2.0","id":3,"error":{"code":"1","message":"x"}}', '{"jsonrpc":"2.0","id":4,"error":{"code":5,"message":{"a":1}}}', '{"jsonrpc":"2.0","id":5,"error":{"code":6}}',
        '{"jsonrpc":"1.0","id":6,"result":1}', '[{"jsonrpc":"2.0","id":7,"result":{"__proto__":{"polluted":1}}},7,null,{"jsonrpc":"2.0","id":99,"result":0}]', '{"jsonrpc":"2.0","id":8,"error":null}'];
    frames.forEach(one => say(one));
    const ends = await Promise.all(calls);
    same(ends.map(([how, what]) => how === 'is' ? typeof what : what), ['string', 'malformed', 'malformed', 5, 6, 'malformed', 'object', 'malformed']);
    same([ends[0][1], ends[3][2], {}.polluted], ['first', '', undefined]);
    client.destroy();
});

test('limits: open calls, a batch, messages that wait for a connection, bytes that wait in it', async () => {
    const { transport, said, say, socket } = stage();
    const client = new JSONRPCClient(transport, { maxPending: 3 }), server = new JSONRPCServer(transport);
    server.method('x', () => 1);
    for (let i = 0; i < 1000; i++)
        client.notify('queued');
    same(throws(() => client.notify('one too many')).reason, 'disconnected');
    await settle();
    same(said.length, 1000);
    const open = [1, 2, 3].map(() => fails(client.request('never')));
    same((await fails(client.request('never'))).reason, 'tooManyCalls');
    say(JSON.stringify(Array(1000).fill({ jsonrpc: '2.0', method: 'x', id: 1 })));
    say(JSON.stringify(Array(1001).fill({ jsonrpc: '2.0', method: 'x', id: 1 })));
    await settle();
    same([said.find(Array.isArray).length, said.at(-1).error.data.reason], [1000, 'tooLarge']);
    socket.bufferedAmount = 9 << 20;
    same(throws(() => client.notify('x')).reason, 'disconnected');
    client.destroy();
    await Promise.all(open);
});

test('callbacks that throw are shown and stop nothing', async () => {
    const { port1, port2 } = new MessageChannel(), shown = [], { error } = console;
    console.error = one => shown.push(one.message);
    const transport = portTransport(port2);
    transport.onMessage(() => { throw new Error('a listener'); });
    const server = new JSONRPCServer(transport), client = new JSONRPCClient(portTransport(port1));
    server.onNotify('bad', ({ a: { b } }) => b);
    server.onNotify('worse', async () => { throw new Error('later'); });
    server.method('refuses', () => { throw Object.assign(new Error('x'), { code: 1 }); });
    server.method('news', (params, { id }) => (server.answers = [id], 'fine'));
    client.notify('bad');
    client.notify('worse');
    const answer = client.batch(() => (client.notify('bad'), client.request('news')));
    same(await answer, 'fine');
    console.error = error;
    check(shown.includes('a listener') && shown.includes('later') && shown.some(one => /undefined/.test(one)), JSON.stringify(shown));
    client.destroy();
});

test('a batch in which one result cannot be sent is answered', async () => {
    const { port1, port2 } = new MessageChannel();
    const server = new JSONRPCServer(portTransport(port2)), client = new JSONRPCClient(portTransport(port1));
    server.method('good', () => 1);
    server.method('bad', () => () => {});
    const ends = client.batch(() => [client.request('good'), client.request('bad'), client.request('none')].map(fails));
    same((await Promise.all(ends)).map(error => error.code), [-32603, -32603, -32601]);
    client.destroy();
});

test('a limit on open requests that one id does not get around', async () => {
    const { transport, said, say } = stage();
    const server = new JSONRPCServer(transport);
    server.method('never', () => new Promise(() => {}));
    await settle();
    for (let i = 0; i < 66; i++)
        say(JSON.stringify(Array(1000).fill({ jsonrpc: '2.0', method: 'never', id: 1 })));
    say('{"jsonrpc":"2.0","method":"never","id":2}');
    await settle();
    same([said.length, said[0].error.code, said[0].id], [1, 429, 2]);
    server.destroy();
});

test('structured clones: bigints, dates, maps, cycles and NaN as ids and params', async () => {
    const { port1, port2 } = new MessageChannel();
    const server = new JSONRPCServer(portTransport(port2)), said = [];
    server.method('type', params => Object.prototype.toString.call(params));
    const cycle = {};
    cycle.self = cycle;
    port1.on('message', one => said.push(one));
    for (const [id, params] of [[1n, {}], [NaN, {}], [Infinity, {}], [new Date(), {}], [new Map(), {}], [Symbol.iterator.toString(), cycle], [2, new Map()]])
        port1.postMessage({ jsonrpc: '2.0', method: 'type', params, id });
    await settle();
    same(said.map(one => one.error?.code ?? one.result), [-32600, -32600, -32600, -32600, -32600, '[object Object]', '[object Map]']);
    port1.close();
});

test('windows: only that window and that origin count, and nothing goes to "*" unless it is said', async () => {
    const posted = [], listeners = new Set();
    const source = { origin: 'http://own', addEventListener: (_, one) => listeners.add(one), removeEventListener: (_, one) => listeners.delete(one) };
    const target = { postMessage: (message, origin) => posted.push(origin) };
    const transport = windowTransport(target, source), heard = [];
    transport.onMessage(one => heard.push(one.params.n));
    const hear = (from, origin, n) => listeners.forEach(one => one({ source: from, origin, data: { jsonrpc: '2.0', method: 'x', params: { n } } }));
    hear(target, 'http://own', 1);
    hear(target, 'http://evil', 2);
    hear(source, 'http://own', 3);
    hear({}, 'http://own', 4);
    hear(null, 'http://own', 5);
    transport.send({ jsonrpc: '2.0', method: 'x' });
    same([heard, posted], [[1], ['http://own']]);
    transport.destroy();
    same(listeners.size, 0);
    check(/in the page/.test(throws(() => windowTransport(null, source)).message), 'no window');
    const { message } = throws(() => windowTransport(target, { ...source, origin: 'null' }));
    check(/opaque origin/.test(message), 'an opaque origin');
    const instead = message.match(/\w+(?=\(\))/g);
    check(instead.length === 2 && instead.every(name => typeof ports[name] === 'function'), `${instead} are not there`);
    windowTransport(target, source, '*').send({});
    same(posted.at(-1), '*');
});

test('the handshake: wrong nonce, window, origin and a second port do not count', async () => {
    const listeners = new Set();
    const scope = { addEventListener: (_, one) => listeners.add(one), removeEventListener: (_, one) => listeners.delete(one) };
    const frame = { contentWindow: {} }, { nonce } = invitation('http://own');
    const { port1, port2 } = new MessageChannel(), evil = new MessageChannel();
    const send = (source, origin, data, port = evil.port1) => [...listeners].forEach(one => one({ source, origin, data, ports: [port] }));
    const transport = frameTransport(frame, { nonce, scope, timeout: 5000 });
    send({}, 'null', { weft: 'weft.port', nonce });
    send(null, 'null', { weft: 'weft.port', nonce });
    send(frame.contentWindow, 'http://evil', { weft: 'weft.port', nonce });
    for (const wrong of [undefined, null, '', 'x', nonce.toUpperCase() + '0', [nonce], { toString: () => nonce }])
        send(frame.contentWindow, 'null', { weft: 'weft.port', nonce: wrong });
    send(frame.contentWindow, 'null', null);
    send(frame.contentWindow, 'null', { weft: 'weft.port', nonce }, port1);
    same(listeners.size, 0, 'it listens after the port came');
    const client = new JSONRPCClient(await transport), server = new JSONRPCServer(portTransport(port2));
    server.method('who', () => 'the right one');
    same(await client.request('who'), 'the right one');
    client.destroy();
    same((await fails(frameTransport(frame, { nonce, scope, timeout: 10 }))).reason, 'timeout');
    check(/nonce/.test((await fails(frameTransport(frame, { scope }))).message), 'without a nonce');
    const at = hash => ({ location: { hash, href: `http://h/${hash}` }, history: { replaceState() {} }, parent: { postMessage(_, origin) { this.origin = origin; } } });
    for (const hash of ['', '#weft=', '#weft=short,http%3A%2F%2Fown', `#weft=${'g'.repeat(32)},x`, `#weft=${'0'.repeat(32)},null`])
        throws(() => parentTransport({ scope: at(hash) }));
    const good = at(invitation('http://own').fragment);
    parentTransport({ scope: good }).onMessage(() => {});
    same(good.parent.origin, 'http://own');
    evil.port1.close();
});

test('the preview gives out the project\'s files and nothing else', async () => {
    const asked = [], files = path => (asked.push(path), { '/index.html': '<p>hi', '/a b.css': 'p{}', '/x.png': { body: new Uint8Array([1, 2]), type: 'image/png' } }[path]);
    const get = (url, method) => fetchFile(files, { url, method });
    const text = ({ body }) => Buffer.from(body, 'base64').toString();
    same([(await get('/')).status, text(await get('/deep/route')), text(await get('/a%20b.css?x#y'))], [200, '<p>hi', 'p{}']);
    same([(await get('/missing.js')).status, (await get('/x.png')).headers['content-type'], (await get('/', 'POST')).status], [404, 'image/png', 405]);
    for (const url of ['http://evil/', '//evil/x', 'javascript:alert(1)', 'file:///etc/passwd', 'http://[', '/%zz', '/a%2f..%2fb', '/..%5cb', '/a%00b', 7, null, undefined, {}, '\\\\evil\\x'])
        same([url, (await fails(get(url))).code], [url, -32006]);
    same(asked.filter(path => path.includes('..')), []);
    await get('/../../x.png');
    same(asked.at(-1), '/x.png');
    same((await fails(fetchFile(() => undefined, { url: '/' }))).code, -32005);
    const { port1, port2 } = new MessageChannel(), lines = [];
    previewParent(portTransport(port1), { files, onConsole: line => lines.push(line), onError: error => lines.push(error), onNavigation: state => lines.push(state) });
    const frame = new JSONRPCClient(portTransport(port2));
    frame.notify('console', { level: { a: 1 }, message: '\u001b[31m<script>' + 'x'.repeat(1e6) });
    frame.notify('console');
    frame.notify('error', { message: 7, line: -1, column: 1.5 });
    frame.notify('updateNavigationState', { url: '/x', canGoBack: 'yes' });
    same((await frame.request('fetch', { url: '/' })).status, 200);
    same([lines[0].level, lines[0].message.length, lines[1]], ['[object Object]', 10_000, { level: '', message: '' }]);
    same([lines[2].message, lines[2].line, lines[3].canGoBack], ['7', undefined, false]);
    frame.destroy();
});

await run();
