/* The lazy reader: values are places in a validated text, and looking something up walks it. It keeps no index that nobody
 * asked for and never changes the text; memory is only needed to decode a string or to end one in NUL.
 *
 * Skipping a value is scanning it again: nearly as fast as counting brackets and quotes would be, and no second reading of
 * the grammar to keep right. Only of a string it is enough to find the end. */
#include <errno.h>
#include <string.h>

#include "doc.h"
#include "hint.h"
#include "number.h"
#include "scan.h"

static weft_json span_json(const char *start, const char *end, weft_doc *doc) {
    return (weft_json){start, (size_t) (end - start), doc};
}

/* A string that is long: only its end is looked for. A quote behind an odd number of backslashes is part of it. */
static WEFT_NOINLINE const char *skip_long_string(const char *p) {
    for (;;) {
        const char *quote = rawmemchr(p, '"'), *slash = quote;
        while (slash[-1] == '\\')
            slash--;
        p = quote + 1;
        if ((quote - slash) % 2 == 0)
            return p;
    }
}

/* Behind a value that has been validated. */
static inline const char *skip_json_value(const char *p) {
    if (*p != '"')
        return weft__scan_value(p, WEFT_MAX_DEPTH);
    size_t n = weft__plain_to_quote(p + 1);
    return n < WEFT_STEP ? p + n + 2 : skip_long_string(p + 1);
}

weft_type weft_typeof(const weft_json *value) {
    if (!value || !value->text)
        return WEFT_ABSENT;
    switch (*value->text) {
    case 'n':
        return WEFT_NULL;
    case 't':
    case 'f':
        return WEFT_BOOL;
    case '"':
        return WEFT_STRING;
    case '[':
        return WEFT_ARRAY;
    case '{':
        return WEFT_OBJECT;
    default:
        return WEFT_NUMBER;
    }
}

/* Is the string from raw to end this name? The scanner has said whether it has escapes; nearly always it has none. */
static bool is_raw_name(const char *raw, const char *end, bool escaped, const char *name, size_t len) {
    size_t raw_len = (size_t) (end - raw);
    if (escaped)
        return weft__raw_is((weft_bytes){raw, raw_len}, name, len);
    return raw_len == len + 2 && memcmp(raw + 1, name, len) == 0;
}

/* ---- an index ---- */

void weft__doc_index(weft_doc *doc, weft_members *memory) {
    const char *p = weft_typeof(&doc->root) == WEFT_OBJECT ? weft__scan_ws(doc->root.text + 1) : "";
    size_t count = 0;
    while (*p == '"') {
        bool escaped;
        const char *name_end = weft__scan_string(p, &escaped);
        const char *value = name_end ? weft__scan_ws(weft__scan_ws(name_end) + 1) : NULL;
        const char *end = value ? skip_json_value(value) : NULL;
        if (!end || escaped || count == WEFT_INDEXED)
            return;
        memory->of[count].name = (weft_bytes){p + 1, (size_t) (name_end - p) - 2};
        memory->of[count].value = value;
        memory->of[count++].end = end;
        p = weft__scan_ws(end);
        if (*p == ',')
            p = weft__scan_ws(p + 1);
    }
    memory->count = count;
    doc->members = memory;
}

/* NULL: this object has none. */
static inline const weft_members *index_of(const weft_json *object) {
    const weft_doc *doc = object ? object->doc : NULL;
    return doc && WEFT_RARELY(doc->members) && object->text == doc->root.text ? doc->members : NULL;
}

/* The last of duplicates decides. */
static weft_json find_indexed(const weft_members *members, const weft_json *object, const char *name, size_t len) {
    for (size_t i = members->count; i-- > 0;) {
        const weft_bytes *is = &members->of[i].name;
        if (is->len == len && memcmp(is->data, name, len) == 0)
            return span_json(members->of[i].value, members->of[i].end, object->doc);
    }
    return (weft_json){0};
}

/* Walks by itself, because the scanner knows more about a name than weft_next() passes on. */
weft_json weft_get(const weft_json *object, const char *name) {
    weft_json found = {0};
    if (!name)
        return found;
    size_t len = strlen(name);
    const weft_members *members = index_of(object);
    if (members)
        return find_indexed(members, object, name, len);
    const char *p = weft_typeof(object) == WEFT_OBJECT ? weft__scan_ws(object->text + 1) : "";
    while (*p == '"') {
        bool escaped;
        const char *raw = p, *raw_end = weft__scan_string(p, &escaped);
        if (!raw_end)
            break;
        const char *value = weft__scan_ws(weft__scan_ws(raw_end) + 1); /* behind the colon */
        const char *end = skip_json_value(value);
        if (!end)
            break;
        if (is_raw_name(raw, raw_end, escaped, name, len))
            found = span_json(value, end, object->doc);
        p = weft__scan_ws(end);
        if (*p == ',')
            p = weft__scan_ws(p + 1);
    }
    return found;
}

/* Which of the names it is, tried from first on; count: none. */
static size_t find_name(const char *raw, const char *end, bool escaped, const char *const *names, size_t count,
                        size_t first) {
    for (size_t n = 0, i = first; n < count; n++, i++) {
        i = i < count ? i : 0;
        /* Most are told apart by their first letter. */
        if (!escaped && raw[1] != *names[i] && *names[i])
            continue;
        if (is_raw_name(raw, end, escaped, names[i], strlen(names[i])))
            return i;
    }
    return count;
}

void weft__get_all(const weft_json *object, const char *const *names, size_t count, weft_json *ret) {
    const char *p = weft_typeof(object) == WEFT_OBJECT ? weft__scan_ws(object->text + 1) : "";
    size_t expected = 0;
    const weft_members *members = index_of(object);
    for (size_t i = 0; members && i < count; i++)
        ret[i] = find_indexed(members, object, names[i], strlen(names[i]));
    if (members)
        return;
    memset(ret, 0, count * sizeof *ret);
    while (*p == '"') {
        bool escaped;
        const char *raw = p, *raw_end = weft__scan_string(p, &escaped);
        const char *value = raw_end ? weft__scan_ws(weft__scan_ws(raw_end) + 1) : NULL;
        const char *end = value ? skip_json_value(value) : NULL;
        if (!end)
            break;
        size_t i = find_name(raw, raw_end, escaped, names, count, expected);
        if (i < count) {
            ret[i] = span_json(value, end, object->doc);
            expected = i + 1;
        }
        p = weft__scan_ws(end);
        if (*p == ',')
            p = weft__scan_ws(p + 1);
    }
}

weft_json weft_at(const weft_json *array, size_t index) {
    const char *p = array && array->text && *array->text == '[' ? weft__scan_ws(array->text + 1) : "]";
    while (*p != ']') {
        const char *end = skip_json_value(p);
        if (!end)
            break;
        if (index-- == 0)
            return span_json(p, end, array->doc);
        p = weft__scan_ws(end);
        if (*p == ',')
            p = weft__scan_ws(p + 1);
    }
    return (weft_json){0};
}

/* The decoded string in memory of its document, NUL-terminated. */
static int decode_into_doc(const weft_json *value, weft_bytes *ret) {
    char *text = value->doc ? weft__arena_alloc(&value->doc->arena, value->len - 1) : NULL;
    if (!text)
        return -ENOMEM;
    *ret = (weft_bytes){text, weft__unescape(value->text + 1, value->len - 2, text)};
    return 0;
}

const char *weft_str_of(const weft_json *value, const char *fallback) {
    weft_bytes text;
    if (weft_typeof(value) != WEFT_STRING || decode_into_doc(value, &text) < 0)
        return fallback;
    return memchr(text.data, '\0', text.len) ? fallback : text.data;
}

int64_t weft_int_of(const weft_json *value, int64_t fallback) {
    int64_t i = fallback;
    if (weft_typeof(value) == WEFT_NUMBER)
        weft__number_int(value->text, value->len, &i);
    return i;
}

double weft_num_of(const weft_json *value, double fallback) {
    double d = fallback;
    if (weft_typeof(value) == WEFT_NUMBER)
        weft__number_double(value->text, value->len, &d);
    return d;
}

bool weft_bool_of(const weft_json *value, bool fallback) {
    return weft_typeof(value) == WEFT_BOOL ? *value->text == 't' : fallback;
}

const char *weft_get_str(const weft_json *object, const char *name, const char *fallback) {
    weft_json value = weft_get(object, name);
    return weft_str_of(&value, fallback);
}

int64_t weft_get_int(const weft_json *object, const char *name, int64_t fallback) {
    weft_json value = weft_get(object, name);
    return weft_int_of(&value, fallback);
}

double weft_get_num(const weft_json *object, const char *name, double fallback) {
    weft_json value = weft_get(object, name);
    return weft_num_of(&value, fallback);
}

bool weft_get_bool(const weft_json *object, const char *name, bool fallback) {
    weft_json value = weft_get(object, name);
    return weft_bool_of(&value, fallback);
}

int weft_bytes_of(const weft_json *value, weft_bytes *ret) {
    if (weft_typeof(value) != WEFT_STRING)
        return -EINVAL;
    if (memchr(value->text, '\\', value->len))
        return decode_into_doc(value, ret);
    *ret = (weft_bytes){value->text + 1, value->len - 2};
    return 0;
}

weft_iter weft_iterate(const weft_json *container) {
    weft_iter it = {0};
    weft_type type = weft_typeof(container);
    if (type != WEFT_ARRAY && type != WEFT_OBJECT)
        return it;
    const char *p = weft__scan_ws(container->text + 1);
    it.value.doc = container->doc;
    it.next_ = *p == ']' || *p == '}' ? NULL : p;
    return it;
}

bool weft_next(weft_iter *it) {
    const char *start = it->next_, *end = start ? skip_json_value(start) : NULL;
    weft_doc *doc = it->value.doc;
    if (!end)
        return false;
    it->name = (weft_json){0};
    const char *p = weft__scan_ws(end);
    /* Only the name of a member has a colon behind it. */
    if (*p == ':') {
        it->name = span_json(start, end, doc);
        start = weft__scan_ws(p + 1);
        end = skip_json_value(start);
        if (!end)
            return false;
        p = weft__scan_ws(end);
    }
    it->value = span_json(start, end, doc);
    it->next_ = *p == ',' ? weft__scan_ws(p + 1) : NULL;
    return true;
}

bool weft_name_is(const weft_iter *it, const char *name) {
    return it->name.text && name && weft__raw_is((weft_bytes){it->name.text, it->name.len}, name, strlen(name));
}

size_t weft_count(const weft_json *container) {
    size_t count = 0;
    for (weft_iter it = weft_iterate(container); weft_next(&it);)
        count++;
    return count;
}
