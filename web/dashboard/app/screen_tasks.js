/* All tasks: filter, submit, cancel one or many. Only the rows in sight have elements, so ten thousand are as quick as ten. */
import { fill, h, icon, setText } from './dom.js';
import { isOver } from './model.js';
import { agentAt, brief, count, duration, number } from './text.js';
import { badge, button, filesChanged, report, say, twice, when } from './ui.js';
import { VirtualList } from './vlist.js';
import { teach } from './screen_inbox.js';

const STATES = ['all', 'queued', 'running', 'completed', 'failed', 'cancelled'];
/* A phone has two lines for each task. */
const phone = matchMedia('(max-width: 700px)');

function took(task) {
    if (!task.started)
        return '';
    return duration((task.ended || Date.now()) - task.started);
}

export function screen(ctx) {
    const { model, scope, hub } = ctx;
    let state = STATES.includes(ctx.rest[0]) ? ctx.rest[0] : 'all', text = '', shown = [], cursor = -1;
    const chosen = new Set();

    /* ---- rows ---- */

    const row = (task, _, index) => {
        const box = h('input', { type: 'checkbox', 'data-needs': 'work', checked: chosen.has(task.id), disabled: isOver(task), 'aria-label': `Choose ${task.id}`, onchange: () => toggle(task, box.checked) });
        const asking = task.state === 'running' && [...model.questions.values()].some(one => one.state === 'open' && one.taskId === task.id);
        const title = h('a.task-prompt', { href: `#/session/${task.sessionId}`, onfocus: () => { cursor = shown.indexOf(task); } }, brief(task.prompt, 240) || task.id);
        return h('div.task', { role: 'row', 'aria-rowindex': index + 2 }, h('span', { role: 'cell' }, box), h('span.task-state', { role: 'cell' }, badge(asking ? 'asks' : task.state)),
            h('span.task-title', { role: 'cell' }, title), h('span.task-changes.dim', { role: 'cell' }, task.changes?.files ? h('a', { href: `#/changes/task/${task.id}` }, filesChanged(task.changes)) : ''),
            h('span.task-agent.dim', { role: 'cell' }, agentAt(task.id, task.agent)), h('span.task-age.dim', { role: 'cell' }, when(task.created)), h('span.task-took.dim.num', { role: 'cell' }, took(task)),
            h('span.task-attempts.dim.num', { role: 'cell', title: 'attempts' }, task.attempt ? number(task.attempt) : ''));
    };
    const list = new VirtualList({
        key: task => task.id, row, role: 'rowgroup', rowHeight: phone.matches ? 60 : 36, label: 'Tasks',
        version: task => `${task.rev}${task.state}${chosen.has(task.id)}${task.seen}${task.state === 'running' ? Math.floor(Date.now() / 1000) : ''}`,
    });
    list.body.removeAttribute('role');
    list.el.setAttribute('role', 'rowgroup');
    list.el.removeAttribute('aria-label');
    scope.add(() => list.destroy());
    scope.listen(phone, 'change', () => { list.rowHeight = phone.matches ? 60 : 36; list.set(shown); });
    scope.every(1000, () => list.render());

    /* ---- above ---- */

    const find = h('input.find', { type: 'search', placeholder: 'Filter by text', 'aria-label': 'Filter by text', oninput: () => { text = find.value.toLowerCase(); refresh(); } });
    const chips = h('div.chips', { role: 'group', 'aria-label': 'State' });
    const buttons = Object.fromEntries(STATES.map(name => [name, h('button.chip', { type: 'button', onclick: () => { state = name; refresh(); } }, name === 'all' ? h('span', 'all') : badge(name), h('span.num.dim'))]));
    fill(chips, Object.values(buttons));
    const cancelChosen = twice('Cancel chosen', 'Press again to cancel them', 'Not all were cancelled', cancelAll, { kind: 'deny' });
    const chosenBar = h('div.chosen-bar', { hidden: true }, h('span'), cancelChosen, h('button', { type: 'button', onclick: () => { chosen.clear(); refresh(); } }, 'Choose none'));
    const summary = h('div.dim.small.summary', { role: 'status' });
    const all = h('input', { type: 'checkbox', 'data-needs': 'work', 'aria-label': 'Choose all that are shown and not over', onchange: () => { shown.forEach(task => !isOver(task) && (all.checked ? chosen.add(task.id) : chosen.delete(task.id))); refresh(); } });
    const head = h('div.task.task-head', { role: 'row', 'aria-rowindex': '1' }, h('span', { role: 'columnheader' }, all), ...['state', 'prompt', 'changed', 'agent', 'age', 'took', 'attempts'].map((name, i) =>
        h(`span.task-${['state', 'title', 'changes', 'agent', 'age', 'took', 'attempts'][i]}`, { role: 'columnheader' }, name)));
    const table = h('div.task-table', { role: 'table', 'aria-label': 'Tasks' }, h('div', { role: 'rowgroup' }, head), list.el);
    const body = h('div.tasks-body');
    fill(ctx.tools, h('a.button', { href: '#/gated' }, 'Gated tasks'), button('New task', 'No task was made', () => ctx.compose(), { kind: 'primary', iconName: 'plus', hint: 'c', needs: 'work' }));

    async function cancelAll() {
        const ids = [...chosen];
        const results = await Promise.allSettled(ids.map(taskId => hub.call('task.cancel', { taskId })));
        const failed = results.filter(one => one.status === 'rejected');
        chosen.clear();
        refresh();
        if (failed.length)
            report(`${failed.length} of ${count(ids.length, 'task')} could not be cancelled`, failed[0].reason);
        else
            say(`${count(ids.length, 'task')} cancelled.`);
    }
    function toggle(task, on) {
        on ? chosen.add(task.id) : chosen.delete(task.id);
        refresh();
    }

    /* ---- what is shown ---- */

    function refresh() {
        const tasks = model.list();
        const counts = { all: tasks.length, queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0 };
        shown = [];
        for (const task of tasks) {
            counts[task.state]++;
            if ((state === 'all' || task.state === state) && (!text || task.prompt.toLowerCase().includes(text) || task.agent.includes(text) || task.id.includes(text)))
                shown.push(task);
        }
        for (const id of chosen)
            if (!model.tasks.has(id) || isOver(model.tasks.get(id)))
                chosen.delete(id);
        for (const name of STATES) {
            buttons[name].setAttribute('aria-pressed', String(name === state));
            setText(buttons[name].lastChild, number(counts[name]));
        }
        chosenBar.hidden = !chosen.size;
        setText(chosenBar.firstChild, `${count(chosen.size, 'task')} chosen`);
        table.setAttribute('aria-rowcount', shown.length + 1);
        showBody(tasks.length);
        const total = model.total.peek();
        setText(summary, `${number(shown.length)} shown of ${number(Math.max(total, tasks.length))}${total > tasks.length ? `, ${number(tasks.length)} loaded` : ''}`);
    }
    function showBody(known) {
        const want = !model.ready.peek() ? 'loading' : !known ? 'empty' : !shown.length ? 'none' : 'list';
        if (body.dataset.shows !== want) {
            body.dataset.shows = want;
            fill(body, want === 'list' ? table : want === 'empty' ? teach(ctx, 'No task yet') : want === 'none' ? h('div.empty', h('h2', 'No task is like that'), h('p', 'Choose another state, or clear the text.'), h('div', button('Show all', '', () => { state = 'all'; find.value = text = ''; refresh(); }))) : h('p.dim.pad', 'Loading tasks\u2026'));
        }
        if (want === 'list')
            list.set(shown);
    }
    scope.effect(() => {
        model.version.value;
        model.ready.value;
        model.total.value;
        refresh();
    });
    const move = by => {
        cursor = Math.max(0, Math.min(shown.length - 1, cursor + by));
        list.show(cursor);
        list.elementAt(cursor)?.querySelector('a')?.focus({ preventScroll: true });
    };
    return {
        el: h('div.tasks', h('div.filters', chips, find, summary), chosenBar, body),
        keys: {
            j: () => move(1), k: () => move(-1), '/': () => find.focus(),
            x: () => { const task = shown[cursor]; if (task && !isOver(task) && hub.may('work')) toggle(task, !chosen.has(task.id)); },
        },
    };
}
