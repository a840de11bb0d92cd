/* Tokens and devices: who may speak to this hub, and taking that back. */
import { fill, h } from './dom.js';
import { explain } from './hub.js';
import { ago } from './text.js';
import { command, field } from './parts.js';
import { button, copyText, dialog, errorBox, select, twice, when } from './ui.js';

const SCOPES = [['read', 'read: look'], ['read work', 'read and work: submit, answer'], ['read work admin metrics', 'everything'], ['metrics', 'metrics only']];
const EXPIRES = [['0', 'never'], ['86400', 'in a day'], ['2592000', 'in 30 days'], ['31536000', 'in a year']];
const head = (...names) => h('thead', h('tr', names.map(name => h('th', { scope: 'col' }, name || h('span.unseen', 'Actions')))));
const time = text => text ? when(Date.parse(text)) : h('span.dim', 'not known');
const seen = text => text ? time(text) : h('span.dim', { title: 'Not since the hub started' }, 'not since start');
const until = text => text ? h('time', { title: text }, Date.parse(text) < Date.now() ? 'expired' : `in ${ago(Date.parse(text) - Date.now()).replace(' ago', '')}`) : h('span.dim', 'never');

export function screen(ctx) {
    const { hub, scope } = ctx;
    const tokens = h('div'), connections = h('div');

    async function loadTokens() {
        try {
            const { tokens: rows } = await hub.call('token.list', {});
            fill(tokens, rows.length ? h('div.scroller', { tabindex: '0', role: 'group', 'aria-label': 'Tokens and devices' }, h('table', head('name', 'kind', 'scope', 'last seen', 'expires', 'made', ''), h('tbody', rows.map(tokenRow))))
                : h('div', h('p.dim', 'No token has a name yet. The one of the first start, in .weft/token, has all scopes. Make one for each device or program, so that it can be taken back alone:'), command('weft token add phone --scope "read work"')));
        } catch (error) {
            fill(tokens, errorBox(explain('The tokens cannot be listed', error)));
        }
    }
    const tokenRow = one => h('tr', h('td', h('b', one.name), one.current && [' ', h('span.tag', 'this one')]), h('td', one.device || one.paired ? 'device' : 'token'), h('td', one.scopes), h('td', seen(one.lastSeenAt)), h('td', until(one.expiresAt)), h('td', time(one.createdAt)),
        h('td', twice('Revoke', 'Press again: take it back', `${one.name} was not revoked`, async () => { await hub.call('token.revoke', { name: one.name }); await loadTokens(); }, { kind: 'deny' })));
    async function loadConnections() {
        if (!hub.has('connection.list'))
            return;
        try {
            const { connections: rows } = await hub.call('connection.list', {});
            fill(connections, h('h2', 'Connected now'), h('div.scroller', { tabindex: '0', role: 'group', 'aria-label': 'Connections' }, h('table', head('who', 'how', 'address', 'since', 'follows'), h('tbody', rows.map(one => h('tr', h('td', one.name ?? '', one.current && [' ', h('span.tag', 'this page')]), h('td', one.transport ?? ''), h('td', h('code', one.address ?? '')), h('td', time(one.since)), h('td', String(one.subscriptions ?? ''))))))));
        } catch (error) {
            fill(connections, errorBox(explain('The connections cannot be listed', error)));
        }
    }

    /* ---- a new token: its secret is shown once ---- */

    const name = h('input', { type: 'text', maxlength: '64', pattern: '[A-Za-z0-9._\\-]{1,64}', title: '1 to 64 letters, digits, dots, dashes and underscores' });
    const scopes = select(SCOPES, 'read work'), expires = select(EXPIRES, '2592000');
    const add = button('Make a token', 'No token was made', async () => {
        if (!name.value || !name.reportValidity())
            return name.focus();
        const made = await hub.call('token.add', { name: name.value, scopes: scopes.value, expiresIn: Number(expires.value) });
        dialog(`Token ${name.value}`, () => h('div.field', h('p', 'This is shown once and kept nowhere. Put it where the program or device reads it.'), h('p.secret.mono', made.token), h('div', button('Copy', '', () => copyText(made.token, 'The token'), { kind: 'primary', iconName: 'copy' }))));
        name.value = '';
        await loadTokens();
    }, { kind: 'primary' });
    const maker = h('section', h('h2', 'A new token'), h('div.devices-add', field('Name', name), field('It may', scopes), field('Expires', expires), add));
    const el = h('div.devices', h('section', h('h2', 'Tokens and devices'), tokens), maker,
        h('section', h('h2', 'A phone'), h('p', 'A phone on the same network can be paired by a code, for five minutes and once:'), command('weft pair')), h('section', connections),
        h('section', h('h2', 'This browser'), h('div.row', button('Log out', 'Not logged out', async () => { await fetch('/logout', { method: 'POST' }); location.assign('/login'); }))));
    scope.effect(() => {
        hub.who.value;
        maker.hidden = !hub.may('admin');
    });
    scope.effect(() => {
        if (hub.opened.value)
            loadTokens();
    });
    scope.effect(() => {
        hub.methods.value;
        hub.opened.value;
        loadConnections();
    });
    scope.every(10_000, () => hub.open && loadConnections());
    return { el };
}
