/* Signs requests with HMAC-SHA256, as the hub's keys want it (docs/gates.md): over timestamp, nonce, method, id and params, each
 * as its text, with a newline between. The text that was signed is the text that is sent. */

const encoder = new TextEncoder();

/* base64 of bytes. */
const base64 = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes)));

const importKey = (crypto, secret) => crypto.subtle.importKey('raw', typeof secret === 'string' ? encoder.encode(secret) : secret,
    { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);

/* A function for the option sign of webSocketTransport(): takes a message, gives the promise of its text. secret: a text, bytes,
 * or a CryptoKey that the page itself cannot read. What has no method (an answer) goes unsigned. Node 18 has no global crypto:
 * hand in webcrypto of node:crypto. */
export function signer({ keyId, secret, now = () => Date.now(), crypto = globalThis.crypto }) {
    const key = secret.algorithm ? Promise.resolve(secret) : importKey(crypto, secret);
    async function sign(message) {
        if (Array.isArray(message))
            return `[${(await Promise.all(message.map(sign))).join(',')}]`;
        if (typeof message.method !== 'string')
            return JSON.stringify(message);
        const { method, id, params, ...others } = message;
        const timestamp = Math.floor(now() / 1000), nonce = crypto.randomUUID();
        const idText = id === undefined ? '' : JSON.stringify(id), paramsText = params === undefined ? '' : JSON.stringify(params);
        const text = [timestamp, nonce, method, idText, paramsText].join('\n');
        const signature = base64(await crypto.subtle.sign('HMAC', await key, encoder.encode(text)));
        const members = Object.entries({ ...others, method, auth: { timestamp, nonce, key_id: keyId, signature } })
            .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
        return `{${members.join(',')}${idText && `,"id":${idText}`}${paramsText && `,"params":${paramsText}`}}`;
    }
    return sign;
}
