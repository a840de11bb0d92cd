/* Chromium without a window, for the tests that need a browser. Importing this skips the test where there is none. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { cleanup, patiently, request, run, scratch, skip, webSocket } from './kit.mjs';

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(name => fs.existsSync(name));
if (!program) {
    skip('Chromium', 'it is not installed (tools/install.sh test)');
    await run();
}

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--remote-debugging-port=0'];

/* Start it and speak its debugging protocol, which is nearly JSON-RPC: call(method, params) -> result. */
export async function browse() {
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
    let id = 0;
    return async (method, params) => {
        const own = ++id;
        debug.send(JSON.stringify({ id: own, method, params }));
        for (;;) {
            const answer = JSON.parse(await debug.receive());
            if (answer.id === own)
                return answer.result ?? answer.error;
        }
    };
}
