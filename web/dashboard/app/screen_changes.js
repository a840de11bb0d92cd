/* What a task or a session changed, as a diff: inline or side by side, words marked, long files folded; undo, and what else the hub can
 * do with the changes. */
import { hunkRows, parseDiff, sideRows } from './diff.js';
import { fileHead, lineRow, pairRow } from './diffview.js';
import { fill, h, icon } from './dom.js';
import { Refusal, explain } from './hub.js';
import { isOver } from './model.js';
import { brief, count, size } from './text.js';
import { empty, loading } from './parts.js';
import { button, errorBox, plusMinus, say, twice } from './ui.js';
import { VirtualList } from './vlist.js';

const LONG = 400; /* lines of a file that is folded at first */
const MOST_BYTES = 16 << 20;
const phone = matchMedia('(max-width: 700px)');

let sideBySide = false;

const CONFLICTS = {
    changed: 'somebody has changed the same lines', exists: 'it was deleted, and somebody has made it anew', deleted: 'somebody has deleted it', inTheWay: 'something else is in its place',
    shared: 'others worked at the same time and may have changed it', tooLarge: 'it was too large to be kept', submodule: 'it is another repository',
    closed: 'Weft leaves .weft, .git and .aiwg/daemon alone; merge it with git',
};
const conflictWords = ({ conflicts, conflictCount }) => [...conflicts.slice(0, 8).map(one => `${one.path}: ${CONFLICTS[one.reason] ?? one.reason ?? 'conflict'}`), conflictCount > 8 && `and ${conflictCount - 8} more`].filter(Boolean).join('; ');

/* Rows of one file for the list. */
function fileRows(file, at, isSide) {
    const rows = [{ key: `${at}`, kind: 'file', file, at }];
    if (file.folded)
        return rows;
    if (!file.hunks.length) {
        rows.push({ key: `${at}.said`, kind: 'said', text: file.binary ? 'Binary: not shown line by line.' : file.submodule ? 'Another repository: only its commit is known.' : file.tooLarge ? `Too large to be kept${file.size ? `: ${size(file.size)}` : ''}.` : file.change === 'renamed' ? 'Renamed, otherwise the same.' : 'No lines differ.' });
        return rows;
    }
    file.hunks.forEach((hunk, n) => {
        rows.push({ key: `${at}.${n}`, kind: 'hunk', text: `@@ line ${hunk.newStart || hunk.oldStart} @@ ${hunk.title}` });
        file.rows ??= [];
        const lines = file.rows[n] ??= hunkRows(hunk);
        (isSide ? sideRows(lines) : lines).forEach((line, i) => rows.push({ key: `${at}.${n}.${i}${isSide ? 's' : ''}`, kind: isSide ? 'pair' : 'line', line }));
    });
    return rows;
}

export function screen(ctx) {
    const { hub, model, scope } = ctx;
    const [of, id, wantedPath] = ctx.rest;
    const params = of === 'session' ? { sessionId: id } : { taskId: id };
    let task = null, shownChanges = null;
    let files = [], rows = [], current = 0;

    const names = h('nav.pane-list', { 'aria-label': 'Files that were changed' });
    const list = new VirtualList({ key: row => row.key, version: row => `${row.file?.folded}`, row: rowElement, estimate: 20, label: 'Diff', role: '' });
    scope.add(() => list.destroy());
    const head = h('div.pane-head');
    const pane = h('div.pane', head, list.el);
    const el = h('div.panes', names, pane);
    const side = h('button.toggle', { type: 'button', 'aria-pressed': String(sideBySide), title: 'Inline or side by side (s)', onclick: () => toggleSide() }, icon('side'), h('span', 'Side by side'));

    function rowElement(row) {
        if (row.kind === 'line')
            return lineRow(row.line);
        if (row.kind === 'pair')
            return pairRow(row.line);
        if (row.kind === 'hunk')
            return h('div.d-hunk', row.text);
        if (row.kind === 'said')
            return h('div.d-said', row.text);
        const { file } = row;
        return h('div.d-filehead', h('button.plain', { type: 'button', 'aria-expanded': String(!file.folded), 'aria-label': `${file.folded ? 'Unfold' : 'Fold'} ${file.path}`, onclick: () => { file.folded = !file.folded; layout(); } }, icon(file.folded ? 'right' : 'down')),
            fileHead(file), file.shared && h('span.tag', { title: 'Other tasks worked at the same time and may have changed it too' }, 'shared'), file.folded && h('span.dim', `${count(file.additions + file.deletions, 'line')} folded`));
    }
    function layout() {
        rows = files.flatMap((file, at) => fileRows(file, at, sideBySide && !phone.matches));
        list.set(rows);
    }
    function toggleSide() {
        sideBySide = !sideBySide;
        side.setAttribute('aria-pressed', String(sideBySide));
        layout();
    }
    function go(at) {
        if (!files[at])
            return;
        current = at;
        files[at].folded = false;
        layout();
        const index = rows.findIndex(row => row.kind === 'file' && row.at === at);
        list.show(index);
        list.el.scrollTop = list.total > list.el.clientHeight ? Math.max(0, offsetOf(index)) : 0;
        showNames();
    }
    const offsetOf = index => rows.slice(0, index).reduce((sum, row) => sum + list.heightOf(row), 0);
    function showNames() {
        fill(names, files.map((file, at) => h('a', { href: `#/changes/${of}/${id}/${encodeURIComponent(file.path)}`, 'aria-current': at === current ? 'true' : undefined, title: file.path, onclick: event => { event.preventDefault(); go(at); } },
            h('span.path', file.path), file.change !== 'modified' && h('span.tag', file.change === 'added' ? 'new' : file.change), file.binary ? h('span.dim', 'binary') : plusMinus(file.additions, file.deletions))));
    }

    /* ---- reading ---- */

    async function readDiff() {
        let text = '', offset;
        for (;;) {
            const page = await hub.call('task.diff', { ...params, offset });
            text += page.diff;
            if (!page.truncated || page.next === undefined || text.length > MOST_BYTES)
                return text;
            offset = page.next;
        }
    }
    async function load() {
        const stop = loading(head, 'the changes');
        try {
            const [changes, text] = await Promise.all([hub.call('task.changes', params), readDiff()]);
            stop();
            show(changes, parseDiff(text));
        } catch (error) {
            stop();
            fill(el, errorBox(explain('The changes cannot be shown', error), back()));
            el.className = 'pad';
        }
    }
    const back = () => {
        const sessionId = of === 'session' ? id : model.tasks.get(id)?.sessionId;
        return h('p', sessionId ? h('a', { href: `#/session/${sessionId}` }, 'Back to the session') : h('a', { href: '#/tasks' }, 'All tasks'));
    };
    function show(changes, parsed) {
        const byPath = new Map(parsed.map(one => [one.path, one]));
        files = changes.files.map(one => ({ additions: 0, deletions: 0, hunks: [], ...byPath.get(one.path), ...one, from: one.from }));
        for (const file of files)
            file.folded = file.additions + file.deletions > LONG;
        if (!files.length) {
            el.className = 'inbox is-empty';
            fill(el, h('div', empty('Nothing was changed', changes.running ? 'It still runs: what it changes is shown here.' : 'No file differs from what it was before.'), h('div.empty', back())));
            return;
        }
        fill(head, h('b', count(changes.total, 'file')), plusMinus(changes.additions, changes.deletions), changes.undone && h('span.tag', 'undone'), changes.running && h('span.tag', 'still running'), changes.truncated && h('span.dim', `the first ${files.length} are shown`),
            changes.others?.length && h('span.dim', `${changes.others.join(', ')} worked at the same time`), h('span.grow'), back());
        showNames();
        layout();
        const at = files.findIndex(file => file.path === wantedPath);
        if (at > 0)
            requestAnimationFrame(() => go(at));
        shownChanges = changes;
        showTools();
    }
    /* What the hub can do is known a moment after the page has begun. */
    scope.effect(() => {
        hub.methods.value;
        if (shownChanges)
            showTools();
    });
    function showTools() {
        const changes = shownChanges;
        /* Conflicts are an answer, not an error: nothing was done, and these files are why. */
        const act = (method, params, what) => async () => {
            const answer = await hub.call(method, params);
            if (answer.ok === false)
                throw new Refusal(`${what}: nothing was done`, conflictWords(answer), method === 'task.undo' ? 'Change these files by hand, or let the agent do it.' : 'The conflicts are in its worktree: solve them there, then merge again.', 'conflicts');
            say(`${what}: ${answer.files === undefined ? 'done' : count(answer.files, 'file')}.`);
            load();
        };
        const tools = [side];
        if (task && isOver(task) && hub.may('work')) {
            if (changes.undone)
                tools.push(twice('Redo', 'Press again: put it there again', 'It was not put there again', act('task.undo', { taskId: id, redo: true }, 'Redo'), { kind: 'deny' }));
            else
                tools.push(twice('Undo', 'Press again: put the files back', 'Nothing was put back', act('task.undo', { taskId: id }, 'Undo'), { kind: 'deny' }));
            for (const [method, label, sure] of [['task.discard', 'Discard', 'Press again: throw the branch away'], ['task.merge', 'Merge', 'Press again: merge it into your branch']])
                if (hub.has(method) && (task.branch || model.sessions.get(task.sessionId)?.branch))
                    tools.push(twice(label, sure, `${label} failed`, act(method, { taskId: id }, label), { kind: method === 'task.merge' ? 'primary' : 'deny' }));
        }
        fill(ctx.tools, tools);
    }
    ctx.setTitle(`Changes: ${id ?? ''}`);
    if (!id) {
        el.className = 'inbox is-empty';
        fill(el, empty('Whose changes?', 'Open a task or a session, then what it changed.', [['The tasks that changed something say how many files.', h('a.button', { href: '#/tasks' }, 'Open Tasks')]]));
    } else {
        let begun = false;
        scope.effect(() => {
            if (model.ready.value && !begun) {
                begun = true;
                task = of === 'session' ? null : model.tasks.get(id) ?? null;
                if (task)
                    ctx.setTitle(`Changes: ${brief(task.prompt, 120)}`);
                load();
            }
        });
    }
    scope.add(model.listen(({ type, data }) => type === 'task.changed' && (data.taskId === id || data.sessionId === id) && load()));
    scope.listen(phone, 'change', layout);
    return {
        el, back: () => ctx.go(`#/session/${of === 'session' ? id : model.tasks.get(id)?.sessionId ?? ''}`),
        keys: { s: toggleSide, ']': () => go(Math.min(files.length - 1, current + 1)), '[': () => go(Math.max(0, current - 1)), j: () => list.el.scrollBy({ top: 120 }), k: () => list.el.scrollBy({ top: -120 }) },
    };
}
