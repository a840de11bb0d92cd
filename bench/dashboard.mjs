#!/usr/bin/env node
/* The budgets of the dashboard, measured in headless Chromium against the real hub: build/weft must be there. It prints figures and
 * asserts nothing.
 *
 *     node bench/dashboard.mjs [paint|log|million|sessions]
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { follow } from '../tests/interop/hub.mjs';
import { scratch } from '../tests/interop/kit.mjs';
import { chromium, openPage, startHub } from '../tests/browser/dashboard_kit.mjs';

const wanted = process.argv[2] ?? '';
const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
const browser = await chromium(['--enable-precise-memory-info', '--js-flags=--expose-gc']);
const say = (what, figures) => console.log(what.padEnd(34), Object.entries(figures).map(([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value * 10) / 10 : value}`).join(', '));

/* An agent that prints lines at a steady rate: seconds and lines per second are the words of the prompt. */
const printer = path.join(scratch(), 'printer.mjs');
fs.writeFileSync(printer, `
let text = '';
process.stdin.on('data', piece => { text += piece; }).on('end', () => {
    const [, seconds, rate] = /(\\d+) (\\d+)/.exec(text + process.argv.slice(2).join(' ')) ?? [0, 1, 10];
    const began = Date.now();
    let sent = 0;
    const timer = setInterval(() => {
        const due = Math.min(seconds * rate, Math.floor((Date.now() - began) / 1000 * rate));
        let out = '';
        for (; sent < due; sent++)
            out += 'line ' + sent + (rate > 10000 ? ' of\\n' : ' of the log, with some words in it that make it as long as a usual one\\n');
        process.stdout.write(out);
        if (sent >= seconds * rate)
            clearInterval(timer);
    }, 20);
});
`);
const config = { tasks: { max_running: 120, max_queue: 20_000 }, agents: { printer: { driver: 'cli', command: [process.execPath, printer, '{prompt}'] } } };

/* Times between frames, while something goes on. */
const watchFrames = page => page.evaluate(() => {
    window.frames_ = [];
    window.longTasks = 0;
    new PerformanceObserver(list => { window.longTasks += list.getEntries().length; }).observe({ type: 'longtask' });
    let last = performance.now();
    const tick = now => {
        window.frames_.push(now - last);
        last = now;
        window.frameTimer = requestAnimationFrame(tick);
    };
    window.frameTimer = requestAnimationFrame(tick);
});
const framesSeen = async page => (await page.evaluate(() => { cancelAnimationFrame(window.frameTimer); return window.frames_; })).sort((a, b) => a - b);
const heap = page => page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
const nodes = page => page.evaluate(() => document.getElementsByTagName('*').length);
async function cpu(page) {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    return async () => (await session.send('Performance.getMetrics')).metrics.find(one => one.name === 'TaskDuration').value;
}
const firstPaint = page => page.evaluate(async () => {
    while (!document.querySelector('main .vrow, main .empty, main .inbox-row'))
        await new Promise(resolve => requestAnimationFrame(resolve));
    return performance.now();
});

const BENCHES = {
    async paint() {
        const hub = await startHub({ config });
        const { call } = await follow(hub);
        for (const count of [0, 1000]) {
            for (let i = 0; i < count; i += 100)
                await Promise.all(Array.from({ length: Math.min(100, count - i) }, (_, j) => call('task.submit', { prompt: `hang ${i + j}`, priority: -1 })));
            const page = await openPage(browser, hub, '#/tasks');
            await firstPaint(page);
            const times = [];
            for (let i = 0; i < 5; i++) {
                await page.reload({ waitUntil: 'commit' });
                times.push(await firstPaint(page));
            }
            say(`first useful paint, ${count} tasks`, { ms: times.sort((a, b) => a - b)[2], slowest: times.at(-1) });
            await page.context().close();
        }
        await hub.stop('SIGKILL').catch(() => {});
    },
    async log() {
        const hub = await startHub({ config });
        const { call, event } = await follow(hub);
        const seconds = Number(process.env.SECONDS_OF_LOG ?? 60);
        const { taskId } = await call('task.submit', { prompt: `${seconds} 5000`, agent: 'printer' });
        const { data } = await event(one => one.type === 'task.queued' && one.data.taskId === taskId, 'the task');
        const page = await openPage(browser, hub, `#/session/${data.sessionId}`);
        await page.waitForTimeout(2000);
        /* What the machine does to a page that shows nothing, at the same time. */
        const idle = await (await browser.newContext()).newPage();
        const busy = await cpu(page), before = await busy(), began = Date.now(), heaps = [];
        await watchFrames(page);
        await watchFrames(idle);
        let most = 0;
        while (Date.now() - began < (seconds - 6) * 1000) {
            await page.waitForTimeout(3000);
            most = Math.max(most, await nodes(page));
            heaps.push(await heap(page));
        }
        const frames = await framesSeen(page), others = await framesSeen(idle), used = (await busy()) - before;
        say(`5,000 lines/s for ${seconds} s`, { 'frames': frames.length, 'p50 ms': quantile(frames, 0.5), 'p99 ms': quantile(frames, 0.99), 'longest ms': frames.at(-1), 'p99 of an empty page': quantile(others, 0.99), 'tasks over 50 ms': await page.evaluate(() => window.longTasks), 'most elements': most, 'heap MB first': heaps[1], 'last': heaps.at(-1), 'core %': used / ((Date.now() - began) / 1000) * 100 });
        await page.locator('.turn-end').waitFor({ timeout: 120_000 });
        await page.context().close();
        await hub.stop();
    },
    async million() {
        const hub = await startHub({ config });
        const { call, event, ended } = await follow(hub);
        const { taskId } = await call('task.submit', { prompt: '20 50000', agent: 'printer' });
        const { data } = await event(one => one.type === 'task.queued' && one.data.taskId === taskId, 'the task');
        await new Promise(resolve => setTimeout(resolve, 20_000));
        await ended(taskId);
        const page = await openPage(browser, hub, '#/tasks');
        const began = Date.now();
        await page.evaluate(id => { location.hash = `#/session/${id}`; }, data.sessionId);
        await page.locator('.item-agent', { hasText: /line 999999 / }).waitFor();
        const opened = Date.now() - began;
        await watchFrames(page);
        for (let i = 0; i < 40; i++) {
            await page.mouse.move(600, 400);
            await page.mouse.wheel(0, -1500);
            await page.waitForTimeout(50);
        }
        const frames = await framesSeen(page);
        const find = page.getByLabel('Find in this session');
        const looked = Date.now();
        await find.fill('line 500000 of');
        await find.press('Enter');
        await page.locator('.item.found', { hasText: /line 500000 / }).waitFor({ timeout: 120_000 }).catch(async error => { console.log(await page.locator('.session-status').textContent()); throw error; });
        say('a million lines', { 'opens at the end ms': opened, 'scrolling p99 ms': quantile(frames, 0.99), 'finds the middle ms': Date.now() - looked, elements: await nodes(page), 'heap MB': await heap(page) });
        await page.context().close();
        await hub.stop();
    },
    async sessions() {
        const hub = await startHub({ config });
        const { call, event } = await follow(hub);
        const ids = await Promise.all(Array.from({ length: 100 }, () => call('task.submit', { prompt: '40 20', agent: 'printer' })));
        const { data } = await event(one => one.type === 'task.queued' && one.data.taskId === ids[0].taskId, 'a task');
        for (const address of ['#/tasks', `#/session/${data.sessionId}`]) {
            const page = await openPage(browser, hub, address);
            await page.waitForTimeout(2000);
            const busy = await cpu(page), before = await busy(), began = Date.now();
            await page.waitForTimeout(8000);
            say(`100 sessions, ${address.slice(0, 9)}`, { 'core %': ((await busy()) - before) / ((Date.now() - began) / 1000) * 100, elements: await nodes(page) });
            await page.context().close();
        }
        await hub.stop('SIGKILL').catch(() => {});
    },
};

/* Each has a hub of its own, and so a process of its own. */
if (wanted)
    await BENCHES[wanted]();
await browser.close();
for (const name of wanted ? [] : Object.keys(BENCHES))
    spawnSync(process.execPath, [process.argv[1], name], { stdio: 'inherit' });
process.exit();
