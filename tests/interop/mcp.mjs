#!/usr/bin/env node
/* libweft as a client of MCP's Streamable HTTP, against the example server of the protocol's own SDK. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { build, check, cleanup, needed, output, patiently, run, same, test } from './kit.mjs';

needed('@modelcontextprotocol/sdk/package.json');
const example = path.join(process.env.NODE_PATH, '@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js');

/* It takes its port from the environment and has none to choose: one that is free now. */
const probe = net.createServer().listen(0, '127.0.0.1');
await once(probe, 'listening');
const { port } = probe.address();
probe.close();
await once(probe, 'close');

let talk = '';
const server = spawn(process.execPath, [example], { env: { ...process.env, MCP_PORT: String(port) }, stdio: ['ignore', 'pipe', 'pipe'] });
cleanup(async () => {
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
});
await patiently(new Promise((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr])
        stream.setEncoding('utf8').on('data', text => {
            talk += text;
            if (/listening/i.test(talk))
                resolve();
        });
    server.on('exit', code => reject(new Error(`the server ended (${code}): ${talk}`)));
}), 'the server');

const mcp = async (tool, args, ...more) => {
    const { stdout, stderr, code } = await output(path.join(build, 'tests/interop_mcp'), [`http://localhost:${port}/mcp`, tool, JSON.stringify(args), ...more]);
    check(code === 0, `interop_mcp ended with ${code}: ${stdout}${stderr}\n${talk}`);
    return stdout.split('\n').filter(Boolean).map(line => JSON.parse(line));
};

test('a session, its tools, and a call', async () => {
    const said = await mcp('greet', { name: 'Weft' });
    same(said[0].result.protocolVersion, '2025-06-18');
    check(said[1].result.tools.some(tool => tool.name === 'greet'), 'greet is a tool');
    same(said[2].result.content[0].text, 'Hello, Weft!');
    same(said[3], { session: true, streams: 3 });
});

test('an answer that takes its time', async () => {
    const said = await mcp('multi-greet', { name: 'Weft' });
    same(said[2].result.content[0].text, 'Good morning, Weft!');
});

/* They come beside the answers, on a GET that must show the session's id. */
test('what the server says unasked', async () => {
    const said = await mcp('start-notification-stream', { interval: 50, count: 5 }, 'listen');
    const told = said.filter(line => line.notification === 'notifications/message');
    check(told.length > 0 && /Periodic notification #\d/.test(told[0].params.data), `a notification: ${JSON.stringify(said)}`);
    check(said.some(line => /Started sending/.test(line.result?.content?.[0]?.text)), 'the answer');
});

await run();
