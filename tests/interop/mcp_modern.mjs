/* A server of the modern era (2026-07-28), made with the protocol's own package: over HTTP, or with "stdio" on standard input
 * and output. It refuses the older era. Started by mcp_servers.mjs; not a test itself. */
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(process.env.MCP_PACKAGES, 'x.js'));
const load = name => import(pathToFileURL(require.resolve(name)).href);
const { McpServer, ResourceTemplate, createMcpHandler, inputRequired, acceptedContent, completable } = await load('@modelcontextprotocol/server');
const { serveStdio } = await load('@modelcontextprotocol/server/stdio');
const { z } = await load('zod');

let handler;
let notes = 'one';

function make() {
    const server = new McpServer({ name: 'modern', version: '1.2.3' }, { capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: {} }, instructions: 'Be kind.' });
    server.registerTool('add', { description: 'Add', inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
        async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } }));
    server.registerTool('deploy', { description: 'Ask first', inputSchema: z.object({ env: z.string() }) }, async ({ env }, ctx) => {
        const said = acceptedContent(ctx.mcpReq.inputResponses, 'confirm');
        if (!said)
            return inputRequired({
                inputRequests: { confirm: inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema: { type: 'object', properties: { really: { type: 'boolean', default: true } } } }), roots: inputRequired.listRoots() },
                requestState: 'state-é',
            });
        return { content: [{ type: 'text', text: `deployed to ${env}: ${said.really}, ${Object.keys(ctx.mcpReq.inputResponses).sort()}` }] };
    });
    server.registerTool('slow', { description: 'Progress', inputSchema: z.object({ steps: z.number() }) }, async ({ steps }, ctx) => {
        const token = ctx.mcpReq._meta?.progressToken;
        for (let i = 1; i <= steps; i++) {
            await new Promise(done => setTimeout(done, 20));
            if (token !== undefined)
                await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress: i, total: steps } });
        }
        return { content: [{ type: 'text', text: 'done' }] };
    });
    server.registerTool('touch', { description: 'Change the resource', inputSchema: z.object({ text: z.string() }) }, async ({ text }) => {
        notes = text;
        handler?.notify.resourceUpdated('notes://all');
        return { content: [{ type: 'text', text: 'touched' }] };
    });
    server.registerResource('notes', 'notes://all', { mimeType: 'text/plain' }, async uri => ({ contents: [{ uri: uri.href, text: notes }] }));
    server.registerResource('one', new ResourceTemplate('notes://{id}', { list: undefined }), {}, async uri => ({ contents: [{ uri: uri.href, text: 'one of them' }] }));
    server.registerPrompt('greet', { argsSchema: z.object({ name: completable(z.string(), value => ['Ann', 'Bob'].filter(one => one.startsWith(value))) }) },
        ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}` } }] }));
    return server;
}

async function answer(incoming, out) {
    const chunks = [];
    for await (const chunk of incoming)
        chunks.push(chunk);
    const gone = new AbortController();
    out.on('close', () => gone.abort());
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method: incoming.method, headers: incoming.headers, body: chunks.length ? Buffer.concat(chunks) : undefined, signal: gone.signal });
    const response = await handler.fetch(request);
    out.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body)
        for await (const chunk of response.body)
            out.write(chunk);
    out.end();
}

if (process.argv[2] === 'stdio') {
    serveStdio(make, { legacy: 'reject' });
} else {
    handler = createMcpHandler(make, { legacy: 'reject' });
    const server = http.createServer((incoming, out) => answer(incoming, out).catch(error => out.destroy(error)));
    server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
}
