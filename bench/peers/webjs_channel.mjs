/* webjs_channel.mjs ROUNDS CALLS: round trips over a MessageChannel with weft.js, the seed's own TypeScript and comlink, in turns, each
 * in a process of its own, so that nobody pays for another's garbage. Both ends are in one thread: the CPU time of the
 * process is the whole cost of its calls. One line of JSON: for each window nanoseconds of CPU for a call, the best of the rounds, and
 * the median of the rounds' ratios to weft.js; and the size of every chunk of weft.js. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import zlib from 'node:zlib';
import { optional, source } from '../../tests/interop/kit.mjs';
import { seedModule } from '../../tests/interop/webjs_seed.mjs';

const folder = path.join(source, 'web/weft');
const WARM_UP = 10_000;

/* ---- in the process of one peer: webjs_channel.mjs --peer NAME FILE WINDOW CALLS ---- */

function rpc(library) {
    const { port1, port2 } = new MessageChannel();
    const server = new library.JSONRPCServer(library.portTransport(port2));
    server.method('add', ({ a, b }) => a + b);
    const client = new library.JSONRPCClient(library.portTransport(port1));
    return (a, b) => client.request('add', { a, b });
}
function proxied(comlink) {
    const { port1, port2 } = new MessageChannel();
    comlink.expose({ add: (a, b) => a + b }, port2);
    const remote = comlink.wrap(port1);
    return (a, b) => remote.add(a, b);
}

async function measure(call, window, calls) {
    const lane = async () => {
        for (let i = 0; i < calls / window; i++)
            if (await call(i, 1) !== i + 1)
                throw new Error('a wrong sum');
    };
    const before = process.cpuUsage();
    await Promise.all(Array.from({ length: window }, lane));
    const { user, system } = process.cpuUsage(before);
    return (user + system) * 1000 / calls;
}

if (process.argv[2] === '--peer') {
    const [name, file, window, calls] = process.argv.slice(3);
    const library = await import(pathToFileURL(file));
    const call = name === 'comlink' ? proxied(library) : rpc(library);
    await measure(call, Number(window), WARM_UP);
    console.log(await measure(call, Number(window), Number(calls)));
    process.exit(0);
}

/* ---- all of them ---- */

const [rounds, calls] = process.argv.slice(2).map(Number);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'weft-bench-'));
const { text, why } = seedModule();
const seedFile = path.join(scratch, 'seed.mjs'), comlinkFile = path.join(source, 'build/tools/node_modules/comlink/dist/esm/comlink.mjs');
fs.writeFileSync(seedFile, text ?? '');
const PEERS = { weft: path.join(folder, 'weft.js'), ...(text ? { seed: seedFile } : {}), ...(fs.existsSync(comlinkFile) ? { comlink: comlinkFile } : {}) };

function runPeer(name, window) {
    const { stdout, stderr, status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), '--peer', name, PEERS[name], String(window), String(calls)], { encoding: 'utf8' });
    if (status)
        throw new Error(`${name}: ${stderr}`);
    return Number(stdout);
}

const median = list => [...list].sort((a, b) => a - b)[list.length >> 1];
const windows = {};
for (const window of [1, 32]) {
    const figures = Object.fromEntries(Object.keys(PEERS).map(name => [name, []]));
    for (let round = 0; round < rounds; round++)
        for (const name of Object.keys(PEERS))
            figures[name].push(runPeer(name, window));
    windows[window] = Object.fromEntries(Object.entries(figures).map(([name, list]) =>
        [name, { cpu_ns: Math.min(...list), ratio: median(list.map((ns, i) => ns / figures.weft[i])) }]));
}

const esbuild = optional('esbuild');
const sizes = {};
for (const name of esbuild ? fs.readdirSync(folder).filter(one => one.endsWith('.js')) : []) {
    const { contents } = esbuild.buildSync({ entryPoints: [path.join(folder, name)], minify: true, format: 'esm', write: false }).outputFiles[0];
    sizes[name] = { bytes: contents.length, gzipped: zlib.gzipSync(contents, { level: 9 }).length };
}
fs.rmSync(scratch, { recursive: true });
console.log(JSON.stringify({ windows, sizes, ...(why ? { without_seed: why } : {}) }));
