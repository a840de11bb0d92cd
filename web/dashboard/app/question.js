/* A question as a card: exactly what will be done, by whom, where; the options as the agent named them, those that deny on the left and
 * those that allow on the right; a reason; and afterwards who answered, and what. */
import { diffTexts } from './diff.js';
import { diffTable } from './diffview.js';
import { fill, h, icon, setText } from './dom.js';
import { link } from './markdown.js';
import { contentText, describeContent } from './transcript.js';
import { agentAt, clock, shellWords } from './text.js';
import { button, select, when } from './ui.js';

const isDeny = option => /reject|deny|decline|cancel/.test(`${option.kind ?? ''} ${option.id}`);
const REMEMBER = [['', 'only this once'], ['session', 'and for the same in this session'], ['project', 'and for the same in this project']];

/* ---- what will be done ---- */

function inputRows(input) {
    const argv = Array.isArray(input.command) ? input.command : Array.isArray(input.argv) ? input.argv : null;
    const rows = [];
    if (argv)
        rows.push(['runs', h('pre.mono.argv', { tabindex: '0', role: 'group', 'aria-label': 'Command' }, shellWords(argv))]);
    for (const [name, value] of Object.entries(input)) {
        if (argv && (name === 'command' || name === 'argv'))
            continue;
        const text = typeof value === 'string' ? value : JSON.stringify(value, null, 1);
        rows.push([name === 'command' ? 'runs' : name, h(`pre.mono${name === 'command' ? '.argv' : ''}`, { tabindex: '0', role: 'group', 'aria-label': name }, text)]);
    }
    return rows;
}

function contentPart(part, short) {
    if (part.type === 'diff')
        return diffTable(diffTexts(short(part.path), part.oldText, part.newText ?? ''));
    return h('pre.mono', { tabindex: '0', role: 'group', 'aria-label': 'Detail' }, contentText(part) || describeContent(part));
}

/* What a server would ask a model: all of it, since a person answers in the model's place. */
function samplingRows({ systemPrompt, messages = [] }) {
    const text = content => [content].flat().map(one => one?.type === 'text' ? one.text : describeContent(one ?? {})).join('\n');
    const block = (name, said) => [name, h('pre.mono', { tabindex: '0', role: 'group', 'aria-label': name }, said)];
    return [...systemPrompt ? [block('system', String(systemPrompt))] : [], ...messages.map(one => block(String(one?.role ?? 'message'), text(one?.content)))];
}

function detailRows(detail, short, title) {
    const call = detail?.toolCall ?? detail ?? {};
    const rows = [];
    if (call.rawInput && typeof call.rawInput === 'object')
        rows.push(...inputRows(call.rawInput));
    else if (call.rawInput !== undefined && call.rawInput !== null)
        rows.push(['input', h('pre.mono', { tabindex: '0', role: 'group', 'aria-label': 'Input' }, String(call.rawInput))]);
    for (const part of call.content ?? [])
        rows.push([part.type === 'diff' ? 'changes' : 'detail', contentPart(part, short)]);
    for (const place of call.locations ?? [])
        if (!(call.content ?? []).some(part => part.path === place.path))
            rows.push(['at', h('code', { title: place.path }, place.line ? `${short(place.path)}:${place.line}` : short(place.path))]);
    if (detail?.sampling)
        rows.push(...samplingRows(detail.sampling));
    else if (detail?.message && !title.includes(detail.message))
        rows.push(['says', detail.message]);
    if (detail?.url)
        rows.push(['page', h('span', link(detail.url, detail.url))]);
    if (detail?.description)
        rows.push(['about', detail.description]);
    return rows;
}

/* ---- the card ---- */

/* What an MCP server asks is its message; who asks is said beside it. */
export function questionTitle({ title, detail }) {
    return detail?.server && detail.message && !detail.sampling ? detail.message : title;
}

export class QuestionCard {
    /* ctx: hub, model, go. inSession: the session is around it already. */
    constructor(ctx, question, { inSession = false, onAnswered } = {}) {
        Object.assign(this, { ctx, question, onAnswered });
        this.armed = null;
        const task = ctx.model.tasks.get(question.taskId);
        const title = questionTitle(question);
        const rows = detailRows(question.detail, path => ctx.hub.short(path), title);
        const server = question.detail?.server;
        const folder = question.detail?.rawInput?.cwd ? null : ctx.model.sessions.get(question.sessionId)?.folder || ctx.hub.who.peek()?.folder;
        if (folder && question.kind === 'permission')
            rows.push(['folder', h('code', folder)]);
        if (task && !question.ruleId)
            rows.push(['agent', agentAt(task.id, task.agent)]);
        const schema = question.detail?.requestedSchema;
        /* Few questions have a form: what it needs comes with the first one. */
        this.formPlace = schema && h('div');
        this.formReady = schema && import('./form.js').then(({ buildForm }) => {
            this.form = buildForm(schema);
            this.formPlace.append(this.form.el);
        });
        this.formReady?.catch(() => {}); /* said when it is sent */
        this.foot = h('div.card-foot');
        const kind = question.detail?.kind ?? question.detail?.toolCall?.kind;
        this.el = h('section.card.question', { 'aria-label': `Question: ${title}` },
            h('div.card-head', icon('asks'), h('h2', title), kind && h('span.tag', kind), h('span.grow'), when(question.created)),
            !inSession && h('div.card-about', task && [h('span', h('b', agentAt(task.id, task.agent)), ' for '), h('a', { href: `#/session/${question.sessionId}` }, task.prompt.slice(0, 160))],
                question.ruleId && h('span', `rule ${question.ruleId}`), !task && server && h('span', 'the MCP server ', h('b', server), ' asks')),
            rows.length > 0 && h('dl.detail', rows.map(([name, value]) => [h('dt', name), h('dd', value)])),
            this.formPlace, this.foot);
        this.update();
    }
    get isOpen() {
        return this.question.state === 'open';
    }
    update() {
        const shown = `${this.question.state}${this.question.orphaned}${this.question.answer?.by ?? ''}`;
        if (shown === this.shown)
            return;
        this.shown = shown;
        this.el.classList.toggle('over', !this.isOpen);
        if (this.isOpen)
            this.#showOptions();
        else
            fill(this.foot, this.#outcome());
    }
    #outcome() {
        const { question } = this;
        if (question.state === 'expired')
            return h('div.outcome', icon('cancelled'), 'Nobody answered in time.');
        if (question.state === 'withdrawn')
            return h('div.outcome', icon('cancelled'), question.why === 'taskEnded' ? 'No longer asked: the task has ended.' : question.why === 'serverWithdrew' ? 'No longer asked: the server withdrew it.' : 'No longer asked: the agent withdrew it.');
        const { answer } = question;
        const option = question.options.find(one => one.id === answer?.option);
        const denied = !answer?.option || option && isDeny(option);
        return h('div.outcome', icon(denied ? 'failed' : 'completed'), h('span', h('b', answer?.name ?? option?.name ?? answer?.option ?? 'Denied'),
            ' by ', answer?.by ?? 'somebody', question.closed ? ` at ${clock(question.closed)}` : '', answer?.approvalId ? `, by the standing answer ${answer.approvalId}` : '', answer?.text ? `: \u201c${answer.text}\u201d` : ''));
    }
    #showOptions() {
        const { question, ctx } = this;
        if (!ctx.hub.may('work')) {
            fill(this.foot, h('p.dim', 'This login may look, not answer. It needs the scope work.'));
            return;
        }
        const deny = question.options.filter(isDeny), allow = question.options.filter(one => !isDeny(one));
        const option = one => {
            const el = button(one.name, `"${one.name}" was not sent`, () => this.answer(one.id), { kind: isDeny(one) ? 'deny' : 'allow', title: one.kind && one.kind !== one.id ? one.kind : undefined });
            el.dataset.option = one.id;
            return el;
        };
        this.reason = h('input', { type: 'text', placeholder: 'a reason (optional)', 'aria-label': 'Reason' });
        this.remember = question.kind === 'permission' && question.detail?.kind ? select(REMEMBER, '') : null;
        this.remember?.setAttribute('aria-label', 'How long the answer holds');
        this.hint = h('div.hint', { role: 'status' });
        fill(this.foot, question.orphaned && h('p.dim', 'Whoever asked is gone with an earlier start of the hub. The answer is kept for when it asks again.'),
            h('div.reason', this.reason, this.remember), h('div.options', h('div.options-deny', deny.map(option)), h('div.options-allow', allow.map(option))), this.hint);
    }
    async answer(option) {
        await this.formReady;
        const content = this.form?.read();
        const chosen = this.question.options.find(one => one.id === option);
        const denied = chosen && isDeny(chosen);
        if (content === null && !denied)
            return;
        const params = { questionId: this.question.id, option };
        if (this.reason?.value)
            params.text = this.reason.value;
        if (content && !denied)
            params.content = content;
        if (this.remember?.value && !denied)
            params.always = { scope: this.remember.value };
        this.mine = true;
        await this.ctx.hub.call('question.answer', params);
        this.onAnswered?.(this);
    }
    /* By key: the first press shows what the second one does. */
    press(wanted) {
        const options = this.question.options.filter(one => isDeny(one) === (wanted === 'deny'));
        const option = options.find(one => /once/.test(one.kind ?? one.id)) ?? options[0];
        if (!this.isOpen || !option || !this.hint)
            return;
        const key = wanted === 'deny' ? 'd' : 'a';
        const el = [...this.foot.querySelectorAll('button')].find(one => one.dataset.option === option.id);
        if (this.armed === wanted) {
            this.#disarm();
            el.click();
            return;
        }
        this.#disarm();
        this.armed = wanted;
        el.classList.add('armed');
        setText(this.hint, `Press ${key} again: ${option.name}`);
        this.timer = setTimeout(() => this.#disarm(), 4000);
    }
    #disarm() {
        clearTimeout(this.timer);
        this.armed = null;
        this.foot.querySelectorAll('.armed').forEach(one => one.classList.remove('armed'));
        if (this.hint)
            setText(this.hint, '');
    }
}
