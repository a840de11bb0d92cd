/* Builds in a worker of the page: build and buildBackend, with buildProgress and buildWarning while it works. What fails
 * answers -32001 with the same diagnostics as the hub's build. esbuild itself is handed in: this file does not load it. */
import { BUILD_FAILED, JSONRPCClient, JSONRPCServer, RPCError, selfTransport, workerTransport } from './weft.js';

const BUILD_TIMEOUT = 600_000;
const MAX_DIAGNOSTICS = 200;
const LOADERS = {
    js: 'jsx', mjs: 'jsx', cjs: 'jsx', jsx: 'jsx', ts: 'ts', mts: 'ts', cts: 'ts', tsx: 'tsx', css: 'css', json: 'json', txt: 'text', svg: 'text',
};
const ENDINGS = ['', '.tsx', '.ts', '.jsx', '.js', '.mjs', '.css', '.json', '/index.tsx', '/index.ts', '/index.jsx', '/index.js'];
/* What a caller may say about a build. Programs (plugins), files outside of the given ones and where to write are not its business. */
const SETTINGS = ['bundle', 'format', 'target', 'platform', 'minify', 'sourcemap', 'jsx', 'jsxFactory', 'jsxFragment', 'jsxImportSource',
    'define', 'external', 'splitting', 'treeShaking', 'charset', 'globalName', 'legalComments', 'entryNames', 'publicPath',
    'banner', 'footer'];
const FRONTEND = { bundle: true, format: 'esm', platform: 'browser', sourcemap: 'inline', jsx: 'automatic' };
const BACKEND = { bundle: true, format: 'esm', platform: 'neutral', sourcemap: 'inline', mainFields: ['module', 'main'] };

/* ---- the page's side ---- */

/* worker: one in which serveBuild() runs. The handlers are called for every build. */
export function buildWorker(worker, { onProgress, onWarning, timeout = BUILD_TIMEOUT } = {}) {
    const transport = workerTransport(worker);
    const client = new JSONRPCClient(transport, { timeout });
    if (onProgress)
        client.onNotify('buildProgress', onProgress);
    if (onWarning)
        client.onNotify('buildWarning', onWarning);
    return {
        build: (params, options) => client.request('build', params, options),
        buildBackend: (params, options) => client.request('buildBackend', params, options),
        destroy: () => (client.destroy(), worker.terminate()),
    };
}

/* ---- the worker's side ---- */

/* esbuild: the module esbuild or esbuild-wasm, initialized; or a promise of it. */
export function serveBuild(esbuild, transport = selfTransport()) {
    const server = new JSONRPCServer(transport);
    const client = new JSONRPCClient(transport);
    const serve = (name, defaults) => server.method(name, async (params, context) =>
        runBuild(await esbuild, readParams(params, defaults), { client, name, signal: context.signal }));
    serve('build', FRONTEND);
    serve('buildBackend', BACKEND);
    return server;
}

const invalid = (message, path) => new RPCError(-32602, message, { reason: 'invalidParams', path });

/* { files: { path: text }, entry: path or list, config } */
function readParams(params, defaults) {
    const { files, entry, config = {} } = params ?? {};
    const entries = Array.isArray(entry) ? entry : [entry];
    if (typeof files !== 'object' || files === null)
        throw invalid('files must be an object of texts by path', '/files');
    const sources = new Map(Object.entries(files).map(([path, text]) => [normalize(path), text]));
    if (!entries.length || !entries.every(path => typeof path === 'string' && sources.has(normalize(path))))
        throw invalid('entry must name one or more of the files', '/entry');
    const unknown = Object.keys(config).find(name => !SETTINGS.includes(name));
    if (unknown !== undefined)
        throw invalid(`config.${unknown} is not a setting that a build takes`, `/config/${unknown}`);
    return { sources, entries: entries.map(normalize), config: { ...defaults, ...config } };
}

/* "./src/../a.ts" is "/a.ts"; nothing leads above the root. */
function normalize(path) {
    const parts = [];
    for (const part of String(path).split('/'))
        if (part === '..')
            parts.pop();
        else if (part && part !== '.')
            parts.push(part);
    return `/${parts.join('/')}`;
}

async function runBuild(esbuild, { sources, entries, config }, { client, name, signal }) {
    const tell = (phase, more) => client.notify('buildProgress', { method: name, phase, ...more });
    let loaded = 0;
    const plugin = filesPlugin(sources, path => tell('load', { file: path.slice(1), loaded: ++loaded, total: sources.size }));
    tell('start', { total: sources.size });
    try {
        const { outputFiles, warnings } = await esbuild.build({
            ...config, entryPoints: entries, outdir: '/', write: false, logLevel: 'silent', absWorkingDir: '/', plugins: [plugin],
        });
        signal.throwIfAborted();
        const found = warnings.map(one => diagnostic(one, 'warning'));
        found.forEach(one => client.notify('buildWarning', { method: name, ...one }));
        tell('done', { outputs: outputFiles.length });
        const outputs = outputFiles.map(({ path, text, contents }) => ({ path: path.replace(/^\//, ''), text, size: contents.length }));
        return { outputs, warnings: found };
    } catch (error) {
        if (signal.aborted || !Array.isArray(error?.errors))
            throw error;
        tell('failed', { errors: error.errors.length });
        throw buildFailed(error);
    }
}

function buildFailed({ errors, warnings }) {
    const all = [...errors.map(one => diagnostic(one, 'error')), ...warnings.map(one => diagnostic(one, 'warning'))];
    return new RPCError(BUILD_FAILED, `Build failed with ${errors.length} error${errors.length === 1 ? '' : 's'}`, {
        reason: 'buildFailed', errors: errors.length, warnings: warnings.length,
        diagnostics: all.slice(0, MAX_DIAGNOSTICS), truncated: all.length > MAX_DIAGNOSTICS,
    });
}

/* In the form of the hub's diagnostics: places count from 1. esbuild counts columns from 0 and names its own namespace. */
function diagnostic({ id, text, location }, severity) {
    const { file, line, column } = location ?? {};
    const place = location ? { file: file.replace(/^(files:)?\//, ''), line, column: column + 1 } : {};
    return { ...place, severity, message: text, ...(id ? { code: id } : {}) };
}

/* Files come from the call, never from a disk or a network. */
function filesPlugin(sources, onLoad) {
    return {
        name: 'files',
        setup(build) {
            build.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
                if (kind === 'entry-point')
                    return { path: normalize(path), namespace: 'files' };
                if (/^(https?:|data:)/.test(path))
                    return { path, external: true };
                if (!/^[./]/.test(path))
                    return undefined; /* a package: external, or esbuild says that it is not there */
                const base = path.startsWith('/') ? path : `${importer.slice(0, importer.lastIndexOf('/'))}/${path}`;
                const found = ENDINGS.map(ending => normalize(base) + ending).find(one => sources.has(one));
                return found ? { path: found, namespace: 'files' } : { errors: [{ text: `Could not resolve "${path}"` }] };
            });
            build.onLoad({ filter: /.*/, namespace: 'files' }, ({ path }) => {
                onLoad(path);
                return { contents: sources.get(path), loader: LOADERS[/\.(\w+)$/.exec(path)?.[1]] ?? 'text' };
            });
        },
    };
}
