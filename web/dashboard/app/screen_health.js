/* How the hub is: figures of the last 15 minutes and since its start. */
import { Chart } from './chart.js';
import { fill, h, setText } from './dom.js';
import { explain } from './hub.js';
import { count, duration, exact, number, size } from './text.js';
import { badge, errorBox } from './ui.js';

const SPAN = 15 * 60_000, EVERY = 5000;
const ms = value => value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 2 : 1)} ms` : duration(value * 1000);
const rate = value => `${value < 10 ? value.toFixed(1) : number(Math.round(value))}/s`;

const find = (rows, name) => rows.find(one => one.name === name)?.samples ?? [];
const sum = (rows, name, is = () => true) => find(rows, name).filter(one => is(one.labels)).reduce((total, one) => total + (one.value ?? 0), 0);
const isIn = one => one.direction === 'in', isOut = one => one.direction === 'out';
const under = (rows, name) => { const all = find(rows, name)[0]; return all?.p99 ? `99 % under ${ms(all.p99)} since start` : ''; };

/* title, how a value is said, how it is read from a sample of health.history (s: its seconds), what metrics.get says since the start */
const FIGURES = [
    ['Connections', number, one => one.connections, all => `${number(sum(all, 'weft_connections_opened_total'))} since start`],
    ['Requests', rate, (one, s) => one.requests / s, all => `${number(sum(all, 'weft_rpc_requests_total', isIn))} since start`],
    ['Errors', rate, (one, s) => one.errors / s, all => `${number(sum(all, 'weft_rpc_errors_total'))} since start`],
    ['Tasks that wait', number, one => one.queued, all => `${count(sum(all, 'weft_tasks_submitted_total'), 'task')} since start`],
    ['Tasks that run', number, one => one.running, all => `${number(sum(all, 'weft_agent_processes'))} agent processes`],
    ['Store: time of a commit (99 %)', ms, one => one.syncs ? one.syncP99Us / 1e6 : null, all => under(all, 'weft_store_sync_seconds')],
    ['Store: size', size, one => one.storeBytes, all => `${size(sum(all, 'weft_store_bytes_total'))} of events since start`],
    ['Loop delay (99 %)', ms, one => one.loopP99Ms / 1000, all => under(all, 'weft_loop_delay_seconds')],
    ['Memory', size, one => one.memory, all => `${size(sum(all, 'weft_connection_memory_bytes'))} in connections`],
    ['Sent', value => `${size(value)}/s`, (one, s) => one.bytesOut / s, all => `${size(sum(all, 'weft_rpc_wire_bytes_total', isOut))} since start`],
];

export function screen(ctx) {
    const { hub, scope } = ctx;
    const about = h('div.chips');
    const charts = FIGURES.map(([title, words]) => new Chart(title, words));
    const span = h('h2', 'The last 15 minutes');
    const errors = h('div'), servers = h('div'), failed = h('div');
    const el = h('div.health', failed, about, h('section', span, h('div.charts', charts.map(one => one.el))), h('section', h('h2', 'Errors by reason, since start'), errors), servers);

    function showErrors(rows) {
        const all = find(rows, 'weft_rpc_errors_total').filter(one => one.value > 0).sort((a, b) => b.value - a.value).slice(0, 30);
        fill(errors, all.length ? h('div.scroller', { tabindex: '0', role: 'group', 'aria-label': 'Errors by reason' }, h('table', h('thead', h('tr', h('th', { scope: 'col' }, 'reason'), h('th', { scope: 'col' }, 'code'), h('th', { scope: 'col' }, 'how often'))), h('tbody', all.map(one => h('tr', h('td', h('code', one.labels.reason || '\u2013')), h('td', one.labels.code), h('td.num', number(one.value))))))) : h('p.dim', 'None.'));
    }
    async function showAbout() {
        const status = await hub.call('daemon.status', {});
        const weft = status.weft ?? {};
        fill(about, badge(status.health === 'healthy' ? 'completed' : 'failed', status.health), h('span.dim', `version ${weft.version ?? ''} \u00b7 process ${status.pid} \u00b7 up ${duration(status.uptime_seconds * 1000)} (since ${exact(Date.parse(status.started_at))})`), h('code.dim', weft.folder ?? ''), status.subsystems.store && h('span.state-failed', `store: ${status.subsystems.store.error}`));
    }
    async function showServers() {
        if (!hub.has('mcp/servers'))
            return;
        const { servers: rows } = await hub.call('mcp/servers', {});
        fill(servers, h('section', h('h2', 'MCP servers'), rows.length ? h('div.scroller', { tabindex: '0', role: 'group', 'aria-label': 'MCP servers' }, h('table', h('thead', h('tr', ['name', 'state', 'transport', 'says'].map(name => h('th', { scope: 'col' }, name)))), h('tbody', rows.map(one => h('tr', h('td', one.name), h('td', String(one.state ?? '')), h('td', one.transport ?? ''), h('td', one.error ?? [one.serverInfo?.title ?? one.serverInfo?.name, one.serverInfo?.version].filter(Boolean).join(' '))))))) : h('p.dim', 'None is configured: "mcp": {"servers": {…}} in the configuration.')));
    }
    async function look() {
        if (!hub.open)
            return;
        try {
            /* What has come since the start needs the scope metrics; the last minutes do not. */
            const [history, metrics] = await Promise.all([hub.call('health.history', {}), hub.call('metrics.get', {}).then(one => one.metrics, () => null)]);
            const now = history.samples.at(-1)?.time ?? Date.now(), seconds = history.intervalMs / 1000;
            /* The charts are as wide as what is known. */
            const known = now - Math.max(now - SPAN, history.samples[0]?.time ?? now);
            setText(span, known > SPAN - 60_000 ? 'The last 15 minutes' : known < 60_000 ? 'The last minute' : `The last ${count(Math.round(known / 60_000), 'minute')}, since the start`);
            FIGURES.forEach(([, , read, since], i) => charts[i].show(history.samples.map(one => [one.time, read(one, seconds) ?? null]), now - SPAN, now, metrics ? since(metrics) : ''));
            if (metrics)
                showErrors(metrics);
            fill(failed);
        } catch (error) {
            if (error.reason !== 'disconnected')
                fill(failed, errorBox(explain('The figures cannot be read', error)));
        }
        showAbout().catch(() => {});
    }
    scope.every(EVERY, look);
    scope.effect(() => {
        hub.opened.value;
        look();
    });
    scope.effect(() => {
        hub.methods.value;
        showServers().catch(() => {});
    });
    return { el };
}
