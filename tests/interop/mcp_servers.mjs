#!/usr/bin/env node
/* The hub as a client of MCP servers: the protocol's own server-everything over its three transports, and a server of the
 * modern era over HTTP and on standard input and output. */
import path from 'node:path';
import { check, run, same, skip, test } from './kit.mjs';
import { everything, freePort, installed, packages, program, question, startHub } from './mcp_kit.mjs';

if (!installed()) {
    skip('mcp_servers.mjs', 'the npm packages of tests/npm/mcp are not installed (tools/install.sh test)');
    await run();
}

const modern = path.resolve('tests/interop/mcp_modern.mjs');
const ports = { http: await freePort(), sse: await freePort() };
await program([everything, 'streamableHttp'], /listening/i, { PORT: String(ports.http) });
await program([everything, 'sse'], /running/i, { PORT: String(ports.sse) });
const young = await program([modern, 'http'], /listening on \d+/);
const hub = await startHub({
    stdio: { command: process.execPath, args: [everything, 'stdio'] },
    http: { url: `http://127.0.0.1:${ports.http}/mcp` },
    sse: { url: `http://127.0.0.1:${ports.sse}/sse` },
    modern: { url: `http://127.0.0.1:${young.port}/mcp` },
    piped: { command: process.execPath, args: [modern, 'stdio'], env: { MCP_PACKAGES: packages } },
    nobody: { url: 'http://127.0.0.1:9/mcp' },
    missing: { command: '/nonexistent/mcp-server' },
});
const tool = (server, name, args = {}) => hub.call('mcp/call', { server, tool: name, arguments: args });
const text = result => result.content.map(part => part.text ?? '').join('\n');
const server = async name => (await hub.call('mcp/servers', { server: name })).servers[0];

for (const one of ['stdio', 'http', 'sse']) {
    test(`everything over ${one}: tools`, async () => {
        const { tools } = await hub.call('mcp/tools', { server: one });
        check(tools.some(t => t.name === 'echo' && t.server === one), JSON.stringify(tools).slice(0, 300));
        same(text(await tool(one, 'echo', { message: 'hé' })), 'Echo: hé');
        same(text(await tool(one, 'get-sum', { a: 2, b: 40 })), 'The sum of 2 and 40 is 42.');
        const { structuredContent } = await tool(one, 'get-structured-content', { location: 'Chicago' });
        check(typeof structuredContent.temperature === 'number', 'a structured result');
        const about = await server(one);
        same([about.state, about.transport, about.protocolVersion], ['ready', one, '2025-11-25']);
    });
    test(`everything over ${one}: what is wrong`, async () => {
        check((await tool(one, 'get-sum', { a: 'x' })).isError, 'a tool says that it failed');
        const error = await tool(one, 'no-such-tool').then(result => result, failure => failure);
        check(error.isError || error.data?.reason === 'mcpServerError', JSON.stringify(error));
        const refused = await hub.call('mcp/read', { server: one, uri: 'demo://nothing' }).catch(failure => failure);
        same([refused.code, refused.data.reason, refused.data.server], [-32007, 'mcpServerError', one]);
        check(refused.data.response.code < 0, JSON.stringify(refused.data));
    });
    test(`everything over ${one}: resources and prompts`, async () => {
        const { resources, resourceTemplates } = await hub.call('mcp/resources', { server: one });
        check(resources.length > 3 && resourceTemplates.length > 0, 'resources and templates');
        const { contents } = await hub.call('mcp/read', { server: one, uri: resources[0].uri });
        check(contents[0].text.length > 10, 'the text of a resource');
        const { prompts } = await hub.call('mcp/prompts', { server: one });
        check(prompts.some(p => p.name === 'args-prompt'), 'prompts');
        const { messages } = await hub.call('mcp/prompt', { server: one, prompt: 'args-prompt', arguments: { city: 'Paris' } });
        check(/Paris/.test(messages[0].content.text), 'a prompt');
        const { completion } = await hub.call('mcp/complete', { server: one, prompt: 'completable-prompt', argument: 'department', value: 'E' });
        same(completion.values, ['Engineering']);
    });
    test(`everything over ${one}: roots and progress`, async () => {
        check(text(await tool(one, 'get-roots-list')).includes(`file://${hub.folder}`), 'the project is the root');
        check(/completed/.test(text(await tool(one, 'trigger-long-running-operation', { duration: 1, steps: 3 }))), 'a long call');
    });
    test(`everything over ${one}: a form and a model are questions`, async () => {
        const form = tool(one, 'trigger-elicitation-request');
        const asked = await question(hub);
        same([asked.kind, asked.detail.server, asked.detail.mode], ['elicitation', one, 'form']);
        await hub.call('question.answer', { questionId: asked.id, option: 'accept', content: { name: 'Ann' } });
        check(/"integer": 42/.test(text(await form)), 'defaults are filled in');
        const sampling = tool(one, 'trigger-sampling-request', { prompt: 'say hi' });
        const model = await question(hub);
        check(/say hi/.test(model.title), model.title);
        await hub.call('question.answer', { questionId: model.id, option: 'accept', content: { text: 'hi there' } });
        check(/hi there/.test(text(await sampling)), 'what a person wrote');
        const declined = tool(one, 'trigger-elicitation-request');
        await hub.call('question.answer', { questionId: (await question(hub)).id, option: 'decline' });
        check(/declined/i.test(text(await declined)), 'a form that was declined');
    });
}

test('everything: resources that change', async () => {
    const uri = 'demo://resource/dynamic/text/1';
    same((await hub.call('mcp/subscribe', { server: 'stdio', uri })).subscribed, true);
    await tool('stdio', 'toggle-subscriber-updates');
    for (let i = 0; i < 300; i++) {
        const { stdout } = await hub.weft('events', '--json', '--type', 'mcp.resourceUpdated');
        if (stdout.includes(uri))
            break;
        check(i < 299, 'a change is told as an event');
        await new Promise(done => setTimeout(done, 100));
    }
    await tool('stdio', 'toggle-subscriber-updates');
    same((await hub.call('mcp/unsubscribe', { server: 'stdio', uri })).unsubscribed, true);
});

for (const one of ['modern', 'piped']) {
    test(`the modern era, ${one}`, async () => {
        const { tools } = await hub.call('mcp/tools', { server: one });
        same(tools.map(t => t.name).sort(), ['add', 'deploy', 'slow', 'touch']);
        const about = await server(one);
        same([about.state, about.protocolVersion, about.instructions], ['ready', '2026-07-28', 'Be kind.']);
        same((await tool(one, 'add', { a: 20, b: 22 })).structuredContent, { sum: 42 });
        same(text(await tool(one, 'slow', { steps: 3 })), 'done');
        same((await hub.call('mcp/read', { server: one, uri: 'notes://all' })).contents[0].text, 'one');
        const { resources, resourceTemplates } = await hub.call('mcp/resources', { server: one });
        same([resources.length, resourceTemplates.length], [1, 1]);
        const { messages } = await hub.call('mcp/prompt', { server: one, prompt: 'greet', arguments: { name: 'Ann' } });
        same(messages[0].content.text, 'Greet Ann');
        same((await hub.call('mcp/complete', { server: one, prompt: 'greet', argument: 'name', value: 'B' })).completion.values, ['Bob']);
        const refused = await hub.call('mcp/prompt', { server: one, prompt: 'none' }).catch(failure => failure);
        same([refused.code, refused.data.response.code], [-32007, -32602]);
    });
    test(`the modern era, ${one}: input is asked for, and the call is repeated with it`, async () => {
        const deployed = tool(one, 'deploy', { env: 'prod' });
        const asked = await question(hub);
        check(/Deploy to prod\?/.test(asked.title), asked.title);
        await hub.call('question.answer', { questionId: asked.id, option: 'accept' });
        same(text(await deployed), 'deployed to prod: true, confirm,roots');
    });
}

test('the modern era: resources that change', async () => {
    same((await hub.call('mcp/subscribe', { server: 'modern', uri: 'notes://all' })).subscribed, true);
    for (let i = 0; i < 300; i++) {
        await tool('modern', 'touch', { text: `at ${i}` });
        const { stdout } = await hub.weft('events', '--json', '--type', 'mcp.resourceUpdated');
        if (stdout.includes('notes://all'))
            break;
        check(i < 299, 'a change is told as an event');
        await new Promise(done => setTimeout(done, 50));
    }
});

test('servers that are not there', async () => {
    for (const name of ['nobody', 'missing']) {
        const refused = await tool(name, 'x').catch(failure => failure);
        same([refused.code, refused.data.reason], [-32007, 'mcpServerError'], name);
        same((await server(name)).state, 'failed', name);
    }
    const { tools, failed } = await hub.call('mcp/tools');
    check(tools.some(t => t.server === 'sse') && tools.some(t => t.server === 'modern'), 'the others are listed');
    same(failed.map(f => f.server).sort(), ['missing', 'nobody']);
});

test('calls are in the journal, what was said in them is not', async () => {
    const { stdout } = await hub.weft('events', '--json', '--type', 'mcp.');
    check(/"mcp.called"/.test(stdout) && /"outcome":"ok"/.test(stdout), 'calls');
    check(!stdout.includes('hi there') && !stdout.includes('hé'), 'not their arguments and answers');
});

await run();
