/* A small part of Markdown, for what agents say: headings, lists, quotes, tables, code, emphasis, links. No markup passes through, no
 * image is loaded, and a link shows the host it goes to.
 *
 * Text comes in pieces. A MarkdownStream cuts it into blocks; all but the last one are final and never looked at again. A block has a
 * limited size, so a log of a million lines is many small blocks. */
import { h } from './dom.js';

const MOST_LINES = 40, MOST_BYTES = 6000, DEEPEST = 6;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;
const TABLE_LINE = /^\s*\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)+\|?\s*$/;
const INDENTED = /^(?: {4}|\t)(.*)$/;

export class MarkdownStream {
    blocks = [];
    dropped = 0; /* blocks that were let go of, before the first of blocks */
    #partial = ''; /* the line that has not ended */
    #shownPartial = false; /* it is in the last block already */
    #fence = null;
    get count() {
        return this.dropped + this.blocks.length;
    }
    block(index) {
        return this.blocks[index - this.dropped];
    }
    /* Let go of all blocks before this one; the last two stay, because they may still change. */
    dropBefore(index) {
        const n = Math.min(index - this.dropped, this.blocks.length - 2);
        if (n <= 0)
            return;
        this.blocks.splice(0, n);
        this.dropped += n;
        if (this.undo)
            this.undo.blocks -= n;
    }
    push(text) {
        this.#takeBackPartial();
        const lines = (this.#partial + text).split('\n');
        this.#partial = lines.pop();
        for (const line of lines)
            this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
        this.#showPartial();
    }
    /* The line that has not ended is shown as if it had; when more of it comes, that is undone. */
    #showPartial() {
        this.undo = null;
        if (!this.#partial)
            return;
        if (this.#partial.length > MOST_BYTES) { /* a line without end */
            const line = this.#partial;
            this.#partial = '';
            this.#line(line);
            return;
        }
        const last = this.blocks.at(-1);
        this.undo = { blocks: this.blocks.length, lines: last?.lines.length, closed: last?.closed, type: last?.type, bytes: last?.bytes, fence: this.#fence, blank: this.blank };
        this.#line(this.#partial);
        this.#shownPartial = true;
    }
    #takeBackPartial() {
        if (!this.#shownPartial)
            return;
        this.#shownPartial = false;
        this.blocks.length = this.undo.blocks;
        this.#fence = this.undo.fence;
        const last = this.blocks.at(-1);
        if (!last)
            return;
        last.lines.length = this.undo.lines;
        last.closed = this.undo.closed;
        last.type = this.undo.type;
        last.bytes = this.undo.bytes;
        this.blank = this.undo.blank;
        last.version++;
    }
    #open(type, line, more) {
        const last = this.blocks.at(-1);
        if (last)
            last.closed = true;
        this.blocks.push({ type, lines: line === undefined ? [] : [line], bytes: line?.length ?? 0, closed: false, version: 0, ...more });
    }
    #append(line) {
        const last = this.blocks.at(-1);
        last.lines.push(line);
        last.bytes += line.length;
        last.version++;
    }
    #current(...types) {
        const last = this.blocks.at(-1);
        return last && !last.closed && types.includes(last.type) && last.lines.length < MOST_LINES && last.bytes < MOST_BYTES;
    }
    #code(line) {
        if (this.#current('code'))
            this.#append(line);
        else
            this.#open('code', line, { language: this.#fence?.language, more: this.#fence?.begun });
        if (this.#fence)
            this.#fence = { ...this.#fence, begun: true };
    }
    #line(line) {
        if (this.#fence)
            return this.#inFence(line);
        const last = this.blocks.at(-1);
        if (!line.trim()) {
            if (last && last.type !== 'code')
                last.closed = true;
            this.blank = true;
            return;
        }
        const afterBlank = this.blank || !last || last.closed;
        this.blank = false;
        this.#block(line, last, afterBlank);
    }
    #inFence(line) {
        const fence = FENCE.exec(line);
        if (!fence || !fence[1].startsWith(this.#fence.mark) || fence[2].trim())
            return this.#code(line);
        this.#fence = null;
        const last = this.blocks.at(-1);
        if (last)
            last.closed = true;
    }
    #block(line, last, afterBlank) {
        let found;
        if ((found = FENCE.exec(line))) {
            if (last)
                last.closed = true;
            this.#fence = { mark: found[1], language: found[2].trim().split(/\s/)[0] };
        } else if ((found = HEADING.exec(line)))
            this.#open('heading', found[2], { level: found[1].length });
        else if (RULE.test(line))
            this.#open('rule', '');
        else if ((found = ITEM.exec(line)))
            this.#open('item', found[3], { indent: Math.min(DEEPEST, Math.floor(found[1].replace(/\t/g, '    ').length / 2)), mark: found[2] });
        else if ((found = QUOTE.exec(line)))
            this.#current('quote') ? this.#append(found[1]) : this.#open('quote', found[1]);
        else if ((found = INDENTED.exec(line)) && (afterBlank ? last?.type !== 'item' : last?.type === 'code'))
            this.#current('code') ? this.#append(found[1]) : this.#open('code', found[1]);
        else
            this.#plain(line, last);
    }
    #plain(line, last) {
        if (TABLE_LINE.test(line) && this.#current('text') && last.lines.length === 1 && last.lines[0].includes('|')) {
            last.type = 'table';
            this.#append(line);
        } else if (this.#current('table') && line.includes('|'))
            this.#append(line);
        else if (this.#current('text', 'item'))
            this.#append(last.type === 'item' ? line.trim() : line);
        else
            this.#open('text', line, { more: last?.type === 'text' && !last.closed });
    }
}

/* ---- inside of a line ---- */

const INLINE = /\\([\\`*_{}[\]()#+\-.!~|<>])|(`+)([^`]|[^`][\s\S]*?[^`])\2(?!`)|!?\[([^\]\n]{0,200})\]\(\s*<?([^\s)>]{1,2000})>?(?:\s+"[^"\n]*")?\s*\)|<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>|(https?:\/\/[^\s<>"'\x60\])]{1,2000})|(\*\*|__)(?=\S)([^\n]{1,300}?\S)\8|(\*|_)(?=\S)([^\n*_]{0,500}?[^\s*_])\10(?![\w*])|~~(?=\S)([^\n~]{1,1000})~~/g;

/* Only to http, https and mail, never with a name and a password in it, which would hide the host. */
export function safeUrl(text) {
    let url;
    try {
        url = new URL(text);
    } catch {
        return null;
    }
    return /^(https?|mailto):$/.test(url.protocol) && !url.username && !url.password ? url : null;
}

export function link(text, target) {
    const url = safeUrl(target);
    if (!url)
        return text === target ? text : `${text} (${target})`;
    const host = url.protocol === 'mailto:' ? url.pathname : url.host;
    const shown = h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow', title: url.href }, text);
    return text.startsWith(`${url.protocol}//${host}`) ? shown : [shown, h('span.host', ` ${host}`)];
}

export function inline(text, depth = 0) {
    const out = [];
    let from = 0;
    if (depth > 3)
        return [text];
    for (const m of text.matchAll(INLINE)) {
        const before = text[m.index - 1];
        if ((m[8] === '__' || m[10] === '_') && before && /\w/.test(before)) /* snake_case */
            continue;
        if (m.index > from)
            out.push(text.slice(from, m.index));
        from = m.index + m[0].length;
        out.push(inlineNode(m, depth));
    }
    out.push(text.slice(from));
    return out;
}

function inlineNode(m, depth) {
    if (m[1])
        return m[1];
    if (m[2])
        return h('code', m[3].replace(/^ (.*) $/, '$1'));
    if (m[5] !== undefined)
        return m[0].startsWith('!') ? ['image: ', link(m[4] || m[5], m[5])] : link(m[4] || m[5], m[5]);
    if (m[6])
        return link(m[6], m[6]);
    if (m[7]) {
        const end = /[.,;:!?]+$/.exec(m[7])?.[0] ?? '';
        const url = m[7].slice(0, m[7].length - end.length);
        return [link(url, url), end];
    }
    if (m[9])
        return h('strong', inline(m[9], depth + 1));
    if (m[11])
        return h('em', inline(m[11], depth + 1));
    return h('del', m[12]);
}

/* ---- one block ---- */

const cells = line => line.trim().replace(/^\||(?<!\\)\|$/g, '').split(/(?<!\\)\|/).map(cell => cell.trim());
const SIDES = [[/^:.*:$/, 'center'], [/:$/, 'right']];

function table(lines) {
    const [head, marks, ...rows] = lines.map(cells);
    const sides = marks.map(mark => ({ textAlign: SIDES.find(([is]) => is.test(mark))?.[1] }));
    return h('div.tablebox', { tabindex: '0', role: 'group', 'aria-label': 'Table' }, h('table',
        h('thead', h('tr', head.map((cell, i) => h('th', { scope: 'col', style: sides[i] }, inline(cell))))),
        h('tbody', rows.map(row => h('tr', head.map((_, i) => h('td', { style: sides[i] }, inline(row[i] ?? ''))))))));
}

export function renderBlock(block) {
    const text = block.lines.join('\n');
    switch (block.type) {
    case 'heading':
        /* The page's own headings are above these. */
        return h(`div.md-h.md-h${block.level}`, { role: 'heading', 'aria-level': Math.min(6, block.level + 1) }, inline(text));
    case 'rule':
        return h('hr');
    case 'code':
        return h('pre.md-code', { tabindex: '0', role: 'group', 'aria-label': block.language ? `Code, ${block.language}` : 'Code' }, h('code', text));
    case 'quote':
        return h('blockquote', inline(text));
    case 'table':
        return table(block.lines);
    case 'item': {
        const task = /^\[([ xX])\]\s+/.exec(text);
        const mark = task ? (task[1] === ' ' ? '\u2610' : '\u2611') : /\d/.test(block.mark) ? block.mark : '\u2022';
        const el = h('div.md-item', h('span.md-mark', mark), h('span', inline(task ? text.slice(task[0].length) : text)));
        el.style.paddingLeft = `${block.indent * 16}px`;
        return el;
    }
    default:
        return h('p', inline(text));
    }
}

/* A whole text at once. */
export function markdown(text) {
    const stream = new MarkdownStream();
    stream.push(`${text}\n`);
    return h('div.md', stream.blocks.map(renderBlock));
}
