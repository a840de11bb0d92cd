/* The inside of the automation, for its own files.
 *
 *   automation.c         life, the parts, status, switches       automation_event.c   which event means which rule
 *   automation_fire.c    doing what a rule says, approvals       automation_past.c    what was before
 *   automation_send.c    sending a webhook, with its secrets */
#ifndef WEFT_AUTOMATION_PRIVATE_H
#define WEFT_AUTOMATION_PRIVATE_H

#include "automation.h"
#include "rule.h"
#include "scheduler.h"
#include "watch_filter.h"
#include "watcher.h"
#include "webhook.h"

#define AUTOMATION_RULES 1000 /* what is beyond is said and left out */
#define AUTOMATION_DEPTH 3    /* of causes: beyond, rules do nothing */
#define AUTOMATION_AIWG_DEPTH                                                                                               \
    25                            /* the same with AIWG's manners, which have no limit: who edits beside a task is no loop  \
                                   */
#define AUTOMATION_RECENT 10      /* firings shown */
#define AUTOMATION_DEEP 256       /* tasks of ours, running or just ended, that file events are attributed to */
#define AUTOMATION_APPROVALS 10   /* open questions of one rule */
#define AUTOMATION_LINGER_MS 3000 /* after the end of a task its changes of files may still come */
#define AUTOMATION_SAID_MS 5000   /* between two words about the same rule doing nothing */

typedef struct known_rule {
    weft_rule *rule;
    bool enabled;
    int64_t rests_until; /* monotonic */
    int64_t quiet_until; /* likewise: that it does nothing has been said */
    uint64_t rested;     /* events that came while it rested, since it fired */
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

struct weft_automation {
    weft_engine *engine;
    weft_loop *loop;
    const weft_alloc *alloc;
    void (*on_note)(void *ctx, const char *line);
    void *ctx;
    bool enabled, configured; /* now, and by the configuration */
    bool aiwg;
    int64_t switched_ms;
    known_rule *rules;
    size_t rule_count;
    weft_doc *jobs; /* as configured; NULL: none */
    weft_event_listener listener;

    bool said_unstored; /* that changes of files cannot be stored, since one last could */

    weft_webhooks *webhooks;
    weft_scheduler *scheduler;
    int schedule_failed;
    weft_watcher *watcher;
    weft_watch_filter *filter; /* NULL: every change is an event */
    uint64_t watch_events;     /* those that were */
    int watch_failed;
    char *last_fires, *watch_list;

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

void weft__automation_set_switch(void *ctx, const char *rule, bool enabled, int64_t time_ms);
void weft__automation_switched(weft_automation *automation, const weft_event *event, const weft_json *data);
void weft__automation_executed(weft_automation *automation, int64_t time_ms, const weft_json *data);

/* ---- automation_event.c ---- */

void weft__automation_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data);
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

/* ---- automation_send.c ---- */

/* Send what a webhook has rendered; its secrets are put in here. As weft__webhook_send(); -ENOKEY with a sentence in why
 * (WEFT_SECRET_WHY bytes) when one is not there. */
int weft__automation_send(weft_automation *automation, const weft_json *action, weft_webhook_done *done, void *ctx,
                          char *why);

/* ---- automation_past.c ---- */

/* As the engine knows it: the events may be trimmed. */
int weft__automation_recall(weft_automation *automation);
/* Act upon the approvals of which nothing came yet. */
void weft__automation_catch_up(weft_automation *automation);

#endif
