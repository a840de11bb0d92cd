#!/usr/bin/env node
/* The scenarios for clients of MCP's own conformance suite, with the hub as the client. */
import fs from 'node:fs';
import path from 'node:path';
import { build, check, output, run, scratch, skip, test } from './kit.mjs';
import { packages } from './mcp_kit.mjs';

const suite = path.join(packages, '@modelcontextprotocol/conformance/dist/index.js');
const driver = path.resolve('tests/interop/mcp_driver.mjs');
const newEnough = Number(process.versions.node.split('.')[0]) >= 22;

/* On a busy machine a client may come back late, which the suite calls a failure of the client's: that one is tried again. */
async function scenario(name, tries = 1) {
    for (let left = tries; ; left--) {
        fs.rmSync(scratch(name), { recursive: true, force: true });
        fs.mkdirSync(scratch(name), { recursive: true });
        const { stdout, stderr, code } = await output(process.execPath, [suite, 'client', '--command', `${process.execPath} ${driver}`, '--scenario', name, '--timeout', '50000', '--verbose'],
            { cwd: scratch(name), env: { ...process.env, WEFT: process.env.WEFT ?? path.join(build, 'weft') }, timeout: 58000 });
        const late = /reconnected very late/.test(stdout + stderr);
        if (late && left > 1)
            continue;
        check(code === 0, `${name}: ${code}\n${(stdout + stderr).slice(-3000)}`);
        return;
    }
}

if (!fs.existsSync(suite) || !newEnough)
    skip('mcp_conformance.mjs', newEnough ? 'the npm packages of tests/npm/mcp are not installed (tools/install.sh test)' : 'the suite needs Node 22');
else {
    for (const name of ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults'])
        test(name, () => scenario(name));
    test('sse-retry', () => scenario('sse-retry', 5));
}

await run();
