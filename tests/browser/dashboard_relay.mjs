#!/usr/bin/env node
/* The dashboard at a relay of two hubs: one list of both, with the hub's name, and questions that are answered where they were asked. */
import { follow } from '../interop/hub.mjs';
import { same, test } from '../interop/kit.mjs';
import { check, checkSilence, chromium, openPage, patiently, run, startHub } from './dashboard_kit.mjs';

const home = await startHub({ name: 'home' }), work = await startHub({ name: 'work' });
const relay = await startHub({ name: 'relay', args: ['--relay', `home=${home.socket}`, '--relay', `work=${work.socket}`] });
const [atHome, atWork, atRelay] = [await follow(home), await follow(work), await follow(relay)];
const browser = await chromium();
const call = (method, params) => atRelay.call(method, params);
async function until(is) {
    while (!await is())
        await new Promise(resolve => setTimeout(resolve, 20));
}

test('both hubs in one list, and a question answered at its own', async () => {
    await patiently(until(async () => (await call('daemon.status', {})).weft.relay.hubs.every(one => one.state === 'following')), 'both to be followed');
    await call('task.submit', { prompt: 'echo at home' });
    const { taskId } = await call('task.submit', { prompt: 'ask at work', hub: 'work' });
    same(taskId, 'work:task-0000');
    const page = await openPage(browser, relay, '#/tasks');
    await page.getByText('home: demo').first().waitFor();
    await page.getByText('work: demo').first().waitFor();
    await page.goto(`${page.url().split('#')[0]}#/`);
    await page.getByText('work: demo').first().waitFor();
    await page.getByText('Do nothing, with your permission').first().click();
    await page.getByRole('button', { name: /Allow once/ }).first().click();
    await patiently(until(async () => (await atWork.call('task.get', { taskId: 'task-0000' })).state === 'completed'), 'the answer to come to work');
    /* a session of one, read at the relay, written by way of it */
    await page.goto(`${page.url().split('#')[0]}#/session/home:session-0000`);
    await page.getByText('at home').first().waitFor();
    same((await atHome.call('task.list', {})).length, 1);
    same((await atWork.call('task.list', {})).length, 1);
    checkSilence(page);
    check(true, 'it is over');
});

await run();
