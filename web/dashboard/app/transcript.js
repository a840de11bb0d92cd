/* What was said in a session, as items with rows that a virtual list can show. Entries come in the order of the session's stream, from
 * pages of its history and as they happen; what is not in that stream (prompts, questions, ends of turns) comes from the model and is
 * put where its time belongs.
 *
 * Only a window of a long session is kept. Entries that fall out of it are read from the hub again when somebody scrolls there. */
import { MarkdownStream } from './markdown.js';
import { cleanOutput } from './text.js';

const MOST_ENTRIES = 12_000, MOST_BYTES = 2 << 20;

/* One thing that is shown: kind, when, and whatever its row needs. version rises when it changes. The key is the same when the same is
 * folded again, so that a row keeps its element and its height. */
function makeItem(kind, time, seq, more) {
    const about = more.task?.id ?? more.question?.id ?? '';
    return { key: `${kind}-${about || seq}-${kind === 'notice' ? time : ''}`, kind, time, seq, version: 0, ...more };
}

export class Transcript {
    entries = [];
    rows = []; /* { key, item, block?, first, version, seq } */
    #bytes = 0;
    #open = null; /* the item that text goes to */
    #plan = null;
    #tools = new Map();
    #turn = null;
    #extras = []; /* sorted by time; those before #nextExtra are in the rows */
    #nextExtra = 0;
    #at = 0; /* the seq that was folded last: what comes from the model lies behind it */
    /* extras(): what the model knows of this session, [{ time, rank, kind, ... }] */
    constructor(extras) {
        this.extras = extras;
    }
    get firstSeq() {
        return this.entries[0]?.seq ?? 0;
    }
    get lastSeq() {
        return this.entries.at(-1)?.seq ?? 0;
    }

    /* ---- in ---- */

    /* All anew: what is older than the first entry stays out, unless nothing is older. */
    reset(entries, whole) {
        this.entries = entries;
        this.whole = whole;
        this.#bytes = entries.reduce((sum, one) => sum + one.bytes, 0);
        this.rows = [];
        this.#open = this.#plan = this.#turn = null;
        this.#tools.clear();
        const from = whole || !entries.length ? -Infinity : entries[0].time, to = this.cutShort && entries.length ? entries.at(-1).time : Infinity;
        this.#extras = this.extras().filter(one => one.time >= from && one.time <= to).sort((a, b) => a.time - b.time || a.order - b.order || a.rank - b.rank);
        this.#nextExtra = 0;
        this.#at = this.firstSeq;
        entries.forEach((entry, i) => this.#fold(entry, entries[i + 1]));
        this.#extrasUntil(Infinity, 9);
    }
    prepend(older, whole) {
        this.reset([...older, ...this.entries], whole);
    }
    append(entry) {
        this.entries.push(entry);
        this.#bytes += entry.bytes;
        this.#fold(entry);
    }
    get overfull() {
        return this.entries.length > MOST_ENTRIES || this.#bytes > MOST_BYTES && this.entries.length > 8;
    }
    /* Let go of the oldest quarter. */
    cut() {
        const { seq } = this.entries[Math.ceil(this.entries.length / 4)];
        this.entries = this.entries.filter(one => one.seq >= seq);
        this.#bytes = this.entries.reduce((sum, one) => sum + one.bytes, 0);
        this.whole = false;
        const keep = this.rows.findIndex(row => row.seq >= seq);
        if (keep <= 0)
            return;
        this.rows.splice(0, keep);
        const [{ item, at }] = this.rows;
        if (at)
            item.stream.dropBefore(at);
    }
    /* Let go of the newest quarter. */
    cutEnd() {
        this.reset(this.entries.slice(0, Math.floor(this.entries.length * 3 / 4)), this.whole);
    }
    /* Something from the model that just happened. */
    happened(extra) {
        this.#putExtra(extra);
    }

    /* ---- folding ---- */

    #extrasUntil(time, rank) {
        for (; this.#nextExtra < this.#extras.length; this.#nextExtra++) {
            const one = this.#extras[this.#nextExtra];
            if (one.time > time || one.time === time && one.rank > rank)
                return;
            this.#putExtra(one);
        }
    }
    #putExtra(extra) {
        if (extra.kind === 'you') {
            this.#plan = null;
            this.#turn = extra.task;
        }
        this.#open = null;
        this.#row(makeItem(extra.kind, extra.time, this.#at, extra));
    }
    #row(item) {
        this.rows.push({ key: item.key, item, first: true, seq: item.seq, get version() { return item.version; } });
        return item;
    }
    #fold(entry, next) {
        this.#extrasUntil(entry.time, 1);
        this.#at = entry.seq;
        const { update } = entry;
        if (entry.stream)
            return this.#text(entry.stream === 'stderr' ? 'stderr' : 'agent', entry, entry.text);
        const folds = {
            agent_message_chunk: () => this.#content('agent', entry),
            agent_thought_chunk: () => this.#content('thought', entry),
            user_message_chunk: () => this.#prompt(entry, next),
            plan: () => this.#putPlan(entry),
            tool_call: () => this.#tool(entry),
            tool_call_update: () => this.#tool(entry),
        };
        folds[update.sessionUpdate]?.();
    }
    /* History shows a task's prompt before its first update, with the same seq. The model has it too, perhaps cut. */
    #prompt(entry, next) {
        const last = this.rows.findLast(row => row.item.kind === 'you')?.item;
        const text = entry.update.content?.text ?? '';
        if (last && (next?.seq === entry.seq || last.text.startsWith(text.slice(0, 100)))) {
            if (last.cut) {
                last.text = text;
                last.version++;
            }
            return;
        }
        this.#open = null;
        this.#row(makeItem('you', entry.time, entry.seq, { text }));
    }
    #content(kind, entry) {
        const { content } = entry.update;
        if (content?.type === 'text')
            this.#text(kind, entry, content.text);
        else if (content)
            this.#row(makeItem('notice', entry.time, entry.seq, { text: describeContent(content) }));
    }
    #text(kind, entry, text) {
        if (this.#open?.kind !== kind) {
            this.#open = makeItem(kind, entry.time, entry.seq, { stream: new MarkdownStream(), shown: 0 });
            if (kind === 'thought') {
                this.#open.text = '';
                this.#row(this.#open);
            }
        }
        const item = this.#open;
        if (kind === 'thought') {
            item.text += text;
            item.version++;
            return;
        }
        item.stream.push(cleanOutput(text));
        this.#blockRows(item, entry.seq);
    }
    /* A row for each block of a text. The last ones may have been taken back, because a line went on. */
    #blockRows(item, seq) {
        const { stream } = item;
        while (item.shown > stream.count) {
            this.rows.pop();
            item.shown--;
        }
        for (; item.shown < stream.count; item.shown++) {
            const at = item.shown, block = stream.block(at);
            /* By its place, not by the block: a line that goes on may turn it into another one. */
            const nth = this.rows.at(-1)?.seq === seq ? (this.rows.at(-1).nth ?? 0) + 1 : 0;
            this.rows.push({ key: `${item.kind}-${seq}.${nth}`, nth, at, item, first: at === 0, seq, get block() { return stream.block(at) ?? block; }, get version() { return `${this.block.type}${this.block.version}.${this.block.lines.length}.${this.block.bytes}`; } });
        }
    }
    #putPlan(entry) {
        if (!this.#plan) {
            this.#open = null;
            this.#plan = this.#row(makeItem('plan', entry.time, entry.seq, {}));
        }
        this.#plan.entries = entry.update.entries ?? [];
        this.#plan.version++;
    }
    #tool(entry) {
        const { sessionUpdate, ...more } = entry.update;
        let item = this.#tools.get(more.toolCallId);
        if (!item || sessionUpdate === 'tool_call' && item.ended) {
            this.#open = null;
            item = this.#row(makeItem('tool', entry.time, entry.seq, { call: {} }));
            this.#tools.set(more.toolCallId, item);
        }
        for (const name in more)
            if (more[name] !== null && more[name] !== undefined)
                item.call[name] = more[name];
        item.ended = item.call.status === 'completed' || item.call.status === 'failed';
        item.endTime = entry.time;
        item.version++;
    }
    /* ---- out ---- */

    /* Everything in the window as plain text. */
    text() {
        const out = [];
        for (const { item, block, first } of this.rows) {
            if (first)
                out.push(`\n${item.kind}:`);
            if (block)
                out.push(block.lines.join('\n'));
            else
                out.push(itemText(item));
        }
        return out.join('\n').trim();
    }
}

export function itemText(item) {
    switch (item.kind) {
    case 'plan':
        return item.entries.map(one => `[${one.status}] ${one.content}`).join('\n');
    case 'tool':
        return [`${item.call.kind ?? 'tool'}: ${item.call.title ?? ''} (${item.call.status ?? ''})`, ...(item.call.content ?? []).map(contentText)].join('\n');
    case 'question':
        return `${item.question.title} (${item.question.state})`;
    case 'end':
        return `${item.task.state}${item.task.error ? `: ${item.task.error}` : ''}`;
    default:
        return item.text ?? '';
    }
}

export function contentText(content) {
    if (content.type === 'content')
        return content.content?.text ?? describeContent(content.content ?? {});
    if (content.type === 'diff')
        return `${content.path}\n${(content.newText ?? '')}`;
    return content.output ?? content.text ?? '';
}

export function describeContent(content) {
    const what = content.type === 'resource_link' || content.type === 'resource' ? content.uri ?? content.resource?.uri ?? '' : content.mimeType ?? '';
    return `[${content.type}${what ? ` ${what}` : ''}: not shown here]`;
}

/* From an event of the stream, or from a row of tinyvex/history.sessionTimeline. */
export function entryOfEvent({ seq, time, type, data }) {
    const at = Date.parse(time);
    if (type === 'session.output')
        return { seq, time: at, stream: data.stream, text: data.text, bytes: data.text.length };
    if (type === 'session.update')
        return { seq, time: at, update: data.update, bytes: data.update.content?.text?.length ?? 300 };
    return null;
}
export function entryOfHistory({ update, _meta }) {
    return { seq: _meta.seq, time: _meta.ts, update, bytes: update.content?.text?.length ?? 300 };
}
