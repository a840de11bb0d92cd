/* Conditions: an operator is a row. Types are not converted: "5" is not 5. A field that is null counts as not there, since
 * events write null for what they do not know. */
#include "condition.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "field.h"
#include "utf8.h"

#define MAX_PATTERN 4096          /* bytes of an expression */
#define MAX_SUBJECT (64 * 1024)   /* bytes of a text that are looked at */
#define MATCH_LIMIT 200000        /* steps of one match: some milliseconds */
#define DEPTH_LIMIT 2000          /* of backtracking */
#define HEAP_LIMIT_KIB (4 * 1024) /* for it */
#define NEST_LIMIT 50             /* of parentheses */

typedef struct operator_row {
    const char *name;
    bool no_value;
    bool text; /* the value is a string */
    int (*holds)(const weft_condition *condition, const weft_json *field);
} operator_row;

struct weft_condition {
    const weft_alloc *alloc;
    const operator_row *op;
    weft_bytes path;
    weft_json value;
    bool aiwg; /* see weft__condition_as_aiwg() */
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *code;
};

/* ---- comparing ---- */

static bool is_present(const weft_json *field) {
    weft_type type = weft_typeof(field);
    return type != WEFT_ABSENT && type != WEFT_NULL;
}

static int compare_bytes(weft_bytes a, weft_bytes b) {
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_texts(const weft_json *a, const weft_json *b, int *ret) {
    weft_bytes x, y;
    int r = weft_bytes_of(a, &x);
    if (r == 0)
        r = weft_bytes_of(b, &y);
    if (r == 0)
        *ret = compare_bytes(x, y);
    return r;
}

/* Arrays and objects by their canonical form. A value that has none (a number beyond double) equals nothing. */
static int same_tree(const weft_json *a, const weft_json *b, const weft_alloc *alloc) {
    char *x = NULL, *y = NULL;
    size_t x_len = 0, y_len = 0;
    int r = weft_to_canonical(a, alloc, &x, &x_len);
    if (r == 0)
        r = weft_to_canonical(b, alloc, &y, &y_len);
    int same = r == 0 && x_len == y_len && memcmp(x, y, x_len) == 0;
    weft_text_free(x, alloc);
    weft_text_free(y, alloc);
    return r == -ENOMEM ? r : same;
}

/* Beyond 2^53 a double no longer tells integers apart. */
static int compare_numbers(const weft_json *a, const weft_json *b) {
    int64_t i = weft_int_of(a, INT64_MIN), j = weft_int_of(b, INT64_MIN);
    if (i != INT64_MIN && j != INT64_MIN)
        return (i > j) - (i < j);
    double x = weft_num_of(a, 0), y = weft_num_of(b, 0);
    return (x > y) - (x < y);
}

static int is_same_value(const weft_json *a, const weft_json *b, const weft_alloc *alloc) {
    weft_type type = weft_typeof(a);
    int order;
    if (type != weft_typeof(b))
        return !is_present(a) && !is_present(b);
    switch (type) {
    case WEFT_STRING: {
        int r = compare_texts(a, b, &order);
        return r < 0 ? r : order == 0;
    }
    case WEFT_NUMBER:
        return compare_numbers(a, b) == 0;
    case WEFT_BOOL:
        return weft_bool_of(a, false) == weft_bool_of(b, false);
    case WEFT_ARRAY:
    case WEFT_OBJECT:
        return same_tree(a, b, alloc);
    default:
        return 1;
    }
}

/* Numbers with numbers, texts with texts; 2: they cannot be compared. */
static int order_to_value(const weft_condition *condition, const weft_json *field) {
    weft_type type = weft_typeof(field);
    int order = 0;
    if (type != weft_typeof(&condition->value) || (type != WEFT_NUMBER && type != WEFT_STRING))
        return 2;
    if (type == WEFT_NUMBER)
        return compare_numbers(field, &condition->value);
    int r = compare_texts(field, &condition->value, &order);
    return r < 0 ? r : (order > 0) - (order < 0);
}

/* ---- the operators ---- */

static int holds_eq(const weft_condition *c, const weft_json *field) {
    return c->aiwg && !field->text ? 0 : is_same_value(field, &c->value, c->alloc);
}

static int holds_neq(const weft_condition *c, const weft_json *field) {
    int r = holds_eq(c, field);
    return r < 0 ? r : !r;
}

static int holds_contains(const weft_condition *c, const weft_json *field) {
    weft_bytes text, part;
    if (weft_typeof(field) == WEFT_ARRAY) {
        int r = 0;
        for (weft_iter it = weft_iterate(field); r == 0 && weft_next(&it);)
            r = is_same_value(&it.value, &c->value, c->alloc);
        return r;
    }
    if (weft_typeof(field) != WEFT_STRING || weft_typeof(&c->value) != WEFT_STRING)
        return 0;
    if (weft_bytes_of(field, &text) < 0 || weft_bytes_of(&c->value, &part) < 0)
        return -ENOMEM;
    return !part.len || memmem(text.data, text.len, part.data, part.len) != NULL;
}

static int holds_gt(const weft_condition *c, const weft_json *field) {
    return order_to_value(c, field) == 1;
}

static int holds_lt(const weft_condition *c, const weft_json *field) {
    return order_to_value(c, field) == -1;
}

static int holds_gte(const weft_condition *c, const weft_json *field) {
    int order = order_to_value(c, field);
    return order == 0 || order == 1;
}

static int holds_lte(const weft_condition *c, const weft_json *field) {
    int order = order_to_value(c, field);
    return order == 0 || order == -1;
}

static int holds_exists(const weft_condition *c, const weft_json *field) {
    (void) c;
    return is_present(field);
}

static int holds_not_exists(const weft_condition *c, const weft_json *field) {
    (void) c;
    return !is_present(field);
}

/* A text is cut at a whole character, which is what PCRE2 insists on. */
static size_t subject_len(weft_bytes text) {
    return weft__utf8_fit(text.data, text.len, MAX_SUBJECT);
}

static int holds_matches(const weft_condition *c, const weft_json *field) {
    weft_bytes text = {field->text, field->len};
    if (!is_present(field))
        return 0;
    if (weft_typeof(field) == WEFT_STRING && weft_bytes_of(field, &text) < 0)
        return -ENOMEM;
    pcre2_match_data *found = pcre2_match_data_create(1, c->memory);
    if (!found)
        return -ENOMEM;
    const char *subject = text.len ? text.data : "";
    int r = pcre2_match(c->code, (PCRE2_SPTR) subject, subject_len(text), 0, 0, found, c->limits);
    pcre2_match_data_free(found);
    if (r >= 0)
        return 1;
    return r == PCRE2_ERROR_NOMATCH ? 0 : r == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -EOVERFLOW;
}

static const operator_row operators[] = {
    {"eq", .holds = holds_eq},
    {"neq", .holds = holds_neq},
    {"contains", .holds = holds_contains},
    {"matches", .text = true, .holds = holds_matches},
    {"gt", .holds = holds_gt},
    {"lt", .holds = holds_lt},
    {"gte", .holds = holds_gte},
    {"lte", .holds = holds_lte},
    {"exists", .no_value = true, .holds = holds_exists},
    {"not_exists", .no_value = true, .holds = holds_not_exists},
};

/* ---- life ---- */

static void *pcre_alloc(size_t size, void *ctx) {
    return weft__alloc(ctx, size);
}

static void pcre_free(void *ptr, void *ctx) {
    weft__free(ctx, ptr);
}

static int set_limits(weft_condition *condition) {
    condition->memory = pcre2_general_context_create(pcre_alloc, pcre_free, (void *) (uintptr_t) condition->alloc);
    condition->limits = condition->memory ? pcre2_match_context_create(condition->memory) : NULL;
    if (!condition->limits)
        return -ENOMEM;
    pcre2_set_match_limit(condition->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(condition->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(condition->limits, HEAP_LIMIT_KIB);
    return 0;
}

static int compile_pattern(weft_condition *condition, weft_bytes pattern, char *why) {
    int error;
    PCRE2_SIZE at;
    char message[128];
    pcre2_compile_context *context = pcre2_compile_context_create(condition->memory);
    if (!context)
        return -ENOMEM;
    pcre2_set_max_pattern_length(context, MAX_PATTERN);
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);
    condition->code = pcre2_compile((PCRE2_SPTR) (pattern.len ? pattern.data : ""), pattern.len,
                                    PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &at, context);
    pcre2_compile_context_free(context);
    if (condition->code)
        return 0;
    pcre2_get_error_message(error, (PCRE2_UCHAR *) message, sizeof message);
    snprintf(why, WEFT_RULE_WHY, "the regular expression is not valid at character %zu: %s", (size_t) at + 1, message);
    return error == PCRE2_ERROR_HEAP_FAILED ? -ENOMEM : -EINVAL;
}

static int refuse_condition(char *why, const char *format, const char *what) {
    snprintf(why, WEFT_RULE_WHY, format, what);
    return -EINVAL;
}

static const operator_row *find_operator(const char *name) {
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (strcmp(operators[i].name, name) == 0)
            return &operators[i];
    return NULL;
}

static int prepare_condition(weft_condition *condition, const weft_json *value, char *why) {
    const char *field, *name;
    weft_json of_field = weft_get(value, "field"), of_name = weft_get(value, "operator");
    if (weft__field_text(&of_field, &field) < 0 || weft__field_text(&of_name, &name) < 0)
        return -ENOMEM;
    if (!field || !*field)
        return refuse_condition(why, "a condition has no field%s", "");
    if (!name)
        return refuse_condition(why, "the condition on %.100s has no operator", field);
    condition->path = (weft_bytes){field, strlen(field)};
    condition->op = find_operator(name);
    if (!condition->op)
        return refuse_condition(
            why,
            "there is no operator \"%.60s\"; there are eq, neq, contains, matches, gt, lt, gte, lte, exists and "
            "not_exists",
            name);
    condition->value = weft_get(value, "value");
    if (!condition->op->no_value && !condition->value.text)
        return refuse_condition(why, "the condition on %.100s has no value", field);
    if (!condition->op->text)
        return 0;
    weft_bytes pattern;
    if (weft_typeof(&condition->value) != WEFT_STRING)
        return refuse_condition(why, "the value of the condition on %.100s must be a text", field);
    int r = weft_bytes_of(&condition->value, &pattern);
    if (r == 0)
        r = set_limits(condition);
    return r < 0 ? r : compile_pattern(condition, pattern, why);
}

int weft__condition_new(const weft_json *value, const weft_alloc *alloc, weft_condition **ret, char *why) {
    weft_condition *condition = weft__zalloc(alloc, sizeof *condition);
    if (!condition)
        return -ENOMEM;
    condition->alloc = alloc;
    int r = prepare_condition(condition, value, why);
    if (r < 0)
        weft__condition_free(condition);
    else
        *ret = condition;
    return r;
}

weft_condition *weft__condition_free(weft_condition *condition) {
    if (!condition)
        return NULL;
    pcre2_code_free(condition->code);
    pcre2_match_context_free(condition->limits);
    pcre2_general_context_free(condition->memory);
    return weft__free(condition->alloc, condition);
}

void weft__condition_as_aiwg(weft_condition *condition) {
    condition->aiwg = true;
}

int weft__condition_holds(const weft_condition *condition, const weft_json *event) {
    weft_json field = (condition->aiwg ? weft__field_exact : weft__field)(event, condition->path);
    return condition->op->holds(condition, &field);
}

int weft__condition_says(const weft_condition *condition, const weft_json *field) {
    return condition->op->holds(condition, field);
}

/* "depth" is the event's, "payload.depth" the payload's. */
static bool is_of_event(weft_bytes path) {
    static const char *const names[] = {"type", "source", "timestamp", "payload", "depth"};
    const char *dot = memchr(path.data, '.', path.len);
    size_t len = dot ? (size_t) (dot - path.data) : path.len;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && memcmp(names[i], path.data, len) == 0)
            return true;
    return false;
}

weft_bytes weft__condition_field(const weft_condition *condition) {
    static const char prefix[] = "payload.";
    size_t skip = sizeof prefix - 1;
    weft_bytes path = condition->path;
    if (path.len <= skip || memcmp(path.data, prefix, skip) != 0)
        return path;
    weft_bytes inner = {path.data + skip, path.len - skip};
    return is_of_event(inner) ? path : inner;
}

bool weft__condition_is_bare(const weft_condition *condition) {
    static const char prefix[] = "payload.";
    size_t len = sizeof prefix - 1;
    return condition->aiwg && (condition->path.len < len || memcmp(condition->path.data, prefix, len) != 0);
}

const char *weft__condition_operator(const weft_condition *condition) {
    return condition->op->name;
}

const weft_json *weft__condition_value(const weft_condition *condition) {
    return &condition->value;
}
