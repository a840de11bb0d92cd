/* Text from agents, files and people, made fit to be shown: what a control character or a change of direction would do is not done,
 * it is shown as a sign. And times, sizes and numbers in words. */

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\udb40][\udc00-\udc7f]/;
const CONTROLS = new RegExp(CONTROL.source, 'g');
/* Colours and cursor moves of a terminal: CSI and OSC sequences. */
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][0-9A-Za-z]|[=>78cDEHM])/g;

function shownSign(sign) {
    const code = sign.codePointAt(0);
    if (code < 0x20)
        return String.fromCharCode(0x2400 + code);
    if (code === 0x7f)
        return '\u2421';
    /* Joins emoji and letters of several scripts; changes nothing else. */
    if (code === 0x200d || code === 0x200c)
        return sign;
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

/* At a relay of several hubs an id begins with its hub's name. */
export const hubOf = id => /^(.+):/.exec(id)?.[1];
export const agentAt = (id, agent) => hubOf(id) ? `${hubOf(id)}: ${agent}` : agent;

export function clean(text) {
    const whole = String(text);
    if (!CONTROL.test(whole))
        return whole;
    return whole.replace(/\r\n/g, '\n').replace(CONTROLS, shownSign);
}

/* What a program printed: colours are left out, and of a line that was written over with \r the last state counts. */
export function cleanOutput(text) {
    const whole = String(text);
    if (!CONTROL.test(whole))
        return whole;
    const plain = whole.replace(TERMINAL, '').replace(/\r+\n/g, '\n');
    return clean(plain.includes('\r') ? plain.replace(/^.*\r(?!$)/gm, '') : plain);
}

/* One line, cut. */
export function brief(text, most = 200) {
    const whole = String(text ?? '');
    const line = whole.slice(0, most * 2).replace(/\s+/g, ' ').trim();
    return line.length > most || whole.length > most * 2 ? `${line.slice(0, most).trimEnd()}\u2026` : line;
}

const grouped = new Intl.NumberFormat('en');
export const number = value => grouped.format(value);
export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

export function size(bytes) {
    if (bytes < 1024)
        return `${Math.round(bytes)} B`;
    const units = ['KiB', 'MiB', 'GiB', 'TiB'];
    let at = -1, value = bytes;
    do {
        value /= 1024;
        at++;
    } while (value >= 1024 && at < units.length - 1);
    return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

/* How long, in at most two units. */
export function duration(ms) {
    if (ms < 0 || !Number.isFinite(ms))
        return '0 s';
    if (ms < 1000)
        return `${Math.round(ms)} ms`;
    const s = ms / 1000;
    if (s < 10)
        return `${s.toFixed(1)} s`;
    if (s < 60)
        return `${Math.floor(s)} s`;
    if (s < 3600)
        return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
    if (s < 86400)
        return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/* How long ago, in one unit. */
export function age(ms) {
    const s = Math.max(0, ms) / 1000;
    if (s < 5)
        return 'now';
    if (s < 60)
        return `${Math.floor(s)} s`;
    if (s < 3600)
        return `${Math.floor(s / 60)} min`;
    if (s < 86400)
        return `${Math.floor(s / 3600)} h`;
    return `${Math.floor(s / 86400)} d`;
}

export const ago = ms => age(ms) === 'now' ? 'now' : `${age(ms)} ago`;
const clockFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
export const clock = time => clockFormat.format(time);
const pad = n => String(n).padStart(2, '0');
export function exact(time) {
    const d = new Date(time);
    return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

export function money({ amount, currency }) {
    return `${amount < 0.1 ? amount.toFixed(4) : amount.toFixed(2)} ${currency}`;
}

/* A command as a person would type it. */
export function shellWords(words) {
    return words.map(word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replace(/'/g, `'\\''`)}'`).join(' ');
}
