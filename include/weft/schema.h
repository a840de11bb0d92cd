/* JSON Schema: does a value fit? Drafts 2020-12 and 07.
 *
 * A schema is compiled once and checked against any number of values, from any number of threads. A check walks the text of
 * the value; it builds no tree, and most need no memory. Nothing is ever fetched: a "$ref" finds what is in the schema, the
 * metaschemas of both drafts, which are built in, and what the caller gives.
 *
 *     weft_schema *schema = NULL;
 *     WEFT_SCHEMA_REPORT report = {0};
 *     int r = weft_schema_compile(text, len, NULL, &schema, &report);
 *     if (r == 0)
 *         r = weft_schema_check(schema, value, &report);
 *     if (r < 0 && report.count)
 *         printf("%s: %s\n", report.errors[0].instance, report.errors[0].message);
 *
 * Formats are annotations unless the caller, or the vocabulary of the schema, wants them checked. Patterns are those of
 * ECMA-262 as far as PCRE2 has them. Of duplicate members the last one counts, as everywhere in Weft. */
#ifndef WEFT_SCHEMA_H
#define WEFT_SCHEMA_H

#include <weft/json.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_schema weft_schema;

typedef enum weft_draft {
    WEFT_DRAFT_2020_12,
    WEFT_DRAFT_07,
} weft_draft;

typedef struct weft_schema_opts {
    const weft_alloc *alloc; /* also for every check */
    weft_draft draft;        /* of a schema that does not say by "$schema" */
    const char *uri;         /* what the schema is known by where it has no "$id"; NULL: nothing */
    bool check_formats;      /* "format" refuses; otherwise it says nothing */
    /* Another schema that a "$ref" or "$schema" names, by its absolute URI without fragment: 0 and its text, borrowed until
     * weft_schema_compile() returns, or -ENOENT. NULL: there are no others. */
    int (*find)(void *ctx, const char *uri, weft_bytes *ret);
    void *ctx;
    /* Limits; 0 is the default. */
    size_t max_nodes; /* schemas within the schema and those it refers to (20,000) */
    size_t max_bytes; /* of the texts of all of them (4 MiB) */
    size_t max_depth; /* of schemas within schemas while checking, a "$ref" counted too (1,000); each takes up to 400 bytes
                         of stack */
    size_t max_steps; /* of one check: schemas that are tried and members or items that are looked at (10,000,000) */
    size_t max_regex; /* steps of all patterns in one check (2,000,000) */
    WEFT_ROOM(4);
} weft_schema_opts;

/* Why a value does not fit, or a schema cannot be compiled. */
typedef struct weft_schema_error {
    const char *instance; /* JSON Pointer of the value that does not fit; "" the whole one */
    const char *keyword;  /* JSON Pointer of the keyword that it does not fit, in the schema ("/properties/name/maxLength");
                             if that is in another one, its URI with the pointer as fragment */
    const char *message;  /* about that value, without a subject: "must be a string" */
    WEFT_ROOM(2);
} weft_schema_error;

#define WEFT_SCHEMA_ERRORS 16

/* All zero to begin with; whoever fills it forgets what was in it. */
typedef struct weft_schema_report {
    const weft_schema_error *errors; /* in the order of the value's text */
    size_t count;
    bool more;   /* there were more than WEFT_SCHEMA_ERRORS */
    void *ours_; /* ours */
    WEFT_ROOM(4);
} weft_schema_report;
WEFT_API void weft_schema_report_done(weft_schema_report *report);
#if defined(__GNUC__)
#define WEFT_SCHEMA_REPORT __attribute__((cleanup(weft_schema_report_done))) weft_schema_report
#endif

/* Compile the text of a schema; all of it is copied. report may be NULL. -EBADMSG: it is no JSON, or no schema (the report
 * says where); -ENOENT: a "$ref" names what nobody knows; -ENOTSUP: a draft, vocabulary or pattern that we cannot do;
 * -E2BIG: over a limit; -ENOMEM. */
WEFT_API int weft_schema_compile(const char *text, size_t len, const weft_schema_opts *opts, weft_schema **ret,
                                 weft_schema_report *report);
WEFT_API weft_schema *weft_schema_free(weft_schema *schema);
WEFT_API void weft_schema_freep(weft_schema **schema);

/* 0: the value fits. Anything below 0: do not use it. -EBADMSG: it does not fit, and the report, which may be NULL, says
 * why; -E2BIG: over a limit before that was known; -ENOMEM; -EINVAL: it is absent. Without a report the first misfit ends
 * it. */
WEFT_API int weft_schema_check(const weft_schema *schema, const weft_json *value, weft_schema_report *report);

#ifdef __cplusplus
}
#endif
#endif
