/* Rules: when this happens, do that. Events come from the watcher, the scheduler and the engine itself; what a rule does is
 * a task for an agent, a notice for people, or a POST to a URL. Every firing is an event of its own.
 *
 * A rule that is wrong is reported and kept as not valid, never dropped in silence. Loops end: events carry the depth of
 * their causes and rules do nothing beyond depth 3; a rule rests for its cooldown, 5 s unless it says otherwise. What a rule
 * leaves out for one of these reasons is recorded and noted. */
#ifndef WEFT_AUTOMATION_H
#define WEFT_AUTOMATION_H

#include "engine.h"

typedef struct weft_automation weft_automation;

typedef struct weft_automation_opts {
    bool enabled;                   /* until somebody switches it; the journal remembers that */
    const weft_json *rules;         /* array of rules as in the configuration; copied; NULL: none */
    const weft_json *jobs;          /* array of {"id","schedule","action"?}: cron.fired; copied; NULL: none */
    bool watch;                     /* the files beneath the engine's folder */
    const char *const *watch_paths; /* relative; NULL: all of it */
    const char *const *ignore;      /* names or patterns besides .git, .weft, .aiwg (unless watch_paths name them) and what
                                       .gitignore says; NULL: none */
    const weft_json *watches;       /* array of {"path","events"?,"extensions"?,"ignore"?}: other changes are no events;
                                       copied; NULL: all are */
    int64_t settle_ms;              /* changes of one path within it are one; 0: WEFT_WATCHER_SETTLE_MS */
    bool all_files;                 /* also what .gitignore says */
    bool aiwg;                      /* AIWG's manners: jobs in UTC, its names of sources and statuses, and a person's edits
                                       beside a running task start tasks too, up to a higher depth */
    /* Something a person should read: a rule that is wrong, watches that ran out. One line. May be NULL. */
    void (*on_note)(void *ctx, const char *line);
    void *ctx;
} weft_automation_opts;

/* After the engine is ready. A subsystem that cannot start is noted and told by weft__automation_health(); -ENOMEM. */
int weft__automation_new(weft_engine *engine, const weft_automation_opts *opts, weft_automation **ret);
weft_automation *weft__automation_free(weft_automation *automation);

/* automation.status as AIWG has it: {enabled, ruleCount, rules, recentExecutions}. Owned text. */
int weft__automation_status(weft_automation *automation, char **ret, size_t *ret_len);
/* Switch everything (rule NULL) or one rule, durably. -ENOENT no such rule; -EINVAL it is not valid. done may be NULL. */
int weft__automation_switch(weft_automation *automation, const char *rule, bool enabled, void (*done)(void *ctx, int r),
                            void *ctx);

/* The parts, for daemon.status. */
typedef struct weft_automation_health {
    bool enabled;
    int failed; /* a negative errno: automation itself could not start */
    bool watching;
    int watch_failed; /* a negative errno: it was wanted and does not */
    bool polling;     /* watches ran out */
    uint64_t watch_paths, watch_events;
    const char *watch_list; /* JSON: the paths of opts.watches, as they were given; NULL: there are none. Borrowed */
    bool scheduling;
    int schedule_failed;
    uint64_t jobs;
    const char *last_fires; /* JSON: {"job":"ISO time"}; borrowed */
} weft_automation_health;
weft_automation_health weft__automation_health(const weft_automation *automation);

#endif
