/* The worker for build.js, as a file that can be given to new Worker(url, { type: 'module' }). The address of esbuild-wasm's
 * browser module and of its .wasm are in the worker's own address: build-worker.js?esbuild=URL&wasm=URL, both of this origin. */
import { serveBuild } from './build.js';

const query = new URL(self.location.href).searchParams;

function ownAddress(name) {
    const url = new URL(query.get(name) ?? '', self.location.href);
    if (url.origin !== self.location.origin)
        throw new TypeError(`${name} must come from the page's own origin`);
    return url.href;
}

async function load() {
    const esbuild = await import(ownAddress('esbuild'));
    await esbuild.initialize({ wasmURL: ownAddress('wasm'), worker: false });
    return esbuild;
}

const loaded = load();
loaded.catch(() => {}); /* each build says why */
serveBuild(loaded);
