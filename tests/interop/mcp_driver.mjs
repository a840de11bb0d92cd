/* The client that MCP's conformance suite runs: a hub of its own for the URL that is its last argument, and what the scenario
 * wants of it. Not a test itself; mcp_conformance.mjs starts it. */
import { spawnSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-mcp-'));
const env = { ...process.env, XDG_CONFIG_HOME: path.join(folder, 'home'), XDG_STATE_HOME: path.join(folder, 'state'), WEFT_STORE_KIND: 'memory' };
fs.mkdirSync(path.join(folder, 'home/weft'), { recursive: true });
fs.writeFileSync(path.join(folder, 'home/weft/config.json'), JSON.stringify({ mcp: { servers: { suite: { url } } } }));

const weft = (...args) => spawnSync(process.env.WEFT, args, { cwd: folder, env, encoding: 'utf8' });
const must = result => {
    process.stdout.write(result.stdout);
    process.stderr.write(result.stderr);
    if (result.status !== 0)
        throw new Error(`weft ended with ${result.status}`);
    return result.stdout;
};

async function answerForm() {
    const call = spawn(process.env.WEFT, ['mcp', 'call', 'suite', 'test_client_elicitation_defaults'], { cwd: folder, env, stdio: 'inherit' });
    const ended = once(call, 'exit');
    for (let i = 0; i < 400; i++) {
        const { questions } = JSON.parse(must(weft('call', 'question.list')));
        if (questions.length) {
            must(weft('call', 'question.answer', JSON.stringify({ questionId: questions[0].id, option: 'accept' })));
            break;
        }
        await new Promise(done => setTimeout(done, 25));
    }
    if ((await ended)[0] !== 0)
        throw new Error('the call failed');
}

try {
    must(weft('start'));
    must(weft('mcp', 'tools', 'suite'));
    if (scenario === 'tools_call')
        must(weft('mcp', 'call', 'suite', 'add_numbers', '{"a":5,"b":3}'));
    else if (scenario === 'sse-retry')
        must(weft('mcp', 'call', 'suite', 'test_reconnection'));
    else if (/elicitation/.test(scenario))
        await answerForm();
} finally {
    weft('stop');
    fs.rmSync(folder, { recursive: true, force: true });
}
