#!/usr/bin/env node
/* Agents that people use, as npm has them, under the hub: codex and Gemini run whole turns with a model server of ours on this
 * machine (models.mjs), and Claude's, which cannot be pointed at one without an account, ends in words. */
import fs from 'node:fs';
import path from 'node:path';
import { Hub, connectTo } from './hub.mjs';
import { check, run, same, scratch, skip, source, test } from './kit.mjs';
import { modelServer } from './models.mjs';

const models = await modelServer();
/* These programs are large, and start slowly where much else runs. */
const SLOW = 50000;

/* ---- which ones are there ---- */

const home = scratch('home');
fs.mkdirSync(path.join(home, '.gemini'), { recursive: true });
fs.mkdirSync(path.join(home, '.codex'), { recursive: true });
fs.writeFileSync(path.join(home, '.gemini/settings.json'), JSON.stringify({ security: { auth: { selectedType: 'gemini-api-key' } },
    telemetry: { enabled: false }, privacy: { usageStatisticsEnabled: false }, general: { disableAutoUpdate: true } }));
fs.writeFileSync(path.join(home, '.codex/config.toml'), `model = "fake"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.fake]
name = "fake"
base_url = "${models.url}/v1"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
`);
const programs = {
    gemini: { file: '@google/gemini-cli/bundle/gemini.js', args: ['--acp', '--model', 'gemini-2.5-flash'], env: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: models.url, GEMINI_CLI_NO_RELAUNCH: 'true' } },
    codex: { file: '@agentclientprotocol/codex-acp/dist/index.js', args: [], env: { CODEX_HOME: path.join(home, '.codex'), OPENAI_API_KEY: 'none', INITIAL_AGENT_MODE: 'read-only' } },
    claude: { file: '@agentclientprotocol/claude-agent-acp/dist/index.js', args: [], env: { IS_SANDBOX: '1' } }, /* it refuses root otherwise */
};
const agents = {};
for (const [name, { file, args, env }] of Object.entries(programs)) {
    const program = path.join(source, 'build/tools', name, 'node_modules', file);
    if (fs.existsSync(program))
        agents[name] = { driver: 'acp', command: [process.execPath, program, ...args], env: { ...env, HOME: home } };
    else
        skip(name, `tests/npm/${name} is not installed (tools/install.sh test)`);
}

/* ---- an editor: ACP to the hub, which has the agent ---- */

const hub = await new Hub({ config: { agents }, env: { HOME: home } }).start();
const { folder } = hub;
const updates = [], questions = [];
const call = await connectTo(hub, { patience: SLOW, hear({ id, method, params }, pipe) {
    if (method === 'session/update')
        updates.push(params);
    else if (method === 'session/request_permission') {
        questions.push(params);
        const { optionId } = params.options.find(option => /^allow/.test(option.kind));
        pipe.send(JSON.stringify({ jsonrpc: '2.0', id, result: { outcome: { outcome: 'selected', optionId } } }));
    }
} });

await call('initialize', { protocolVersion: 1 });
const session = async agent => (await call('session/new', { cwd: folder, mcpServers: [], _meta: { 'weft/agent': agent } })).result.sessionId;
const prompt = (sessionId, text) => call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
const said = sessionId => updates.filter(one => one.sessionId === sessionId && one.update.sessionUpdate === 'agent_message_chunk')
    .map(one => one.update.content.text ?? '').join('');
const calls = sessionId => updates.filter(one => one.sessionId === sessionId && /^tool_call/.test(one.update.sessionUpdate)).map(one => one.update);
const wrong = answer => JSON.stringify(answer).slice(0, 500) + hub.stderr.slice(-500);

/* ---- turns ---- */

for (const name of ['gemini', 'codex'].filter(one => agents[one])) {
    test(`${name} answers`, async () => {
        const id = await session(name);
        const answer = await prompt(id, 'say hello from the model');
        check(answer.result, wrong(answer));
        same(answer.result.stopReason, 'end_turn');
        check(said(id).includes('hello from the model'), `it said ${said(id)}`);
        const again = await prompt(id, 'say something else');
        check(again.result?.stopReason === 'end_turn', wrong(again));
        check(said(id).includes('something else'), `it said ${said(id)}`);
    });
    test(`${name} runs a command, if a person allows it`, async () => {
        const id = await session(name), file = path.join(folder, `${name}.txt`);
        const answer = await prompt(id, `run touch ${file}`);
        check(answer.result, wrong(answer));
        same(answer.result.stopReason, 'end_turn');
        check(fs.existsSync(file), `the command ran: ${JSON.stringify(calls(id)).slice(0, 600)}`);
        check(calls(id).some(one => one.status === 'completed'), `its calls: ${JSON.stringify(calls(id)).slice(0, 300)}`);
        check(questions.some(one => one.sessionId === id), 'a person was asked');
        check(said(id).includes('it said:'), `it said ${said(id)}`);
    });
}

if (agents.claude)
    test('claude without an account ends in words', async () => {
        const id = await session('claude');
        const answer = await prompt(id, 'say hello');
        check(answer.error, `an error: ${wrong(answer)}`);
        same(answer.error.code, -32000);
        check(/is not logged in/.test(answer.error.message), wrong(answer));
    });

await run();
