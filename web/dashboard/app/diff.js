/* Diffs: read from git's unified form or made from two texts, words marked, as rows that can be shown inline or side by side. */

const MOST_LINES_COMPARED = 4000; /* beyond that, a text is shown as replaced as a whole */
const MOST_WORDS = 400;

/* ---- git's form ---- */

function unquote(path) {
    if (!path.startsWith('"'))
        return path;
    const bytes = [];
    const escapes = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11 };
    const inside = path.slice(1, -1);
    for (let i = 0; i < inside.length; i++) {
        if (inside[i] !== '\\') {
            bytes.push(...new TextEncoder().encode(inside[i]));
            continue;
        }
        const octal = /^[0-7]{3}/.exec(inside.slice(i + 1));
        bytes.push(octal ? parseInt(octal[0], 8) : escapes[inside[i + 1]] ?? inside.charCodeAt(i + 1));
        i += octal ? 3 : 1;
    }
    return new TextDecoder().decode(new Uint8Array(bytes));
}

const stripSide = path => unquote(path.replace(/\t$/, '')).replace(/^[ab]\//, '');

function headLine(file, line) {
    const [, word, rest] = /^(--- |\+\+\+ |rename from |rename to |new file mode |deleted file mode |old mode |new mode |Binary files |GIT binary patch)(.*)$/.exec(line) ?? [];
    if (word === '--- ' && rest !== '/dev/null')
        file.from = stripSide(rest);
    else if (word === '+++ ' && rest !== '/dev/null')
        file.path = stripSide(rest);
    else if (word === 'rename from ') {
        file.from = unquote(rest);
        file.change = 'renamed';
    } else if (word === 'rename to ')
        file.path = unquote(rest);
    else if (word === 'new file mode ')
        file.change = 'added';
    else if (word === 'deleted file mode ')
        file.change = 'deleted';
    else if (word === 'new mode ')
        file.mode = rest;
    else if (word?.startsWith('Binary') || word?.startsWith('GIT'))
        file.binary = true;
}

/* [{ path, from, change, binary, mode, hunks: [{ oldStart, newStart, title, lines: [[sign, text]] }] }] */
export function parseDiff(text) {
    const files = [];
    let file, hunk, oldLeft = 0, newLeft = 0;
    for (const line of text.split('\n')) {
        if (hunk && (oldLeft > 0 || newLeft > 0 || line.startsWith('\\'))) {
            const sign = line[0] ?? ' ';
            if (sign === '\\') {
                hunk.lines.push(['\\', line.slice(2)]);
                continue;
            }
            hunk.lines.push([sign, line.slice(1)]);
            oldLeft -= sign !== '+';
            newLeft -= sign !== '-';
            continue;
        }
        const at = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
        if (line.startsWith('diff --git ')) {
            const names = /^diff --git ("?a\/.*"?) ("?b\/.*"?)$/.exec(line);
            file = { path: names ? stripSide(names[2]) : '', change: 'modified', hunks: [], additions: 0, deletions: 0 };
            files.push(file);
            hunk = null;
        } else if (at && file) {
            hunk = { oldStart: +at[1], newStart: +at[3], title: at[5], lines: [] };
            oldLeft = +(at[2] ?? 1);
            newLeft = +(at[4] ?? 1);
            file.hunks.push(hunk);
        } else if (file && !hunk)
            headLine(file, line);
    }
    for (const one of files)
        for (const { lines } of one.hunks)
            for (const [sign] of lines) {
                one.additions += sign === '+';
                one.deletions += sign === '-';
            }
    return files;
}

/* ---- two texts ---- */

/* The longest common run of two lists, by Myers' method; [[sign, item]]. Beyond most differences it gives up: null. */
export function compare(a, b, most) {
    let start = 0, endA = a.length, endB = b.length;
    while (start < endA && start < endB && a[start] === b[start])
        start++;
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1])
        endA--, endB--;
    const middle = myers(a.slice(start, endA), b.slice(start, endB), most);
    return middle && [...a.slice(0, start).map(one => [' ', one]), ...middle, ...a.slice(endA).map(one => [' ', one])];
}

function myers(a, b, most) {
    const n = a.length, m = b.length, limit = Math.min(n + m, most);
    let v = new Map([[1, 0]]);
    const trace = [];
    for (let d = 0; d <= limit; d++) {
        trace.push(new Map(v));
        for (let k = -d; k <= d; k += 2) {
            let x = k === -d || k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1) ? v.get(k + 1) ?? 0 : (v.get(k - 1) ?? 0) + 1;
            let y = x - k;
            while (x < n && y < m && a[x] === b[y])
                x++, y++;
            v.set(k, x);
            if (x >= n && y >= m)
                return walkBack(trace, a, b);
        }
    }
    return null;
}

function walkBack(trace, a, b) {
    const out = [];
    let x = a.length, y = b.length;
    for (let d = trace.length - 1; d >= 0; d--) {
        const v = trace[d], k = x - y;
        const before = k === -d || k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1) ? k + 1 : k - 1;
        const beforeX = d ? v.get(before) ?? 0 : 0, beforeY = beforeX - before;
        while (x > beforeX && y > Math.max(0, beforeY) && x > 0)
            out.push([' ', a[--x]]), y--;
        if (d === 0)
            break;
        if (x === beforeX)
            out.push(['+', b[--y]]);
        else
            out.push(['-', a[--x]]);
    }
    return out.reverse();
}

const splitLines = text => text === '' ? [] : text.replace(/\n$/, '').split('\n');

/* One file of parseDiff's form, from what it was to what it becomes. null: there was none. */
export function diffTexts(path, before, after, context = 3) {
    const a = splitLines(before ?? ''), b = splitLines(after ?? '');
    const all = a.length + b.length > MOST_LINES_COMPARED * 2 ? null : compare(a, b, 1500);
    const lines = all ?? [...a.map(one => ['-', one]), ...b.map(one => ['+', one])];
    const file = { path, change: before === null || before === undefined ? 'added' : 'modified', hunks: cutHunks(lines, context), additions: 0, deletions: 0 };
    for (const [sign] of lines) {
        file.additions += sign === '+';
        file.deletions += sign === '-';
    }
    return file;
}

function cutHunks(lines, context) {
    const hunks = [];
    let oldLine = 1, newLine = 1, hunk = null, same = 0;
    lines.forEach(([sign, text], i) => {
        if (sign !== ' ') {
            if (!hunk) {
                const lead = lines.slice(Math.max(0, i - context), i).filter(one => one[0] === ' ');
                hunk = { oldStart: oldLine - lead.length, newStart: newLine - lead.length, title: '', lines: [...lead] };
                hunks.push(hunk);
            }
            hunk.lines.push([sign, text]);
            same = 0;
        } else if (hunk) {
            hunk.lines.push([sign, text]);
            if (++same > 2 * context) {
                hunk.lines.length -= same - context;
                hunk = null;
            }
        }
        oldLine += sign !== '+';
        newLine += sign !== '-';
    });
    if (hunk && same > context)
        hunk.lines.length -= same - context;
    return hunks;
}

/* ---- words ---- */

const words = text => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

/* What differs in two versions of a line: [[[changed, text]...] of the old, ... of the new], or null if nearly everything does. */
export function compareWords(before, after) {
    const a = words(before), b = words(after);
    if (a.length > MOST_WORDS || b.length > MOST_WORDS)
        return null;
    const all = compare(a, b, 200);
    if (!all)
        return null;
    const same = all.reduce((sum, [sign, one]) => sum + (sign === ' ' ? one.trim().length : 0), 0);
    if (same * 3 < Math.max(before.trim().length, after.trim().length))
        return null;
    const side = skip => {
        const parts = [];
        for (const [sign, one] of all) {
            if (sign === skip)
                continue;
            const changed = sign !== ' ';
            if (parts.length && parts.at(-1)[0] === changed)
                parts.at(-1)[1] += one;
            else
                parts.push([changed, one]);
        }
        return parts;
    };
    return [side('+'), side('-')];
}

/* ---- rows ---- */

/* Rows of one hunk: { kind: 'same'|'add'|'del'|'note', old?, new?, text, parts? }. Runs of deletions and additions are paired line by
 * line, for the words. */
export function hunkRows(hunk) {
    const rows = [];
    let old = hunk.oldStart, now = hunk.newStart;
    for (let i = 0; i < hunk.lines.length;) {
        const [sign, text] = hunk.lines[i];
        if (sign === ' ' || sign === '\\') {
            rows.push(sign === ' ' ? { kind: 'same', old: old++, new: now++, text } : { kind: 'note', text });
            i++;
            continue;
        }
        const gone = [], come = [];
        for (; hunk.lines[i]?.[0] === '-' || hunk.lines[i]?.[0] === '\\'; i++)
            hunk.lines[i][0] === '-' ? gone.push({ kind: 'del', old: old++, text: hunk.lines[i][1] }) : gone.push({ kind: 'note', text: hunk.lines[i][1] });
        for (; hunk.lines[i]?.[0] === '+' || hunk.lines[i]?.[0] === '\\'; i++)
            hunk.lines[i][0] === '+' ? come.push({ kind: 'add', new: now++, text: hunk.lines[i][1] }) : come.push({ kind: 'note', text: hunk.lines[i][1] });
        pairWords(gone.filter(one => one.kind === 'del'), come.filter(one => one.kind === 'add'));
        rows.push(...gone, ...come);
    }
    return rows;
}

function pairWords(gone, come) {
    for (let j = 0; j < Math.min(gone.length, come.length); j++) {
        const found = compareWords(gone[j].text, come[j].text);
        if (found)
            [gone[j].parts, come[j].parts] = found;
    }
}

/* The same as pairs, left and right. */
export function sideRows(rows) {
    const out = [];
    for (let i = 0; i < rows.length;) {
        if (rows[i].kind !== 'del' && rows[i].kind !== 'add') {
            out.push({ left: rows[i], right: rows[i] });
            i++;
            continue;
        }
        const gone = [], come = [];
        while (rows[i]?.kind === 'del')
            gone.push(rows[i++]);
        while (rows[i]?.kind === 'add')
            come.push(rows[i++]);
        for (let j = 0; j < Math.max(gone.length, come.length); j++)
            out.push({ left: gone[j], right: come[j] });
    }
    return out;
}
