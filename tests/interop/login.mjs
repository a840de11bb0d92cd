#!/usr/bin/env node
/* The hub's login page in Chromium: a page of the hub may work after logging in, and a page of another origin can do nothing
 * with the browser's cookie, also when it is only another port of the same host, which for cookies is the same site. */
import { once } from 'node:events';
import http from 'node:http';
import { browse } from './browser.mjs';
import { Hub } from './hub.mjs';
import { cleanup, request, run, same, test } from './kit.mjs';

const { host: hub, token } = await new Hub().start();

/* A server of somebody else on the same host: any page of it is empty. */
const other = http.createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end('<p>other</p>'));
other.listen(0, '127.0.0.1');
await once(other, 'listening');
cleanup(() => { other.closeAllConnections(); other.close(); });

const call = await browse();

/* Go there, wait until the page is whole, and run this in it. */
async function on(url, expression) {
    await call('Page.navigate', { url });
    const ready = 'new Promise(done => { const look = () => document.readyState === "complete" ? done(location.href) : setTimeout(look, 10); look(); })';
    for (let at = ''; !at.startsWith(url);)
        at = String((await call('Runtime.evaluate', { expression: ready, awaitPromise: true })).result?.value);
    return evaluate(expression);
}
async function evaluate(expression) {
    const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    return exceptionDetails ? `threw ${exceptionDetails.exception?.description ?? exceptionDetails.text}` : result?.value;
}
async function submit(expression, until, path) {
    await evaluate(expression);
    /* The answer may be none: the page it was asked on has gone. */
    for (let at = ['', '-']; !at[0].includes(until) || (path && at[1] !== path);)
        at = await evaluate(`new Promise(done => setTimeout(() => done([document.body?.innerText ?? '', location.pathname]), 10))`) ?? ['', '-'];
}

const POST = `fetch('http://${hub}/rpc', { method: 'POST', credentials: 'include', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'task.submit', params: { prompt: 'echo from a page' } }) })`;
const tasks = async () => {
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'task.list' });
    return JSON.parse((await request(`http://${hub}/rpc`, { headers, body })).body).result.length;
};
const socket = url => `new Promise(done => {
    const ws = new WebSocket('${url}');
    ws.onopen = () => { ws.close(); done('open'); };
    ws.onerror = () => done('refused');
})`;

test('nobody works without logging in', async () => {
    same(await on(`http://${hub}/health`, `${POST}.then(answer => answer.status)`), 401);
    same(await evaluate(socket(`ws://${hub}/ws`)), 'refused');
});

test('a wrong token is refused on the page', async () => {
    same(await on(`http://${hub}/login`, `document.querySelectorAll('script').length`), 0);
    await submit(`document.querySelector('input').value = 'wrong'; document.forms[0].submit()`, 'not right');
});

test('after logging in the hub\'s own pages work, and cannot see the cookie', async () => {
    await on(`http://${hub}/login`, '1');
    await submit(`document.querySelector('input').value = ${JSON.stringify(token)}; document.forms[0].submit()`, '', '/');
    same((await on(`http://${hub}/login`, 'document.body.innerText')).includes('logged in as token'), true);
    same(await on(`http://${hub}/health`, 'document.cookie'), '');
    same(await evaluate(`${POST}.then(answer => answer.status)`), 200);
    same(await tasks(), 1);
    same(await evaluate(socket(`ws://${hub}/ws`)), 'open');
});

for (const host of ['127.0.0.1', 'localhost'])
    test(`a page of another origin can do nothing (${host})`, async () => {
        const page = `http://${host}:${other.address().port}/`;
        same(await on(page, `${POST}.then(answer => answer.status, () => 'failed')`), 'failed', 'fetch');
        /* Without asking first, as a form would send it. */
        const plain = `{ method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'Content-Type': 'text/plain' }, body: '{}' }`;
        same(await evaluate(`fetch('http://${hub}/rpc', ${plain}).then(answer => answer.type, () => 'failed')`), 'opaque', 'no-cors');
        same(await evaluate(`fetch('http://${hub}/events', { credentials: 'include' }).then(answer => answer.status, () => 'failed')`), 'failed', 'GET');
        same(await evaluate(`new Promise(done => {
            const events = new EventSource('http://${hub}/events', { withCredentials: true });
            events.onopen = () => done('open');
            events.onerror = () => { events.close(); done('refused'); };
        })`), 'refused', 'events');
        same(await evaluate(socket(`ws://${hub}/ws`)), 'refused', 'WebSocket');
        same(await evaluate(`new Promise(done => {
            const frame = document.createElement('iframe');
            frame.src = 'http://${hub}/login';
            frame.onload = () => { try { done(frame.contentDocument ? 'readable' : 'closed'); } catch { done('closed'); } };
            document.body.append(frame);
        })`), 'closed', 'frame');
        /* A form that logs the user out. */
        await submit(`document.body.innerHTML = '<form method="post" action="http://${hub}/logout"></form>'; document.forms[0].submit()`, 'originNotAllowed');
        same(await tasks(), 1, 'tasks');
        same(await on(`http://${hub}/health`, `${POST.replace('task.submit', 'echo')}.then(answer => answer.status)`), 200, 'still logged in');
    });

test('after logging out nothing works any more', async () => {
    await on(`http://${hub}/login`, '1');
    await submit(`document.forms[0].submit()`, 'Token');
    same(await on(`http://${hub}/health`, `${POST}.then(answer => answer.status)`), 401);
    same(await tasks(), 1);
});

await run();
