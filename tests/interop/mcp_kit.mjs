/* A hub with MCP servers in its configuration, for the tests of the hub as their client. Not a test itself. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { build, check, cleanup, output, patiently, scratch, source } from './kit.mjs';

export const packages = path.join(source, 'build/tools/mcp/node_modules');
export const everything = path.join(packages, '@modelcontextprotocol/server-everything/dist/index.js');
const weft = process.env.WEFT ?? path.join(build, 'weft');

export function installed() {
    return fs.existsSync(everything);
}

export async function freePort() {
    const probe = net.createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address();
    probe.close();
    await once(probe, 'close');
    return port;
}

/* A program that is ready when it has said this. Its port may be in what it said. */
export async function program(args, said, env = {}) {
    let talk = '';
    const child = spawn(process.execPath, args, { env: { ...process.env, MCP_PACKAGES: packages, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    cleanup(async () => {
        if (child.exitCode !== null || child.signalCode !== null)
            return;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
    });
    await patiently(new Promise((resolve, reject) => {
        for (const stream of [child.stdout, child.stderr])
            stream.setEncoding('utf8').on('data', text => {
                talk += text;
                if (said.test(talk))
                    resolve();
            });
        child.on('exit', code => reject(new Error(`the server ended (${code}): ${talk}`)));
    }), `${args[0]} to be ready`);
    return { child, talk: () => talk, port: Number(/listening on (\d+)/.exec(talk)?.[1]) };
}

export class Hub {
    constructor(folder, store) {
        this.folder = folder;
        this.store = store;
    }
    async weft(...args) {
        return output(weft, args, { cwd: this.folder, env: this.env() });
    }
    env() {
        return { ...process.env, XDG_CONFIG_HOME: path.join(this.folder, 'home'), WEFT_STORE_KIND: this.store };
    }
    /* One call of the hub; an error of JSON-RPC is thrown with its code and data. */
    async call(method, params = {}) {
        const { stdout, stderr, code } = await this.weft('call', '--json', '--timeout', '60s', method, JSON.stringify(params));
        const told = (stdout + stderr).split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line)).pop();
        if (code === 0)
            return told;
        throw Object.assign(new Error(`${method}: ${stdout}${stderr}`), { code: told?.error?.code ?? told?.code, data: told?.error?.data ?? told?.data });
    }
    async stop() {
        await this.weft('stop');
    }
}

let hubs = 0;
export async function startHub(servers, more = {}, store = 'memory') {
    const folder = scratch(`hub${hubs++}`);
    fs.mkdirSync(path.join(folder, 'home/weft'), { recursive: true });
    fs.writeFileSync(path.join(folder, 'home/weft/config.json'), JSON.stringify({ mcp: { servers }, ...more }), { mode: 0o600 });
    const hub = new Hub(folder, store);
    const { code, stderr } = await hub.weft('start');
    check(code === 0, `weft start: ${stderr}`);
    cleanup(() => hub.stop());
    return hub;
}

/* Wait for a question of this hub. */
export async function question(hub) {
    for (let i = 0; i < 200; i++) {
        const { questions } = await hub.call('question.list');
        if (questions.length)
            return questions[0];
        await new Promise(done => setTimeout(done, 50));
    }
    throw new Error('nobody was asked');
}
