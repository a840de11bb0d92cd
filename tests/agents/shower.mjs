/* An ACP agent for the tests of the dashboard. "show": thought, plan, tools, text, usage. "command": it asks whether it may run a
 * command. "terminal": it runs one in a terminal of the hub, until somebody types. "change": it changes the project's files, in every way that a diff knows. Everything else: it says that it was told. */
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const open = new Map();
let lastId = 0, cwd = '.';
const ask = (method, params) => new Promise(resolve => {
    const id = `q${++lastId}`;
    open.set(id, resolve);
    send({ id, method, params });
});

function show(update) {
    update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'It depends on the clock.' } });
    update({ sessionUpdate: 'plan', entries: [{ content: 'Find it', priority: 'high', status: 'completed' }, { content: 'Mend it', priority: 'high', status: 'in_progress' }] });
    update({ sessionUpdate: 'tool_call', toolCallId: 't1', title: 'make test', kind: 'execute', status: 'failed', rawInput: { command: 'make test' }, content: [{ type: 'content', content: { type: 'text', text: 'FAIL retries\n1 failed\n' } }] });
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '## Found\n\nThe test compares with `==`.\n' } });
    update({ sessionUpdate: 'usage_update', used: 50_000, size: 200_000, cost: { amount: 0.25, currency: 'USD' } });
}

async function runInTerminal(sessionId, update) {
    const call = (method, more) => ask(method, { sessionId, ...more }).then(({ result }) => result);
    const { terminalId } = await call('terminal/create', { command: '/bin/sh', args: ['-c', 'echo first; read line; echo "then: $line"; exit 3'] });
    update({ sessionUpdate: 'tool_call', toolCallId: 't3', title: 'a program', kind: 'execute', status: 'in_progress', content: [{ type: 'terminal', terminalId }] });
    await call('terminal/wait_for_exit', { terminalId });
    await call('terminal/release', { terminalId });
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't3', status: 'failed' });
}

function change() {
    const at = name => path.join(cwd, name);
    fs.renameSync(at('old.txt'), at('new.txt'));
    fs.rmSync(at('gone.txt'));
    fs.writeFileSync(at('pic.png'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3]));
    fs.writeFileSync(at('long.txt'), Array.from({ length: 600 }, (_, i) => `line ${i + 1} of the long file\n`).join(''));
    fs.writeFileSync(at('a.c'), fs.readFileSync(at('a.c'), 'utf8').replace('n = 0', 'n = 17'));
}

const ANSWERS = {
    initialize: () => ({ protocolVersion: 1, agentCapabilities: {}, authMethods: [] }),
    'session/new': params => ((cwd = params.cwd), { sessionId: 'one' }),
    async 'session/prompt'({ sessionId, prompt }) {
        const update = one => send({ method: 'session/update', params: { sessionId, update: one } });
        const text = prompt.map(one => one.text ?? '').join('');
        if (text.startsWith('show'))
            show(update);
        else if (text.startsWith('change'))
            change();
        else if (text.startsWith('terminal'))
            await runInTerminal(sessionId, update);
        else if (text.startsWith('command')) {
            await ask('session/request_permission', { sessionId,
                toolCall: { toolCallId: 't2', title: 'Run the tests', kind: 'execute', status: 'pending', rawInput: { command: ['make', 'test', 'CFLAGS=-O2 -g', '-j2'], cwd } },
                options: [{ optionId: 'once', name: 'Allow once', kind: 'allow_once' }, { optionId: 'always', name: 'Always allow make in this project', kind: 'allow_always' },
                    { optionId: 'no', name: 'No, and tell it what to do instead', kind: 'reject_once' }] });
        } else
            update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `I was told: ${text}\n` } });
        return { stopReason: 'end_turn', usage: { totalTokens: 18204, inputTokens: 17000, outputTokens: 1204 } };
    },
};
readline.createInterface({ input: process.stdin }).on('line', async line => {
    const { id, method, params, ...answer } = JSON.parse(line);
    if (!method)
        return open.get(id)?.(answer);
    if (id !== undefined)
        send(ANSWERS[method] ? { id, result: await ANSWERS[method](params) } : { id, error: { code: -32601, message: 'Method not found' } });
});
