/* One conversation: its transcript, live; a box to say more; what it changed and what it cost. */
import { fill, h, icon, setText } from './dom.js';
import { explain, isFinal, newKey } from './hub.js';
import { isOver } from './model.js';
import { itemRow } from './session_items.js';
import { seen } from './screen_inbox.js';
import { sidePanel } from './session_side.js';
import { perFrame } from './store.js';
import { brief, number } from './text.js';
import { Transcript, entryOfEvent, entryOfHistory, itemText } from './transcript.js';
import { badge, button, copyText, errorBox, report } from './ui.js';
import { VirtualList } from './vlist.js';

/* Entries of a page. One may have 64 KiB, and an answer ends at 8 MiB: how many there are depends on how long they were so far. */
const FIRST_PAGE = 60, PAGE = 1000, PAGE_BYTES = 2 << 20;
const LINE = 22; /* px; only guessed until a row is in sight */

/* Prompts, questions and ends of this session, as the transcript wants them. */
function extrasOf(model, id) {
    const out = [];
    for (const task of model.sessionTasks(id)) {
        if (task.started)
            out.push({ kind: 'you', time: task.started, order: task.number, rank: 0, text: task.prompt, task, cut: task.cut });
        if (isOver(task) && task.ended)
            out.push({ kind: 'end', time: task.ended, order: task.number, rank: 3, task });
    }
    for (const question of model.questions.values())
        if (question.sessionId === id)
            out.push({ kind: 'question', time: question.created, order: model.tasks.get(question.taskId)?.number ?? 0, rank: 2, question });
    return out;
}

const hasText = wanted => row => (row.block ? row.block.lines.join('\n') : itemText(row.item)).toLowerCase().includes(wanted);

class SessionView {
    constructor(ctx, id) {
        this.ctx = ctx;
        this.id = id;
        this.entryBytes = 4000; /* on the average; learned from each page */
        this.transcript = new Transcript(() => extrasOf(ctx.model, id));
        this.list = new VirtualList({
            key: row => row.key, version: row => row.version, row: (row, old) => this.#row(row, old), estimate: row => row.block ? row.block.lines.length * LINE + 6 : 60, follow: true, label: 'What was said',
            onscroll: atEnd => this.#followed(atEnd), ontop: () => this.older(), onbottom: () => this.newer(),
        });
        ctx.scope.add(() => this.close());
        this.paint = perFrame(() => this.#paint());
        this.status = h('div.session-status', { role: 'status' });
    }
    close() {
        this.over = true;
        this.following?.close();
        this.list.destroy();
    }

    /* ---- loading ---- */

    /* The end first; from there on everything as it happens. */
    async load() {
        this.following?.close();
        let entries;
        try {
            entries = await this.#history('backward', undefined, FIRST_PAGE);
        } catch (error) {
            if (this.over)
                return;
            if (error.reason === 'disconnected') {
                this.reloadWhenOpen = true;
                return;
            }
            if (isFinal(error))
                this.onError?.(error);
            else
                setTimeout(() => this.over || this.load(), 1000);
            return;
        }
        if (this.over)
            return;
        this.whole = !entries.length || entries[0].seq <= 1;
        this.detached = this.transcript.cutShort = false;
        this.foundAt = null;
        this.transcript.reset(entries, this.whole);
        this.loaded = true;
        this.list.set(this.transcript.rows);
        this.list.toEnd();
        this.#followFrom(this.transcript.lastSeq);
    }
    async #history(direction, from, most = PAGE) {
        const limit = Math.min(most, Math.max(20, Math.ceil(PAGE_BYTES / this.entryBytes)));
        const rows = await this.ctx.hub.call('tinyvex/history.sessionTimeline', { session_id: this.id, direction, limit, from_seq: from });
        const entries = rows.map(entryOfHistory);
        if (entries.length)
            this.entryBytes = entries.reduce((sum, one) => sum + one.bytes, 0) / entries.length + 200;
        return entries;
    }
    older() {
        return this.olderPage ??= this.#older().finally(() => { this.olderPage = null; });
    }
    async #older() {
        if (this.whole || !this.loaded || this.over)
            return false;
        const { transcript, list } = this;
        try {
            const first = transcript.firstSeq;
            const entries = (await this.#history('backward', first)).filter(one => one.seq < first);
            if (this.over || transcript.firstSeq !== first)
                return false;
            this.whole = entries.length === 0;
            this.#hold(() => transcript.prepend(entries, this.whole));
            if (transcript.overfull && !list.following) {
                this.#detach();
                transcript.cutEnd();
                list.set(transcript.rows);
            }
            return entries.length > 0;
        } catch (error) {
            report('Earlier text could not be read', error);
            return false;
        }
    }
    /* Below a window that does not reach the end. */
    newer() {
        return this.newerPage ??= this.#newer().finally(() => { this.newerPage = null; });
    }
    async #newer() {
        if (!this.detached || this.over)
            return;
        const { transcript } = this, last = transcript.lastSeq;
        const entries = (await this.#history('forward', last).catch(() => [])).filter(one => one.seq > last);
        if (this.over || !this.detached || transcript.lastSeq !== last)
            return;
        if (!entries.length) {
            this.transcript.cutShort = false;
            this.detached = false;
        }
        this.#hold(() => {
            transcript.reset([...transcript.entries, ...entries], this.whole);
            while (transcript.overfull) {
                transcript.cut();
                this.whole = false;
            }
        });
        if (!this.detached)
            this.#followFrom(transcript.lastSeq);
    }
    /* Fold something else into the rows, and keep what is in sight where it is. */
    #hold(change) {
        const { list, transcript } = this, anchor = list.anchor();
        change();
        this.#findAgain();
        list.set(transcript.rows);
        if (anchor)
            list.holdAt(transcript.rows.findIndex(row => row.seq >= anchor.item.seq), anchor.above);
    }
    /* The reader is somewhere above: what comes at the end is not kept here, but read from the hub when he comes back. */
    #detach() {
        this.following?.close();
        this.detached = this.transcript.cutShort = true;
        this.#followed(false);
    }
    #followFrom(seq) {
        this.following?.close();
        this.following = this.ctx.hub.follow({ stream: `session/${this.id}` }, {
            onEvent: event => this.#take(event), onReset: () => this.load(), onError: error => this.onError?.(error),
        }, { after: seq });
    }

    /* ---- live ---- */

    #take(event) {
        const entry = entryOfEvent(event);
        if (!entry)
            return;
        this.transcript.append(entry);
        this.paint();
    }
    #paint() {
        const { transcript, list } = this;
        if (transcript.overfull && list.following) {
            while (transcript.overfull)
                transcript.cut();
            this.whole = false;
        } else if (transcript.overfull && !this.detached)
            this.#detach();
        list.set(transcript.rows, 0);
        list.forget();
    }
    /* An event of the model. */
    happened({ type, data, time }) {
        if (data.sessionId !== this.id && this.ctx.model.tasks.get(data.taskId)?.sessionId !== this.id || !this.loaded)
            return;
        const { model } = this.ctx, at = Date.parse(time), task = model.tasks.get(data.taskId);
        if (type === 'task.started' && data.attempt === 1)
            this.transcript.happened({ kind: 'you', time: at, text: task?.prompt ?? '', task });
        else if (type === 'task.started')
            this.transcript.happened({ kind: 'notice', time: at, text: `Attempt ${data.attempt} begins.` });
        else if (type === 'task.retrying')
            this.transcript.happened({ kind: 'notice', time: at, text: `Attempt ${data.attempt} failed: ${data.error ?? data.reason}. It is tried again.` });
        else if (/^task\.(completed|failed|cancelled)$/.test(type) && task)
            this.transcript.happened({ kind: 'end', time: at, task });
        else if (type === 'question.asked')
            this.transcript.happened({ kind: 'question', time: at, question: model.questions.get(data.questionId) });
        else
            for (const { item } of this.transcript.rows)
                if (item.question?.id === data.questionId && data.questionId || item.kind === 'end' && item.task.id === data.taskId)
                    item.version++;
        this.paint();
    }
    #followed(atEnd) {
        this.onFollow?.(atEnd && !this.detached);
    }
    follow() {
        if (this.detached)
            this.load();
        else
            this.list.toEnd();
        this.onFollow?.(true);
    }
    pause() {
        this.list.leaveEnd();
    }

    /* ---- finding ---- */

    /* The next place with this text, upwards (-1) or downwards: in the rows that are here, then in what the hub has. */
    async find(text, direction) {
        const wanted = text.toLowerCase(), { rows } = this.transcript;
        const round = this.findRound = {}, has = hasText(wanted);
        const from = this.foundText === wanted && this.foundAt ? rows.findIndex(row => row.key === this.foundAt) : -1;
        this.foundText = wanted;
        for (let i = from < 0 ? direction < 0 ? rows.length - 1 : 0 : from + direction; i >= 0 && i < rows.length; i += direction)
            if (has(rows[i]))
                return this.#found(i);
        if (direction < 0 ? this.whole : !this.detached)
            return false;
        const seq = await this.#findInHistory(wanted, direction, round);
        if (seq === null || this.over || round !== this.findRound)
            return false;
        await this.#loadAround(seq);
        const at = this.#nearest(seq, has);
        return at >= 0 && this.#found(at);
    }
    #nearest(seq, has) {
        const { rows } = this.transcript, near = rows.findLastIndex(row => row.seq <= seq);
        for (let i = 0; i < rows.length; i++)
            for (const at of [near - i, near + i])
                if (rows[at] && has(rows[at]))
                    return at;
        return -1;
    }
    /* Rows were folded anew: the place that was found may be in another one. */
    #findAgain() {
        if (this.foundAt)
            this.foundAt = this.transcript.rows[this.#nearest(this.foundSeq, hasText(this.foundText))]?.key;
    }
    #row(row, old) {
        const el = itemRow(this.ctx, row, old);
        el.classList.toggle('found', row.key === this.foundAt);
        return el;
    }
    /* Pages of the history are looked through as texts; nothing of them is shown. The result is the seq of the place, or null. */
    async #findInHistory(wanted, direction, round) {
        let seq = direction < 0 ? this.transcript.firstSeq : this.transcript.lastSeq, looked = 0, carry = '';
        for (;;) {
            const entries = (await this.#history(direction < 0 ? 'backward' : 'forward', seq)).filter(one => direction < 0 ? one.seq < seq : one.seq > seq);
            if (!entries.length || this.over || round !== this.findRound)
                return null;
            const texts = entries.map(one => (one.update.content?.text ?? JSON.stringify(one.update)).toLowerCase());
            const all = direction < 0 ? texts.join('') + carry : carry + texts.join('');
            let at = direction < 0 ? all.lastIndexOf(wanted) : all.indexOf(wanted);
            if (at >= 0) {
                at -= direction < 0 ? 0 : carry.length;
                let i = 0;
                while (i < texts.length - 1 && at >= texts[i].length)
                    at -= texts[i++].length;
                return entries[i].seq;
            }
            carry = direction < 0 ? all.slice(0, wanted.length) : all.slice(-wanted.length);
            seq = direction < 0 ? entries[0].seq : entries.at(-1).seq;
            looked += entries.length;
            setText(this.status, `Looking ${direction < 0 ? 'further back' : 'further on'}: ${number(looked)} entries without it\u2026`);
        }
    }
    async #loadAround(seq) {
        const before = await this.#history('backward', seq + 1), after = await this.#history('forward', seq, 50);
        const entries = [...before, ...after.filter(one => one.seq > seq)];
        if (this.over)
            return;
        this.#detach();
        this.list.leaveEnd();
        this.whole = entries[0]?.seq <= 1;
        this.transcript.reset(entries, this.whole);
        this.list.set(this.transcript.rows);
    }
    #found(index) {
        const row = this.transcript.rows[index];
        this.foundAt = row.key;
        this.foundSeq = row.seq;
        this.list.leaveEnd();
        this.list.show(index, true);
        for (const el of this.list.body.querySelectorAll('.found'))
            el.classList.remove('found');
        this.list.elementAt(index)?.classList.add('found');
        return true;
    }
}

export function screen(ctx) {
    const { model, scope, hub } = ctx;
    const id = ctx.rest[0];
    const view = new SessionView(ctx, id);
    const list = view.list.el;

    /* ---- above: follow, find, copy, stop ---- */

    const follow = h('button.toggle', { type: 'button', 'aria-pressed': 'true', title: 'Stay at the end (e)', onclick: () => follow.getAttribute('aria-pressed') === 'true' ? view.pause() : view.follow() }, icon('down'), h('span', 'Follow'));
    const find = h('input.find', { type: 'search', placeholder: 'Find', 'aria-label': 'Find in this session' });
    find.addEventListener('keydown', event => {
        if (event.key === 'Enter') {
            event.preventDefault();
            next(event.shiftKey ? 1 : -1);
        }
    });
    const next = async direction => {
        if (!find.value)
            return find.focus();
        const ok = await view.find(find.value, direction);
        setText(view.status, ok ? '' : `\u201c${find.value}\u201d: nothing ${direction < 0 ? 'further up' : 'further down'}.`);
    };
    const copy = button('', 'Nothing was copied', () => copyText(view.transcript.text(), 'The text'), { iconName: 'copy', title: 'Copy as text' });
    copy.setAttribute('aria-label', 'Copy as text');
    const side = sidePanel(ctx, id);
    const sideButton = button('Details', '', () => side.open(), { iconName: 'side', title: 'What it changed, cost, time (v)', kind: 'side-button' });
    sideButton.setAttribute('aria-label', 'Details');
    follow.setAttribute('aria-label', 'Follow');
    const stop = button('Stop', 'It was not stopped', () => stopRunning(), { iconName: 'stop', kind: 'deny', title: 'Cancel what runs (.)', hint: '.' });
    fill(ctx.tools, stop, follow, find, copy, sideButton);
    view.onFollow = on => follow.setAttribute('aria-pressed', String(on));

    const running = () => model.sessionTasks(id).filter(task => !isOver(task));
    async function stopRunning() {
        const [first] = running().filter(task => task.state === 'running');
        if (first)
            await hub.call('task.cancel', { taskId: first.id });
    }

    /* ---- below: say more ---- */

    const box = h('textarea.say', { rows: '2', 'aria-label': 'Say more' });
    const queued = h('div.queued-prompts');
    let key = newKey();
    const send = button('Send', 'It was not sent', async () => {
        if (!box.value.trim())
            return box.focus();
        await hub.call('session.prompt', { sessionId: id, prompt: box.value }, { idempotencyKey: key });
        key = newKey();
        box.value = '';
        view.follow();
    }, { kind: 'primary', iconName: 'send', title: 'Send (Ctrl Enter)' });
    box.addEventListener('keydown', event => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            send.click();
        }
    });
    const composer = h('div.composer', queued, h('div.composer-row', box, send));
    const closedNote = h('div.composer', h('p.dim', 'This session is closed. ', button('Resume it', 'It was not resumed', () => hub.call('session.resume', { sessionId: id }), { needs: 'work' })));

    function refresh() {
        const session = model.sessions.get(id);
        const tasks = model.sessionTasks(id), open = running();
        ctx.setTitle(session ? brief(model.sessionTitle(session), 160) : id);
        stop.hidden = !open.some(task => task.state === 'running') || !hub.may('work');
        box.placeholder = open.length ? 'Say more while it works: it is queued behind what runs' : 'Say more';
        const waiting = tasks.filter(task => task.state === 'queued');
        fill(queued, waiting.map(task => h('div.queued-prompt', badge('queued'), h('span', brief(task.prompt, 200)), button('', 'It was not cancelled', () => hub.call('task.cancel', { taskId: task.id }), { iconName: 'close', title: 'Cancel this' }))));
        queued.querySelectorAll('button').forEach(one => one.setAttribute('aria-label', 'Cancel this prompt'));
        composer.hidden = session?.closed || !hub.may('work');
        closedNote.hidden = !session?.closed;
        side.refresh();
        const failed = tasks.filter(task => task.state === 'failed' && !task.seen);
        if (failed.length && document.visibilityState === 'visible' && hub.has('task.seen') && hub.may('work'))
            failed.forEach(task => seen(ctx, task).catch(() => {}));
    }
    scope.effect(() => {
        model.version.value;
        model.ready.value;
        hub.methods.value;
        refresh();
    });
    scope.add(model.listen(event => view.happened(event)));
    const column = h('div.session-column', list, view.status, composer, closedNote);
    view.onError = error => fill(column, errorBox(explain('This session cannot be shown', error), h('p', h('a', { href: '#/sessions' }, 'All sessions'))));
    /* The model brings prompts and ends; the first look waits for it. */
    let begun = false;
    scope.effect(() => {
        hub.opened.value;
        if (model.ready.value && (!begun || view.reloadWhenOpen)) {
            begun = true;
            view.reloadWhenOpen = false;
            view.load();
        }
    });

    const card = () => view.transcript.rows.findLast(row => row.item.question?.state === 'open')?.item.card;
    const rowsMove = by => list.scrollBy({ top: by * 120 });
    return {
        el: h('div.session', column, side.el),
        back: () => ctx.go('#/sessions'),
        keys: {
            j: () => rowsMove(1), k: () => rowsMove(-1), '/': () => { find.focus(); find.select(); }, n: () => next(-1), N: () => next(1), e: () => view.follow(), c: () => box.focus(), '.': () => stop.hidden || stop.click(),
            a: () => card()?.press('allow'), d: () => card()?.press('deny'), v: () => side.open(),
            Enter: () => { const [last] = model.sessionTasks(id).filter(task => task.changes?.files).slice(-1); if (last) ctx.go(`#/changes/task/${last.id}`); },
        },
    };
}
