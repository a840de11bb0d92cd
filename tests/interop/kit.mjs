/* What the tests with other people's programs share: a list of tests, servers to start, and one way to send and receive texts
 * over every transport. Not a test itself. PATIENCE only keeps a failure from taking for ever. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';

export const PATIENCE = 120_000;
export const build = process.env.BUILD ?? path.resolve('build');
export const source = process.env.SOURCE ?? path.resolve('.');
export const examples = path.join(build, 'examples');
const require = createRequire(path.join(source, 'build/tools/node_modules/'));

/* ---- tests ---- */

const cases = [];
const counts = { passed: 0, failed: 0, skipped: 0 };
const cleanups = [];

export const test = (name, run) => cases.push({ name, run });
/* At the end of the program, the last first. */
export const cleanup = action => cleanups.push(action);

export function skip(name, why) {
    counts.skipped++;
    console.log(`skip ${name}: ${why}`);
}

/* Reject instead of waiting for ever. */
export function patiently(promise, what, ms = PATIENCE) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export async function run() {
    const wanted = process.argv[2] ?? '';
    process.on('unhandledRejection', error => console.log(`  (unhandled: ${error?.message})`));
    for (const { name, run } of cases.filter(one => one.name.includes(wanted))) {
        const began = Date.now();
        try {
            await patiently(run(), 'the test to end', 2 * PATIENCE);
            counts.passed++;
        } catch (error) {
            counts.failed++;
            console.log(`FAIL ${name}\n  ${(error.stack ?? String(error)).split('\n').slice(0, 4).join('\n  ')}`);
        }
        if (process.env.WEFT_TEST_TIMES && Date.now() - began > 500)
            console.log(`  ${Date.now() - began} ms: ${name}`);
    }
    for (const action of cleanups.reverse())
        await action();
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    process.exit(counts.failed ? 1 : 0);
}

export function check(ok, what) {
    if (!ok)
        throw new Error(what);
}

/* A program in whose messages a sanitizer complains is a failure of the whole script. */
export function failIfSanitizer(program, stderr) {
    if (!/Sanitizer|runtime error:/.test(stderr))
        return;
    counts.failed++;
    console.log(`FAIL ${program}: ${stderr.slice(0, 3000)}`);
}

const brief = value => {
    const text = typeof value === 'string' ? value : JSON.stringify(value) ?? String(value);
    return text.length > 300 ? `${text.slice(0, 300)}... (${text.length})` : text;
};

export function same(is, want, what = 'value') {
    check(isDeepStrictEqual(is, want), `${what}: is ${brief(is)}, want ${brief(want)}`);
}

/* A package of tests/npm, or undefined. */
export function optional(name) {
    try {
        return require(name);
    } catch {
        return undefined;
    }
}

/* A package that all tests of the file need. */
export function needed(name) {
    const found = optional(name);
    if (found)
        return found;
    console.log(`skip ${path.basename(process.argv[1])}: the npm package ${name} is not installed (tools/install.sh test)`);
    console.log('0 passed, 0 failed, 1 skipped');
    process.exit(0);
}

/* ---- files and processes ---- */

let folder;
export function scratch(name = '') {
    if (!folder) {
        folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-'));
        cleanup(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })); // a browser that was ended may still write
    }
    return path.join(folder, name);
}

export class Server {
    constructor(child) {
        this.child = child;
        this.urls = [];
        this.stderr = '';
        this.exited = once(child, 'exit');
    }
    url(scheme) {
        const found = this.urls.find(url => url.startsWith(scheme));
        check(found, `the server has no ${scheme} endpoint`);
        return found;
    }
    port(scheme) {
        return Number(new URL(this.url(scheme).replace(/^\w+:/, 'http:')).port);
    }
    get alive() {
        return this.child.exitCode === null && this.child.signalCode === null;
    }
    /* Resident memory in bytes. */
    memory() {
        const status = fs.readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
        return Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) * 1024;
    }
    async stop() {
        if (this.alive)
            this.child.kill('SIGTERM');
        await this.exited;
    }
}

/* Start one of our servers and wait until it listens on all URLs. */
export async function serve(program, args) {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const server = new Server(child);
    const expected = args.filter(arg => /^(unix:|\w+:\/\/)/.test(arg) && !/^https?:\/\/(?!.*:\d)/.test(arg)).length;
    const ready = new Promise((resolve, reject) => {
        child.stderr.setEncoding('utf8').on('data', text => {
            server.stderr += text;
            server.urls = [...server.stderr.matchAll(/^listening on (.*)$/gm)].map(match => match[1]);
            if (server.urls.length >= expected)
                resolve();
        });
        child.on('error', reject);
        child.on('exit', code => reject(new Error(`${path.basename(program)} ended (${code}): ${server.stderr}`)));
    });
    cleanup(async () => {
        await server.stop();
        failIfSanitizer(path.basename(program), server.stderr);
    });
    await patiently(ready, 'the server to listen');
    return server;
}

export const specServer = (...args) => serve(path.join(examples, 'spec-server'), args);
export const interopServer = (...args) => serve(path.join(build, 'tests/interop_server'), args);

/* Run a program to its end. */
export async function output(program, args, { input = '', env, cwd, timeout = PATIENCE } = {}) {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], cwd, env: env ?? process.env });
    const result = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', text => { result.stdout += text; });
    child.stderr.setEncoding('utf8').on('data', text => { result.stderr += text; });
    child.stdin.on('error', () => {});
    if (input !== null)
        child.stdin.end(input);
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout);
    [result.code] = await once(child, 'close');
    clearTimeout(timer);
    return result;
}

/* What interop_client printed, one object per line. */
export async function weftClient(...args) {
    const { stdout, stderr, code } = await output(path.join(build, 'tests/interop_client'), args);
    check(code !== null, `interop_client was killed: ${stdout}${stderr}`);
    check(code === 0 || code === 1, `interop_client ended with ${code}: ${stderr}`);
    return stdout.split('\n').filter(Boolean).map(line => JSON.parse(line));
}

/* ---- texts over every transport: send(text), await receive(), close() ---- */

/* What has come and not been taken, or who waits for it. */
export class Inbox {
    #texts = [];
    #waiting = [];
    #ended;
    put(text) {
        if (this.#waiting.length)
            this.#waiting.shift().resolve(text);
        else
            this.#texts.push(text);
    }
    /* Instead of take(): every text goes to the function at once. */
    deliver(to) {
        this.#texts.splice(0).forEach(text => to(text));
        this.put = to;
    }
    end(error) {
        this.#ended ??= error ?? new Error('the connection ended');
        for (const { reject } of this.#waiting.splice(0))
            reject(this.#ended);
    }
    get ended() {
        return this.#ended !== undefined;
    }
    take(what = 'a message') {
        if (this.#texts.length)
            return Promise.resolve(this.#texts.shift());
        if (this.#ended)
            return Promise.reject(this.#ended);
        return patiently(new Promise((resolve, reject) => this.#waiting.push({ resolve, reject })), what);
    }
}

/* A byte stream cut into texts by cut(buffer) -> [text, rest] or undefined. */
class Bytes {
    constructor(readable, writable, frame, cut) {
        this.inbox = new Inbox();
        this.writable = writable;
        this.frame = frame;
        let rest = Buffer.alloc(0);
        readable.on('data', bytes => {
            rest = rest.length ? Buffer.concat([rest, bytes]) : bytes;
            for (let found; (found = cut(rest)); rest = found[1])
                this.inbox.put(found[0]);
        });
        readable.on('end', () => this.inbox.end());
        readable.on('error', error => this.inbox.end(error));
        readable.on('close', () => this.inbox.end());
        writable.on('error', () => {});
    }
    send(text) {
        this.writable.write(this.frame(text));
    }
    raw(bytes) {
        return new Promise(resolve => this.writable.write(bytes, resolve));
    }
    receive() {
        return this.inbox.take();
    }
    /* Our half only: the other side may still answer. */
    end() {
        this.writable.end();
    }
    close() {
        this.writable.destroy();
    }
}

/* A line break in JSON is white space, and nothing else may be one. */
export const oneLine = text => text.replace(/[\r\n]+/g, ' ');

function cutLine(bytes) {
    const at = bytes.indexOf(10);
    return at < 0 ? undefined : [bytes.toString('utf8', 0, at), bytes.subarray(at + 1)];
}

function cutHeaders(bytes) {
    const at = bytes.indexOf('\r\n\r\n');
    if (at < 0)
        return undefined;
    const length = Number(/^content-length: *(\d+)/im.exec(bytes.toString('latin1', 0, at))[1]);
    const end = at + 4 + length;
    return bytes.length < end ? undefined : [bytes.toString('utf8', at + 4, end), bytes.subarray(end)];
}

/* Our half may end before theirs: allowHalfOpen. */
/* A Unix socket whose queue of connections is full says EAGAIN at once, where TCP would wait: a server that has not had the
 * processor for a moment. Nothing tells when there is room again. */
export async function connect(url) {
    const where = url.startsWith('unix:') ? { path: url.slice(5) } : { host: '127.0.0.1', port: Number(/:(\d+)/.exec(url.slice(4))[1]) };
    for (const until = Date.now() + PATIENCE;;) {
        const socket = net.connect({ ...where, allowHalfOpen: true });
        socket.setNoDelay(true);
        try {
            await once(socket, 'connect');
            return socket;
        } catch (error) {
            if (error.code !== 'EAGAIN' || Date.now() > until)
                throw error;
            await new Promise(resolve => setTimeout(resolve, 5));
        }
    }
}

const frameLine = text => `${oneLine(text)}\n`;
const frameHeaders = text => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

export async function lines(url) {
    const socket = await connect(url);
    return new Bytes(socket, socket, frameLine, cutLine);
}

export async function headers(url) {
    const socket = await connect(url);
    return new Bytes(socket, socket, frameHeaders, cutHeaders);
}

export function childPipe(program, args, framing = 'lines') {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
    const pipe = framing === 'lines' ? new Bytes(child.stdout, child.stdin, frameLine, cutLine)
        : new Bytes(child.stdout, child.stdin, frameHeaders, cutHeaders);
    pipe.child = child;
    pipe.exited = once(child, 'exit');
    pipe.close = () => child.stdin.end();
    return pipe;
}

export async function webSocket(url, options = {}) {
    const WebSocket = needed('ws');
    const ws = new WebSocket(url, options);
    const inbox = new Inbox();
    ws.on('message', (data, binary) => inbox.put(binary ? data : data.toString()));
    ws.on('close', (code, reason) => inbox.end(Object.assign(new Error(`closed ${code} ${reason}`), { code, reason: String(reason) })));
    await patiently(new Promise((resolve, reject) => ws.on('open', resolve).on('error', reject)), 'the WebSocket to open');
    return { ws, inbox, send: text => ws.send(text), receive: () => inbox.take(), close: () => ws.close() };
}

/* One request; an agent keeps the connection. */
export function request(url, { method = 'POST', body, headers: more = {}, agent } = {}) {
    return patiently(new Promise((resolve, reject) => {
        const req = http.request(url, { method, agent, headers: more }, res => {
            let text = '';
            res.setEncoding('utf8').on('data', piece => { text += piece; });
            res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: text }));
            res.on('error', reject);
        });
        req.on('error', reject);
        req.end(body);
    }), 'an HTTP answer');
}

/* POSTs one after the other; an empty answer is no message. */
export function posts(url) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const inbox = new Inbox();
    const send = text => {
        request(url, { body: text, agent, headers: { 'Content-Type': 'application/json' } }).then(({ status, body }) => {
            if (body)
                inbox.put(body);
            else if (status !== 202 && status !== 204)
                inbox.end(new Error(`HTTP ${status} without a body`));
        }, error => inbox.end(error));
    };
    return { send, receive: () => inbox.take(), close: () => agent.destroy() };
}

/* ---- JSON-RPC ---- */

export const message = (method, params, id) => JSON.stringify({ jsonrpc: '2.0', id, method, params });

/* One call, its answer being the next message. */
export async function ask(pipe, method, params, id = 1) {
    pipe.send(message(method, params, id));
    return JSON.parse(await pipe.receive());
}
