/* Parts that several screens use: states, times, buttons that say what became of a press, messages, dialogs. What is seldom on the first screens is in parts.js. */
import { fill, h, icon, setText } from './dom.js';
import { explain } from './hub.js';
import { ago, count, exact } from './text.js';

/* ---- states and times ---- */

const WORDS = { queued: 'queued', running: 'running', completed: 'completed', failed: 'failed', cancelled: 'cancelled', asks: 'asks', live: 'live' };

/* A shape, a word and a colour. */
export function badge(state, word = WORDS[state] ?? state) {
    return h(`span.state.state-${state}`, icon(state), h('span', word));
}

export function when(time, shown = ago) {
    if (!time)
        return h('span.dim', '\u2013');
    const el = h('time', { datetime: new Date(time).toISOString(), title: exact(time) }, shown(Date.now() - time));
    el.shown = () => setText(el, shown(Date.now() - time));
    return el;
}

/* Relative times go on. */
setInterval(() => document.querySelectorAll('time').forEach(el => el.shown?.()), 5000);

/* ---- messages ---- */

const messages = h('div.messages', { role: 'status', 'aria-live': 'polite' });
export const messagesElement = () => messages;
/* What is behind a dialog is dimmed, and nobody can press it. */
function show(el) {
    const place = document.querySelector('dialog[open]') ?? document.body;
    if (messages.parentNode !== place)
        place.append(messages);
    messages.append(el);
    while (messages.children.length > 4)
        messages.firstChild.remove();
    return el;
}

export function say(text, kind = 'info') {
    const el = h(`div.message.message-${kind}`, h('div', text), closeButton(() => el.remove()));
    show(el);
    setTimeout(() => el.remove(), 6000);
}

export function errorBox(refusal, action) {
    return h('div.error', { role: 'alert' }, h('div.error-what', icon('failed'), refusal.what),
        h('div', h('span.dim', 'Why: '), refusal.why), refusal.next && h('div', h('span.dim', 'Next: '), refusal.next),
        refusal.reason && h('div.mono.dim', `reason: ${refusal.reason}`), action);
}

export function report(what, error) {
    const refusal = explain(what, error);
    const el = h('div.message.message-error', { 'data-reason': refusal.reason || undefined }, errorBox(refusal), closeButton(() => el.remove()));
    return show(el);
}

/* The connection is back: that it was not there is no news any more. */
export function forgetDisconnected() {
    messages.querySelectorAll('[data-reason=disconnected]').forEach(el => el.remove());
}

const closeButton = action => h('button.plain', { onclick: action, 'aria-label': 'Close this message', title: 'Close' }, icon('close'));

/* ---- buttons ---- */

/* A button whose press is shown until it is known what came of it. what: for the message if it fails. needs: 'work' if a login that may
 * only look does not see it. */
export function button(label, what, action, { kind = '', iconName, title, hint, needs } = {}) {
    const el = h(`button${kind ? `.${kind}` : ''}`, { type: 'button', title, 'data-needs': needs }, iconName && icon(iconName), label && h('span', label), hint && h('kbd', hint));
    el.addEventListener('click', async () => {
        if (el.getAttribute('aria-busy') === 'true')
            return;
        el.setAttribute('aria-busy', 'true');
        try {
            await action(el);
        } catch (error) {
            report(what, error);
        } finally {
            el.removeAttribute('aria-busy');
        }
    });
    return el;
}

/* One that must be pressed twice within four seconds. */
export function twice(label, sure, what, action, options = {}) {
    let armed = 0;
    const el = button(label, what, async pressed => {
        if (Date.now() > armed) {
            armed = Date.now() + 4000;
            arm(true);
            setTimeout(() => Date.now() >= armed && arm(false), 4100);
            return;
        }
        armed = 0;
        arm(false);
        await action(pressed);
    }, options);
    const text = el.querySelector('span');
    const arm = on => {
        el.classList.toggle('armed', on);
        setText(text, on ? sure : label);
    };
    return el;
}

/* ---- dialogs ---- */

/* A dialog in the middle, or a sheet at the bottom of a phone. The result closes it. */
export function dialog(title, build) {
    const back = document.activeElement;
    const el = h('dialog', { 'aria-label': title });
    const close = () => el.open && el.close();
    el.addEventListener('close', () => {
        if (el.contains(messages))
            document.body.append(messages);
        el.remove();
        back?.isConnected && back.focus({ preventScroll: true });
    });
    el.addEventListener('click', event => event.target === el && close());
    el.append(h('div.dialog-head', h('h2', title), h('button.plain', { type: 'button', onclick: close, 'aria-label': 'Close', title: 'Close (Esc)' }, icon('close'))), build(close));
    document.body.append(el);
    el.showModal();
    (el.querySelector('[data-first]') ?? el.querySelector('textarea,input,select'))?.focus();
    return close;
}

export function select(options, chosen, onchange) {
    const el = h('select', { onchange: () => onchange?.(el.value) }, options.map(([value, label]) => h('option', { value }, label)));
    el.value = chosen ?? '';
    return el;
}

/* ---- copies ---- */

export async function copyText(text, what) {
    try {
        await navigator.clipboard.writeText(text);
        say(`${what} was copied.`);
    } catch {
        /* No clipboard on a page without TLS: show it to be copied by hand. */
        dialog('Copy this', () => {
            const area = h('textarea.mono', { rows: '12', readonly: true, 'aria-label': what });
            area.value = text;
            area.addEventListener('focus', () => area.select());
            return area;
        });
    }
}

export const plusMinus = (additions, deletions) => h('span.plusminus', h('span.plus', `+${additions ?? 0}`), ' ', h('span.minus', `\u2212${deletions ?? 0}`));

export const filesChanged = changes => changes?.files ? count(changes.files, 'file') : '';
