/* A form that an agent or a server asks to be filled in: the flat objects of texts, numbers, switches and choices that the hub lets
 * through. What was not filled in is left out; the hub puts the defaults there and looks at it again. */
import { h } from './dom.js';
import { select } from './ui.js';

const TYPES = { email: 'email', uri: 'url', date: 'date' };
const EXAMPLES = { email: 'name@example.org', uri: 'https://example.org', 'date-time': '2026-01-31T09:30:00Z' };

/* [value, label] of a choice, of one or of several. */
function choicesOf(schema) {
    const titled = schema.oneOf ?? schema.items?.anyOf ?? schema.items?.oneOf;
    if (titled)
        return titled.map(one => [one.const, one.title ?? one.const]);
    const plain = schema.enum ?? schema.items?.enum;
    return plain?.map((value, i) => [value, schema.enumNames?.[i] ?? value]);
}

let lastId = 0;

/* Boxes to tick. Complaints of the browser belong to one element: the first box. */
function several(schema, choices, isRequired) {
    const chosen = new Set(schema.default ?? []);
    const boxes = choices.map(([value, label]) => {
        const box = h('input', { type: 'checkbox', id: `form${++lastId}`, checked: chosen.has(value) });
        return { value, box, el: h('div.check', box, h('label', { for: box.id }, label)) };
    });
    const values = () => boxes.filter(one => one.box.checked).map(one => one.value);
    const least = Math.max(schema.minItems ?? 0, isRequired ? 1 : 0), most = schema.maxItems ?? Infinity;
    return {
        el: boxes.map(one => one.el),
        isGroup: true,
        check() {
            const count = values().length, none = !count && !isRequired;
            const wrong = none ? '' : count < least ? `Choose at least ${least}.` : count > most ? `Choose at most ${most}.` : '';
            boxes[0].box.setCustomValidity(wrong);
            return boxes[0].box.reportValidity();
        },
        read: () => values().length || schema.default?.length ? values() : undefined,
    };
}

function one(schema, choices, isRequired) {
    const control = select([['', isRequired ? 'choose\u2026' : 'nothing'], ...choices], schema.default ?? '');
    control.required = isRequired;
    return { el: control, read: () => control.value === '' ? undefined : control.value };
}

function yesOrNo(schema) {
    const control = h('input', { type: 'checkbox', checked: schema.default === true });
    return { el: control, read: () => control.checked };
}

function numeric(schema, isRequired) {
    const control = h('input', { type: 'number', value: schema.default ?? '', min: schema.minimum, max: schema.maximum, step: schema.type === 'integer' ? '1' : 'any' });
    control.required = isRequired;
    return { el: control, read: () => control.value === '' ? undefined : Number(control.value) };
}

function text(schema, isRequired) {
    const control = h('input', { type: TYPES[schema.format] ?? 'text', value: schema.default ?? '', minlength: schema.minLength, maxlength: schema.maxLength, placeholder: EXAMPLES[schema.format] });
    control.required = isRequired;
    /* A default that was deleted is meant to be away: the hub would put it there again. */
    const emptied = schema.default && !schema.format && !schema.minLength ? '' : undefined;
    return { el: control, read: () => control.value === '' ? emptied : control.value };
}

function field(name, schema, isRequired) {
    const choices = choicesOf(schema);
    const control = choices && schema.type === 'array' ? several(schema, choices, isRequired) : choices ? one(schema, choices, isRequired)
        : schema.type === 'boolean' ? yesOrNo(schema) : /integer|number/.test(schema.type) ? numeric(schema, isRequired) : text(schema, isRequired);
    const label = [schema.title ?? name, isRequired && schema.type !== 'boolean' && h('span.dim', ' (needed)')];
    const help = schema.description && h('div.dim.small', { id: `form${++lastId}` }, schema.description);
    if (control.isGroup)
        return { ...control, name, el: h('fieldset.field', { 'aria-describedby': help?.id }, h('legend', label), control.el, help) };
    control.el.id = `form${++lastId}`;
    if (help)
        control.el.setAttribute('aria-describedby', help.id);
    const named = h('label', { for: control.el.id }, label), isBox = schema.type === 'boolean';
    return { ...control, name, check: () => control.el.reportValidity(), el: h('div.field', isBox ? h('div.check', control.el, named) : [named, control.el], help) };
}

/* read(): what was filled in, or null if the browser says what is wrong. */
export function buildForm(schema) {
    const fields = Object.entries(schema.properties ?? {}).map(([name, one]) => field(name, one, schema.required?.includes(name)));
    return {
        el: h('div.form', fields.map(one => one.el)),
        read() {
            if (!fields.every(one => one.check()))
                return null;
            return Object.fromEntries(fields.map(one => [one.name, one.read()]).filter(([, value]) => value !== undefined));
        },
    };
}
