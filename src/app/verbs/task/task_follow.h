/* Staying with one task until it has ended: what its agent says goes to standard output as it comes, how it is stands in the
 * bottom line, its questions are put to the person at the terminal. One connection may follow one task after another, as a
 * conversation does. */
#ifndef WEFT_TASK_FOLLOW_H
#define WEFT_TASK_FOLLOW_H

#include "event_follow.h"
#include "form_text.h"
#include "stdin_lines.h"

#define WEFT_TASK_ID 64

typedef struct weft_task_follow weft_task_follow;

/* What becomes of the agent's questions. */
typedef enum weft_on_question {
    WEFT_QUESTION_ASK,   /* the person at the terminal; where there is none, it is said how to answer */
    WEFT_QUESTION_DENY,  /* no, at once */
    WEFT_QUESTION_ALLOW, /* yes, once; a form, which nobody fills in, is declined */
    WEFT_QUESTION_FAIL,  /* the task is cancelled */
} weft_on_question;
/* By its name on the command line; NULL is "ask". */
weft_on_question weft__task_on_question(const char *name);

typedef struct weft_task_follow_opts {
    const char *url;
    void *ctx;
    bool only_watches; /* a signal leaves the task alone */
    weft_on_question on_question;
    int64_t limit_ms; /* how long to stay at most; 0: until the end of the task */
    /* Connected: submit, or watch. */
    void (*on_begin)(weft_task_follow *follow);
    /* The task has ended with this status, which has been explained. */
    void (*on_done)(weft_task_follow *follow, weft_exit how);
    /* What was submitted was refused with this status, which has been explained; NULL: the end. */
    void (*on_refused)(weft_task_follow *follow, weft_exit how);
    /* A person is asked something that is answered by a line, and then no longer. NULL: nothing else reads what they type.
     */
    void (*on_asking)(weft_task_follow *follow, bool asks);
    /* A signal while there is no task; NULL: the end. */
    void (*on_idle_signal)(weft_task_follow *follow);
    /* The last thing, before the loop goes. NULL: nothing. */
    void (*on_close)(weft_task_follow *follow);
} weft_task_follow_opts;

struct weft_task_follow {
    weft_app *app;
    const weft_task_follow_opts *opts;
    weft_event_follow events;
    weft_terminal terminal;
    weft_stdin_lines stdin_lines;
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
    bool cancelling; /* the hub was asked to cancel it, and has not refused */

    char changed[200]; /* what it changed, from an event before its last; "": nothing, or nobody knows */
    char reason[64];   /* why it failed, from its last event; a task itself does not say */
    char plan[128];

    /* its questions */
    char question[WEFT_TASK_ID]; /* the one that is before the person; "": none */
    weft_doc *open;              /* the same, whole */
    weft_form_filling filling;   /* its form, while that is filled in; schema absent: it is not */
    char shown[1024];            /* ids of those that were shown, a blank behind each */
    char ours[WEFT_TASK_ID];     /* the one we have answered last */
};

/* Connect, and run until weft__task_follow_end(). */
weft_exit weft__task_follow_run(weft_task_follow *follow, weft_app *app, const weft_task_follow_opts *opts);
void weft__task_follow_end(weft_task_follow *follow, weft_exit status);

/* Submit by task.submit or chat.send, and stay with what comes of it. params is written now. */
void weft__task_follow_submit(weft_task_follow *follow, const char *method, weft_val params);
/* Stay with a task that is there already, from its beginning. */
void weft__task_follow_watch(weft_task_follow *follow, const char *task);

/* Ask the hub to cancel the task; its end comes as an event. why: a line that is shown. */
void weft__task_follow_cancel(weft_task_follow *follow, const char *why);
/* A line of the person's, or of whatever standard input is. */
void weft__task_follow_want(weft_task_follow *follow, weft_on_line *on_line, void *ctx);
/* A key that makes sending the same again safe. */
#define WEFT_KEY_LEN 33
void weft__task_follow_key(char ret[WEFT_KEY_LEN]);

/* ---- task_follow_output.c ---- */

/* What the agent says: session.output and session.update. */
void weft__task_follow_output(weft_task_follow *follow, const char *type, const weft_json *data);

/* ---- task_follow_questions.c ---- */

/* See which questions of the task are open, and put the first one that was not shown before the person. */
void weft__task_follow_questions(weft_task_follow *follow);
/* One is over. */
void weft__task_follow_resolved(weft_task_follow *follow, const char *type, const weft_json *data);
void weft__task_follow_forget(weft_task_follow *follow);

#endif
