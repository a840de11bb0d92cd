#!/usr/bin/env node
/* The parts of the dashboard that need no page: diffs, Markdown's blocks, text that is fit to be shown, the transcript. */
import fs from 'node:fs';
import path from 'node:path';
import { check, run, same, source, test } from '../interop/kit.mjs';

const app = name => import(path.join(source, 'web/dashboard/app', name));
const { compare, compareWords, diffTexts, hunkRows, parseDiff, sideRows } = await app('diff.js');
const { MarkdownStream, safeUrl } = await app('markdown.js');
const { age, brief, clean, cleanOutput, duration, shellWords, size } = await app('text.js');
const { Transcript } = await app('transcript.js');
const { effect, signal } = await app('store.js');

const side = (all, skip) => all.filter(([sign]) => sign !== skip).map(([, one]) => one).join('');

test('what compare() finds leads from one list to the other', () => {
    let seed = 7;
    const random = most => (seed = seed * 1103515245 + 12345 & 0x7fffffff) % most;
    for (let round = 0; round < 2000; round++) {
        const make = () => Array.from({ length: random(14) }, () => 'abc'[random(3)]);
        const a = make(), b = make(), all = compare(a, b, 100);
        same([side(all, '+'), side(all, '-')], [a.join(''), b.join('')]);
    }
    same(compare(['a', 'b', 'c'], ['a', 'x', 'c'], 100), [[' ', 'a'], ['-', 'b'], ['+', 'x'], [' ', 'c']]);
});

test('git\'s diff: renames, binaries, quoted names, no newline at the end, lines that look like headers', () => {
    const files = parseDiff('diff --git a/a.c b/a.c\nindex 1..2 100644\n--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,3 @@ int main\n same\n---- old\n+++ new\n+more\n\\ No newline at end of file\n' +
        'diff --git a/old.txt b/new.txt\nsimilarity index 100%\nrename from old.txt\nrename to new.txt\n' +
        'diff --git a/x.png b/x.png\nnew file mode 100644\nBinary files /dev/null and b/x.png differ\n' +
        'diff --git "a/f\\303\\274r\\t.c" "b/f\\303\\274r\\t.c"\ndeleted file mode 100644\n--- "a/f\\303\\274r\\t.c"\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n');
    same(files.map(one => [one.path, one.change, one.additions, one.deletions, one.binary ?? false]),
        [['a.c', 'modified', 2, 1, false], ['new.txt', 'renamed', 0, 0, false], ['x.png', 'added', 0, 0, true], ['f\u00fcr\t.c', 'deleted', 0, 1, false]]);
    same(files[1].from, 'old.txt');
    same(hunkRows(files[0].hunks[0]).map(one => [one.kind, one.old, one.new, one.text]),
        [['same', 1, 1, 'same'], ['del', 2, undefined, '--- old'], ['add', undefined, 2, '++ new'], ['add', undefined, 3, 'more'], ['note', undefined, undefined, 'No newline at end of file']]);
});

test('two texts: hunks with three lines around each change, and their pairs', () => {
    const before = Array.from({ length: 30 }, (_, i) => `line ${i}`), after = [...before];
    after[3] = 'line three';
    after.splice(25, 1);
    const file = diffTexts('x', before.join('\n'), after.join('\n'));
    same(file.hunks.map(one => [one.oldStart, one.newStart, one.lines.length]), [[1, 1, 8], [23, 23, 7]]);
    same([file.additions, file.deletions], [1, 2]);
    same(sideRows(hunkRows(file.hunks[0])).map(({ left, right }) => `${left?.text}|${right?.text}`)[3], 'line 3|line three');
    same(diffTexts('x', null, 'a\nb\n').change, 'added');
});

test('words: what differs is marked, and nothing when nearly all does', () => {
    same(compareWords('int n = 0;', 'int n = 17;'), [[[false, 'int n = '], [true, '0'], [false, ';']], [[false, 'int n = '], [true, '17'], [false, ';']]]);
    same(compareWords('completely different', 'xyz'), null);
});

const blocks = text => {
    const stream = new MarkdownStream();
    stream.push(text);
    return stream.blocks.map(one => `${one.type}:${one.lines.join('/')}`);
};
test('Markdown\'s blocks', () => {
    same(blocks('# Head\n\ntext\nmore\n\n- a\n  - b\n1. c\n\n> q\n\n```js\nx < 1\n\ny\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n'),
        ['heading:Head', 'text:text/more', 'item:a', 'item:b', 'item:c', 'quote:q', 'code:x < 1//y', 'table:| a | b |/|---|---|/| 1 | 2 |', 'rule:']);
});
test('Markdown in pieces is the same as whole, wherever it is cut', () => {
    const text = 'Hello **there**\nmore\n\n## Head\n- one\n- two\n  go on\n\n```c\nint x;\n```\ntail | x\n---|---\n1 | 2\n\n> q1\n> q2\nend';
    const whole = blocks(text);
    for (let a = 0; a < text.length; a++)
        for (let b = a; b < text.length; b += 7) {
            const stream = new MarkdownStream();
            [text.slice(0, a), text.slice(a, b), text.slice(b)].forEach(piece => stream.push(piece));
            same(stream.blocks.map(one => `${one.type}:${one.lines.join('/')}`), whole, `cut at ${a} and ${b}`);
        }
});
test('a long text is many blocks of a limited size, and nothing of it is lost', () => {
    const stream = new MarkdownStream();
    for (let i = 0; i < 5000; i++)
        stream.push(`line ${i}\n`);
    check(stream.blocks.every(one => one.lines.length <= 40), 'blocks are short');
    same(stream.blocks.flatMap(one => one.lines), Array.from({ length: 5000 }, (_, i) => `line ${i}`));
    stream.push('x'.repeat(100_000));
    check(stream.blocks.length > 125, 'a line without end ends');
});

test('links go to http, https and mail only, and hide no host', () => {
    same(['javascript:alert(1)', 'data:text/html,x', 'https://good.example@evil.example/', 'file:///etc/passwd', '//x', 'vbscript:x', 'ht tp://x'].map(one => safeUrl(one)), Array(7).fill(null));
    same(['https://a.example/x', 'mailto:a@b.example'].map(one => safeUrl(one)?.href), ['https://a.example/x', 'mailto:a@b.example']);
});

test('control characters and changes of direction are shown, not done', () => {
    same(clean('a\u0000b\u001b[31mc\u202ed\u2066e\u200bf\u007f'), 'a\u2400b\u241b[31mc\u27e8U+202E\u27e9d\u27e8U+2066\u27e9e\u27e8U+200B\u27e9f\u2421');
    same(clean('plain \u00fcnic\u00f6de \u4e2d\u6587 \u05e9\u05dc\u05d5\u05dd\n\ttext'), 'plain \u00fcnic\u00f6de \u4e2d\u6587 \u05e9\u05dc\u05d5\u05dd\n\ttext');
    same(cleanOutput('\u001b[1;31mred\u001b[0m\r\n10%\r50%\r100%\nok \u001b]0;title\u0007x'), 'red\n100%\nok x');
});
test('numbers, times and commands in words', () => {
    same([size(0), size(1023), size(1536), size(5 << 20)], ['0 B', '1023 B', '1.5 KiB', '5.0 MiB']);
    same([duration(5), duration(1500), duration(65_000), duration(3_700_000)], ['5 ms', '1.5 s', '1 min 5 s', '1 h 1 min']);
    same([age(1000), age(61_000), age(90_000_000)], ['now', '1 min', '1 d']);
    same(shellWords(['rm', '-rf', `it's`, 'a b']), `rm -rf 'it'\\''s' 'a b'`);
    same(brief('a\n  b   c', 4), 'a b\u2026');
});

test('an effect runs again for what it read, once for many changes, and not after its end', async () => {
    const a = signal(1), b = signal(1), seen = [];
    const end = effect(() => seen.push(a.value + b.value));
    a.value = 2;
    b.value = 2;
    await null;
    same(seen, [2, 4]);
    end();
    a.value = 9;
    await null;
    same(seen, [2, 4]);
});

/* ---- transcript ---- */

const chunk = (seq, text, kind = 'agent_message_chunk') => ({ seq, time: seq * 10, bytes: text.length, update: { sessionUpdate: kind, content: { type: 'text', text } } });
const shape = transcript => transcript.rows.map(row => row.block ? `${row.item.kind}:${row.block.lines.join('/')}` : row.item.kind);
test('a transcript: chunks are joined, prompts, questions and ends lie where their time belongs', () => {
    const task = { id: 't', state: 'completed', number: 1 };
    const transcript = new Transcript(() => [{ kind: 'end', time: 60, order: 1, rank: 3, task }, { kind: 'you', time: 10, order: 1, rank: 0, text: 'do', task }, { kind: 'question', time: 35, order: 1, rank: 2, question: { title: 'may I' } }]);
    transcript.reset([chunk(1, 'Hel'), chunk(2, 'lo\n'), { seq: 3, time: 30, bytes: 1, update: { sessionUpdate: 'tool_call', toolCallId: 'x', title: 'look' } }, chunk(5, 'done'), { seq: 6, time: 60, bytes: 1, update: { sessionUpdate: 'tool_call_update', toolCallId: 'x', status: 'completed' } }], true);
    same(shape(transcript), ['you', 'agent:Hello', 'tool', 'question', 'agent:done', 'end']);
    same(transcript.rows[2].item.call.status, 'completed');
});
test('a transcript is the same whether it comes at once, live, or in pages from the end', () => {
    const entries = Array.from({ length: 300 }, (_, i) => chunk(i + 1, i % 3 ? `word ${i} ` : `line ${i}\n`, i % 50 === 49 ? 'agent_thought_chunk' : undefined));
    const whole = new Transcript(() => []), live = new Transcript(() => []), paged = new Transcript(() => []);
    whole.reset(entries, true);
    live.reset(entries.slice(0, 10), true);
    entries.slice(10).forEach(one => live.append(one));
    paged.reset(entries.slice(200), false);
    paged.prepend(entries.slice(77, 200), false);
    paged.prepend(entries.slice(0, 77), true);
    same(shape(live), shape(whole), 'live');
    same(shape(paged), shape(whole), 'pages');
});
test('a window of a long transcript is kept, and its end is whole', () => {
    const transcript = new Transcript(() => []);
    transcript.reset([], true);
    for (let i = 1; i <= 50_000; i++) {
        transcript.append(chunk(i, `line ${i}\n`));
        if (transcript.overfull)
            transcript.cut();
    }
    check(transcript.entries.length <= 12_000, 'entries are limited');
    check(transcript.rows[0].item.stream.blocks.length <= transcript.rows.length + 1, 'blocks are let go of');
    const lines = transcript.rows.flatMap(row => row.block.lines);
    same(lines.at(-1), 'line 50000');
    same(transcript.rows.map(row => row.key).length, new Set(transcript.rows.map(row => row.key)).size, 'keys');
    check(lines.length > 8000 && lines.every((line, i) => line === `line ${50_000 - lines.length + 1 + i}`), 'the end has no hole');
});

test('a window that was folded anew lets go of prompts with the text they belong to', () => {
    const prompts = [10, 3000, 6000].map((at, i) => ({ kind: 'you', time: at * 10, order: i, rank: 0, text: `prompt ${at}`, task: { id: `t${i}` } }));
    const transcript = new Transcript(() => prompts);
    transcript.reset(Array.from({ length: 8000 }, (_, i) => chunk(i + 1, `line ${i + 1}\n`)), true);
    transcript.cut();
    same(transcript.rows.filter(row => row.item.kind === 'you').map(row => row.item.text), ['prompt 3000', 'prompt 6000']);
    check(Number(transcript.rows.find(row => row.block).block.lines[0].slice(5)) > 2000, 'text before the window is gone');
});

test('the model: what happens while its pages are read is not lost, and counts once', async () => {
    Object.assign(globalThis, { document: { visibilityState: 'visible' }, requestAnimationFrame: action => queueMicrotask(action) });
    const { Model } = await app('model.js');
    const answers = {}, handlers = {};
    const model = new Model({ follow: (_, own) => Object.assign(handlers, own), call: method => new Promise(resolve => { answers[method] = resolve; }) });
    const happens = (type, data) => handlers.onEvent({ type, data, time: '2026-01-01T00:00:00Z' });
    const task = { id: 'task-0000', prompt: 'old', agent: 'demo', state: 'running', createdAt: '2026-01-01T00:00:00Z', sessionId: 's0' };
    handlers.onReady();
    answers['question.list']({ questions: [] });
    happens('question.asked', { questionId: 'question-0000', taskId: 'task-0000', sessionId: 's0', title: 'May I?', options: [] });
    answers['task.page']({ tasks: [task], total: 1 });
    happens('task.completed', { taskId: 'task-0000' });
    happens('task.queued', { taskId: 'task-0001', prompt: 'new', agent: 'demo', sessionId: 's1' });
    answers['session.list']({ sessions: [] });
    answers['agent.list']({ agents: [], default: 'demo' });
    while (!model.ready.peek())
        await new Promise(resolve => setTimeout(resolve, 1));
    same([model.openQuestions().map(one => one.title), model.list().map(one => `${one.id} ${one.state}`), model.total.peek()], [['May I?'], ['task-0001 queued', 'task-0000 completed'], 2]);
    happens('task.started', { taskId: 'task-0001', attempt: 1 });
    same([model.tasks.get('task-0001').state, model.total.peek()], ['running', 2]);
});

test('the model: older tasks are read on after a lost connection', async () => {
    const { Model } = await app('model.js');
    const handlers = {}, asked = [];
    let online = true;
    const pages = [['task-0009', 'task-0008'], ['task-0007'], ['task-0006']];
    const answer = method => method !== 'task.page' ? { questions: [], sessions: [], agents: [] } : { tasks: pages[0].map(id => ({ id, state: 'completed', sessionId: id })), total: 4, more: pages.shift() && pages.length > 0 };
    const model = new Model({ follow: (_, own) => Object.assign(handlers, own), call: async (method, params) => {
        if (method === 'task.page') {
            asked.push(params.before ?? 'first');
            if (params.before === 'task-0007' && online)
                throw Object.assign(new Error('lost'), { reason: 'disconnected' });
        }
        return answer(method);
    } });
    handlers.onReady();
    while (asked.length < 3)
        await new Promise(resolve => setTimeout(resolve, 1));
    online = false;
    handlers.onReady();
    while (model.tasks.size < 4)
        await new Promise(resolve => setTimeout(resolve, 1));
    same(asked, ['first', 'task-0008', 'task-0007', 'task-0007']);
});

test('the model: a gated task that failed before it had a task waits for somebody, until it was looked at', async () => {
    const { Model } = await app('model.js');
    const handlers = {};
    const early = { taskId: 'gated-0001', state: 'failed', prompt: 'mend it', gates: ['test'], iteration: 1, maxIterations: 10, reason: 'notQueued', error: 'no such agent', endedAt: '2026-01-01T00:00:00Z' };
    const lists = { 'gated.list': { tasks: [early, { ...early, taskId: 'gated-0000', state: 'cancelled' }], gates: ['test'] } };
    const none = { questions: [], sessions: [], agents: [], default: 'demo', tasks: [], total: 0 };
    const model = new Model({ follow: (_, own) => Object.assign(handlers, own), call: async method => lists[method] ?? none });
    handlers.onReady();
    while (!model.failures().length)
        await new Promise(resolve => setTimeout(resolve, 1));
    const [failure] = model.unseenFailures();
    same([failure.id, failure.prompt, failure.agent, failure.error, failure.ended], ['gated-0001', 'mend it', 'demo', 'no such agent', Date.parse(early.endedAt)]);
    model.saw(failure);
    same([model.unseenFailures().length, model.failures().length], [0, 1]);
    const onAnotherPage = new Model({ follow: (_, own) => Object.assign(handlers, own), call: async method => method === 'gated.list' ? { tasks: [{ ...early, seen: true }] } : none });
    handlers.onReady();
    while (!onAnotherPage.failures().length)
        await new Promise(resolve => setTimeout(resolve, 1));
    same(onAnotherPage.unseenFailures().length, 0);
});

test('what the first screens import is asked for at once, and nothing else is', async () => {
    const folder = path.join(source, 'web/dashboard'), found = new Set();
    const look = file => {
        if (found.has(file))
            return;
        found.add(file);
        for (const [, name] of fs.readFileSync(file, 'utf8').matchAll(/^import .* from '(.*)';$/gm))
            look(path.join(path.dirname(file), name));
    };
    ['main.js', 'screen_inbox.js', 'screen_tasks.js'].forEach(name => look(path.join(folder, 'app', name)));
    const named = [...fs.readFileSync(path.join(folder, 'index.html'), 'utf8').matchAll(/(?:href|src)="{{assets}}\/(.*\.js)"/g)].map(([, name]) => name);
    same(named.sort(), [...found].map(file => path.relative(path.join(source, 'web'), file)).sort());
});

await run();
