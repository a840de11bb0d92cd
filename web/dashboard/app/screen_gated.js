/* Gated tasks: an agent works until the project's gates pass. All of them; and one, with its iterations and what each gate said last. */
import { fill, h, icon, setText } from './dom.js';
import { explain } from './hub.js';
import { seen } from './screen_inbox.js';
import { agentAt, brief, count, duration } from './text.js';
import { command, empty } from './parts.js';
import { badge, button, errorBox, twice, when } from './ui.js';

const MOST_FINDINGS = 50;
const isOver = one => one.state !== 'running';
const stageOf = one => one.stopping ? 'it is being cancelled' : one.phase === 'gates' ? 'its gates run' : 'the agent works';
const tries = one => `iteration ${one.iteration} of ${one.maxIterations}`;
const fileLink = path => `#/files/${path.split('/').map(encodeURIComponent).join('/')}`;

const newButton = ctx => button('New gated task', 'No task was made', () => ctx.compose({ gated: true }), { kind: 'primary', iconName: 'plus', needs: 'work' });

export function screen(ctx) {
    return ctx.rest[0] ? oneOf(ctx, ctx.rest[0]) : all(ctx);
}

/* ---- all ---- */

const teachGates = () => empty('No gate is configured', 'A gate is a command of yours that says whether the work is done: its exit status 0 passes. With gates an agent works, the gates run, and it works again with what they found, until all pass.', [
    ['Name your gates, in the project\u2019s folder:', 'weft config set tasks.gates.test \'["make", "test"]\''], ['Let the hub read it:', 'weft reload'],
    ['Send a task, here or on the command line:', 'weft task submit --gate test --wait "make the failing test pass"']]);
const teachTask = ctx => empty('No gated task yet', `An agent works until the gates pass. There ${ctx.model.gated.gates.length === 1 ? 'is one' : 'are'}: ${ctx.model.gated.gates.join(', ')}.`, [
    ['Choose the gates when you write a task:', newButton(ctx)], ['Or on the command line:', `weft task submit --gate ${ctx.model.gated.gates[0]} --wait "make the failing test pass"`]]);

function all(ctx) {
    const { model, scope } = ctx;
    const el = h('div.gated-list');
    let shown = '', cursor = -1;
    const row = one => h('div.gated-row', { role: 'listitem' }, badge(one.state), h('a.gated-prompt', { href: `#/gated/${one.taskId}` }, brief(one.prompt, 240)),
        h('span.dim', [one.gates.join(', '), tries(one), agentAt(one.taskId, one.agent ?? model.defaultAgent ?? '')].filter(Boolean).join(' \u00b7 ')), when(Date.parse(one.createdAt)));
    const links = () => [...el.querySelectorAll('.gated-prompt')];
    scope.effect(() => {
        model.version.value;
        const { tasks, gates } = model.gated, now = JSON.stringify([tasks, gates, model.ready.value]);
        if (now === shown || !model.ready.peek())
            return;
        const focused = links().indexOf(document.activeElement);
        shown = now;
        fill(ctx.tools, gates.length > 0 && newButton(ctx));
        fill(el, tasks.length ? h('div', { role: 'list' }, tasks.map(row)) : gates.length ? teachTask(ctx) : teachGates());
        links()[focused]?.focus();
    });
    const move = by => {
        cursor = Math.max(0, Math.min(links().length - 1, cursor + by));
        links()[cursor]?.focus();
    };
    return { el, back: () => ctx.go('#/tasks'), keys: { j: () => move(1), k: () => move(-1) } };
}

/* ---- one ---- */

function finding(one) {
    const place = one.file ? `${one.file}${one.line ? `:${one.line}` : ''}${one.column ? `:${one.column}` : ''}` : '';
    const inside = one.file && !one.file.startsWith('/') && !one.file.startsWith('..');
    return h('li', place && [inside ? h('a', { href: fileLink(one.file.replace(/^\.\//, '')) }, place) : h('span.mono', place), ' '], one.code && h('span.dim', `${one.code} `), one.message);
}

/* What a gate said last. Its output is shown where it says more than what was found in it. */
function gateCard(gate) {
    const state = gate.passed ? ['completed', 'passed'] : gate.passed === false ? ['failed', 'not passed'] : ['queued', 'has not run'];
    const facts = [gate.iteration && `iteration ${gate.iteration}`, gate.exitCode !== undefined && `exit ${gate.exitCode}`, gate.durationMs !== undefined && duration(gate.durationMs), gate.why].filter(Boolean);
    const places = (gate.findings ?? []).filter(one => one.file);
    return h('section.gate', { 'aria-label': `Gate ${gate.gate}` }, h('div.gate-head', badge(...state), h('h3', gate.gate), h('span.dim', facts.join(' \u00b7 '))),
        places.length > 0 && h('ul.findings', places.slice(0, MOST_FINDINGS).map(finding), places.length > MOST_FINDINGS && h('li.dim', `${count(places.length - MOST_FINDINGS, 'more finding')}`)),
        gate.output && h('details', { open: !places.length }, h('summary', 'Its output'), h('pre.mono.tool-text', { tabindex: '0', role: 'group', 'aria-label': `Output of ${gate.gate}` }, gate.output)));
}

const marks = (turn, gates) => gates.map(gate => turn.passed.includes(gate) ? h('span.state.state-completed', icon('completed'), h('span', gate)) : turn.failed.includes(gate) ? h('span.state.state-failed', icon('failed'), h('span', gate)) : h('span.state.state-queued', icon('queued'), h('span', gate)));

function turnRow(ctx, task, turn) {
    const record = ctx.model.tasks.get(turn.taskId), isLast = turn.iteration === task.iteration;
    const took = record?.ended && record.started ? duration(record.ended - record.started) : '';
    return h('tr', h('td.num', String(turn.iteration)), h('td', turn.taskId ? h('a', { href: `#/session/${task.sessionId}` }, turn.taskId) : h('span.dim', 'waits')),
        h('td', record ? badge(record.state) : ''), h('td', h('div.gate-marks', turn.taskId && (!isLast || task.phase !== 'agent') ? marks(turn, task.gates) : h('span.dim', '\u2013'))),
        h('td.dim', took), h('td', record?.changes?.files ? h('a', { href: `#/changes/task/${turn.taskId}` }, count(record.changes.files, 'file')) : ''));
}

function oneOf(ctx, id) {
    const { model, hub, scope } = ctx;
    const about = h('div.gated-about', { role: 'status' }), gates = h('div.gates-said'), turns = h('div.scroller', { tabindex: '0', role: 'group', 'aria-label': 'Iterations' });
    const prompt = h('div.said');
    const parts = [prompt, about, h('section', h('h2', 'Gates'), gates), h('section', h('h2', 'Iterations'), turns)];
    const el = h('div.gated', parts);
    const cancel = twice('Cancel', 'Press again to cancel', 'It was not cancelled', () => hub.call('cancelTask', { taskId: id }, { timeout: 120_000 }), { kind: 'deny', iconName: 'stop' });
    let task = null, asking = false, again = false;
    /* Built anew only when it says something else: what somebody has unfolded or focused stays so. */
    const was = new Map();
    const refill = (place, stamp, build) => {
        const text = JSON.stringify(stamp);
        if (was.get(place) !== text)
            fill(place, build());
        was.set(place, text);
    };

    async function ask() {
        if (asking) {
            again = true;
            return;
        }
        asking = true;
        try {
            ({ task } = await hub.call('gated.get', { taskId: id }));
            show();
        } catch (error) {
            if (error.reason === 'disconnected')
                return;
            const refusal = explain('This gated task cannot be shown', error);
            if (error.reason === 'gatedNotFound')
                refusal.next = 'It may have been deleted with its session. Gated tasks lists those that are there.';
            fill(el, errorBox(refusal, h('p', h('a', { href: '#/gated' }, 'All gated tasks'))));
        } finally {
            asking = false;
        }
        if (again) {
            again = false;
            ask();
        }
    }
    function show() {
        if (prompt.parentNode !== el) /* there was an error in its place */
            fill(el, parts);
        ctx.setTitle(brief(task.prompt, 160));
        setText(prompt, task.prompt);
        const who = agentAt(id, task.agent ?? model.defaultAgent ?? '');
        const took = (task.endedAt ? Date.parse(task.endedAt) : Date.now()) - Date.parse(task.createdAt);
        fill(about, badge(task.state), h('span', [!isOver(task) && stageOf(task), tries(task), who, duration(took)].filter(Boolean).join(' \u00b7 ')), when(Date.parse(task.createdAt)),
            task.error && h('div.gated-error', task.error, task.reason && h('span.dim.mono', ` reason: ${task.reason}`)));
        const links = task.sessionId ? [h('a.button', { href: `#/session/${task.sessionId}` }, 'Session'), h('a.button', { href: `#/changes/session/${task.sessionId}` }, icon('diff'), 'All changes')] : [];
        const mayCancel = !isOver(task) && hub.may('work');
        refill(ctx.tools, [mayCancel, task.sessionId], () => [mayCancel && cancel, links]);
        refill(gates, task.results, () => task.results.map(gateCard));
        const records = task.iterations.map(turn => model.tasks.get(turn.taskId));
        refill(turns, [task.iterations, task.phase, records.map(one => one && [one.state, one.ended, one.changes?.files])], () => h('table',
            h('thead', h('tr', ['no.', 'task', 'state', 'gates', 'took', 'changed'].map(name => h('th', { scope: 'col' }, name)))), h('tbody', task.iterations.map(turn => turnRow(ctx, task, turn)))));
        const failure = model.failures().find(one => one.id === id);
        if (failure && !failure.seen && document.visibilityState === 'visible' && hub.may('work'))
            seen(ctx, failure).catch(() => {});
    }
    scope.effect(() => {
        hub.opened.value;
        if (hub.open)
            ask();
    });
    scope.add(model.listen(({ data }) => (data.gatedId === id || data.sessionId && data.sessionId === task?.sessionId) && ask()));
    scope.effect(() => {
        model.version.value; /* states and times of its tasks */
        if (task)
            show();
    });
    scope.every(1000, () => task && !isOver(task) && show());
    return { el, back: () => ctx.go('#/gated'), keys: { Enter: () => task?.sessionId && ctx.go(`#/session/${task.sessionId}`), '.': () => task && !isOver(task) && cancel.click() } };
}
