/* Checking: what its files share.
 *
 * Everything walks the text of the value. A function that checks the value at p returns the byte behind it, or NULL: it does
 * not fit, or run->r says why that cannot be known. With a report, a misfit does not end the walk, and what comes later is
 * told too.
 *
 * Marks say which members or items of the value at hand some schema has looked at. They exist only where a schema asks for
 * those that none has (unevaluated...), and are handed to the schemas that apply to the same value. */
#ifndef WEFT_SCHEMA_CHECK_H
#define WEFT_SCHEMA_CHECK_H

#include <errno.h>

#include "report.h"
#include "scan.h"

#define FEW_MARKS 4 /* words that need no memory */

typedef struct schema_marks {
    uint64_t few[FEW_MARKS];
    uint64_t *many; /* NULL: few */
    size_t words;
} schema_marks;

/* The resources that were entered on the way, from the inside out. */
typedef struct schema_scope {
    const struct schema_scope *outer;
    const schema_resource *resource;
} schema_scope;

typedef struct schema_run {
    const weft_schema *schema;
    const weft_alloc *alloc;
    weft_schema_report *report; /* NULL: the first misfit ends it */
    const schema_place *place;
    const schema_scope *scope;
    size_t depth; /* left */
    size_t steps; /* made */
    pattern_run patterns;
    int r;
} schema_run;

const char *weft__check_node(schema_run *run, const schema_node *node, const char *p, schema_marks *marks);
const char *weft__check_object(schema_run *run, const schema_node *node, const char *p, schema_marks *marks);
const char *weft__check_array(schema_run *run, const schema_node *node, const char *p, schema_marks *marks);
const char *weft__check_string(schema_run *run, const schema_node *node, const char *p);
const char *weft__check_number(schema_run *run, const schema_node *node, const char *p);
/* Does the value at p, which ends at end, equal one of these? 1 yes, 0 no; <0: run->r says why that cannot be known. */
int weft__check_enum(schema_run *run, const enum_rules *rules, const char *p, const char *end);
/* The members or items that no mark is on. false: one does not fit. */
bool weft__check_unevaluated_members(schema_run *run, const schema_node *node, const char *p, schema_marks *marks);
bool weft__check_unevaluated_items(schema_run *run, const schema_node *node, const char *p, schema_marks *marks);

/* Try a schema without telling of misfits; marks count only if it fits. */
bool weft__check_quietly(schema_run *run, const schema_node *node, const char *p, schema_marks *marks);

/* Note a misfit. NULL. */
const char *weft__misfit(schema_run *run, const schema_node *node, const char *keyword, const char *format, ...)
    WEFT_PRINTF(4, 5);
/* It cannot be known whether the value fits. NULL. */
const char *weft__check_fails(schema_run *run, int r);

/* So many steps more. false: they are too many. */
static inline bool weft__check_steps(schema_run *run, size_t steps) {
    run->steps += steps;
    return run->steps <= run->schema->max_steps || weft__check_fails(run, -E2BIG);
}

static inline const char *weft__skip_value(const char *p) {
    return weft__scan_value(p, WEFT_MAX_DEPTH);
}

/* Behind a value and the comma after it: the next one, or the closing bracket. */
static inline const char *weft__next_value(const char *end) {
    const char *p = weft__scan_ws(end);
    return *p == ',' ? weft__scan_ws(p + 1) : p;
}

/* The value behind a name. */
static inline const char *weft__member_value(const char *name_end) {
    return weft__scan_ws(weft__scan_ws(name_end) + 1);
}

int weft__marks_init(schema_marks *marks, const weft_alloc *alloc, size_t count);
void weft__marks_done(schema_marks *marks, const weft_alloc *alloc);

static inline uint64_t *weft__marks_words(schema_marks *marks) {
    return marks->many ? marks->many : marks->few;
}
static inline void weft__mark(schema_marks *marks, size_t i) {
    weft__marks_words(marks)[i / 64] |= UINT64_C(1) << i % 64;
}
static inline bool weft__is_marked(schema_marks *marks, size_t i) {
    return weft__marks_words(marks)[i / 64] >> i % 64 & 1;
}

/* Can the type of the value at p be told to fit by its first byte alone? */
extern const uint8_t weft__type_bits[256];

static inline bool weft__fits_simply(const schema_node *node, const char *p) {
    return node->simple && (node->types & weft__type_bits[(unsigned char) *p]);
}

#endif
