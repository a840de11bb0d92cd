/* The preview boundary: a page shows a project's page in a frame. The frame asks for files (fetch), the page says where to go
 * (navigate, refresh), and the frame tells what happens (console, updateNavigationState, error).
 *
 * The frame is sandboxed without allow-same-origin and reached through the port of ports.js. What is shown there is a stranger's:
 * this side believes nothing that comes from it but text, and the files that it may ask for are those that `files` has. */
import { JSONRPCClient, JSONRPCServer, NAVIGATION_FAILED, PREVIEW_LOAD_FAILED, RPCError } from './weft.js';

const BASE = 'http://preview.invalid'; /* addresses of the project's pages are paths below this */
const MAX_TEXT = 10_000; /* characters of one line of the console */
const MAX_LINES = 1000; /* of the console in a second; the rest is counted */
const RESOURCES = 'script[src], img[src], link[rel~="stylesheet"][href], link[rel~="icon"][href]';
const MAX_RESOURCES = 500; /* of one page */
const MAX_HISTORY = 200;
const BLOB = /blob:\S*?[0-9a-f]{8}-[0-9a-f-]{27}/g;
const TYPES = {
    html: 'text/html', htm: 'text/html', js: 'text/javascript', mjs: 'text/javascript', css: 'text/css', json: 'application/json',
    svg: 'image/svg+xml', png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', ico: 'image/x-icon', txt: 'text/plain',
    md: 'text/plain', wasm: 'application/wasm', woff2: 'font/woff2', xml: 'application/xml', pdf: 'application/pdf',
};

export const navigationFailed = (message, url) =>
    new RPCError(NAVIGATION_FAILED, message, { reason: 'navigationFailed', url: String(url).slice(0, 2048) });
export const previewLoadFailed = message => new RPCError(PREVIEW_LOAD_FAILED, message, { reason: 'previewLoadFailed' });

/* The address as a path of the project; what is invalid, or leads to another origin, is refused. */
function resolve(url, from = BASE) {
    let found;
    try {
        found = new URL(url, from);
        decodeURIComponent(found.pathname);
    } catch {
        throw navigationFailed('This is not an address', url);
    }
    if (typeof url !== 'string' || found.origin !== BASE)
        throw navigationFailed('The address is not one of this project', url);
    return found;
}

const shown = url => url.pathname + url.search + url.hash;

/* ---- base64, which is how bodies travel ---- */

export function toBase64(body) {
    const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body);
    let text = '';
    for (let at = 0; at < bytes.length; at += 0x8000)
        text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    return btoa(text);
}
export const fromBase64 = text => Uint8Array.from(atob(text), one => one.charCodeAt(0));

/* ---- the page's side ---- */

/* An answer to fetch from files(path), which gives { body, type? }, a body, or nothing. A missing file is a result with status
 * 404; a path without an extension falls back to index.html. */
export async function fetchFile(files, { url, method = 'GET' } = {}) {
    const path = decodeURIComponent(resolve(url).pathname);
    if (/[\0\\]/.test(path) || path.split('/').includes('..'))
        throw navigationFailed('The address is not one of this project', url);
    if (method !== 'GET' && method !== 'HEAD')
        return answer(405, 'text/plain', 'Only GET and HEAD');
    const hasExtension = /\.[^/.]+$/.test(path), wanted = path.endsWith('/') ? `${path}index.html` : path;
    let found = await files(wanted), name = wanted;
    if (found === undefined && !hasExtension)
        found = await files(name = '/index.html');
    if (found === undefined && name === '/index.html')
        throw previewLoadFailed('There is no index.html');
    if (found === undefined)
        return answer(404, 'text/plain', `Not found: ${path}`);
    const isFile = typeof found === 'object' && 'body' in found;
    const type = (isFile && found.type) || TYPES[/\.([^/.]+)$/.exec(name)?.[1]?.toLowerCase()] || 'application/octet-stream';
    return answer(200, type, method === 'HEAD' ? '' : isFile ? found.body : found);
}

function answer(status, type, body) {
    const charset = /^text\/|javascript|json/.test(type) ? '; charset=utf-8' : '';
    return { status, headers: { 'content-type': type + charset }, body: toBase64(body), encoding: 'base64' };
}

/* What comes out of the frame is a stranger's text. */
const text = value => (typeof value === 'string' ? value : value === undefined ? '' : String(value)).slice(0, MAX_TEXT);
const count = value => Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/* The page's end. files(path), or fetch(params) to answer otherwise, for example by the hub: params => hub.request('fetch', params). */
export function previewParent(transport, { files, fetch = params => fetchFile(files, params), onConsole, onNavigation, onError } = {}) {
    const server = new JSONRPCServer(transport);
    const client = new JSONRPCClient(transport);
    let state = { url: '/', canGoBack: false, canGoForward: false };
    server.method('fetch', params => fetch({ url: params?.url, method: params?.method ?? 'GET' }));
    server.onNotify('console', params => onConsole?.({ level: text(params?.level), message: text(params?.message) }));
    server.onNotify('error', params => onError?.({
        message: text(params?.message), source: text(params?.source), stack: text(params?.stack),
        line: count(params?.line), column: count(params?.column),
    }));
    server.onNotify('updateNavigationState', params => {
        state = { url: text(params?.url), canGoBack: params?.canGoBack === true, canGoForward: params?.canGoForward === true };
        onNavigation?.(state);
    });
    return {
        get state() {
            return state;
        },
        navigate: (url, options) => client.request('navigate', { url }, options),
        back: options => client.request('navigate', { delta: -1 }, options),
        forward: options => client.request('navigate', { delta: 1 }, options),
        refresh: options => client.request('refresh', {}, options),
        destroy: () => (client.destroy(), server.destroy()),
    };
}

/* ---- the frame's side ---- */

/* The frame's end: answers navigate and refresh, sends what the page says, and shows what `fetch` brings. */
export function previewFrame(transport, { scope = globalThis } = {}) {
    const server = new JSONRPCServer(transport);
    const client = new JSONRPCClient(transport);
    const pages = new Pages(client, scope);
    const stop = [tellConsole(client, scope, pages), tellErrors(client, scope, pages), pages.takeLinks(), pages.takeHistory()];
    server.method('navigate', async params => {
        await (Number.isInteger(params?.delta) ? pages.go(params.delta) : pages.open(params?.url));
        return pages.state;
    });
    server.method('refresh', async () => {
        await pages.refresh();
        return pages.state;
    });
    return { pages, destroy: () => (stop.forEach(one => one()), client.destroy(), server.destroy()) };
}

/* notify() without failing: what a page says must not break it. */
function tell(client, method, params) {
    try {
        client.notify(method, params);
    } catch {
        /* The port is closed. */
    }
}

function describe(value) {
    if (typeof value === 'string')
        return value;
    if (value instanceof Error)
        return value.stack ?? String(value);
    try {
        return typeof value === 'object' ? JSON.stringify(value) ?? String(value) : String(value);
    } catch {
        return Object.prototype.toString.call(value);
    }
}

/* console.log and its kind go on working and are told. More than MAX_LINES in a second are counted instead. */
function tellConsole(client, scope, pages) {
    const { console } = scope, levels = ['debug', 'log', 'info', 'warn', 'error'], before = {};
    let second = 0, lines = 0;
    const within = () => {
        const at = Math.floor(performance.now() / 1000);
        if (at !== second) {
            if (lines > MAX_LINES)
                tell(client, 'console', { level: 'warn', message: `${lines - MAX_LINES} lines were left out` });
            [second, lines] = [at, 0];
        }
        return ++lines <= MAX_LINES;
    };
    for (const level of levels) {
        before[level] = console[level];
        console[level] = (...values) => {
            before[level].apply(console, values);
            if (within())
                tell(client, 'console', { level, message: pages.named(values.map(describe).join(' ').slice(0, MAX_TEXT)) });
        };
    }
    return () => Object.assign(console, before);
}

function tellErrors(client, scope, pages) {
    const named = value => pages.named(text(value));
    const onError = ({ message, filename, lineno, colno, error }) =>
        tell(client, 'error', { message: text(message), source: named(filename), line: lineno, column: colno, stack: named(error?.stack) });
    const onRejection = ({ reason }) =>
        tell(client, 'error', { message: text(reason?.message ?? reason), source: '', stack: named(reason?.stack) });
    scope.addEventListener('error', onError);
    scope.addEventListener('unhandledrejection', onRejection);
    return () => {
        scope.removeEventListener('error', onError);
        scope.removeEventListener('unhandledrejection', onRejection);
    };
}

/* The project's pages as the frame shows them, and where it has been. */
class Pages {
    #client;
    #scope;
    #entries = []; /* { url, state, page: which document showed it } */
    #at = -1;
    #blobs = new Map(); /* address that the frame loads -> the project's */
    #round = 0; /* of loading */
    #page = 0; /* the round that brought what is shown */

    constructor(client, scope) {
        this.#client = client;
        this.#scope = scope;
    }

    get state() {
        return { url: shown(this.#here), canGoBack: this.#at > 0, canGoForward: this.#at < this.#entries.length - 1 };
    }
    get #here() {
        return this.#entries[this.#at]?.url ?? new URL('/', BASE);
    }

    async open(address) {
        const url = resolve(address, this.#here);
        await this.#show(url);
        this.#push(url, null);
    }
    async refresh() {
        await this.#show(this.#here);
        if (this.#at < 0)
            this.#push(this.#here, null);
        else
            this.#entries[this.#at].page = this.#page;
    }
    async go(delta) {
        const entry = this.#entries[this.#at + delta];
        if (!entry)
            throw navigationFailed('There is no page there', String(delta));
        const before = this.#entries[this.#at];
        this.#at += delta;
        if (entry.page === before.page) {
            this.#scope.dispatchEvent(new PopStateEvent('popstate', { state: entry.state }));
        } else {
            await this.#show(entry.url);
            entry.page = this.#page;
        }
        this.#tellState();
    }

    /* What the browser says of a file names the address that was made for it; people know the project's. */
    named(said) {
        return said.includes('blob:') ? said.replace(BLOB, blob => this.#blobs.get(blob) ?? blob) : said;
    }

    #push(url, state) {
        this.#entries.splice(this.#at + 1, Infinity, { url, state, page: this.#page });
        if (this.#entries.length > MAX_HISTORY)
            this.#entries.shift();
        this.#at = this.#entries.length - 1;
        this.#tellState();
    }
    #tellState() {
        tell(this.#client, 'updateNavigationState', this.state);
    }

    /* Links inside the project are followed here; others would take the frame away from the project, and are not. */
    takeLinks() {
        const onClick = event => {
            const link = event.target.closest?.('a[href]');
            const address = link?.getAttribute('href');
            if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || address.startsWith('#'))
                return;
            event.preventDefault();
            this.open(address).catch(error => tell(this.#client, 'error', { message: error.message, source: address }));
        };
        this.#scope.document.addEventListener('click', onClick);
        return () => this.#scope.document.removeEventListener('click', onClick);
    }

    /* A page in a sandbox cannot change its address, so the history of a single-page application is kept here. */
    takeHistory() {
        const { history } = this.#scope;
        const from = address => address === undefined || address === null ? this.#here : resolve(String(address), this.#here);
        const own = {
            pushState: (state, _, address) => this.#push(from(address), state),
            replaceState: (state, _, address) => {
                const entry = this.#entries[this.#at];
                if (entry)
                    Object.assign(entry, { state, url: from(address) });
                this.#tellState();
            },
            go: (delta = 0) => void (delta ? this.go(delta) : this.refresh()).catch(() => {}),
            back: () => own.go(-1),
            forward: () => own.go(1),
        };
        Object.assign(history, own);
        return () => Object.keys(own).forEach(name => delete history[name]);
    }

    async #fetch(url) {
        const { status, headers, body } = await this.#client.request('fetch', { url: url.pathname + url.search, method: 'GET' });
        return { status, type: headers?.['content-type'] ?? '', bytes: fromBase64(body) };
    }

    async #show(url) {
        const round = ++this.#round;
        const { status, type, bytes } = await this.#fetch(url);
        if (status !== 200)
            throw navigationFailed(`The page answers ${status}`, shown(url));
        const html = /^text\/html/.test(type) ? new TextDecoder().decode(bytes) : `<pre>${escape(new TextDecoder().decode(bytes))}</pre>`;
        const page = new DOMParser().parseFromString(html, 'text/html');
        const blobs = await this.#inlineResources(page, url);
        if (round !== this.#round) {
            [...blobs.keys()].forEach(blob => URL.revokeObjectURL(blob));
            return;
        }
        [...this.#blobs.keys()].forEach(blob => URL.revokeObjectURL(blob));
        this.#blobs = blobs;
        this.#page = round;
        await this.#replace(page);
    }

    /* Scripts, styles and images of the project become addresses that the frame can load by itself. */
    async #inlineResources(page, base) {
        const blobs = new Map();
        const wanted = [...page.querySelectorAll(RESOURCES)].slice(0, MAX_RESOURCES);
        await Promise.all(wanted.map(async element => {
            const name = element.hasAttribute('src') ? 'src' : 'href', address = element.getAttribute(name);
            let url;
            try {
                url = resolve(address, base);
            } catch {
                return; /* somebody else's: the policy of the frame decides */
            }
            const { status, type, bytes } = await this.#fetch(url);
            if (status !== 200) {
                tell(this.#client, 'error', { message: `${address} answers ${status}`, source: shown(base) });
                return;
            }
            const blob = URL.createObjectURL(new Blob([bytes], { type }));
            blobs.set(blob, shown(url));
            element.setAttribute(name, blob);
        }));
        return blobs;
    }

    async #replace(page) {
        const { document } = this.#scope;
        const scripts = [...page.querySelectorAll('script')];
        document.title = page.title;
        document.head.replaceChildren(...page.head.childNodes);
        document.body.replaceWith(document.adoptNode(page.body));
        /* A script that was parsed elsewhere does not run; a copy of it does. One after the other, as a page would. */
        for (const old of scripts) {
            const script = document.createElement('script');
            for (const { name, value } of old.attributes)
                script.setAttribute(name, value);
            script.textContent = old.textContent;
            script.async = false;
            const loaded = script.src && new Promise(done => { script.onload = script.onerror = done; });
            old.replaceWith(script);
            await loaded;
        }
        document.dispatchEvent(new Event('DOMContentLoaded', { bubbles: true }));
        this.#scope.dispatchEvent(new Event('load'));
    }
}

const escape = text => text.replace(/[&<>]/g, one => `&#${one.charCodeAt(0)};`);
