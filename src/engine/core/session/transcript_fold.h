/* From a session's events to the items of its transcript, for transcript.c. It reads nothing and knows no session. */
#ifndef WEFT_TRANSCRIPT_FOLD_H
#define WEFT_TRANSCRIPT_FOLD_H

#include "engine_private.h"
#include "transcript.h"

typedef struct kept_item {
    weft_transcript_item pub;
    char task[ENGINE_ID];
    weft_buf text;
    char *members[WEFT_TOOL_MEMBERS];
} kept_item;

typedef struct transcript_fold {
    const weft_alloc *alloc;
    uint64_t from, to; /* the window: which items are kept */
    bool keep_last;    /* of too many bytes the last ones */
    const char *seek;  /* an id that is looked for; NULL: none */
    bool found;
    uint64_t found_at;
    uint64_t count; /* items so far */
    size_t bytes;   /* of those that are kept */
    kept_item **items;
    size_t kept, cap;
    uint64_t first;  /* the index of the first that is kept */
    bool full;       /* no more fit */
    bool opened;     /* the last item may go on: */
    weft_said said;  /* what it is, */
    size_t length;   /* how long, */
    kept_item *open; /* and where; NULL: it is not kept */
    bool planned;    /* the task has a plan */
    kept_item *plan;
    char task[ENGINE_ID]; /* of the last event */
} transcript_fold;

void weft__transcript_fold_init(transcript_fold *fold, const weft_alloc *alloc);
/* Forget the items and begin again, with another window. */
void weft__transcript_fold_reset(transcript_fold *fold);
/* -ENOMEM. */
int weft__transcript_fold_prompt(transcript_fold *fold, const weft_task *task);
int weft__transcript_fold_event(transcript_fold *fold, const weft_event *event, const weft_json *data);

#endif
