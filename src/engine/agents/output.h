/* What a program writes, made into text that can be kept and shown: valid UTF-8 without NUL, in whole lines where possible,
 * and no line without end.
 *
 * Bytes that are not UTF-8 and NULs become U+FFFD; a character that was split between two reads does not. Control characters
 * stay: what a terminal must not see is for those who write to one. Of a line that is too long, the rest is counted and
 * dropped. There is no descriptor and no clock in here. */
#ifndef WEFT_OUTPUT_H
#define WEFT_OUTPUT_H

#include "buf.h"
#include "utf8.h"

/* Longer lines are data that somebody forgot to redirect. A stream holds one line, and what it is being fed. */
#define WEFT_OUTPUT_LINE ((size_t) 256 * 1024)

typedef struct weft_output {
    const weft_alloc *alloc;
    void (*on_text)(void *ctx, weft_bytes text); /* borrowed text; may not call back into this */
    void *ctx;
    weft_buf held; /* cleaned and not yet handed over */
    size_t whole;  /* so many bytes of it are whole lines */
    size_t line;   /* length of the line so far, also of what was handed over */
    size_t cut;    /* bytes dropped from its end */
    bool lossy;    /* some line was cut */
    bool cutting;
    char split[WEFT_UTF8_MAX]; /* the begun character at the end of what came */
    size_t split_len;
} weft_output;

/* Everything else is zero at first. */
static inline void weft__output_init(weft_output *output, const weft_alloc *alloc, void (*on_text)(void *, weft_bytes),
                                     void *ctx) {
    *output = (weft_output){.alloc = alloc, .on_text = on_text, .ctx = ctx};
}
/* More bytes came. All lines that are whole now are handed over at once, what is behind them is held. -ENOMEM: some of it is
 * lost. */
int weft__output_feed(weft_output *output, const char *data, size_t n);
/* Is there a beginning of a line that flush would hand over? */
static inline bool weft__output_holds(const weft_output *output) {
    return weft__buf_len(&output->held) > 0;
}
/* The program is silent in the middle of a line: hand over what there is. */
void weft__output_flush(weft_output *output);
/* No more will come. */
int weft__output_end(weft_output *output);
void weft__output_done(weft_output *output);

#endif
