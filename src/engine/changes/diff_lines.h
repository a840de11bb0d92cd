/* Reading a diff as git prints it, line by line: of which file each line is, and where it stands there on either side.
 * Reading allocates nothing, and any text can be read: what does not look like a diff is a line of a head. */
#ifndef WEFT_DIFF_LINES_H
#define WEFT_DIFF_LINES_H

#include "buf.h"

#define WEFT_DIFF_PATH 4096 /* room for a path; one that is longer has no name here */

typedef enum weft_diff_kind {
    WEFT_DIFF_FILE,    /* "diff --git ...": the first line of a file */
    WEFT_DIFF_HEAD,    /* what follows of its head, also "Binary files ... differ" */
    WEFT_DIFF_HUNK,    /* "@@ -1,3 +1,4 @@" */
    WEFT_DIFF_SAME,    /* a line that is on both sides */
    WEFT_DIFF_ADDED,   /* on the new one */
    WEFT_DIFF_REMOVED, /* on the old one */
    WEFT_DIFF_NOTE,    /* "\ No newline at end of file" */
} weft_diff_kind;

typedef struct weft_diff_line {
    weft_diff_kind kind;
    weft_bytes text;    /* the whole line, without its end */
    size_t before, now; /* its number on the old and the new side, from 1; 0: it is not there */
} weft_diff_line;

/* Zero but for at and end. A copy reads on from the same place. */
typedef struct weft_diff_reader {
    const char *at, *end;
    weft_bytes old_path, new_path; /* of the file, as git wrote them; empty: it is not on that side. Known from its first
                                      line on */
    bool bare;                     /* they have no prefix a/ and b/ */
    size_t before, now;            /* the numbers of the next lines, */
    size_t before_left, now_left;  /* and how many of them the hunk still has */
} weft_diff_reader;

/* false: that was all. */
bool weft__diff_next(weft_diff_reader *reader, weft_diff_line *ret);

/* The file's path on one side, without quotes and prefix. false: it is not there, or its path is too long. */
bool weft__diff_path(const weft_diff_reader *reader, bool old, char ret[WEFT_DIFF_PATH]);
/* The path by which people know the file: the new one, or the old one of a file that was deleted. */
bool weft__diff_file(const weft_diff_reader *reader, char ret[WEFT_DIFF_PATH]);

/* Append a line as it may be shown: tabs stay, what steers a terminal or hides becomes an escape (visible.h), what is no
 * UTF-8 becomes U+FFFD, and a carriage return at the end is left out. At most so many bytes of it are read; " ..." says that
 * there is more. -ENOMEM. */
int weft__diff_show(weft_buf *out, const weft_alloc *alloc, weft_bytes line, size_t most);

#endif
