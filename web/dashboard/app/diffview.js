/* Rows of a diff as elements: a table for short ones, single rows for the virtual list of Changes. */
import { h } from './dom.js';
import { hunkRows } from './diff.js';
import { plusMinus } from './ui.js';

const MOST_ROWS = 200; /* of a diff inside of a card or an item */
const SIGN = { add: '+', del: '\u2212', same: ' ', note: '\\' };
const SPOKEN = { add: 'added', del: 'removed' };

function lineText(row) {
    if (!row.parts)
        return [row.text];
    return row.parts.map(([changed, text]) => changed ? h(row.kind === 'add' ? 'ins' : 'del', text) : text);
}

export function lineRow(row) {
    return h(`div.dline.d-${row.kind}`, h('span.dnum', row.old ?? ''), h('span.dnum', row.new ?? ''), h('span.dsign', { 'aria-label': SPOKEN[row.kind], role: SPOKEN[row.kind] && 'img' }, SIGN[row.kind]),
        h('span.dtext', row.kind === 'note' ? h('em', row.text) : lineText(row)));
}

function half(row, side) {
    if (!row)
        return [h('span.dnum'), h('span.dtext.d-none')];
    return [h('span.dnum', row[side] ?? ''), h(`span.dtext.d-${row.kind}`, row.kind === 'note' ? h('em', row.text) : lineText(row))];
}
export function pairRow({ left, right }) {
    return h('div.dline.dpair', half(left, 'old'), half(right, 'new'));
}

export function fileHead(file) {
    return h('span.dfile', h('code', file.from && file.from !== file.path ? `${file.from} \u2192 ${file.path}` : file.path), ' ', file.change !== 'modified' && h('span.tag', file.change === 'added' ? 'new' : file.change), ' ', file.binary ? h('span.dim', 'binary') : plusMinus(file.additions, file.deletions));
}

/* All of a short diff; of a long one the beginning. */
export function diffTable(file) {
    const rows = file.hunks.flatMap((hunk, i) => [...(i ? [null] : []), ...hunkRows(hunk)]);
    return h('div.diff', h('div.diff-head', fileHead(file)), h('div.diff-body', { tabindex: '0', role: 'group', 'aria-label': `Diff of ${file.path}` },
        rows.slice(0, MOST_ROWS).map(row => row ? lineRow(row) : h('div.dline.d-gap', '\u22ef')), rows.length > MOST_ROWS && h('div.dline.d-gap', `${rows.length - MOST_ROWS} more lines`)));
}
