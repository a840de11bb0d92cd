/* Cleaning and cutting what a program writes. A line is cleaned as it is copied; of a line that is being cut nothing is
 * copied, so that a gigabyte without a newline costs one look for a newline. */
#include "output.h"

#include <errno.h>
#include <stdio.h>

#include "utf8_stream.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define REPLACEMENT_LEN 3
#define MARK "\xE2\x80\xA6 (%zu bytes cut)%s" /* an ellipsis */
#define MARK_ROOM 64

static void hand_over_text(weft_output *output, size_t len) {
    if (len)
        output->on_text(output->ctx, (weft_bytes){weft__buf_head(&output->held), len});
    weft__buf_take(&output->held, output->alloc, len);
    output->whole = 0;
}

/* Room was made before. false: the line is full. */
static bool put_in_line(weft_output *output, const char *data, size_t n) {
    if (n > WEFT_OUTPUT_LINE - output->line) {
        output->cutting = true;
        return false;
    }
    if (n)
        memcpy(weft__buf_tail(&output->held), data, n);
    output->held.end += n;
    output->line += n;
    return true;
}

/* ---- cleaning ---- */

static size_t ascii_run(const char *data, size_t n) {
    size_t run = 0;
    while (run < n && (unsigned char) (data[run] - 1) < 0x7F)
        run++;
    return run;
}

/* How many bytes at data can be the beginning of a character; *ret_more: they are all there is, and more may follow. They
 * are not a whole character. */
static size_t broken_run(const char *data, size_t n, bool *ret_more) {
    weft_utf8 state = {0};
    size_t run = 0;
    while (run < n && run < WEFT_UTF8_MAX && weft__utf8_feed(&state, data + run, 1))
        run++;
    *ret_more = run == n && run > 0 && !weft__utf8_whole(&state);
    return run ? run : 1;
}

/* One character that is not plain ASCII. The bytes it took; 0: its end has not come, or the line is full. */
static size_t clean_character(weft_output *output, const char *data, size_t n, bool *ret_more) {
    size_t len = *data ? weft__utf8_len(data, n) : 0;
    *ret_more = false;
    if (len)
        return put_in_line(output, data, len) ? len : 0;
    len = *data ? broken_run(data, n, ret_more) : 1;
    return !*ret_more && put_in_line(output, REPLACEMENT, REPLACEMENT_LEN) ? len : 0;
}

/* Bytes of one line, without its newline. How many were used: fewer when the line is full or ends within a character. */
static size_t clean_line(weft_output *output, const char *data, size_t n, bool *ret_more) {
    size_t used = 0;
    *ret_more = false;
    while (used < n && !output->cutting) {
        size_t run = ascii_run(data + used, n - used), room = WEFT_OUTPUT_LINE - output->line;
        if (run) {
            put_in_line(output, data + used, run < room ? run : room);
            output->cutting = run > room;
            used += run < room ? run : room;
            continue;
        }
        size_t one = clean_character(output, data + used, n - used, ret_more);
        if (!one)
            break;
        used += one;
    }
    return used;
}

/* ---- lines ---- */

static int end_output_line(weft_output *output, const char *newline) {
    char mark[MARK_ROOM];
    const char *text = newline;
    if (output->cutting) {
        output->lossy = true;
        snprintf(mark, sizeof mark, MARK, output->cut, newline);
        text = mark;
    }
    int r = weft__buf_put(&output->held, output->alloc, text, strlen(text));
    output->whole = weft__buf_len(&output->held);
    output->line = output->cut = 0;
    output->cutting = false;
    return r;
}

/* A piece of a line, behind which comes its newline, the end of what is there, or a character's other half. */
static int put_piece(weft_output *output, const char *data, size_t n, bool line_ends) {
    size_t used = 0, room = WEFT_OUTPUT_LINE - output->line;
    bool more = false;
    if (!output->cutting) {
        size_t most = n < room / REPLACEMENT_LEN ? n * REPLACEMENT_LEN : room;
        int r = weft__buf_reserve(&output->held, output->alloc, most);
        if (r < 0)
            return r;
        used = clean_line(output, data, n, &more);
    }
    if (output->cutting) {
        output->cut += n - used;
        return 0;
    }
    if (more && !line_ends) {
        output->split_len = n - used;
        memcpy(output->split, data + used, n - used);
    } else if (more)
        put_piece(output, REPLACEMENT, REPLACEMENT_LEN, true);
    return 0;
}

/* The character that the last bytes began, with what follows. How many of the new bytes it took; <0: no memory. */
static ssize_t join_split_character(weft_output *output, const char *data, size_t n) {
    char both[2 * WEFT_UTF8_MAX];
    size_t before = output->split_len, added = n < WEFT_UTF8_MAX ? n : WEFT_UTF8_MAX;
    bool more = false;
    memcpy(both, output->split, before);
    memcpy(both + before, data, added);
    size_t len = weft__utf8_len(both, before + added);
    bool whole = len > 0;
    if (!whole)
        len = broken_run(both, before + added, &more);
    output->split_len = more ? len : 0;
    if (more)
        memcpy(output->split, both, len);
    int r = more ? 0 : put_piece(output, whole ? both : REPLACEMENT, whole ? len : REPLACEMENT_LEN, true);
    return r < 0 ? r : (ssize_t) (len - before);
}

int weft__output_feed(weft_output *output, const char *data, size_t n) {
    int r = 0;
    if (n && output->split_len) {
        ssize_t taken = join_split_character(output, data, n);
        if (taken < 0)
            return (int) taken;
        data += taken;
        n -= (size_t) taken;
    }
    while (n && r == 0) {
        const char *newline = memchr(data, '\n', n);
        size_t len = newline ? (size_t) (newline - data) : n;
        r = put_piece(output, data, len, newline != NULL);
        if (r == 0 && newline)
            r = end_output_line(output, "\n");
        data += len + (newline != NULL);
        n -= len + (newline != NULL);
    }
    /* What is cut goes on for long: the part that is kept need not wait in memory. */
    hand_over_text(output, output->cutting ? weft__buf_len(&output->held) : output->whole);
    return r;
}

void weft__output_flush(weft_output *output) {
    hand_over_text(output, weft__buf_len(&output->held));
}

int weft__output_end(weft_output *output) {
    int r = 0;
    if (output->split_len)
        r = put_piece(output, REPLACEMENT, REPLACEMENT_LEN, true);
    output->split_len = 0;
    if (r == 0 && output->cutting)
        r = end_output_line(output, "");
    weft__output_flush(output);
    return r;
}

void weft__output_done(weft_output *output) {
    weft__buf_done(&output->held, output->alloc);
}
