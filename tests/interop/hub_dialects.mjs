#!/usr/bin/env node
/* Three vocabularies on one daemon, with the agent that is built in: what one starts the others see, each in its own words;
 * and a position survives the daemon. */
import { once } from 'node:events';
import { Hub } from './hub.mjs';
import { check, connect, lines, needed, patiently, request, run, same, test, webSocket } from './kit.mjs';

needed('ws');
delete process.env.WEFT_STORE_KIND; /* what happens is kept: that is part of the test */
const hub = await new Hub().start();

/* A pipe with calls; what is not an answer is kept in told. */
class Speaker {
    constructor(pipe) {
        this.pipe = pipe;
        this.told = [];
        this.nextId = 1;
    }
    async next() {
        const message = JSON.parse(await this.pipe.receive());
        if (message.method)
            this.told.push(message);
        return message;
    }
    async call(method, params) {
        const id = this.nextId++;
        this.pipe.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
        for (;;) {
            const message = await this.next();
            if (message.id === id)
                return message.result ?? message;
        }
    }
    /* The first notification that is so, from those that came or will. */
    async hears(right, what) {
        return patiently((async () => {
            for (let at = 0; ; at++) {
                while (at >= this.told.length)
                    await this.next();
                if (right(this.told[at]))
                    return this.told[at];
            }
        })(), what);
    }
    close() {
        this.pipe.close();
    }
}
const local = async () => new Speaker(await lines(hub.socket));
const phone = async () => new Speaker(await webSocket(`ws://${hub.host}/ws`, { headers: { Authorization: `Bearer ${hub.token}` } }));
const until = (right, what) => patiently((async () => {
    while (!await right())
        await new Promise(resolve => setTimeout(resolve, 20));
})(), what);
const isStatus = state => ({ method, params }) => method === 'claude_status' && params.state === state;

test('what a phone starts, a shell sees as a task', async () => {
    const [mobile, other, shell] = [await phone(), await phone(), await local()];
    const started = await mobile.call('agent/run', { prompt: 'echo hello there' });
    same([started.status, started.agent_type, started.mode], ['started', 'demo', 'new']);
    check(started.pid > 1, JSON.stringify(started));
    const log = await mobile.hears(({ method, params }) => method === 'claude_log' && params.line === 'hello there', 'its line');
    same([log.params.stream, log.params.session_id], ['stdout', started.session_id]);
    await mobile.hears(isStatus('idle'), 'its end');
    await other.hears(isStatus('idle'), 'its end elsewhere');
    check(!other.told.some(({ method }) => method === 'claude_log'), 'a log went to who does not watch');
    check(mobile.told.every(({ method }) => /^(claude_|session_start$)/.test(method)), 'only its own words');
    const [task] = await shell.call('task.list', { limit: 1 });
    same([task.prompt, task.state, task.metadata], ['echo hello there', 'completed', { source: 'cdev' }]);
    check(task.output.includes('hello there'), task.output);
    const done = await shell.hears(({ method }) => method === 'event.taskCompleted', 'the end in AIWG\'s words');
    same(done.params.taskId, task.id);
    const again = await mobile.call('agent/run', { prompt: 'echo more', mode: 'continue', session_id: started.session_id });
    same([again.session_id, again.mode], [started.session_id, 'continue']);
    await mobile.hears(({ method, params }) => method === 'claude_log' && params.line === 'more', 'more');
    await until(async () => (await mobile.call('status/get')).agent_state === 'idle', 'the end of more');
    for (const each of [mobile, other, shell])
        each.close();
});

test('one at a time, and stopped by whoever started it', async () => {
    const mobile = await phone();
    same((await mobile.call('agent/stop')).error.code, -32002);
    await mobile.call('agent/run', { prompt: 'hang' });
    same((await mobile.call('agent/run', { prompt: 'echo no' })).error.code, -32001);
    same((await mobile.call('status/get')).agent_state, 'running');
    same(await mobile.call('agent/stop'), { status: 'stopped' });
    const status = await mobile.call('status/get');
    same([status.agent_state, status.repo_name, status.git_enabled], ['idle', 'project', false]);
    mobile.close();
});

test('two answer one question, one of them wins', async () => {
    const [a, b] = [await local(), await phone()];
    await a.call('event.subscribe', { types: ['question.'] });
    const { taskId } = await a.call('task.submit', { prompt: 'write a file' });
    const asked = await a.hears(({ method, params }) => method === 'event' && params.type === 'question.asked', 'the question');
    const { questionId } = asked.params.data;
    const { questions } = await b.call('question.list');
    same(questions.map(({ id, state }) => [id, state]), [[questionId, 'open']]);
    const answers = await Promise.all([
        a.call('question.answer', { questionId, option: 'deny', text: 'no' }),
        b.call('question.answer', { questionId, option: 'allow' }),
    ]);
    const lost = answers.filter(({ error }) => error);
    same(lost.map(({ error }) => [error.code, error.data.reason]), [[409, 'questionResolved']]);
    const won = answers.find(({ error }) => !error);
    same(lost[0].error.data.answer.option, won.option);
    await a.hears(({ params }) => params.type === 'question.answered' && params.data.questionId === questionId, 'the answer');
    await a.hears(({ method, params }) => method === 'event.taskCompleted' && params.taskId === taskId, 'the end');
    a.close();
    b.close();
});

test('a POST can ask and submit, but not listen', async () => {
    const url = `http://${hub.host}/rpc`;
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${hub.token}` };
    const body = JSON.stringify([{ jsonrpc: '2.0', id: 1, method: 'task.stats' }, { jsonrpc: '2.0', id: 2, method: 'event.subscribe' }]);
    const answers = JSON.parse((await request(url, { body, headers })).body).sort((a, b) => a.id - b.id);
    check(answers[0].result.total >= 4, JSON.stringify(answers));
    same(answers[1].error.data.reason, 'cannotListen');
});

test('two questions need no token: is somebody there, may work be sent here', async () => {
    const get = async (where, headers) => {
        const response = await fetch(`http://${hub.host}${where}`, { headers });
        return [response.status, (await response.json()).status];
    };
    same(await get('/health'), [200, 'ok']);
    same(await get('/readyz'), [200, 'ready']);
    same(await get('/nowhere'), [401, 401]);
    const shell = await local();
    await shell.call('task.submit', { prompt: 'slow 60s' });
    await shell.call('daemon.stop');
    same(await get('/readyz'), [503, 'stopping']);
    same(await shell.call('daemon.stop', { force: true }), { stopping: true });
    shell.close();
    await hub.stop();
    await hub.start();
});

/* As from a pipe: everything is said, and the sender's half ended, before anything was answered. */
test('what is asked at once is answered in order, also when no more comes', async () => {
    const asked = [['task.submit', { prompt: 'echo a' }], ['task.list', { limit: 1 }], ['ping'], ['task.submit', { prompt: 'echo b' }],
        ['automation.enable'], ['daemon.status'], ['task.stats']];
    for (let round = 0; round < 10; round++) {
        const socket = await connect(hub.socket);
        const speaker = await local();
        const last = (await speaker.call('task.submit', { prompt: 'echo first' })).taskId;
        speaker.close();
        const requests = [['task.get', { taskId: last }], ...asked, ['task.get', { taskId: last }], ['ping'], ['task.list', { limit: 1 }]];
        let text = '';
        socket.setEncoding('utf8').on('data', more => text += more);
        socket.end(requests.map(([method, params], id) => JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n').join(''));
        await patiently(once(socket, 'end'), 'the end');
        const answers = text.trim().split('\n').map(line => JSON.parse(line)).filter(message => 'id' in message);
        same(answers.map(({ id }) => id), requests.map((_, id) => id));
        same(answers.at(-1).result[0].prompt, 'echo b');
        socket.destroy();
    }
});

test('a position survives the daemon', async () => {
    let shell = await local();
    const { epoch } = await shell.call('event.subscribe');
    const { taskId } = await shell.call('task.submit', { prompt: 'echo before' });
    await shell.hears(({ params }) => params.type === 'task.completed' && params.data.taskId === taskId, 'the end');
    const last = shell.told.filter(({ method }) => method === 'event').at(-1).params.gseq;
    shell.close();
    const other = await local();
    const { taskId: unseen } = await other.call('task.submit', { prompt: 'echo unseen' });
    await other.hears(({ method, params }) => method === 'event.taskCompleted' && params.taskId === unseen, 'the end of the other');
    other.close();
    await hub.stop();
    await hub.start();
    shell = await local();
    const resumed = await shell.call('event.subscribe', { after: last, epoch });
    same([resumed.resumed, resumed.reason, resumed.epoch], [true, undefined, epoch]);
    await shell.hears(({ params }) => params.type === 'task.completed' && params.data.taskId === unseen, 'what was missed');
    const { taskId: later } = await shell.call('task.submit', { prompt: 'echo after' });
    await shell.hears(({ params }) => params.type === 'task.completed' && params.data.taskId === later, 'what comes');
    const seen = shell.told.filter(({ method }) => method === 'event').map(({ params }) => params.gseq);
    same(seen, seen.map((_, at) => last + 1 + at), 'the positions');
    const gone = await shell.call('event.subscribe', { after: 1, epoch: 'another' });
    same([gone.resumed, gone.reason, gone.epoch], [false, 'epochChanged', epoch]);
    shell.close();
});

await run();
