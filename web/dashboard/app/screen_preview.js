/* The project's page in a sandboxed frame without an origin, a cookie or a network of its own: what it wants it asks for through a
 * port, and gets files of the project. Its console and errors are below, and what the project's build says. */
import { frameTransport, invitation } from '../../weft/ports.js';
import { previewParent } from '../../weft/preview.js';
import { fill, h, icon } from './dom.js';
import { explain } from './hub.js';
import { clock, count, duration } from './text.js';
import { command, empty } from './parts.js';
import { badge, button, errorBox, report } from './ui.js';

const MOST_LINES = 500;
const MODULES = ['weft.js', 'preview.js'];

/* A file of the project, as preview.js wants it; undefined: there is none. */
async function readFile(hub, path) {
    try {
        const file = await hub.call('file/get', { path: path.replace(/^\/+/, '') });
        return { body: file.encoding === 'base64' ? Uint8Array.from(atob(file.content), one => one.charCodeAt(0)) : file.content };
    } catch (error) {
        if (error.reason === 'fileNotFound')
            return undefined;
        throw error;
    }
}

/* The hub's own fetch knows the preview's folder (preview.root, or dist, build, ...); without it, files of the project's folder. */
const answerer = hub => hub.has('fetch') ? { fetch: params => hub.call('fetch', params) } : { files: path => readFile(hub, path) };
async function hasPage(hub) {
    if (!hub.has('fetch'))
        return await readFile(hub, 'index.html') !== undefined;
    try {
        return (await hub.call('fetch', { url: '/', method: 'HEAD' })).status === 200;
    } catch (error) {
        if (error.reason === 'previewLoadFailed')
            return false;
        throw error;
    }
}

export function screen(ctx) {
    const { hub, scope } = ctx;
    let preview = null, frame = null, lines = 0;
    const stop = new AbortController();
    scope.add(() => {
        stop.abort();
        preview?.destroy();
    });

    /* ---- console ---- */

    const out = h('div.console-lines', { tabindex: '0', role: 'log', 'aria-label': 'Console' });
    const problems = h('span.dim');
    let errors = 0;
    /* file: what the place is in, among the project's files. */
    function put(level, text, place, file) {
        errors += level === 'error';
        fill(problems, errors ? badge('failed', count(errors, 'error')) : 'no errors');
        const atEnd = out.scrollTop + out.clientHeight >= out.scrollHeight - 20;
        out.append(h(`div.console-line.console-${/^(error|warn)$/.test(level) ? level : 'log'}`, h('span.level', level), h('span.grow', text, place && h('span.dim', ' ', file ? h('a', { href: `#/files/${file.split('/').map(encodeURIComponent).join('/')}` }, place) : place)), h('span.dim', clock(Date.now()))));
        if (++lines > MOST_LINES)
            out.firstChild.remove();
        if (atEnd)
            out.scrollTop = out.scrollHeight;
    }
    const clear = () => {
        lines = errors = 0;
        fill(out);
        fill(problems, 'no errors');
    };

    /* ---- address ---- */

    const input = h('input', { type: 'text', 'aria-label': 'Address in the project', value: '/' });
    const go = (what, action) => action().catch(error => put('error', `${what}: ${explain(what, error).why}`));
    input.addEventListener('keydown', event => event.key === 'Enter' && preview && go('It cannot go there', () => preview.navigate(input.value)));
    const control = (name, label, action) => {
        const el = button('', `${label} failed`, () => preview && go(label, action), { iconName: name, title: label });
        el.setAttribute('aria-label', label);
        return el;
    };
    const back = control('back', 'Back', () => preview.back()), forward = control('forward', 'Forward', () => preview.forward());
    const reload = control('reload', 'Reload', () => { clear(); return preview.refresh(); });
    const showState = state => {
        if (document.activeElement !== input)
            input.value = state.url;
        back.disabled = !state.canGoBack;
        forward.disabled = !state.canGoForward;
    };
    back.disabled = forward.disabled = true;

    /* ---- build ---- */

    const built = h('div');
    const buildButton = button('Build', 'The build could not be started', runBuild);
    async function runBuild() {
        const began = Date.now();
        fill(built, badge('running', 'building'));
        try {
            const result = await hub.call('build', {}, { timeout: 900_000 });
            fill(built, badge('completed', `built in ${duration(Date.now() - began)}`));
            showDiagnostics(result?.diagnostics ?? result?.warnings);
            if (preview)
                await preview.refresh().catch(() => {});
        } catch (error) {
            fill(built, badge('failed', 'the build failed'));
            const found = error.data?.diagnostics ?? [];
            showDiagnostics(found);
            if (!found.length)
                put('error', error.data?.output || explain('The build failed', error).why);
            if (error.reason === 'buildNotConfigured')
                teachBuild();
        }
    }
    function showDiagnostics(list = []) {
        for (const one of list) {
            const file = one.file ?? one.path, line = one.line ?? one.location?.line;
            const place = file ? `${file}${line ? `:${line}` : ''}${one.column ? `:${one.column}` : ''}` : '';
            put({ warning: 'warn', info: 'log', note: 'log' }[one.severity ?? one.level] ?? 'error', one.message ?? one.text ?? '', place, file && !file.startsWith('/') ? file.replace(/^\.\//, '') : undefined);
        }
    }
    const teachBuild = () => put('log', 'No build is configured. Type in the project\u2019s folder: weft config set build.command \'["make"]\'; weft reload');

    /* ---- the frame ---- */

    const stage = h('div.pane');
    stage.style.flex = '1';
    /* The frame has no network, so the modules that serve its end of the boundary are handed in with the port. */
    async function begin() {
        if (!await hasPage(hub)) {
            fill(stage, empty('No page to show', 'The preview shows index.html of the project\u2019s folder (or of dist, build, out or public in it), and what it loads from there.', [
                ['Make one, or let an agent do it.', button('Ask for a page', '', () => ctx.compose({ prompt: 'write index.html: a small page that says hello' }), { needs: 'work' })], ['Or by hand:', 'echo "<h1>Hello</h1>" > index.html'],
                ['If the page must be built first, say how. The button Build runs it.', 'weft config set build.command \'["npm", "run", "build"]\'; weft reload']]));
            return;
        }
        const { nonce, fragment } = invitation();
        frame = h('iframe', { title: 'Preview of the project', sandbox: 'allow-scripts allow-forms allow-modals', referrerpolicy: 'no-referrer' });
        const coming = frameTransport(frame, { nonce, signal: stop.signal });
        frame.src = `/preview${fragment}`;
        fill(stage, frame);
        const [transport, ...texts] = await Promise.all([coming, ...MODULES.map(name => fetch(new URL(`../../weft/${name}`, import.meta.url)).then(answer => answer.text()))]);
        const ready = new Promise(resolve => transport.onMessage(message => message?.method === 'ready' && resolve(), { all: true }));
        transport.send({ jsonrpc: '2.0', method: 'begin', params: { modules: texts } });
        await ready;
        preview = previewParent(transport, {
            ...answerer(hub), onConsole: ({ level, message }) => put(level, message), onNavigation: showState,
            onError: ({ message, source, line }) => put('error', message, [source.replace(/^blob:.*/, 'script'), line].filter(Boolean).join(':')),
        });
        await go('The page cannot be shown', () => preview.navigate('/'));
    }
    const start = () => begin().catch(error => error.name !== 'AbortError' && fill(stage, errorBox(explain('The preview cannot be shown', error), h('p', button('Try again', '', start)))));
    fill(problems, 'no errors');
    scope.effect(() => {
        if (hub.opened.value && hub.methods.value && !frame)
            start();
        buildButton.hidden = !hub.has('build') || !hub.may('work');
    });
    /* What agents change is shown when their task has ended. */
    scope.add(ctx.model.listen(({ type }) => type === 'task.changed' && (frame ? preview?.refresh().catch(() => {}) : start())));
    return {
        el: h('div.preview', h('div.address', back, forward, reload, input, buildButton, built), stage, h('section.console', { 'aria-label': 'Console of the preview' }, h('div.console-head', h('b', 'Console'), problems, h('span.grow'), button('Clear', '', clear)), out)),
        keys: { '/': () => { input.focus(); input.select(); } },
    };
}
