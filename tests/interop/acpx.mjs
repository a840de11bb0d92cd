#!/usr/bin/env node
/* acpx, a client of ACP for the command line that is not ours, with "weft acp" as its agent: turns, permission, sessions, cancel. And
 * the lines of the README for editors, as they stand there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { build, check, cleanup, patiently, run, same, scratch, source, test } from './kit.mjs';

const acpx = path.join(source, 'build/tools/acpx/node_modules/acpx/dist/cli.js');
const weft = path.join(build, 'weft');
const [major, minor] = process.versions.node.split('.').map(Number);
const why = !fs.existsSync(acpx) ? 'tests/npm/acpx is not installed (tools/install.sh test)'
    : major < 22 || (major === 22 && minor < 13) ? 'acpx needs Node 22.13' : undefined;
if (why) {
    console.log(`skip acpx.mjs: ${why}\n0 passed, 0 failed, 1 skipped`);
    process.exit(0);
}

/* ---- a project, with weft and npx in the path ---- */

const folder = scratch('project'), bin = scratch('bin');
fs.mkdirSync(folder, { mode: 0o700 });
fs.mkdirSync(bin);
fs.symlinkSync(weft, path.join(bin, 'weft'));
fs.writeFileSync(path.join(bin, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${acpx}' "$@"\n`, { mode: 0o755 });
const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, HOME: scratch('home'), XDG_CONFIG_HOME: scratch('config'), XDG_STATE_HOME: scratch('state') };
delete env.WEFT_STORE_KIND;
fs.mkdirSync(env.HOME);

function start(program, args, cwd = folder) {
    const child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    const result = { child, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', text => { result.stdout += text; });
    child.stderr.setEncoding('utf8').on('data', text => { result.stderr += text; });
    child.stdin.on('error', () => {});
    result.ended = once(child, 'close').then(([code]) => Object.assign(result, { code }));
    return result;
}
const to = (program, args) => {
    const one = start(program, args);
    one.child.stdin.end();
    return patiently(one.ended, `${args.join(' ')} to end: ${one.stderr}`);
};
const client = (...args) => to(process.execPath, [acpx, '--agent', 'weft acp', ...args]);
cleanup(async () => {
    await to(weft, ['stop']);
    const log = path.join(folder, '.weft/daemon.log');
    if (fs.existsSync(log) && /Sanitizer|runtime error:/.test(fs.readFileSync(log, 'utf8')))
        console.log(fs.readFileSync(log, 'utf8')), process.exit(1);
});
const messages = text => text.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line));

/* ---- one prompt ---- */

test('a whole turn, and the hub is started for it', async () => {
    const { code, stdout, stderr } = await client('exec', 'echo over acpx');
    same(code, 0, stderr);
    check(stdout.includes('over acpx') && stdout.includes('[done] end_turn'), stdout);
});

test('permission is given', async () => {
    const { code, stdout, stderr } = await client('--approve-all', '--format', 'json', 'exec', 'edit something');
    same(code, 0, stderr);
    const all = messages(stdout);
    check(all.some(one => one.params?.update?.sessionUpdate === 'tool_call_update' && one.params.update.status === 'completed'), stdout.slice(0, 500));
    same(all.at(-1).result?.stopReason, 'end_turn');
    check(fs.existsSync(path.join(folder, 'weft-demo.txt')), 'the file was written');
});

test('and is not', async () => {
    fs.rmSync(path.join(folder, 'weft-demo.txt'), { force: true });
    const { stdout } = await client('--deny-all', '--format', 'quiet', 'exec', 'edit something');
    check(stdout.includes('it was not allowed'), stdout);
    check(!fs.existsSync(path.join(folder, 'weft-demo.txt')), 'nothing was written');
});

/* ---- sessions ---- */

test('a session that goes on, is listed, and is closed', async () => {
    const made = await client('--format', 'quiet', 'sessions', 'new');
    same(made.code, 0, made.stderr);
    const id = made.stdout.trim();
    for (const words of ['one', 'two']) {
        const said = await client('--format', 'quiet', 'prompt', `echo ${words}`);
        same([said.code, said.stdout.trim()], [0, words], said.stderr);
    }
    const listed = await client('sessions', 'list');
    check(listed.stdout.includes(id) && listed.stdout.includes('echo two'), listed.stdout);
    const mine = await to(weft, ['session', 'show', id]);
    same(mine.code, 0, mine.stderr);
    const closed = await client('sessions', 'close');
    same(closed.code, 0, closed.stderr);
});

test('a turn is cancelled', async () => {
    same((await client('--format', 'quiet', 'sessions', 'new')).code, 0);
    const turn = start(process.execPath, [acpx, '--agent', 'weft acp', '--format', 'json', 'prompt', 'slow 60s hello']);
    turn.child.stdin.end();
    await patiently(new Promise(resolve => turn.child.stdout.on('data', () => turn.stdout.includes('agent_message_chunk') && resolve())), 'the turn to begin');
    same((await client('cancel')).code, 0);
    await patiently(turn.ended, 'the turn to end');
    check(messages(turn.stdout).some(one => one.result?.stopReason === 'cancelled'), turn.stdout.slice(-500));
    same((await client('sessions', 'close')).code, 0);
});

/* ---- what docs/acp.md says ---- */

const readme = fs.readFileSync(path.join(source, 'docs/acp.md'), 'utf8');
const section = readme.slice(readme.indexOf('## From an editor')).split(/\n## /)[0];

test('its line for acpx', async () => {
    const line = /^ {4}(npx acpx .*)$/m.exec(section)[1];
    const { code, stdout, stderr } = await to('/bin/sh', ['-c', line]);
    same(code, 0, stderr);
    check(stdout.includes('[done] end_turn'), stdout);
});

test('its settings for Zed', async () => {
    const text = /^ {4}(\{ "agent_servers"[^]*?\n)\n/m.exec(section)[1];
    const servers = Object.entries(JSON.parse(text).agent_servers);
    check(servers.length > 1, 'there are two');
    for (const [name, { command, args, env: more = {} }] of servers.filter(([, one]) => !one.args.includes('claude'))) {
        Object.assign(env, more);
        const editor = start(command, args);
        editor.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n');
        editor.child.stdin.end();
        await patiently(editor.ended, name);
        same(messages(editor.stdout)[0].result?.agentInfo.name, 'weft', name);
    }
});

await run();
