#!/usr/bin/env node
/* The dashboard against the real hub: submit, watch, answer in one tab and see it in another, reload in the middle, a hub that is killed
 * and comes back, what is refused offline, failures, changes and undo, files, the preview. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { follow, weft } from '../interop/hub.mjs';
import { same, test } from '../interop/kit.mjs';
import { PHONE, check, checkSilence, chromium, openPage, openTab, patiently, run, startHub } from './dashboard_kit.mjs';

/* The hub comes back where it was, so it needs a port of its own. */
const port = await new Promise(resolve => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
        const { port: found } = server.address();
        server.close(() => resolve(found));
    });
});
const hub = await startHub({ config: { listen: [`ws://127.0.0.1:${port}/ws`], build: { command: ['cc', '-c', '-o', '/dev/null', 'broken.c'] } } });
const client = await follow(hub);
const browser = await chromium();

const submit = async (prompt, more) => (await client.call('task.submit', { prompt, ...more })).taskId;
const sessionOf = async taskId => (await client.event(one => one.type === 'task.queued' && one.data.taskId === taskId, `${taskId} to be queued`)).data.sessionId;
/* All lines that the agent said in a session, in the order in which they come when one scrolls from the top to the end. A line that is there
 * twice at a time is marked. What is shown counts when it has stayed as it is for some frames: a busy machine draws few of them. */
const shownText = page => page.evaluate(async () => {
    const list = document.querySelector('.session-column .vlist');
    const all = new Set();
    const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
    const look = () => `${list.scrollTop} ${list.scrollHeight} ${[...list.querySelectorAll('.item')].map(row => row.textContent).join('|')}`;
    const settle = async () => {
        for (let before = '', same = 0; same < 6; same = look() === before ? same + 1 : 0) {
            before = look();
            await frame();
        }
    };
    /* What is above is read when one comes near; the first of all is what the person said. */
    for (let still = 0; still < 3; still = list.scrollTop === 0 && list.querySelector('.item-you') ? still + 1 : 0) {
        list.scrollTop = 0;
        await settle();
    }
    for (let before = -1, still = 0; still < 3; still = list.scrollTop === before ? still + 1 : 0) {
        const now = [...list.querySelectorAll('.item-agent p')].flatMap(row => row.textContent.split('\n'));
        now.forEach((line, i) => all.add(now.indexOf(line) === i ? line : `${line} TWICE`));
        before = list.scrollTop;
        list.scrollTop += list.clientHeight / 2;
        await settle();
    }
    return [...all].join('\n');
});
const linesUpTo = n => Array.from({ length: n }, (_, i) => `line ${i + 1}`).join('\n');

test('submit a task, watch it stream, see its end', async () => {
    const page = await openPage(browser, hub, '#/tasks');
    await page.getByRole('button', { name: 'New task' }).waitFor();
    await page.keyboard.press('c');
    await page.getByLabel('Prompt').fill('slow 2s hello from the dashboard');
    await page.getByRole('dialog').getByRole('button', { name: 'Submit' }).click();
    await page.waitForURL(/#\/session\//);
    await page.getByText('You said: "slow 2s hello from the dashboard"').waitFor();
    same(await page.locator('.turn-end').count(), 0, 'the end, while it runs');
    await page.locator('.item-plan').waitFor();
    await page.locator('.turn-end .state-completed').waitFor();
    await page.locator('.item-tool .state-completed').waitFor();
    await page.locator('.md-code', { hasText: 'I say TEXT and nothing else' }).waitFor(); /* the columns of what it can do stay columns */
    checkSilence(page);
    await page.context().close();
});

test('a permission that is answered in one tab is resolved in the other, with who and what', async () => {
    const one = await openPage(browser, hub, '#/inbox');
    const other = await openTab(one.context(), hub, '#/inbox');
    const taskId = await submit('write a file');
    for (const page of [one, other]) {
        await page.getByText('This file was written by Weft').first().waitFor();
        check(/^\(\d+\)/.test(await page.title()), 'the title carries the count');
    }
    await one.getByLabel('Reason').fill('because');
    await one.getByRole('button', { name: 'Allow once' }).click();
    await client.ended(taskId);
    await other.getByText(/Allow once by .*because/).waitFor();
    same(await other.getByRole('button', { name: 'Allow once' }).count(), 0, 'buttons after the answer');
    await other.locator('.inbox-row', { hasText: 'answered' }).waitFor();
    /* The tab that answered has moved on. */
    await one.getByText('Nothing waits for you').waitFor();
    await one.waitForFunction(() => !document.title.startsWith('('));
    [one, other].forEach(page => checkSilence(page));
    await one.context().close();
});

test('a reload in the middle of a stream loses nothing, and nothing comes twice', async () => {
    const taskId = await submit('slow 4s lines 300');
    const page = await openPage(browser, hub, `#/session/${await sessionOf(taskId)}`);
    await page.locator('.item-agent p').first().waitFor(); /* which of them, is a matter of how quick the machine is */
    await page.reload();
    await page.waitForSelector('body[data-connection=live]');
    await page.locator('.turn-end .state-completed').waitFor();
    same(await shownText(page), linesUpTo(300));
    checkSilence(page);
    await page.context().close();
});

/* Whether the last place is a whole number of pixels depends on how many lines there are. */
test('a reader who goes to the very top stays there, and who goes to the end follows again', async () => {
    for (const lines of [50, 51, 52, 53]) {
        const taskId = await submit(`lines ${lines}`);
        await client.ended(taskId);
        const page = await openPage(browser, hub, `#/session/${await sessionOf(taskId)}`, { viewport: { width: 1000, height: 500 } });
        const follow = page.getByRole('button', { name: 'Follow' });
        const following = on => page.waitForFunction(wanted => document.querySelector('[aria-label=Follow]').getAttribute('aria-pressed') === wanted, String(on));
        await page.locator('.turn-end .state-completed').waitFor();
        for (let i = 0; i < 3; i++) {
            await following(true);
            await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(resolve)))));
            await page.evaluate(() => { document.querySelector('.session-column .vlist').scrollTop = 0; });
            await following(false);
            await page.locator('.item-you').waitFor();
            same(await page.evaluate(() => document.querySelector('.session-column .vlist').scrollTop), 0, 'the place');
            await follow.click();
            await page.waitForFunction(() => { const list = document.querySelector('.session-column .vlist'); return list.scrollTop > 0 && list.scrollTop + list.clientHeight > list.scrollHeight - 2; });
        }
        checkSilence(page);
        await page.context().close();
    }
});

test('the hub is killed and started again under the page: it says so, comes back, and has everything', async () => {
    const before = await submit('lines 50');
    await client.ended(before);
    const sessionId = await sessionOf(before);
    const page = await openPage(browser, hub, `#/session/${sessionId}`);
    await page.locator('.turn-end .state-completed').waitFor();
    await hub.stop('SIGKILL');
    await page.getByText(/offline since \d\d:\d\d, trying again/).waitFor();
    /* What is done offline is refused in words, and is not sent later. */
    await page.getByLabel('Say more').fill('echo one more');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('It was not sent', { exact: true }).waitFor();
    await page.getByText('there is no connection to the hub').waitFor();
    await page.getByText('reason: disconnected').waitFor();
    await hub.start();
    await page.waitForSelector('body[data-connection=live]');
    await page.getByText('reason: disconnected').waitFor({ state: 'detached' });
    same(await page.getByLabel('Say more').inputValue(), 'echo one more', 'what was typed stays');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.item-you', { hasText: 'echo one more' }).waitFor();
    await page.locator('.item-agent ~ .item-you ~ .item-end').waitFor();
    same(await shownText(page), `${linesUpTo(50)}\none more`);
    checkSilence(page, /WebSocket connection to|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
    await page.context().close();
});

test('what fails in a dialog is said in front of it; a screen that did not come while the hub was away comes when it is back', async () => {
    const page = await openPage(browser, hub, '#/tasks');
    await page.getByRole('button', { name: 'New task' }).click();
    await page.getByLabel('Prompt').fill('hello');
    const other = await openPage(browser, hub, '#/tasks');
    await hub.stop('SIGKILL');
    await page.locator('.connection', { hasText: 'offline' }).waitFor();
    const place = () => page.evaluate(() => getComputedStyle(document.querySelector('dialog .compose')).padding);
    const before = await place();
    await page.locator('dialog .primary').click();
    await page.getByText('there is no connection to the hub').waitFor();
    same(await place(), before, 'the space around the form, with a message');
    await page.getByRole('button', { name: 'Close this message' }).click();
    check(await page.getByRole('dialog', { name: 'New task' }).isVisible(), 'the form is still there');
    await page.keyboard.press('Escape');
    check(await page.evaluate(() => document.body.contains(document.querySelector('.messages'))), 'messages have a place');
    await other.locator('.connection', { hasText: 'offline' }).waitFor();
    await other.keyboard.press('g');
    await other.keyboard.press('h');
    await other.getByText('Health could not be loaded').waitFor();
    await other.getByText('did not come from the hub').waitFor();
    await hub.start();
    await other.locator('.chart').first().waitFor();
    await Promise.all([page, other].map(one => one.context().close()));
});

test('a failed task waits in the Inbox until somebody looked at it', async () => {
    const again = await follow(hub);
    const { taskId } = await again.call('task.submit', { prompt: 'fail' });
    await again.ended(taskId);
    const page = await openPage(browser, hub, '#/inbox');
    await page.getByText('The demo agent was asked to fail').first().waitFor();
    await page.locator('.failure').getByText('agentError').waitFor();
    await page.getByRole('link', { name: 'Open the session' }).click();
    await page.locator('.turn-end .state-failed').waitFor();
    await again.event(one => one.type === 'task.seen' && one.data.taskId === taskId, 'task.seen');
    await page.goto(`http://${hub.host}/#/inbox`);
    await page.getByText('Nothing waits for you').waitFor();
    checkSilence(page);
    await page.context().close();
});

test('stop, and a prompt that waits behind what runs', async () => {
    const { call, event } = await follow(hub);
    const { taskId } = await call('task.submit', { prompt: 'slow 60s hello' });
    const { data } = await event(one => one.type === 'task.queued' && one.data.taskId === taskId, 'the task');
    const page = await openPage(browser, hub, `#/session/${data.sessionId}`);
    await page.getByLabel('Say more').fill('quiet second');
    await page.keyboard.press('Control+Enter');
    await page.locator('.queued-prompt', { hasText: 'quiet second' }).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.turn-end .state-cancelled').waitFor();
    await page.locator('.turn-end .state-completed').waitFor();
    same(await page.locator('.queued-prompt').count(), 0, 'prompts that wait');
    /* Rows lie one below the other, whatever space their styles give them. */
    await page.waitForFunction(() => {
        const rows = [...document.querySelectorAll('.session-column .vrow')].map(one => one.getBoundingClientRect()).sort((a, b) => a.top - b.top);
        return rows.length > 3 && rows.every((one, i) => !i || one.top >= rows[i - 1].bottom - 1);
    });
    checkSilence(page);
    await page.context().close();
});

test('what a task changed, inline and side by side, and undo', async () => {
    const { call, event, ended } = await follow(hub);
    const file = path.join(hub.folder, 'weft-demo.txt');
    await ended((await call('task.submit', { prompt: 'write the first line', permission: 'all' })).taskId);
    const before = fs.readFileSync(file, 'utf8');
    const { taskId } = await call('task.submit', { prompt: 'write the second line', permission: 'all' });
    await ended(taskId);
    await event(one => one.type === 'task.changed' && one.data.taskId === taskId, 'its changes');
    const page = await openPage(browser, hub, `#/changes/task/${taskId}`);
    await page.locator('.d-add', { hasText: '- write the second line' }).first().waitFor();
    await page.keyboard.press('s');
    await page.locator('.dpair', { hasText: '- write the second line' }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    same(fs.readFileSync(file, 'utf8') === before, false, 'the file after one press');
    await page.getByRole('button', { name: 'Press again' }).click();
    await page.getByRole('button', { name: 'Redo' }).waitFor();
    same(fs.readFileSync(file, 'utf8'), before);
    /* Somebody has changed the same line: it is said, and nothing is done. */
    fs.writeFileSync(file, before.replace(/.*\n$/, 'somebody else\n'));
    await page.getByRole('button', { name: 'Redo' }).click();
    await page.getByRole('button', { name: 'Press again' }).click();
    await page.getByText('Redo: nothing was done').waitFor();
    await page.getByText(/weft-demo.txt: somebody has changed the same lines/).waitFor();
    checkSilence(page);
    await page.context().close();
});

test('files: the tree, a file with numbers', async () => {
    fs.mkdirSync(path.join(hub.folder, 'src'), { recursive: true });
    fs.writeFileSync(path.join(hub.folder, 'src/a.c'), 'int main(void) {\n    return 0;\n}\n');
    const page = await openPage(browser, hub, '#/files');
    await page.getByRole('button', { name: 'src' }).click();
    await page.getByRole('link', { name: 'a.c' }).click();
    await page.locator('.fline', { hasText: 'return 0;' }).waitFor();
    same(await page.locator('.fline').last().locator('.dnum').textContent(), '3');
    checkSilence(page);
    await page.context().close();
});

test('files: a file that is not there says so, beside the tree', async () => {
    fs.writeFileSync(path.join(hub.folder, 'there.txt'), 'x\n');
    const page = await openPage(browser, hub, '#/files/no/such/file.txt');
    await page.getByText('no/such/file.txt cannot be shown').waitFor();
    check(await page.locator('.pane-list a').count() > 0, 'the tree is there');
    await page.context().close();
});

test('preview: a page of the project, its console, an error with its line, back and forward', async () => {
    fs.writeFileSync(path.join(hub.folder, 'index.html'), '<!doctype html><link rel="stylesheet" href="a.css"><h1>First</h1><a href="/two.html">next</a><script src="a.js"></script>');
    fs.writeFileSync(path.join(hub.folder, 'a.css'), 'h1 { color: rgb(1, 2, 3); }');
    fs.writeFileSync(path.join(hub.folder, 'a.js'), 'console.log("hello", 1);\n\nsetTimeout(() => missing(), 1);\ntry { parent.document.title = "stolen"; } catch { console.warn("kept out"); }\nfetch("/login/state").catch(() => console.warn("no network"));');
    fs.writeFileSync(path.join(hub.folder, 'two.html'), '<h1>Second</h1>');
    const page = await openPage(browser, hub, '#/preview');
    const frame = page.frameLocator('iframe');
    await frame.getByRole('heading', { name: 'First' }).waitFor();
    same(await frame.locator('h1').evaluate(el => getComputedStyle(el).color), 'rgb(1, 2, 3)');
    const lines = page.locator('.console-line');
    await lines.filter({ hasText: 'hello 1' }).waitFor();
    await lines.filter({ hasText: 'missing is not defined' }).filter({ hasText: '/a.js:3' }).waitFor();
    await lines.filter({ hasText: 'kept out' }).waitFor();
    await lines.filter({ hasText: 'no network' }).waitFor();
    await frame.getByRole('link', { name: 'next' }).click();
    await frame.getByRole('heading', { name: 'Second' }).waitFor();
    await page.getByLabel('Address in the project').and(page.locator(':visible')).waitFor();
    same(await page.getByLabel('Address in the project').inputValue(), '/two.html');
    await page.getByRole('button', { name: 'Back' }).click();
    await frame.getByRole('heading', { name: 'First' }).waitFor();
    await page.getByRole('button', { name: 'Forward' }).click();
    await frame.getByRole('heading', { name: 'Second' }).waitFor();
    check(!/stolen/.test(await page.title()), 'the frame cannot touch the page');
    await page.context().close();
});

test('a token that may only look sees no buttons that it cannot use', async () => {
    const { call, event } = await follow(hub);
    await call('token.add', { name: 'looker', scopes: 'read' });
    await call('token.revoke', { name: 'looker' });
    const { token } = await call('token.add', { name: 'looker', scopes: 'read' });
    const { taskId } = await call('task.submit', { prompt: 'ask' });
    const page = await openPage(browser, { host: hub.host, token }, '#/inbox');
    await page.getByText('This login may look, not answer').waitFor();
    same(await page.getByRole('button', { name: 'Allow once' }).count(), 0);
    await call('task.cancel', { taskId });
    const { taskId: failed } = await call('task.submit', { prompt: 'fail' });
    const { data: { sessionId } } = await event(one => one.type === 'task.queued' && one.data.taskId === failed, 'the failure');
    const shown = name => page.getByRole('button', { name }).filter({ visible: true }).count();
    await page.locator('.inbox-row', { hasText: 'failed' }).first().locator('a').click();
    await page.locator('.card.failure').waitFor();
    for (const name of ['Try again', 'Mark as seen'])
        same(await shown(name), 0, name);
    await page.goto(`http://${hub.host}/#/sessions`);
    await page.locator('.session-row').first().waitFor();
    same(await shown('New task'), 0, 'a new task, from Sessions');
    await page.goto(`http://${hub.host}/#/tasks`);
    await page.locator('.task-prompt').first().waitFor();
    same([await shown('New task'), await page.getByRole('checkbox').filter({ visible: true }).count()], [0, 0], 'a new task, and tasks to cancel');
    await page.goto(`http://${hub.host}/#/session/${sessionId}`);
    await page.locator('.turn-end').waitFor();
    same(await page.getByLabel('Say more').isVisible(), false, 'a box to say more');
    await call('session.close', { sessionId });
    await page.getByText('This session is closed').waitFor();
    same(await shown('Resume it'), 0, 'a closed session');
    await call('task.seen', { taskIds: [failed] });
    await page.goto(`http://${hub.host}/#/devices`);
    await page.reload();
    await page.waitForSelector('body[data-connection=live]');
    await page.getByText('Connected now').or(page.getByText('The connections cannot be listed')).waitFor();
    same(await page.getByRole('button', { name: 'Make a token' }).isVisible(), false, 'a token may be made');
    await page.context().close();
});

test('no gates yet: the commands that the page shows, pasted into a shell, are what it takes', async () => {
    const page = await openPage(browser, hub, '#/gated');
    await page.getByText('No gate is configured').waitFor();
    const commands = await page.locator('.empty .command code').allTextContents();
    for (const command of commands.slice(0, 2))
        execFileSync('/bin/sh', ['-c', command], { cwd: hub.folder, stdio: 'pipe', env: { ...hub.env, PATH: `${path.dirname(weft)}:${hub.env.PATH}` } });
    await page.reload();
    await page.getByText('No gated task yet').waitFor();
    await page.context().close();
});

test('on a phone: the bar, the question, the sheet', async () => {
    const { call, ended } = await follow(hub);
    const { taskId } = await call('task.submit', { prompt: 'write on the phone' });
    const page = await openPage(browser, hub, '', { viewport: PHONE, hasTouch: true, isMobile: true });
    await page.getByRole('button', { name: 'Allow once' }).tap();
    await ended(taskId);
    await page.locator('.bar').getByRole('link', { name: /Tasks/ }).tap();
    await page.getByRole('link', { name: 'write on the phone' }).tap();
    await page.locator('.turn-end .state-completed').waitFor();
    await page.getByRole('button', { name: 'Details' }).tap();
    await page.getByRole('dialog').getByText('weft-demo.txt').waitFor();
    same(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'no sideways scrolling');
    checkSilence(page);
    await page.context().close();
});

test('build: what the compiler says, with its line', async () => {
    fs.writeFileSync(path.join(hub.folder, 'index.html'), '<h1>First</h1>');
    fs.writeFileSync(path.join(hub.folder, 'broken.c'), 'int main(void) {\n    return nowhere;\n}\n');
    const page = await openPage(browser, hub, '#/preview');
    await page.getByRole('button', { name: 'Build' }).click();
    await page.getByText('the build failed').waitFor();
    await page.locator('.console-error', { hasText: 'nowhere' }).filter({ hasText: 'broken.c:2' }).waitFor();
    await page.getByRole('link', { name: /broken\.c:2/ }).first().click();
    await page.locator('.fline', { hasText: 'return nowhere;' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Build' }).click();
    await page.getByText('the build failed').waitFor();
    fs.writeFileSync(path.join(hub.folder, 'broken.c'), 'int main(void) {\n    return 0;\n}\n');
    await page.getByRole('button', { name: 'Build' }).click();
    await page.getByText('the build failed').waitFor({ state: 'detached' });
    await page.context().close();
});

await run();
