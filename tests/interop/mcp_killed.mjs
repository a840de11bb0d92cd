#!/usr/bin/env node
/* The hub is killed while an MCP server waits for a person: nothing of the server is left, and after the next start nobody is
 * asked any more, because nobody waits for the answer. */
import fs from 'node:fs';
import path from 'node:path';
import { check, run, same, scratch, test } from './kit.mjs';
import { question, startHub } from './mcp_kit.mjs';

const file = scratch('server.mjs');
fs.mkdirSync(path.dirname(file), { recursive: true });
fs.writeFileSync(file, `import readline from 'node:readline';
const say = value => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...value }) + '\\n');
readline.createInterface({ input: process.stdin }).on('line', line => {
    const { id, method } = JSON.parse(line);
    if (method === 'initialize')
        say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } } });
    else if (method === 'tools/list')
        say({ id, result: { tools: [] } });
    else if (method === 'tools/call')
        say({ id: 'q', method: 'elicitation/create', params: { message: 'Well?', requestedSchema: { type: 'object', properties: {} } } });
    else if (id !== undefined && method)
        say({ id, error: { code: -32601, message: 'no' } });
}).on('close', () => {});
setInterval(() => {}, 1000);
`);
const alive = pid => {
    try {
        return process.kill(pid, 0);
    } catch {
        return false;
    }
};

test('killed while somebody is asked', async () => {
    const hub = await startHub({ x: { command: process.execPath, args: [file] } }, {}, 'sqlite');
    const call = hub.call('mcp/call', { server: 'x', tool: 't' }).catch(error => error);
    const asked = await question(hub);
    const [{ pid }] = (await hub.call('mcp/servers')).servers;
    check(alive(pid), 'the server runs');
    process.kill(Number(fs.readFileSync(path.join(hub.folder, '.weft/daemon.pid'), 'utf8')), 'SIGKILL');
    await call;
    for (let i = 0; i < 400 && alive(pid); i++)
        await new Promise(done => setTimeout(done, 25));
    check(!alive(pid), 'nothing of the server is left');
    const { code, stderr } = await hub.weft('start');
    check(code === 0, stderr);
    let questions;
    for (let i = 0; i < 200; i++) {
        ({ questions } = await hub.call('question.list'));
        if (!questions.length)
            break;
        await new Promise(done => setTimeout(done, 25));
    }
    same(questions, []);
    const all = (await hub.call('question.list', { all: true })).questions;
    same([all[0].id, all[0].state], [asked.id, 'withdrawn']);
});

await run();
