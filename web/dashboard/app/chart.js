/* A line over time as SVG: no axes, the last value in words, the highest one said. Points are [time, value]; null is a gap. */
import { fill, h, s, setText } from './dom.js';

const WIDTH = 300, HEIGHT = 56;

export class Chart {
    constructor(title, words, { note = '' } = {}) {
        this.words = words;
        this.now = h('div.now', '\u2013');
        this.note = h('div.dim.small', note);
        this.plot = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', class: 'plot', role: 'img', 'aria-label': title });
        this.title = title;
        this.el = h('section.chart', h('h3', title), this.now, this.plot, this.note);
    }
    /* since: what it is over the whole time, in words. */
    show(points, from, to, since) {
        const known = points.filter(([time, value]) => value !== null && time >= from);
        const last = known.at(-1)?.[1];
        const highest = known.reduce((most, [, value]) => Math.max(most, value), 0);
        setText(this.now, last === undefined ? '\u2013' : this.words(last));
        const note = [known.length > 1 ? `highest ${this.words(highest)}` : '', since].filter(Boolean).join(' \u00b7 ');
        setText(this.note, note);
        this.plot.setAttribute('aria-label', `${this.title}: now ${last === undefined ? 'not known' : this.words(last)}, ${note}`);
        /* A page that was just opened knows little: then the line is as wide as what is known, at least a minute. */
        from = Math.max(from, Math.min(known[0]?.[0] ?? from, to - 60_000));
        const x = time => ((time - from) / (to - from) * WIDTH).toFixed(1), y = value => (HEIGHT - 2 - value / (highest || 1) * (HEIGHT - 6)).toFixed(1);
        const line = known.map(([time, value], i) => `${i ? 'L' : 'M'}${x(time)} ${y(value)}`).join('');
        fill(this.plot, known.length > 1 && s('path', { class: 'plot-area', d: `${line}L${x(known.at(-1)[0])} ${HEIGHT}L${x(known[0][0])} ${HEIGHT}Z` }), known.length > 1 && s('path', { class: 'plot-line', d: line }));
    }
}
