/* Fuzzing the JSON layer: whatever the bytes, three readers must agree on whether they are JSON (the library's scanner, the
 * portable one and the slow reference), and what is written from them must be read back.
 *
 *     clang -fsanitize=fuzzer,address,undefined ... tests/fuzz/json.c src/json/[a-z]*.c src/base/[a-z]*.c */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The portable scanner under names of its own, beside the one in the library. */
#ifndef WEFT_PORTABLE
#define WEFT_PORTABLE 1
#endif
#define weft__scan_value portable_scan_value
#define weft__scan_container portable_scan_container
#define weft__scan_any_string portable_scan_any_string
#define weft__scan_string_rest portable_scan_string_rest
#define weft__scan_string_rest_base portable_scan_string_rest_base
#define weft__scan_params portable_scan_params
#include "scan.c"
#undef weft__scan_container
#undef weft__scan_any_string
#undef weft__scan_value
#undef weft__scan_string_rest
#undef weft__scan_string_rest_base
#undef weft__scan_params

const char *weft__scan_value(const char *p, int depth);
const char *weft__scan_params(const char *p, int depth, weft_bytes *ret_meta);

#include "fuzz_memory.h"
#include "json_reference.h"
#include "number.h"
#include "write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(weft_bytes a, weft_bytes b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* The scanners on memory that ends with the slack, so that the sanitizer sees any step too far. */
static bool scan_all(const char *text, size_t len) {
    char *copy = malloc(len + 1 + WEFT_SLACK);
    if (!copy)
        return false;
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    memset(copy + len + 1, '"', WEFT_SLACK);

    const char *start = weft__scan_ws(copy), *end = weft__scan_value(start, WEFT_MAX_DEPTH);
    bool valid = end && weft__scan_ws(end) == copy + len;
    require(portable_scan_value(start, WEFT_MAX_DEPTH) == end);
    require(reference_valid(text, len, WEFT_MAX_DEPTH) == valid);
    if (*start == '{') {
        weft_bytes meta = {0}, portable = {0};
        require(weft__scan_params(start, WEFT_MAX_DEPTH, &meta) == end);
        require(portable_scan_params(start, WEFT_MAX_DEPTH, &portable) == end);
        require(meta.data == portable.data && meta.len == portable.len);
        if (valid) {
            weft_json object = {start, (size_t) (end - start), NULL}, member = weft_get(&object, "_meta");
            require(member.text == meta.data && member.len == meta.len);
        }
    }
    free(copy);
    return valid;
}

static void read_all(const weft_json *value) {
    weft_bytes text;
    weft_int_of(value, 0);
    weft_num_of(value, 0);
    weft_str_of(value, NULL);
    if (weft_bytes_of(value, &text) == 0)
        require(weft__raw_is((weft_bytes){value->text, value->len}, text.data, text.len));
    size_t count = 0;
    for (weft_iter it = weft_iterate(value); weft_next(&it); count++)
        read_all(&it.value);
    require(weft_count(value) == count);
}

/* Canonical text is JSON, and its own canonical form. */
static void check_canonical(const weft_json *value) {
    char *first = NULL, *second = NULL;
    size_t first_len = 0, second_len = 0;
    if (weft_to_canonical(value, NULL, &first, &first_len) < 0)
        return;
    weft_doc *doc = NULL;
    require(weft_doc_parse(first, first_len, NULL, &doc) == 0);
    require(weft_to_canonical(weft_doc_root(doc), NULL, &second, &second_len) == 0);
    require(same((weft_bytes){first, first_len}, (weft_bytes){second, second_len}));
    weft_doc_free(doc);
    weft_text_free(first, NULL);
    weft_text_free(second, NULL);
}

/* Any bytes as a string: valid JSON, and once it is valid UTF-8 writing it again changes nothing. */
static void check_string(const char *text, size_t len) {
    char *first = NULL, *second = NULL;
    size_t first_len = 0, second_len = 0;
    weft_doc *doc = NULL;
    weft_bytes decoded;
    require(weft_to_text(weft_strn(text, len), NULL, &first, &first_len) == 0);
    require(weft_doc_parse(first, first_len, NULL, &doc) == 0);
    require(weft_bytes_of(weft_doc_root(doc), &decoded) == 0);
    require(weft_to_text(weft_strn(decoded.data, decoded.len), NULL, &second, &second_len) == 0);
    require(same((weft_bytes){first, first_len}, (weft_bytes){second, second_len}));
    weft_doc_free(doc);
    weft_text_free(first, NULL);
    weft_text_free(second, NULL);
}

static void check_double(const uint8_t *data) {
    double d, back = 0;
    char text[33];
    memcpy(&d, data, sizeof d);
    if (!isfinite(d))
        return;
    size_t len = weft__print_double(d, text);
    require(reference_valid(text, len, WEFT_MAX_DEPTH));
    require(weft__number_double(text, len, &back) == 0 && back == d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data;
    if (scan_all(text, size)) {
        weft_doc *doc = NULL;
        require(weft_doc_parse(text, size, NULL, &doc) == 0);
        read_all(weft_doc_root(doc));
        check_canonical(weft_doc_root(doc));
        weft_doc_free(doc);
    }
    check_string(text, size);
    if (size >= sizeof(double))
        check_double(data);
    return 0;
}
