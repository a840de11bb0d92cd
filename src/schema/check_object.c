/* Objects: one walk over the members, each looked up among the properties. Of duplicate members the last one counts: a
 * misfit of one that a later one replaces is none. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "doc.h"
#include "hint.h"
#include "normal.h"
#include "utf8.h"

#define SHOWN_NAME 100 /* bytes of a name in a message */

typedef struct member {
    const char *raw; /* its name with the quotes */
    size_t raw_len;
    const char *name; /* decoded, with WEFT_NAMES_PAD bytes behind it */
    size_t len;
    const char *value;
    size_t index;
    char *memory; /* of a decoded name; NULL: there was nothing to decode */
} member;

static WEFT_NOINLINE int decode_name(schema_run *run, member *m) {
    m->memory = weft__alloc(run->alloc, m->raw_len + WEFT_NAMES_PAD);
    if (!m->memory)
        return -ENOMEM;
    m->len = weft__unescape(m->raw + 1, m->raw_len - 2, m->memory);
    memset(m->memory + m->len, 0, WEFT_NAMES_PAD);
    m->name = m->memory;
    return 0;
}

/* p is at the name. -ENOMEM. */
static inline int read_member(schema_run *run, const char *p, member *ret) {
    bool escaped;
    const char *end = weft__scan_string(p, &escaped);
    ret->raw = p;
    ret->raw_len = (size_t) (end - p);
    ret->name = p + 1;
    ret->len = ret->raw_len - 2;
    ret->value = weft__member_value(end);
    ret->memory = NULL;
    return escaped ? decode_name(run, ret) : 0;
}

static bool is_named(const char *raw, const char *raw_end, const char *name, size_t len) {
    return weft__raw_is((weft_bytes){raw, (size_t) (raw_end - raw)}, name, len);
}

/* From the name at p on, is there a member with this one? */
static bool has_member_from(schema_run *run, const char *p, const char *name, size_t len) {
    while (*p == '"') {
        const char *end = weft__scan_any_string(p);
        if (is_named(p, end, name, len))
            return true;
        if (!weft__check_steps(run, 1))
            return false;
        p = weft__next_value(weft__skip_value(weft__member_value(end)));
    }
    return false;
}

static bool has_member(schema_run *run, const char *object, weft_bytes name) {
    return has_member_from(run, weft__scan_ws(object + 1), name.data, name.len);
}

/* ---- one member ---- */

static const char *check_told(schema_run *run, const schema_node *node, const member *m, const char *p) {
    schema_place place = {.outer = run->place, .name = m->raw + 1, .len = m->raw_len - 2};
    run->place = &place;
    const char *end = weft__check_node(run, node, p, NULL);
    run->place = place.outer;
    return end;
}

/* p is the value, or the name if that is to be checked. */
static inline const char *check_part(schema_run *run, const schema_node *node, const member *m, const char *p) {
    if (weft__fits_simply(node, p))
        return weft__skip_value(p);
    return run->report ? check_told(run, node, m, p) : weft__check_node(run, node, p, NULL);
}

/* 1 it was looked at and fits, 0 no pattern is for it, <0 it does not fit. */
static int check_patterns(schema_run *run, const object_rules *rules, const member *m) {
    int looked = 0;
    for (size_t i = 0; i < rules->pattern_count && run->r >= 0; i++) {
        const pattern_rule *rule = &rules->patterns[i];
        if (!weft__check_steps(run, 1))
            break;
        int r = weft__pattern_find(rule->pattern, &run->schema->patterns, &run->patterns, m->name, m->len);
        if (r < 0)
            weft__check_fails(run, r);
        if (r <= 0)
            continue;
        bool fits = check_part(run, rule->node, m, m->value);
        looked = fits && looked >= 0 ? 1 : -1;
        if (!fits && !run->report)
            break;
    }
    return run->r < 0 ? -1 : looked;
}

/* The byte behind the value, or NULL. */
static inline const char *check_member(schema_run *run, const object_rules *rules, const member *m, uint32_t *expected,
                                       schema_marks *seen, schema_marks *marks) {
    const schema_name *entry = weft__names_find(&rules->names, m->name, m->len, expected, &run->steps);
    const char *end = NULL;
    bool looked = false, fits = true;
    if (entry) {
        if (entry->required >= 0)
            weft__mark(seen, (size_t) entry->required);
        if (entry->node) {
            looked = true;
            end = check_part(run, entry->node, m, m->value);
            fits = end;
        }
    }
    if (rules->pattern_count && (fits || run->report)) {
        int r = check_patterns(run, rules, m);
        looked = looked || r;
        fits = fits && r >= 0;
    }
    if (!looked && rules->additional) {
        looked = true;
        end = check_part(run, rules->additional, m, m->value);
        fits = end;
    }
    if (rules->property_names && (fits || run->report))
        fits = check_part(run, rules->property_names, m, m->raw) && fits;
    if (marks && looked)
        weft__mark(marks, m->index);
    if (!fits)
        return NULL;
    return end ? end : weft__skip_value(m->value);
}

/* A member that does not fit, as long as no later one replaces it. */
static WEFT_NOINLINE bool is_replaced(schema_run *run, const member *m) {
    return run->r >= 0 && has_member_from(run, weft__next_value(weft__skip_value(m->value)), m->name, m->len);
}

/* ---- the object as a whole ---- */

static bool check_required(schema_run *run, const schema_node *node, schema_marks *seen) {
    const object_rules *rules = node->object;
    bool fits = true;
    for (size_t i = 0; i < rules->required && (fits || run->report); i++) {
        if (weft__is_marked(seen, i))
            continue;
        const weft_bytes *name = &rules->required_names[i];
        weft__misfit(run, node, "required", "has no \"%.*s\"", (int) weft__utf8_fit(name->data, name->len, SHOWN_NAME),
                     name->data);
        fits = false;
    }
    return fits;
}

static int count_distinct_names(schema_run *run, const char *p, size_t *ret) {
    schema_forms forms = {.alloc = run->alloc};
    int r = 0;
    for (p = weft__scan_ws(p + 1); r >= 0 && *p == '"';) {
        const char *end = NULL;
        r = weft__forms_add(&forms, p, &end);
        if (r >= 0)
            p = weft__next_value(weft__skip_value(weft__member_value(end)));
    }
    if (r >= 0)
        r = weft__forms_distinct(&forms, ret);
    weft__forms_done(&forms);
    return r;
}

/* Only where duplicates could make a difference are the names compared. */
static bool check_count(schema_run *run, const schema_node *node, const char *p, size_t count) {
    const object_rules *rules = node->object;
    if (count > 1 && (rules->min > 1 || count > rules->max)) {
        int r = count_distinct_names(run, p, &count);
        if (r < 0)
            return weft__check_fails(run, r);
    }
    if (count < rules->min)
        weft__misfit(run, node, "minProperties", "must have at least %llu members", (unsigned long long) rules->min);
    if (count > rules->max)
        weft__misfit(run, node, "maxProperties", "must have at most %llu members", (unsigned long long) rules->max);
    return count >= rules->min && count <= rules->max;
}

static bool check_dependent(schema_run *run, const schema_node *node, const dependent_rule *rule, const char *p,
                            schema_marks *marks) {
    bool fits = true;
    if (!has_member(run, p, rule->name))
        return true;
    if (rule->node)
        return weft__check_node(run, rule->node, p, marks);
    for (size_t i = 0; i < rule->count && run->r >= 0 && (fits || run->report); i++) {
        const weft_bytes *name = &rule->required[i];
        if (has_member(run, p, *name) || run->r < 0)
            continue;
        weft__misfit(run, node, rule->keyword, "has \"%.*s\", but no \"%.*s\"",
                     (int) weft__utf8_fit(rule->name.data, rule->name.len, SHOWN_NAME), rule->name.data,
                     (int) weft__utf8_fit(name->data, name->len, SHOWN_NAME), name->data);
        fits = false;
    }
    return fits;
}

static bool check_whole(schema_run *run, const schema_node *node, const char *p, size_t count, schema_marks *seen,
                        schema_marks *marks) {
    const object_rules *rules = node->object;
    bool fits = check_required(run, node, seen);
    if (fits || run->report)
        fits = check_count(run, node, p, count) && fits;
    for (size_t i = 0; i < rules->dependent_count && run->r >= 0 && (fits || run->report); i++)
        fits = check_dependent(run, node, &rules->dependents[i], p, marks) && fits;
    return fits && run->r >= 0;
}

/* Behind the closing brace, or NULL. */
static const char *check_members(schema_run *run, const schema_node *node, const char *object, schema_marks *seen,
                                 schema_marks *marks) {
    const char *p = weft__scan_ws(object + 1);
    uint32_t expected = 0;
    bool fits = true;
    member m = {.index = 0};
    for (; *p == '"'; m.index++) {
        size_t told = run->report ? run->report->count : 0;
        bool more = run->report && run->report->more;
        if (read_member(run, p, &m) < 0)
            return weft__check_fails(run, -ENOMEM);
        run->steps++;
        const char *end = check_member(run, node->object, &m, &expected, seen, marks);
        if (!end) {
            bool replaced = is_replaced(run, &m);
            if (replaced && run->report) {
                run->report->count = told;
                run->report->more = more;
            }
            fits = fits && replaced;
            end = weft__skip_value(m.value);
        }
        weft__free(run->alloc, m.memory);
        if (run->r < 0 || (!fits && !run->report))
            return NULL;
        p = weft__next_value(end);
    }
    if (!fits && !run->report)
        return NULL;
    return check_whole(run, node, object, m.index, seen, marks) && fits ? p + 1 : NULL;
}

const char *weft__check_object(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    schema_marks seen;
    if (weft__marks_init(&seen, run->alloc, node->object->required) < 0)
        return weft__check_fails(run, -ENOMEM);
    const char *end = check_members(run, node, p, &seen, marks);
    if (seen.many)
        weft__marks_done(&seen, run->alloc);
    return end;
}

bool weft__check_unevaluated_members(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    bool fits = true;
    member m = {.index = 0};
    for (p = weft__scan_ws(p + 1); *p == '"' && (fits || run->report); m.index++) {
        const char *raw_end = weft__scan_any_string(p);
        m.raw = p;
        m.raw_len = (size_t) (raw_end - p);
        m.value = weft__member_value(raw_end);
        run->steps++;
        if (!weft__is_marked(marks, m.index) && !check_part(run, node->object->unevaluated, &m, m.value)) {
            bool replaced = read_member(run, p, &m) >= 0 && is_replaced(run, &m);
            weft__free(run->alloc, m.memory);
            m.memory = NULL;
            fits = fits && replaced;
        }
        if (run->r < 0)
            return false;
        p = weft__next_value(weft__skip_value(m.value));
    }
    return fits;
}
