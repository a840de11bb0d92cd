/* Requests signed with node:crypto, as a client in another language would do it: over the Unix socket, HTTP and WebSocket, in a
 * batch, and what is refused. */
import crypto from 'node:crypto';
import fs from 'node:fs';
import { run, same, scratch, test, webSocket } from './kit.mjs';
import { Hub } from './hub.mjs';

const secret = 'a secret that only the two sides have';
const key = scratch('ci.key');
fs.writeFileSync(key, secret + '\n', { mode: 0o600 });

const hub = new Hub({ config: {
    keys: { ci: { file: key, scopes: 'read work' } },
    gates: [{ methods: ['echo'], require: 'signature' }],
} });
await hub.start();
const token = fs.readFileSync(`${hub.folder}/.weft/token`, 'utf8').trim();

/* The document's form: the text of params is what goes into the message. */
function signed(method, id, params, { nonce = crypto.randomUUID(), at = Math.floor(Date.now() / 1000) } = {}) {
    const idText = id === undefined ? '' : JSON.stringify(id), paramsText = params === undefined ? '' : JSON.stringify(params, null, 1);
    const signature = crypto.createHmac('sha256', secret).update([at, nonce ?? '', method, idText, paramsText].join('\n')).digest('base64');
    const auth = { timestamp: at, ...(nonce === null ? {} : { nonce }), key_id: 'ci', signature };
    return `{"jsonrpc":"2.0"${id === undefined ? '' : `,"id":${idText}`},"method":"${method}"` +
        `${params === undefined ? '' : `,"params":${paramsText}`},"auth":${JSON.stringify(auth)}}`;
}

const post = async body => (await fetch(`http://${hub.host}/rpc`, {
    method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body,
})).json();

/* Nothing counts that was stamped in the second in which the hub started. */
for (const until = Math.floor(Date.now() / 1000) + 1; Date.now() / 1000 < until;)
    await post(signed('echo', 0, []));

test('a request', async () => {
    same((await post(signed('echo', 1, { text: 'é 日本 \u2028', list: [1, 2.5e3, null] }))).result,
          { text: 'é 日本 \u2028', list: [1, 2500, null] });
    same((await post(signed('echo', 'a"b', [1], { nonce: null }))).result, [1]);
    same((await post(signed('echo', null, undefined))).id, null);
});

test('a batch', async () => {
    const one = signed('echo', 1, [1]);
    const answers = await post(`[${one},${signed('echo', undefined, [2])},${one},{"jsonrpc":"2.0","id":3,"method":"echo"}]`);
    same(answers.map(a => a.result ?? a.error.data.reason), [[1], 'signatureReplayed', 'signatureMissing']);
    same(answers.filter(a => a.error).map(a => a.error.code), [-32003, -32003]);
});

test('what is refused', async () => {
    const good = signed('echo', 1, { amount: 1 });
    same((await post(good.replace('"amount": 1', '"amount": 2'))).error.data.reason, 'signatureWrong');
    same((await post(good.replace('"id":1', '"id":2'))).error.data.reason, 'signatureWrong');
    same((await post(good.replace('"ci"', '"cj"'))).error.data.reason, 'keyUnknown');
    same((await post(good)).result, { amount: 1 });
    const url = JSON.parse(good);
    url.auth.signature = Buffer.from(url.auth.signature, 'base64').toString('base64url');
    same((await post(good.replace(JSON.parse(good).auth.signature, url.auth.signature))).error.data.reason, 'signatureReplayed');
    const late = await post(signed('echo', 1, [], { at: Math.floor(Date.now() / 1000) - 60 }));
    same(late.error.data.reason, 'signatureExpired');
    same(Math.abs(late.error.data.serverTime - Date.now() / 1000) < 30, true);
});

test('over a WebSocket', async () => {
    const pipe = await webSocket(`ws://${hub.host}/ws`, { headers: { Authorization: `Bearer ${token}` } });
    pipe.send(signed('echo', 'ws', [1]));
    let answer;
    do
        answer = JSON.parse(await pipe.receive());
    while (answer.id !== 'ws');
    same(answer.result, [1]);
    pipe.close();
});

await run();
