/* JSON-RPC 2.0 between windows, frames, workers, ports and WebSockets: one client, one server, one transport for each kind of
 * boundary. Nothing here knows what a method means, and nothing here needs another file.
 *
 * A transport has send(message, transfer), onMessage(handler) and destroy(). Those of this file call every handler that was
 * given to onMessage, so that a client and a server can share one. A message without jsonrpc "2.0" that comes through a
 * window, a worker or a port belongs to somebody else: it is not touched and not answered. */

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
export const REQUEST_CANCELLED = -32800;

export const BUILD_FAILED = -32001;
export const GATE_FAILED = -32002;
export const PERMISSION_DENIED = -32003;
export const TASK_CANCELLED = -32004;
export const PREVIEW_LOAD_FAILED = -32005;
export const NAVIGATION_FAILED = -32006;
export const MCP_SERVER_ERROR = -32007;
export const CONTEXT_OVERFLOW = -32008;

const MAX_PENDING = 65536;
const MAX_RUNNING = 65536;
const MAX_BATCH = 1000;
const MAX_PARTS = 10_000; /* parts of one answer that wait for their reader */
const MAX_ID = 256; /* with its quotes */
const MAX_QUEUE = 1000; /* messages that wait for a WebSocket to open */
const MAX_BUFFERED = 8 << 20; /* bytes that wait in an open one */
const MAX_TIMER = 0x7fffffff; /* setTimeout takes anything above for zero */

const now = () => performance.now();
const isObject = value => typeof value === 'object' && value !== null;
const NONE = {};
const has = (object, name) => object[name] !== undefined;

/* A call that failed on this side. reason: timeout, aborted, destroyed, disconnected, malformed, tooManyCalls, tooManyParts. */
const failure = (reason, text) => Object.assign(new Error(text), { reason });

/* A callback of the page threw: the page's fault, and no reason to stop in the middle. It is shown where such things are shown, and
 * not thrown, because a stranger's message must not end a program. */
const complain = error => globalThis.console?.error(error);
function guarded(callback, ...values) {
    try {
        callback(...values);
    } catch (error) {
        complain(error);
    }
}

/* A refusal by the other side. */
export class RPCError extends Error {
    constructor(code, message, data) {
        super(message);
        this.name = 'RPCError';
        this.code = code;
        this.data = data;
    }
    /* What the hub and other peers of Weft call this error, whatever its number means in a dialect. */
    get reason() {
        return this.data?.reason;
    }
}

/* ---- client ---- */

/* How a call is withdrawn, and where the token for parts of an answer goes. */
const CANCEL = {
    lsp: id => ({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id } }),
    acp: requestId => ({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } }),
    mcp: requestId => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
};

export class JSONRPCClient {
    #transport;
    #options;
    #timeout;
    #pending = new Map();
    #heard = new Map();
    #lastId = 0;
    #timer;
    #due = Infinity; /* when the timer fires; one timer serves all calls */
    #batch;
    #destroyed = false;
    #off = [];

    constructor(transport, options = {}) {
        this.#transport = transport;
        this.#options = { maxPending: MAX_PENDING, style: 'lsp', ...options };
        this.#timeout = options.timeout ?? 10_000;
        this.#off.push(transport.onMessage(message => this.#receive(message), { all: true }), transport.onState?.(state => {
            if (state.name === 'waiting' || state.name === 'closed')
                this.#failAll('disconnected', 'JSON-RPC connection lost');
        }));
    }

    get transport() {
        return this.#transport;
    }

    /* Send a request, wait for its answer. */
    request(method, params, options = NONE) {
        return new Promise((resolve, reject) => this.#start(method, params, options, resolve, reject));
    }

    /* Send a notification: no answer comes. */
    notify(method, params, options) {
        this.#send(params === undefined ? { jsonrpc: '2.0', method } : { jsonrpc: '2.0', method, params }, options?.transfer);
    }

    /* The parts of an answer as they come. Leaving the loop withdraws the call; what it answers in the end is .result. */
    stream(method, params, options = {}) {
        const parts = new Queue(options.maxParts ?? MAX_PARTS);
        const leave = new AbortController();
        const stop = () => leave.abort(options.signal?.reason);
        if (options.signal?.aborted)
            stop();
        options.signal?.addEventListener('abort', stop, { once: true });
        const onPart = part => {
            if (!parts.put(part)) {
                parts.end(failure('tooManyParts', `JSON-RPC parts come faster than they are read: ${method}`));
                leave.abort();
            }
        };
        const result = this.request(method, params, { ...options, onPart, signal: leave.signal });
        const ended = error => {
            options.signal?.removeEventListener('abort', stop);
            parts.end(error);
        };
        result.then(() => ended(), ended);
        return {
            result,
            [Symbol.asyncIterator]: () => ({
                next: () => parts.next(),
                return: async () => (leave.abort(), { done: true, value: undefined }),
            }),
        };
    }

    /* What build() sends goes out as one batch. The result is what build() returned. */
    batch(build) {
        if (this.#batch)
            throw new Error('JSON-RPC batch inside a batch');
        const items = this.#batch = [];
        let result;
        try {
            result = build(this);
        } finally {
            this.#batch = undefined;
        }
        if (items.length)
            this.#deliver(items.map(item => item.message), items.flatMap(item => item.transfer ?? []));
        return result;
    }

    /* Hear a notification without being a server; '*' hears those that nobody else does. The result ends it. */
    onNotify(method, handler) {
        this.#heard.set(method, handler);
        return () => this.#heard.get(method) === handler && this.#heard.delete(method);
    }

    destroy() {
        this.#destroyed = true;
        this.#off.forEach(off => off?.());
        this.#failAll('destroyed', 'JSON-RPC client destroyed');
        clearTimeout(this.#timer);
        this.#transport.destroy?.();
    }

    #start(method, params, options, resolve, reject) {
        const { signal } = options;
        signal?.throwIfAborted();
        if (this.#destroyed)
            throw failure('destroyed', 'JSON-RPC client destroyed');
        if (this.#pending.size >= this.#options.maxPending)
            throw failure('tooManyCalls', `JSON-RPC too many open calls: ${method}`);
        const id = ++this.#lastId;
        const timeout = options.timeout ?? this.#timeout;
        const call = { method, timeout, due: now() + timeout, resolve, reject, onPart: options.onPart, signal, onAbort: undefined };
        if (options.onPart || this.#options.extras)
            params = this.#addMeta(id, params, options, timeout);
        if (signal)
            signal.addEventListener('abort', call.onAbort = () => this.#abort(id), { once: true });
        this.#pending.set(id, call);
        this.#arm(call.due);
        this.#send(params === undefined ? { jsonrpc: '2.0', method, id } : { jsonrpc: '2.0', method, params, id }, options.transfer);
    }

    #addMeta(id, params, { onPart, idempotencyKey, sendDeadline }, timeout) {
        const meta = {};
        if (onPart && this.#options.style !== 'lsp')
            meta.progressToken = id;
        if (this.#options.extras && sendDeadline && timeout < Infinity)
            meta['weft/deadlineMs'] = timeout;
        if (this.#options.extras && idempotencyKey)
            meta['weft/idempotencyKey'] = idempotencyKey;
        const more = onPart && this.#options.style === 'lsp' ? { partialResultToken: id } : {};
        if (Object.keys(meta).length)
            more._meta = { ...params?._meta, ...meta };
        if (!Object.keys(more).length)
            return params;
        if (Array.isArray(params))
            throw new TypeError('parts, deadline and idempotency key need params that are an object');
        return { ...params, ...more };
    }

    #send(message, transfer) {
        if (this.#batch) {
            if (this.#batch.length >= MAX_BATCH)
                throw new RangeError(`JSON-RPC batch of more than ${MAX_BATCH}`);
            this.#batch.push({ message, transfer });
        } else {
            this.#deliver(message, transfer);
        }
    }

    /* What cannot be sent (a value that cannot be cloned, no connection) fails the calls in it and, for a notification, throws. */
    #deliver(message, transfer) {
        try {
            this.#transport.send(message, transfer)?.catch?.(error => this.#undo(message, error));
        } catch (error) {
            if (this.#undo(message, error))
                throw error;
        }
    }

    /* true: there was a notification in it. */
    #undo(message, error) {
        const ids = [message].flat().map(one => one.id);
        ids.forEach(id => this.#take(id)?.reject(error));
        return ids.includes(undefined);
    }

    #receive(message) {
        if (Array.isArray(message))
            message.forEach(one => this.#receive(one));
        else if (!isObject(message))
            return;
        else if (!('method' in message))
            this.#settle(message);
        else if (!has(message, 'id') && isProper(message))
            this.#hear(message.method, message.params);
    }

    #settle(message) {
        const { id, error } = message;
        const call = this.#take(id);
        if (!call)
            return;
        const refused = has(message, 'error');
        if (message.jsonrpc !== '2.0' || refused === has(message, 'result') && (refused || !('result' in message)) ||
            refused && typeof error?.code !== 'number')
            call.reject(failure('malformed', `JSON-RPC malformed answer: ${call.method} (id=${id})`));
        else if (refused)
            call.reject(new RPCError(error.code, typeof error.message === 'string' ? error.message : '', error.data));
        else
            call.resolve(message.result);
    }

    #hear(method, params) {
        const token = method === '$/progress' ? params?.token : method === 'notifications/progress' ? params?.progressToken : undefined;
        const call = this.#pending.get(token);
        if (call?.onPart) {
            call.due = now() + call.timeout;
            guarded(call.onPart, has(params, 'value') ? params.value : params);
        } else {
            guarded(this.#heard.get(method) ?? this.#heard.get('*') ?? (() => {}), params, method);
        }
    }

    /* The call is out of the map before anybody hears of it: whatever happens then, it ended once. */
    #take(id) {
        const call = this.#pending.get(id);
        if (!call)
            return undefined;
        this.#pending.delete(id);
        if (!this.#pending.size)
            this.#timer?.unref?.();
        if (call.onAbort)
            call.signal.removeEventListener('abort', call.onAbort);
        return call;
    }

    #abort(id) {
        const call = this.#take(id);
        call?.reject(call.signal.reason);
        this.#withdraw(id);
    }

    #withdraw(id) {
        try {
            this.#send(CANCEL[this.#options.style](id));
        } catch {
            /* Not connected: there is nobody who works on it. */
        }
    }

    #arm(due) {
        if (due < this.#due) {
            clearTimeout(this.#timer);
            this.#due = due;
            this.#timer = setTimeout(() => this.#expire(), Math.min(due - now(), MAX_TIMER));
        } else if (this.#pending.size === 1) {
            this.#timer?.ref?.(); /* of Node: a process does not wait for a timer that has nothing to do */
        }
    }

    #expire() {
        const at = now();
        const late = [...this.#pending].filter(([, call]) => call.due <= at).sort(([, a], [, b]) => a.due - b.due);
        this.#due = Infinity;
        for (const [id, { method }] of late) {
            this.#take(id)?.reject(failure('timeout', `JSON-RPC timeout: ${method} (id=${id})`));
            if (this.#options.extras)
                this.#withdraw(id);
        }
        let next = Infinity;
        this.#pending.forEach(call => { next = Math.min(next, call.due); });
        this.#arm(next);
    }

    #failAll(reason, text) {
        for (const id of [...this.#pending.keys()]) {
            const call = this.#take(id);
            call?.reject(failure(reason, reason === 'destroyed' ? text : `${text}: ${call.method} (id=${id})`));
        }
    }
}

/* Values on their way to one reader. put() says false when there is no room. */
export class Queue {
    #values = [];
    #readers = [];
    #ended;
    #max;
    constructor(max) {
        this.#max = max;
    }
    get size() {
        return this.#values.length;
    }
    put(value) {
        if (this.#ended)
            return true;
        if (this.#readers.length)
            this.#readers.shift().resolve({ done: false, value });
        else if (this.#values.length >= this.#max)
            return false;
        else
            this.#values.push(value);
        return true;
    }
    clear() {
        this.#values.length = 0;
    }
    end(error) {
        this.#ended ??= { error };
        for (const reader of this.#readers.splice(0))
            this.#finish(reader);
    }
    next() {
        return new Promise((resolve, reject) => {
            if (this.#values.length)
                resolve({ done: false, value: this.#values.shift() });
            else if (this.#ended)
                this.#finish({ resolve, reject });
            else
                this.#readers.push({ resolve, reject });
        });
    }
    /* An error is thrown once; after it the loop is over. */
    #finish({ resolve, reject }) {
        const { error } = this.#ended;
        this.#ended = {};
        if (error)
            reject(error);
        else
            resolve({ done: true, value: undefined });
    }
}

/* ---- server ---- */

/* What a handler gets beside its params. */
class Context {
    #controller;
    #transport;
    #params;
    #parts = 0;
    ended = false; /* it has been answered */
    constructor(transport, id, params, answer) {
        this.id = id;
        this.answer = answer;
        this.transferred = undefined;
        this.timer = undefined;
        this.counts = false; /* among those that are open */
        this.#transport = transport;
        this.#params = params;
    }
    /* Aborted when the caller withdraws the request, or does not wait any longer. Who looks at it decides what is answered. */
    get signal() {
        return (this.#controller ??= new AbortController()).signal;
    }
    /* Both can be taken out of the context, as handlers that name what they need do: (params, { part }) => ... */
    get part() {
        return (value, transfer) => this.#part(value, transfer);
    }
    get transfer() {
        return (...objects) => void (this.transferred ??= []).push(...objects);
    }
    /* A part of the answer, before the answer. Nothing is sent, and the result is false, when the caller did not ask for any. */
    #part(value, transfer) {
        const token = this.#params?.partialResultToken, progressToken = this.#params?._meta?.progressToken;
        const message = isToken(token) ? { jsonrpc: '2.0', method: '$/progress', params: { token, value } } : isToken(progressToken) &&
            { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: ++this.#parts, value } };
        if (!message || this.ended)
            return false;
        this.#transport.send(message, transfer);
        return true;
    }
    /* true: the handler was told and will answer. */
    abandon(reason) {
        this.#controller?.abort(reason);
        return this.#controller !== undefined;
    }
}

const isToken = token => typeof token === 'string' || typeof token === 'number';
/* A number that JavaScript cannot hold exactly would come back as another one. */
const isId = id => id === null || typeof id === 'string' && id.length <= MAX_ID - 2 ||
    typeof id === 'number' && Number.isFinite(id) && (!Number.isInteger(id) || Number.isSafeInteger(id));
const isProper = message => message.jsonrpc === '2.0' && typeof message.method === 'string' && message.method !== '' &&
    (message.params === undefined || isObject(message.params)) && (message.id === undefined || isId(message.id));

const refusal = (id, code, message, data) => ({ jsonrpc: '2.0', error: { code, message, data }, id });
const invalid = (id, reason = 'invalidRequest') => refusal(id, INVALID_REQUEST, 'Invalid Request', { reason });
const CANCELLED = failure('cancelled', 'Request cancelled');
const TOO_LATE = failure('deadlineExceeded', 'The deadline of the request has passed');
const abandoned = (id, why) => refusal(id, REQUEST_CANCELLED, why.message, why === TOO_LATE ? { reason: why.reason } : undefined);

export class JSONRPCServer {
    #transport;
    #methods = new Map();
    #notifications = new Map();
    #running = new Map();
    #open = 0; /* requests that are not answered yet; several may have one id */
    #off;

    constructor(transport) {
        this.#transport = transport;
        this.#off = transport.onMessage(message => this.#receive(message), { all: true });
    }

    /* A method: handler(params, context) returns the result, a promise of it, or an async iterator whose values are parts of
     * the answer and whose return value is the result. */
    method(name, handler) {
        this.#methods.set(name, handler);
    }

    /* A notification: nothing is answered. One that has no handler goes to the method of its name. */
    onNotify(name, handler) {
        this.#notifications.set(name, handler);
    }

    destroy() {
        this.#off?.();
        this.#methods.clear();
        this.#notifications.clear();
        this.#running.forEach(context => {
            context.ended = true;
            context.abandon(failure('destroyed', 'JSON-RPC server destroyed'));
            clearTimeout(context.timer);
        });
        this.#running.clear();
        this.#transport.destroy?.();
    }

    #receive(message) {
        if (Array.isArray(message))
            this.#receiveBatch(message);
        else
            this.#take(message, (answer, transfer) => this.#transport.send(answer, transfer));
    }

    #receiveBatch(items) {
        if (!items.length || items.length > MAX_BATCH) {
            this.#transport.send(invalid(null, items.length ? 'tooLarge' : undefined));
            return;
        }
        const answers = [], transfers = [];
        let open = 1;
        const done = () => {
            if (!--open && answers.length)
                this.#sendBatch(answers, transfers);
        };
        for (const item of items) {
            const expects = !isObject(item) || !isAnswer(item) && (has(item, 'id') || !isProper(item));
            open += expects;
            this.#take(Array.isArray(item) ? null : item, (answer, transfer) => {
                answers.push(answer);
                transfers.push(...transfer ?? []);
                done();
            });
        }
        done();
    }

    /* Where one result cannot be sent, none is: which one it was cannot be told. */
    #sendBatch(answers, transfers) {
        try {
            this.#transport.send(answers, transfers);
        } catch ({ message }) {
            const failed = answers.map(({ id, error }) => refusal(id, error?.code ?? INTERNAL_ERROR, error?.message ?? message));
            guarded(() => this.#transport.send(failed));
        }
    }

    #take(message, answer) {
        if (message === undefined) /* a text that is not JSON */
            answer(refusal(null, PARSE_ERROR, 'Parse error', { reason: 'parseError' }));
        else if (!isObject(message))
            answer(invalid(null));
        else if (isAnswer(message))
            return;
        else if (!isProper(message))
            answer(invalid(isId(message.id) ? message.id : null));
        else if (has(message, 'id'))
            this.#run(message, answer);
        else
            this.#hear(message.method, message.params);
    }

    #hear(method, params) {
        if (method === '$/cancelRequest')
            this.#abandon(this.#running.get(params?.id), CANCELLED);
        else if (method === '$/cancel_request' || method === 'notifications/cancelled')
            this.#abandon(this.#running.get(params?.requestId), CANCELLED);
        const handler = this.#notifications.get(method) ?? this.#methods.get(method);
        if (!handler)
            return;
        /* Nobody asked, so nobody is told; a refusal is meant for the other side. */
        const failed = error => error instanceof RPCError || complain(error);
        try {
            handler(params, new Context(this.#transport))?.catch?.(failed);
        } catch (error) {
            failed(error);
        }
    }

    #run({ method, params, id }, answer) {
        const handler = this.#methods.get(method);
        if (!handler)
            return answer(refusal(id, METHOD_NOT_FOUND, `Method not found: ${method}`, { reason: 'methodNotFound' }));
        if (this.#open >= MAX_RUNNING)
            return answer(refusal(id, 429, 'Too many requests are open', { reason: 'rateLimited' }));
        const ms = params?._meta?.['weft/deadlineMs'];
        if (typeof ms === 'number' && ms <= 0)
            return answer(abandoned(id, TOO_LATE));
        const context = new Context(this.#transport, id, params, answer);
        try {
            const result = handler(params, context);
            if (isObject(result) && (typeof result.then === 'function' || result[Symbol.asyncIterator]))
                this.#later(context, result, ms);
            else
                this.#reply(context, result);
        } catch (error) {
            this.#fail(context, error);
        }
    }

    /* Requests are numbered by what they are, so that "1" and 1 are two. Of two with one id the later can be withdrawn. */
    #later(context, result, ms) {
        this.#running.set(context.id, context);
        context.counts = true;
        this.#open++;
        if (typeof ms === 'number' && ms < MAX_TIMER)
            context.timer = setTimeout(() => this.#abandon(context, TOO_LATE), ms);
        const value = typeof result.then === 'function' ? result : sendParts(result, context);
        value.then(value => this.#reply(context, value), error => this.#fail(context, error));
    }

    #abandon(context, why) {
        if (!context || context.ended || context.abandon(why))
            return;
        this.#finish(context);
        context.answer(abandoned(context.id, why));
    }

    #finish(context) {
        context.ended = true;
        this.#open -= context.counts ? 1 : 0;
        clearTimeout(context.timer);
        if (this.#running.get(context.id) === context)
            this.#running.delete(context.id);
    }

    #reply(context, result) {
        if (context.ended)
            return;
        try {
            context.answer({ jsonrpc: '2.0', result: result === undefined ? null : result, id: context.id }, context.transferred);
            this.#finish(context);
        } catch (error) {
            this.#fail(context, error); /* it cannot be cloned */
        }
    }

    #fail(context, error) {
        if (context.ended)
            return;
        this.#finish(context);
        const why = error === TOO_LATE ? error : error === CANCELLED || error?.name === 'AbortError' ? CANCELLED : undefined;
        /* Errors of Node have a text there, those of the browser a number of another list. */
        const code = Number.isInteger(error?.code) && !(error instanceof DOMException) ? error.code : INTERNAL_ERROR;
        const text = String(error?.message ?? 'Internal error');
        const answer = why ? abandoned(context.id, why) : refusal(context.id, code, text, error?.data);
        try {
            context.answer(answer);
        } catch {
            /* What came with it cannot be sent, or the connection is gone. */
            delete answer.error.data;
            try {
                context.answer(answer);
            } catch {}
        }
    }
}

const isAnswer = message => !('method' in message) && ('result' in message || 'error' in message);

async function sendParts(iterator, context) {
    const parts = iterator[Symbol.asyncIterator]();
    for (;;) {
        const { done, value } = await parts.next();
        if (done)
            return value;
        if (context.ended)
            return parts.return?.();
        context.part(value);
    }
}

/* ---- transports ---- */

/* Everybody who listens to a transport. Handlers that do not say { all: true } get one JSON-RPC message at a time, as those of
 * other libraries expect; the others also get batches, and what is no message at all. */
function listeners() {
    const handlers = [];
    return {
        add(handler, options) {
            const entry = { handler, all: options?.all };
            handlers.push(entry);
            return () => {
                const at = handlers.indexOf(entry);
                if (at >= 0)
                    handlers.splice(at, 1);
            };
        },
        tell(message) {
            for (const { handler, all } of handlers.length > 1 ? [...handlers] : handlers)
                if (all)
                    guarded(handler, message);
                else
                    for (const one of Array.isArray(message) ? message : [message])
                        if (one?.jsonrpc === '2.0')
                            guarded(handler, one);
        },
    };
}

const isOurs = data => data?.jsonrpc === '2.0' || Array.isArray(data) && data.length > 0 && data.every(one => one?.jsonrpc === '2.0');

const post = port => (message, transfer) => transfer ? port.postMessage(message, transfer) : port.postMessage(message);

/* send(message, transfer) sends; listen(listener) and stop(listener) are for events with data. */
function eventTransport(send, listen, stop, accepts) {
    const heard = listeners();
    const listener = event => {
        if (isOurs(event.data) && (!accepts || accepts(event)))
            heard.tell(event.data);
    };
    let listens = false;
    return {
        send,
        onMessage(handler, options) {
            if (!listens)
                listen(listener); /* not earlier: a port keeps what comes before */
            listens = true;
            return heard.add(handler, options);
        },
        destroy: () => stop(listener),
    };
}

/* Between windows: a page and its frame, a page and what it opened. Only messages of that very window and origin count, and
 * only that origin can read what is sent. The default is the page's own origin. '*' must be said. */
export function windowTransport(target, source = window, origin = source.origin) {
    if (!target)
        throw new TypeError('windowTransport() needs the window of a frame that is in the page');
    if (origin === 'null' || !origin)
        throw new TypeError('This page has an opaque origin: use frameTransport() and parentTransport() of ports.js, or say which origin may read');
    return eventTransport(
        (message, transfer) => target.postMessage(message, origin, transfer),
        listener => source.addEventListener('message', listener),
        listener => source.removeEventListener('message', listener),
        event => event.source === target && (origin === '*' || event.origin === origin));
}

/* A MessagePort. Others may listen on it too. */
export function portTransport(port) {
    return eventTransport(
        post(port),
        listener => {
            port.addEventListener('message', listener);
            port.start?.();
        },
        listener => {
            port.removeEventListener('message', listener);
            port.close();
        });
}

/* A Worker, seen by who started it: of the browser, Deno, Bun, or of Node's worker_threads. */
export function workerTransport(worker) {
    if (worker.addEventListener)
        return eventTransport(post(worker), listener => worker.addEventListener('message', listener),
            listener => worker.removeEventListener('message', listener));
    let onData; /* an EventEmitter's listeners get the data itself */
    return eventTransport(post(worker), listener => worker.on('message', onData = data => listener({ data })),
        () => worker.off('message', onData));
}

/* The other side of workerTransport, inside of the worker. */
export function selfTransport(scope = globalThis) {
    if (typeof scope.postMessage !== 'function')
        scope = globalThis.process?.getBuiltinModule?.('node:worker_threads')?.parentPort;
    if (!scope || scope.document)
        throw new TypeError('selfTransport() is for dedicated workers; elsewhere use portTransport() with a port that was handed over');
    return workerTransport(scope);
}

const BACKOFF = { first: 100, factor: 2, max: 16_000, jitter: 0.5 };
const OPENED_WELL = 5000; /* a connection that lasted so long, or on which something came, begins the delays anew */

/* A WebSocket that comes back by itself. What was open when it broke has failed: requests are not repeated, subscriptions of
 * weft/subscribe.js resume. While it is not connected send() throws. */
export function webSocketTransport(url, options = {}) {
    const { token, protocols = [], sign, silence, WebSocket: Socket = globalThis.WebSocket } = options;
    const backoff = options.reconnect === false ? undefined : { ...BACKOFF, ...options.reconnect };
    const heard = listeners(), watchers = new Set();
    let state, socket, timer, attempt = 0, round = 0, queue = [], signing = Promise.resolve();

    const setState = (name, more) => {
        state = { name, since: Date.now(), attempt, ...more };
        [...watchers].forEach(watch => guarded(watch, state));
    };

    async function connect() {
        clearTimeout(timer);
        attempt++;
        const mine = ++round;
        setState('connecting');
        let opened = 0, well = false, last = now(), watch, own;
        const end = (code, reason) => {
            clearInterval(watch);
            if (mine !== round)
                return;
            round++;
            queue = [];
            if (well || opened && now() - opened > OPENED_WELL)
                attempt = 0;
            lose(code, reason);
        };
        try {
            const place = typeof url === 'function' ? await url() : url;
            const secret = typeof token === 'function' ? await token() : token;
            if (mine !== round)
                return;
            own = socket = new Socket(place, secret ? ['weft', ...protocols, `weft.token.${secret}`] : protocols);
        } catch (error) {
            end(0, error.message);
            return;
        }
        own.binaryType = 'arraybuffer';
        own.onopen = () => {
            opened = now();
            if (silence)
                watch = setInterval(() => now() - last > silence && (own.close(), end(0, 'silence')), silence / 4);
            setState('open');
            queue.splice(0).forEach(message => guarded(transmit, message));
        };
        own.onmessage = ({ data }) => {
            well = true;
            last = now();
            if (mine === round)
                texts(typeof data === 'string' ? data : new TextDecoder().decode(data), heard.tell);
        };
        /* Close follows at once, but not in Node's own when it could not connect. */
        own.onerror = ({ message } = NONE) => opened || setTimeout(() => end(1006, message), 0);
        own.onclose = ({ code, reason }) => end(code, reason);
    }

    function lose(code, reason) {
        if (!backoff) {
            setState('closed', { code, reason });
            return;
        }
        const plain = Math.min(backoff.max, backoff.first * backoff.factor ** Math.max(0, attempt - 1));
        const delay = plain * (1 + backoff.jitter * (2 * Math.random() - 1));
        timer = setTimeout(connect, delay);
        setState('waiting', { code, reason, retryAt: Date.now() + delay });
    }

    function transmit(message) {
        const to = socket;
        if (to.bufferedAmount > MAX_BUFFERED)
            throw failure('disconnected', 'JSON-RPC connection does not take more for now');
        if (!sign)
            return to.send(JSON.stringify(message));
        /* Signing takes a while; what was sent first goes first. */
        const signed = signing.then(() => sign(message)).then(text => to.send(text));
        signing = signed.catch(() => {});
        return signed;
    }

    function send(message) {
        if (state.name === 'open')
            return transmit(message);
        if (state.name !== 'connecting' || queue.length >= MAX_QUEUE)
            throw failure('disconnected', 'JSON-RPC not connected');
        queue.push(message);
    }

    const retry = () => state.name === 'waiting' && void connect();
    globalThis.addEventListener?.('online', retry);
    connect();
    return {
        send,
        onMessage: heard.add,
        get state() {
            return state;
        },
        onState(watch) {
            watchers.add(watch);
            return () => watchers.delete(watch);
        },
        retry,
        destroy() {
            round++;
            clearTimeout(timer);
            globalThis.removeEventListener?.('online', retry);
            socket?.close();
            if (state.name !== 'closed')
                setState('closed', { reason: 'destroyed' });
        },
    };
}

const parsed = text => {
    try {
        return JSON.parse(text);
    } catch {
        return undefined;
    }
};

/* One frame holds one text, or several on lines of their own. */
function texts(frame, tell) {
    const whole = parsed(frame);
    if (whole !== undefined)
        tell(whole);
    else
        frame.split('\n').filter(line => line.trim()).forEach(line => tell(parsed(line)));
}
