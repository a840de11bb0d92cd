/* Fuzzing what a subscription gets from others: the file with its position, and the pieces of a value. A position that is
 * accepted is written as the same text again; pieces never make more than the limit, and are whole at the last one only. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "fuzz_memory.h"
#include "position_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 64

static void check_position_text(const char *text, size_t len) {
    weft_position position, again;
    char *written;
    size_t written_len;
    int r = weft__position_parse(text, len, "items", "{}", NULL, &position);
    require(r == 0 || r == -EBADMSG || r == -EEXIST);
    if (r < 0)
        return;
    require(weft__position_write("items", "{}", &position, NULL, &written, &written_len) == 0);
    require(written_len < WEFT_POSITION_TEXT);
    require(weft__position_parse(written, written_len, "items", "{}", NULL, &again) == 0);
    require(again.seq == position.seq && strcmp(again.journal, position.journal) == 0);
    weft_text_free(written, NULL);
}

static void check_piece(weft_chunks *chunks, const char *text, size_t len) {
    weft_doc *doc;
    if (weft_doc_parse(text, len, NULL, &doc) < 0)
        return;
    int r = weft__chunks_add(chunks, weft_doc_root(doc), MOST, NULL);
    require(r == 0 || r == 1 || r == -EPROTO || r == -EMSGSIZE);
    require(weft__buf_len(&chunks->text) <= MOST);
    require(r < 0 || (r == 1) == (chunks->part == chunks->total));
    if (r != 0)
        weft__chunks_drop(chunks, NULL);
    weft_doc_free(doc);
}

/* Each line is a piece; the whole is a file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data, *end = text + size;
    weft_chunks chunks = {.part = 0};
    check_position_text(text, size);
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t) (end - text));
        size_t len = (size_t) ((line_end ? line_end : end) - text);
        check_piece(&chunks, text, len);
        text += len + (line_end != NULL);
    }
    weft__chunks_drop(&chunks, NULL);
    return 0;
}
