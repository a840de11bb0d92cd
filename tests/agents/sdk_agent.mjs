/* An agent written with the official ACP SDK, for the test of our driver: node sdk_agent.mjs NODE_MODULES [RECORD [locked]]. What a
 * prompt says is what it does. Sessions are remembered in the folder they work in. RECORD: a file that gets every message; locked:
 * it is not logged in until it was told how. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';

const acp = createRequire(path.join(process.argv[2], '/'))('@agentclientprotocol/sdk');
const { agent: here, client: there } = acp.methods;
const sessions = new Map();
const record = process.argv[3];
let locked = process.argv[4] === 'locked';
const memory = (cwd, id) => path.join(cwd, `${id}.json`);

const text = words => ({ type: 'text', text: words });

class Session {
    constructor(id, cwd, said = []) {
        Object.assign(this, { id, cwd, said, cancelled: new AbortController() });
    }
    update(client, update) {
        return client.notify(there.session.update, { sessionId: this.id, update });
    }
    say(client, words) {
        return this.update(client, { sessionUpdate: 'agent_message_chunk', content: text(words) });
    }
    keep(words) {
        this.said.push(words);
        fs.writeFileSync(memory(this.cwd, this.id), JSON.stringify(this.said));
    }
}

const turns = {
    async hello(session, client) {
        await session.update(client, { sessionUpdate: 'agent_thought_chunk', content: text('hm') });
        await session.say(client, `hello, I remember ${session.said.length}`);
    },
    /* A terminal that the client never created, as some agents show. */
    async permission(session, client) {
        const toolCall = { toolCallId: 't1', title: 'Run it', kind: 'execute', status: 'pending', content: [{ type: 'terminal', terminalId: 'mine' }] };
        await session.update(client, { sessionUpdate: 'tool_call', ...toolCall });
        const options = [{ optionId: 'go', name: 'Go', kind: 'allow_once' }, { optionId: 'stop', name: 'Stop', kind: 'reject_once' }];
        const { outcome } = await client.request(there.session.requestPermission, { sessionId: session.id, toolCall, options });
        await session.say(client, JSON.stringify(outcome));
    },
    /* What was not advertised is not there. */
    async fs(session, client) {
        const error = await client.request(there.fs.readTextFile, { sessionId: session.id, path: '/etc/hostname' }).catch(reason => reason);
        await session.say(client, `fs ${error.code}`);
    },
    async wait(session, client) {
        await session.say(client, 'waiting');
        await new Promise(resolve => session.cancelled.signal.addEventListener('abort', resolve));
        await session.say(client, 'stopping');
        return { stopReason: 'cancelled' };
    },
    async auth() {
        throw acp.RequestError.authRequired();
    },
    async tokens() {
        return { stopReason: 'max_tokens' };
    },
    /* read PATH [LINE LIMIT], write PATH CONTENT: what comes back, or the error */
    async read(session, client, file, line, limit) {
        const params = { sessionId: session.id, path: path.join(session.cwd, file), line: line && Number(line), limit: limit && Number(limit) };
        await session.say(client, JSON.stringify(await client.request(there.fs.readTextFile, params).catch(({ code, message }) => ({ code, message }))));
    },
    async write(session, client, file, content) {
        const params = { sessionId: session.id, path: path.join(session.cwd, file), content };
        await session.say(client, JSON.stringify(await client.request(there.fs.writeTextFile, params).catch(({ code, message }) => ({ code, message }))));
    },
    async form(session, client) {
        const requestedSchema = { type: 'object', required: ['name'], properties: {
            name: { type: 'string', title: 'Name', minLength: 1 }, port: { type: 'integer', minimum: 1, default: 80 },
            tags: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }, { const: 'b', title: 'B' }] } } } };
        const answer = await client.request(there.elicitation.create, { sessionId: session.id, mode: 'form', message: 'How shall I deploy?', requestedSchema });
        await session.say(client, JSON.stringify(answer));
        return session.cancelled.signal.aborted ? { stopReason: 'cancelled' } : undefined;
    },
    async page(session, client) {
        const answer = await client.request(there.elicitation.create, { sessionId: session.id, mode: 'url', message: 'Consent', url: 'https://example.org/consent?x=1', elicitationId: 'consent' });
        await client.notify(there.elicitation.complete, { elicitationId: 'consent' });
        await session.say(client, JSON.stringify(answer));
    },
    async usage(session, client) {
        await session.update(client, { sessionUpdate: 'usage_update', used: 100, size: 1000, cost: { amount: 0.5, currency: 'USD' } });
        return { stopReason: 'end_turn', usage: { totalTokens: 12, inputTokens: 10, outputTokens: 2 } };
    },
    async large(session, client) {
        await session.say(client, 'x'.repeat(4 << 20));
    },
};

function open(id, cwd) {
    if (!fs.existsSync(memory(cwd, id)))
        throw acp.RequestError.resourceNotFound(id);
    const session = new Session(id, cwd, JSON.parse(fs.readFileSync(memory(cwd, id), 'utf8')));
    sessions.set(id, session);
    return session;
}

const app = acp.agent({ name: 'sdk' })
    .onRequest(here.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: { loadSession: true },
        authMethods: locked ? [{ id: 'key', name: 'Key', description: 'the one under the mat' }] : undefined }))
    .onRequest(here.authenticate, ({ params }) => {
        locked = params.methodId !== 'key';
        return {};
    })
    .onRequest(here.session.new, ({ params }) => {
        if (locked)
            throw acp.RequestError.authRequired();
        const session = new Session(`sdk-${process.pid}`, params.cwd);
        sessions.set(session.id, session);
        return { sessionId: session.id };
    })
    .onRequest(here.session.load, async ({ params, client }) => {
        const session = open(params.sessionId, params.cwd);
        for (const words of session.said)
            await session.update(client, { sessionUpdate: 'user_message_chunk', content: text(words) });
        return {};
    })
    .onRequest(here.session.prompt, async ({ params, client }) => {
        const session = sessions.get(params.sessionId), [{ text: words }] = params.prompt;
        const [verb, ...rest] = words.split(' ');
        const result = await turns[verb](session, client, ...rest);
        session.keep(words);
        return result ?? { stopReason: 'end_turn' };
    })
    .onNotification(here.session.cancel, ({ params }) => sessions.get(params.sessionId).cancelled.abort());

const tap = from => new TransformStream({ transform(one, controller) {
    if (record)
        fs.appendFileSync(record, `${JSON.stringify({ pid: process.pid, from, one })}\n`);
    controller.enqueue(one);
} });
const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
const outgoing = tap('agent');
outgoing.readable.pipeTo(stream.writable).catch(() => {});
const connection = app.connect({ readable: stream.readable.pipeThrough(tap('client')), writable: outgoing.writable });
await connection.closed;
process.exit(0);
