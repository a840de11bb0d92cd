#!/usr/bin/env node
/* Much of everything: a thousand tasks, and ten thousand; a long log, live and from its end; sessions side by side. Asserted are counts,
 * never times; the figures are in bench/dashboard.mjs. */
import { follow } from '../interop/hub.mjs';
import { same, test } from '../interop/kit.mjs';
import { check, checkSilence, chromium, openPage, run, startHub } from './dashboard_kit.mjs';

const MOST_NODES = 5000;
const hub = await startHub({ config: { tasks: { max_queue: 20_000, max_running: 2 } } });
const { call, ended } = await follow(hub);
const browser = await chromium();
const nodes = page => page.evaluate(() => document.getElementsByTagName('*').length);
const hold = [];

async function queue(from, to) {
    for (let i = from; i < to; i += 500)
        await Promise.all(Array.from({ length: Math.min(500, to - i) }, (_, j) => call('task.submit', { prompt: `task number ${i + j} of many` })));
}

test('a log of 20,000 lines: live, then from its end, with few elements, and what is far up is found', async () => {
    const { taskId } = await call('task.submit', { prompt: 'lines 20000' });
    const page = await openPage(browser, hub, '#/tasks');
    await page.getByRole('link', { name: 'lines 20000' }).click();
    await page.locator('.turn-end').waitFor();
    await ended(taskId);
    await page.locator('.item-agent', { hasText: /\bline 20000\b/ }).waitFor();
    check(await nodes(page) < MOST_NODES, `${await nodes(page)} elements`);
    await page.reload();
    await page.locator('.turn-end').waitFor();
    await page.locator('.item-agent', { hasText: /\bline 20000\b/ }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('line 17');
    await page.keyboard.press('Enter');
    await page.locator('.item.found').waitFor();
    await page.getByLabel('Find in this session').fill('line 9123\n');
    await page.getByLabel('Find in this session').press('Enter');
    await page.locator('.item.found', { hasText: /\bline 9123\b/ }).waitFor();
    check(await nodes(page) < MOST_NODES, `${await nodes(page)} elements after finding`);
    await page.getByRole('button', { name: 'Follow' }).click();
    await page.locator('.item-agent', { hasText: /\bline 20000\b/ }).waitFor();
    checkSilence(page);
    await page.context().close();
});

test('a thousand tasks: all are there, few have elements, a filter finds one', async () => {
    await Promise.all([1, 2].map(async () => hold.push((await call('task.submit', { prompt: 'hang' })).taskId)));
    await queue(0, 1000);
    const page = await openPage(browser, hub, '#/tasks');
    await page.getByText(/1,00\d shown of/).waitFor();
    check(await nodes(page) < MOST_NODES, `${await nodes(page)} elements`);
    await page.getByLabel('Filter by text').fill('number 537 ');
    await page.getByText(/^1 shown of/).waitFor();
    await page.getByRole('link', { name: 'task number 537 of many' }).waitFor();
    await page.getByLabel('Filter by text').fill('');
    await page.getByText(/1,00\d shown of/).waitFor();
    /* The list has its height when it has been drawn, which is after it has been counted. */
    await page.waitForFunction(() => {
        const list = document.querySelector('.task-table .vlist');
        list.scrollTop = list.scrollHeight;
        return /lines 20000/.test(list.textContent);
    });
    await page.getByRole('link', { name: 'lines 20000' }).waitFor();
    checkSilence(page);
    await page.context().close();
});

test('ten thousand: loaded page by page, scrolled through, many cancelled at once', async () => {
    await queue(1000, 10_000);
    const page = await openPage(browser, hub, '#/tasks');
    await page.getByText(/10,00\d shown of/).waitFor();
    const list = page.locator('.task-table .vlist');
    for (const part of [0.25, 0.5, 0.75, 1]) {
        await list.evaluate((el, at) => { el.scrollTop = el.scrollHeight * at; }, part);
        await page.waitForFunction(() => { const box = document.querySelector('.task-table .vlist').getBoundingClientRect(); return document.elementFromPoint(box.left + 300, box.top + box.height / 2)?.closest('.task'); });
        check(await nodes(page) < MOST_NODES, `${await nodes(page)} elements`);
    }
    await page.getByLabel('Filter by text').fill('number 99');
    await page.getByText(/^111 shown of/).waitFor();
    await page.getByLabel('Choose all that are shown and not over').check();
    await page.getByText('111 tasks chosen').waitFor();
    await page.getByRole('button', { name: 'Cancel chosen' }).click();
    await page.getByRole('button', { name: 'Press again' }).click();
    await page.getByText('111 tasks cancelled').waitFor();
    await page.getByLabel('Filter by text').fill('');
    await page.getByRole('button', { name: /^cancelled/ }).click();
    await page.getByText(/^111 shown of/).waitFor();
    checkSilence(page);
    await page.context().close();
});

await run();
