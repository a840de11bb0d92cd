#!/usr/bin/env node
/* The scenes of the C peer (tests/scenes), played against weft.js: a client and a server on one WebSocket transport, whose
 * socket is this script, on virtual time. Each scene is played frame by frame, and once more with all that can be said without
 * waiting in one frame. What is left out is listed below, with the reason; a title that is not there any more is an error. */
import fs from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { check, run, skip, source, test } from './kit.mjs';

const LEFT_OUT = {
    'when the other side closes, open calls are lost and open requests can still be answered': 'a WebSocket has no half-close',
    'a server that ends no line is understood by a peer that does not wait for the end, one answer at a time or several at once': 'frames have an end',
    'likewise one with neither result nor error; without such a call it is an invalid request': 'client and server know nothing of each other: the call fails, and the server refuses the message, too',
    'protocols without batches refuse them with one error': 'a dialect of the hub',
    'a batch at its limit, and one over it': 'the limit is 1000 and not an option; webjs_hostile.mjs reaches it',
    'answers of a batch over their limit become errors, item by item': 'a page does not measure its answers',
    'an answer over its limit becomes an error': 'a page does not measure its answers',
    'a message over the limit is skipped, the next one is read': 'the browser has read it already',
    'an answer over the size limit fails its call, and those behind it are read': 'the browser has read it already',
    'one whose id is at its end is that of the only call there is': 'the browser has read it already',
    'nobody\'s, or a request: no call has to do with it': 'the browser has read it already',
    'of several calls it is not known which of them was answered': 'the browser has read it already',
    'a peer that may leave out jsonrpc': 'a profile of the hub',
    'a row\'s own limit holds, whatever the caller says, unless that says less': 'methods of the page have no rows',
    'a method that is strict refuses members that it does not know, and guesses what was meant': 'methods of the page have no rows',
    'params by table: the first bad field is named': 'methods of the page have no tables',
    'of duplicate members in params the last counts, and those before it are not even checked': 'methods of the page have no tables',
    'wrong params of a method that looks for itself': 'methods of the page have no tables',
    'nobody may call a method whose scope they do not have': 'scopes are the hub\'s',
    'a known user without the scope is forbidden': 'scopes are the hub\'s',
    'before authentication only open methods answer': 'scopes are the hub\'s',
    'a network client that asks too often is told when to come back': 'rates are the hub\'s',
};
/* Rows that store (the idempotency keys) and rows that are answered in order are the hub's too. */
const LEFT_OUT_WORDS = [[/idempotencyKey"/, 'answers are kept by the hub', 'and join a _meta that is there already'], [/"method":"(soon|look)"/, 'methods of the page have no rows']];
/* Numbers are JavaScript's: of an id that they cannot hold exactly the server says so, instead of echoing another. */
const INEXACT = '12345678901234567890';

const RUNNING = { timers: new Map(), at: 1000, lastTimer: 0 };
const real = { setImmediate };
globalThis.setTimeout = (action, ms) => (RUNNING.timers.set(++RUNNING.lastTimer, { action, due: RUNNING.at + Math.max(0, ms) }), RUNNING.lastTimer);
globalThis.clearTimeout = id => void RUNNING.timers.delete(id);
performance.now = () => RUNNING.at;
console.error = () => {}; /* scenes have handlers that throw, and weft.js shows what they throw */
const { JSONRPCClient, JSONRPCServer, RPCError, webSocketTransport } = await import(path.join(source, 'web/weft/weft.js'));
const settle = async () => {
    for (let i = 0; i < 3; i++)
        await new Promise(resolve => real.setImmediate(resolve));
};

async function advance(ms) {
    const until = RUNNING.at + ms;
    for (;;) {
        const [id, next] = [...RUNNING.timers].sort(([, a], [, b]) => a.due - b.due)[0] ?? [];
        if (!next || next.due > until)
            break;
        RUNNING.timers.delete(id);
        RUNNING.at = Math.max(RUNNING.at, next.due);
        next.action();
        await settle();
    }
    RUNNING.at = until;
}

const milliseconds = text => parseInt(text) * (text.endsWith('ms') ? 1 : 1000);
const json = text => text === '-' || text === undefined ? undefined : JSON.parse(text);
const ERRNO = { timeout: 'ETIMEDOUT', malformed: 'EBADMSG', disconnected: 'ECONNRESET', tooManyCalls: 'ENOBUFS' };
/* The C peer explains a refusal further, and the text for an unknown method is the seed's. */
const plain = message => Array.isArray(message) ? message.map(plain) : message?.error ?
    { ...message, error: { ...message.error, message: message.error.message.replace(/^(Method not found): .*/, '$1'), data: withoutDetail(message.error.data) } } : message;
const withoutDetail = data => data && Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'detail'));

class Play {
    said = [];
    log = [];
    kept = [];
    calls = new Map();
    constructor(scene) {
        const words = /^with (.*)/.exec(scene.steps[0] ?? '')?.[1].split(' ') ?? [];
        const play = this;
        class Socket {
            bufferedAmount = 0;
            constructor() {
                play.socket = this;
            }
            send(text) {
                play.said.push(JSON.parse(text));
            }
            close() {}
        }
        this.transport = webSocketTransport('ws://scene', { WebSocket: Socket, reconnect: false });
        const option = name => Number(words.find(word => word.startsWith(`${name}=`))?.slice(name.length + 1)) || undefined;
        this.client = new JSONRPCClient(this.transport, {
            timeout: 30_000, extras: words.includes('extras'), style: ['acp', 'mcp'].find(style => words.includes(style)) ?? 'lsp',
            ...(option('max_calls') ? { maxPending: option('max_calls') } : {}),
        });
        this.server = new JSONRPCServer(this.transport);
        this.methods();
    }
    methods() {
        const later = () => new Promise(resolve => this.kept.push(resolve));
        const rows = {
            subtract: params => Array.isArray(params) ? params[0] - params[1] : params.minuend - params.subtrahend,
            sum: params => params.reduce((a, b) => a + b, 0),
            get_data: () => ['hello', 5],
            update: () => null, notify_hello: () => null, notify_sum: () => null,
            echo: params => params, admin: params => params, greet: params => ({ hello: params.name }),
            broken: () => { throw Object.assign(new Error('Internal error'), { code: 'EIO' }); },
            refuse: () => { throw new RPCError(-32001, 'No', { reason: 'becauseISaidSo' }); },
            later,
            watch: (params, context) => {
                context.signal.onabort = () => this.log.push(`told ${context.signal.reason.reason === 'cancelled' ? 'ECANCELED' : 'ETIMEDOUT'}`);
                return later();
            },
            count: (params, context) => (context.part(1), context.part(2), 'done'),
            whoami: () => 'tcp',
        };
        Object.entries(rows).forEach(([name, handler]) => this.server.method(name, handler));
        const builtin = ['$/cancelRequest', '$/cancel_request', 'notifications/cancelled'];
        this.client.onNotify('*', (params, method) => {
            if (!(method in rows) && !builtin.includes(method))
                this.log.push(`heard ${method} ${params === undefined ? '-' : JSON.stringify(params)}`);
        });
    }
    start(method, params, options = {}) {
        const withdraw = new AbortController();
        this.calls.set(method, withdraw);
        const call = this.client.request(method, params, { ...options, signal: withdraw.signal });
        call.then(result => this.log.push(`${method} answers ${JSON.stringify(result)}`), error => {
            const why = error instanceof RPCError ? `refused ${error.code}` : error.name === 'AbortError' ? 'fails ECANCELED' :
                error instanceof TypeError ? 'not started EINVAL' : error.reason === 'tooManyCalls' ? 'not started ENOBUFS' : `fails ${ERRNO[error.reason] ?? error}`;
            this.log.push(`${method} ${why}`);
        });
    }
    call(args) {
        const [method, params, ...words] = args.split(' ').filter(Boolean);
        const after = name => words.includes(name) ? words[words.indexOf(name) + 1] : undefined;
        this.start(method, json(params), {
            ...(after('within') ? { timeout: milliseconds(after('within')) } : {}),
            ...(words.includes('parts') ? { onPart: part => this.log.push(`${method} part ${JSON.stringify(part)}`) } : {}),
            idempotencyKey: after('key'), sendDeadline: words.includes('deadline'),
        });
    }
    batch(args) {
        this.client.batch(() => args.split(';').forEach(item => {
            const [method, params] = item.trim().split(' ');
            if (method.startsWith('!'))
                this.client.notify(method.slice(1), json(params));
            else
                this.start(method, json(params));
        }));
    }
    expectLine(want) {
        const is = this.said.shift();
        check(isDeepStrictEqual(plain(is), plain(JSON.parse(want))), `want <-- ${want}, is ${JSON.stringify(is)}`);
    }
    expectEvent(want) {
        const is = this.log.shift();
        check(is === want, `want "${want}", is "${is}"`);
    }
    async step(text) {
        const [, word, rest] = /^(\S+) ?(.*)$/.exec(text);
        if (word === 'call')
            this.call(rest);
        else if (word === 'notify')
            this.client.notify(rest.split(' ')[0], json(rest.split(' ')[1]));
        else if (word === 'batch')
            this.batch(rest);
        else if (word === 'cancel')
            this.calls.get(rest).abort();
        else if (word === 'reply')
            this.kept.shift()?.(JSON.parse(rest));
        else if (word.startsWith('@')) {
            await advance(milliseconds(word.slice(1)));
            if (rest)
                this.expectEvent(rest);
        } else if (word === 'silence')
            check(!this.said.length && !this.log.length, `want silence, is ${JSON.stringify([this.said, this.log])}`);
        else
            this.expectEvent(text);
        await settle();
    }
    async hear(frame) {
        this.socket.onmessage({ data: frame });
        await settle();
    }
}

/* "<-- " and "--> " lines that follow each other are said in one frame, and then all that must come is looked for. */
function glue(steps) {
    const out = [];
    for (let i = 0; i < steps.length;) {
        const from = i;
        while (i < steps.length && /^(-->|<--)/.test(steps[i]))
            i++;
        const heard = steps.slice(from, i).filter(step => step.startsWith('-->'));
        if (heard.length)
            out.push(`--> ${heard.map(step => step.slice(4)).join('\n')}`, ...steps.slice(from, i).filter(step => step.startsWith('<--')));
        else if (i > from)
            out.push(...steps.slice(from, i));
        if (i === from)
            out.push(steps[i++]);
    }
    return out;
}

async function perform(scene, steps) {
    const play = new Play(scene);
    await settle();
    play.socket.onopen();
    await settle();
    for (const step of steps) {
        if (step.startsWith('with '))
            continue;
        if (step.startsWith('-->'))
            await play.hear(step.slice(4));
        else if (step.startsWith('<--'))
            play.expectLine(step.slice(4));
        else
            await play.step(step);
    }
    await play.step('silence');
    play.client.destroy();
}

/* A step that has the inexact id, and the answer to it, are looked at by themselves below. */
const exact = steps => steps.filter(step => !step.includes(`"id":${INEXACT}`));

function read(file) {
    const scenes = [];
    let title = false;
    for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
        if (line.startsWith('#')) {
            if (!title)
                scenes.push({ title: line.replace(/^# ?/, ''), steps: [] });
            title = true;
        } else if (line) {
            title = false;
            scenes.at(-1).steps.push(line);
        }
    }
    return scenes;
}

const folder = path.join(source, 'tests/scenes');
const found = new Set();
for (const file of fs.readdirSync(folder).filter(name => name.endsWith('.scene')).sort())
    for (const scene of read(path.join(folder, file))) {
        found.add(scene.title);
        const word = LEFT_OUT_WORDS.find(([pattern, , but]) => scene.title !== but && scene.steps.some(step => pattern.test(step)));
        const why = LEFT_OUT[scene.title] ?? word?.[1];
        if (why) {
            skip(`${file}: ${scene.title}`, why);
            continue;
        }
        test(`${file}: ${scene.title}`, () => perform(scene, exact(scene.steps)));
        test(`${file}: ${scene.title} (glued)`, () => perform(scene, glue(exact(scene.steps))));
    }

test('the list of what is left out is true', async () => {
    for (const title of Object.keys(LEFT_OUT))
        check(found.has(title), `there is no scene "${title}"`);
});

test('an id that JavaScript cannot hold is refused, not changed', async () => {
    await perform({ steps: [] }, [`--> {"jsonrpc":"2.0","method":"get_data","id":${INEXACT}}`,
        '<-- {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request","data":{"reason":"invalidRequest"}}}']);
});

await run();
