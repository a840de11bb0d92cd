/* A diff and the text that a person made of it: the first part, up to a NUL, is the diff, the rest what was edited. Whatever
 * they are, what is said is about a line of the diff, and is found there; and the text as it was written says nothing. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "fuzz_memory.h"
#include "review.h"
#include "review_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_for(const weft_said *said, weft_bytes diff) {
    weft_comment comment = {.path = said->path, .text = said->text, .line = said->line, .old = said->old};
    require(*said->path && *said->text && strlen(said->text) <= WEFT_REVIEW_TEXT);
    require(weft__comments_find(&comment, 1, diff, &counting) == 0);
    require(comment.found);
    weft__comments_done(&comment, 1, &counting);
}

static void read_back(weft_bytes diff) {
    weft_buf text = {0};
    weft_review_text said;
    require(weft__review_text_write(&text, &counting, "task-0001", diff) == 0);
    int r = weft__review_text_read((weft_bytes){weft__buf_head(&text), weft__buf_len(&text)}, diff, &counting, &said);
    require(r == 0 || r == -EBADMSG);
    weft__review_text_done(&said);
    weft__buf_done(&text, &counting);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t len = nul ? (size_t) (nul - data) : size, rest = nul ? size - len - 1 : 0;
    char *diff = malloc(len + 1), *edited = malloc(rest + 1); /* a step too far is seen */
    require(diff && edited);
    memcpy(diff, data, len);
    if (rest)
        memcpy(edited, nul + 1, rest);
    weft_review_text said;
    int r = weft__review_text_read((weft_bytes){edited, rest}, (weft_bytes){diff, len}, &counting, &said);
    require(r == 0 || (r == -EBADMSG && said.why && said.bad_line));
    require(said.count <= WEFT_REVIEW_COMMENTS);
    for (size_t i = 0; r == 0 && i < said.count; i++)
        look_for(&said.said[i], (weft_bytes){diff, len});
    weft__review_text_done(&said);
    read_back((weft_bytes){diff, len});
    require(live == 0);
    free(diff);
    free(edited);
    return 0;
}
