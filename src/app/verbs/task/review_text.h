/* The text in which a person reviews a diff: the diff itself, with what is to be said below the lines that it is about, each
 * line of that behind a ">". Lines that begin with "#" say how; they are passed over. No line of a diff begins with either.
 *
 * Hunks and files may be taken out as a whole; any other change of the diff is refused, because the person may expect that
 * it is made in the file. */
#ifndef WEFT_REVIEW_TEXT_H
#define WEFT_REVIEW_TEXT_H

#include "arena.h"
#include "diff_lines.h"

#define WEFT_REVIEW_FILE (64u << 20) /* bytes of such a text */

typedef struct weft_said {
    const char *path;
    const char *text;
    size_t line; /* 0: about the file as a whole */
    bool old;
} weft_said;

typedef struct weft_review_text {
    weft_arena arena;
    weft_said *said;
    size_t count, room;
    const char *text; /* about all of it; NULL: nothing */
    size_t bad_line;  /* of the text that was read, from 1, */
    const char *why;  /* and what is wrong with it */
} weft_review_text;

/* Append what a person is to edit: how to, and the diff as it may be shown. -ENOMEM. */
int weft__review_text_write(weft_buf *out, const weft_alloc *alloc, const char *task, weft_bytes diff);
/* What was said in it, about which lines of the same diff. End with weft__review_text_done() in any case. -EBADMSG: bad_line
 * and why say what is wrong; -ENOMEM. */
int weft__review_text_read(weft_bytes edited, weft_bytes diff, const weft_alloc *alloc, weft_review_text *ret);
void weft__review_text_done(weft_review_text *review);

#endif
