/* What is known of tasks, questions and sessions: a page of each when the connection is made, then the events. Records are changed in
 * place; version says once per frame that something did. */
import { isFinal } from './hub.js';
import { perFrame, signal } from './store.js';

const GATED_MS = 200;
const FIRST_PAGE = 200, PAGE = 1000, MOST_TASKS = 20_000;
const TYPES = ['task.queued', 'task.started', 'task.retrying', 'task.completed', 'task.failed', 'task.cancelled', 'task.changed', 'task.undone', 'task.merged', 'task.discarded', 'task.seen',
    'worktree.', 'question.', 'session.created', 'session.closed', 'session.resumed', 'session.deleted', 'session.set', 'approval.', 'agent.chosen', 'notice', 'hub.started', 'removed', 'gated.'];

const ms = text => text ? Date.parse(text) : 0;
const numberOf = id => Number(/(\d+)$/.exec(id)?.[1] ?? 0);
/* A page of tasks has the first 300 bytes of a prompt. */
const isCut = prompt => prompt.length > 70 && new TextEncoder().encode(prompt).length > 290;
export const isOver = task => task.state !== 'queued' && task.state !== 'running';

export class Model {
    tasks = new Map();
    questions = new Map();
    sessions = new Map();
    agents = [];
    defaultAgent = null;
    ready = signal(false);
    version = signal(0);
    total = signal(0);
    error = signal(null);
    gated = { tasks: [], gates: [] }; /* as the hub lists them, the newest first; names of gates */
    #gatedTimer;
    #listeners = new Set();
    #sorted = null;
    #more = false; /* tasks that were not read yet */
    #round = null; /* of reading them */
    #meanwhile = null; /* events while a load is under way */
    constructor(hub) {
        this.hub = hub;
        this.changed = perFrame(() => { this.version.value++; });
        this.following = hub.follow({ types: TYPES }, {
            onEvent: event => this.#take(event),
            onReady: () => this.ready.peek() ? this.#loadRest() : this.load(), /* also when a load was cut off by a lost connection */
            onReset: () => this.load(),
            onError: error => { this.error.value = error; },
        });
    }
    /* Every event of the model, for who shows a session. */
    listen(listener) {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    /* ---- loading ---- */

    /* The answers say how things were at several moments. What happens meanwhile is folded in once more behind them: each record ends as
     * its last event says. */
    async load() {
        const hub = this.hub, meanwhile = this.#meanwhile = [];
        try {
            const [page, questions, sessions, agents] = await Promise.all([
                this.#page(), hub.call('question.list', { all: true }), hub.call('session.list', { limit: 500 }), hub.call('agent.list', {}),
            ]);
            this.tasks.clear();
            this.questions.clear();
            this.sessions.clear();
            sessions.sessions.forEach(one => this.#putSession(one));
            this.#putPage(page);
            questions.questions.forEach(one => this.#putQuestion(one));
            if (this.#meanwhile === meanwhile)
                this.#meanwhile = null;
            meanwhile.forEach(event => this.#fold(event));
            this.agents = agents.agents;
            this.defaultAgent = agents.default;
            this.error.value = null;
            this.ready.value = true;
            this.changed();
            this.#lookAtGated();
            this.#more = page.more;
            this.#loadRest();
        } catch (error) {
            if (error.reason === 'disconnected')
                return;
            if (isFinal(error))
                this.error.value = error;
            else
                setTimeout(() => this.load(), 1000);
        }
    }
    /* They are few and change seldom: all anew, a moment after something happened to one. */
    #lookAtGated() {
        this.#gatedTimer ??= setTimeout(async () => {
            this.#gatedTimer = undefined;
            this.gated = await this.hub.call('gated.list', {}).catch(() => this.gated);
            this.changed();
        }, GATED_MS);
    }
    #page(before) {
        return this.hub.call('task.page', before ? { limit: PAGE, before } : { limit: FIRST_PAGE });
    }
    /* Until all are there; after a lost connection it goes on. */
    async #loadRest() {
        const round = this.#round = {};
        while (this.#more && this.tasks.size < MOST_TASKS) {
            let page;
            try {
                page = await this.#page(this.list().at(-1).id);
            } catch {
                return;
            }
            if (round !== this.#round)
                return;
            this.#putPage(page);
            this.#more = page.more && page.tasks.length > 0;
            this.changed();
        }
    }
    #putPage(page) {
        for (const one of page.tasks)
            if (!this.tasks.has(one.id))
                this.#putTask(one);
        this.total.value = Math.max(page.total ?? 0, this.tasks.size);
    }
    #putTask(one) {
        const task = {
            id: one.id, number: one.number ?? numberOf(one.id), prompt: one.prompt ?? '', agent: one.agent ?? one.runsOn ?? '', priority: one.priority ?? 0,
            state: one.state, created: ms(one.createdAt), started: ms(one.startedAt), ended: ms(one.completedAt), sessionId: one.sessionId,
            attempt: one.attempt ?? 0, retries: one.retries ?? 0, reason: one.reason ?? null, error: one.error ?? null, changes: one.changes,
            branch: one.branch, usage: one.usage, stopReason: one.stopReason, seen: one.seen ?? false, cut: isCut(one.prompt ?? ''), rev: 0,
        };
        this.tasks.set(task.id, task);
        this.#sorted = null;
        const session = this.#session(task.sessionId, task.agent, task.created);
        session.tasks.add(task.id);
        session.updated = Math.max(session.updated, task.ended || task.started || task.created);
    }
    #session(id, agent, created) {
        let session = this.sessions.get(id);
        if (!session)
            this.sessions.set(id, session = { id, agent, title: null, created, updated: created, tasks: new Set(), closed: false, rev: 0 });
        return session;
    }
    #putSession(one) {
        const session = this.#session(one.id, one.agent, ms(one.createdAt));
        Object.assign(session, { title: one.title ?? null, updated: ms(one.updatedAt), closed: one.closed ?? false, branch: one.branch, agent: one.agent });
    }
    #putQuestion(one) {
        this.questions.set(one.id, { ...one, number: numberOf(one.id), created: ms(one.createdAt), expires: ms(one.expiresAt), rev: 0 });
    }

    /* ---- reading ---- */

    /* The newest first. */
    list() {
        return this.#sorted ??= [...this.tasks.values()].sort((a, b) => b.number - a.number);
    }
    openQuestions() {
        return [...this.questions.values()].filter(one => one.state === 'open').sort((a, b) => a.created - b.created);
    }
    /* The newest first, and gated tasks behind them. */
    failures() {
        return [...this.list().filter(task => task.state === 'failed'), ...this.gated.tasks.map(one => this.#gatedFailure(one)).filter(Boolean)];
    }
    unseenFailures() {
        return this.failures().filter(task => !task.seen);
    }
    /* Somebody has looked at how it ended, and the hub knows. */
    saw(task) {
        (task.turn ?? task.gated ?? task).seen = task.seen = true;
        this.changed();
    }
    /* A gated task that failed counts as seen when its last iteration does. Where the agent failed, that task says so already. One that failed before there was a task is seen by itself. */
    #gatedFailure(one) {
        const gated = { id: one.taskId, prompt: one.prompt, state: 'failed', ended: ms(one.endedAt), error: one.error, reason: one.reason, cut: false, gated: one };
        if (one.state === 'failed' && !one.sessionId)
            return { ...gated, agent: one.agent ?? this.defaultAgent ?? '', attempt: 0, seen: one.seen ?? false };
        const turn = one.state === 'failed' && this.sessionTasks(one.sessionId).findLast(task => task.created <= ms(one.endedAt));
        return turn && turn.state !== 'failed' && { ...turn, ...gated, turn };
    }
    sessionTasks(id) {
        const session = this.sessions.get(id);
        return session ? [...session.tasks].map(one => this.tasks.get(one)).filter(Boolean).sort((a, b) => a.number - b.number) : [];
    }
    sessionList() {
        return [...this.sessions.values()].sort((a, b) => b.updated - a.updated);
    }
    sessionTitle(session) {
        return session.title || this.sessionTasks(session.id)[0]?.prompt || session.id;
    }

    /* ---- events ---- */

    #fold(event) {
        const { type, data } = event;
        FOLDS[type]?.call(this, data, ms(event.time), event);
        const record = this.tasks.get(data.taskId);
        if (record)
            record.rev++;
    }
    #take(event) {
        this.#fold(event);
        this.#meanwhile?.push(event);
        if (event.data.gatedId)
            this.#lookAtGated();
        for (const listener of this.#listeners)
            listener(event);
        this.changed();
    }
    queued(data, time) {
        const isNew = !this.tasks.has(data.taskId);
        if (isNew)
            this.#putTask({ ...data, id: data.taskId, agent: data.runsOn ?? data.agent, state: 'queued', createdAt: null });
        const task = this.tasks.get(data.taskId);
        task.created = time;
        task.cut = false;
        task.prompt = data.prompt;
        this.#session(task.sessionId, task.agent, time).updated = time;
        this.total.value = Math.max(this.total.peek() + isNew, this.tasks.size);
    }
    taskMoves(data, time, change) {
        const task = this.tasks.get(data.taskId);
        if (!task)
            return;
        Object.assign(task, change);
        const session = this.sessions.get(task.sessionId);
        if (session)
            session.updated = time;
    }
    ended(data, time, state) {
        this.taskMoves(data, time, { state, ended: time, error: data.error ?? null, reason: data.reason ?? null, usage: data.usage, stopReason: data.stopReason });
    }
    asked(data, time) {
        const timeout = data.timeoutMs;
        this.questions.set(data.questionId, {
            id: data.questionId, number: data.number, taskId: data.taskId ?? null, sessionId: data.sessionId ?? null, ruleId: data.ruleId ?? null, kind: data.kind,
            title: data.title, options: data.options, detail: data.detail, state: 'open', orphaned: false, created: time, expires: timeout ? time + timeout : 0, rev: 0,
        });
    }
    questionMoves(data, time, change) {
        const question = this.questions.get(data.questionId);
        if (!question)
            return;
        Object.assign(question, change);
        question.rev++;
    }
    deleted(data) {
        const session = this.sessions.get(data.sessionId);
        session?.tasks.forEach(id => this.tasks.delete(id));
        this.sessions.delete(data.sessionId);
        this.#sorted = null;
    }
    sessionMoves(data, time, change) {
        const session = this.#session(data.sessionId, data.agent ?? '', time);
        Object.assign(session, change);
        session.rev++;
    }
}

const FOLDS = {
    'task.queued'(data, time) { this.queued(data, time); },
    'task.started'(data, time) {
        this.taskMoves(data, time, { state: 'running', started: time, attempt: data.attempt });
        if (data.agent)
            this.taskMoves(data, time, { agent: data.agent });
    },
    'task.retrying'(data, time) { this.taskMoves(data, time, { state: 'queued', error: data.error, reason: data.reason }); },
    'task.completed'(data, time) { this.ended(data, time, 'completed'); },
    'task.failed'(data, time) { this.ended(data, time, 'failed'); },
    'task.cancelled'(data, time) { this.ended(data, time, 'cancelled'); },
    'task.changed'(data, time) { this.taskMoves(data, time, { changes: data }); },
    'task.undone'(data, time) { this.taskMoves(data, time, { undone: data.undone !== false }); },
    'task.seen'(data, time) { (data.taskIds ?? [data.taskId]).forEach(taskId => this.taskMoves({ taskId }, time, { seen: true })); },
    'worktree.made'(data, time) {
        this.taskMoves(data, time, { branch: data.branch });
        this.sessionMoves(data, time, { branch: data.branch });
    },
    'worktree.discarded'(data, time) {
        this.taskMoves(data, time, { branch: undefined });
        this.sessionMoves(data, time, { branch: undefined });
    },
    'question.asked'(data, time) { this.asked(data, time); },
    'question.answered'(data, time) {
        this.questionMoves(data, time, { state: 'answered', closed: time, answer: { option: data.option, name: data.name, by: data.by, text: data.text, approvalId: data.approvalId } });
    },
    'question.expired'(data, time) { this.questionMoves(data, time, { state: 'expired', closed: time }); },
    'question.withdrawn'(data, time) { this.questionMoves(data, time, { state: 'withdrawn', closed: time, why: data.reason }); },
    'question.orphaned'(data, time) { this.questionMoves(data, time, { orphaned: true }); },
    'question.adopted'(data, time) { this.questionMoves(data, time, { orphaned: false }); },
    'session.created'(data, time) { this.sessionMoves(data, time, { agent: data.agent, title: data.title ?? null, updated: time }); },
    'session.closed'(data, time) { this.sessionMoves(data, time, { closed: true }); },
    'session.resumed'(data, time) { this.sessionMoves(data, time, { closed: false }); },
    'session.set'(data, time) {
        if (data.name === 'title')
            this.sessionMoves(data, time, { title: data.value });
    },
    'session.deleted'(data) { this.deleted(data); },
    'agent.chosen'(data) { this.defaultAgent = data.agent ?? this.defaultAgent; },
};
