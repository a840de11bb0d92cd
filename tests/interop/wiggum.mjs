#!/usr/bin/env node
/* Wiggum's vocabulary on a real daemon, by WebSocket: a failing test of a C project that passes after some iterations because
 * what the gate found was in the next prompt; a Chief with three of them; a permission that two clients are asked for; builds
 * with real compilers; the preview. Agents, gates and compilers are real programs. */
import fs from 'node:fs';
import path from 'node:path';
import { Hub } from './hub.mjs';
import { check, needed, patiently, run, same, skip, source, test, webSocket } from './kit.mjs';

needed('ws');
delete process.env.WEFT_STORE_KIND;
const gcc = ['/usr/bin/gcc', '/usr/bin/make'].every(one => fs.existsSync(one));
const hub = new Hub({ config: {
    agents: { fixer: { driver: 'cli', command: ['/usr/bin/python3', path.join(source, 'tests/agents/fixer.py'), '{prompt}'] },
        narrow: { driver: 'demo', context_limit: 20 } },
    default_agent: 'fixer',
    tasks: { gates: { test: ['make', '-s', 'check'], ok: ['true'], no: ['sh', '-c', 'echo never; exit 3'] } },
    build: { command: ['make', '-s', 'app'], backend: ['sh', '-c', 'echo "./main.go:4:2: undefined: foo"; exit 1'] },
} });
const put = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(hub.folder, name)), { recursive: true });
    fs.writeFileSync(path.join(hub.folder, name), text);
};
put('Makefile', 'check: test.c work.c\n\tgcc -o test test.c work.c && ./test\napp: app.c\n\tgcc -Wall -c app.c -o /dev/null\n');
put('work.c', '\n');
put('test.c', `#include <stdio.h>
int product(int a, int b);
int main(void) {
    int is = product(3, 4);
    if (is != 12)
        printf("product(3, 4) is %d, want 12\\n", is);
    return is != 12;
}
`);
put('app.c', 'int main(void) {\n    int unused;\n    return nothing;\n}\n');
await hub.start();

/* A client as a page or a Chief would be: calls, what it was told, and what it is asked. */
class Client {
    static async open(where = 'wiggum') {
        const made = new Client();
        made.pipe = await webSocket(`ws://${hub.host}/${where}`, { headers: { Authorization: `Bearer ${hub.token}` } });
        Object.assign(made, { told: [], asked: [], open: new Map(), lookers: new Set(), lastId: 0 });
        made.pipe.inbox.deliver(text => made.hear(JSON.parse(text)));
        return made;
    }
    hear(one) {
        if (one.method)
            (one.id === undefined ? this.told : this.asked).push(one);
        else
            this.open.get(one.id)?.(one);
        this.lookers.forEach(look => look());
    }
    send(message) {
        this.pipe.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
    }
    ask(method, params) {
        const id = ++this.lastId;
        const answer = new Promise(resolve => this.open.set(id, resolve));
        this.send({ id, method, params });
        return patiently(answer, `the answer to ${method}`);
    }
    async call(method, params) {
        const { result, error } = await this.ask(method, params);
        check(!error, `${method}: ${JSON.stringify(error)}`);
        return result;
    }
    async refused(method, params) {
        const { result, error } = await this.ask(method, params);
        check(error, `${method} was answered: ${JSON.stringify(result)}`);
        return error;
    }
    until(find, what) {
        return patiently(new Promise(resolve => {
            const look = () => {
                const found = find();
                if (found) {
                    this.lookers.delete(look);
                    resolve(found);
                }
            };
            this.lookers.add(look);
            look();
        }), what);
    }
    heard(method, is = () => true) {
        return this.until(() => this.told.find(one => one.method === method && is(one.params)), `the notification ${method}`);
    }
    all(method, taskId) {
        return this.told.filter(one => one.method === method && (!taskId || one.params.taskId === taskId)).map(one => one.params);
    }
}

const a = await Client.open(), b = await Client.open();

if (!gcc)
    skip('a failing test', 'needs gcc and make');
else
    test('a failing test passes because its findings reached the next prompt', async () => {
        const { taskId } = await a.call('sendTask', { prompt: 'make the test pass', gates: ['test'], maxIterations: 5 });
        const end = await a.call('awaitTask', { taskId });
        same({ state: end.state, iterations: end.iterations }, { state: 'completed', iterations: 3 }, 'the end');
        await a.heard('complete', one => one.taskId === taskId && one.state === 'completed' && !one.error);
        same(a.all('iterationStart', taskId).map(one => [one.iteration, one.maxIterations]), [[1, 5], [2, 5], [3, 5]], 'iterations');
        const gates = a.all('gateResult', taskId);
        same(gates.map(one => one.passed), [false, false, true], 'gates');
        check(gates[0].findings.some(one => /undefined reference/.test(one.message)), JSON.stringify(gates[0]));
        check(gates[1].findings.some(one => /is 0, want 12/.test(one.message)), JSON.stringify(gates[1]));
        check(a.all('progress', taskId).some(one => /made it right/.test(one.text)), 'no progress');
        await b.heard('complete', one => one.taskId === taskId); /* another client hears it as well */
        const { task } = await a.call('gated.get', { taskId });
        const prompts = await Promise.all(task.iterations.map(one => a.call('task.get', { taskId: one.taskId })));
        check(prompts[1].prompt.includes('undefined reference') && prompts[2].prompt.includes('want 12'), prompts[2].prompt);
        const { files } = await a.call('task.changes', { taskId }); /* of all iterations together */
        check(files.some(one => one.path === 'work.c' && one.additions === 3), JSON.stringify(files));
        same((await a.refused('task.undo', { taskId })).code, -32602, 'undone by its iterations');
        same((await a.call('cost.get', { taskId })).spent.turns, 3, 'what it cost');
    });

test('a gate that never passes', async () => {
    const { taskId } = await a.call('sendTask', { prompt: 'look', gates: ['ok', 'no'], maxIterations: 2 });
    const error = await a.refused('awaitTask', { taskId });
    same([error.code, error.data.reason, error.data.gate, error.data.iterations], [-32002, 'gateFailed', 'no', 2], 'the error');
    same(error.data.findings, [{ severity: 'error', message: 'never\n' }], 'findings');
    const complete = await a.heard('complete', one => one.taskId === taskId);
    same([complete.params.error.code, complete.params.error.data.gate], [-32002, 'no'], 'complete');
});

test('a Chief with three Ralphs cancels one', async () => {
    const chief = await Client.open();
    const sent = await Promise.all(['look one', 'wait for ever', 'look three'].map(prompt =>
        chief.call('sendTask', { prompt, gates: ['ok'] })));
    same(new Set(sent.map(one => one.taskId)).size, 3, 'tasks');
    await chief.heard('iterationStart', one => one.taskId === sent[1].taskId);
    const ended = Promise.all(sent.map(one => chief.ask('awaitTask', { taskId: one.taskId })));
    same(await chief.call('cancelTask', { taskId: sent[1].taskId }), { taskId: sent[1].taskId, cancelled: true, state: 'cancelled' });
    const [one, two, three] = await ended;
    same([one.result?.state, three.result?.state], ['completed', 'completed'], 'the others');
    same([two.error?.code, two.error?.data.reason], [-32004, 'taskCancelled'], 'the cancelled one');
    await chief.heard('complete', end => end.taskId === sent[1].taskId && end.state === 'cancelled');
    same((await chief.call('cancelTask', { taskId: sent[0].taskId })).cancelled, false, 'one that has ended');
    chief.pipe.close();
});

test('two clients are asked for a permission, and the first answer counts', async () => {
    const { taskId } = await a.call('sendTask', { prompt: 'ask', gates: ['ok'], agent: 'demo' });
    const question = one => one.method === 'requestPermission' && one.params.taskId === taskId;
    const [first, second] = await Promise.all([a, b].map(one => one.until(() => one.asked.find(question), 'requestPermission')));
    check(first.params.options.length >= 2 && first.params.title, JSON.stringify(first));
    a.send({ id: first.id, result: { allow: true } });
    await b.until(() => b.told.find(one => /cancel/i.test(one.method) && JSON.stringify(one.params).includes(String(second.id))),
        'the withdrawal');
    same((await a.call('awaitTask', { taskId })).state, 'completed', 'its end');
});

test('what is refused', async () => {
    const unknown = await a.refused('sendTask', { prompt: 'x', gates: ['ok', 'rm -rf'] });
    same([unknown.code, unknown.data.path], [-32602, '/gates/1'], 'an unknown gate');
    same((await a.refused('sendTask', { prompt: 'x', gates: [] })).code, -32602, 'no gate');
    same((await a.refused('sendTask', { prompt: 'x', gates: ['ok'], maxIterations: 1000 })).data.path, '/maxIterations');
    const long = await a.refused('sendTask', { prompt: 'longer than it may be', gates: ['ok'], agent: 'narrow' });
    same([long.code, long.data.reason], [-32008, 'contextOverflow'], 'a prompt that is too long');
    same((await a.refused('cancelTask', { taskId: 'gated-9999' })).data.reason, 'gatedNotFound');
});

if (gcc)
    test('a build with its errors, and whoever joins it', async () => {
        const [one, two] = await Promise.all([a.ask('build'), b.ask('build')]);
        same(one.error.data.buildId, two.error.data.buildId, 'joined');
        same([one.error.code, one.error.data.reason], [-32001, 'buildFailed'], 'the error');
        const error = one.error.data.diagnostics.find(found => found.severity === 'error');
        same([error.file, error.line, error.column], ['app.c', 3, 12], 'its place');
        await b.heard('buildWarning', found => found.code === 'unused-variable' && found.line === 2);
        await b.heard('buildProgress', progress => progress.state === 'finished' && progress.ok === false);
        same((await b.call('build.last')).state, 'failed', 'the last one');
        put('app.c', 'int main(void) {\n    return 0;\n}\n');
        same((await a.call('build')).ok, true, 'built');
        const backend = await a.refused('buildBackend');
        same(backend.data.diagnostics, [{ file: 'main.go', line: 4, column: 2, severity: 'error', message: 'undefined: foo' }]);
    });

test('the preview', async () => {
    const text = answer => Buffer.from(answer.body, 'base64').toString();
    same((await a.refused('fetch', { url: '/' })).code, -32005, 'without an index.html');
    put('dist/index.html', '<h1>hi</h1>');
    put('dist/app.js', 'export {};');
    put('secret.txt', 'secret');
    fs.symlinkSync('../secret.txt', path.join(hub.folder, 'dist/link.txt'));
    const index = await a.call('fetch', { url: '/', method: 'GET' });
    same([index.status, text(index), index.headers['content-type']], [200, '<h1>hi</h1>', 'text/html; charset=utf-8'], '/');
    same(text(await a.call('fetch', { url: '/app.js?v=1' })), 'export {};', 'a script');
    same(text(await a.call('fetch', { url: '/dist/app.js' })), 'export {};', 'by its name in the project');
    same(text(await a.call('fetch', { url: '/some/route#x' })), '<h1>hi</h1>', 'a route');
    same((await a.call('fetch', { url: '/none.js' })).status, 404, 'missing');
    const head = await a.call('fetch', { url: '/app.js', method: 'HEAD' });
    same([head.status, head.body], [200, ''], 'HEAD');
    same((await a.call('fetch', { url: '/app.js', method: 'POST' })).status, 405, 'POST');
    for (const url of ['/../secret.txt', '/%2e%2e/secret.txt', '/link.txt', '/dist/../../secret.txt'])
        check(text(await a.call('fetch', { url })) !== 'secret', `${url} leads out`);
    for (const url of ['http://localhost/', '//evil.example/x', 'javascript:alert(1)', '/%00', '/a\\b', '/%zz'])
        for (const method of ['fetch', 'navigate'])
            same((await a.refused(method, { url })).code, -32006, `${method} ${url}`);
});

test('pages are told, and say something', async () => {
    same(await a.call('navigate', { url: '/about' }), { url: '/about' }, 'navigate');
    await b.heard('navigate', one => one.url === '/about');
    b.send({ method: 'refresh' });
    await a.heard('refresh');
    b.send({ method: 'console', params: { level: 'error', message: 'Uncaught TypeError' } });
    await a.heard('console', one => one.level === 'error' && one.message === 'Uncaught TypeError');
    b.send({ method: 'error', params: { message: 'it broke', url: '/app.js', line: 3 } });
    await a.heard('error', one => one.message === 'it broke' && one.line === 3);
    b.send({ method: 'updateNavigationState', params: { url: '/x', canGoBack: true, canGoForward: false } });
    await a.heard('updateNavigationState', one => one.canGoBack === true);
    same([b.all('console').length, b.all('error').length, a.all('navigate').length], [0, 0, 0], 'nobody hears itself');
});

test('pages that say too much are cut off', async () => {
    const before = a.all('console').length;
    for (let i = 0; i < 1000; i++)
        b.send({ method: 'console', params: { message: `line ${i}` } });
    await b.call('build.last');
    const got = a.all('console').length - before;
    check(got <= 300, `${got} of 1000 were kept`);
    same((await b.ask('console', { message: 'x' })).error?.code ?? 429, 429, 'the refusal');
});

test('by the Unix socket and other connections', async () => {
    const other = await Client.open('ws');
    const { taskId } = await other.call('sendTask', { prompt: 'look', gates: ['ok'] });
    same((await other.call('awaitTask', { taskId })).state, 'completed', 'its end');
    same(other.all('complete').length, 0, 'a client of cdev is told nothing of Wiggum');
    same(await other.call('wiggum/hello'), { dialect: 'wiggum' }, 'hello');
    const next = await other.call('sendTask', { prompt: 'look', gates: ['ok'] });
    await other.heard('complete', one => one.taskId === next.taskId);
});

await run();
