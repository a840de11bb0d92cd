/* Hands a MessagePort from one page to another, and everything after that goes through the port.
 *
 * A sandboxed frame has an opaque origin: nothing can be addressed to it by origin, and its messages come from "null", like
 * those of any other sandboxed frame. So the page that makes the frame puts a nonce into the frame's address. The document
 * that was loaded from there, and no other that the frame may show later, sends the nonce back together with one end of a
 * channel. The nonce counts once. The page itself never posts anything to an origin that it does not know. */
import { portTransport } from './weft.js';

const MARK = 'weft.port';
const PREFIX = '#weft=';
const TIMEOUT = 10_000;

const randomNonce = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');

/* The fragment for the address of a frame, and the nonce in it. It also says which origin may have the port. */
export function invitation(origin = globalThis.origin) {
    const nonce = randomNonce();
    return { nonce, origin, fragment: `${PREFIX}${nonce},${encodeURIComponent(origin)}` };
}

/* Wait for one message that is meant for us. */
function awaitMessage(scope, take, { signal, timeout = TIMEOUT }, what) {
    return new Promise((resolve, reject) => {
        const late = () => fail(Object.assign(new Error(`JSON-RPC timeout: ${what}`), { reason: 'timeout' }));
        const timer = timeout < Infinity ? setTimeout(late, timeout) : undefined;
        const stop = () => {
            clearTimeout(timer);
            scope.removeEventListener('message', listener);
            signal?.removeEventListener('abort', onAbort);
        };
        const fail = error => (stop(), reject(error));
        const onAbort = () => fail(signal.reason);
        const listener = event => {
            const found = take(event);
            if (found) {
                stop();
                resolve(found);
            }
        };
        if (signal?.aborted)
            return fail(signal.reason);
        signal?.addEventListener('abort', onAbort, { once: true });
        scope.addEventListener('message', listener);
    });
}

/* The page's side: a transport to the document in the frame that knows the nonce. origin: that of the frame; 'null' is a
 * sandboxed one. Call it before the frame is loaded. */
export async function frameTransport(frame, { nonce, origin = 'null', scope = globalThis, ...options }) {
    if (typeof nonce !== 'string' || nonce.length < 16)
        throw new TypeError('frameTransport() needs the nonce of an invitation()');
    const port = await awaitMessage(scope, event => {
        const { data, ports, source } = event;
        /* The frame's window is looked at now: it does not exist before the frame is in the page. */
        const mine = source !== null && source === (frame.contentWindow ?? frame) && event.origin === origin;
        return mine && data?.weft === MARK && data.nonce === nonce ? ports[0] : undefined;
    }, options, 'the frame did not call');
    return portTransport(port);
}

/* The frame's side: hands a port to the page that made the frame. Without arguments it reads the invitation from the frame's
 * own address and removes it there. */
export function parentTransport({ nonce, origin, scope = globalThis } = {}) {
    if (nonce === undefined) {
        const [, found, encoded] = new RegExp(`^${PREFIX}([0-9a-f]{32}),(.+)$`).exec(scope.location.hash) ?? [];
        if (!found)
            throw new TypeError('This frame was not invited: its address has no nonce');
        [nonce, origin] = [found, decodeURIComponent(encoded)];
        hideInvitation(scope);
    }
    if (!origin || origin === 'null')
        throw new TypeError('parentTransport() needs the origin of the page that made the frame');
    const { port1, port2 } = new MessageChannel();
    scope.parent.postMessage({ weft: MARK, nonce }, origin, [port2]);
    return portTransport(port1);
}

/* Scripts of the page that is shown later have no use for it. */
function hideInvitation(scope) {
    try {
        scope.history.replaceState(scope.history.state, '', scope.location.href.split('#')[0]);
    } catch {
        /* Documents without an address of their own. The nonce has been used by the time anybody reads it. */
    }
}

/* A page's transport to a service worker, by a port that is handed over. worker: registration.active, or the page's
 * navigator.serviceWorker.controller. */
export function serviceWorkerTransport(worker) {
    const { port1, port2 } = new MessageChannel();
    worker.postMessage({ weft: MARK }, [port2]);
    return portTransport(port1);
}

/* The service worker's side: onTransport(transport, client) for each page that called. Messages of others are not touched. The
 * result ends it. */
export function servePorts(onTransport, scope = globalThis) {
    const listener = event => {
        if (event.data?.weft === MARK && event.ports[0])
            onTransport(portTransport(event.ports[0]), event.source);
    };
    scope.addEventListener('message', listener);
    return () => scope.removeEventListener('message', listener);
}
