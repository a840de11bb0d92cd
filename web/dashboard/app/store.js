/* Values that tell who reads them when they change. An effect runs again, in one batch per microtask, when a value that it read
 * last time has changed. Nothing else: no proxies, no components. */

let reading = null;
const waiting = new Set();
let scheduled = false;

function runWaiting() {
    scheduled = false;
    const now = [...waiting];
    waiting.clear();
    for (const one of now)
        one.run();
}

function schedule(one) {
    waiting.add(one);
    if (scheduled)
        return;
    scheduled = true;
    queueMicrotask(runWaiting);
}

export function signal(initial) {
    let value = initial;
    const readers = new Set();
    return {
        get value() {
            if (reading) {
                readers.add(reading);
                reading.sources.add(readers);
            }
            return value;
        },
        set value(next) {
            if (Object.is(next, value))
                return;
            value = next;
            for (const one of readers)
                schedule(one);
        },
        peek: () => value,
    };
}

/* Run now, and again after each change of what was read. The result ends it. */
export function effect(action) {
    const one = { sources: new Set(), over: false };
    const forget = () => {
        for (const readers of one.sources)
            readers.delete(one);
        one.sources.clear();
    };
    one.run = () => {
        if (one.over)
            return;
        forget();
        const outer = reading;
        reading = one;
        try {
            action();
        } finally {
            reading = outer;
        }
    };
    one.run();
    return () => {
        one.over = true;
        forget();
    };
}

/* What a screen must end when it is left. */
export class Scope {
    #ends = [];
    add(end) {
        this.#ends.push(end);
        return end;
    }
    effect(action) {
        return this.add(effect(action));
    }
    listen(target, type, handler, options) {
        target.addEventListener(type, handler, options);
        this.add(() => target.removeEventListener(type, handler, options));
    }
    every(ms, action) {
        const timer = setInterval(action, ms);
        this.add(() => clearInterval(timer));
    }
    end() {
        for (const end of this.#ends.splice(0).reverse())
            end();
    }
}

/* Call action at most once per frame, however often it is asked for. In a hidden page there are no frames: then by a timer. */
export function perFrame(action) {
    let asked = false;
    const run = () => {
        asked = false;
        action();
    };
    return () => {
        if (asked)
            return;
        asked = true;
        if (document.visibilityState === 'hidden')
            setTimeout(run, 250);
        else
            requestAnimationFrame(run);
    };
}
