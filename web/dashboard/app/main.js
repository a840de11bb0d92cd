/* The frame around the screens: navigation, the state of the connection, which screen an address means. */
import { fill, h, icon, setText } from './dom.js';
import { Hub } from './hub.js';
import { listenToKeys, showKeys } from './keys.js';
import { Model } from './model.js';
import { Scope, effect } from './store.js';
import { clean, clock, duration, number } from './text.js';
import { badge, errorBox, forgetDisconnected, messagesElement, report } from './ui.js';
import { explain } from './hub.js';

/* address -> module. What is not among the first three is loaded when it is first wanted. */
const SCREENS = {
    inbox: ['Inbox', 'inbox', () => import('./screen_inbox.js')],
    tasks: ['Tasks', 'tasks', () => import('./screen_tasks.js')],
    sessions: ['Sessions', 'session', () => import('./screen_sessions.js')],
    session: ['Session', 'session', () => import('./screen_session.js'), 'sessions'],
    gated: ['Gated tasks', 'tasks', () => import('./screen_gated.js'), 'tasks'],
    changes: ['Changes', 'diff', () => import('./screen_changes.js'), 'tasks'],
    files: ['Files', 'files', () => import('./screen_files.js')],
    preview: ['Preview', 'preview', () => import('./screen_preview.js')],
    traffic: ['Traffic', 'traffic', () => import('./screen_traffic.js')],
    health: ['Health', 'health', () => import('./screen_health.js')],
    devices: ['Devices', 'devices', () => import('./screen_devices.js')],
};
const NAV = ['inbox', 'tasks', 'sessions', 'files', 'preview', 'traffic', 'health', 'devices'];
const BAR = ['inbox', 'tasks', 'sessions'];

const hub = new Hub(`${location.protocol.replace('http', 'ws')}//${location.host}/ws`);
const model = new Model(hub);
/* The form is loaded when it is wanted: pressed twice meanwhile, it comes once. */
let composing = null;
const openForm = options => composing ??= import('./compose.js').then(({ compose }) => compose(ctx, options)).catch(error => report('A task cannot be made', error)).finally(() => { composing = null; });
const ctx = { hub, model, go: address => { location.hash = address; }, compose: openForm };

/* ---- frame ---- */

const counter = () => h('span.count', { hidden: true });
const counts = [counter(), counter()];
const navLink = (name, count) => h('a.nav-link', { href: `#/${name}` }, icon(SCREENS[name][1]), h('span', SCREENS[name][0]), name === 'inbox' && count);
const nav = h('nav.nav', { 'aria-label': 'Screens' }, h('div.brand', h('span.brand-mark', 'weft'), h('span.brand-project')),
    NAV.map(name => navLink(name, counts[0])), h('span.grow'), h('button.nav-link.plain', { onclick: showKeys, type: 'button' }, icon('help'), h('span', 'Keys'), h('kbd', '?')));
const moreButton = h('button.nav-link', { type: 'button', 'aria-haspopup': 'dialog', onclick: () => showMore() }, icon('more'), h('span', 'More'));
const bar = h('nav.bar', { 'aria-label': 'Screens, short' }, BAR.map(name => navLink(name, counts[1])), moreButton);
const connection = h('div.connection', { role: 'status' });
const main = h('main.main', { id: 'main', tabindex: '0' });
const heading = h('h1.heading');
const tools = h('div.tools');
const top = h('header.top', heading, tools, connection);

fill(document.body, h('a.skip', { href: '#main', onclick: event => { event.preventDefault(); main.focus(); } }, 'Skip to the content'), nav, h('div.page', top, main), bar, messagesElement());

async function showMore() {
    const { dialog } = await import('./ui.js');
    const close = dialog('More', shut => h('div.more', NAV.filter(name => !BAR.includes(name)).map(name => {
        const el = navLink(name);
        el.addEventListener('click', () => shut());
        return el;
    }), h('button.nav-link', { type: 'button', onclick: () => { shut(); showKeys(); } }, icon('help'), h('span', 'Keys'))));
    return close;
}

/* ---- connection, in words ---- */

function connectionWords(state) {
    switch (state.name) {
    case 'live':
        return [badge('live', 'live')];
    case 'catchingUp':
        return [badge('running', `catching up, ${number(state.behind)} events`)];
    case 'offline': {
        const left = Math.ceil((state.retryAt - Date.now()) / 1000);
        return [badge('failed', `offline since ${clock(state.since)}, ${left > 0 ? `trying again in ${duration(left * 1000).replace('.0', '')}` : 'trying again'}`)];
    }
    default:
        return [badge('queued', 'connecting')];
    }
}
let shownState = '';
function showConnection() {
    const state = hub.state.peek();
    const words = connectionWords(state);
    const text = words.map(one => one.textContent).join('');
    if (text === shownState)
        return;
    shownState = text;
    fill(connection, words);
    document.body.dataset.connection = state.name;
}
effect(() => {
    if (hub.state.value.name === 'live')
        forgetDisconnected();
    showConnection();
});
setInterval(showConnection, 500);

/* ---- title and icon carry the count ---- */

const favicon = document.querySelector('link[rel=icon]');
const plainIcon = favicon.href;
let title = 'Inbox', shownCount = -1;
function showTitle(waiting) {
    document.title = clean(`${waiting ? `(${waiting}) ` : ''}${title} \u00b7 Weft`);
}
function showCount(waiting) {
    if (waiting === shownCount)
        return;
    shownCount = waiting;
    for (const el of counts) {
        el.hidden = !waiting;
        fill(el, String(waiting), h('span.unseen', ' waiting for you'));
    }
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#b3480f"/><text x="16" y="23" font-family="sans-serif" font-size="20" font-weight="700" text-anchor="middle" fill="#fff">${waiting > 9 ? '9+' : waiting}</text></svg>`;
    favicon.href = waiting ? `data:image/svg+xml,${encodeURIComponent(svg)}` : plainIcon;
}
effect(() => {
    model.version.value;
    const waiting = model.openQuestions().length + model.unseenFailures().length;
    showCount(waiting);
    showTitle(waiting);
});
effect(() => {
    const who = hub.who.value;
    document.body.classList.toggle('only-looks', !hub.may('work'));
    const project = document.querySelector('.brand-project');
    setText(project, who?.project ?? '');
    project.title = clean(who?.folder ?? '');
});
effect(() => {
    const error = model.error.value;
    if (error)
        report('Tasks and questions could not be read', error);
});

/* ---- screens ---- */

let current = null, round = 0, arrived; /* arrived: the address of the screen that is shown */

export function parseAddress(hash) {
    const [name, ...rest] = hash.replace(/^#\/?/, '').split('/');
    return { name: SCREENS[name] ? name : 'inbox', rest: rest.map(part => { try { return decodeURIComponent(part); } catch { return part; } }) };
}

/* Their styles come with the first of the screens that need them. */
const FIRST = ['inbox', 'tasks', 'sessions', 'session'];
let lateStyles = null;
const loadStyles = () => lateStyles ??= new Promise(resolve => {
    const link = h('link', { rel: 'stylesheet', href: new URL('late.css', import.meta.url).href });
    link.addEventListener('load', resolve);
    link.addEventListener('error', resolve);
    document.head.append(link);
});

async function show() {
    const mine = ++round;
    const { name, rest } = parseAddress(location.hash);
    let module;
    setText(heading, SCREENS[name][0]);
    try {
        [module] = await Promise.all([SCREENS[name][2](), FIRST.includes(name) || loadStyles()]);
    } catch (error) {
        if (mine === round) {
            leave();
            arrived = location.hash;
            main.className = 'main';
            fill(tools);
            fill(main, errorBox(explain(`${SCREENS[name][0]} could not be loaded`, error), h('p', h('button', { type: 'button', onclick: () => location.reload() }, 'Reload the page'))));
            /* A browser does not ask again for a module that it could not get; after a restart there may be others, too. */
            const opened = hub.opened.peek(), scope = new Scope();
            current = { name, scope, screen: {} };
            scope.effect(() => hub.opened.value > opened && location.reload());
        }
        return;
    }
    if (mine !== round)
        return;
    arrived = location.hash;
    if (current?.name === name && current.screen.readdress?.(rest))
        return;
    leave();
    const scope = new Scope();
    const setTitle = text => {
        title = text;
        setText(heading, text);
        heading.title = clean(text);
        showTitle(Math.max(0, shownCount));
    };
    fill(tools);
    setTitle(SCREENS[name][0]);
    main.className = `main screen-${name}`;
    current = { name, scope, screen: {} };
    for (const link of document.querySelectorAll('.nav-link[href]'))
        link.getAttribute('href') === `#/${SCREENS[name][3] ?? name}` ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
    try {
        const screen = module.screen({ ...ctx, scope, rest, setTitle, tools, main });
        current.screen = screen;
        fill(main, screen.el);
        screen.shown?.();
    } catch (error) {
        fill(main, errorBox(explain(`${SCREENS[name][0]} failed`, error)));
        console.error(error);
    }
}
function leave() {
    current?.scope.end();
    current = null;
}

const pressKept = listenToKeys({
    coming: () => location.hash !== arrived,
    keys: () => ({ c: () => ctx.compose(), ...current?.screen.keys }),
    go: ctx.go,
    back: () => current?.screen.back ? current.screen.back() : history.length > 1 && history.back(),
});
/* The first screen needs the model for anything sensible: wait for it, but not for ever. */
const come = () => show().then(pressKept);
addEventListener('hashchange', come);
come();
