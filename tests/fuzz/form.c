/* Forms of agents and what is filled in. The first line is the form, the rest what was filled in. What was accepted is JSON,
 * is accepted again, and then says the same. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "form.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 0, and *ret is what it says, with its end; or -EINVAL and a sentence. */
static int fill(const weft_json *schema, const weft_json *content, weft_buf *ret) {
    char why[WEFT_FORM_WHY] = "";
    int r = weft__form_fill(schema, content, &counting, ret, why);
    require(r == 0 || (r == -EINVAL && *why && strlen(why) < sizeof why));
    return r;
}

static void fill_again(const weft_json *schema, const weft_buf *first) {
    weft_doc *doc = NULL;
    weft_buf again = {0};
    require(weft_doc_parse(weft__buf_head(first), weft__buf_len(first), &counting, &doc) == 0);
    require(weft_typeof(weft_doc_root(doc)) == WEFT_OBJECT);
    if (weft__buf_len(first) <= WEFT_FORM_BYTES) { /* defaults may make it longer than somebody may write */
        require(fill(schema, weft_doc_root(doc), &again) == 0);
        require(weft__buf_len(&again) == weft__buf_len(first) &&
                memcmp(weft__buf_head(&again), weft__buf_head(first), weft__buf_len(first)) == 0);
    }
    weft__buf_done(&again, &counting);
    weft_doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data, *end = size ? memchr(text, '\n', size) : NULL;
    size_t len = end ? (size_t) (end - text) : size;
    char why[WEFT_FORM_WHY] = "";
    weft_doc *schema = NULL, *content = NULL;
    if (weft_doc_parse(text, len, &counting, &schema) == 0 && weft__form_check(weft_doc_root(schema), why) == 0) {
        weft_json nothing = {0};
        weft_buf out = {0};
        bool given = end && weft_doc_parse(end + 1, size - len - 1, &counting, &content) == 0;
        if (fill(weft_doc_root(schema), given ? weft_doc_root(content) : &nothing, &out) == 0)
            fill_again(weft_doc_root(schema), &out);
        weft__buf_done(&out, &counting);
    }
    weft_doc_free(content);
    weft_doc_free(schema);
    require(live == 0);
    return 0;
}
