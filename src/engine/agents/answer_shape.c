/* The shapes as texts, and a sentence for the first misfit. */
#include "answer_shape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define TEXT "{\"type\":\"string\"}"
/* A name with a NUL in it is none: it would be cut wherever it is used. Patterns are for short texts: the steps of all of
 * them together are limited. */
#define NAMES "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"not\":{\"pattern\":\"\\\\u0000\"}}}"
#define TEXTS "{\"type\":\"array\",\"items\":" TEXT "}"
#define OBJECT "{\"type\":\"object\"}"

const char weft__executed_shape[] =
    "{\"type\":\"object\",\"required\":[\"status\",\"output\"],\"properties\":{"
        "\"status\":{\"enum\":[\"success\",\"failure\",\"partial\",\"timeout\"]},"
        "\"output\":{\"type\":\"object\",\"properties\":{"
            "\"code\":" TEXT ","
            "\"explanation\":" TEXT ","
            "\"files_modified\":" NAMES ","
            "\"files_created\":" NAMES ","
            "\"files_deleted\":" NAMES ","
            "\"warnings\":" TEXTS "}},"
        "\"metadata\":" OBJECT ","
        "\"metrics\":" OBJECT "}}";

const char weft__validated_shape[] =
    "{\"type\":\"object\",\"required\":[\"valid\"],\"properties\":{"
        "\"valid\":{\"type\":\"boolean\"},"
        "\"issues\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"message\"],\"properties\":{"
            "\"message\":{\"type\":\"string\"},"
            "\"rule\":{\"type\":\"string\"},"
            "\"severity\":{\"type\":\"string\"},"
            "\"line\":{\"type\":\"number\"},"
            "\"column\":{\"type\":\"number\"}}}}}}";
/* clang-format on */

int weft__shape_new(const char *text, const weft_alloc *alloc, weft_schema **ret) {
    return weft_schema_compile(text, strlen(text), &(weft_schema_opts){.alloc = alloc}, ret, NULL);
}

int weft__shape_check(const weft_schema *shape, const weft_json *answer, char why[WEFT_SHAPE_WHY]) {
    WEFT_SCHEMA_REPORT report = {0};
    int r = weft_schema_check(shape, answer, &report);
    const weft_schema_error *first = report.errors;
    if (r == -EBADMSG && report.count)
        snprintf(why, WEFT_SHAPE_WHY, "%.100s %.100s (%.100s)", *first->instance ? first->instance : "it", first->message,
                 first->keyword);
    else if (r < 0)
        snprintf(why, WEFT_SHAPE_WHY, "%s", r == -ENOMEM ? "out of memory" : "it is too large to check");
    return r;
}
