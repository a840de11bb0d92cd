/* The project's files: a tree with what git says of each, a file with line numbers, how it differs from the last commit, its history. */
import { parseDiff, hunkRows } from './diff.js';
import { lineRow } from './diffview.js';
import { fill, h, icon } from './dom.js';
import { explain } from './hub.js';
import { cleanOutput, count, size } from './text.js';
import { empty, loading } from './parts.js';
import { button, copyText, errorBox, when } from './ui.js';
import { VirtualList } from './vlist.js';

const GIT = { M: 'changed', A: 'added', D: 'deleted', R: 'renamed', U: 'new', C: 'in conflict' };
const address = path => `#/files/${path.split('/').map(encodeURIComponent).join('/')}`;

/* path -> a letter */
function gitLetters(status) {
    const letters = new Map();
    for (const file of status.files ?? []) {
        const codes = `${file.index ?? ' '}${file.worktree ?? ' '}`;
        letters.set(file.path.replace(/\/$/, ''), /\?/.test(codes) ? 'U' : /U/.test(codes) ? 'C' : /[MADR]/.exec(codes)?.[0] ?? 'M');
    }
    for (const path of status.conflicted ?? [])
        letters.set(path, 'C');
    return letters;
}

class Tree {
    #open = new Map(); /* path -> entries */
    constructor(ctx, onOpen) {
        this.ctx = ctx;
        this.onOpen = onOpen;
        this.letters = new Map();
        this.el = h('nav.pane-list', { 'aria-label': 'Files' });
    }
    async expand(path) {
        if (!this.#open.has(path))
            this.#open.set(path, await this.ctx.hub.call('file/list', { path }));
    }
    async toggle(path) {
        if (this.#open.has(path) && path)
            this.#open.delete(path);
        else
            await this.expand(path);
        this.show();
    }
    /* Folders on the way to a file are open. */
    async reveal(path) {
        const parts = path.split('/');
        for (let i = 0; i < parts.length; i++)
            await this.expand(parts.slice(0, i).join('/'));
    }
    refreshAll() {
        const paths = [...this.#open.keys()];
        this.#open.clear();
        return Promise.all(paths.map(path => this.expand(path).catch(() => {})));
    }
    letterOf(path, isFolder) {
        if (!isFolder)
            return this.letters.get(path) ?? this.#above(path);
        for (const one of this.letters.keys())
            if (one === path || one.startsWith(`${path}/`))
                return '\u2022';
        return this.#above(path);
    }
    /* git names a new folder once, not what is in it. */
    #above(path) {
        for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1))
            if (this.letters.get(path.slice(0, at)) === 'U')
                return 'U';
        return '';
    }
    rows(path = '', depth = 0, out = []) {
        const listed = this.#open.get(path);
        const entries = [...(listed?.entries ?? [])].sort((a, b) => (b.type === 'directory') - (a.type === 'directory') || a.name.localeCompare(b.name));
        for (const entry of entries) {
            const full = path ? `${path}/${entry.name}` : entry.name;
            out.push({ full, entry, depth });
            if (entry.type === 'directory' && this.#open.has(full))
                this.rows(full, depth + 1, out);
        }
        if (listed?.truncated)
            out.push({ full: `${path}/`, depth, note: `${count(listed.total_count - entries.length, 'more entry', 'more entries')}` });
        return out;
    }
    show() {
        const focused = document.activeElement?.dataset?.path;
        fill(this.el, this.rows().map(({ full, entry, depth, note }) => {
            if (note)
                return h('div.tree-row.dim', note);
            const isFolder = entry.type === 'directory', letter = this.letterOf(full, isFolder);
            const el = h('a', { href: isFolder ? '#/files' : address(full), 'data-path': full, 'aria-expanded': isFolder ? String(this.#open.has(full)) : undefined, role: isFolder ? 'button' : undefined, 'aria-current': full === this.current ? 'true' : undefined, title: full },
                icon(isFolder ? 'folder' : 'files'), h(`span.path${letter ? `.git-${letter}` : ''}`, entry.name), letter && h(`span.git.git-${letter}`, { title: GIT[letter] ?? 'something in it was changed' }, letter));
            el.style.paddingLeft = `${12 + depth * 14}px`;
            if (isFolder)
                el.addEventListener('click', event => { event.preventDefault(); this.toggle(full); });
            return el;
        }));
        if (focused)
            [...this.el.children].find(one => one.dataset.path === focused)?.focus({ preventScroll: true });
    }
}

export function screen(ctx) {
    const { hub, scope } = ctx;
    const tree = new Tree(ctx);
    const pane = h('div.pane');
    const el = h('div.panes', tree.el, pane);
    let path = '', view = 'content', list = null, round = 0;
    scope.add(() => list?.destroy());
    const branch = h('span.tag');

    /* ---- one file ---- */

    function lines(rows, make, label) {
        list?.destroy();
        list = new VirtualList({ key: row => row.key, row: make, estimate: 20, label, role: '' });
        list.set(rows);
        return list.el;
    }
    const showContent = async () => {
        const file = await hub.call('file/get', { path });
        if (file.encoding === 'base64')
            return [h('p.pad.dim', `Binary, ${size(file.size)}: not shown.`)];
        const text = cleanOutput(file.content).split('\n');
        if (text.at(-1) === '')
            text.pop();
        if (!text.length)
            return [h('p.pad.dim', 'The file is empty.')];
        const rows = text.map((line, i) => ({ key: i, line }));
        return [lines(rows, row => h('div.fline', h('span.dnum', row.key + 1), h('span.dtext', row.line)), `Content of ${path}`), file.truncated && h('p.pad.dim', `Only the beginning of ${size(file.size)} is shown.`)];
    };
    const showDiff = async () => {
        const answer = await hub.call('git/diff', { path });
        const rows = parseDiff(answer.diff.startsWith('diff ') ? answer.diff : `diff --git a/x b/x\n${answer.diff}`).flatMap(file => file.hunks.flatMap(hunkRows)).map((line, i) => ({ key: i, line }));
        return [rows.length ? lines(rows, row => lineRow(row.line), `Changes of ${path}`) : h('p.pad.dim', 'It is as in the last commit.')];
    };
    const showHistory = async () => {
        const { commits, more } = await hub.call('git.log', { path, limit: 100 });
        return [h('div.history', { tabindex: '0', role: 'group', 'aria-label': `History of ${path}` }, commits.map(one => h('div.commit', h('code', String(one.id).slice(0, 9)), h('span', one.subject), h('span.dim', one.author), when(Date.parse(one.time)))),
            !commits.length && h('p.pad.dim', 'No commit has it yet.'), more && h('p.pad.dim', 'The newest 100.'))];
    };
    const VIEWS = { content: ['Content', showContent], changes: ['Changes', showDiff], history: ['History', showHistory] };

    /* What the hub can do is known a moment after the page has begun. */
    const tabs = h('div.chips');
    function showTabs() {
        const there = Object.entries(VIEWS).filter(([name]) => name === 'content' || !branch.hidden && (name !== 'history' || hub.has('git.log')));
        fill(tabs, there.map(([name, [label]]) => h('button.chip', { type: 'button', 'aria-pressed': String(name === view), onclick: () => { view = name; showFile(); } }, label)));
    }
    scope.effect(() => {
        hub.methods.value;
        showTabs();
    });
    async function showFile() {
        const mine = ++round;
        showTabs();
        const body = h('div.pane');
        body.style.flex = '1';
        fill(pane, h('div.pane-head', h('b.mono', path), tabs, h('span.grow'), button('Copy path', '', () => copyText(path, 'The path'), { iconName: 'copy' })), body);
        const stop = loading(body, path);
        try {
            const parts = await VIEWS[view][1]();
            stop();
            if (mine === round)
                fill(body, parts);
            list?.render();
        } catch (error) {
            stop();
            if (mine === round)
                fill(body, errorBox(explain(`${path} cannot be shown`, error)));
        }
    }

    /* ---- tree ---- */

    async function refreshGit() {
        try {
            const status = await hub.call('git/status', {});
            tree.letters = gitLetters(status);
            fill(branch, status.branch ?? '');
            branch.hidden = !status.branch;
        } catch {
            tree.letters = new Map();
            branch.hidden = true; /* not a repository */
        }
    }
    async function load() {
        try {
            await Promise.all([path ? tree.reveal(path).catch(() => tree.expand('')) : tree.expand(''), refreshGit()]); /* a file that is gone says so itself */
            tree.current = path;
            tree.show();
            if (path)
                showFile();
            if (!tree.rows().length) {
                el.className = 'inbox is-empty';
                fill(el, empty('The folder is empty', 'What agents write in the project\u2019s folder is shown here.', [['Let the demo agent write a file.', button('Write a file', '', () => ctx.compose({ prompt: 'write a file' }), { needs: 'work' })]]));
            }
        } catch (error) {
            fill(pane, errorBox(explain('The files cannot be listed', error)));
        }
    }
    function open(rest) {
        path = rest.join('/');
        ctx.setTitle(path ? `Files: ${path}` : 'Files');
        if (!path)
            fill(pane, h('p.pad.dim', 'Choose a file.'));
        load();
        return true;
    }
    fill(ctx.tools, branch, button('Refresh', 'The files could not be read again', async () => { await Promise.all([tree.refreshAll(), refreshGit()]); tree.show(); if (path) showFile(); }, { iconName: 'reload' }));
    open(ctx.rest);
    scope.add(ctx.model.listen(({ type }) => type === 'task.changed' && tree.refreshAll().then(refreshGit).then(() => el.contains(tree.el) && tree.show())));
    const move = by => {
        const links = [...tree.el.querySelectorAll('a')];
        links[Math.max(0, Math.min(links.length - 1, links.indexOf(document.activeElement) + by))]?.focus();
    };
    return { el, readdress: rest => open(rest), keys: { j: () => move(1), k: () => move(-1) } };
}
