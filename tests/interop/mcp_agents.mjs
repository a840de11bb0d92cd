#!/usr/bin/env node
/* Configured MCP servers are handed to ACP agents: to those that the configuration names, and only kinds that the agent says
 * it can use. And an agent cannot use them through the hub. */
import fs from 'node:fs';
import path from 'node:path';
import { check, run, same, scratch, test } from './kit.mjs';
import { startHub } from './mcp_kit.mjs';

/* An agent of ACP in a few lines: it writes down what it was given, and runs a program when it is told to. */
const agent = scratch('agent.mjs');
fs.mkdirSync(path.dirname(agent), { recursive: true });
fs.writeFileSync(agent, `import readline from 'node:readline';
import fs from 'node:fs';
import { spawnSync } from 'node:child_process';
const [, , file, able] = process.argv;
const say = value => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...value }) + '\\n');
const results = {
    initialize: () => ({ protocolVersion: 1, agentCapabilities: { mcpCapabilities: JSON.parse(able) } }),
    'session/new': params => { fs.appendFileSync(file, JSON.stringify(params.mcpServers) + '\\n'); return { sessionId: 's' }; },
    'session/prompt': params => {
        const text = params.prompt[0].text;
        if (text.startsWith('run ')) {
            const { stdout, stderr } = spawnSync(process.env.WEFT, text.slice(4).split(' '), { encoding: 'utf8' });
            say({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: stdout + stderr } } } });
        }
        return { stopReason: 'end_turn' };
    },
};
readline.createInterface({ input: process.stdin }).on('line', line => {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined && method)
        say({ id, ...(results[method] ? { result: results[method](params) } : { error: { code: -32601, message: 'no' } }) });
}).on('close', () => process.exit(0));
`);
const given = name => fs.readFileSync(scratch(name), 'utf8').trim().split('\n').map(line => JSON.parse(line)).pop();
const one = (name, able) => ({ driver: 'acp', command: [process.execPath, agent, scratch(name), JSON.stringify(able)] });
const hub = await startHub({
    files: { command: '/usr/bin/true', args: ['--quick', 'a b'], env: { KEY: 'k=v' } },
    web: { url: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': 'secret' } },
    old: { url: 'http://127.0.0.1:9/sse', transport: 'sse' },
    mine: { command: '/usr/bin/true', agents: ['poor'] },
    nobodys: { command: '/usr/bin/true', agents: [] },
}, { agents: { rich: one('rich', { http: true, sse: true }), poor: one('poor', {}) } });
const task = async (name, prompt) => {
    const { stdout, stderr, code } = await hub.weft('task', 'submit', '--wait', '--agent', name, prompt);
    check(code === 0, stdout + stderr);
    return stdout;
};

test('an agent that can use all of them', async () => {
    await task('rich', 'hello');
    same(given('rich'), [
        { name: 'files', command: '/usr/bin/true', args: ['--quick', 'a b'], env: [{ name: 'KEY', value: 'k=v' }] },
        { type: 'http', name: 'web', url: 'http://127.0.0.1:9/mcp', headers: [{ name: 'X-Key', value: 'secret' }] },
        { type: 'sse', name: 'old', url: 'http://127.0.0.1:9/sse', headers: [] },
    ]);
});
test('an agent that can use programs only', async () => {
    await task('poor', 'hello');
    same(given('poor').map(server => server.name), ['files', 'mine']);
});
test('an agent sees which servers there are, and cannot use them through the hub', async () => {
    const listed = await task('poor', 'run call mcp/servers');
    check(/"files"/.test(listed) && !/secret/.test(listed) && !/--quick/.test(listed), listed);
    for (const method of ['mcp/tools', 'mcp/call', 'mcp/read', 'mcp/prompt', 'mcp/subscribe'])
        check(/agentMayNot|Not for agents/.test(await task('poor', `run call ${method} {"server":"files","tool":"x","uri":"x","prompt":"x"}`)), method);
});

await run();
