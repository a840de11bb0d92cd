/* Fuzzing relaxed JSON: whatever the bytes, the length and the line ends stay, strict JSON is not touched, what is accepted
 * is strict JSON afterwards, and what is not has a fault inside of the text. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "doc.h"
#include "fuzz_memory.h"
#include "json_reference.h"
#include "relaxed.h"
#include "scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

/* A copy that ends as the scanner needs it, so that the sanitizer sees any step too far. */
static char *copy_of(const char *text, size_t len) {
    char *copy = malloc(len + 1 + WEFT_SLACK);
    require(copy);
    if (len)
        memcpy(copy, text, len);
    memset(copy + len, 0, 1 + WEFT_SLACK);
    return copy;
}

static void check_blank(const char *text, size_t len, bool strict) {
    char *copy = copy_of(text, len);
    require(weft__relaxed_blank(copy, len) <= len);
    for (size_t i = 0; i < len; i++)
        require(copy[i] == text[i] || (copy[i] == ' ' && !is_line_end(text[i])));
    require(!strict || memcmp(copy, text, len) == 0);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data;
    bool strict = reference_valid(text, size, WEFT_MAX_DEPTH);
    char *copy = copy_of(text, size);
    require((weft__fault_find(copy, size).why == NULL) == strict);
    free(copy);
    check_blank(text, size, strict);

    weft_doc *doc = NULL;
    weft_fault fault = {SIZE_MAX, NULL};
    int r = weft__relaxed_parse(text, size, NULL, &doc, &fault);
    require(r == 0 || r == -EBADMSG);
    require(r == 0 || !strict);
    require(r < 0 || reference_valid(doc->text, size, WEFT_MAX_DEPTH));
    if (r < 0) {
        require(fault.why && fault.at <= size);
        copy = copy_of(text, size);
        weft_place place = weft__place_of(copy, fault.at);
        require(place.line >= 1 && place.column >= 1 && place.line + place.column <= size + 2);
        free(copy);
    }
    weft_doc_free(doc);
    return 0;
}
