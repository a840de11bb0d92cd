/* The keyboard. One table for the whole page; a screen adds its own keys while it is shown. */
export const GO = { i: 'inbox', t: 'tasks', g: 'gated', s: 'sessions', f: 'files', p: 'preview', r: 'traffic', h: 'health', d: 'devices' };

/* The list is long and seldom read: it comes when it is asked for. */
export const showKeys = async () => (await import('./keys_list.js')).showKeys();

/* A dialog that was just closed keeps the focus for a moment; nobody types into it. */
const isTyping = el => !el?.closest?.('dialog:not([open])') && isText(el);
const isText = el => el?.isContentEditable || /^(TEXTAREA|SELECT)$/.test(el?.tagName) || el?.tagName === 'INPUT' && !/^(checkbox|radio|button)$/.test(el.type);

/* Enter presses what has the focus. A row of the Inbox is chosen already when it has it: there it opens. */
const isPressed = ({ key, target }) => key === 'Enter' && target.closest?.('button, summary, a[href]:not(.inbox-open)');

const MOST_KEPT = 16; /* nobody types further ahead */

/* keys(): the table of the screen that is shown. While another one is coming, its keys are kept; the result presses them. */
export function listenToKeys({ keys, go, back, coming }) {
    let prefix = 0, kept = [];
    const press = event => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing)
            return;
        const open = document.querySelector('dialog[open]'), isBack = event.key === 'Escape' && !open;
        if (isBack && isTyping(event.target))
            return event.target.blur();
        if (!isBack && (open || isTyping(event.target) || isPressed(event)))
            return;
        const wasPrefix = prefix > Date.now();
        prefix = 0;
        if (!wasPrefix && !/^[g?]$/.test(event.key) && coming()) {
            if (/^(\S|Escape)$/.test(event.key) && kept.length < MOST_KEPT) {
                event.preventDefault();
                kept.push([event, location.hash]);
            }
            return;
        }
        const action = isBack ? back : wasPrefix ? GO[event.key] && (() => go(`#/${GO[event.key]}`)) : event.key === 'g' ? () => { prefix = Date.now() + 1500; } : event.key === '?' ? showKeys : keys()[event.key];
        if (!action)
            return;
        event.preventDefault();
        action(event);
    };
    addEventListener('keydown', press);
    return () => kept.splice(0).forEach(([event, address]) => address === location.hash && press(event));
}
