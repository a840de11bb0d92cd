/* A person's comments on lines of a diff, and the prompt that they become. Knows neither the engine nor who asks. */
#ifndef WEFT_REVIEW_H
#define WEFT_REVIEW_H

#include "diff_lines.h"

#define WEFT_REVIEW_COMMENTS 200      /* of one review: each is looked for in a diff */
#define WEFT_REVIEW_TEXT (64 * 1024)  /* bytes of one comment, and of what is said of all */
#define WEFT_REVIEW_AROUND 3          /* lines of the diff that are shown before and behind the one that it is about */
#define WEFT_REVIEW_LINE 400          /* bytes of each of these */
#define WEFT_REVIEW_PROMPT (8 * 1024) /* bytes of the task's own prompt, where its agent does not remember it */
#define WEFT_REVIEW_NUMBER 1000000000 /* no file has so many lines */

typedef struct weft_comment {
    const char *path; /* borrowed */
    const char *text;
    size_t line; /* from 1; 0: it is about the file as a whole */
    bool old;    /* a line of the file as it was before */
    bool found;
    weft_buf excerpt; /* of the diff, once it is found */
} weft_comment;

/* Find those that are not found yet. -ENOMEM: some may be. */
int weft__comments_find(weft_comment *comments, size_t count, weft_bytes diff, const weft_alloc *alloc);
void weft__comments_done(weft_comment *comments, size_t count, const weft_alloc *alloc);

typedef struct weft_review_prompt {
    const char *task;         /* its id */
    const char *about;        /* what it was to do, for an agent that does not remember; NULL: it does */
    const char *text;         /* what is said of all of it; NULL: nothing */
    const weft_comment *list; /* all of them found */
    size_t count;
} weft_review_prompt;
/* With a NUL behind it. -ENOMEM. */
int weft__review_write_prompt(weft_buf *out, const weft_alloc *alloc, const weft_review_prompt *review);

#endif
