/* A hub where nothing has happened yet: three things to try, and how to get an agent with a model behind it. */
import { fill, h } from './dom.js';
import { command, empty } from './parts.js';
import { button } from './ui.js';

/* title: on a screen that is not the Inbox. */
export function fillWithAdvice(el, ctx, title) {
    const go = (label, prompt) => button(label, 'The task was not submitted', () => ctx.compose({ prompt }), { needs: 'work' });
    const only = ctx.model.agents.filter(one => one.found).length < 2;
    fill(el, empty(title ?? 'Nothing waits for you', title ? 'Three things to try:' : 'When an agent asks something, or a task fails, it is here. Three things to try:', [
        ['Say hello: an agent answers, and you see it as it does.', h('div.try', go('Say hello', 'hello'), command('weft task submit --wait "hello"'))],
        ['Let it write a file: it asks before it changes anything, and the question comes into the Inbox.', h('div.try', go('Write a file', 'write a file'), command('weft task submit "write a file"'))],
        ['See what was done: state, time and attempts of every task.', h('div.try', h('a.button', { href: '#/tasks' }, 'Open Tasks'), command('weft task list'))],
    ]), only && h('div.empty', h('h2', 'Only the demo agent is here'), h('p', 'It is built in and costs nothing, but has no model behind it. To install one that has:'),
        ctx.model.agents.filter(one => !one.found && one.package).slice(0, 3).map(one => h('div.agent-advice', h('b', one.name), h('span.dim', one.about), command(`weft agents install ${one.name}`)))));
}
