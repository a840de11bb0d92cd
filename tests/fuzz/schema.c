/* Fuzzing JSON Schema: a text is a schema, a newline and a value. Whatever they are: compiling and checking end, nothing is
 * left allocated, and what can be known in two ways is the same in both:
 *   - with and without a report, a value fits or does not;
 *   - what does not fit has a reason, and the place it names is in the value;
 *   - {"allOf":[S]} and {"$ref":S} say what S says, and {"not":S} the contrary;
 *   - a value written canonically fits where the value does, unless its numbers were beyond double;
 *   - under limits that are small it is refused or says the same. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weft/schema.h>

#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const weft_schema_opts usual = {.alloc = &counting, .max_steps = 200000, .max_regex = 20000, .check_formats = true};

/* A schema around the text. NULL: it cannot be compiled. */
static weft_schema *compile_in(const char *before, const char *text, size_t len, const char *after,
                               const weft_schema_opts *opts) {
    size_t all = strlen(before) + len + strlen(after);
    char *whole = malloc(all + 1);
    weft_schema *schema = NULL;
    require(whole != NULL);
    sprintf(whole, "%s", before);
    memcpy(whole + strlen(before), text, len);
    sprintf(whole + strlen(before) + len, "%s", after);
    int r = weft_schema_compile(whole, all, opts, &schema, NULL);
    require((r == 0) == (schema != NULL));
    free(whole);
    return schema;
}

static bool is_verdict(int r) {
    return r == 0 || r == -EBADMSG;
}

/* Places that a text shows as U+FFFD cannot be found again. */
static void check_places(const weft_schema_report *report, const weft_json *value) {
    for (size_t i = 0; i < report->count; i++) {
        const weft_schema_error *error = &report->errors[i];
        require(*error->message);
        if (!strstr(error->instance, "\xEF\xBF\xBD"))
            require(weft_pointer(value, error->instance).text != NULL);
    }
}

static int verdict_in(const char *before, const char *text, size_t len, const char *after, const weft_json *value) {
    weft_schema *schema = compile_in(before, text, len, after, &usual);
    int r = schema ? weft_schema_check(schema, value, NULL) : -ENOENT;
    weft_schema_free(schema);
    return r;
}

/* "$id", "$schema" and references that begin at the root make another schema of what is wrapped. */
static bool may_be_wrapped(const char *text, size_t len) {
    return !memchr(text, '$', len) && !memchr(text, '\\', len);
}

static void compare_wrapped(const char *text, size_t len, const weft_json *value, int verdict) {
    int all = verdict_in("{\"allOf\":[", text, len, "]}", value);
    int ref = verdict_in("{\"$ref\":\"#/$defs/s\",\"$defs\":{\"s\":", text, len, "}}", value);
    int not_ = verdict_in("{\"not\":", text, len, "}", value);
    if (is_verdict(all))
        require(all == verdict);
    if (is_verdict(ref))
        require(ref == verdict);
    if (is_verdict(not_))
        require((not_ == 0) == (verdict == -EBADMSG));
}

static bool has_number_beyond(const char *text, size_t len) {
    size_t digits = 0;
    for (size_t i = 0; i < len; i++) {
        digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : digits;
        if (digits > 15 || text[i] == 'e' || text[i] == 'E' || text[i] == '.')
            return true;
    }
    return false;
}

static void compare_canonical(const weft_schema *schema, const weft_json *value, int verdict) {
    char *text = NULL;
    size_t len = 0;
    weft_doc *doc = NULL;
    if (has_number_beyond(value->text, value->len) || weft_to_canonical(value, NULL, &text, &len) < 0)
        return;
    require(weft_doc_parse(text, len, NULL, &doc) == 0);
    int r = weft_schema_check(schema, weft_doc_root(doc), NULL);
    if (is_verdict(r))
        require(r == verdict);
    weft_doc_free(doc);
    weft_text_free(text, NULL);
}

static void compare_limited(const char *text, size_t len, const weft_json *value, int verdict) {
    weft_schema_opts opts = usual;
    opts.max_depth = 6;
    opts.max_steps = 20;
    weft_schema *schema = compile_in("", text, len, "", &opts);
    int r = schema ? weft_schema_check(schema, value, NULL) : -E2BIG;
    require(r == -E2BIG || r == verdict);
    weft_schema_free(schema);
}

static void check_all(const weft_schema *schema, const char *text, size_t len, const weft_json *value) {
    weft_schema_report report = {0};
    int quick = weft_schema_check(schema, value, NULL), told = weft_schema_check(schema, value, &report);
    require(quick == told || told == -E2BIG);
    require(is_verdict(quick) || quick == -E2BIG);
    if (told == -EBADMSG)
        require(report.count > 0);
    if (quick == 0)
        require(report.count == 0);
    check_places(&report, value);
    weft_schema_report_done(&report);
    if (!is_verdict(quick))
        return;
    compare_canonical(schema, value, quick);
    compare_limited(text, len, value, quick);
    if (may_be_wrapped(text, len))
        compare_wrapped(text, len, value, quick);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data, *line = memchr(text, '\n', size);
    size_t len = line ? (size_t) (line - text) : size;
    weft_schema_report report = {0};
    weft_schema *schema = NULL;
    weft_doc *doc = NULL;
    int r = weft_schema_compile(text, len, &usual, &schema, &report);
    require(r != -EBADMSG || report.count == 1);
    if (r == 0 && line && weft_doc_parse(line + 1, size - len - 1, &counting, &doc) == 0)
        check_all(schema, text, len, weft_doc_root(doc));
    weft_doc_free(doc);
    weft_schema_free(schema);
    weft_schema_report_done(&report);
    require(live == 0);
    return 0;
}
