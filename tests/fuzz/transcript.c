/* What an agent may say, folded into a transcript: each line is an event of a session, the first byte of the input is the
 * window. Whatever it says, everything is counted, a window is a piece of the whole, elements of it are JSON, and no memory
 * is left behind. */
#include <stdint.h>
#include <string.h>

#include "cdev.h"
#include "fuzz_memory.h"
#include "transcript_fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_LINES 64

static void fold_line(transcript_fold *fold, const char *line, size_t len, uint64_t gseq) {
    weft_doc *doc;
    weft_event event = {.type = len && *line == ' ' ? "session.output" : "session.update", .gseq = gseq, .seq = gseq};
    if (weft_doc_parse(line, len, &counting, &doc) < 0)
        return;
    require(weft__transcript_fold_event(fold, &event, weft_doc_root(doc)) == 0);
    weft_doc_free(doc);
}

static void fold_all(transcript_fold *fold, const char *text, size_t size) {
    uint64_t gseq = 0;
    for (const char *line = text, *end = text + size; line < end && gseq < MOST_LINES;) {
        const char *stop = memchr(line, '\n', (size_t) (end - line));
        stop = stop ? stop : end;
        fold_line(fold, line, (size_t) (stop - line), ++gseq);
        line = stop + 1;
    }
}

/* As session/elements writes them. */
static void check_elements(const transcript_fold *fold) {
    weft_buf out = {0};
    weft_doc *doc;
    size_t count = 0;
    for (size_t i = 0; i < fold->kept; i++)
        require(weft__cdev_write_elements(&counting, &fold->items[i]->pub, &out, &count) == 0);
    require(weft__buf_put(&out, &counting, "]", 1) == 0);
    if (weft__buf_len(&out) > 1) {
        *weft__buf_head(&out) = '[';
        require(weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), &counting, &doc) == 0);
        require(weft_count(weft_doc_root(doc)) == count && count >= fold->kept);
        weft_doc_free(doc);
    }
    weft__buf_done(&out, &counting);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    transcript_fold all, part;
    if (size < 1)
        return 0;
    weft__transcript_fold_init(&all, &counting);
    weft__transcript_fold_init(&part, &counting);
    all.to = UINT64_MAX;
    part.from = data[0] % 8;
    part.to = part.from + data[0] / 32;
    part.keep_last = data[0] & 8;
    fold_all(&all, (const char *) data + 1, size - 1);
    fold_all(&part, (const char *) data + 1, size - 1);
    require(all.kept == all.count && part.count == all.count);
    require(part.kept <= part.to - part.from);
    for (size_t i = 0; i < part.kept; i++) {
        require(part.first + i < all.kept);
        require(strcmp(part.items[i]->pub.id, all.items[part.first + i]->pub.id) == 0);
        require(part.items[i]->pub.text.len == all.items[part.first + i]->pub.text.len);
    }
    check_elements(&all);
    weft__transcript_fold_reset(&all);
    weft__transcript_fold_reset(&part);
    require(live == 0);
    return 0;
}
