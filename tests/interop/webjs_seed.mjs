/* The seed's own TypeScript as an ES module: the code blocks of the document, as they are printed there, without their types.
 * Not a test itself. */
import fs from 'node:fs';
import path from 'node:path';
import { optional, source } from './kit.mjs';

const document = path.join(source, '../shared/seeds/000_7d723832be9df75f.txt');
const FILES = ['types.ts', 'client.ts', 'server.ts', 'transport.ts'];
/* The document uses selfTransport() and does not print it; this is its workerTransport() for the other side. */
const SELF = 'export const selfTransport = () => workerTransport(globalThis);\n';

/* The document's files by their names, as they are printed. */
export function seedFiles() {
    if (!fs.existsSync(document))
        return null;
    const blocks = [...fs.readFileSync(document, 'utf8').matchAll(/^```typescript\n([\s\S]*?)^```$/gm)].map(match => match[1]);
    return Object.fromEntries(FILES.map(name => [name, blocks.find(block => block.startsWith(`// ${name}\n`))]));
}

/* The module's text, or why there is none. */
export function seedModule() {
    const esbuild = optional('esbuild');
    const files = seedFiles();
    if (!files)
        return { why: 'shared/seeds is not there' };
    if (!esbuild)
        return { why: 'the npm package esbuild is not installed (tools/install.sh test)' };
    const code = Object.values(files).join('\n').replace(/^import type .*$/gm, '');
    return { text: esbuild.transformSync(code, { loader: 'ts', format: 'esm' }).code + SELF };
}

export async function importSeed(folder) {
    const { text, why } = seedModule();
    if (why)
        return { why };
    const file = path.join(folder, 'seed.mjs');
    fs.writeFileSync(file, text);
    return { seed: await import(file) };
}
