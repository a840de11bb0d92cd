#!/usr/bin/env node
/* What every screen must be: clean for axe-core in light and dark, at desktop and phone width and at 200 % zoom, silent, usable by keyboard alone, and
 * small. */
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { follow } from '../interop/hub.mjs';
import { same, source, test } from '../interop/kit.mjs';
import { DESKTOP, PHONE, TABLET, axe, check, checkSilence, chromium, openPage, run, startHub } from './dashboard_kit.mjs';

const gates = { test: ['/bin/sh', '-c', 'echo "a.c:1:2: error: no"; exit 1'], lint: ['true'] };
const hub = await startHub({ config: { tasks: { gates }, mcp: { servers: { elsewhere: { command: '/nonexistent/a-server-that-is-not-installed-here', args: ['stdio'] } } } } });
const { call, ended, event } = await follow(hub);
const browser = await chromium();
fs.writeFileSync(path.join(hub.folder, 'index.html'), '<!doctype html><h1>Hello</h1>');
const submit = async prompt => (await call('task.submit', { prompt })).taskId;
const sessionOf = taskId => event(one => one.type === 'task.queued' && one.data.taskId === taskId, 'the task').then(one => one.data.sessionId);

/* Empty, then with something of everything. */
const EMPTY = ['#/inbox', '#/tasks', '#/gated', '#/sessions', '#/health', '#/devices', '#/traffic'];
let full;
async function fillHub() {
    const said = await submit('echo # Head\n\nText with `code`, **bold** and a [link](https://example.org/).\n\n- one\n- two\n\n```c\nint x;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n');
    await ended(said);
    await ended(await submit('fail'));
    const { taskId: edit } = await call('task.submit', { prompt: 'write a file', permission: 'all' });
    await ended(edit);
    await event(one => one.type === 'task.changed' && one.data.taskId === edit, 'its changes');
    const asks = await submit('fix the test');
    await event(one => one.type === 'question.asked' && one.data.taskId === asks, 'a question');
    await call('token.add', { name: 'phone', scopes: 'read work' });
    await call('mcp/tools', { server: 'elsewhere' }).catch(() => {}); /* Health says why it is not there */
    const { taskId: gated } = await call('sendTask', { prompt: 'echo until it passes', gates: ['test', 'lint'], maxIterations: 1 });
    await call('awaitTask', { taskId: gated }).catch(() => {});
    full = ['#/gated', `#/gated/${gated}`, '#/inbox', '#/tasks', '#/sessions', `#/session/${await sessionOf(said)}`, `#/session/${await sessionOf(asks)}`, `#/changes/task/${edit}`, '#/files/index.html', '#/preview', '#/traffic', '#/health', '#/devices'];
}

async function lookAt(addresses, options) {
    const page = await openPage(browser, hub, '', options);
    for (const address of addresses) {
        await page.goto(`http://${hub.host}/${address}`);
        await page.locator('main > *').first().waitFor();
        await page.waitForTimeout(400);
        same(await axe(page), [], `axe at ${address}`);
        const wide = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll('main, .top, .inbox-list, .inbox-detail, .card, .card-foot, .filters, .pane-head, .address, .composer, .task, .session-row, .frame, .vlist')]
            .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => `${one.localName}.${one.className}`));
        same(wide, [], `${address}: wider than there is room`);
    }
    checkSilence(page);
    await page.context().close();
}
const ZOOMED = { width: 720, height: 450 }; /* what is left of 1440x900 at 200 % */
test('empty: axe-core finds nothing', async () => {
    await lookAt(EMPTY, { colorScheme: 'light' });
    await lookAt(EMPTY, { colorScheme: 'dark', viewport: PHONE });
});
for (const [name, viewport] of [['desktop', DESKTOP], ['tablet', TABLET], ['phone', PHONE], ['200 % zoom', ZOOMED]])
    for (const colorScheme of name === 'tablet' ? ['light'] : ['light', 'dark']) /* its colours are those of the others */
        test(`${name}, ${colorScheme}: axe-core finds nothing`, async () => {
            if (!full)
                await fillHub();
            await lookAt(full, { viewport, colorScheme });
        });
test('dialogs: axe-core finds nothing', async () => {
    const page = await openPage(browser, hub, '#/tasks');
    await page.getByRole('button', { name: 'New task' }).waitFor();
    for (const key of ['c', '?']) {
        await page.keyboard.press(key);
        await page.getByRole('dialog').waitFor();
        same(await axe(page), []);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await page.context().close();
});

test('a key that is pressed when a dialog has just been closed is not typed into it', async () => {
    const page = await openPage(browser, hub, '#/tasks');
    await page.keyboard.press('c');
    await page.getByLabel('Prompt').waitFor();
    const focused = await page.evaluate(() => {
        document.querySelector('dialog').close();
        const { tagName } = document.activeElement;
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
        return tagName;
    });
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor().catch(() => { throw new Error(`no list of keys, with the focus in ${focused}`); });
    await page.context().close();
});

test('a key that is pressed while a screen comes is for that screen', async () => {
    const sessionId = await sessionOf(await submit('echo hello'));
    const page = await openPage(browser, hub, `#/session/${sessionId}`);
    await page.locator('.turn-end').waitFor();
    let arrive;
    const coming = new Promise(resolve => { arrive = resolve; });
    await page.route(/screen_files\.js/, async route => (await coming, route.continue()));
    for (const key of ['g', 'f', 'c', 'c']) /* in the session, c is for saying more */
        await page.keyboard.press(key);
    await page.waitForURL(url => url.hash === '#/files');
    same(await page.locator('.session').count(), 1, 'the old screen');
    same(await page.evaluate(() => document.activeElement.tagName), 'BODY');
    arrive();
    await page.getByRole('dialog', { name: 'New task' }).waitFor();
    same(await page.getByLabel('Prompt').inputValue(), '', 'what is typed ahead is not text');
    await page.keyboard.press('Escape');
    await page.locator('main.screen-files').waitFor();
    /* Escape in the session leads to Sessions; here it leads from Changes to the session. */
    const edit = await submit('write a file by key');
    await page.evaluate(id => { location.hash = `#/session/${id}`; }, await sessionOf(edit));
    await page.getByRole('button', { name: 'Allow once' }).waitFor();
    for (const key of ['a', 'a'])
        await page.keyboard.press(key);
    await page.locator('.turn-end a').waitFor();
    let show;
    const held = new Promise(resolve => { show = resolve; });
    await page.route(/screen_changes\.js/, async route => (await held, route.continue()));
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await page.waitForURL(url => url.hash.startsWith('#/changes/'));
    show();
    await page.waitForURL(url => url.hash.startsWith('#/session/'));
    checkSilence(page);
    await page.context().close();
});

test('Enter presses the button that has the focus, also where Enter has a meaning of its own', async () => {
    const asks = await submit('write by Enter');
    const page = await openPage(browser, hub, `#/session/${await sessionOf(asks)}`);
    await page.getByRole('button', { name: 'Allow once' }).focus();
    await page.keyboard.press('Enter');
    await ended(asks);
    await page.locator('.turn-end a').waitFor();
    const slow = await submit('slow 50s by Enter');
    await page.goto(`http://${hub.host}/#/session/${await sessionOf(slow)}`);
    await page.getByRole('button', { name: 'Stop' }).focus();
    await page.keyboard.press('Enter');
    await ended(slow);
    const denied = await submit('write by Enter, or not');
    await page.goto(`http://${hub.host}/#/inbox/${(await event(one => one.type === 'question.asked' && one.data.taskId === denied, 'a question')).data.questionId}`);
    await page.locator('.question .options-deny button').first().focus();
    await page.keyboard.press('Enter');
    await ended(denied);
    checkSilence(page);
    await page.context().close();
});

test('everything by keyboard alone', async () => {
    if (!full)
        await fillHub();
    const page = await openPage(browser, hub, '#/devices');
    const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
    const at = address => page.waitForURL(url => url.hash.startsWith(address)).catch(() => { throw new Error(`still at ${page.url()}, not at ${address}`); });
    await press('g', 't');
    await at('#/tasks');
    await page.getByRole('button', { name: 'New task' }).waitFor(); /* a screen's keys count when it is there */
    await press('c');
    await page.getByLabel('Prompt').waitFor();
    await page.keyboard.type('write by keyboard');
    await press('Control+Enter');
    await at('#/session/');
    await page.getByRole('button', { name: 'Allow once' }).waitFor();
    await press('d');
    await page.getByText('Press d again').waitFor();
    await press('a');
    await page.getByText('Press a again').waitFor();
    await press('a');
    await page.locator('.turn-end .state-completed').waitFor();
    await press('c');
    same(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Say more');
    await page.keyboard.type('echo needle in the text');
    await press('Control+Enter');
    await page.locator('.turn-end').nth(1).waitFor();
    await press('Escape', '/');
    await page.keyboard.type('needle');
    await press('Enter');
    await page.locator('.item.found').waitFor();
    await press('Escape', 'Enter');
    await at('#/changes/task/');
    await page.locator('.screen-changes .d-add').first().waitFor();
    await press('Escape');
    await at('#/session/');
    await press('g', 't');
    await at('#/tasks');
    await page.locator('.task-prompt').first().waitFor();
    await press('j', 'j', 'k');
    const focused = await page.evaluate(() => document.activeElement.className);
    same(focused, 'task-prompt', 'j and k move the focus');
    check(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle !== 'none'), 'the focus can be seen');
    await press('Enter');
    await at('#/session/');
    for (const [key, address] of [['i', '#/inbox'], ['s', '#/sessions'], ['f', '#/files'], ['p', '#/preview'], ['r', '#/traffic'], ['h', '#/health'], ['d', '#/devices']]) {
        await press('g', key);
        await at(address);
    }
    /* An Inbox without a mouse: the question is denied. */
    await press('g', 'i');
    await page.locator('.question').or(page.locator('.failure')).first().waitFor();
    for (let i = 0; i < 5 && !await page.locator('.question').count(); i++)
        await press('j');
    const before = (await call('question.list', {})).questions.length;
    await press('d', 'd');
    await page.waitForFunction(was => document.querySelectorAll('.inbox-row .state-asks').length < was, before);
    /* Cancelling by keyboard. */
    const slow = await submit('slow 60s hello');
    await press('g', 't');
    await page.locator('.task-prompt', { hasText: 'slow 60s' }).waitFor();
    await page.keyboard.press('j');
    for (let i = 0; i < 10 && await page.evaluate(() => !document.activeElement.textContent.includes('slow 60s')); i++)
        await press('k');
    await press('x');
    await page.getByText('1 task chosen').waitFor();
    await page.getByRole('button', { name: 'Cancel chosen' }).focus();
    await press('Enter', 'Enter');
    await ended(slow);
    /* Every link and button of the page can be reached by Tab. */
    await page.goto(`http://${hub.host}/#/devices`);
    await page.getByRole('button', { name: 'Revoke' }).waitFor();
    const wanted = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select')].filter(one => one.offsetParent && !one.disabled).length);
    const seen = new Set();
    for (let i = 0; i < wanted * 2; i++) {
        await press('Tab');
        seen.add(await page.evaluate(() => { const all = [...document.querySelectorAll('a[href], button, input, select')]; return all.indexOf(document.activeElement); }));
    }
    seen.delete(-1);
    check(seen.size >= wanted, `Tab reaches ${seen.size} of ${wanted}`);
    checkSilence(page);
    await page.context().close();
});

test('sizes: 60 KB for Inbox, Tasks and Session, 150 KB for everything, and no request to another host', async () => {
    if (!full)
        await fillHub();
    const loaded = new Map(), elsewhere = [];
    const page = await openPage(browser, hub, '');
    page.on('request', request => new URL(request.url()).host !== hub.host && !/^(data|blob):/.test(request.url()) && elsewhere.push(request.url()));
    page.on('response', answer => /\/assets\/|\/$/.test(new URL(answer.url()).pathname) && loaded.set(answer.url(), answer));
    const sum = async () => {
        let bytes = 0;
        for (const answer of loaded.values())
            bytes += gzipSync(await answer.body(), { level: 9 }).length;
        return bytes;
    };
    await page.context().clearCookies({ name: 'none' });
    for (const address of ['', '#/tasks', full.find(one => one.startsWith('#/session/'))]) {
        await page.goto(`http://${hub.host}/${address}`);
        await page.waitForTimeout(500);
    }
    await page.reload();
    await page.waitForTimeout(800);
    const first = await sum();
    for (const address of full) {
        await page.goto(`http://${hub.host}/${address}`);
        await page.waitForTimeout(400);
    }
    const all = await sum();
    console.log(`  gzipped: ${(first / 1024).toFixed(1)} KiB for Inbox, Tasks and Session, ${(all / 1024).toFixed(1)} KiB for everything, in ${loaded.size} files`);
    check(first > 20_000 && first <= 60_000, `the first screens are ${first} bytes`);
    check(all <= 150_000, `everything is ${all} bytes`);
    same(elsewhere, []);
    await page.context().close();
});

test('no markup is made of strings, and no style is written into markup', () => {
    const folder = path.join(source, 'web/dashboard/app');
    for (const name of fs.readdirSync(folder).filter(one => one.endsWith('.js'))) {
        const text = fs.readFileSync(path.join(folder, name), 'utf8');
        check(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|setHTML/.test(text), `${name} makes markup of strings`);
    }
});

await run();
