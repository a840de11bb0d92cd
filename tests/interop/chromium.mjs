#!/usr/bin/env node
/* Chromium as a WebSocket client. The page comes from a route of the same server, so its Origin is the server's own; a page from
 * elsewhere is refused. */
import fs from 'node:fs';
import { browse } from './browser.mjs';
import { check, interopServer, run, same, scratch, test } from './kit.mjs';

/* The lines on the page once its WebSocket has closed. */
async function visit(url) {
    const call = await browse();
    await call('Page.navigate', { url });
    const expression = `new Promise(resolve => {
        const look = () => {
            const text = document.getElementById('out')?.textContent ?? '';
            text.includes('closed') ? resolve(text) : setTimeout(look, 10);
        };
        look();
    })`;
    const { result } = await call('Runtime.evaluate', { expression, awaitPromise: true });
    return result.value.trim().split('\n');
}

const server = await interopServer('ws://127.0.0.1:0/ws');
const origin = server.url('ws:').replace('ws:', 'http:').replace('/ws', '');

test('text, 1 MB both ways, a blob, notifications, a close code', async () => {
    same(await visit(`${origin}/page`), [
        '1 ["h\u00e9llo"]', '2 1000000', '3 1000002', 'told {"n":1}', 'told {"n":2}', 'told {"n":3}', '4 3', '5 "bye"', 'closed 4001 as you wished',
    ]);
});

test('a page from another origin is refused', async () => {
    const file = scratch('page.html');
    const ws = server.url('ws:');
    fs.writeFileSync(file, `<pre id="out"></pre><script>
        const say = text => { document.getElementById('out').textContent += text + '\\n'; };
        const ws = new WebSocket('${ws}');
        ws.onopen = () => say('open');
        ws.onclose = event => say('closed ' + event.code);
        </script>`);
    same(await visit(`file://${file}`), ['closed 1006']);
    check(server.alive, 'the server lives');
});

await run();
