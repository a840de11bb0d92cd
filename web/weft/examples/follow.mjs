/* Submit a task to a hub and follow what it says, over lost connections and restarts of the hub:
 *     node web/weft/examples/follow.mjs ws://127.0.0.1:PORT/ws .weft/token 'say hello'
 * The address is printed by weft serve. A Node before 22 has no WebSocket of its own: npm install ws, beside this file. */
import fs from 'node:fs';
import { JSONRPCClient, webSocketTransport } from '../weft.js';
import { Subscriptions, subscribe } from '../subscribe.js';

const [url, tokenFile, prompt] = process.argv.slice(2);
const { WebSocket } = globalThis.WebSocket ? globalThis : await import('ws').catch(() => ({}));
if (!WebSocket) {
    console.error('This Node has no WebSocket. Use Node 22 or later, or install the package ws beside this file.');
    process.exit(1);
}
const client = new JSONRPCClient(webSocketTransport(url, { token: fs.readFileSync(tokenFile, 'utf8').trim(), WebSocket }));

const words = {
    live: () => 'live',
    catchingUp: ({ behind }) => behind ? `catching up, ${behind} events` : 'catching up',
    offline: ({ retryAt }) => retryAt ? `offline, trying again in ${Math.round(retryAt - Date.now())} ms` : 'offline, trying now',
};
const stop = Subscriptions.of(client).onState(state => console.error(words[state.name](state)));

const { taskId } = await client.request('task.submit', { prompt });
for await (const { value } of subscribe(client, 'taskOutput', { taskId })) {
    if (value.text !== undefined)
        process.stdout.write(value.text);
    else if (value.state !== 'queued') /* how it ended */
        break;
    else
        console.error('it begins again');
}
stop();
client.destroy();
