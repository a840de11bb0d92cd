/* One row of a session: your message, the agent's text, a thought, the plan, a tool call, a question, a notice, the end of a turn. */
import { diffTexts } from './diff.js';
import { diffTable } from './diffview.js';
import { fill, h, icon, setText } from './dom.js';
import { markdown, renderBlock } from './markdown.js';
import { QuestionCard } from './question.js';
import { brief, cleanOutput, count, duration, money, number } from './text.js';
import { contentText, describeContent } from './transcript.js';
import { badge, plusMinus, when } from './ui.js';

const MOST_SHOWN = 20_000; /* characters of what a tool said */
const LABELS = { you: 'you', agent: 'agent', stderr: 'stderr', thought: 'thought', plan: 'plan', tool: 'tool', question: 'asks', notice: 'notice', end: '' };
const PLAN = { completed: '\u2713', in_progress: '\u25d0', pending: '\u25cb' };
const CALLS = { pending: 'queued', in_progress: 'running', completed: 'completed', failed: 'failed' };

function frame(row, ...content) {
    const label = row.first ? LABELS[row.item.kind] ?? row.item.kind : '';
    return h(`div.item.item-${row.item.kind}${row.first ? '.first' : ''}`, { role: 'listitem' }, h('div.item-label', label), h('div.item-body', content));
}

function plan(item) {
    return h('ul.plan', item.entries.map(one => h(`li.plan-${one.status}`, h('span.plan-mark', { 'aria-hidden': 'true' }, PLAN[one.status] ?? '\u25cb'), h('span.unseen', `${String(one.status).replace('_', ' ')}: `), one.content)));
}

/* ---- tools ---- */

/* What a program printed comes as one block of code: its fence says nothing here. */
const FENCED = /^(\([^\n]*\)\n)?(\x60{3,}|~{3,})[^\n\x60]*\n([\s\S]*?)\n?\2(\n[^\x60]*)?$/;
const toolText = part => contentText(part).replace(FENCED, (_, before = '', mark, inside, after = '') => `${before}${inside}${after}`);

const isLive = ({ call, ended }) => !ended && (call.content ?? []).some(part => part.type === 'terminal');

/* A terminal of the hub while its program runs. It is kept with the item: somebody may be typing there. */
function liveTerminal(hub, item, id) {
    const known = (item.terminals ??= new Map()).get(id), el = known ?? h('div');
    item.terminals.set(id, el);
    known ? el.look?.() : import('./terminal.js').then(({ terminal }) => terminal(hub, el, id));
    return el;
}

function toolContent(hub, item, part, short) {
    if (part.type === 'diff')
        return diffTable(diffTexts(short(part.path), part.oldText, part.newText ?? ''));
    if (part.type === 'terminal' && !item.ended)
        return liveTerminal(hub, item, part.terminalId);
    const text = cleanOutput(toolText(part) || (part.type === 'terminal' ? '' : describeContent(part.content ?? part)));
    if (part.type === 'terminal' || part.output !== undefined)
        return h('pre.terminal', { tabindex: '0', role: 'group', 'aria-label': 'Terminal output' }, text.slice(-MOST_SHOWN) || 'nothing was printed');
    return text.length > 200 || text.includes('\n') ? h('pre.mono.tool-text', { tabindex: '0', role: 'group', 'aria-label': 'What the tool said' }, text.slice(0, MOST_SHOWN)) : h('div.dim', text);
}

function toolSummary(call) {
    const diffs = (call.content ?? []).filter(part => part.type === 'diff').map(part => diffTexts(part.path, part.oldText, part.newText ?? ''));
    if (diffs.length)
        return plusMinus(diffs.reduce((sum, one) => sum + one.additions, 0), diffs.reduce((sum, one) => sum + one.deletions, 0));
    const text = (call.content ?? []).map(toolText).join('\n').trim();
    const lines = text ? text.split('\n').length : 0;
    return lines > 1 ? h('span.dim', count(lines, 'line')) : null;
}

function tool(hub, item, short) {
    const { call } = item;
    const places = (call.locations ?? []).map(one => one.line ? `${short(one.path)}:${one.line}` : short(one.path)).filter(path => !(call.content ?? []).some(part => part.type === 'diff' && short(part.path) === path));
    const input = call.rawInput && typeof call.rawInput === 'object' && Object.keys(call.rawInput).length && call.rawInput.command !== call.title ? call.rawInput : null;
    const head = [badge(CALLS[call.status] ?? 'queued', String(call.status ?? 'pending').replace('_', ' ')), h('span.tag', call.kind ?? 'tool'), h('span.tool-title', call.title ?? call.toolCallId)];
    const more = (call.content ?? []).length > 0 || input || places.length > 0;
    if (!more)
        return h('div.tool-head', head);
    const body = h('div.tool-body');
    const build = () => fill(body, places.length > 0 && h('div.places.mono.dim', places.map(one => h('div', one))), input && h('pre.mono.tool-text', { tabindex: '0', role: 'group', 'aria-label': 'Input' }, typeof input.command === 'string' ? input.command : JSON.stringify(input, null, 2)), (call.content ?? []).map(part => toolContent(hub, item, part, short)));
    const el = h('details.tool', h('summary', head, toolSummary(call)), body);
    /* Built when it is looked at: most tools are not. */
    el.open = item.opened ?? (call.status === 'failed' || isLive(item) || (call.content ?? []).some(part => part.type === 'diff'));
    if (el.open)
        build();
    el.addEventListener('toggle', () => {
        item.opened = el.open;
        if (el.open && !body.firstChild)
            build();
    });
    return el;
}

/* ---- the end of a turn ---- */

function end(ctx, task) {
    const usage = task.usage ?? {}, tokens = usage.tokens?.totalTokens, { used, size } = usage.context ?? {};
    const facts = [task.started && task.ended ? duration(task.ended - task.started) : '', tokens ? `${number(tokens)} tokens` : '', usage.cost ? money(usage.cost) : '', used && size ? `context ${Math.round(used / size * 100)} % full` : '', task.attempt > 1 ? `${task.attempt} attempts` : '', task.stopReason && task.stopReason !== 'end_turn' && task.state !== 'cancelled' ? task.stopReason.replaceAll('_', ' ') : ''].filter(Boolean);
    return h('div.turn-end', badge(task.state), h('span.dim', [task.id, ...facts].join(' \u00b7 ')), task.changes?.files ? h('a', { href: `#/changes/task/${task.id}` }, `changed ${count(task.changes.files, 'file')} `, plusMinus(task.changes.additions, task.changes.deletions)) : null,
        when(task.ended), task.error && h('pre.mono.turn-error', { tabindex: '0', role: 'group', 'aria-label': 'Error' }, task.error, task.reason ? `\nreason: ${task.reason}` : ''));
}

/* ---- all of them ---- */

/* old: the element of the row as it was. A text that grows keeps its element: only its last block is built anew. */
export function itemRow(ctx, row, old) {
    const { item, block } = row;
    if (block) {
        if (old?.isBlock) {
            old.lastChild.replaceChildren(renderBlock(block));
            return old;
        }
        const el = frame(row, renderBlock(block));
        el.isBlock = true;
        if (block.more)
            el.classList.add('more');
        return el;
    }
    switch (item.kind) {
    case 'you':
        return frame(row, h('div.said', item.text), item.task && h('span.dim.small', item.task.id, ' ', when(item.time)));
    case 'thought': {
        if (old?.isThought) {
            setText(old.isThought, item.text);
            return old;
        }
        const text = h('div.thought-text', item.text);
        const el = frame(row, h('details.thought', { open: item.opened }, h('summary', brief(item.text, 100)), text));
        el.isThought = text;
        el.querySelector('details').addEventListener('toggle', event => { item.opened = event.target.open; });
        return el;
    }
    case 'plan':
        return frame(row, plan(item));
    case 'tool':
        if (isLive(item) && old?.querySelector('.terminal-line')?.contains(document.activeElement)) /* somebody types into its terminal */
            return old;
        return frame(row, tool(ctx.hub, item, path => ctx.hub.short(path)));
    case 'question': {
        const card = item.card ??= new QuestionCard(ctx, item.question, { inSession: true });
        card.update();
        return old ?? frame(row, card.el);
    }
    case 'end':
        return frame(row, end(ctx, item.task));
    default:
        return frame(row, h('div.notice', icon('asks'), item.text));
    }
}
