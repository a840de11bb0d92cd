#!/usr/bin/env node
/* weft.js in a page of the hub: with the cookie of a login, and with a token while the hub is killed and started again under
 * the page. The hub has no page that loads it on its own here, so it is put into one that is there. */
import net from 'node:net';
import path from 'node:path';
import { Hub } from '../interop/hub.mjs';
import { check, needed, run, same, source, test } from '../interop/kit.mjs';
import { newPage } from './page.mjs';

const esbuild = needed('esbuild');
delete process.env.WEFT_STORE_KIND; /* what happens is kept: that is part of the test */

/* The same port after a restart, as a page expects it. */
const port = await new Promise(resolve => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
        const { port } = server.address();
        server.close(() => resolve(port));
    });
});
const hub = await new Hub({ config: { listen: [`ws://127.0.0.1:${port}/ws`] } }).start();
const bundle = esbuild.buildSync({
    stdin: { contents: `export * from './weft.js'; export * from './subscribe.js';`, resolveDir: path.join(source, 'web/weft') },
    bundle: true, format: 'iife', globalName: 'weft', write: false,
}).outputFiles[0].text;

async function pageOf(address) {
    const page = await newPage({ bypassCSP: true });
    await page.goto(`http://${hub.host}${address}`);
    return page;
}
const FOLLOW = `(() => {
    self.transport = weft.webSocketTransport('ws://' + location.host + '/ws', self.token ? { token } : {});
    self.client = new weft.JSONRPCClient(transport);
    self.values = []; self.states = [];
    weft.Subscriptions.of(client).onState(({ name }) => states.at(-1) === name || states.push(name));
    self.sub = weft.subscribe(client, 'events', { types: ['task.'] }, { onValue: (value, { seq, fresh }) => values.push({ seq, type: value.type, fresh }) });
})()`;
const ended = n => `values.filter(({ type }) => type === 'task.completed').length === ${n}`;
const until = (page, condition) => page.waitForFunction(condition, undefined, { timeout: 120_000 });

test('the cookie of a login is enough', async () => {
    const page = await pageOf('/login');
    await page.fill('input', hub.token);
    await Promise.all([page.waitForNavigation(), page.press('input', 'Enter')]);
    await page.evaluate(bundle + ';self.weft = weft;');
    await page.evaluate(FOLLOW);
    await until(page, `sub.state.name === 'live'`);
    same((await page.evaluate(`client.request('ping')`)).pong, true);
    await page.evaluate(`client.request('task.submit', { prompt: 'echo cookie' })`);
    await until(page, ended(1));
});

test('the hub is killed and started again under the page', async () => {
    const page = await pageOf('/health');
    await page.evaluate(bundle + `;self.weft = weft; self.token = ${JSON.stringify(hub.token)};`);
    await page.evaluate(FOLLOW);
    await until(page, `sub.state.name === 'live'`);
    for (let round = 1; round <= 2; round++) {
        await page.evaluate(`client.request('task.submit', { prompt: 'echo ${round}' })`);
        await until(page, ended(round));
        await hub.stop('SIGKILL');
        await until(page, `transport.state.name !== 'open'`);
        same(await page.evaluate(`transport.state.name === 'waiting' ? client.request('ping').catch(error => error.reason) : 'disconnected'`), 'disconnected');
        await hub.start();
        await until(page, `transport.state.name === 'open' && weft.Subscriptions.of(client).state.name === 'live'`);
    }
    await page.evaluate(`client.request('task.submit', { prompt: 'echo last' })`);
    await until(page, ended(3));
    const { values, states } = await page.evaluate(`({ values, states })`);
    check(values.every(({ seq }, i) => !i || seq > values[i - 1].seq), 'not in order, or doubled');
    same(values.filter(({ fresh }) => fresh).length, 1, 'how often it began anew');
    check(states.join().includes('live,offline,catchingUp,live,offline,catchingUp,live'), states.join());
});

await run();
