#!/usr/bin/env node
/* weft.js as a package: packed by npm, installed into an empty folder, imported from there by every Node that is here, its types
 * checked by a strict TypeScript, its examples run, and its size as a page would load it. */
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { check, needed, optional, output, run, same, scratch, skip, source, test } from './kit.mjs';
import { seedFiles } from './webjs_seed.mjs';

const esbuild = needed('esbuild');
const CORE_LIMIT = 6 * 1024;
const folder = path.join(source, 'web/weft');
const modules = fs.readdirSync(folder).filter(name => name.endsWith('.js'));
const project = scratch('project');
fs.mkdirSync(project, { recursive: true });

async function ok(program, args, options) {
    const { code, stdout, stderr } = await output(program, args, options);
    check(code === 0, `${path.basename(program)} ${args.slice(0, 2).join(' ')} ended with ${code}: ${(stdout + stderr).slice(-1500)}`);
    return stdout;
}
const here = (program, args) => ok('env', ['-C', project, program, ...args], { timeout: 60_000 });

test('the core is under 6 KB, minified and gzipped; every chunk', async () => {
    const minify = entry => esbuild.buildSync({ entryPoints: [path.join(folder, entry)], bundle: false, minify: true, format: 'esm', write: false }).outputFiles[0].contents;
    for (const name of modules) {
        const bytes = minify(name), packed = zlib.gzipSync(bytes, { level: 9 }).length;
        console.log(`  ${name.padEnd(16)} ${String(bytes.length).padStart(6)} bytes, ${String(packed).padStart(5)} gzipped`);
        check(name !== 'weft.js' || packed < CORE_LIMIT, `the core has ${packed} bytes`);
    }
});

test('no module needs another package, and the core needs no other file', async () => {
    for (const name of modules) {
        const imports = [...fs.readFileSync(path.join(folder, name), 'utf8').matchAll(/^import .* from '(.*)';$/gm)].map(match => match[1]);
        check(imports.every(one => /^\.\/[\w-]+\.js$/.test(one)), `${name} imports ${imports}`);
        check(name !== 'weft.js' || !imports.length, 'the core imports something');
    }
    same(JSON.parse(fs.readFileSync(path.join(folder, 'package.json'))).dependencies, undefined);
});

const npm = fs.existsSync('/usr/bin/npm') ? '/usr/bin/npm' : undefined;
if (!npm)
    skip('the package', 'npm is not installed');
else
    test('packed, installed, imported', async () => {
        const quiet = ['--offline', '--no-audit', '--no-fund', '--no-update-notifier', '--cache', scratch('cache'), '--loglevel', 'error'];
        const [packed] = JSON.parse(await ok(npm, ['pack', folder, '--json', '--pack-destination', project, ...quiet], { timeout: 60_000 }));
        for (const name of [...modules, ...modules.filter(one => one !== 'build-worker.js').map(one => one.replace('.js', '.d.ts')), 'README.md', 'examples/migrate.mjs'])
            check(packed.files.some(file => file.path === name), `${name} is not in the package`);
        fs.writeFileSync(path.join(project, 'package.json'), '{"name":"user","private":true,"type":"module"}');
        await here(npm, ['install', `./${packed.filename}`, ...quiet]);
        fs.writeFileSync(path.join(project, 'use.js'), `
            import * as weft from 'weft';
            for (const name of ['subscribe', 'sign', 'ports', 'preview', 'build', 'ralph'])
                await import('weft/' + name + '.js');
            const { JSONRPCClient, JSONRPCServer, portTransport } = weft;
            const { port1, port2 } = new MessageChannel();
            new JSONRPCServer(portTransport(port2)).method('add', ([a, b]) => a + b);
            const client = new JSONRPCClient(portTransport(port1));
            console.log(await client.request('add', [1, 2]), Object.keys(weft).filter(name => /^[A-Z_]+$/.test(name)).length);
            client.destroy();`);
        for (const node of new Set([process.execPath, '/usr/bin/node'].filter(one => fs.existsSync(one))))
            same((await here(node, ['use.js'])).trim(), '3 14', node);
    });

test('the README\'s example and the migration', async () => {
    const [, code] = /```js\n([\s\S]*?)```/.exec(fs.readFileSync(path.join(folder, 'README.md'), 'utf8'));
    fs.writeFileSync(path.join(project, 'readme.mjs'), code.replace('\'weft\'', JSON.stringify(path.join(folder, 'weft.js'))));
    same((await here(process.execPath, ['readme.mjs'])).trim(), '3');
    const said = await ok(process.execPath, [path.join(folder, 'examples/migrate.mjs')]);
    same(said.trim().split('\n'), ['old: built src/Old.tsx', 'new: built src/App.tsx', 'new: -32001 not TypeScript']);
});

/* What should compile, and (with the comment) what should not. */
const PROGRAM = `
import { JSONRPCClient, JSONRPCServer, RPCError, BUILD_FAILED, portTransport, windowTransport, workerTransport, selfTransport, webSocketTransport } from './weft.js';
import type { JSONRPCMessage, JSONRPCRequest, JSONRPCNotification, JSONRPCResponse, JSONRPCSuccessResponse, JSONRPCErrorResponse, RPCTransport } from './weft.js';
import { subscribe, Subscriptions } from './subscribe.js';
import { signer } from './sign.js';
import { frameTransport, invitation, parentTransport } from './ports.js';
import { previewParent } from './preview.js';
import { buildWorker, type BuildFailure } from './build.js';
import { chiefToRalph, ralphToHarness, serveRalph } from './ralph.js';

/* The seed's interface of a transport is enough. */
const seeds: RPCTransport = { send(message: JSONRPCMessage | JSONRPCMessage[]) { void message; }, onMessage(handler: (m: JSONRPCMessage) => void) { void handler; } };
const client = new JSONRPCClient(seeds, { timeout: 5000 });
export async function use(frame: HTMLIFrameElement, worker: Worker): Promise<void> {
    const n: number = await client.request<number>('add', { a: 1 });
    const u: unknown = await client.request('add');
    client.notify('x', [n, u]);
    for await (const part of client.stream<string>('read', {})) part.toUpperCase();
    const [a, b] = await Promise.all(client.batch(one => [one.request<string>('a'), one.request<number>('b')]));
    a; b;
    const server = new JSONRPCServer(portTransport(new MessageChannel().port1));
    server.method('work', async (params: { n: number }, { signal, part }) => { part(params.n); signal.throwIfAborted(); return 1; });
    server.onNotify('console', params => void params);
    const ws = webSocketTransport(() => 'ws://x', { token: async () => 't', sign: signer({ keyId: 'k', secret: 's' }), reconnect: { max: 1000 } });
    ws.onState(state => state.retryAt?.toFixed());
    for await (const { value, seq, fresh } of subscribe<{ id: string }[]>(new JSONRPCClient(ws), 'tasks')) { value[0]?.id; seq.toFixed(); fresh === true; }
    const state = Subscriptions.of(client).state;
    if (state.name === 'catchingUp') state.behind.toFixed();
    const { nonce } = invitation();
    const preview = previewParent(await frameTransport(frame, { nonce }), { files: path => path, onError: error => error.line?.toFixed() });
    (await preview.navigate('/x')).canGoBack;
    try { await buildWorker(worker).build({ files: {}, entry: 'a.ts' }); }
    catch (error) { if (error instanceof RPCError && error.code === BUILD_FAILED) (error.data as BuildFailure).diagnostics[0]?.line; }
    chiefToRalph(workerTransport(worker), { onComplete: done => done.taskId }).sendTask({ prompt: 'p', gates: ['test'] });
    ralphToHarness(selfTransport()); serveRalph(parentTransport()); windowTransport(window, window, '*');
    const all: (JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCSuccessResponse | JSONRPCErrorResponse)[] = []; all;
    // @ts-expect-error a name that is none
    client.ask('x');
    // @ts-expect-error params are an object or an array
    client.request('x', 7);
    // @ts-expect-error a time-out is a number
    client.request('x', {}, { timeout: '5s' });
    // @ts-expect-error the nonce must be there
    frameTransport(frame, {});
}
`;
if (!optional('typescript'))
    skip('the types', 'the npm package typescript is not installed');
else
    test('the types, strictly', async () => {
        const place = scratch('types');
        fs.mkdirSync(place, { recursive: true });
        for (const name of fs.readdirSync(folder).filter(one => one.endsWith('.d.ts')))
            fs.copyFileSync(path.join(folder, name), path.join(place, name));
        fs.writeFileSync(path.join(place, 'use.ts'), PROGRAM);
        const tsc = path.join(source, 'build/tools/node_modules/typescript/bin/tsc');
        fs.writeFileSync(path.join(place, 'tsconfig.json'), JSON.stringify({ files: ['use.ts'], compilerOptions: {
            noEmit: true, strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, target: 'es2022', module: 'nodenext',
            lib: ['es2022', 'dom'], types: [],
        } }));
        await ok(process.execPath, [tsc, '-p', place], { timeout: 60_000 });
    });

/* Programs that are no page: TypeScript's types of a page are not there. */
const ELSEWHERE = {
    worker: [['es2022', 'webworker'], `
        import { JSONRPCClient, JSONRPCServer, RPCError, portTransport, selfTransport } from './weft.js';
        import { servePorts } from './ports.js';
        import { serveBuild } from './build.js';
        const server = new JSONRPCServer(selfTransport());
        server.method('get', async ({ url }, { signal, part, transfer }) => {
            const answer = await fetch(url, { signal }), bytes = await answer.arrayBuffer();
            part(answer.status);
            transfer(bytes);
            return bytes;
        });
        servePorts(transport => void new JSONRPCServer(transport).method('x', () => { throw new RPCError(1, 'x'); }));
        serveBuild({});
        const { port1 } = new MessageChannel();
        new JSONRPCClient(portTransport(port1)).request('x', {}, { signal: AbortSignal.timeout(5), transfer: [port1] });
        // @ts-expect-error a text cannot be handed over
        new JSONRPCClient(portTransport(port1)).request('x', {}, { transfer: ['text'] });
        // @ts-expect-error a worker is no port
        portTransport(self);`],
    program: [['es2022'], `
        import { JSONRPCClient, portTransport, webSocketTransport, workerTransport, type PortLike } from './weft.js';
        import { subscribe } from './subscribe.js';
        import { signer } from './sign.js';
        import './ports.js'; import './preview.js'; import './build.js'; import './ralph.js';
        const hub = new JSONRPCClient(webSocketTransport('ws://x', { token: 't', sign: signer({ keyId: 'k', secret: new Uint8Array(3) }) }), { extras: true });
        export async function use(port: PortLike): Promise<void> {
            for await (const { value } of subscribe<string>(hub, 'taskOutput', { taskId: 'x' })) value.length;
            const sum: number = await new JSONRPCClient(portTransport(port)).request<number>('add');
            void sum; void workerTransport(port);
        }`],
};
for (const [name, [lib, program]] of Object.entries(ELSEWHERE))
    if (!optional('typescript'))
        skip(`the types in a ${name}`, 'the npm package typescript is not installed');
    else
        test(`the types in a ${name}, without those of a page`, async () => {
            const place = scratch(`types-${name}`);
            fs.mkdirSync(place, { recursive: true });
            for (const one of fs.readdirSync(folder).filter(one => one.endsWith('.d.ts')))
                fs.copyFileSync(path.join(folder, one), path.join(place, one));
            fs.writeFileSync(path.join(place, 'use.ts'), program);
            fs.writeFileSync(path.join(place, 'tsconfig.json'), JSON.stringify({ files: ['use.ts'], compilerOptions: {
                noEmit: true, strict: true, exactOptionalPropertyTypes: true, target: 'es2022', module: 'nodenext', lib, types: [],
            } }));
            await ok(process.execPath, [path.join(source, 'build/tools/node_modules/typescript/bin/tsc'), '-p', place], { timeout: 60_000 });
        });

/* Programs that were written for the seed's types go on with ours, and each side's transports fit the other's client and server. The
 * seed's client.ts and server.ts name types that they do not import, so its files are one module here. */
const WITH_SEED = `
import * as seed from './seed.js';
import * as weft from './weft.js';

export function transports(port: MessagePort, worker: Worker, frame: Window): void {
    const ours: seed.RPCTransport[] = [weft.portTransport(port), weft.workerTransport(worker), weft.windowTransport(frame, window, '*'), weft.selfTransport(), weft.webSocketTransport('ws://x')];
    const theirs: weft.RPCTransport[] = [seed.portTransport(port), seed.workerTransport(worker), seed.windowTransport(frame)];
    ours.forEach(one => { new seed.JSONRPCClient(one); new seed.JSONRPCServer(one); });
    theirs.forEach(one => { new weft.JSONRPCClient(one, { timeout: 1 }); new weft.JSONRPCServer(one); });
}
/* One program, either library. */
export async function use({ JSONRPCClient, JSONRPCServer, RPCError, portTransport, windowTransport, workerTransport }: typeof seed | typeof weft, port: MessagePort): Promise<number> {
    const server = new JSONRPCServer(portTransport(port));
    server.method('build', async (params: Record<string, unknown> | undefined) => { if (!params) throw new RPCError(-32001, 'no', {}); return { output: params.entry }; });
    server.onNotify('console', (params: Record<string, unknown> | undefined) => { void params; });
    const client = new JSONRPCClient(portTransport(port), { timeout: 5 });
    client.notify('x', {});
    client.destroy();
    server.destroy();
    void windowTransport; void workerTransport;
    return client.request<number>('add', { a: 1 });
}
export const messages: seed.JSONRPCMessage[] = [] as weft.JSONRPCMessage[];
export const back: weft.JSONRPCMessage[] = [] as seed.JSONRPCMessage[];
export const error: seed.RPCError = new weft.RPCError(1, 'x');
`;
if (!optional('typescript') || !seedFiles())
    skip('the types beside the seed\'s', optional('typescript') ? 'shared/seeds is not there' : 'the npm package typescript is not installed');
else
    test('the types beside those of the seed', async () => {
        const place = scratch('seed-types');
        fs.mkdirSync(place, { recursive: true });
        fs.copyFileSync(path.join(folder, 'weft.d.ts'), path.join(place, 'weft.d.ts'));
        fs.writeFileSync(path.join(place, 'seed.ts'), Object.values(seedFiles()).join('\n').replace(/^import type .*$/gm, ''));
        fs.writeFileSync(path.join(place, 'use.ts'), WITH_SEED);
        fs.writeFileSync(path.join(place, 'tsconfig.json'), JSON.stringify({ files: ['use.ts'], compilerOptions: {
            noEmit: true, strict: true, target: 'es2022', module: 'nodenext', lib: ['es2022', 'dom'], types: [],
        } }));
        const tsc = path.join(source, 'build/tools/node_modules/typescript/bin/tsc');
        await ok(process.execPath, [tsc, '-p', place], { timeout: 60_000 });
    });

test('what the types declare is what the modules export', async () => {
    for (const name of modules.filter(one => one !== 'build-worker.js')) {
        const is = Object.keys(await import(path.join(folder, name))).sort();
        const types = fs.readFileSync(path.join(folder, name.replace('.js', '.d.ts')), 'utf8');
        same([...types.matchAll(/^export declare (?:const|function|class) (\w+)/gm)].map(match => match[1]).sort(), is, name);
    }
});

await run();
