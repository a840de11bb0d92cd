#!/usr/bin/env node
/* The examples of docs/protocol.md, each sent to a real hub as it stands in the page: it is answered with a result that fits the
 * document's schema, or with one of the errors that the page lists for it; never as a call with wrong params. What the hub tells
 * is in rpc.discover, as the page has it. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Hub, connectTo } from './hub.mjs';
import { check, lines, needed, patiently, run, same, source, test } from './kit.mjs';

const Ajv = needed('ajv/dist/2020').default;
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
const page = fs.readFileSync(path.join(source, 'docs/protocol.md'), 'utf8');
const part = title => page.split(`\n## ${title}\n`)[1].split(/\n## /)[0];

/* Each method, with its examples: {name, dialect, request, listed}. dialect: where several have the name. */
function examplesOf(text) {
    const found = [];
    for (const section of text.split(/\n### /).slice(1)) {
        const name = section.split('\n')[0];
        for (const form of section.split(/\nSpoken in `/).filter(each => each.includes('```json'))) {
            const dialect = section.includes('\nSpoken in `') ? form.split('`')[0] : undefined;
            const [request, answer] = /```json\n(.*)\n(.*)\n/.exec(form).slice(1, 3).map(line => JSON.parse(line));
            const listed = [.../`(-?\d+)(?: (\w+))?`/g[Symbol.matchAll](form.split('\nErrors: ')[1] ?? '')].map(([, code, reason]) => ({ code: +code, reason }));
            found.push({ name, dialect, request, answer, listed });
        }
    }
    return found;
}
const examples = examplesOf(part('Methods'));

/* A project in which the ids and files of the examples mean something: tasks up to task-0003, a repository with a commit. */
const hub = new Hub({ config: { agents: { demo: { permission: 'allow' } }, tasks: { gates: { test: ['true'] } } } }); /* nobody answers questions */
const git = (...args) => same(spawnSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: hub.folder }).status, 0, `git ${args}`);
fs.mkdirSync(path.join(hub.folder, 'src'));
fs.writeFileSync(path.join(hub.folder, 'src/main.c'), 'int main(void) { return 0; }\n');
git('init', '-q');
git('add', '.');
git('commit', '-qm', 'begin');
await hub.start();
const call = await connectTo(hub);
for (let i = 0; i < 4; i++)
    await call('task.submit', { prompt: `echo ${i}` });
const document = (await call('rpc.discover')).result;

/* Nobody logs in by ACP, and the demo agent has no options: the page shows what others may say. */
const refused = ['authenticate', 'session/set_config_option'];

const resultSchema = (method, dialect) => (dialect && method['x-dialects']?.[dialect]?.result) ?? method.result.schema;

/* The request goes out as it is written in the page, on a connection that nothing has decided yet. */
async function send(request, dialect) {
    const pipe = await lines(hub.socket);
    if (dialect === 'acp') /* until then a name that two protocols have is taken for cdev's */
        pipe.send(JSON.stringify({ jsonrpc: '2.0', id: 'hello', method: '_weft/hello', params: {} }));
    const answered = new Promise(resolve => pipe.inbox.deliver(text => {
        const one = JSON.parse(text);
        if (one.id === request.id && !one.method)
            resolve(one);
    }));
    pipe.send(JSON.stringify(request).replaceAll('/home/ann/project', fs.realpathSync(hub.folder)));
    const answer = await patiently(answered, `the answer to ${request.method}`);
    pipe.close?.();
    return answer;
}

/* Last, because nothing is answered after it. */
const isLast = ({ name }) => name === 'daemon.stop' || name === 'shutdown';
for (const { name, dialect, request, answer: shown, listed } of [...examples.filter(one => !isLast(one)), ...examples.filter(isLast)])
    test(`${name}${dialect ? ` (${dialect})` : ''}`, async () => {
        const method = document.methods.find(each => each.name === name);
        check(method, 'rpc.discover has it');
        check(hub.alive, `the hub has ended (${hub.child.exitCode}, ${hub.child.signalCode}): ${hub.stderr.slice(-600)}`);
        const shape = ajv.compile(resultSchema(method, dialect));
        check(shape(shown.result), `the page's result: ${JSON.stringify(shape.errors?.[0])} of ${JSON.stringify(shown.result).slice(0, 400)}`);
        const answer = await send(request, dialect);
        if (answer.error) {
            const { code, data } = answer.error;
            check(data?.reason !== 'invalidParams' || refused.includes(name), `the params of the page are refused: ${JSON.stringify(answer.error)}`);
            check(listed.some(one => one.code === code && (!one.reason || one.reason === data?.reason)), `not in the page: ${JSON.stringify(answer.error)}`);
            return;
        }
        check(shape(answer.result), `${JSON.stringify(shape.errors?.[0])} of ${JSON.stringify(answer.result).slice(0, 400)}`);
    });

test('every method has an example, but those of every JSON-RPC server', () => {
    const named = new Set(examples.map(({ name }) => name));
    same(document.methods.map(({ name }) => name).filter(name => !named.has(name)), ['echo', 'rpc.discover']);
});

test('what the hub tells is in rpc.discover', () => {
    const told = part('Notifications of the hub').split(/\n### /).slice(1).map(section => section.split(' (')[0]);
    same(document['x-notifications'].map(({ name }) => name).sort(), told.sort());
    const { examples: events } = document['x-notifications'].find(({ name }) => name === 'event');
    same(events.map(({ name }) => name).sort(), [...part('Events').matchAll(/\n### Event (\S+)/g)].map(([, type]) => type).sort());
    for (const { params } of events)
        same(params.map(({ name }) => name), ['gseq', 'stream', 'seq', 'type', 'time', 'data']);
});

await run();
