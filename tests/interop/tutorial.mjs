#!/usr/bin/env node
/* docs/tutorial.md, line by line, with the real Gemini CLI and a model server of ours. What is not run: the installation of the agent. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { check, run, scratch, skip, source, test } from './kit.mjs';
import { modelServer } from './models.mjs';

const program = path.join(source, 'build/tools/gemini/node_modules/@google/gemini-cli/bundle/gemini.js');
const PATIENCE = 120000;

const script = text => /Write hello\.py/.test(text) ? `run printf 'print("Hello")\\n' > hello.py`
    : /Write bye\.py/.test(text) ? `run printf 'print("Bye")\\n' > bye.py`
    : /What does hello\.py print/.test(text) ? 'say It prints Hello.'
    : /which language/.test(text) ? 'say It is written in Python.' : null;

/* What a line must print, besides ending with 0. */
const wanted = [
    [/^weft agents$/, /gemini/],
    [/^weft agents use gemini/, /gemini/],
    [/^weft task submit 'Write hello/, /^task-0000$/m],
    [/^weft answer$/, /question-0000/],
    [/^weft task watch/, /task-0000 changed 1 file/],
    [/^weft task diff/, /\+print\("Hello"\)/],
    [/^cat hello\.py/, /print\("Hello"\)/],
    [/^weft chat 'What/, /It prints Hello/],
    [/^weft session list/, /session-/],
    [/^weft chat --continue/, /It is written in Python/],
    [/^cat bye\.py/, /print\("Bye"\)/],
    [/^weft task list/, /task-0000/],
    [/^weft events/, /task-0000 completed/],
];

const lines = fs.readFileSync(path.join(source, 'docs/tutorial.md'), 'utf8').split('\n').filter(line => /^ {4}\S/.test(line))
    .map(line => line.trim().replace(/\s+# .*$/, ''));

function shell(home, env, state, line) {
    return new Promise(resolve => {
        /* One shell for each line, which begins where the one before has ended. */
        const text = `cd "$(cat ${state}/folder)" && . ${state}/env\n${line}\nrc=$?\npwd >${state}/folder\nexport -p >${state}/env\nexit $rc\n`;
        const child = spawn('bash', ['-c', text], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: PATIENCE });
        let out = '';
        child.stdout.on('data', data => { out += data; });
        child.stderr.on('data', data => { out += data; });
        child.on('close', code => resolve({ code, out }));
    });
}

if (!fs.existsSync(program))
    skip('the tutorial', 'tests/npm/gemini is not installed (tools/install.sh test)');
else
    test('every line of the tutorial', async () => {
        const models = await modelServer(script);
        const home = scratch('tutorial'), state = path.join(home, '.state');
        for (const folder of [state, path.join(home, 'bin'), path.join(home, '.gemini'), path.join(home, '.config/weft')])
            fs.mkdirSync(folder, { recursive: true });
        fs.symlinkSync(process.env.WEFT, path.join(home, 'bin/weft'));
        fs.writeFileSync(path.join(home, '.gemini/settings.json'), JSON.stringify({ security: { auth: { selectedType: 'gemini-api-key' } },
            telemetry: { enabled: false }, privacy: { usageStatisticsEnabled: false }, general: { disableAutoUpdate: true } }));
        fs.writeFileSync(path.join(home, '.config/weft/config.json'), JSON.stringify({ agents: { gemini: { driver: 'acp',
            command: [process.execPath, program, '--acp', '--model', 'gemini-2.5-flash'],
            env: { HOME: home, GOOGLE_GEMINI_BASE_URL: models.url, GEMINI_CLI_NO_RELAUNCH: 'true' } } } }), { mode: 0o600 });
        fs.writeFileSync(path.join(state, 'folder'), home);
        fs.writeFileSync(path.join(state, 'env'), '');
        const env = { PATH: `${home}/bin:${process.env.PATH}`, HOME: home, XDG_CONFIG_HOME: `${home}/.config`, LANG: 'C.UTF-8',
            GIT_AUTHOR_NAME: 'Ann', GIT_AUTHOR_EMAIL: 'ann@example.org', GIT_COMMITTER_NAME: 'Ann', GIT_COMMITTER_EMAIL: 'ann@example.org' };
        const say = line => shell(home, env, state, line);
        check(lines.length > 20, `${lines.length} lines`);
        try {
            for (const line of lines.filter(one => !/^weft agents install/.test(one))) {
                if (line === 'weft answer') /* a reader takes longer than the agent */
                    for (const end = Date.now() + PATIENCE; Date.now() < end && !/"state":"open"/.test((await say('weft answer --json')).out);)
                        await new Promise(resolve => setTimeout(resolve, 200));
                const { code, out } = await say(line);
                check(code === 0, `${line}\n  ended with ${code}: ${out.slice(-600)}`);
                for (const [of, text] of wanted)
                    check(!of.test(line) || text.test(out), `${line}\n  printed ${out.slice(-600)}`);
            }
        } finally {
            await say('weft stop --force');
        }
    });

await run();
