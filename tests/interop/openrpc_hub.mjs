#!/usr/bin/env node
/* The hub by its own document: rpc.discover is read by OpenRPC's tools, and their test of a server calls every method of a real
 * hub by it, with params made from the schemas. What comes back is the result that the document promises, or an error that it lists. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Hub, connectTo } from './hub.mjs';
import { check, needed, run, same, skip, source, test } from './kit.mjs';

const { parseOpenRPCDocument, validateOpenRPCDocument } = needed('@open-rpc/schema-utils-js');
const tools = path.join(source, 'build/tools/openrpc/node_modules/');

const hub = new Hub();
const { folder } = hub;
fs.writeFileSync(path.join(folder, 'a.txt'), 'a\n');
spawnSync('git', ['init', '-q'], { cwd: folder });
await hub.start();
const call = await connectTo(hub);
const document = (await call('rpc.discover')).result;

test('OpenRPC\'s tools read it', async () => {
    same(validateOpenRPCDocument(document), true);
    const parsed = await parseOpenRPCDocument(JSON.stringify(document));
    same(parsed.methods.length, document.methods.length);
    check(validateOpenRPCDocument({ ...document, methods: [{}] }) !== true, 'what is wrong is refused');
});

test('a name that several protocols have says what each of them takes', async () => {
    const shared = document.methods.filter(method => method['x-dialects']);
    check(shared.length >= 2, shared.map(({ name }) => name).join());
    for (const { name, params, result, 'x-dialects': dialects } of shared) {
        const names = new Set(Object.values(dialects).flatMap(one => one.params.map(param => param.name)));
        same(params.map(param => param.name).sort(), [...names].sort(), name);
        same(result.schema.anyOf.length, Object.keys(dialects).length, name);
        for (const { name: param, required } of params)
            same(required, Object.values(dialects).every(one => one.params.some(two => two.name === param && two.required)), `${name} ${param}`);
    }
    const { 'x-dialects': { acp, cdev } } = document.methods.find(({ name }) => name === 'initialize');
    check(acp.params.find(({ name }) => name === 'protocolVersion').required, 'ACP must say a version');
    check(cdev.params.every(({ required }) => !required), 'cdev need not');
    for (const { name, errors = [] } of document.methods)
        same(new Set(errors.map(error => JSON.stringify(error))).size, errors.length, `errors of ${name}`);
});

/* ---- OpenRPC's test of a server ---- */

if (!fs.existsSync(tools))
    skip('OpenRPC\'s test of a server', 'tests/npm/openrpc is not installed (tools/install.sh test)');
else {
    const require = createRequire(tools);
    const coverage = require('@open-rpc/test-coverage').default;
    const Faker = require('@open-rpc/test-coverage/build/rules/json-schema-faker-rule').default;
    const silent = { onBegin() {}, onTestBegin() {}, onTestEnd() {}, onEnd() {} };

    const fresh = async () => (await call('session.create', { agent: 'demo' })).result.session.id;
    const { taskId } = (await call('task.submit', { prompt: 'echo for the document' })).result;
    const id = await fresh();
    const known = { sessionId: id, session_id: id, taskId, path: 'a.txt', prompt: 'echo hi', cwd: fs.realpathSync(folder), mcpServers: [], agent: 'demo',
        agent_type: 'demo', protocolVersion: 1, limit: 3, message: 'echo hi', state: undefined, after: 0 };

    /* Where values that are known do not go together, or their names mean something else. */
    const fitting = {
        'task.changes': { taskId }, 'task.diff': { taskId }, 'task.comment': { taskId, comments: [], text: 'go on' },
        'git.stage': { paths: ['a.txt'] }, 'git.unstage': { paths: ['a.txt'] },
        'session/prompt': { sessionId: id, prompt: [{ type: 'text', text: 'echo hi' }] },
        'session.set': { sessionId: id, name: 'title', value: 'a title' },
    };

    /* Its rule, with values that this hub knows besides those that are made up, and with the errors that the document lists. */
    class ByDocument extends Faker {
        getCalls(whole, method) {
            const made = super.getCalls(whole, { ...method, paramStructure: 'by-name' });
            const fill = params => Object.fromEntries(method.params.filter(({ name, required }) => required || known[name] !== undefined)
                .map(({ name }) => [name, name in known ? known[name] : params[name]]));
            const must = params => Object.fromEntries(method.params.filter(({ required }) => required).map(({ name }) => [name, name in known ? known[name] : params[name]]));
            const first = made[0];
            const fits = fitting[method.name] ? [{ ...first, title: 'what fits', params: { ...fitting[method.name] } }] : [];
            return [...made, { ...first, title: 'known values', params: fill(first.params) }, { ...first, title: 'what must be', params: must(first.params) }, ...fits]
                .map(one => ({ ...one, method }));
        }
        /* The ones before may have closed or deleted it. */
        async beforeRequest(options, one) {
            for (const name of ['sessionId', 'session_id'])
                if (one.params[name] === id)
                    one.params[name] = await fresh();
        }
        validateCall(one) {
            if (!one.error)
                return super.validateCall(one);
            one.valid = (one.method.errors ?? []).some(({ code }) => code === one.error.code) || one.error.code === -32602;
            one.reason = one.valid ? undefined : `an error that is not listed: ${JSON.stringify(one.error)}`;
            return one;
        }
    }

    test('OpenRPC\'s test of a server', async () => {
        /* Each connection is one that nothing has decided, for initialize decides; the last of these ends the hub. */
        const transport = async (url, method, params) => (await connectTo(hub))(method, params);
        /* It refuses schemas with a format, because it knows none. */
        const plain = JSON.parse(JSON.stringify(document), (name, value) => name === 'format' && typeof value === 'string' ? undefined : value);
        const calls = await coverage({ openrpcDocument: plain, transport, reporters: [silent], rules: [new ByDocument({ numCalls: 2 })],
            skip: ['daemon.stop'], only: [] });
        const wrong = calls.filter(one => !one.valid);
        check(!wrong.length, `${wrong.length} of ${calls.length}: ${wrong.slice(0, 4).map(one => `${one.methodName} ${JSON.stringify(one.params)?.slice(0, 200)}: ${one.reason ?? one.requestError}`).join('\n').slice(0, 3000)}`);
        const answered = new Set(calls.filter(one => one.result !== undefined).map(one => one.methodName));
        const never = document.methods.map(({ name }) => name).filter(name => name !== 'daemon.stop' && !answered.has(name));
        check(answered.size > 2 * never.length, `these never had a result: ${never.join()}`);
        check(hub.alive, 'the hub lives');
    });
}

await run();
