/* Conversations with agents, the one that changed last first. */
import { fill, h } from './dom.js';
import { agentAt, brief, count } from './text.js';
import { badge, button, when } from './ui.js';
import { VirtualList } from './vlist.js';
import { teach } from './screen_inbox.js';

export function screen(ctx) {
    const { model, scope } = ctx;
    let shown = [], cursor = -1, text = '';
    const stateOf = session => {
        const tasks = model.sessionTasks(session.id);
        const last = tasks.at(-1);
        if (tasks.some(task => task.state === 'running'))
            return [...model.questions.values()].some(one => one.state === 'open' && one.sessionId === session.id) ? 'asks' : 'running';
        return last?.state ?? (session.closed ? 'cancelled' : 'queued');
    };
    const list = new VirtualList({
        key: one => one.id, rowHeight: 52, label: 'Sessions',
        version: one => `${one.rev}${one.updated}${one.tasks.size}${stateOf(one)}${model.sessionTitle(one)}`,
        row: one => h('div.session-row', { role: 'listitem' }, badge(stateOf(one)), h('a.session-title', { href: `#/session/${one.id}`, onfocus: () => { cursor = shown.indexOf(one); } }, brief(model.sessionTitle(one), 200)),
            h('span.dim.session-about', [agentAt(one.id, one.agent), count(one.tasks.size, 'prompt'), one.branch, one.closed && 'closed'].filter(Boolean).join(' \u00b7 ')), when(one.updated)),
    });
    scope.add(() => list.destroy());
    const find = h('input.find', { type: 'search', placeholder: 'Filter by text', 'aria-label': 'Filter by text', oninput: () => { text = find.value.toLowerCase(); refresh(); } });
    const body = h('div.tasks-body');
    fill(ctx.tools, button('New task', 'No task was made', () => ctx.compose(), { kind: 'primary', iconName: 'plus', hint: 'c', needs: 'work' }));
    function refresh() {
        shown = model.sessionList().filter(one => !text || `${model.sessionTitle(one)} ${one.agent} ${one.id}`.toLowerCase().includes(text));
        const want = model.ready.peek() && !model.sessions.size ? 'empty' : 'list';
        if (body.dataset.shows !== want) {
            body.dataset.shows = want;
            fill(body, want === 'empty' ? teach(ctx, 'No session yet') : list.el);
        }
        list.set(shown);
    }
    scope.effect(() => {
        model.version.value;
        model.ready.value;
        refresh();
    });
    const move = by => {
        cursor = Math.max(0, Math.min(shown.length - 1, cursor + by));
        list.show(cursor);
        list.elementAt(cursor)?.querySelector('a')?.focus({ preventScroll: true });
    };
    return { el: h('div.tasks', h('div.filters', find), body), keys: { j: () => move(1), k: () => move(-1), '/': () => find.focus() } };
}
