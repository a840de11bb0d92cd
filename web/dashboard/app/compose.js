/* A new task: prompt, agent, priority, what it may do without asking. */
import { h } from './dom.js';
import { newKey } from './hub.js';
import { button, dialog, field, report, select } from './ui.js';

const PERMISSIONS = [['', 'as configured'], ['ask', 'ask for everything'], ['read', 'read without asking'], ['edit', 'read and edit without asking'], ['all', 'everything without asking']];

export function compose(ctx, { prompt = '', agent = '' } = {}) {
    if (!ctx.hub.may('work'))
        return report('No task was made', { message: 'this login may only look', reason: 'forbidden' });
    const text = h('textarea', { rows: '6', 'data-first': true, placeholder: 'What should be done?' });
    text.value = prompt;
    const known = ctx.model.agents.filter(one => one.found);
    const who = select([['', `the default (${ctx.model.defaultAgent ?? 'none'})`], ...known.map(one => [one.name, one.name])], agent);
    const priority = h('input', { type: 'number', value: '0', min: '-100', max: '100' });
    const permission = select(PERMISSIONS, '');
    const isolation = h('input', { type: 'checkbox' });
    const key = newKey();
    return dialog('New task', close => {
        const send = async () => {
            if (!text.value.trim()) {
                text.focus();
                return;
            }
            const params = { prompt: text.value };
            if (who.value)
                params.agent = who.value;
            if (Number(priority.value))
                params.priority = Number(priority.value);
            if (permission.value)
                params.permission = permission.value;
            if (isolation.checked)
                params.isolation = 'worktree';
            const { taskId } = await ctx.hub.call('task.submit', params, { idempotencyKey: key });
            close();
            openWhenKnown(ctx, taskId);
        };
        const submit = button('Submit', 'The task was not submitted', send, { kind: 'primary', hint: 'Ctrl Enter' });
        text.addEventListener('keydown', event => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                submit.click();
            }
        });
        return h('div.compose', field('Prompt', text), h('div.row', field('Agent', who), field('Priority', priority, 'Higher runs first.')),
            h('div.row', field('It may', permission)), h('div.check', (isolation.id = 'isolation', isolation), h('label', { for: 'isolation' }, 'in a worktree of its own, on a branch of its own')),
            h('div.dialog-foot', h('button', { type: 'button', onclick: close }, 'Close'), submit));
    });
}

/* The event of the task says which session it has. */
function openWhenKnown(ctx, taskId) {
    const look = () => {
        const task = ctx.model.tasks.get(taskId);
        if (task)
            ctx.go(`#/session/${task.sessionId}`);
        return Boolean(task);
    };
    if (look())
        return;
    const stop = ctx.model.listen(() => look() && stop());
    setTimeout(stop, 5000);
}
