#!/usr/bin/env node
/* What single screens must show and do: the items of a session, a question with its command, changes of every kind, the traffic of
 * others, the hub's figures, tokens that are made and revoked. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { connectTo, follow, weft } from '../interop/hub.mjs';
import { same, source, test } from '../interop/kit.mjs';
import { TABLET, check, checkSilence, chromium, openPage, run, startHub } from './dashboard_kit.mjs';

const agent = { driver: 'acp', command: [process.execPath, path.join(source, 'tests/agents/shower.mjs')] };
/* Passes when it has run twice: the agent of a gated task leaves a line each time. */
const gates = { test: ['/bin/sh', '-c', '[ "$(wc -l < tries)" -ge 2 ] || { echo "src/a.c:3:5: error: it is <b>wrong</b>"; exit 1; }'], lint: ['true'], never: ['/bin/sh', '-c', 'echo no such luck; exit 3'] };
const agents = { shower: agent, tries: { driver: 'cli', command: ['/bin/sh', '-c', 'echo tried >> tries'] }, sleeper: { driver: 'cli', command: ['/bin/sh', '-c', 'sleep 600'] } };
const hub = await startHub({ config: { agents, default_agent: 'shower', tasks: { gates } } });
const put = (name, text) => fs.writeFileSync(path.join(hub.folder, name), text);
const { call, ended, event, session } = await follow(hub);
const browser = await chromium();
const submit = async prompt => (await call('task.submit', { prompt })).taskId;
async function sessionOf(taskId) {
    await event(one => one.type === 'task.queued' && one.data.taskId === taskId, 'the task');
    return session(taskId);
}
const clipboard = page => page.evaluate(() => navigator.clipboard.readText());
async function openWithClipboard(address, options) {
    const page = await openPage(browser, hub, address, options);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    return page;
}

test('a session: thought, plan, tool, text, what it cost; copied as text; paused and followed', async () => {
    const taskId = await submit('show it');
    await ended(taskId);
    const page = await openWithClipboard(`#/session/${await sessionOf(taskId)}`);
    await page.locator('.thought summary', { hasText: 'It depends on the clock.' }).waitFor();
    same(await page.locator('.plan li').allTextContents(), ['\u2713completed: Find it', '\u25d0in progress: Mend it']);
    const tool = page.locator('.item-tool');
    await tool.locator('.state-failed').waitFor();
    await tool.getByText('FAIL retries').waitFor();
    await page.locator('.md-h', { hasText: 'Found' }).waitFor();
    same(await page.locator('.turn-end .dim').first().textContent().then(text => text.split(' \u00b7 ').slice(2)), ['18,204 tokens', '0.25 USD', 'context 25 % full']);
    const side = page.locator('.side');
    await side.getByText('18,204').waitFor();
    await side.getByText('0.25 USD').waitFor();
    await page.getByRole('button', { name: 'Copy as text' }).click();
    await page.getByText('The text was copied.').waitFor();
    const text = await clipboard(page);
    check(/show it/.test(text) && /compares with/.test(text) && !/<|undefined/.test(text), text);
    const followed = page.getByRole('button', { name: 'Follow' });
    same(await followed.getAttribute('aria-pressed'), 'true');
    await followed.click();
    same(await followed.getAttribute('aria-pressed'), 'false');
    await page.keyboard.press('Escape');
    checkSilence(page);
    await page.context().close();
});

test('a terminal: what it prints while it runs, and the whole of it at the end', async () => {
    const taskId = await submit('terminal');
    const page = await openPage(browser, hub, `#/session/${await sessionOf(taskId)}`);
    await page.locator('.terminal', { hasText: 'first' }).waitFor();
    const { terminals: [{ id, terminalId }] } = await call('terminal.list', {});
    await call('terminal.write', { terminalId: terminalId ?? id, text: 'over\n' });
    await page.locator('.turn-end').waitFor();
    const said = page.locator('.tool-body pre', { hasText: 'then: over' });
    await said.waitFor();
    check(/^first[\s\S]*then: over\s+exit code 3$/.test((await said.textContent()).trim()), await said.textContent());
    checkSilence(page);
    await page.context().close();
});

test('a terminal: somebody types into it by keyboard, and what the agent tells meanwhile does not disturb', async () => {
    const taskId = await submit('terminal');
    const page = await openPage(browser, hub, `#/session/${await sessionOf(taskId)}`);
    const line = page.getByLabel('Type into the terminal');
    await line.waitFor();
    await line.fill('half a line');
    await page.getByRole('button', { name: 'Follow' }).click(); /* the rows are painted anew */
    same(await line.inputValue(), 'half a line');
    await line.fill('typed here');
    await page.keyboard.press('Enter');
    await page.locator('.turn-end').waitFor();
    await page.locator('.tool-body pre', { hasText: 'then: typed here' }).waitFor();
    same(await line.count(), 0, 'a line to type into when the program has ended');
    const stopped = await submit('terminal');
    await page.goto(`http://${hub.host}/#/session/${await sessionOf(stopped)}`);
    await line.waitFor();
    await page.getByRole('button', { name: 'Ctrl C' }).click();
    await page.locator('.turn-end').waitFor();
    checkSilence(page);
    await page.context().close();
});

test('a terminal: who may only look cannot type', async () => {
    const { token } = await call('token.add', { name: 'looker', scopes: 'read' });
    const taskId = await submit('terminal');
    const page = await openPage(browser, { host: hub.host, token }, `#/session/${await sessionOf(taskId)}`);
    await page.locator('.terminal', { hasText: 'first' }).waitFor();
    check(!await page.getByLabel('Type into the terminal').isVisible(), 'a line to type into');
    const { terminals } = await call('terminal.list', {});
    await call('terminal.write', { terminalId: terminals.find(one => one.taskId === taskId).id, text: 'over\n' });
    await ended(taskId);
    await page.context().close();
});

test('tables of Markdown: columns on the side that their line says, bars that are text', async () => {
    const taskId = await submit('say\n\n| name | n | mid |\n|:---|---:|:--:|\n| a \\| b | 1 | x |\n');
    await ended(taskId);
    const page = await openPage(browser, hub, `#/session/${await sessionOf(taskId)}`);
    await page.locator('.tablebox').waitFor();
    same(await page.locator('.tablebox td').allTextContents(), ['a | b', '1', 'x']);
    for (const cells of ['th', 'td'])
        same(await page.locator(`.tablebox ${cells}`).evaluateAll(all => all.map(one => getComputedStyle(one).textAlign)), ['left', 'right', 'center']);
    checkSilence(page);
    await page.context().close();
});

test('gated tasks: sent from the page, their iterations, what the gates said, and who is told when one failed', async () => {
    const page = await openPage(browser, hub, '#/gated');
    await page.getByText('No gated task yet').waitFor();
    await page.getByRole('button', { name: 'New gated task' }).first().click();
    await page.getByLabel('Prompt').fill('make it pass');
    await page.getByLabel('Agent').selectOption('tries');
    await page.getByLabel('never').uncheck();
    check(!await page.getByLabel('Priority').isVisible(), 'gated tasks have no priority');
    await page.getByLabel('Iterations at most').fill('3');
    await page.getByRole('button', { name: /Submit/ }).click();
    await page.waitForURL(/#\/gated\/gated-/);
    await page.locator('.gated-about .state-completed').waitFor();
    same(await page.locator('.gate h3').allTextContents(), ['test', 'lint']);
    same(await page.locator('.gate .state').allTextContents(), ['passed', 'passed']);
    same(await page.locator('.gated tbody tr').count(), 2, 'iterations');
    await page.locator('.gated tbody tr').first().locator('.state-failed', { hasText: 'test' }).waitFor();
    await page.locator('.gated-about', { hasText: 'iteration 2 of 3' }).waitFor();
    /* One that fails is for the Inbox, until somebody has looked. */
    fs.rmSync(path.join(hub.folder, 'tries'));
    await page.goto(`http://${hub.host}/#/inbox`);
    const failing = (await call('sendTask', { prompt: 'this cannot pass', gates: ['test', 'never'], agent: 'tries', maxIterations: 1 })).taskId;
    const row = page.locator('.inbox-row', { hasText: 'this cannot pass' });
    await row.waitFor();
    await row.locator('a').click();
    await page.locator('.failure', { hasText: 'after 1 iteration.' }).waitFor();
    const other = await openPage(browser, hub, '#/inbox');
    await page.getByRole('link', { name: 'Open it' }).click();
    await page.waitForURL(new RegExp(`#/gated/${failing}`));
    await page.locator('.gate', { hasText: 'src/a.c:3:5' }).getByRole('link', { name: 'src/a.c:3:5' }).waitFor();
    await page.locator('.gate', { hasText: 'it is <b>wrong</b>' }).waitFor();
    await page.locator('.gate', { hasText: 'no such luck' }).locator('.state-failed').waitFor();
    await page.locator('.gated-error', { hasText: 'reason: gateFailed' }).waitFor();
    await other.locator('.nav .count').waitFor({ state: 'hidden' }); /* what is chosen stays until one goes on */
    await other.reload();
    await other.waitForSelector('body[data-connection=live]');
    await other.getByText('Nothing waits for you').waitFor();
    same(await other.locator('.inbox-row', { hasText: 'this cannot pass' }).count(), 0);
    await other.context().close();
    /* One that runs, by keyboard: it goes on over a restart of the page, and is cancelled. */
    const { taskId: long } = await call('sendTask', { prompt: 'it takes long', gates: ['test'], agent: 'sleeper' });
    for (const key of ['g', 'g'])
        await page.keyboard.press(key);
    await page.locator('.gated-row', { hasText: 'it takes long' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`#/gated/${long}`));
    await page.locator('.gated-about', { hasText: 'the agent works' }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForTimeout(1200); /* time goes on meanwhile; the focus stays */
    await page.keyboard.press('Enter');
    await page.locator('.gated-about .state-cancelled').waitFor();
    checkSilence(page);
    await page.context().close();
});

test('a question: the command as one would type it, its folder, every option within sight on a tablet', async () => {
    const taskId = await submit('command');
    const page = await openPage(browser, hub, '#/inbox', { viewport: TABLET });
    await page.locator('.argv', { hasText: `make test 'CFLAGS=-O2 -g' -j2` }).waitFor();
    await page.locator('.question dd', { hasText: hub.folder }).first().waitFor();
    for (const name of ['Allow once', 'Always allow make in this project', 'No, and tell it what to do instead']) {
        const box = await page.getByRole('button', { name }).boundingBox();
        check(box.x >= 0 && box.x + box.width <= TABLET.width, `${name} ends at ${box.x + box.width}`);
    }
    const [deny, allow] = await Promise.all(['No, and tell', 'Allow once'].map(name => page.getByRole('button', { name }).boundingBox()));
    check(allow.x - (deny.x + deny.width) >= 24, 'what allows is apart from what denies');
    await page.getByRole('button', { name: 'No, and tell' }).click();
    await ended(taskId);
    await page.getByText('Nothing waits for you').waitFor();
    checkSilence(page);
    await page.context().close();
});

test('changes: a rename, a binary, a deleted file, a long one that is folded, words that are marked', async () => {
    put('old.txt', Array.from({ length: 20 }, (_, i) => `the ${i}th line of a file that is renamed\n`).join(''));
    put('gone.txt', 'it goes\n');
    put('a.c', 'int main(void) {\n    int n = 0;\n    return n;\n}\n');
    const taskId = await submit('change everything');
    await ended(taskId);
    await event(one => one.type === 'task.changed' && one.data.taskId === taskId, 'its changes');
    const page = await openPage(browser, hub, `#/changes/task/${taskId}`);
    const names = page.locator('.pane-list a');
    await names.filter({ hasText: 'new.txt' }).filter({ hasText: 'renamed' }).waitFor();
    await names.filter({ hasText: 'gone.txt' }).filter({ hasText: 'deleted' }).waitFor();
    await names.filter({ hasText: 'pic.png' }).filter({ hasText: 'binary' }).waitFor();
    await page.locator('.dline.d-add ins', { hasText: '17' }).waitFor();
    await page.locator('.dline.d-del del', { hasText: '0' }).waitFor();
    await names.filter({ hasText: 'pic.png' }).click();
    await page.getByText('Binary: not shown line by line.').waitFor();
    const long = page.locator('.d-filehead', { hasText: 'long.txt' });
    await names.filter({ hasText: 'new.txt' }).click();
    await long.getByText('600 lines folded').waitFor();
    await long.getByRole('button', { name: 'Unfold long.txt' }).click();
    await page.locator('.d-add', { hasText: 'line 1 of the long file' }).waitFor();
    await page.keyboard.press('s');
    await page.locator('.dpair', { hasText: 'line 1 of the long file' }).waitFor();
    checkSilence(page);
    await page.context().close();
});

test('the preview without a page: what to do is not hidden behind the console, nor the other way round', async () => {
    const page = await openPage(browser, hub, '#/preview', { viewport: { width: 720, height: 450 } });
    await page.getByText('No page to show').waitFor();
    const clear = page.getByRole('button', { name: 'Clear' });
    check(await clear.evaluate(el => { const { x, y, width, height } = el.getBoundingClientRect(); return el.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }), 'something lies over the console');
    await page.getByText('The button Build runs it').scrollIntoViewIfNeeded();
    check(await page.getByText('The button Build runs it').evaluate(el => { const { x, y } = el.getBoundingClientRect(); return el.contains(document.elementFromPoint(x + 5, y + 5)); }), 'the last step cannot be seen');
    checkSilence(page);
    await page.context().close();
});

test('traffic: what others say, both ways; filtered, paused, one of them in full, copied as a command that works', async () => {
    const page = await openWithClipboard('#/traffic');
    await page.getByText('Nothing is said').waitFor();
    const other = await connectTo(hub);
    const { result: listed } = await other('task.list', {});
    await other('task.get', { taskId: 'nothing' });
    await other('token.add', { name: 'secret', scopes: 'read' });
    const frames = page.locator('.frame');
    await frames.filter({ hasText: 'token.add' }).nth(1).waitFor();
    const all = await frames.allTextContents();
    check(all.some(text => /\u2192 hub.*task\.list/.test(text)) && all.some(text => /\u2190 hub.*task\.list.* ms/.test(text)), all.join('\n'));
    check(!all.some(text => /traffic\.watch|hub\.whoami/.test(text)), 'the page\'s own are left out');
    same(await page.locator('.frame-error').count(), 1, 'errors');
    await frames.filter({ hasText: 'token.add' }).nth(1).locator('button').click();
    check(/"token": "(\*+|\[.*\]|\u2026|<.*>)/.test(await page.locator('.traffic-detail pre').textContent()) && !/"token": "[0-9a-zA-Z_-]{20,}"/.test(await page.locator('.traffic-detail pre').textContent()), await page.locator('.traffic-detail pre').textContent());
    await page.getByLabel('Filter frames').fill('task.list');
    await page.getByText(/^2 frames/).waitFor();
    await frames.first().locator('button').click();
    await page.getByRole('button', { name: 'Copy as weft call' }).click();
    await page.getByText('The command was copied.').waitFor();
    const command = await clipboard(page);
    check(command.startsWith('weft call task.list'), command);
    const said = execFileSync('/bin/sh', ['-c', command.replace(/^weft /, `'${weft}' `)], { cwd: hub.folder, env: hub.env, encoding: 'utf8' });
    same(JSON.parse(said), listed, command);
    await page.getByLabel('Filter frames').fill('');
    await page.getByRole('button', { name: 'Pause' }).click();
    const before = await frames.count();
    await other('task.stats', {});
    await page.getByText(/2 came since/).waitFor();
    same(await frames.count(), before, 'frames while it is paused');
    await page.getByRole('button', { name: 'Pause' }).click();
    await frames.filter({ hasText: 'task.stats' }).nth(1).waitFor();
    checkSilence(page);
    await page.context().close();
});

test('health: figures, charts, errors by their reason', async () => {
    const page = await openPage(browser, hub, '#/health');
    await page.locator('.chart', { has: page.getByRole('heading', { name: 'Connections' }) }).locator('.now', { hasText: /^[1-9]/ }).waitFor();
    same(await page.locator('.chart h3').allTextContents(), ['Connections', 'Requests', 'Errors', 'Tasks that wait', 'Tasks that run', 'Store: time of a commit (99 %)', 'Store: size', 'Loop delay (99 %)', 'Memory', 'Sent']);
    await page.locator('.chart .plot-line').nth(9).waitFor({ state: 'attached' });
    const row = page.getByRole('row', { name: /taskNotFound/ });
    await row.waitFor();
    const count = Number((await row.getByRole('cell').last().textContent()).replaceAll(',', ''));
    check(count >= 1, `${count} times`);
    await call('task.get', { taskId: 'nothing' }).catch(() => {});
    await row.getByText(String(count + 1), { exact: true }).waitFor();
    await page.getByText(/The last (minute|\d+ minutes)/).waitFor();
    checkSilence(page);
    await page.context().close();
});

test('devices: a token is made, used, and revoked while its page is open', async () => {
    const page = await openPage(browser, hub, '#/devices');
    const long = 'm'.repeat(64);
    await call('token.add', { name: long, scopes: 'read' });
    await page.reload();
    const revoke = page.getByRole('row', { name: long }).getByRole('button');
    await revoke.waitFor();
    check(await revoke.evaluate(el => el.getBoundingClientRect().right <= el.closest('.scroller').getBoundingClientRect().right), 'the longest name leaves room for its button');
    await call('token.revoke', { name: long });
    await page.getByLabel('Name').fill('my tablet!');
    await page.getByRole('button', { name: 'Make a token' }).click();
    check(/letters, digits/.test((await page.getByLabel('Name').getAttribute('title')) ?? ''), 'which names there are is said');
    await page.getByLabel('Name').fill('tablet');
    await page.getByRole('button', { name: 'Make a token' }).click();
    const token = await page.locator('.secret').textContent();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    const row = page.getByRole('row', { name: /tablet/ });
    await row.getByText('read work', { exact: true }).waitFor();
    await row.getByText('not since start').waitFor();
    await row.getByText('in 29 d').waitFor();
    const theirs = await openPage(browser, { host: hub.host, token }, '#/tasks');
    await page.reload();
    await row.getByText('now').first().waitFor();
    await page.getByRole('table').last().getByRole('cell', { name: 'tablet' }).waitFor(); /* connected */
    await row.getByRole('button', { name: 'Revoke' }).click();
    await row.getByRole('button', { name: 'Press again' }).click();
    await row.first().waitFor({ state: 'detached' });
    await theirs.waitForURL(/\/login/);
    checkSilence(page);
    await Promise.all([page, theirs].map(one => one.context().close()));
});

await run();
