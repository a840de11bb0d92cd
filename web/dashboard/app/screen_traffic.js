/* Frames of other connections, both ways, as the hub shows them: secrets are masked before they leave it. */
import { fill, h, icon, setText } from './dom.js';
import { explain } from './hub.js';
import { count, number, shellWords, size } from './text.js';
import { empty } from './parts.js';
import { badge, button, copyText, errorBox } from './ui.js';
import { VirtualList } from './vlist.js';

const MOST = 20_000;
const time = ms => { const d = new Date(ms); return `${d.toTimeString().slice(0, 8)}.${String(d.getMilliseconds()).padStart(3, '0')}`; };

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text; /* cut off, or not JSON */
    }
}
/* A request as somebody would send it from a terminal. */
function asCall(frame) {
    try {
        const { method, params } = JSON.parse(frame.text);
        return `weft call ${shellWords([method])}${params === undefined ? '' : ` ${shellWords([JSON.stringify(params)])}`}`;
    } catch {
        return null;
    }
}

export function screen(ctx) {
    const { hub, scope } = ctx;
    let all = [], shown = [], text = '', paused = false, missed = 0, dropped = 0, chosen = null, last = 0, watching = false;
    const list = new VirtualList({ key: one => one.n, version: one => `${one === chosen}`, rowHeight: 26, row, follow: true, label: 'Frames' });
    scope.add(() => list.destroy());
    const detail = h('div.traffic-detail', { hidden: true });
    const find = h('input.find', { type: 'search', placeholder: 'Filter: method, name, text', 'aria-label': 'Filter frames', oninput: () => { text = find.value.toLowerCase(); refilter(); } });
    const pause = h('button.toggle', { type: 'button', 'aria-pressed': 'false', 'aria-label': 'Pause', onclick: () => { paused = !paused; pause.setAttribute('aria-pressed', String(paused)); if (!paused) { missed = 0; refilter(); } showCount(); } }, icon('pause'), h('span', 'Pause'));
    const countOf = h('span.dim.small', { role: 'status' });
    const none = h('div.traffic-none', { hidden: true }, empty('Nothing is said', 'Messages of other connections come here as they are sent, secrets masked. This page\u2019s own are left out.', [['Say something from a terminal', 'weft task list']]));
    const body = h('div.tasks-body', none, list.el);

    function row(one) {
        const arrow = one.dir === 'in' ? '\u2192 hub' : '\u2190 hub';
        return h(`div.frame${one === chosen ? '.chosen' : ''}${one.kind === 'error' ? '.frame-error' : ''}`, { role: 'listitem', onclick: () => choose(one) }, h('span.frame-time.dim', time(one.time)), h('span', arrow), h('span.frame-conn.dim', one.client ?? one.conn ?? ''),
            h('button', { type: 'button', 'aria-label': `${one.dir} ${one.method ?? one.kind}, ${one.size} bytes` }, one.method ?? `${one.kind} ${one.rpcId ?? ''}`), h('span.num', size(one.size)), h('span.frame-ms.num.dim', one.ms === undefined || one.ms === null ? '' : `${one.ms} ms`));
    }
    function choose(one) {
        chosen = one;
        detail.hidden = !one;
        const call = one && one.dir === 'in' && one.method && one.text ? asCall(one) : null;
        fill(detail, one && [h('div.pane-head', h('b', one.method ?? one.kind), badge(one.kind === 'error' ? 'failed' : 'queued', one.kind), h('span.dim', `${one.client ?? ''} \u00b7 ${one.dir === 'in' ? 'to the hub' : 'from the hub'} \u00b7 ${size(one.size)}`), h('span.grow'), call && button('Copy as weft call', '', () => copyText(call, 'The command'), { iconName: 'copy' }),
            h('button.plain', { type: 'button', 'aria-label': 'Close', onclick: () => choose(null) }, icon('close'))), h('pre.mono', { tabindex: '0', role: 'group', 'aria-label': 'The frame' }, one.text ? pretty(one.text) : 'The text was not kept.')]);
        list.render();
    }
    const matches = one => !text || `${one.method ?? ''} ${one.kind} ${one.client ?? ''} ${one.text ?? ''}`.toLowerCase().includes(text);
    function take({ frames = [], dropped: left = 0 }) {
        dropped += left;
        for (const frame of frames) {
            const one = { ...frame, n: ++last };
            all.push(one);
            if (paused)
                missed++;
            else if (matches(one))
                shown.push(one);
        }
        if (all.length > MOST)
            all = all.slice(-MOST / 2);
        if (shown.length > MOST)
            shown = shown.slice(-MOST / 2);
        if (!paused)
            list.set(shown);
        showCount();
    }
    function refilter() {
        shown = all.filter(matches);
        list.set(shown);
        showCount();
    }
    const showCount = () => (none.hidden = all.length > 0 || !watching, setText(countOf, [count(shown.length, 'frame'), paused && `${number(missed)} came since`, dropped && `${number(dropped)} were left out`].filter(Boolean).join(', ')));

    async function watch() {
        if (!hub.methods.peek())
            return;
        if (!hub.has('traffic.watch') || !hub.may('admin')) {
            fill(body, empty('Traffic cannot be shown', hub.may('admin') ? 'This hub has no method traffic.watch.' : 'It needs the scope admin: log in with a token that has it.', [['The same in a terminal', 'WEFT_DEBUG=1 weft serve']]));
            return;
        }
        try {
            await hub.call('traffic.watch', { body: true });
            watching = true;
            showCount();
        } catch (error) {
            fill(body, errorBox(explain('Traffic cannot be watched', error)));
        }
    }
    hub.client.onNotify('traffic', take);
    scope.add(() => {
        hub.client.onNotify('traffic', () => {});
        if (watching && hub.open)
            hub.call('traffic.unwatch', {}).catch(() => {});
    });
    scope.effect(() => {
        hub.opened.value;
        hub.methods.value;
        hub.who.value;
        watch();
    });
    fill(ctx.tools, pause, button('Clear', '', () => { all = []; choose(null); refilter(); }));
    const move = by => {
        const at = chosen ? shown.indexOf(chosen) + by : by > 0 ? 0 : shown.length - 1;
        if (!shown[at])
            return;
        choose(shown[at]);
        list.show(at);
    };
    return { el: h('div.traffic', h('div.filters', find, countOf), body, detail), keys: { j: () => move(1), k: () => move(-1), '/': () => find.focus() }, back: () => chosen ? choose(null) : history.back() };
}
