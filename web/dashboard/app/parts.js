/* Parts that the first screens seldom need: fields of forms, what an empty screen teaches, commands to copy. */
import { fill, h, icon } from './dom.js';
import { copyText } from './ui.js';

let lastField = 0;

export function field(label, control, help) {
    const id = `f${++lastField}`;
    control.id = id;
    const note = help && h('div.dim.small', { id: `${id}-help` }, help);
    if (note)
        control.setAttribute('aria-describedby', `${id}-help`);
    return h('div.field', h('label', { for: id }, label), control, note);
}

/* steps: [what it does, the command or a button] */
export function empty(title, text, steps = []) {
    return h('div.empty', h('h2', title), text && h('p', text), steps.length > 0 && h('ol', steps.map(([what, how]) => h('li', h('div', what), typeof how === 'string' ? command(how) : how))));
}

export function command(text) {
    const copy = h('button.plain', { type: 'button', 'aria-label': `Copy: ${text}`, title: 'Copy', onclick: () => copyText(text, 'The command') }, icon('copy'));
    return h('div.command', h('code', text), copy);
}

/* Something that is being fetched: shown only when it takes long enough to be noticed. */
export function loading(el, what) {
    const timer = setTimeout(() => fill(el, h('p.dim.pad', `Loading ${what}\u2026`)), 150);
    return () => clearTimeout(timer);
}
