/* One rule: what it waits for, what must hold, what it does. It knows no engine and no clock; it says whether an event is
 * meant and what the action's texts become.
 *
 * A rule that is wrong is a rule with an error: it is shown and never matches. */
#ifndef WEFT_RULE_H
#define WEFT_RULE_H

#include <weft/json.h>

#include "condition.h"
#include "cron.h"
#include "glob.h"

#define WEFT_RULE_AT 48                   /* bytes of a pointer into a rule: "/conditions/31/operator" */
#define WEFT_RULE_ID 128                  /* bytes of an id: it goes into log lines and titles */
#define WEFT_RULE_CONDITIONS 32           /* of one rule */
#define WEFT_RULE_COOLDOWN_MS 5000        /* unless it says otherwise */
#define WEFT_RULE_MAX_TEXT (64 * 1024)    /* bytes of a notice, or of a webhook's message */
#define WEFT_RULE_MAX_URL (8 * 1024)      /* bytes of a URL with its holes filled */
#define WEFT_RULE_MAX_HEADERS 32          /* of a webhook */
#define WEFT_RULE_MAX_HEADER 2048         /* bytes of the value of one with its holes filled: more is cut */
#define WEFT_RULE_MAX_PROMPT (256 * 1024) /* bytes of a prompt with its holes filled */

typedef enum weft_rule_kind { WEFT_RULE_AGENT, WEFT_RULE_NOTIFY, WEFT_RULE_WEBHOOK, WEFT_RULE_KINDS } weft_rule_kind;
extern const char *const weft__rule_kinds[WEFT_RULE_KINDS]; /* "agent", ... */

typedef struct weft_rule {
    const weft_alloc *alloc;
    weft_doc *doc;             /* everything below points into it */
    const char *id;            /* "" when it has none */
    weft_json trigger, action; /* as configured */
    weft_json shown;           /* the trigger as people wrote it, where trigger is a translation of it */
    weft_doc *hidden;          /* the action without what its headers are set to; NULL: it has none */
    bool aiwg;                 /* its texts are filled in as AIWG does */

    const char *type;     /* NULL: any; may end with "*" */
    const char *source;   /* NULL: any */
    weft_glob *pattern;   /* NULL: any */
    const char *schedule; /* of a job of its own; NULL: none */
    weft_cron cron;       /* that */
    weft_condition *conditions[WEFT_RULE_CONDITIONS];
    size_t condition_count;

    weft_rule_kind kind;
    const char *text;    /* prompt, message or url, with holes */
    const char *message; /* webhook: goes with it; NULL: none */
    const char *method;  /* webhook; NULL: POST */
    weft_json headers;   /* webhook: an object of texts with holes; absent: none */
    weft_json body;      /* webhook: a text with holes, or JSON with holes in its strings; absent: ours */
    bool secrets;        /* webhook: some of these have secrets */
    const char *agent;   /* NULL: the default */
    int64_t priority;

    bool enabled; /* as configured */
    int64_t cooldown_ms;
    bool approval;
    char error[WEFT_RULE_WHY]; /* "": it is valid */
    char at[WEFT_RULE_AT];     /* what the error is about, as a JSON pointer into the rule */
} weft_rule;

/* An event as rules see it: json is {type, source, timestamp, payload, depth}. */
typedef struct weft_rule_event {
    const char *type;
    const char *source;
    const weft_json *json;
} weft_rule_event;

/* The value is copied. A rule that is wrong comes with its error; -ENOMEM. */
int weft__rule_new(const weft_json *value, const weft_alloc *alloc, weft_rule **ret);
weft_rule *weft__rule_free(weft_rule *rule);

/* Is it about events of this type at all? Cheap, for the many that it is not about. */
bool weft__rule_listens(const weft_rule *rule, const char *type, const char *source);
/* 1 it is meant, 0 it is not, -EOVERFLOW a regular expression was given up, -ENOMEM. */
int weft__rule_matches(const weft_rule *rule, const weft_rule_event *event);
/* Can it ever be meant? 1 perhaps; 0 never, for the reason in why, which is about the part of the rule at this pointer: its
 * conditions contradict each other, or want what no event has that it waits for. -ENOMEM. For a rule without an error. */
int weft__rule_sense(const weft_rule *rule, char why[WEFT_RULE_WHY], char at[WEFT_RULE_AT]);
/* The types of events there are, with the source of each. A row with a NULL type ends it. */
typedef struct weft_rule_type {
    const char *type, *source;
} weft_rule_type;
extern const weft_rule_type weft__rule_types[];
/* The source of such events; NULL: rules do not wait for any. */
const char *weft__rule_type_source(const char *type);
/* What rules, conditions and texts call a source; aiwg: in AIWG's words, "watch" and "schedule". */
const char *weft__rule_source(const char *source, bool aiwg);
/* The name of its own job: "rule:ID". */
void weft__rule_job(const weft_rule *rule, char ret[WEFT_RULE_ID + 8]);

/* What it will do: the action with its holes filled, as a JSON text {type, prompt|message|url, agent?, priority?, method?,
 * headers?, body?, secrets?}. Owned. This text is what a person approves and what is done; of secrets it has the names.
 * -EMSGSIZE. */
int weft__rule_render(const weft_rule *rule, const weft_rule_event *event, char **ret, size_t *ret_len);

#endif
