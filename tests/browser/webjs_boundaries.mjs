#!/usr/bin/env node
/* weft.js in a real browser: frames, workers, a service worker, with the seed's own TypeScript on either side; the sandboxed
 * preview behind its handshake; builds with esbuild-wasm in a worker; strangers that post into the same windows. */
import path from 'node:path';
import { check, optional, run, same, skip, source, test } from '../interop/kit.mjs';
import { seedModule } from '../interop/webjs_seed.mjs';
import { newPage, serveFiles } from './page.mjs';

const seed = seedModule();
const LIBRARIES = seed.text ? { weft: '/weft/weft.js', seed: '/seed.js' } : { weft: '/weft/weft.js' };
const page = (script, body = '') => `<!doctype html><meta charset="utf-8"><title>t</title>${body}<script type="module">${script}</script>`;

/* A frame and a worker that answer with the library in their address. The seed's windowTransport says "*" by itself. */
const ANSWER = `const library = new URL(location.href).searchParams.get('with');
    const { JSONRPCClient, JSONRPCServer, RPCError, windowTransport, selfTransport, portTransport } = await import(library);
    const answer = transport => {
        const server = new JSONRPCServer(transport);
        server.method('echo', params => params);
        server.method('fail', () => { throw new RPCError(-32001, 'Build failed', { diagnostics: [1] }); });
        server.onNotify('note', params => { self.noted = params; });
        server.method('noted', () => self.noted);
        return server;
    };`;
const files = {
    '/': page(''),
    '/favicon.ico': ' ',
    '/seed.js': seed.text,
    '/weft/': path.join(source, 'web/weft'),
    '/esbuild/': path.join(source, 'build/tools/node_modules/esbuild-wasm'),
    '/frame.html': page(`${ANSWER} answer(windowTransport(parent)); parent.postMessage('ready', '*');`),
    '/worker.js': `${ANSWER} answer(selfTransport()); postMessage('ready');`,
    '/sw.js': `import { JSONRPCServer } from '/weft/weft.js';
        import { servePorts } from '/weft/ports.js';
        addEventListener('install', () => skipWaiting());
        addEventListener('activate', event => event.waitUntil(clients.claim()));
        servePorts(transport => new JSONRPCServer(transport).method('add', ([a, b]) => a + b));`,
    '/preview.html': page(`import { parentTransport } from '/weft/ports.js';
        import { previewFrame } from '/weft/preview.js';
        self.preview = previewFrame(parentTransport());`),
    '/thief.html': page(`parent.postMessage({ weft: 'weft.port', nonce: 'guess' }, '*', [new MessageChannel().port1]); parent.postMessage('thief', '*');`),
    '/evil.html': page(`parent.postMessage({ jsonrpc: '2.0', id: 1, result: 'stolen' }, '*');
        parent.postMessage({ jsonrpc: '2.0', method: 'note', params: 'forged' }, '*'); parent.postMessage('posted', '*');`),
};
/* A frame is a document of its own; so that a sandboxed one may load modules, they are for everybody. */
const origin = await serveFiles(files, { 'Access-Control-Allow-Origin': '*' });
const elsewhere = await serveFiles(files);

async function open(script) {
    const tab = await newPage();
    await tab.goto(origin);
    const result = await tab.evaluate(script);
    return { tab, result };
}

/* What is asked of each: the same for frames and workers, whichever library is on which side. */
const ASK = `async transport => {
    const client = new library.JSONRPCClient(transport);
    client.notify('note', { n: 1 });
    const echo = await client.request('echo', { a: [1, { b: null }] });
    const error = await client.request('fail').catch(error => [error.constructor === library.RPCError, error.code, error.message, error.data]);
    const missing = await client.request('none').catch(error => [error.code, error.message]);
    const noted = await client.request('noted');
    client.destroy();
    return { echo, error, missing, noted };
}`;
const ANSWERS = { echo: { a: [1, { b: null }] }, error: [true, -32001, 'Build failed', { diagnostics: [1] }], missing: [-32601, 'Method not found: none'], noted: { n: 1 } };

for (const [mine, here] of Object.entries(LIBRARIES))
    for (const [theirs, there] of Object.entries(LIBRARIES)) {
        test(`a real iframe: ${mine} here, ${theirs} in the frame`, async () => {
            const { tab, result } = await open(`(async () => {
                const library = await import('${here}');
                const frame = document.createElement('iframe');
                frame.src = '/frame.html?with=${there}';
                const ready = new Promise(resolve => addEventListener('message', ({ data }) => data === 'ready' && resolve()));
                document.body.append(frame);
                await ready;
                return await (${ASK})(library.windowTransport(frame.contentWindow));
            })()`);
            same([result, tab.said], [ANSWERS, []]);
        });
        test(`a real worker: ${mine} here, ${theirs} in the worker`, async () => {
            const { tab, result } = await open(`(async () => {
                const library = await import('${here}');
                const worker = new Worker('/worker.js?with=${there}', { type: 'module' });
                await new Promise(resolve => worker.addEventListener('message', ({ data }) => data === 'ready' && resolve()));
                return await (${ASK})(library.workerTransport(worker));
            })()`);
            same([result, tab.said], [ANSWERS, []]);
        });
        test(`a real MessageChannel: ${mine} here, ${theirs} there`, async () => {
            const { result } = await open(`(async () => {
                const library = await import('${here}'), { JSONRPCServer, RPCError, portTransport } = await import('${there}');
                const { port1, port2 } = new MessageChannel(), server = new JSONRPCServer(portTransport(port2));
                let noted;
                server.method('echo', params => params);
                server.method('fail', () => { throw new RPCError(-32001, 'Build failed', { diagnostics: [1] }); });
                server.onNotify('note', params => { noted = params; });
                server.method('noted', () => noted);
                return await (${ASK})(library.portTransport(port1));
            })()`);
            same(result, ANSWERS);
        });
    }
if (!seed.text)
    skip('the seed\'s TypeScript', seed.why);

test('a frame of another origin and another window of the same one are not heard', async () => {
    const { result } = await open(`(async () => {
        const { JSONRPCClient, JSONRPCServer, windowTransport } = await import('/weft/weft.js');
        const show = async src => {
            const frame = document.createElement('iframe');
            frame.src = src;
            const posted = new Promise(resolve => addEventListener('message', ({ data, source }) => data === 'posted' && source === frame.contentWindow && resolve()));
            document.body.append(frame);
            return { frame, posted };
        };
        const good = document.createElement('iframe');
        document.body.append(good); /* about:blank: it never answers */
        const transport = windowTransport(good.contentWindow);
        const client = new JSONRPCClient(transport, { timeout: 1000 }), server = new JSONRPCServer(transport);
        const call = client.request('secret').catch(error => error.reason);
        let forged;
        server.onNotify('note', params => { forged = params; });
        for (const src of ['/evil.html', '${elsewhere}/evil.html']) {
            const { posted } = await show(src);
            await posted;
        }
        postMessage({ jsonrpc: '2.0', id: 1, result: 'from myself' }, '*');
        /* Also from the right window, once it shows somebody else's page. */
        good.src = '${elsewhere}/evil.html';
        await new Promise(resolve => addEventListener('message', ({ data, source }) => data === 'posted' && source === good.contentWindow && resolve()));
        return [await call, forged];
    })()`);
    same(result, ['timeout', null].map(one => one ?? undefined));
});

test('what is sent reaches only the origin that it is for', async () => {
    const { tab, result } = await open(`(async () => {
        const { JSONRPCClient, windowTransport } = await import('/weft/weft.js');
        const frame = document.createElement('iframe');
        frame.src = '${elsewhere}/frame.html?with=/weft/weft.js';
        const ready = new Promise(resolve => addEventListener('message', ({ data }) => data === 'ready' && resolve()));
        document.body.append(frame);
        await ready.then(() => {}, () => {});
        return await new JSONRPCClient(windowTransport(frame.contentWindow), { timeout: 300 }).request('echo', { secret: 1 }).catch(error => error.reason);
    })()`);
    same(result, 'timeout');
    check(tab.said.every(line => /target origin/.test(line)), tab.said.join('\n')); /* the browser says that it refused */
});

test('a service worker, by a port that is handed over', async () => {
    const { result } = await open(`(async () => {
        const { JSONRPCClient } = await import('/weft/weft.js'), { serviceWorkerTransport } = await import('/weft/ports.js');
        await navigator.serviceWorker.register('/sw.js', { type: 'module' });
        const { active } = await navigator.serviceWorker.ready;
        const [a, b] = [1, 2].map(() => new JSONRPCClient(serviceWorkerTransport(active)));
        return await Promise.all([a.request('add', [1, 2]), b.request('add', [3, 4])]);
    })()`);
    same(result, [3, 7]);
});

/* ---- the preview ---- */

const PROJECT = {
    '/index.html': `<!doctype html><title>Project</title><link rel="stylesheet" href="app.css"><h1>home</h1><a id="about" href="/about.html">about</a>
        <img id="dot" src="/dot.svg"><script src="app.js"></script><script>document.body.dataset.inline = window.fromApp;</script>`,
    '/app.css': 'h1 { color: rgb(1, 2, 3) }',
    '/app.js': `window.fromApp = 'yes'; console.log('hello', { a: 1 }); console.error('<img src=x onerror=alert(1)>');`,
    '/about.html': `<h1>about</h1><script>setTimeout(() => { throw new TypeError('broken on purpose'); });</script>`,
    '/dot.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>',
};
const PREVIEW = `(async () => {
    const { frameTransport, invitation } = await import('/weft/ports.js'), { previewParent } = await import('/weft/preview.js');
    const project = ${JSON.stringify(PROJECT)};
    const frame = document.createElement('iframe'), { nonce, fragment } = invitation();
    frame.sandbox = 'allow-scripts';
    frame.src = '/preview.html' + fragment;
    const waiting = frameTransport(frame, { nonce });
    document.body.append(frame);
    window.told = { console: [], errors: [], navigation: [] };
    window.transport = await waiting;
    window.preview = previewParent(transport, {
        files: path => project[path],
        onConsole: line => told.console.push(line), onError: error => told.errors.push(error), onNavigation: state => told.navigation.push(state),
    });
})()`;
/* Wait in the page until it holds. */
const until = (tab, condition) => tab.waitForFunction(condition, undefined, { timeout: 120_000 });

test('the preview: a sandboxed page is loaded, navigated, refreshed, and tells what happens', async () => {
    const { tab } = await open(PREVIEW);
    const shown = () => tab.frames().find(one => one !== tab.mainFrame());
    same(await tab.evaluate(`preview.navigate('/')`), { url: '/', canGoBack: false, canGoForward: false });
    same(await shown().evaluate(`[document.querySelector('h1').textContent, document.body.dataset.inline, getComputedStyle(document.querySelector('h1')).color, origin, location.hash]`),
        ['home', 'yes', 'rgb(1, 2, 3)', 'null', '']);
    await until(tab, `told.console.length === 2`);
    same(await tab.evaluate(`told.console`), [{ level: 'log', message: 'hello {"a":1}' }, { level: 'error', message: '<img src=x onerror=alert(1)>' }]);
    await shown().click('#about');
    await until(tab, `told.errors.length === 1`);
    same(await tab.evaluate(`[told.errors[0].message, preview.state]`), ['Uncaught TypeError: broken on purpose', { url: '/about.html', canGoBack: true, canGoForward: false }]);
    same(await tab.evaluate(`preview.back()`), { url: '/', canGoBack: false, canGoForward: true });
    same(await shown().evaluate(`document.querySelector('h1').textContent`), 'home');
    same((await tab.evaluate(`preview.refresh()`)).url, '/');
    const refused = url => tab.evaluate(`preview.navigate(${JSON.stringify(url)}).catch(error => [error.code, error.reason])`);
    same([await refused('https://example.com/'), await refused('http://['), await refused('/missing.css')], Array(3).fill([-32006, 'navigationFailed']));
    /* A single-page application, whose history a sandbox would not let it have. */
    await shown().evaluate(`history.pushState({ n: 1 }, '', '/route/1'); addEventListener('popstate', ({ state }) => { document.title = 'popped ' + JSON.stringify(state); })`);
    await until(tab, `preview.state.url === '/route/1'`);
    await tab.evaluate(`preview.back()`);
    await until(tab, `preview.state.url === '/'`);
    same(await shown().evaluate(`document.title`), 'popped null');
    check((await tab.evaluate(`preview.navigate('/deep/route')`)).url === '/deep/route', 'the fallback to index.html');
    /* Both also work as notifications. */
    await tab.evaluate(`transport.send({ jsonrpc: '2.0', method: 'navigate', params: { url: '/about.html' } })`);
    await until(tab, `preview.state.url === '/about.html'`);
    await tab.evaluate(`told.errors.length = 0; transport.send({ jsonrpc: '2.0', method: 'refresh' })`);
    await until(tab, `told.errors.length === 1`);
});

test('the preview: no index.html is -32005; what the frame shows cannot reach the page', async () => {
    const { tab } = await open(PREVIEW.replace('files: path => project[path]', 'files: path => path === \'/x.html\' ? project[\'/index.html\'] : undefined'));
    same(await tab.evaluate(`preview.navigate('/').catch(error => [error.code, error.reason])`), [-32005, 'previewLoadFailed']);
    const shown = tab.frames().find(one => one !== tab.mainFrame());
    same(await shown.evaluate(`(() => { try { return parent.document.title; } catch (error) { return error.name; } })()`), 'SecurityError');
});

test('the preview: a frame that was not invited gets no port', async () => {
    const { result } = await open(`(async () => {
        const { frameTransport, invitation } = await import('/weft/ports.js');
        const frame = document.createElement('iframe'), { nonce } = invitation();
        frame.sandbox = 'allow-scripts';
        frame.src = '/thief.html';
        const waiting = frameTransport(frame, { nonce, timeout: 3000 }).catch(error => error.reason);
        const posted = new Promise(resolve => addEventListener('message', ({ data }) => data === 'thief' && resolve()));
        document.body.append(frame);
        await posted;
        return await waiting;
    })()`);
    same(result, 'timeout');
});

/* ---- builds ---- */

if (!optional('esbuild-wasm'))
    skip('builds in a worker', 'the npm package esbuild-wasm is not installed');
else
    test('builds in a worker: outputs, progress, warnings, errors with their line', async () => {
        const { result } = await open(`(async () => {
            const { buildWorker } = await import('/weft/build.js');
            const told = [], warned = [];
            const worker = new Worker('/weft/build-worker.js?esbuild=/esbuild/esm/browser.js&wasm=/esbuild/esbuild.wasm', { type: 'module' });
            const builder = buildWorker(worker, { onProgress: one => told.push(one.phase), onWarning: one => warned.push(one) });
            const files = { 'src/App.tsx': 'import { two } from "./lib";\\nimport "./app.css";\\nexport const App = () => <p>{two}</p>;\\nif (two === -0) ;',
                'src/lib.ts': 'export const two: number = 1 + 1;', 'src/app.css': 'p { color: red }', 'bad.ts': 'const a = 1;\\nlet b = ;\\n', 'api.ts': 'export default { fetch: () => new Response("hi") };' };
            const good = await builder.build({ files, entry: 'src/App.tsx', config: { external: ['react'], jsx: 'transform' } });
            const backend = await builder.buildBackend({ files, entry: 'api.ts' });
            const refusal = params => builder.build(params).catch(({ code, message, data }) => ({ code, message, data }));
            const bad = await refusal({ files, entry: 'bad.ts' });
            const missing = await refusal({ files: { 'a.ts': 'import "./none";' }, entry: 'a.ts' });
            const outside = await refusal({ files, entry: 'api.ts', config: { plugins: [] } });
            const nobody = await refusal({ files, entry: '../../etc/passwd' });
            builder.destroy();
            return { outputs: good.outputs.map(one => one.path), text: good.outputs[0].text, warned, told: [...new Set(told)], backend: backend.outputs[0].text, bad, missing, outside, nobody };
        })()`);
        same(result.outputs.sort(), ['App.css', 'App.js']);
        check(/React\.createElement\("p"/.test(result.text) && /1 \+ 1|= 2/.test(result.text), result.text);
        same([result.warned.length, result.warned[0].file, result.warned[0].line, result.warned[0].severity], [1, 'src/App.tsx', 4, 'warning']);
        same(result.told, ['start', 'load', 'done', 'failed']);
        check(/new Response\("hi"\)/.test(result.backend), result.backend);
        same([result.bad.code, result.bad.message, result.bad.data.reason], [-32001, 'Build failed with 1 error', 'buildFailed']);
        const [{ file, line, column, severity, message }] = result.bad.data.diagnostics;
        same([file, line, column, severity, message], ['bad.ts', 2, 9, 'error', 'Unexpected ";"']);
        same([result.missing.code, result.missing.data.diagnostics[0].message, result.missing.data.diagnostics[0].file], [-32001, 'Could not resolve "./none"', 'a.ts']);
        same([result.outside.code, result.outside.data.path, result.nobody.code], [-32602, '/config/plugins', -32602]);
    });

await run();
