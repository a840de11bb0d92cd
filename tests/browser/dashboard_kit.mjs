/* What the tests of the dashboard share: a real hub, a headless Chromium, pages that are logged in. Not a test itself. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Hub } from '../interop/hub.mjs';
import { PATIENCE, build, check, cleanup, patiently, request, run, scratch, skip, source } from '../interop/kit.mjs';

delete process.env.WEFT_STORE_KIND; /* a page outlives its hub, and what happened must, too */

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(name => fs.existsSync(name));
const require = createRequire(path.join(source, 'build/tools/node_modules/'));
function found(name) {
    try {
        return require(name);
    } catch {
        return null;
    }
}
const playwright = found('playwright-core');
if (!program || !playwright) {
    skip('the dashboard', !program ? 'Chromium is not installed (tools/install.sh test)' : 'playwright-core is not installed (tests/run interop)');
    await run();
}
export const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];
export const DESKTOP = { width: 1440, height: 900 }, TABLET = { width: 1024, height: 768 }, PHONE = { width: 390, height: 844 };

export async function chromium(flags = []) {
    const browser = await playwright.chromium.launch({ executablePath: program, headless: true, args: [...FLAGS, ...flags] });
    cleanup(() => browser.close());
    return browser;
}

/* A hub with its own folder, configuration and state. */
export async function startHub(options) {
    return new Hub(options).start();
}

/* The cookie of a login. */
async function logIn(hub) {
    const answer = await request(`http://${hub.host}/login`, { body: `token=${encodeURIComponent(hub.token)}`, headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: `http://${hub.host}` } });
    const [name, value] = String(answer.headers['set-cookie']).split(';')[0].split('=');
    return { name, value, domain: hub.host.split(':')[0], path: '/' };
}

/* A page that is logged in, at an address of the dashboard. Whatever it writes to the console is in page.said, and a test fails on it. */
export async function openPage(browser, hub, address = '', { viewport = DESKTOP, colorScheme = 'light', reducedMotion = 'reduce', ...more } = {}) {
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion, ...more });
    context.setDefaultTimeout(PATIENCE / 2);
    await context.addCookies([await logIn(hub)]);
    return openTab(context, hub, address);
}
export async function openTab(context, hub, address = '') {
    const page = await context.newPage();
    page.said = [];
    page.on('console', message => page.said.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', error => page.said.push(`error: ${error.message}`));
    await page.goto(`http://${hub.host}/${address}`);
    await page.waitForSelector('body[data-connection=live]');
    return page;
}

/* Nothing in the console: neither errors of ours nor complaints of the browser about the page. */
export function checkSilence(page, allowed = /$^/) {
    const said = page.said.filter(line => !allowed.test(line));
    check(!said.length, `the console says ${said.slice(0, 3).join(' | ')}`);
}

/* What axe-core finds in the page as it is now. */
export async function axe(page) {
    /* The policy of the page forbids its scripts: they run in a world of their own, beside the page's. */
    const session = await page.context().newCDPSession(page);
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
    await session.send('Runtime.evaluate', { contextId, expression: axeSource });
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
        contextId, awaitPromise: true, returnByValue: true,
        expression: `axe.run(document, { resultTypes: ['violations'], iframes: false }).then(found => found.violations.flatMap(one => one.nodes.map(node => one.id + ': ' + node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? ''))))`,
    });
    await session.detach();
    if (exceptionDetails)
        throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
}

export { build, check, patiently, run, scratch };
