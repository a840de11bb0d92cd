/* Building elements. Every string becomes a text node, and goes through clean(): nothing here, nor anywhere in the dashboard, takes
 * markup. h('button.primary', { onclick, title }, 'Allow') */
import { clean } from './text.js';

function put(el, name, value) {
    if (value === undefined || value === null || value === false)
        return;
    if (name.startsWith('on'))
        el.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected' || name === 'hidden' || name === 'htmlFor' || name === 'indeterminate')
        el[name] = value;
    else if (name === 'style')
        Object.assign(el.style, value);
    else
        el.setAttribute(name, value === true ? '' : clean(value));
}

function add(el, child) {
    if (child === undefined || child === null || child === false || child === '')
        return;
    if (Array.isArray(child))
        child.forEach(one => add(el, one));
    else
        el.append(child instanceof Node ? child : document.createTextNode(clean(child)));
}

export function h(what, ...rest) {
    const [tag, ...classes] = what.split('.');
    const el = document.createElement(tag || 'div');
    if (classes.length)
        el.className = classes.join(' ');
    let from = 0;
    const props = rest[0];
    if (props && typeof props === 'object' && !(props instanceof Node) && !Array.isArray(props)) {
        from = 1;
        for (const name in props)
            put(el, name, props[name]);
    }
    for (let i = from; i < rest.length; i++)
        add(el, rest[i]);
    return el;
}

export function fill(el, ...children) {
    el.replaceChildren();
    children.forEach(child => add(el, child));
    return el;
}

export function setText(el, text) {
    const shown = clean(text);
    if (el.textContent !== shown)
        el.textContent = shown;
    return el;
}

export function setClass(el, name, on) {
    el.classList.toggle(name, Boolean(on));
}

const SVG = 'http://www.w3.org/2000/svg';
export function s(tag, props, ...children) {
    const el = document.createElementNS(SVG, tag);
    for (const name in props)
        if (props[name] !== undefined)
            el.setAttribute(name, props[name]);
    children.forEach(child => child && el.append(child));
    return el;
}

/* Lines on a grid of 16. */
const ICONS = {
    inbox: 'M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5L6.5 11h3l1-1.5H14',
    tasks: 'M2.5 4 3.5 5l2-2M2.5 8.5l1 1 2-2M2.5 13l1 1 2-2M8 4h6M8 8.5h6M8 13h6',
    session: 'M2.5 3h11v8H7l-3 2.5V11H2.5z',
    files: 'M3 2h6l4 4v8H3zM9 2v4h4',
    preview: 'M2 3h12v10H2zM2 6h12M4 4.5h.1M6 4.5h.1',
    traffic: 'M3 5.5h9L9.5 3M13 10.5H4L6.5 13',
    health: 'M1.5 8.5h3l2-5 3 9 2-4h3',
    devices: 'M5 1.5h6v13H5zM7.5 12.5h1',
    more: 'M3.5 8h.1M8 8h.1M12.5 8h.1',
    plus: 'M8 3v10M3 8h10',
    stop: 'M4 4h8v8H4z',
    back: 'M10 3 5 8l5 5',
    forward: 'M6 3l5 5-5 5',
    reload: 'M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3',
    down: 'M3 6l5 5 5-5',
    right: 'M6 3l5 5-5 5',
    close: 'M4 4l8 8M12 4l-8 8',
    check: 'M3 8.5l3.5 3.5L13 4.5',
    copy: 'M5.5 5.5h8v8h-8zM2.5 10.5v-8h8',
    find: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3l3.5 3.5',
    diff: 'M8 3v6M5 6h6M5 12h6',
    help: 'M6 6a2 2 0 1 1 2.8 1.8c-.6.3-.8.7-.8 1.4M8 12h.1M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13',
    send: 'M8 13V3M4 7l4-4 4 4',
    pause: 'M5.5 3.5v9M10.5 3.5v9',
    folder: 'M2 4h4l1.5 1.5H14V13H2z',
    side: 'M2 3h12v10H2zM10 3v10',
    /* states: each has its own shape */
    queued: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11',
    running: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3l2 1.5',
    completed: 'M3 8.5l3.5 3.5L13 4.5',
    failed: 'M4 4l8 8M12 4l-8 8',
    cancelled: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M4.2 4.2l7.6 7.6',
    asks: 'M8 2 14.5 13.5h-13zM8 6.5v3.5M8 12h.1',
};

export function icon(name) {
    return s('svg', { viewBox: '0 0 16 16', class: `icon icon-${name}`, 'aria-hidden': 'true', focusable: 'false' }, s('path', { d: ICONS[name] ?? ICONS.more }));
}

/* Bring the children of el in line with items, keeping the element of each key. make(item) builds one; update(el, item) is called for
 * those that stay. */
export function keyed(el, items, key, make, update) {
    const old = new Map();
    for (const child of [...el.children])
        old.set(child.dataset.key, child);
    let place = el.firstElementChild;
    for (const item of items) {
        const name = String(key(item));
        let child = old.get(name);
        if (child) {
            old.delete(name);
            update?.(child, item);
        } else {
            child = make(item);
            child.dataset.key = name;
        }
        if (child === place)
            place = place.nextElementSibling;
        else
            el.insertBefore(child, place);
    }
    for (const child of old.values())
        child.remove();
}
