#!/usr/bin/env node
/* Text from agents, files, branches and prompts stays text: markup, changes of direction and control characters do nothing, on any
 * screen. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { follow } from '../interop/hub.mjs';
import { same, test } from '../interop/kit.mjs';
import { check, checkSilence, chromium, openPage, run, startHub } from './dashboard_kit.mjs';

const MARKUP = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script><svg/onload=hurt=1>';
const BIDI = 'safe\u202egpj.exe\u202c\u2066x\u2069', CONTROL = 'bell\u0007 esc\u001b[31m back\u0008';
const NAME = '<b onclick=hurt()>&quot;\u202etxt.exe';
const LINKS = '[click](javascript:window.hurt=1) [a](https://good.example@evil.example/) ![pic](https://evil.example/track.png) <javascript:hurt()>';

const hub = await startHub();
const git = (...args) => execFileSync('git', args, { cwd: hub.folder, stdio: 'pipe', env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_AUTHOR_NAME: NAME, GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'x', GIT_COMMITTER_EMAIL: 'a@b' } });
git('init', '-q', '-b', 'main');
fs.writeFileSync(path.join(hub.folder, NAME), `${MARKUP}\n${BIDI}\n${CONTROL}\n`);
git('add', '-A');
git('commit', '-q', '-m', `${MARKUP} ${BIDI}`);
git('checkout', '-q', '-b', '<script>hurt</script>');
fs.appendFileSync(path.join(hub.folder, NAME), 'changed\n');
const { call, ended, event } = await follow(hub);
const browser = await chromium();

/* Requests to other hosts, scripts that ran, elements that came out of text: there are none. */
async function lookForHarm(page, what) {
    const found = await page.evaluate(() => ({
        hurt: 'hurt' in window, scripts: document.querySelectorAll('script').length, images: document.querySelectorAll('img').length,
        links: [...document.querySelectorAll('a')].map(one => one.getAttribute('href')).filter(href => !/^(#|https?:|mailto:)/.test(href)),
        hosts: [...document.querySelectorAll('a[href^=http]')].map(one => one.host),
        signs: /[\u202a-\u202e\u2066-\u2069]/.test(document.title) || /[\u0000-\u0008\u000e-\u001f\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent) || [...document.querySelectorAll('[title],[aria-label]')].some(one => /[\u0000-\u0008\u202a-\u202e\u2066-\u2069]/.test(`${one.title}${one.getAttribute('aria-label')}`)),
    }));
    same(found, { hurt: false, scripts: 1, images: 0, links: [], hosts: found.hosts.filter(host => host === 'evil.example'), signs: false }, what);
    same(page.elsewhere, [], `${what}: requests to other hosts`);
    checkSilence(page);
}
async function open(address) {
    const page = await openPage(browser, hub, address);
    page.elsewhere = [];
    page.on('request', request => new URL(request.url()).host !== hub.host && !request.url().startsWith('data:') && page.elsewhere.push(request.url()));
    return page;
}

test('prompts and output', async () => {
    const { taskId } = await call('task.submit', { prompt: `echo ${MARKUP}\n\n${BIDI}\n\n${CONTROL}\n\n${LINKS}\n\n# <b>${MARKUP}\n\n- ${MARKUP}\n\n\`${MARKUP}\`\n\n| ${MARKUP} | b |\n|---|---|\n| ${BIDI} | c |\n` });
    await ended(taskId);
    const { data } = await event(one => one.type === 'task.queued' && one.data.taskId === taskId, 'the task');
    const page = await open(`#/session/${data.sessionId}`);
    await page.locator('.turn-end').waitFor();
    await page.locator('.item-agent').filter({ hasText: MARKUP }).first().waitFor();
    check((await page.locator('.item-agent').allTextContents()).join('').includes('\u27e8U+202E\u27e9'), 'a change of direction is shown');
    same(await page.locator('.item-agent a[href*="evil.example"]').count(), 1, 'the image is a link with its host');
    same(await page.locator('.item-agent .host').first().textContent(), ' evil.example');
    same(await page.locator('.item-agent a[href*="good.example"]').count(), 0, 'a link that hides its host is text');
    await lookForHarm(page, 'session');
    for (const address of ['#/tasks', '#/sessions', '#/inbox']) {
        await page.goto(`http://${hub.host}/${address}`);
        await page.waitForTimeout(300);
        await lookForHarm(page, address);
    }
    await page.context().close();
});

test('a question and a failure', async () => {
    const { taskId } = await call('task.submit', { prompt: `write ${MARKUP} ${BIDI}` });
    await event(one => one.type === 'question.asked' && one.data.taskId === taskId, 'the question');
    const page = await open('#/inbox');
    await page.locator('.question').getByText('<img src=x', { exact: false }).first().waitFor();
    await lookForHarm(page, 'question');
    const answer = page.getByRole('button', { name: 'Allow once' });
    await page.getByLabel('Reason').fill(MARKUP);
    await answer.click();
    await ended(taskId);
    await page.goto(`http://${hub.host}/#/changes/task/${taskId}`);
    await page.locator('.d-add').filter({ hasText: '<img src=x' }).first().waitFor();
    await lookForHarm(page, 'changes');
    await page.context().close();
});

test('names of files and branches, content, authors and subjects of commits', async () => {
    const page = await open('#/files');
    await page.getByText('<script>hurt</script>').waitFor();
    await page.locator('.pane-list a').filter({ hasText: '<b onclick' }).first().click();
    await page.locator('.fline').filter({ hasText: MARKUP }).waitFor();
    await lookForHarm(page, 'file');
    await page.getByRole('button', { name: 'Changes' }).click();
    await page.locator('.d-add').filter({ hasText: 'changed' }).waitFor();
    await lookForHarm(page, 'diff of a file');
    /* Also on a page that begins at the file. */
    await page.reload();
    await page.getByRole('button', { name: 'History' }).click();
    await page.locator('.commit').filter({ hasText: MARKUP }).waitFor();
    await lookForHarm(page, 'history');
    await page.context().close();
});

await run();
