#!/usr/bin/env node
/* The shipped JSON Schema of a configuration, checked with ajv: it is one, and it agrees with "weft config check" on what is
 * right. What is only a warning for the program is not allowed by the schema, so that an editor marks it. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { check, needed, run, same, scratch, source, test } from './kit.mjs';

const { default: Ajv } = needed('ajv/dist/2020.js');
const schema = JSON.parse(fs.readFileSync(path.join(source, 'packaging/config.schema.json'), 'utf8'));
const weft = process.env.WEFT ?? path.resolve('build/weft');

/* The two words that say what an editor may accept are not JSON Schema's own. */
const ajv = new Ajv({ strict: true, allErrors: true });
ajv.addVocabulary(['allowComments', 'allowTrailingCommas']);
const validate = ajv.compile(schema);

const right = [
    {},
    { $schema: 'config.schema.json' },
    { listen: ['unix:a', 'tcp://127.0.0.1:1'], auth: 'none', token_file: 't' },
    { tls: { cert: 'a', key: 'b', ca: 'c' }, insecure_listen: true },
    { rate_per_minute: 0, allowed_hosts: [], allowed_origins: ['*'] },
    { limits: { max_body: 67108864, ping_ms: 1, max_connections: 5 } },
    { rate_per_minute: 1e9 },
    { agents: { a: { driver: 'cli', command: ['x', ''], prompt: 'stdin', env: { A: '' }, persona: ['{agent}'] } } },
    { agents: { claude: { permission: 'deny', max_running: 0, timeout_ms: 5, about: 'mine' } }, default_agent: 'claude' },
    { tasks: { max_running: 1, timeout_ms: 0, on_restart: 'requeue', paused: true }, retention: { days: 1 } },
    { automation: { rules: [{ id: 'r', trigger: { type: 'file.*' }, action: { type: 'notify', message: 'm', channel: 'c' } }] } },
    { automation: { rules: [{ id: 'r', description: 'd', trigger: { type: 'file.modify', source: 'watcher', pattern: 'p' },
        action: { type: 'agent', prompt: 'p', agent: 'claude', priority: -1 }, enabled: true, cooldownMs: 0, requiresApproval: true,
        conditions: [{ field: 'payload.path', operator: 'eq', value: { any: 1 } }, { field: 'size', operator: 'exists' }] }] } },
    { automation: { jobs: [{ id: 'j', schedule: '* * * * *' }], watch: false, watch_paths: ['src'], ignore: ['*.o'] } },
];
const wrong = [
    [], 5, { lsten: [] }, { auth: 'perhaps' }, { auth: null }, { listen: 'unix:a' }, { listen: [5] }, { listen: [''] },
    { listen: Array(33).fill('unix:a') }, { tls: [] }, { tls: { crt: 'a' } }, { tls: { cert: '' } }, { insecure_listen: 1 },
    { rate_per_minute: -1 }, { rate_per_minute: 1.5 }, { rate_per_minute: '5' }, { rate_per_minute: 1e9 + 1 },
    { limits: { max_body: 0 } }, { limits: { max_body: 67108865 } }, { limits: { nonsense: 1 } }, { 'tls.cert': 'a' },
    { agents: [] }, { agents: { claude: 5 } }, { agents: { claude: { command: 'x' } } }, { agents: { claude: { command: [] } } },
    { agents: { claude: { driver: 'http' } } }, { agents: { claude: { drver: 'acp' } } }, { agents: { claude: { env: ['A=b'] } } },
    { agents: { claude: { env: { A: 1 } } } }, { agents: { claude: { max_running: -1 } } },
    { tasks: { max_running: 0 } }, { tasks: { on_restart: 'retry' } }, { retention: { days: 0 } },
    { automation: { rules: {} } }, { automation: { rules: [{}] } }, { automation: { rules: [5] } },
    { automation: { rules: [{ id: 'r', trigger: {}, action: { type: 'shell' } }] } },
    { automation: { rules: [{ id: 'r', trigger: { typ: 'a' }, action: { type: 'notify', message: 'm' } }] } },
    { automation: { rules: [{ id: 'r', trigger: {}, action: { type: 'notify', message: 'm' }, conditions: [{ field: 'a' }] }] } },
    { automation: { jobs: [{ id: 'j' }] } },
    { automation: { rules: [{ id: 'r', trigger: { source: 'elsewhere' }, action: { type: 'notify', message: 'm' } }] } },
];

/* The program finds nothing to remark on. */
function accepts(value) {
    const file = scratch('config.json');
    fs.writeFileSync(file, JSON.stringify(value), { mode: 0o600 });
    const { stdout } = spawnSync(weft, ['config', 'check', '--json', file], { encoding: 'utf8', timeout: 30000 });
    return stdout === '';
}

for (const [verdict, values] of [[true, right], [false, wrong]])
    for (const value of values)
        test(`${verdict ? 'right' : 'wrong'}: ${JSON.stringify(value).slice(0, 60)}`, () => {
            same(validate(value), verdict);
            same(accepts(value), verdict);
        });

test('every default is allowed', () => {
    const defaults = properties => Object.fromEntries(Object.entries(properties)
        .map(([name, each]) => [name, each.properties ? defaults(each.properties) : each.default])
        .filter(([, value]) => value !== undefined));
    const value = defaults(schema.properties);
    check(Object.keys(value.limits).length > 10, JSON.stringify(value));
    check(validate(value), JSON.stringify(validate.errors));
    check(accepts(value), 'the program');
});

await run();
