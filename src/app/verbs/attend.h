/* Staying with one task until it has ended: what its agent says goes to standard output as it comes, how it is stands in the
 * bottom line, its questions are put to the person at the terminal. One connection may attend one task after another, as a
 * conversation does. */
#ifndef WEFT_ATTEND_H
#define WEFT_ATTEND_H

#include "live.h"
#include "person.h"

#define WEFT_TASK_ID 64

typedef struct weft_attend weft_attend;

typedef struct weft_attend_opts {
    const char *url;
    void *ctx;
    bool only_watches; /* a signal leaves the task alone */
    int64_t limit_ms;  /* how long to stay at most; 0: until the end of the task */
    /* Connected: submit, or watch. */
    void (*on_begin)(weft_attend *attend);
    /* The task has ended with this status, which has been explained. */
    void (*on_done)(weft_attend *attend, weft_exit how);
    /* What was submitted was refused with this status, which has been explained; NULL: the end. */
    void (*on_refused)(weft_attend *attend, weft_exit how);
    /* A signal while there is no task; NULL: the end. */
    void (*on_idle_signal)(weft_attend *attend);
} weft_attend_opts;

struct weft_attend {
    weft_app *app;
    const weft_attend_opts *opts;
    weft_live live;
    weft_talk talk;
    weft_person person;
    weft_timer tick;  /* the bottom line */
    weft_timer leave; /* after Ctrl-C: no longer than this */
    bool begun;

    /* what is being submitted */
    const char *method;
    char *params; /* owned, JSON: it may have to be sent again */
    size_t params_len;
    uint64_t before; /* the position before it was submitted */

    /* the task */
    char task[WEFT_TASK_ID]; /* "": none */
    char session[256];
    bool running;
    bool ended;  /* its last event has come; with --json the whole of it is still awaited */
    bool gapped; /* its last event may have been missed */
    int64_t begun_ns;
    int64_t place; /* in the queue, from 1; 0: unknown */
    bool asking_place;
    int signals;
    int64_t signalled_ns; /* the last one */
    bool cancelling;      /* the hub was asked to cancel it, and has not refused */

    char reason[64]; /* why it failed, from its last event; a task itself does not say */
    char plan[128];

    /* its questions */
    char question[WEFT_TASK_ID]; /* the one that is before the person; "": none */
    weft_doc *open;              /* the same, whole */
    char shown[1024];            /* ids of those that were shown, a blank behind each */
    char ours[WEFT_TASK_ID];     /* the one we have answered last */
};

/* Connect, and run until weft__attend_end(). */
weft_exit weft__attend_run(weft_attend *attend, weft_app *app, const weft_attend_opts *opts);
void weft__attend_end(weft_attend *attend, weft_exit status);

/* Submit by task.submit or chat.send, and stay with what comes of it. params is written now. */
void weft__attend_submit(weft_attend *attend, const char *method, weft_val params);
/* Stay with a task that is there already, from its beginning. */
void weft__attend_watch(weft_attend *attend, const char *task);

/* A line of the person's, or of whatever standard input is. */
void weft__attend_want(weft_attend *attend, weft_on_line *on_line, void *ctx);
/* A key that makes sending the same again safe. */
#define WEFT_KEY_LEN 33
void weft__attend_key(char ret[WEFT_KEY_LEN]);

/* ---- attend_said.c ---- */

/* What the agent says: session.output and session.update. */
void weft__attend_said(weft_attend *attend, const char *type, const weft_json *data);

/* ---- attend_asked.c ---- */

/* See which questions of the task are open, and put the first one that was not shown before the person. */
void weft__attend_look(weft_attend *attend);
/* One is over. */
void weft__attend_resolved(weft_attend *attend, const char *type, const weft_json *data);
void weft__attend_forget(weft_attend *attend);

#endif
