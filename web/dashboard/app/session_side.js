/* Beside a session: what it changed, what it cost, how long it took, where it works. On a small screen it is a sheet. */
import { fill, h, icon } from './dom.js';
import { isOver } from './model.js';
import { count, duration, money, number } from './text.js';
import { dialog, plusMinus, report, select } from './ui.js';

const wide = matchMedia('(min-width: 1100px)');
const CHANGE = { added: 'new', deleted: 'deleted', renamed: 'renamed' };

export function sidePanel(ctx, id) {
    const { model, hub, scope } = ctx;
    const el = h('aside.side', { 'aria-label': 'About this session' });
    const sheet = h('div.side-sheet');
    let changes = null, cost = null, session = null, asked = '', error = null;

    /* Asked again when a task has ended or has changed something, at most once in two seconds while one runs. */
    async function ask() {
        const stamp = model.sessionTasks(id).map(task => `${task.id}${task.state}${task.changes?.after ?? ''}${task.undone ?? ''}`).join();
        if (stamp === asked || !hub.open || !model.ready.peek())
            return;
        asked = stamp;
        const [files, spent, about] = await Promise.allSettled([hub.call('task.changes', { sessionId: id, limit: 200 }), hub.call('cost.get', { sessionId: id }), hub.call('session.get', { sessionId: id })]);
        changes = files.value ?? null;
        error = files.reason ?? null;
        cost = spent.value ?? null;
        session = about.value?.session ?? null;
        show();
    }
    function filesPart() {
        const tasks = model.sessionTasks(id);
        if (error && error.reason !== 'changesUnknown')
            return h('p.dim', error.message);
        if (!changes?.files.length)
            return h('p.dim', tasks.some(task => !isOver(task)) ? 'Nothing yet.' : 'Nothing.');
        return [h('ul.side-files', changes.files.map(file => h('li', h('a', { href: `#/changes/session/${id}/${encodeURIComponent(file.path)}`, title: file.path }, file.path), CHANGE[file.change] && h('span.tag', CHANGE[file.change]), file.binary ? h('span.dim', 'binary') : plusMinus(file.additions, file.deletions)))),
            changes.truncated && h('p.dim', `${count(changes.total - changes.files.length, 'more file')}`), h('a.button', { href: `#/changes/session/${id}` }, icon('diff'), 'All changes')];
    }
    function facts() {
        const tasks = model.sessionTasks(id);
        const took = tasks.reduce((sum, task) => sum + (task.started ? (task.ended || Date.now()) - task.started : 0), 0);
        const attempts = tasks.reduce((sum, task) => sum + task.attempt, 0);
        const spent = cost?.spent ?? cost?.session ?? cost?.total;
        const rows = [['agent', session?.agent ?? model.sessions.get(id)?.agent], ['prompts', number(tasks.length)], ['attempts', number(attempts)], ['time', duration(took)],
            ['tokens', spent?.tokens?.total ? number(spent.tokens.total) : 'not reported'], ['cost', spent?.cost?.length ? spent.cost.map(money).join(', ') : 'not reported'],
            ['branch', session?.branch], ['folder', session?.worktree || session?.folder || hub.who.peek()?.folder]];
        return h('dl.facts', rows.filter(([, value]) => value).map(([name, value]) => [h('dt', name), h('dd', { title: value }, value)]));
    }
    function modePart() {
        const modes = session?.modes?.availableModes ?? [];
        if (modes.length < 2 || !hub.may('work'))
            return null;
        const box = select(modes.map(one => [one.id, one.name]), session.mode ?? session.modes.currentModeId, value => hub.call('session.set', { sessionId: id, name: 'mode', value }).catch(reason => report('The mode was not changed', reason)));
        box.setAttribute('aria-label', 'Mode');
        return [h('h2', 'Mode'), box];
    }
    const build = () => [h('h2', 'What it changed'), filesPart(), h('h2', 'Cost, tokens, time'), facts(), modePart()];
    function show() {
        if (sheet.isConnected)
            fill(sheet, build());
        if (wide.matches)
            fill(el, build());
    }
    scope.listen(wide, 'change', show);
    scope.every(2000, () => model.sessionTasks(id).some(task => !isOver(task)) && show());
    return {
        el,
        refresh: () => ask().catch(() => {}),
        open: () => {
            if (wide.matches)
                return el.querySelector('a,select')?.focus();
            dialog('About this session', () => fill(sheet, build()));
        },
    };
}
