/* Regular expressions as JSON Schema has them: ECMA-262 with the flag u, found anywhere in a text. They are translated for
 * PCRE2; those that are a row of simple pieces, such as ^[a-z][a-z0-9]*$, are compiled to that and need no PCRE2. */
#ifndef WEFT_PATTERN_H
#define WEFT_PATTERN_H

#include <weft/base.h>

#include "alloc.h"
#include "arena.h"

typedef struct schema_pattern schema_pattern;

/* All patterns of a schema, to free what PCRE2 has for them. */
typedef struct schema_patterns {
    schema_pattern *list;
    struct pcre2_real_general_context_8 *memory;
    const weft_alloc *alloc;
} schema_patterns;

/* -EBADMSG: not a pattern; -ENOTSUP: not one that we can do, or too large; *ret_why is a sentence then (static). -ENOMEM. */
int weft__pattern_compile(schema_patterns *patterns, weft_arena *arena, weft_bytes text, const schema_pattern **ret,
                          const char **ret_why);
void weft__patterns_done(schema_patterns *patterns);
/* Was PCRE2 not needed for it? */
bool weft__pattern_is_simple(const schema_pattern *pattern);

/* What matching needs, for one check. All zero but left is fine. */
typedef struct pattern_run {
    struct pcre2_real_match_context_8 *limits;
    struct pcre2_real_match_data_8 *data;
    size_t left; /* steps */
} pattern_run;

/* 1 it is found in the text (valid UTF-8), 0 it is not, -E2BIG there are no steps left, -ENOMEM. */
int weft__pattern_find(const schema_pattern *pattern, const schema_patterns *patterns, pattern_run *run, const char *text,
                       size_t len);
void weft__pattern_run_done(pattern_run *run);

#endif
