/* A list of which only what is in sight has elements. Rows have one height (rowHeight), or each its own, which is measured when the row
 * is first in sight. follow: stay at the end as long as the reader is there. */
import { h } from './dom.js';
import { perFrame } from './store.js';

const AROUND = 400; /* px beyond the edges that have elements too, so that scrolling shows no gap */
const NEAR_END = 24; /* px from the end that still count as the end */

export class VirtualList {
    items = [];
    #shown = new Map(); /* key -> { el, version, index } */
    #offsets = new Float64Array(64); /* where row i begins; one more than rows */
    #valid = 0; /* offsets up to this row are right */
    #heights = new Map(); /* key -> measured */
    #atEnd = true;
    #height = -1; /* of the body */
    #setTop = NaN; /* where we scrolled to: a scroll event there is ours, not the reader's */
    constructor({ key, row, version = () => 0, rowHeight = 0, estimate = 24, follow = false, label, role = 'list', onscroll, ontop, onbottom }) {
        Object.assign(this, { key, row, version, rowHeight, follow, onscroll, ontop, onbottom });
        this.estimate = typeof estimate === 'function' ? estimate : () => estimate;
        this.body = h('div.vbody', { role: role || undefined });
        this.el = h('div.vlist', { tabindex: '0', 'aria-label': label, role: 'group' }, this.body);
        this.render = perFrame(() => this.renderNow());
        this.el.addEventListener('scroll', () => this.#scrolled(), { passive: true });
        this.resized = new ResizeObserver(() => this.#resized());
        this.resized.observe(this.el);
        this.rowResized = rowHeight ? null : new ResizeObserver(entries => this.#rowsResized(entries));
    }
    destroy() {
        this.resized.disconnect();
        this.rowResized?.disconnect();
    }
    /* All rows anew. from: rows before this are as they were. */
    set(items, from = 0) {
        this.items = items;
        this.#valid = Math.min(this.#valid, from);
        this.render();
    }
    /* What the reader sees first, and how much of it is above the edge: for holdAt(), when rows were put before it or taken away. */
    anchor() {
        this.#measureOffsets();
        const index = this.items.length ? this.rowAt(this.el.scrollTop) : -1;
        return index < 0 ? null : { item: this.items[index], above: this.el.scrollTop - this.#offsets[index] };
    }
    holdAt(index, above) {
        if (this.following || index < 0)
            return;
        this.#setHeight();
        this.#scrollTo(this.#offsets[index] + above);
        this.renderNow();
    }
    get total() {
        this.#measureOffsets();
        return this.#offsets[this.items.length];
    }
    get following() {
        return this.follow && this.#atEnd;
    }
    heightOf(item) {
        return this.rowHeight || (this.#heights.get(this.key(item)) ?? this.estimate(item));
    }
    #measureOffsets() {
        const n = this.items.length;
        if (this.#offsets.length < n + 1) {
            const larger = new Float64Array(Math.max(n + 1, this.#offsets.length * 2));
            larger.set(this.#offsets);
            this.#offsets = larger;
        }
        for (let i = this.#valid; i < n; i++)
            this.#offsets[i + 1] = this.#offsets[i] + this.heightOf(this.items[i]);
        this.#valid = n;
    }
    /* Before scrolling: one cannot scroll beyond what there is. */
    #setHeight() {
        const { total } = this;
        if (this.#height !== total)
            this.body.style.height = `${this.#height = total}px`;
        return total;
    }
    /* The row at this height: the last that begins at or above it. */
    rowAt(y) {
        let low = 0, high = this.items.length - 1;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (this.#offsets[middle] <= y)
                low = middle;
            else
                high = middle - 1;
        }
        return Math.max(0, low);
    }
    #scrollTo(y) {
        this.el.scrollTop = y;
        this.#setTop = this.el.scrollTop;
    }
    toEnd() {
        this.#atEnd = true;
        this.render();
    }
    /* Bring a row into sight. */
    show(index, middle = false) {
        this.#setHeight();
        const top = this.#offsets[index], bottom = this.#offsets[index + 1], height = this.el.clientHeight;
        this.#atEnd = false;
        if (middle)
            this.#scrollTo(top - height / 2);
        else if (top < this.el.scrollTop)
            this.#scrollTo(top);
        else if (bottom > this.el.scrollTop + height)
            this.#scrollTo(bottom - height);
        this.renderNow();
    }
    elementAt(index) {
        const item = this.items[index];
        return item === undefined ? undefined : this.#shown.get(this.key(item))?.el;
    }
    renderNow() {
        const height = this.el.clientHeight;
        if (!height || !this.el.isConnected)
            return;
        const total = this.#setHeight();
        if (this.follow && this.#atEnd && this.el.scrollTop !== Math.max(0, total - height))
            this.#scrollTo(total);
        const top = this.el.scrollTop;
        const first = this.items.length ? this.rowAt(top - AROUND) : 0;
        let last = first;
        while (last < this.items.length && this.#offsets[last] < top + height + AROUND)
            last++;
        this.#place(first, last);
        if (first === 0 && top < AROUND)
            this.ontop?.();
        if (last === this.items.length && top + height > total - AROUND)
            this.onbottom?.();
    }
    #place(first, last) {
        const keep = new Set();
        let before = null;
        for (let i = first; i < last; i++) {
            const item = this.items[i], key = this.key(item), version = this.version(item);
            keep.add(key);
            let one = this.#shown.get(key);
            if (!one) {
                one = { el: this.row(item, undefined, i), version };
                one.el.classList.add('vrow');
                if (!this.rowHeight) {
                    one.el.vkey = key;
                    this.rowResized.observe(one.el);
                }
                this.#shown.set(key, one);
            } else if (one.version !== version) {
                one.version = version;
                const el = this.row(item, one.el, i);
                if (el !== one.el)
                    this.#replace(one, el, key);
            }
            if (one.at !== this.#offsets[i]) {
                one.at = this.#offsets[i];
                one.el.style.transform = `translateY(${one.at}px)`;
            }
            /* In the order of the list, for those who go through it by keyboard or ear. */
            const place = before ? before.nextSibling : this.body.firstChild;
            if (one.el !== place && !one.el.contains(document.activeElement))
                this.body.insertBefore(one.el, place);
            before = one.el;
        }
        for (const [key, one] of this.#shown)
            if (!keep.has(key) && !one.el.contains(document.activeElement)) {
                one.el.remove();
                this.rowResized?.unobserve(one.el);
                this.#shown.delete(key);
            }
    }
    #replace(one, el, key) {
        const focused = one.el.contains(document.activeElement);
        el.classList.add('vrow');
        one.el.replaceWith(el);
        this.rowResized?.unobserve(one.el);
        one.el = el;
        one.at = undefined;
        if (!this.rowHeight) {
            el.vkey = key;
            this.rowResized.observe(el);
        }
        if (focused)
            (el.querySelector('a,button') ?? el).focus({ preventScroll: true });
    }
    #rowsResized(entries) {
        let changed = false;
        for (const entry of entries) {
            const height = entry.borderBoxSize[0].blockSize;
            if (!height || this.#heights.get(entry.target.vkey) === height)
                continue;
            this.#heights.set(entry.target.vkey, height);
            changed = true;
        }
        if (!changed)
            return;
        /* What lies above the first row in sight moves it: hold it where it is. */
        const top = this.el.scrollTop, anchor = this.items.length ? this.rowAt(top) : 0, was = this.#offsets[anchor];
        this.#valid = 0;
        this.#measureOffsets();
        const moved = this.#offsets[anchor] - was;
        if (moved && !(this.follow && this.#atEnd)) {
            this.#setHeight();
            this.#scrollTo(top + moved);
        }
        this.renderNow();
    }
    #resized() {
        const width = this.el.clientWidth;
        if (this.width !== undefined && width !== this.width && !this.rowHeight) {
            this.#heights.clear();
            for (const one of this.#shown.values())
                this.#heights.set(one.el.vkey, one.el.offsetHeight);
            this.#valid = 0;
        }
        this.width = width;
        this.renderNow();
    }
    #scrolled() {
        const nearEnd = this.el.scrollTop + this.el.clientHeight >= this.el.scrollHeight - NEAR_END;
        const ours = Math.abs(this.el.scrollTop - this.#setTop) < 2;
        this.#setTop = NaN;
        if (!ours && this.follow && nearEnd !== this.#atEnd) {
            this.#atEnd = nearEnd;
            this.onscroll?.(nearEnd);
        }
        this.render();
    }
    leaveEnd() {
        this.#atEnd = false;
        this.onscroll?.(false);
    }
    /* Heights of rows that are gone are forgotten now and then. */
    forget() {
        if (this.#heights.size < 4 * this.items.length + 1000)
            return;
        const keys = new Set(this.items.map(this.key));
        for (const key of this.#heights.keys())
            if (!keys.has(key))
                this.#heights.delete(key);
    }
}
