#!/usr/bin/env node
/* Chromium as a WebSocket client. The page comes from a route of the same server, so its Origin is the server's own; a page from
 * elsewhere is refused. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { check, cleanup, interopServer, patiently, request, run, same, scratch, skip, test, webSocket } from './kit.mjs';

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(name => fs.existsSync(name));
if (!program) {
    skip('chromium', 'it is not installed (tools/install.sh test)');
    await run();
}

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--remote-debugging-port=0'];

/* Start it and speak its debugging protocol, which is nearly JSON-RPC: call(method, params) -> result. */
async function browse() {
    const profile = fs.mkdtempSync(`${scratch()}/profile-`);
    const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
    const exited = new Promise(resolve => child.on('exit', resolve));
    cleanup(() => { child.kill('SIGKILL'); return exited; });
    let said = '';
    const port = await patiently(new Promise(resolve => child.stderr.setEncoding('utf8').on('data', text => {
        said += text;
        const found = /DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)/.exec(said);
        if (found)
            resolve(found[1]);
    })), 'Chromium to start');
    const pages = JSON.parse((await request(`http://127.0.0.1:${port}/json`, { method: 'GET' })).body);
    const debug = await webSocket(pages.find(page => page.type === 'page').webSocketDebuggerUrl);
    return async (method, params) => {
        debug.send(JSON.stringify({ id: 1, method, params }));
        for (;;) {
            const answer = JSON.parse(await debug.receive());
            if (answer.id === 1)
                return answer.result ?? answer.error;
        }
    };
}

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
