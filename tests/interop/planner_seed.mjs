#!/usr/bin/env node
/* The planner's document has a client for Node and a server for Python. Both are taken out of it as they stand and run against
 * the hub: the client speaks to "weft serve --stdio", the server is an executor under it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import { weft } from './hub.mjs';
import { check, failIfSanitizer, patiently, run, same, scratch, skip, source, test } from './kit.mjs';

const seeds = path.resolve(source, '../shared/seeds');
const name = fs.existsSync(seeds) && fs.readdirSync(seeds).find(one => one.startsWith('001_'));
if (!name) {
    skip('planner_seed', 'the document is not beside this repository');
    await run();
    process.exit();
}
const document = fs.readFileSync(path.join(seeds, name), 'utf8');
const block = language => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(document)[1];

/* ---- the two of them ---- */

const clientFile = scratch('client.cjs'), serverFile = scratch('server.py');
fs.writeFileSync(clientFile, block('javascript') + '\nmodule.exports = JSONRPCClient;\n');
const JSONRPCClient = createRequire(import.meta.url)(clientFile);

/* A handler that takes what the document shows and nothing else: an unknown member is a TypeError. */
fs.writeFileSync(serverFile, block('python') + `
server = JSONRPCServer()

def execute_task(task_type, prompt, context, options):
    if prompt == "die":
        raise RuntimeError("this is the end")
    return {
        "status": "success",
        "output": {"code": prompt.upper(), "explanation": json.dumps([task_type, context, options]),
                   "files_modified": [], "files_created": ["new.js"]},
        "metadata": {"execution_time_ms": 1234, "tokens_used": 5678, "model": "gemini-2.5-pro"},
    }

if len(sys.argv) < 2:
    server.register_method("execute_task", execute_task)
for line in sys.stdin:
    print(server.handle_request(line), flush=True)
`);

let hubs = 0;
/* A hub that is the client's child, and the client. config: what the hub's configuration says. */
function connect(config = {}) {
    const folder = scratch(`project${++hubs}`), home = scratch(`config${hubs}`);
    fs.mkdirSync(folder, { mode: 0o700 });
    fs.mkdirSync(path.join(home, 'weft'), { recursive: true });
    fs.writeFileSync(path.join(home, 'weft/config.json'), JSON.stringify(config));
    const child = spawn(weft, ['serve', '--stdio'],
        { cwd: folder, env: { ...process.env, XDG_CONFIG_HOME: home, XDG_STATE_HOME: scratch(`state${hubs}`) } });
    const client = new JSONRPCClient(child);
    const heard = [];
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', text => { stderr += text; });
    readline.createInterface({ input: child.stdout }).on('line', line => {
        heard.push(JSON.parse(line));
        client.handleResponse(line);
    });
    return {
        heard,
        request: (method, params) => patiently(client.request(method, params), method),
        async end() {
            child.stdin.end();
            const [code] = await patiently(once(child, 'exit'), 'the hub to end with its input');
            failIfSanitizer('weft serve --stdio', stderr);
            same(code, 0);
        },
    };
}
const python = arg => ({
    agents: { python: { driver: 'planner', command: ['/usr/bin/python3', serverFile, ...(arg ? [arg] : [])] } },
    roles: { executor: ['python'] },
});
const params = {
    task_type: 'code_generation',
    prompt: 'echo hello',
    context: { files: ['file1.js', 'file2.js'], current_directory: '/project/src', dependencies: ['react', 'typescript'], constraints: [] },
    options: { language: 'javascript', framework: 'react', style_guide: 'airbnb' },
};

test("the document's client and the hub's own agent", async () => {
    const hub = connect();
    const result = await hub.request('execute_task', params);
    same([result.status, Object.keys(result.output)], ['success', ['code', 'explanation', 'files_modified', 'files_created']]);
    check(result.output.code.includes('hello'), 'what the agent said is the code');
    check(result.metadata.execution_time_ms >= 0, 'it took some time');
    await hub.end();
});

test("the document's client hears an error in the document's form", async () => {
    const hub = connect();
    const error = await hub.request('execute_task', { ...params, prompt: 'fail', options: { max_retries: 0 } }).catch(e => e);
    same([error.code, error.data.type, error.data.recovery_suggestions.length > 0, typeof error.data.stack_trace],
        [-32000, 'EXECUTION_ERROR', true, 'string']);
    const unknown = await hub.request('no_such_method', {}).catch(e => e);
    same([unknown.code, unknown.message], [-32601, 'Method not found']);
    await hub.end();
});

test("the document's client has code checked, although there is no daemon's folder", async () => {
    const hub = connect();
    const { valid, issues } = await hub.request('validate_code', { code: '{"a": 1,}', language: 'json', rules: [] });
    same([valid, issues.length, issues[0].line, issues[0].severity], [false, 1, 1, 'error']);
    const outside = await hub.request('execute_task', { ...params, context: { files: ['../secret'] } }).catch(e => e);
    same([outside.code, outside.data.path], [-32602, '/context/files/0']);
    await hub.end();
});

test('what is streamed to it, concatenated, is the output', async () => {
    const hub = connect();
    const result = await hub.request('execute_task', { ...params, prompt: 'lines 200', options: { stream: true } });
    const told = hub.heard.filter(one => one.method);
    same([told[0].method, told.at(-1).method], ['stream_start', 'stream_end']);
    const chunks = told.slice(1, -1);
    same(chunks.map(one => one.params.sequence), chunks.map((_, i) => i + 1));
    same(told.at(-1).params.total_chunks, chunks.length);
    same(chunks.map(one => one.params.chunk).join(''), result.output.code);
    check(result.output.code.split('\n').length >= 200, 'all of it');
    await hub.end();
});

test("the document's client, the hub, and the document's server as its executor", async () => {
    const hub = connect(python());
    const result = await hub.request('execute_task', params);
    const { explanation, ...output } = result.output;
    same(output, { code: 'ECHO HELLO', files_modified: [], files_created: ['new.js'] });
    same(JSON.parse(explanation), ['code_generation', params.context, params.options], 'what the server was given');
    same([result.metadata.execution_time_ms, result.metadata.tokens_used, result.metadata.model], [1234, 5678, 'gemini-2.5-pro']);
    await Promise.all([1, 2, 3].map(async n =>
        same((await hub.request('execute_task', { ...params, prompt: `task ${n}` })).output.code, `TASK ${n}`)));
    const { holders } = await hub.request('role.list', { role: 'executor' });
    same([holders.length, holders[0].holder, holders[0].driver], [1, 'python', 'planner']);
    await hub.end();
});

test("the document's server by its address, beside another that is started so", async () => {
    const one = `exec:/usr/bin/python3 '${serverFile}'`;
    const hub = connect({ roles: { planner: [one], executor: [one, `${one} --key=secret`, one] } });
    const { holders } = await hub.request('role.list', { role: 'executor' });
    same(holders.slice(0, 2).map(holder => [holder.holder, holder.driver]), [['exec:python3', 'planner'], ['exec:python3#2', 'planner']]);
    check(!JSON.stringify(holders).includes('secret'), 'arguments are not shown');
    const result = await hub.request('execute_task', params);
    same([result.status, result.output.code], ['success', 'ECHO HELLO']);
    await hub.end();
});

test("the document's server without the method, and one that dies in it", async () => {
    const without = connect(python('without'));
    const refused = await without.request('execute_task', params).catch(e => e);
    same([refused.code, refused.message, refused.data.type, refused.data.code], [-32000, 'Method not found', 'EXECUTION_ERROR', -32601]);
    await without.end();
    const dies = connect(python());
    const died = await dies.request('execute_task', { ...params, prompt: 'die', options: { max_retries: 0 } }).catch(e => e);
    same([died.code, died.data.type], [-32000, 'EXECUTION_ERROR']);
    check(died.data.details.includes('this is the end'), 'the end of what it wrote to standard error is told');
    same((await dies.request('execute_task', params)).output.code, 'ECHO HELLO');
    await dies.end();
});

await run();
