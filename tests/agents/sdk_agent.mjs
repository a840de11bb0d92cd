/* An agent written with the official ACP SDK, for the test of our driver: node sdk_agent.mjs NODE_MODULES. What a prompt says
 * is what it does. Sessions are remembered in the folder they work in. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';

const acp = createRequire(path.join(process.argv[2], '/'))('@agentclientprotocol/sdk');
const { agent: here, client: there } = acp.methods;
const sessions = new Map();
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
    .onRequest(here.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: { loadSession: true } }))
    .onRequest(here.session.new, ({ params }) => {
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
        const result = await turns[words](session, client);
        session.keep(words);
        return result ?? { stopReason: 'end_turn' };
    })
    .onNotification(here.session.cancel, ({ params }) => sessions.get(params.sessionId).cancelled.abort());

const connection = app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
process.exit(0);
