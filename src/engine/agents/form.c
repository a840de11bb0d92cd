/* What a form may have in it, and whether it was filled in right. A pattern is shown to people and left to the agent to
 * check: whoever wrote it decides what it means, and how long looking for it takes. */
#include "form.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"
#include "write.h"

/* Whole numbers that every reader of JSON keeps as they are. */
#define MOST_WHOLE 9007199254740992.0

static int refuse(char why[WEFT_FORM_WHY], const char *format, ...) WEFT_PRINTF(2, 3);
static int refuse(char why[WEFT_FORM_WHY], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, WEFT_FORM_WHY, format, args);
    va_end(args);
    return -EINVAL;
}

/* ---- fields ---- */

static bool is_list(const weft_json *value) {
    return weft_typeof(value) == WEFT_ARRAY;
}

/* Of a single choice: enum, or oneOf with titles. Of several: the same in items, or anyOf. */
static weft_json choices_of(const weft_json *field) {
    static const char *const places[] = {"/enum", "/oneOf", "/items/enum", "/items/anyOf", "/items/oneOf"};
    weft_json found = {0};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !is_list(&found); i++)
        found = weft_pointer(field, places[i]);
    return found;
}

weft_form_type weft__form_type(const weft_json *field) {
    const char *type = weft_get_str(field, "type", "");
    weft_json choices = choices_of(field);
    if (strcmp(type, "string") == 0)
        return is_list(&choices) ? WEFT_FORM_CHOICE : WEFT_FORM_TEXT;
    return strcmp(type, "number") == 0                       ? WEFT_FORM_NUMBER
           : strcmp(type, "integer") == 0                    ? WEFT_FORM_INTEGER
           : strcmp(type, "boolean") == 0                    ? WEFT_FORM_BOOLEAN
           : strcmp(type, "array") == 0 && is_list(&choices) ? WEFT_FORM_SEVERAL
                                                             : WEFT_FORM_UNKNOWN;
}

bool weft__form_choice(const weft_json *field, size_t number, weft_json *ret_value, weft_json *ret_title) {
    weft_json choices = choices_of(field), names = weft_get(field, "enumNames");
    weft_json one = number < WEFT_FORM_CHOICES && is_list(&choices) ? weft_at(&choices, number) : (weft_json){0};
    if (!one.text)
        return false;
    bool titled = weft_typeof(&one) == WEFT_OBJECT;
    *ret_value = titled ? weft_get(&one, "const") : one;
    *ret_title = titled ? weft_get(&one, "title") : is_list(&names) ? weft_at(&names, number) : (weft_json){0};
    return true;
}

static bool same_text(const weft_json *a, const weft_json *b) {
    weft_bytes x, y;
    return weft_bytes_of(a, &x) >= 0 && weft_bytes_of(b, &y) >= 0 && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
}

bool weft__form_requires(const weft_json *schema, const weft_json *name) {
    weft_json required = weft_get(schema, "required");
    for (weft_iter it = weft_iterate(&required); is_list(&required) && weft_next(&it);)
        if (same_text(&it.value, name))
            return true;
    return false;
}

static weft_json find_named(const weft_json *object, const weft_json *name) {
    for (weft_iter it = weft_iterate(object); weft_typeof(object) == WEFT_OBJECT && weft_next(&it);)
        if (same_text(&it.name, name))
            return it.value;
    return (weft_json){0};
}

/* ---- values ---- */

static size_t count_characters(weft_bytes text) {
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char) text.data[i] & 0xC0) != 0x80;
    return count;
}

static int check_length(const weft_json *field, size_t is, const char *least_name, const char *most_name, const char *what,
                        char why[WEFT_FORM_WHY]) {
    int64_t least = weft_get_int(field, least_name, 0), most = weft_get_int(field, most_name, INT64_MAX);
    if (least > 0 && is < (uint64_t) least)
        return refuse(why, "must have at least %lld %s", (long long) least, what);
    if (most >= 0 && is > (uint64_t) most)
        return refuse(why, "must have at most %lld %s", (long long) most, what);
    return 0;
}

/* "9999-99-99": digits where these stand, the rest as it is. */
static bool looks_like(weft_bytes text, const char *shape) {
    size_t len = strlen(shape);
    for (size_t i = 0; i < len; i++)
        if (i >= text.len || (shape[i] == '9' ? !isdigit((unsigned char) text.data[i]) : text.data[i] != shape[i]))
            return false;
    return true;
}

static bool is_date(weft_bytes text) {
    if (!looks_like(text, "9999-99-99"))
        return false;
    int month = (text.data[5] - '0') * 10 + text.data[6] - '0', day = (text.data[8] - '0') * 10 + text.data[9] - '0';
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool is_address(weft_bytes text) {
    const char *at = text.len ? memchr(text.data, '@', text.len) : NULL;
    return at && at > text.data && at + 1 < text.data + text.len && !memchr(text.data, ' ', text.len);
}

static bool is_uri(weft_bytes text) {
    const char *colon = text.len ? memchr(text.data, ':', text.len) : NULL;
    if (!colon || colon + 1 >= text.data + text.len || !isalpha((unsigned char) *text.data))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char) text.data[i] <= ' ')
            return false;
    return true;
}

static int check_format(const weft_json *field, weft_bytes text, char why[WEFT_FORM_WHY]) {
    const char *format = weft_get_str(field, "format", "");
    if (strcmp(format, "email") == 0 && !is_address(text))
        return refuse(why, "must be an e-mail address");
    if (strcmp(format, "uri") == 0 && !is_uri(text))
        return refuse(why, "must be a URI, such as https://example.org");
    if (strcmp(format, "date") == 0 && (!is_date(text) || text.len != 10))
        return refuse(why, "must be a date, such as 2026-01-31");
    if (strcmp(format, "date-time") == 0 &&
        !(is_date(text) && text.len > 16 && looks_like((weft_bytes){text.data + 10, text.len - 10}, "T99:99")))
        return refuse(why, "must be a date and a time, such as 2026-01-31T09:30:00Z");
    return 0;
}

static int check_text(const weft_json *field, const weft_json *value, char why[WEFT_FORM_WHY]) {
    weft_bytes text;
    if (weft_bytes_of(value, &text) < 0)
        return refuse(why, "must be a text");
    int r = check_length(field, count_characters(text), "minLength", "maxLength", "characters", why);
    return r < 0 ? r : check_format(field, text, why);
}

static int check_number(const weft_json *field, const weft_json *value, bool whole, char why[WEFT_FORM_WHY]) {
    weft_json least = weft_get(field, "minimum"), most = weft_get(field, "maximum");
    double is = weft_num_of(value, (double) NAN); /* what no double can hold is none */
    if (weft_typeof(value) != WEFT_NUMBER || !isfinite(is))
        return refuse(why, whole ? "must be a whole number" : "must be a number");
    if (whole && (floor(is) != is || fabs(is) > MOST_WHOLE))
        return refuse(why, "must be a whole number");
    if (weft_typeof(&least) == WEFT_NUMBER && is < weft_num_of(&least, 0))
        return refuse(why, "must not be below %.*s", (int) (least.len < 40 ? least.len : 40), least.text);
    if (weft_typeof(&most) == WEFT_NUMBER && is > weft_num_of(&most, 0))
        return refuse(why, "must not be above %.*s", (int) (most.len < 40 ? most.len : 40), most.text);
    return 0;
}

static int check_choice(const weft_json *field, const weft_json *value, char why[WEFT_FORM_WHY]) {
    weft_json choice, title;
    for (size_t i = 0; weft_typeof(value) == WEFT_STRING && weft__form_choice(field, i, &choice, &title); i++)
        if (same_text(&choice, value))
            return 0;
    return refuse(why, "must be one of its choices");
}

static int check_several(const weft_json *field, const weft_json *value, char why[WEFT_FORM_WHY]) {
    int r = is_list(value) ? 0 : refuse(why, "must be a list of its choices");
    if (r >= 0)
        r = check_length(field, weft_count(value), "minItems", "maxItems", "choices", why);
    for (weft_iter it = weft_iterate(value); r >= 0 && weft_next(&it);)
        r = check_choice(field, &it.value, why);
    return r;
}

int weft__form_check_value(const weft_json *field, const weft_json *value, char why[WEFT_FORM_WHY]) {
    switch (weft__form_type(field)) {
    case WEFT_FORM_TEXT:
        return check_text(field, value, why);
    case WEFT_FORM_NUMBER:
        return check_number(field, value, false, why);
    case WEFT_FORM_INTEGER:
        return check_number(field, value, true, why);
    case WEFT_FORM_BOOLEAN:
        return weft_typeof(value) == WEFT_BOOL ? 0 : refuse(why, "must be true or false");
    case WEFT_FORM_CHOICE:
        return check_choice(field, value, why);
    case WEFT_FORM_SEVERAL:
        return check_several(field, value, why);
    case WEFT_FORM_UNKNOWN:
        break;
    }
    return refuse(why, "is of a kind that nobody can fill in");
}

/* ---- the form ---- */

/* A field's name in a sentence. */
static int refuse_field(const weft_json *name, char why[WEFT_FORM_WHY], const char *what) {
    char sentence[WEFT_FORM_WHY];
    weft_bytes text = {"", 0};
    snprintf(sentence, sizeof sentence, "%s", what);
    (void) weft_bytes_of(name, &text);
    return refuse(why, "%.*s %.200s", (int) weft__utf8_fit(text.data, text.len, 80), text.data, sentence);
}

static int check_field(const weft_json *properties, const weft_iter *at, char why[WEFT_FORM_WHY]) {
    weft_json value, title;
    weft_form_type type = weft__form_type(&at->value);
    if (type == WEFT_FORM_UNKNOWN)
        return refuse_field(&at->name, why, "is of a kind that nobody can fill in");
    if (find_named(properties, &at->name).text != at->value.text)
        return refuse_field(&at->name, why, "is there twice");
    bool chooses = type == WEFT_FORM_CHOICE || type == WEFT_FORM_SEVERAL;
    if (chooses && !weft__form_choice(&at->value, 0, &value, &title))
        return refuse_field(&at->name, why, "has nothing to choose from");
    for (size_t i = 0; chooses && weft__form_choice(&at->value, i, &value, &title); i++)
        if (weft_typeof(&value) != WEFT_STRING)
            return refuse_field(&at->name, why, "has a choice that is not a text");
    return 0;
}

int weft__form_check(const weft_json *schema, char why[WEFT_FORM_WHY]) {
    weft_json properties = weft_get(schema, "properties");
    size_t count = 0;
    int r = 0;
    if (weft_typeof(schema) != WEFT_OBJECT || schema->len > WEFT_FORM_BYTES)
        return refuse(why, "the form is not an object, or larger than 64 KiB");
    if (properties.text && weft_typeof(&properties) != WEFT_OBJECT)
        return refuse(why, "its properties are not an object");
    for (weft_iter it = weft_iterate(&properties); r >= 0 && properties.text && weft_next(&it);) {
        if (++count > WEFT_FORM_FIELDS)
            return refuse(why, "the form has more than %d fields", WEFT_FORM_FIELDS);
        r = check_field(&properties, &it, why);
    }
    return r;
}

static bool is_absent(const weft_json *value) {
    return !value->text || weft_typeof(value) == WEFT_NULL;
}

/* What was filled in, or the default if that is right by itself; absent: neither. */
static int value_of(const weft_json *content, const weft_iter *at, weft_json *ret, char why[WEFT_FORM_WHY]) {
    char detail[WEFT_FORM_WHY] = "";
    *ret = find_named(content, &at->name);
    if (!is_absent(ret))
        return weft__form_check_value(&at->value, ret, detail) < 0 ? refuse_field(&at->name, why, detail) : 0;
    *ret = weft_get(&at->value, "default");
    if (!is_absent(ret) && weft__form_check_value(&at->value, ret, detail) < 0)
        *ret = (weft_json){0};
    return 0;
}

static int put_member(weft_buf *out, const weft_alloc *alloc, bool first, const weft_json *name, const weft_json *value) {
    weft_val parts[] = {weft_copy(name), weft_copy(value)};
    int r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
    if (r >= 0)
        r = weft__write_val(out, alloc, &parts[0]);
    if (r >= 0)
        r = weft__buf_put(out, alloc, ":", 1);
    return r < 0 ? r : weft__write_val(out, alloc, &parts[1]);
}

static int check_names(const weft_json *properties, const weft_json *content, char why[WEFT_FORM_WHY]) {
    if (is_absent(content))
        return 0;
    if (weft_typeof(content) != WEFT_OBJECT || content->len > WEFT_FORM_BYTES)
        return refuse(why, "what was filled in is not an object, or larger than 64 KiB");
    for (weft_iter it = weft_iterate(content); weft_next(&it);)
        if (!find_named(properties, &it.name).text)
            return refuse_field(&it.name, why, "is not a field of the form");
    return 0;
}

int weft__form_fill(const weft_json *schema, const weft_json *content, const weft_alloc *alloc, weft_buf *out,
                    char why[WEFT_FORM_WHY]) {
    weft_json properties = weft_get(schema, "properties"), value;
    bool first = true;
    int r = check_names(&properties, content, why);
    if (r >= 0)
        r = weft__buf_put(out, alloc, "{", 1);
    for (weft_iter it = weft_iterate(&properties); r >= 0 && properties.text && weft_next(&it);) {
        r = value_of(content, &it, &value, why);
        if (r >= 0 && !is_absent(&value)) {
            r = put_member(out, alloc, first, &it.name, &value);
            first = false;
        } else if (r >= 0 && weft__form_requires(schema, &it.name))
            r = refuse_field(&it.name, why, "is missing");
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}
