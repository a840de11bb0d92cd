/* The inside of the automation, for its own files.
 *
 *   automation.c         life, the parts, status, switches       automation_event.c   which event means which rule
 *   automation_fire.c    doing what a rule says, approvals       automation_past.c    what the journal remembers */
#ifndef WEFT_AUTOMATION_PRIVATE_H
#define WEFT_AUTOMATION_PRIVATE_H

#include "automation.h"
#include "rule.h"
#include "scheduler.h"
#include "watcher.h"
#include "webhook.h"

#define AUTOMATION_RULES 1000     /* what is beyond is said and left out */
#define AUTOMATION_DEPTH 3        /* of causes: beyond, rules do nothing */
#define AUTOMATION_RECENT 10      /* firings shown */
#define AUTOMATION_HELD 1000      /* events kept until the journal was read */
#define AUTOMATION_DEEP 256       /* tasks of ours, running or just ended, that file events are attributed to */
#define AUTOMATION_APPROVALS 10   /* open questions of one rule */
#define AUTOMATION_LINGER_MS 3000 /* after the end of a task its changes of files may still come */
#define AUTOMATION_SAID_MS 5000   /* between two words about the same rule doing nothing */

typedef struct known_rule {
    weft_rule *rule;
    bool enabled;
    int64_t rests_until; /* monotonic */
    int64_t quiet_until; /* likewise: that it does nothing has been said */
    size_t asking;       /* questions that are not stored yet */
    int64_t switched_ms; /* wall clock; 0: never */
} known_rule;

typedef struct execution {
    char rule[WEFT_RULE_ID + 1], type[32], status[24], task[32], error[WEFT_RULE_WHY];
    int64_t time_ms;
} execution;

/* A task that automation caused, for as long as changes of files may be its. */
typedef struct deep_task {
    char id[32];
    int64_t depth;
    int64_t until; /* monotonic; INT64_MAX: it runs */
} deep_task;

/* An event that came before the journal was read. */
typedef struct held_event {
    weft_link link;
    weft_event event;
    char text[];
} held_event;

struct weft_automation {
    weft_engine *engine;
    weft_loop *loop;
    const weft_alloc *alloc;
    void (*on_note)(void *ctx, const char *line);
    void *ctx;
    bool enabled, configured; /* now, and by the configuration */
    int64_t switched_ms;
    known_rule *rules;
    size_t rule_count;
    weft_doc *jobs; /* as configured; NULL: none */
    weft_event_listener listener;

    bool ready;          /* the journal was read */
    uint64_t past_until; /* gseq: what is up to here is the past */
    struct past *past;   /* being read */
    weft_link held;
    size_t held_count;
    bool said_held;     /* that there were too many */
    bool said_unstored; /* that changes of files cannot be stored, since one last could */

    weft_webhooks *webhooks;
    weft_scheduler *scheduler;
    int schedule_failed;
    weft_watcher *watcher;
    int watch_failed;
    char *last_fires;

    weft_link firings; /* under way */
    execution recent[AUTOMATION_RECENT];
    size_t recent_count; /* the oldest first */
    deep_task deep[AUTOMATION_DEEP];
    size_t deep_count;
};

void weft__automation_note(const weft_automation *automation, const char *format, ...) WEFT_PRINTF(2, 3);
/* A string of an event's; NULL: it is none, or longer. Ours are plain, and a plain string is read without memory. */
const char *weft__automation_text(const weft_json *data, const char *name, char *ret, size_t size);
known_rule *weft__automation_rule(const weft_automation *automation, const char *id); /* NULL: none that is valid or shown */

/* ---- automation.c: what events change ---- */

/* As the engine knows it: the events may be trimmed. */
void weft__automation_recall_switches(weft_automation *automation);
void weft__automation_switched(weft_automation *automation, const weft_event *event, const weft_json *data);
void weft__automation_executed(weft_automation *automation, const weft_event *event, const weft_json *data);
/* The journal was read: begin. */
void weft__automation_begin(weft_automation *automation);

/* ---- automation_event.c ---- */

void weft__automation_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data);
/* What was held. */
void weft__automation_release(weft_automation *automation);
/* The depth of a change of a file that is seen now. */
int64_t weft__automation_depth(weft_automation *automation);
/* Tasks of ours that were running before we were here. */
void weft__automation_find_deep(weft_automation *automation);

/* ---- automation_fire.c ---- */

/* The rule has matched: do it, ask, or say why not. */
void weft__automation_fire(weft_automation *automation, known_rule *known, const weft_rule_event *event, int64_t depth);
/* A word about it in the journal. task, question and error may be NULL. */
void weft__automation_record(weft_automation *automation, const char *rule, const char *type, const char *status,
                             const char *task, const char *question, const char *error);
/* The question is over: do what was approved, or say that it was not. */
void weft__automation_answered(weft_automation *automation, const weft_question *question);
/* Nobody waits any more. */
void weft__automation_orphan(weft_automation *automation);

/* ---- automation_past.c ---- */

/* Read the journal; weft__automation_begin() follows, later. */
int weft__automation_remember(weft_automation *automation);
void weft__automation_forget(weft_automation *automation);

#endif
