/* A pattern is simple or PCRE2's. PCRE2 goes back and forth as long as the pattern makes it, so its steps are counted: each
 * attempt gets few of them, and if they do not suffice a longer attempt is paid for out of what one check may use. An
 * attempt on a long text costs more, because one step may look at all of it. */
#include "pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>

#include "pattern_private.h"

#define MAX_PATTERN (16 * 1024) /* bytes */
#define NEST_LIMIT 100          /* of parentheses */
#define HEAP_LIMIT_KIB (4 * 1024)
#define FIRST_STEPS 500       /* of the first attempt, which is free */
#define STEPS_GROWTH 8        /* of each further one */
#define TEXT_PER_STEP 256     /* so many bytes of text make a step one step dearer */
#define FREE_TEXT (16 * 1024) /* the first attempt on a longer text is not free */

struct schema_pattern {
    schema_pattern *next;
    pcre2_code *code; /* NULL: it is simple */
    simple_pattern simple;
};

static void *pattern_alloc(size_t size, void *ctx) {
    return weft__alloc(ctx, size);
}

static void pattern_free(void *ptr, void *ctx) {
    weft__free(ctx, ptr);
}

static int need_memory(schema_patterns *patterns) {
    if (!patterns->memory)
        patterns->memory = pcre2_general_context_create(pattern_alloc, pattern_free, (void *) patterns->alloc);
    return patterns->memory ? 0 : -ENOMEM;
}

static int compile_code(schema_patterns *patterns, weft_bytes text, pcre2_code **ret, const char **ret_why) {
    pcre2_compile_context *context = pcre2_compile_context_create(patterns->memory);
    if (!context)
        return -ENOMEM;
    uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
                       PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UCP;
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR) text.data, text.len, options, &error, &at, context);
    pcre2_compile_context_free(context);
    if (code) {
        *ret = code;
        return 0;
    }
    if (error == PCRE2_ERROR_HEAP_FAILED) /* PCRE2 calls this so in compile */
        return -ENOMEM;
    *ret_why = "is no regular expression";
    return -EBADMSG;
}

static int compile_translated(schema_patterns *patterns, weft_bytes text, pcre2_code **ret, const char **ret_why) {
    weft_buf out = {0};
    if (text.len > MAX_PATTERN) {
        *ret_why = "is longer than 16 KiB";
        return -ENOTSUP;
    }
    int r = need_memory(patterns);
    if (r >= 0)
        r = weft__buf_reserve(&out, patterns->alloc, text.len + 1);
    if (r >= 0)
        r = weft__pattern_translate(text, patterns->alloc, &out, ret_why);
    if (r >= 0)
        r = compile_code(patterns, (weft_bytes){weft__buf_head(&out), weft__buf_len(&out)}, ret, ret_why);
    weft__buf_done(&out, patterns->alloc);
    return r;
}

int weft__pattern_compile(schema_patterns *patterns, weft_arena *arena, weft_bytes text, const schema_pattern **ret,
                          const char **ret_why) {
    schema_pattern *pattern = weft__arena_alloc(arena, sizeof *pattern);
    if (!pattern)
        return -ENOMEM;
    pattern->code = NULL;
    if (!weft__simple_parse(text, &pattern->simple)) {
        int r = compile_translated(patterns, text, &pattern->code, ret_why);
        if (r < 0)
            return r;
    }
    pattern->next = patterns->list;
    patterns->list = pattern;
    *ret = pattern;
    return 0;
}

bool weft__pattern_is_simple(const schema_pattern *pattern) {
    return !pattern->code;
}

void weft__patterns_done(schema_patterns *patterns) {
    for (schema_pattern *pattern = patterns->list; pattern; pattern = pattern->next)
        pcre2_code_free(pattern->code);
    pcre2_general_context_free(patterns->memory);
    *patterns = (schema_patterns){0};
}

/* ---- finding ---- */

static int prepare_run(const schema_patterns *patterns, pattern_run *run) {
    if (!run->data)
        run->data = pcre2_match_data_create(1, patterns->memory);
    if (!run->limits) {
        run->limits = pcre2_match_context_create(patterns->memory);
        if (run->limits)
            pcre2_set_heap_limit(run->limits, HEAP_LIMIT_KIB);
    }
    return run->data && run->limits ? 0 : -ENOMEM;
}

/* Take the steps of an attempt out of what is left. */
static bool pay(pattern_run *run, size_t steps, size_t len) {
    size_t price = steps * (1 + len / TEXT_PER_STEP);
    if (price > run->left)
        return false;
    run->left -= price;
    return true;
}

static int find_by_pcre2(const schema_pattern *pattern, pattern_run *run, const char *text, size_t len) {
    for (size_t steps = FIRST_STEPS;; steps *= STEPS_GROWTH) {
        bool free_of_charge = steps == FIRST_STEPS && len <= FREE_TEXT;
        if (steps > UINT32_MAX || (!free_of_charge && !pay(run, steps, len)))
            return -E2BIG;
        pcre2_set_match_limit(run->limits, (uint32_t) steps);
        pcre2_set_depth_limit(run->limits, (uint32_t) steps);
        int r = pcre2_match(pattern->code, (PCRE2_SPTR) text, len, 0, PCRE2_NO_UTF_CHECK, run->data, run->limits);
        if (r >= 0)
            return 1;
        if (r == PCRE2_ERROR_NOMATCH)
            return 0;
        if (r == PCRE2_ERROR_NOMEMORY)
            return -ENOMEM;
        if (r != PCRE2_ERROR_MATCHLIMIT && r != PCRE2_ERROR_DEPTHLIMIT)
            return -E2BIG;
    }
}

int weft__pattern_find(const schema_pattern *pattern, const schema_patterns *patterns, pattern_run *run, const char *text,
                       size_t len) {
    if (!pattern->code)
        return weft__simple_matches(&pattern->simple, text, len);
    int r = prepare_run(patterns, run);
    return r < 0 ? r : find_by_pcre2(pattern, run, text, len);
}

void weft__pattern_run_done(pattern_run *run) {
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->limits);
}
