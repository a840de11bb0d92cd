/* A new task: prompt, agent, priority or gates, what it may do without asking. */
import { h } from './dom.js';
import { newKey } from './hub.js';
import { field } from './parts.js';
import { button, dialog, report, select } from './ui.js';

const PERMISSIONS = [['', 'as configured'], ['ask', 'ask for everything'], ['read', 'read without asking'], ['edit', 'read and edit without asking'], ['all', 'everything without asking']];

export function compose(ctx, { prompt = '', agent = '', gated = false } = {}) {
    if (!ctx.hub.may('work'))
        return report('No task was made', { message: 'this login may only look', reason: 'forbidden' });
    const text = h('textarea', { rows: '6', 'data-first': true, placeholder: 'What should be done?' });
    text.value = prompt;
    const known = ctx.model.agents.filter(one => one.found);
    const who = select([['', `the default (${ctx.model.defaultAgent ?? 'none'})`], ...known.map(one => [one.name, one.name])], agent);
    const priority = h('input', { type: 'number', value: '0', min: '-100', max: '100' });
    const permission = select(PERMISSIONS, '');
    const isolation = h('input', { type: 'checkbox' });
    /* With gates it is a gated task: the agent tries until they pass. */
    const gates = ctx.model.gated.gates.map(name => {
        const box = h('input', { type: 'checkbox', id: `gate-${name}`, checked: gated, onchange: () => showTries() });
        return { name, box, el: h('div.check', box, h('label', { for: box.id }, name)) };
    });
    const tries = h('input', { type: 'number', value: '10', min: '1', max: '100' });
    const chosen = () => gates.filter(one => one.box.checked).map(one => one.name);
    const triesField = field('Iterations at most', tries);
    const priorityField = field('Priority', priority, 'Higher runs first.');
    const showTries = () => {
        triesField.hidden = !chosen().length;
        priorityField.hidden = !triesField.hidden;
    };
    showTries();
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
            if (chosen().length)
                Object.assign(params, { gates: chosen(), maxIterations: Number(tries.value) || 10 });
            else if (Number(priority.value))
                params.priority = Number(priority.value);
            if (permission.value)
                params.permission = permission.value;
            if (isolation.checked)
                params.isolation = 'worktree';
            const { taskId } = await ctx.hub.call(params.gates ? 'sendTask' : 'task.submit', params, { idempotencyKey: key });
            close();
            params.gates ? ctx.go(`#/gated/${taskId}`) : openWhenKnown(ctx, taskId);
        };
        const submit = button('Submit', 'The task was not submitted', send, { kind: 'primary', hint: 'Ctrl Enter' });
        text.addEventListener('keydown', event => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                submit.click();
            }
        });
        return h('div.compose', field('Prompt', text), h('div.row', field('Agent', who), priorityField, triesField),
            gates.length > 0 && h('fieldset.gates', h('legend', 'Gates that must pass'), gates.map(one => one.el)),
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
