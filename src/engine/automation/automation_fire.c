/* Doing what a rule says: a task, a notice, a POST; or asking first. Whatever comes of it is an event of its own.
 *
 * The action is rendered once, to a text. That text is what a person sees in the question, what the journal keeps and what
 * is read again to act: nothing is filled in after somebody has said yes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "automation_private.h"
#include "field.h"
#include "secret.h"
#include "sum.h"
#include "utf8.h"

#define MAX_TITLED 200 /* bytes of a prompt, a message or a URL in a question's title; its detail has all of it */

/* One firing under way. The automation may go before its completion comes. */
typedef struct firing {
    weft_link link;
    weft_automation *automation; /* NULL: it has gone */
    const weft_alloc *alloc;
    known_rule *known;
    bool webhook;                                        /* its completion goes with the automation */
    char rule[WEFT_RULE_ID + 1], type[32], question[32]; /* question "": nobody was asked */
} firing;

/* ---- telling ---- */

void weft__automation_record(weft_automation *automation, const char *rule, const char *type, const char *status,
                             const char *task, const char *question, const char *error) {
    int r = weft__engine_append(automation->engine, WEFT_STREAM_HUB, "rule.fired",
                                WEFT_OBJ({"ruleId", weft_str(rule)}, {"eventType", weft_str(type)},
                                         {"status", weft_str(status)}, {"taskId", weft_str_or_none(task)},
                                         {"questionId", weft_str_or_none(question)}, {"error", weft_str_or_none(error)}),
                                NULL, NULL);
    if (r < 0 && r != -ESHUTDOWN)
        weft__automation_note(automation, "rule %s: what it did cannot be stored: %s", rule, weft_strerror(r));
}

static const char *why_not_fired(int r) {
    switch (r) {
    case -ENOENT:
        return "there is no such agent";
    case -ENOBUFS:
        return "too much is waiting already";
    case -ESHUTDOWN:
        return "the daemon is stopping";
    case -EMSGSIZE:
        return "what it says is too long";
    default:
        return weft_strerror(r);
    }
}

static firing *free_firing(firing *f) {
    weft__list_remove(&f->link);
    return weft__free(f->alloc, f);
}

/* It is over: record it and forget it. */
static void conclude_firing(firing *f, int r, const char *task, const char *why) {
    const char *asked = *f->question ? f->question : NULL;
    if (f->automation && r != -ECANCELED)
        weft__automation_record(f->automation, f->rule, f->type,
                                r < 0   ? "failed"
                                : asked ? "approved"
                                        : "triggered",
                                task, asked, r < 0 ? (why && *why ? why : why_not_fired(r)) : NULL);
    free_firing(f);
}

static firing *new_firing(weft_automation *automation, const char *rule, const char *type, const char *question) {
    firing *f = weft__zalloc(automation->alloc, sizeof *f);
    if (!f) {
        weft__automation_note(automation, "rule %s: out of memory, it does nothing", rule);
        return NULL;
    }
    f->automation = automation;
    f->alloc = automation->alloc;
    snprintf(f->rule, sizeof f->rule, "%s", rule);
    snprintf(f->type, sizeof f->type, "%s", type);
    snprintf(f->question, sizeof f->question, "%s", question);
    weft__list_push(&automation->firings, &f->link);
    return f;
}

void weft__automation_orphan(weft_automation *automation) {
    while (!weft__list_empty(&automation->firings)) {
        firing *f = WEFT_CONTAINER(automation->firings.next, firing, link);
        weft__list_remove(&f->link);
        f->automation = NULL;
        if (f->webhook)
            weft__free(f->alloc, f);
    }
}

/* ---- the three actions ---- */

static void on_task(void *ctx, int r, const weft_task *task) {
    conclude_firing(ctx, r, task ? task->id : NULL, NULL);
}

static int member_text(const weft_json *object, const char *name, const char **ret) {
    weft_json value = weft_get(object, name);
    return weft__field_text(&value, ret);
}

/* What was approved is submitted under the question's name, so that doing it again after a crash does nothing. */
static int start_task(firing *f, const weft_json *action, int64_t depth) {
    weft_automation *automation = f->automation;
    char *metadata, key[48];
    const char *prompt, *agent;
    size_t len;
    /* Without memory its agent's name would look like none, and none is the one that others chose. */
    int r = member_text(action, "prompt", &prompt);
    if (r >= 0)
        r = member_text(action, "agent", &agent);
    if (r < 0)
        return r;
    r = weft_to_text(
        WEFT_OBJ({"source", weft_str("automation")}, {"ruleId", weft_str(f->rule)}, {"eventType", weft_str(f->type)}),
        automation->alloc, &metadata, &len);
    if (r < 0)
        return r;
    snprintf(key, sizeof key, "approval/%s", f->question);
    weft_task_spec spec = {.prompt = prompt,
                           .agent = agent,
                           .priority = weft_get_int(action, "priority", 0),
                           .metadata = metadata,
                           .key = *f->question ? key : NULL,
                           .depth = depth + 1};
    r = weft__task_submit(automation->engine, &spec, on_task, f);
    weft_text_free(metadata, automation->alloc);
    return r;
}

static void on_notice(void *ctx, int r) {
    conclude_firing(ctx, r, NULL, NULL);
}

static int show_notice(firing *f, const weft_json *action) {
    weft_json message = weft_get(action, "message");
    return weft__engine_append(f->automation->engine, WEFT_STREAM_HUB, "notice",
                               WEFT_OBJ({"message", message.text ? weft_copy(&message) : weft_str("")},
                                        {"ruleId", weft_str(f->rule)}, {"level", weft_str("info")}),
                               on_notice, f);
}

static void on_webhook(void *ctx, int r, const char *why) {
    conclude_firing(ctx, r, NULL, why);
}

static int send_webhook(firing *f, const weft_json *action, char *why) {
    f->webhook = true;
    return weft__automation_send(f->automation, action, on_webhook, f, why);
}

static void carry_out_action(firing *f, const weft_json *action, int64_t depth) {
    const char *type;
    char why[WEFT_SECRET_WHY] = "";
    int r = member_text(action, "type", &type);
    if (r < 0 || !type)
        r = r < 0 ? r : -EINVAL;
    else if (strcmp(type, weft__rule_kinds[WEFT_RULE_AGENT]) == 0)
        r = start_task(f, action, depth);
    else if (strcmp(type, weft__rule_kinds[WEFT_RULE_NOTIFY]) == 0)
        r = show_notice(f, action);
    else if (strcmp(type, weft__rule_kinds[WEFT_RULE_WEBHOOK]) == 0)
        r = send_webhook(f, action, why);
    else
        r = -EINVAL;
    if (r < 0)
        conclude_firing(f, r, NULL, why);
}

/* ---- asking ---- */

static void on_asked(void *ctx, int r, const weft_question *question) {
    firing *f = ctx;
    if (f->automation) {
        f->known->asking--;
        if (r >= 0)
            weft__automation_record(f->automation, f->rule, f->type, "pendingApproval", NULL, question->id, NULL);
        else if (r != -ECANCELED)
            weft__automation_record(f->automation, f->rule, f->type, "failed", NULL, NULL, why_not_fired(r));
    }
    free_firing(f);
}

static int write_title(const weft_rule *rule, const weft_json *action, char *ret, size_t size) {
    static const char *const does[] = {"start a task", "show a notice", "call"};
    static const char *const names[] = {"prompt", "message", "url"};
    weft_json value = weft_get(action, names[rule->kind]);
    weft_bytes what = {"", 0};
    if (weft_bytes_of(&value, &what) == -ENOMEM)
        return -ENOMEM;
    int shown = (int) weft__utf8_fit(what.data, what.len, MAX_TITLED);
    snprintf(ret, size, "rule %s: %s: %.*s", rule->id, does[rule->kind], shown, what.data);
    return 0;
}

/* How many it has open; SIZE_MAX: the same already. */
static size_t count_open(const weft_automation *automation, const known_rule *known, weft_bytes action) {
    size_t count = known->asking;
    const weft_engine *engine = automation->engine;
    for (const weft_question *q = weft__question_first(engine, false); q; q = weft__question_next(engine, q, false)) {
        if (!q->rule || strcmp(q->rule, known->rule->id) != 0)
            continue;
        if (memmem(q->detail, strlen(q->detail), action.data, action.len))
            return SIZE_MAX;
        count++;
    }
    return count;
}

static void ask_approval(weft_automation *automation, known_rule *known, const char *type, weft_bytes text,
                         const weft_json *action, int64_t depth) {
    char title[512];
    const char *id = known->rule->id;
    size_t open = count_open(automation, known, text);
    if (open == SIZE_MAX)
        return;
    if (open >= AUTOMATION_APPROVALS) {
        weft__automation_record(automation, id, type, "skipped", NULL, NULL, "too many of its questions wait for an answer");
        return;
    }
    firing *f = new_firing(automation, id, type, "");
    if (!f)
        return;
    f->known = known;
    int r = write_title(known->rule, action, title, sizeof title);
    if (r < 0) {
        conclude_firing(f, r, NULL, NULL);
        return;
    }
    weft_question_spec spec = {
        .rule = id,
        .kind = "approval",
        .title = title,
        .options =
            WEFT_ARR(WEFT_OBJ({"id", weft_str("allow")}, {"name", weft_str("Allow")}, {"kind", weft_str("allow_once")}),
                     WEFT_OBJ({"id", weft_str("deny")}, {"name", weft_str("Deny")}, {"kind", weft_str("reject_once")})),
        .detail = WEFT_OBJ({"ruleId", weft_str(id)}, {"eventType", weft_str(type)}, {"depth", weft_int(depth)},
                           {"action", weft_raw(text.data, text.len)}),
    };
    known->asking++;
    r = weft__question_ask(automation->engine, &spec, on_asked, NULL, f);
    if (r < 0) {
        known->asking--;
        conclude_firing(f, r, NULL, NULL);
    }
}

static void do_approved(weft_automation *automation, const weft_question *question, const weft_json *detail) {
    const char *type = weft_get_str(detail, "eventType", "");
    weft_json action = weft_get(detail, "action");
    if (!weft__automation_rule(automation, question->rule)) {
        weft__automation_record(automation, question->rule, type, "failed", NULL, question->id,
                                "there is no such rule any more");
        return;
    }
    firing *f = new_firing(automation, question->rule, type, question->id);
    if (f)
        carry_out_action(f, &action, weft_get_int(detail, "depth", 0));
}

void weft__automation_answered(weft_automation *automation, const weft_question *question) {
    weft_doc *doc;
    if (!question->rule || strcmp(question->kind, "approval") != 0 || question->state == WEFT_QUESTION_OPEN ||
        weft_doc_parse(question->detail, strlen(question->detail), automation->alloc, &doc) < 0)
        return;
    const weft_json *detail = weft_doc_root(doc);
    bool answered = question->state == WEFT_QUESTION_ANSWERED;
    if (answered && question->option && strcmp(question->option, "allow") == 0)
        do_approved(automation, question, detail);
    else
        weft__automation_record(automation, question->rule, weft_get_str(detail, "eventType", ""), "denied", NULL,
                                question->id, answered ? NULL : "nobody answered");
    weft_doc_free(doc);
}

/* ---- firing ---- */

static void render_and_act(weft_automation *automation, known_rule *known, const weft_rule_event *event, int64_t depth) {
    const weft_rule *rule = known->rule;
    char *text = NULL;
    size_t len = 0;
    weft_doc *doc = NULL;
    int r = weft__rule_render(rule, event, &text, &len);
    if (r == 0)
        r = weft_doc_parse(text, len, automation->alloc, &doc);
    firing *f = NULL;
    if (r < 0)
        weft__automation_record(automation, rule->id, event->type, "failed", NULL, NULL, why_not_fired(r));
    else if (rule->approval)
        ask_approval(automation, known, event->type, (weft_bytes){text, len}, weft_doc_root(doc), depth);
    else if ((f = new_firing(automation, rule->id, event->type, "")))
        carry_out_action(f, weft_doc_root(doc), depth);
    weft_doc_free(doc);
    weft_text_free(text, automation->alloc);
}

/* ---- not firing: never in silence ---- */

/* A loop of rules ends here. AIWG's daemon has none of this, so there each one is told; elsewhere once in some seconds. */
static void skip_deep(weft_automation *automation, known_rule *known, const weft_rule_event *event, int64_t depth) {
    int64_t now = weft_loop_now(automation->loop);
    if (automation->aiwg || now >= known->quiet_until) {
        weft__automation_record(automation, known->rule->id, event->type, "skipped", NULL, NULL, "depth");
        weft__automation_note(automation, "rule %s: skipped for %s, which follows from %lld tasks of rules", known->rule->id,
                              event->type, (long long) depth);
    }
    known->quiet_until = now + AUTOMATION_SAID_MS;
}

/* The first is recorded, the others are counted until it fires again: a folder full of files would fill the journal. */
static void skip_resting(weft_automation *automation, known_rule *known, const weft_rule_event *event) {
    const weft_rule *rule = known->rule;
    if (known->rested++ > 0)
        return;
    weft__automation_record(automation, rule->id, event->type, "skipped", NULL, NULL, "cooldownMs");
    weft__automation_note(automation, "rule %s: skipped for %s, because it does not fire again within %lld ms", rule->id,
                          event->type, (long long) rule->cooldown_ms);
}

static void say_rested(weft_automation *automation, known_rule *known) {
    if (known->rested > 1)
        weft__automation_note(automation, "rule %s: %llu events were skipped, because it had fired shortly before",
                              known->rule->id, (unsigned long long) known->rested);
    known->rested = 0;
}

void weft__automation_fire(weft_automation *automation, known_rule *known, const weft_rule_event *event, int64_t depth) {
    int64_t now = weft_loop_now(automation->loop);
    if (depth >= (automation->aiwg ? AUTOMATION_AIWG_DEPTH : AUTOMATION_DEPTH)) {
        skip_deep(automation, known, event, depth);
        return;
    }
    if (now < known->rests_until) {
        skip_resting(automation, known, event);
        return;
    }
    say_rested(automation, known);
    known->rests_until = weft__add_ms(now, known->rule->cooldown_ms);
    render_and_act(automation, known, event, depth);
}
