/* Who needs me now: open questions and failed tasks that nobody looked at, the oldest first. */
import { fill, h, icon, keyed, setText } from './dom.js';
import { QuestionCard, questionTitle } from './question.js';
import { agentAt, brief, count, hubOf } from './text.js';
import { badge, button, when } from './ui.js';

function entries(model, keep) {
    const questions = [...model.questions.values()].filter(one => one.state === 'open' || one.id === keep).map(one => ({ id: one.id, kind: 'question', time: one.created, question: one }));
    const failures = model.failures().filter(one => !one.seen || one.id === keep).map(one => ({ id: one.id, kind: 'failure', time: one.ended, task: one }));
    return [...questions, ...failures].sort((a, b) => a.time - b.time);
}

const REASONS = {
    agentError: 'The agent ended its turn with an error.', signalled: 'The agent\u2019s process was ended by a signal: it crashed or was killed.', exited: 'The agent\u2019s process ended in the middle.',
    timeout: 'It took longer than it may.', notInstalled: 'The agent is not installed here.', refused: 'The agent refused.', costLimit: 'It reached the limit of what it may cost.', daemonStopped: 'The hub stopped while it ran.',
};

const addressOf = task => task.gated ? `#/gated/${task.id}` : `#/session/${task.sessionId}`;

export function failureCard(ctx, task, onSeen) {
    const retry = button('Try again', 'The task was not submitted', async () => {
        if (task.gated) {
            const { prompt, gates, maxIterations, agent } = task.gated;
            const { taskId } = await ctx.hub.call('sendTask', { prompt, gates, maxIterations, agent });
            await onSeen?.();
            return ctx.go(`#/gated/${taskId}`);
        }
        const { taskId } = await ctx.hub.call('task.submit', { prompt: (await fullPrompt(ctx, task)), agent: task.agent || undefined, hub: hubOf(task.id) });
        await onSeen?.();
        ctx.go(`#/session/${ctx.model.tasks.get(taskId)?.sessionId ?? task.sessionId}`);
    }, { needs: 'work' });
    return h('section.card.failure', { 'aria-label': `Failed: ${brief(task.prompt, 80)}` },
        h('div.card-head', icon('failed'), h('h2', brief(task.prompt, 200)), h('span.grow'), when(task.ended)),
        h('dl.detail', h('dt', 'what'), h('dd', `${task.id} failed${task.attempt > 1 ? ` after ${task.attempt} attempts` : ''}, with the agent ${task.agent}.`),
            h('dt', 'why'), h('dd', h('pre.mono', { tabindex: '0', role: 'group', 'aria-label': 'Error' }, task.error || 'It gave no error.')), REASONS[task.reason] && [h('dt', ''), h('dd', REASONS[task.reason])],
            h('dt', 'next'), h('dd', task.sessionId ? 'Look at what it said last, then try again or say more in its session.' : 'No agent has begun. Mend what is wrong, then try again.'), task.reason && [h('dt', 'reason'), h('dd', h('code', task.reason))]),
        h('div.card-foot', h('div.options', h('div', onSeen && button('Mark as seen', 'It was not marked as seen', onSeen, { needs: 'work' })),
            h('div.options-allow', retry, h('a.button.primary', { href: addressOf(task) }, task.gated ? 'Open it' : 'Open the session')))));
}

async function fullPrompt(ctx, task) {
    return task.cut ? (await ctx.hub.call('task.get', { taskId: task.id })).prompt : task.prompt;
}

/* What to try first: read once, so it comes when it is shown. title: on a screen that is not the Inbox. */
export function teach(ctx, title) {
    const el = h('div.advice');
    import('./teach.js').then(({ fillWithAdvice }) => fillWithAdvice(el, ctx, title));
    return el;
}

export function screen(ctx) {
    const { model, scope } = ctx;
    const list = h('div.inbox-list', { role: 'list' });
    const detail = h('div.inbox-detail');
    const el = h('div.inbox', list, detail);
    let shown = [], chosen = null, card = null, lastIndex = 0;

    /* What somebody else has settled stays until one goes on, and says so. */
    const badgeOf = ({ kind, question }) => kind === 'failure' ? badge('failed') : question.state === 'open' ? badge('asks') : question.state === 'answered' ? badge('completed', 'answered') : badge('cancelled', 'over');
    const rowOf = one => {
        const asks = one.kind === 'question';
        const open = h('a.inbox-open', { href: `#/inbox/${one.id}`, onclick: event => { event.preventDefault(); choose(one.id, true); } },
            badgeOf(one), h('span.inbox-title', brief(asks ? questionTitle(one.question) : one.task.prompt, 120)));
        return h('div.inbox-row', { role: 'listitem' }, open, h('span.dim.inbox-agent', agentOf(one)), when(one.time));
    };
    const agentOf = one => one.kind === 'question' ? agentAt(one.question.id, model.tasks.get(one.question.taskId)?.agent ?? one.question.ruleId ?? one.question.detail?.server ?? '') : agentAt(one.task.id, one.task.agent);

    function choose(id, focus) {
        const one = shown.find(entry => entry.id === id) ?? null;
        chosen = one?.id ?? null;
        lastIndex = Math.max(0, shown.indexOf(one));
        for (const row of list.children) {
            const on = row.dataset.key === chosen;
            row.classList.toggle('chosen', on);
            row.firstChild.setAttribute('aria-current', on ? 'true' : 'false');
            if (on && focus) {
                row.firstChild.focus({ preventScroll: true });
                row.scrollIntoView({ block: 'nearest' });
            }
        }
        card = null;
        if (!one)
            fill(detail);
        else if (one.kind === 'question') {
            card = new QuestionCard(ctx, one.question, { onAnswered: () => answered(one.id) });
            fill(detail, card.el, one.question.sessionId && h('p.dim.small', h('a', { href: `#/session/${one.question.sessionId}` }, 'Open the session')));
        } else
            fill(detail, failureCard(ctx, one.task, async () => {
                await seen(ctx, one.task);
                moveFrom(one.id);
            }));
    }
    /* Ours: when the event says so, the next one comes. Somebody else's stays, and says who and what. */
    const answered = id => {
        const look = () => {
            if (model.questions.get(id)?.state === 'open')
                return false;
            moveFrom(id);
            return true;
        };
        if (!look()) {
            const stop = scope.add(model.listen(() => look() && stop()));
        }
    };
    const moveFrom = id => {
        if (chosen !== id)
            return;
        const at = lastIndex;
        chosen = null;
        refresh(at, true);
    };
    function refresh(at = lastIndex, focus = false) {
        shown = entries(model, chosen);
        const none = !shown.length && model.ready.peek();
        el.classList.toggle('is-empty', none);
        if (none) {
            if (!el.querySelector('.advice'))
                fill(el, teach(ctx));
            chosen = null;
            ctx.setTitle('Inbox');
            return;
        }
        if (!list.isConnected && shown.length)
            fill(el, list, detail);
        keyed(list, shown, one => one.id, rowOf, (row, one) => one.kind === 'question' && one.question.state !== 'open' && row.querySelector('.state').replaceWith(badgeOf(one)));
        ctx.setTitle(shown.length ? `Inbox: ${count(shown.filter(one => one.kind === 'failure' || one.question.state === 'open').length, 'thing')} waiting` : 'Inbox');
        if (shown.length && !shown.some(one => one.id === chosen))
            choose(shown[Math.min(at, shown.length - 1)].id, focus);
        card?.update();
    }
    scope.effect(() => {
        model.version.value;
        model.ready.value;
        refresh();
    });
    const move = by => {
        const at = shown.findIndex(one => one.id === chosen);
        const next = shown[Math.max(0, Math.min(shown.length - 1, at + by))];
        if (!next)
            return;
        choose(next.id, true);
        refresh();
    };
    if (ctx.rest[0])
        choose(ctx.rest[0]);
    return {
        el,
        keys: {
            j: () => move(1), k: () => move(-1), a: () => card?.press('allow'), d: () => card?.press('deny'),
            Enter: () => {
                const one = shown.find(entry => entry.id === chosen);
                if (one?.task || one?.question.sessionId)
                    ctx.go(addressOf(one.task ?? one.question));
            },
        },
    };
}

export async function seen(ctx, task) {
    if (task.seen)
        return;
    await ctx.hub.call('task.seen', { taskIds: [(task.turn ?? task).id] });
    ctx.model.saw(task);
}
