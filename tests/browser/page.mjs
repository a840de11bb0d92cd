/* What the tests in a browser share: Chromium without a window, and a small server for the files that a test gives it. Not a test
 * itself. */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { cleanup, needed, run, skip } from '../interop/kit.mjs';

const { chromium } = needed('playwright-core');
const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(name => fs.existsSync(name));
if (!program) {
    skip('Chromium', 'it is not installed (tools/install.sh test)');
    await run();
}
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--disable-dev-shm-usage'];
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.css': 'text/css' };

/* Serves files: { '/path': text }, and whole folders: { '/prefix/': folder }. The result is its origin. */
export async function serveFiles(files, headers = {}) {
    const server = http.createServer((request, response) => {
        const name = decodeURIComponent(request.url.split(/[?#]/)[0]);
        const prefix = Object.keys(files).find(one => one.endsWith('/') && one !== '/' && name.startsWith(one));
        const file = prefix && path.join(files[prefix], path.normalize(name.slice(prefix.length)));
        const body = file ? fs.existsSync(file) && fs.readFileSync(file) : files[name];
        response.writeHead(body === undefined || body === false ? 404 : 200, { 'Content-Type': TYPES[path.extname(name)] ?? 'text/html', ...headers });
        response.end(body || '');
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    cleanup(() => new Promise(resolve => { server.closeAllConnections(); server.close(resolve); }));
    return `http://127.0.0.1:${server.address().port}`;
}

let browser;
/* A page in a profile of its own; options are those of a context of Playwright. What it writes to the console, and errors that nobody
 * caught, are in said. */
export async function newPage(options) {
    if (!browser) {
        browser = await chromium.launch({ executablePath: program, headless: true, args: FLAGS });
        cleanup(() => browser.close());
    }
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.said = [];
    page.on('console', message => page.said.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', error => page.said.push(`uncaught: ${error.message}`));
    return page;
}
