#!/usr/bin/env node
/* What an MCP server asks of a person, in the dashboard: a form with every kind of field, filled in as the server gets it; and a server
 * whose names and texts are hostile. */
import fs from 'node:fs';
import { connectTo } from '../interop/hub.mjs';
import { same, test } from '../interop/kit.mjs';
import { axe, check, checkSilence, chromium, openPage, run, scratch, startHub } from './dashboard_kit.mjs';

const MARKUP = '<img src=x onerror="window.hurt=1"><b>x</b>', BIDI = 'safe\u202egpj.exe';

/* A server of 2025-11-25 on standard input and output. Its tool "ask" asks with the form that it is given, and says what came. */
const server = scratch('server.mjs');
fs.mkdirSync(scratch('.'), { recursive: true });
fs.writeFileSync(server, `
import readline from 'node:readline';
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const calls = new Map();
readline.createInterface({ input: process.stdin }).on('line', line => {
    const { id, method, params, result, error } = JSON.parse(line);
    if (!method)
        return send({ id: calls.get(id), result: { content: [{ type: 'text', text: JSON.stringify(result ?? error) }] } });
    if (id === undefined)
        return;
    if (method === 'initialize')
        return send({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: process.argv[2], title: process.argv[2], version: process.argv[2] } } });
    if (method === 'tools/list')
        return send({ id, result: { tools: [{ name: 'ask', title: process.argv[2], description: process.argv[2], inputSchema: { type: 'object' } }] } });
    if (method !== 'tools/call')
        return send({ id, error: { code: -32601, message: 'no' } });
    calls.set('q' + id, id);
    send({ id: 'q' + id, method: 'elicitation/create', params: { mode: 'form', ...params.arguments } });
});
`);
const hub = await startHub({ config: { mcp: { servers: {
    plain: { command: process.execPath, args: [server, 'plain'] },
    hostile: { command: process.execPath, args: [server, `${MARKUP}${BIDI}`] },
} } } });
const ask = await connectTo(hub);
const browser = await chromium();

/* The answer of the tool, when somebody has filled in the form. */
async function asked(name, message, properties, required = []) {
    const { result, error } = await ask('mcp/call', { server: name, tool: 'ask', arguments: { message, requestedSchema: { type: 'object', properties, required } } });
    check(result, JSON.stringify(error));
    return JSON.parse(result.content[0].text);
}

const EVERY = {
    who: { type: 'string', title: 'Your name', description: 'As in your passport', minLength: 2 },
    nick: { type: 'string', title: 'Nickname', default: 'weaver' },
    mail: { type: 'string', title: 'E-mail', format: 'email' },
    day: { type: 'string', title: 'Day', format: 'date' },
    price: { type: 'number', title: 'Price' },
    count: { type: 'integer', title: 'Count', minimum: 1, maximum: 9, default: 3 },
    sure: { type: 'boolean', title: 'Sure', default: true },
    size: { type: 'string', title: 'Size', enum: ['s', 'm', 'l'], enumNames: ['small', 'middle', 'large'] },
    colour: { type: 'string', title: 'Colour', oneOf: [{ const: '#f00', title: 'Red' }, { const: '#00f', title: 'Blue' }] },
    plain: { type: 'array', title: 'Fruit', items: { type: 'string', enum: ['apple', 'pear', 'plum'] }, default: ['pear'], maxItems: 2 },
    titled: { type: 'array', title: 'Towns', items: { anyOf: [{ const: 'b', title: 'Berlin' }, { const: 'r', title: 'Rome' }] }, minItems: 1 },
};

test('a form: every kind of field, what is wrong is said, and the server gets what was filled in', async () => {
    const answer = asked('plain', 'some things', EVERY, ['who', 'size', 'titled']);
    const page = await openPage(browser, hub, '#/inbox');
    const card = page.locator('.question');
    await card.getByLabel('Your name').waitFor();
    await page.getByRole('heading', { name: 'some things', exact: true }).waitFor();
    await card.getByText('the MCP server plain asks').waitFor();
    same(await axe(page), []);
    const accept = card.getByRole('button', { name: 'Accept' }).or(card.getByRole('button', { name: 'Send' })).first();
    /* What must be there is not guessed. */
    same(await card.getByLabel('Size').inputValue(), '');
    await accept.click();
    check(await card.getByLabel('Your name').evaluate(el => el.matches(':invalid') && document.activeElement === el), 'the field that is wrong has the focus');
    await card.getByLabel('Your name').fill('Ada');
    await card.getByLabel('Size').selectOption('middle');
    await accept.click();
    check(await card.getByLabel('Berlin').evaluate(el => el.validationMessage.includes('at least 1')), 'one town is needed');
    await card.getByLabel('Rome').check();
    await card.getByLabel('Berlin').check();
    for (const name of ['apple', 'plum'])
        await card.getByLabel(name, { exact: true }).check();
    await accept.click();
    check(await card.getByLabel('apple').evaluate(el => el.validationMessage.includes('at most 2')), 'two fruits at most');
    await card.getByLabel('pear').uncheck();
    await card.getByLabel('Price').fill('1.5');
    await card.getByLabel('Day').fill('2026-01-31');
    await card.getByLabel('Nickname').fill('');
    await card.getByLabel('Colour').selectOption('Blue');
    await accept.click();
    same(await answer, { action: 'accept', content: { who: 'Ada', nick: '', day: '2026-01-31', price: 1.5, count: 3, sure: true, size: 'm', colour: '#00f', plain: ['apple', 'plum'], titled: ['b', 'r'] } });
    await page.getByText('Nothing waits for you').waitFor();
    checkSilence(page);
    await page.context().close();
});

test('hostile names, texts, choices and defaults stay text', async () => {
    const properties = { [MARKUP]: { type: 'string', title: `${MARKUP}${BIDI}`, description: MARKUP, default: MARKUP }, choice: { type: 'string', title: 'Choice', enum: [MARKUP, BIDI] }, several: { type: 'array', title: BIDI, items: { type: 'string', enum: [MARKUP] } } };
    const answer = asked('hostile', `${MARKUP} ${BIDI}`, properties);
    const page = await openPage(browser, hub, '#/inbox');
    await page.locator('.question').getByText('<img src=x', { exact: false }).first().waitFor();
    const look = async what => same(await page.evaluate(() => ({
        hurt: 'hurt' in window, images: document.querySelectorAll('img').length, bold: [...document.querySelectorAll('b')].some(one => one.textContent === 'x'),
        signs: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent + document.title) || [...document.querySelectorAll('[title],[aria-label],[placeholder]')].some(one => /[\u202a-\u202e\u2066-\u2069]/.test(`${one.title}${one.getAttribute('aria-label')}${one.placeholder}`)),
    })), { hurt: false, images: 0, bold: false, signs: false }, what);
    await look('the question');
    await page.getByLabel('Choice').selectOption({ index: 2 });
    await page.locator('.question').getByRole('button', { name: 'Accept' }).or(page.locator('.question').getByRole('button', { name: 'Send' })).first().click();
    /* What is shown is made harmless; what is sent is what the server offered. */
    same(await answer, { action: 'accept', content: { [MARKUP]: MARKUP, choice: BIDI } });
    await page.goto(`http://${hub.host}/#/health`);
    await page.getByRole('cell', { name: MARKUP, exact: false }).first().waitFor();
    await look('the server, on Health');
    checkSilence(page);
    await page.context().close();
});

await run();
