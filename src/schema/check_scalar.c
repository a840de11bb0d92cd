/* Strings, numbers, and values that are listed. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "doc.h"
#include "escape.h"
#include "normal.h"
#include "utf8.h"

#define SHORT_STRING 256 /* bytes that are decoded on the stack */
#define LONGEST_ESCAPE 6 /* bytes of one character, written as an escape; a pair has twice as many */
#define STRING_PER_STEP 64

/* ---- strings ---- */

/* A string decoded: in place if it has no escapes. */
typedef struct decoded {
    const char *text;
    size_t len;
    char *memory; /* NULL: none of its own */
    char few[SHORT_STRING + WEFT_NAMES_PAD];
} decoded;

static int decode_string(schema_run *run, const char *raw, size_t len, bool escaped, decoded *ret) {
    ret->memory = NULL;
    if (!escaped) {
        ret->text = raw;
        ret->len = len;
        return 0;
    }
    char *to = ret->few;
    if (len >= SHORT_STRING) {
        to = ret->memory = weft__alloc(run->alloc, len + 1 + WEFT_NAMES_PAD);
        if (!to)
            return -ENOMEM;
    }
    ret->text = to;
    ret->len = weft__unescape(raw, len, to);
    memset(to + ret->len, 0, WEFT_NAMES_PAD);
    return 0;
}

static uint64_t count_characters(const char *p, const char *end) {
    uint64_t count = 0;
    while (p < end) {
        char bytes[WEFT_ESCAPE_MAX];
        count += !weft__utf8_follows((unsigned char) *p);
        if (*p == '\\')
            weft__next_piece(&p, end, bytes);
        else
            p++;
    }
    return count;
}

static bool check_length(schema_run *run, const schema_node *node, const char *raw, size_t len) {
    const string_rules *rules = node->string;
    if (len <= rules->max && (rules->min == 0 || (len && rules->min <= 1) || len / (2 * LONGEST_ESCAPE) >= rules->min))
        return true;
    uint64_t count = count_characters(raw, raw + len);
    if (count < rules->min) {
        weft__misfit(run, node, "minLength", rules->min == 1 ? "must not be empty" : "must have at least %llu characters",
                     (unsigned long long) rules->min);
        return false;
    }
    if (count > rules->max) {
        weft__misfit(run, node, "maxLength", "must have at most %llu characters", (unsigned long long) rules->max);
        return false;
    }
    return true;
}

static bool check_text(schema_run *run, const schema_node *node, const char *raw, size_t len, bool escaped) {
    const string_rules *rules = node->string;
    decoded text;
    bool fits = true;
    if (decode_string(run, raw, len, escaped, &text) < 0)
        return weft__check_fails(run, -ENOMEM);
    if (rules->pattern) {
        int r = weft__pattern_find(rules->pattern, &run->schema->patterns, &run->patterns, text.text, text.len);
        if (r < 0)
            weft__check_fails(run, r);
        else if (r == 0)
            weft__misfit(run, node, "pattern", "does not match the pattern");
        fits = r > 0;
    }
    if (run->r >= 0 && rules->format && !rules->format(text.text, text.len)) {
        weft__misfit(run, node, "format", "does not have the format \"%s\"", rules->format_name);
        fits = false;
    }
    weft__free(run->alloc, text.memory);
    return fits;
}

const char *weft__check_string(schema_run *run, const schema_node *node, const char *p) {
    bool escaped;
    const char *end = weft__scan_string(p, &escaped);
    size_t len = (size_t) (end - p) - 2;
    run->steps += len / STRING_PER_STEP;
    bool fits = check_length(run, node, p + 1, len);
    if ((node->string->pattern || node->string->format) && (fits || run->report))
        fits = check_text(run, node, p + 1, len, escaped) && fits;
    return fits ? end : NULL;
}

/* ---- numbers ---- */

static int order_to(const schema_decimal *limit, bool quick, int64_t i, const schema_decimal *value) {
    if (quick && limit->quick)
        return (i > limit->i) - (i < limit->i);
    return weft__decimal_compare(value, limit);
}

static bool is_multiple(const number_rules *rules, bool quick, int64_t i, const schema_decimal *value) {
    if (quick && rules->quick)
        return i % rules->multiple_of->i == 0;
    return weft__decimal_is_multiple(value, rules->multiple_of);
}

/* A limit as the schema has it. */
static bool misfit_limit(schema_run *run, const schema_node *node, const char *keyword, const char *what,
                         const schema_decimal *limit) {
    const char *p = limit->first;
    char digits[32] = "0";
    size_t n = 0;
    if (limit->quick) {
        weft__misfit(run, node, keyword, "must be %s %lld", what, (long long) limit->i);
        return false;
    }
    for (; p && n < limit->count && n < sizeof digits - 1; p++)
        if (*p != '.')
            digits[n++] = *p;
    if (n)
        digits[n] = '\0';
    if (limit->count < sizeof digits - 1 && limit->exponent >= -(int64_t) 9 && limit->exponent < 0 &&
        (int64_t) limit->count + limit->exponent > 0) {
        int whole = (int) ((int64_t) limit->count + limit->exponent);
        weft__misfit(run, node, keyword, "must be %s %s%.*s.%s", what, limit->negative ? "-" : "", whole, digits,
                     digits + whole);
    } else if (limit->count < sizeof digits - 1) {
        weft__misfit(run, node, keyword, "must be %s %s%se%lld", what, limit->negative ? "-" : "", digits,
                     (long long) limit->exponent);
    } else {
        weft__misfit(run, node, keyword, "must be %s the limit", what);
    }
    return false;
}

const char *weft__check_number(schema_run *run, const schema_node *node, const char *p) {
    const number_rules *rules = node->number;
    schema_decimal value;
    int64_t i = 0;
    const char *end;
    bool quick = weft__quick_int(p, &i, &end), fits = true;
    if (!quick)
        end = weft__skip_value(p);
    value.count = 0;
    if (!quick || !rules->quick)
        weft__decimal_read(p, (size_t) (end - p), &value);
    run->steps += value.count / STRING_PER_STEP;
    if (rules->min && order_to(rules->min, quick, i, &value) < 0)
        fits = misfit_limit(run, node, "minimum", "at least", rules->min);
    if (rules->max && order_to(rules->max, quick, i, &value) > 0)
        fits = misfit_limit(run, node, "maximum", "at most", rules->max);
    if (rules->above && order_to(rules->above, quick, i, &value) <= 0)
        fits = misfit_limit(run, node, "exclusiveMinimum", "above", rules->above);
    if (rules->below && order_to(rules->below, quick, i, &value) >= 0)
        fits = misfit_limit(run, node, "exclusiveMaximum", "below", rules->below);
    if (rules->multiple_of && !is_multiple(rules, quick, i, &value))
        fits = misfit_limit(run, node, "multipleOf", "a multiple of", rules->multiple_of);
    return fits ? end : NULL;
}

/* ---- values that are listed ---- */

static int is_listed_string(schema_run *run, const schema_names *strings, const char *p, const char *end) {
    size_t len = (size_t) (end - p) - 2;
    uint32_t expected = UINT32_MAX;
    decoded text;
    bool escaped = memchr(p, '\\', len + 1);
    if (decode_string(run, p + 1, len, escaped, &text) < 0)
        return -ENOMEM;
    int found = weft__names_find(strings, text.text, text.len, &expected, &run->steps) != NULL;
    weft__free(run->alloc, text.memory);
    return found;
}

static int is_listed_number(const enum_rules *rules, const char *p, const char *end) {
    schema_decimal value;
    weft__decimal_read(p, (size_t) (end - p), &value);
    for (size_t i = 0; i < rules->number_count; i++)
        if (weft__decimal_compare(&rules->numbers[i], &value) == 0)
            return 1;
    return 0;
}

static int is_listed_form(schema_run *run, const enum_rules *rules, const char *p) {
    weft_buf form = {0};
    const char *end;
    int found = 0;
    if (!rules->form_count)
        return 0;
    int r = weft__normal_write(&form, run->alloc, p, &end);
    for (size_t i = 0; r >= 0 && i < rules->form_count && !found; i++)
        found = rules->forms[i].len == weft__buf_len(&form) &&
                memcmp(rules->forms[i].data, weft__buf_head(&form), rules->forms[i].len) == 0;
    weft__buf_done(&form, run->alloc);
    return r < 0 ? r : found;
}

int weft__check_enum(schema_run *run, const enum_rules *rules, const char *p, const char *end) {
    int r;
    switch (*p) {
    case '"':
        r = is_listed_string(run, &rules->strings, p, end);
        break;
    case '{':
    case '[':
        run->steps += (size_t) (end - p) / STRING_PER_STEP;
        r = is_listed_form(run, rules, p);
        break;
    case 'n':
        r = (rules->simple & ENUM_NULL) != 0;
        break;
    case 't':
        r = (rules->simple & ENUM_TRUE) != 0;
        break;
    case 'f':
        r = (rules->simple & ENUM_FALSE) != 0;
        break;
    default:
        run->steps += rules->number_count;
        r = is_listed_number(rules, p, end);
        break;
    }
    if (r < 0)
        weft__check_fails(run, r);
    return r;
}
