/* Arrays: one walk over the items. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "normal.h"

#define FEW_ITEMS 16 /* that are compared with each other, if they are plain */

static const char *check_told(schema_run *run, const schema_node *node, size_t index, const char *p) {
    schema_place place = {.outer = run->place, .index = index};
    run->place = &place;
    const char *end = weft__check_node(run, node, p, NULL);
    run->place = place.outer;
    return end;
}

static inline const char *check_item(schema_run *run, const schema_node *node, size_t index, const char *p) {
    if (weft__fits_simply(node, p))
        return weft__skip_value(p);
    return run->report ? check_told(run, node, index, p) : weft__check_node(run, node, p, NULL);
}

/* ---- uniqueItems ---- */

/* A string without escapes, or digits alone: equal if and only if the texts are. */
static bool is_plain_text(const char *p, const char *end) {
    if (*p == '"')
        return !memchr(p, '\\', (size_t) (end - p));
    for (; p < end; p++)
        if (*p < '0' || *p > '9')
            return false;
    return true;
}

/* 1 all differ, 0 two are equal, -1 it takes more to know. */
static int compare_few(const char *p) {
    weft_bytes items[FEW_ITEMS];
    size_t count = 0;
    for (p = weft__scan_ws(p + 1); *p != ']';) {
        const char *end = weft__skip_value(p);
        weft_bytes item = {p, (size_t) (end - p)};
        if (count == FEW_ITEMS || !is_plain_text(p, end))
            return -1;
        for (size_t i = 0; i < count; i++)
            if (items[i].len == item.len && memcmp(items[i].data, p, item.len) == 0)
                return 0;
        items[count++] = item;
        p = weft__next_value(end);
    }
    return 1;
}

static int compare_forms(schema_run *run, const char *p, size_t count) {
    schema_forms forms = {.alloc = run->alloc};
    size_t distinct = 0;
    int r = 0;
    for (p = weft__scan_ws(p + 1); r >= 0 && *p != ']';) {
        const char *end = p;
        r = weft__forms_add(&forms, p, &end);
        p = weft__next_value(end);
    }
    if (r >= 0)
        r = weft__forms_distinct(&forms, &distinct);
    weft__forms_done(&forms);
    return r < 0 ? r : distinct == count;
}

static bool check_unique(schema_run *run, const schema_node *node, const char *p, size_t count) {
    int r = compare_few(p);
    if (r < 0) {
        run->steps += count;
        r = compare_forms(run, p, count);
    }
    if (r < 0)
        return weft__check_fails(run, r);
    if (r == 0)
        weft__misfit(run, node, "uniqueItems", "must not have equal items");
    return r;
}

/* ---- the array ---- */

static bool check_counts(schema_run *run, const schema_node *node, size_t count, size_t contained) {
    const array_rules *rules = node->array;
    bool fits = count >= rules->min && count <= rules->max;
    if (count < rules->min)
        weft__misfit(run, node, "minItems", rules->min == 1 ? "must not be empty" : "must have at least %llu items",
                     (unsigned long long) rules->min);
    if (count > rules->max)
        weft__misfit(run, node, "maxItems", "must have at most %llu items", (unsigned long long) rules->max);
    if (!rules->contains)
        return fits;
    if (contained < rules->min_contains)
        weft__misfit(run, node, rules->min_contains == 1 ? "contains" : "minContains",
                     "must have at least %llu items that fit", (unsigned long long) rules->min_contains);
    if (contained > rules->max_contains)
        weft__misfit(run, node, "maxContains", "must have at most %llu items that fit",
                     (unsigned long long) rules->max_contains);
    return fits && contained >= rules->min_contains && contained <= rules->max_contains;
}

const char *weft__check_array(schema_run *run, const schema_node *node, const char *array, schema_marks *marks) {
    const array_rules *rules = node->array;
    const char *p = weft__scan_ws(array + 1);
    size_t i = 0, contained = 0;
    bool fits = true;
    for (; *p != ']'; i++) {
        const schema_node *item = i < rules->first.count ? rules->first.nodes[i] : rules->rest;
        const char *end = item ? check_item(run, item, i, p) : weft__skip_value(p);
        bool found = rules->contains && weft__check_quietly(run, rules->contains, p, NULL);
        run->steps++;
        fits = fits && end;
        if (run->r < 0 || (!fits && !run->report))
            return NULL;
        contained += found;
        if (marks && (item || found))
            weft__mark(marks, i);
        p = weft__next_value(end ? end : weft__skip_value(p));
    }
    fits = check_counts(run, node, i, contained) && fits;
    if (rules->unique && i > 1 && (fits || run->report))
        fits = check_unique(run, node, array, i) && fits;
    return fits && run->r >= 0 ? p + 1 : NULL;
}

bool weft__check_unevaluated_items(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    bool fits = true;
    size_t i = 0;
    for (p = weft__scan_ws(p + 1); *p != ']' && (fits || run->report); i++) {
        run->steps++;
        if (!weft__is_marked(marks, i))
            fits = check_item(run, node->array->unevaluated, i, p) && fits;
        if (run->r < 0)
            return false;
        p = weft__next_value(weft__skip_value(p));
    }
    return fits;
}
