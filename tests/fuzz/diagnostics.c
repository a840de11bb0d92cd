/* What compilers print, as diagnostics: whatever it is, each has a message and a file of limited length that are UTF-8
 * without control characters, and a place that can be; what is written of them is JSON. */
#include <stdint.h>
#include <string.h>

#include <weft/json.h>

#include "diagnostics.h"
#include "fuzz_memory.h"
#include "utf8_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_text(const char *text, size_t most) {
    size_t len = strlen(text);
    require(len <= most && weft__utf8_valid(text, len));
    for (; *text; text++)
        require((unsigned char) *text >= ' ' && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_diagnostics *found = calloc(1, sizeof *found);
    char *copy = malloc(size + !size); /* of exactly this size, so that a step too far is seen */
    weft_buf out = {0};
    weft_doc *doc = NULL;
    require(found && copy);
    if (size)
        memcpy(copy, data, size);
    found->arena.alloc = &counting;
    require(weft__diagnostics_read(found, (weft_bytes){copy, size}, "/p/q") == 0);
    free(copy);
    require(found->count <= WEFT_DIAGNOSTICS && found->errors + found->warnings + WEFT_DIAGNOSTICS >= found->count);
    for (size_t i = 0; i < found->count; i++) {
        const weft_diagnostic *one = &found->items[i];
        look_at_text(one->message, WEFT_DIAGNOSTIC_MESSAGE);
        look_at_text(one->file, WEFT_DIAGNOSTIC_FILE);
        look_at_text(one->code, WEFT_DIAGNOSTIC_CODE);
        require(one->line >= 0 && one->line < 1 << 24 && one->column >= 0 && one->column < 1 << 24);
        require(one->severity <= WEFT_SEVERITY_INFO);
    }
    require(weft__diagnostics_write(found, SIZE_MAX, &counting, &out) == 0);
    require(weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), &counting, &doc) == 0);
    require(weft_count(weft_doc_root(doc)) == found->count);
    weft_doc_free(doc);
    weft__buf_done(&out, &counting);
    weft__diagnostics_done(found);
    free(found);
    require(live == 0);
    return 0;
}
