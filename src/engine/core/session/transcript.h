/* What was said in a session: prompts, what its agent answered and thought, the tools it used, its plan. It is folded from
 * the session's stream, as far as that is kept, and from the tasks that are remembered. The pieces of one message are one
 * item, and so are a tool call and its updates.
 *
 * A reader gets a window of it. Whoever also hears of events live names the gseq from which it does: the transcript ends
 * exactly there, so nothing is missing and nothing comes twice. */
#ifndef WEFT_TRANSCRIPT_H
#define WEFT_TRANSCRIPT_H

#include "engine.h"

#define WEFT_TRANSCRIPT_ITEMS 500                 /* of one window */
#define WEFT_TRANSCRIPT_BYTES ((size_t) 8 << 20)  /* likewise, about: an answer holds it, escaped and twice */
#define WEFT_TRANSCRIPT_TEXT ((size_t) 256 << 10) /* of an agent's text in one item; what is longer is cut */
#define WEFT_TRANSCRIPT_PIECE ((size_t) 64 << 10) /* a text of this length is not added to: another item begins */
#define WEFT_TRANSCRIPT_ID 48                     /* room for an item's id */
#define WEFT_TRANSCRIPT_READS 4                   /* at a time, for the memory that each takes; */
#define WEFT_TRANSCRIPT_WAITING 256               /* others wait */

typedef enum weft_said {
    WEFT_SAID_PROMPT,
    WEFT_SAID_TEXT,
    WEFT_SAID_THOUGHT,
    WEFT_SAID_OUTPUT, /* standard output of a program that is no ACP agent */
    WEFT_SAID_ERRORS, /* its standard error */
    WEFT_SAID_TOOL,
    WEFT_SAID_PLAN,
} weft_said;

/* What is known of a tool call, or of a plan: JSON texts. */
typedef enum weft_tool_member {
    WEFT_TOOL_CALL_ID,
    WEFT_TOOL_TITLE,
    WEFT_TOOL_KIND,
    WEFT_TOOL_STATUS,
    WEFT_TOOL_INPUT,
    WEFT_TOOL_OUTPUT,
    WEFT_TOOL_CONTENT,
    WEFT_TOOL_LOCATIONS,
    WEFT_PLAN_ENTRIES,
    WEFT_TOOL_MEMBERS,
} weft_tool_member;

typedef struct weft_transcript_item {
    weft_said said;
    char id[WEFT_TRANSCRIPT_ID]; /* the same whenever it is read */
    const char *task;
    int64_t time_ms;                       /* of its first piece */
    uint64_t gseq;                         /* of its last piece */
    weft_bytes text;                       /* of a prompt, text, thought or output */
    weft_bytes members[WEFT_TOOL_MEMBERS]; /* data NULL: unknown */
    bool cut;                              /* there was more than is kept here */
} weft_transcript_item;

typedef struct weft_transcript {
    const weft_transcript_item *const *items; /* in the order in which they were said */
    size_t count;
    uint64_t first; /* how many items there are before these */
    uint64_t total; /* in all */
    uint64_t until; /* gseq: everything up to here was looked at */
} weft_transcript;

typedef enum weft_window {
    WEFT_WINDOW_FIRST,  /* from the beginning */
    WEFT_WINDOW_LAST,   /* up to the end */
    WEFT_WINDOW_BEFORE, /* up to the item before this id */
    WEFT_WINDOW_AFTER,  /* from the item after this id */
} weft_window;

typedef struct weft_transcript_spec {
    const char *session;
    weft_window window;
    const char *id;  /* for before and after */
    uint64_t offset; /* items that are passed over, counted from where the window begins */
    size_t limit;    /* 0: WEFT_TRANSCRIPT_ITEMS, and never more */
    uint64_t until;  /* gseq; 0: everything there is now */
} weft_transcript_spec;

/* r 0: the transcript, borrowed. -ENOENT: there is no item with that id; -ECANCELED; the store's error; then it is NULL. */
typedef void weft_transcript_done(void *ctx, int r, const weft_transcript *transcript);
/* Everything is copied. -ESRCH no such session, -EBUSY too many are read already, -EINVAL the id is too long, -ENOMEM. */
int weft__transcript_read(weft_engine *engine, const weft_transcript_spec *spec, weft_transcript_done *done, void *ctx);

#endif
