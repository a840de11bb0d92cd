/* The automation: rules, the watcher and the scheduler put together, and what people see of it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "automation_private.h"
#include "buf.h"
#include "stamp.h"
#include "write.h"

/* ---- helpers ---- */

void weft__automation_note(const weft_automation *automation, const char *format, ...) {
    char line[512];
    va_list args;
    if (!automation->on_note)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    automation->on_note(automation->ctx, line);
}

const char *weft__automation_text(const weft_json *data, const char *name, char *ret, size_t size) {
    weft_json value = weft_get(data, name);
    weft_bytes text;
    if (weft_bytes_of(&value, &text) < 0 || text.len >= size)
        return NULL;
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return ret;
}

known_rule *weft__automation_rule(const weft_automation *automation, const char *id) {
    for (size_t i = 0; i < automation->rule_count; i++)
        if (*id && strcmp(automation->rules[i].rule->id, id) == 0)
            return &automation->rules[i];
    return NULL;
}

/* ---- what events change ---- */

void weft__automation_set_switch(void *ctx, const char *rule, bool enabled, int64_t time_ms) {
    weft_automation *automation = ctx;
    known_rule *known = rule ? weft__automation_rule(automation, rule) : NULL;
    if (known && !*known->rule->error) {
        known->enabled = enabled;
        known->switched_ms = time_ms;
    }
    if (!rule) {
        automation->enabled = enabled;
        automation->switched_ms = time_ms;
    }
}

void weft__automation_switched(weft_automation *automation, const weft_event *event, const weft_json *data) {
    char room[WEFT_RULE_ID + 1];
    const char *id = weft__automation_text(data, "ruleId", room, sizeof room);
    weft_json named = weft_get(data, "ruleId");
    bool all = weft_typeof(&named) != WEFT_STRING;
    if (id || all)
        weft__automation_set_switch(automation, id, weft_get_bool(data, "enabled", true), event->time_ms);
}

/* As much of it as there is room for. */
static void copy_member_text(const weft_json *data, const char *name, char *ret, size_t size) {
    weft_json value = weft_get(data, name);
    weft_bytes text;
    bool is = weft_bytes_of(&value, &text) >= 0;
    snprintf(ret, size, "%.*s", is ? (int) text.len : 0, is ? text.data : "");
}

void weft__automation_executed(weft_automation *automation, int64_t time_ms, const weft_json *data) {
    if (automation->recent_count == AUTOMATION_RECENT) {
        memmove(automation->recent, automation->recent + 1, (AUTOMATION_RECENT - 1) * sizeof automation->recent[0]);
        automation->recent_count--;
    }
    execution *is = &automation->recent[automation->recent_count++];
    copy_member_text(data, "ruleId", is->rule, sizeof is->rule);
    copy_member_text(data, "eventType", is->type, sizeof is->type);
    copy_member_text(data, "status", is->status, sizeof is->status);
    copy_member_text(data, "taskId", is->task, sizeof is->task);
    copy_member_text(data, "error", is->error, sizeof is->error);
    is->time_ms = time_ms;
}

/* ---- rules ---- */

static int add_rule(weft_automation *automation, const weft_json *value) {
    weft_rule *rule;
    int r = weft__rule_new(value, automation->alloc, &rule);
    if (r < 0)
        return r;
    if (!*rule->error && weft__automation_rule(automation, rule->id))
        snprintf(rule->error, sizeof rule->error, "there is another rule of this name");
    if (*rule->error)
        weft__automation_note(automation, "rule %s is not valid: %s", *rule->id ? rule->id : "without a name", rule->error);
    automation->rules[automation->rule_count++] = (known_rule){.rule = rule, .enabled = rule->enabled && !*rule->error};
    return 0;
}

static int add_rules(weft_automation *automation, const weft_json *rules) {
    size_t count = rules ? weft_count(rules) : 0;
    int r = 0;
    if (count > AUTOMATION_RULES) {
        weft__automation_note(automation, "there are %zu rules; only the first %d count", count, AUTOMATION_RULES);
        count = AUTOMATION_RULES;
    }
    automation->rules = count ? weft__zalloc(automation->alloc, count * sizeof *automation->rules) : NULL;
    if (count && !automation->rules)
        return -ENOMEM;
    weft_iter it = rules ? weft_iterate(rules) : (weft_iter){0};
    while (r == 0 && automation->rule_count < count && weft_next(&it))
        r = add_rule(automation, &it.value);
    return r;
}

/* ---- the scheduler ---- */

static int64_t wall_ms(void *ctx) {
    return weft__engine_now(((weft_automation *) ctx)->engine);
}

static void write_last_fires(weft_automation *automation) {
    weft_buf out = {0};
    const weft_alloc *alloc = automation->alloc;
    const char *job;
    char iso[WEFT_STAMP];
    int64_t ms;
    int r = weft__write_raw(&out, alloc, "{", 1);
    bool first = true;
    for (size_t i = 0; i < weft__scheduler_jobs(automation->scheduler); i++) {
        if (!weft__scheduler_last(automation->scheduler, i, &job, &ms))
            continue;
        if (r == 0 && !first)
            r = weft__write_raw(&out, alloc, ",", 1);
        if (r == 0)
            r = weft__write_str(&out, alloc, job, strlen(job));
        if (r == 0)
            r = weft__write_raw(&out, alloc, ":", 1);
        weft__stamp(ms, iso);
        if (r == 0)
            r = weft__write_str(&out, alloc, iso, strlen(iso));
        first = false;
    }
    if (r == 0)
        r = weft__write_raw(&out, alloc, "}", 1);
    char *text = r == 0 ? weft__strndup(alloc, weft__buf_head(&out), weft__buf_len(&out)) : NULL;
    weft__buf_done(&out, alloc);
    if (!text)
        return;
    weft__free(alloc, automation->last_fires);
    automation->last_fires = text;
}

/* What the configuration adds to a job; it is only passed on. */
static weft_json action_of(const weft_automation *automation, const char *job) {
    weft_iter it = automation->jobs ? weft_iterate(weft_doc_root(automation->jobs)) : (weft_iter){0};
    while (automation->jobs && weft_next(&it))
        if (strcmp(weft_get_str(&it.value, "id", ""), job) == 0)
            return weft_get(&it.value, "action");
    return (weft_json){0};
}

static void on_fire(void *ctx, const char *job, const char *schedule) {
    weft_automation *automation = ctx;
    weft_json action = action_of(automation, job);
    write_last_fires(automation);
    int r = weft__engine_append(automation->engine, WEFT_STREAM_CRON, "cron.fired",
                                WEFT_OBJ({"job", weft_str(job)}, {"schedule", weft_str(schedule)},
                                         {"action", action.text ? weft_copy(&action) : weft_none()}),
                                NULL, NULL);
    if (r < 0 && r != -ESHUTDOWN)
        weft__automation_note(automation, "job %s: its event cannot be stored: %s", job, weft_strerror(r));
}

static int add_job(weft_automation *automation, const char *id, const char *schedule, const weft_cron *cron) {
    weft_cron when = *cron;
    if (automation->aiwg)
        weft__cron_as_aiwg(&when);
    int r = weft__scheduler_add(automation->scheduler, id, schedule, &when);
    if (r == -EEXIST || r == -E2BIG)
        weft__automation_note(automation, "job %s is left out: %s", id,
                              r == -EEXIST ? "there is another of this name" : "there are too many");
    return r == -EEXIST || r == -E2BIG ? 0 : r;
}

static int add_configured_job(weft_automation *automation, const weft_json *value) {
    const char *id = weft_get_str(value, "id", ""), *schedule = weft_get_str(value, "schedule", ""), *why;
    weft_cron cron;
    if (!*id || weft__cron_parse(schedule, &cron, &why) < 0) {
        weft__automation_note(automation, "job %s is not valid: %s", *id ? id : "without a name",
                              *id ? why : "it has no id");
        return 0;
    }
    return add_job(automation, id, schedule, &cron);
}

static int start_scheduler(weft_automation *automation, const weft_json *jobs) {
    weft_scheduler_opts opts = {
        .loop = automation->loop, .alloc = automation->alloc, .now_ms = wall_ms, .on_fire = on_fire, .ctx = automation};
    int r = weft__scheduler_new(&opts, &automation->scheduler);
    if (r == 0 && jobs)
        r = weft_doc_keep(jobs, automation->alloc, &automation->jobs);
    weft_iter it = jobs ? weft_iterate(jobs) : (weft_iter){0};
    while (r == 0 && jobs && weft_next(&it))
        r = add_configured_job(automation, &it.value);
    for (size_t i = 0; r == 0 && i < automation->rule_count; i++) {
        const weft_rule *rule = automation->rules[i].rule;
        char job[WEFT_RULE_ID + 8];
        weft__rule_job(rule, job);
        if (rule->schedule && !*rule->error)
            r = add_job(automation, job, rule->schedule, &rule->cron);
    }
    return r;
}

/* ---- the watcher ---- */

static void on_change(void *ctx, const weft_change *change) {
    static const char *const types[] = {"file.create", "file.modify", "file.delete"};
    weft_automation *automation = ctx;
    if (!weft__watch_filter_wants(automation->filter, change->kind, change->path))
        return;
    automation->watch_events++;
    int64_t depth = weft__automation_depth(automation);
    int r = weft__engine_append(automation->engine, WEFT_STREAM_FILES, types[change->kind],
                                WEFT_OBJ({"path", weft_str(change->path)},
                                         {"size", change->kind == WEFT_FILE_DELETE ? weft_none() : weft_uint(change->size)},
                                         {"depth", depth ? weft_int(depth) : weft_none()}),
                                NULL, NULL);
    if (r < 0 && r != -ESHUTDOWN && !automation->said_unstored)
        weft__automation_note(automation, "%s: that it has changed cannot be stored: %s", change->path, weft_strerror(r));
    automation->said_unstored = r < 0;
}

static void on_burst(void *ctx, uint64_t count) {
    weft_automation *automation = ctx;
    char message[128];
    snprintf(message, sizeof message, "%llu files have changed at once; they are not told one by one",
             (unsigned long long) count);
    weft__engine_append(automation->engine, WEFT_STREAM_HUB, "notice",
                        WEFT_OBJ({"message", weft_str(message)}, {"level", weft_str("info")}), NULL, NULL);
    weft__automation_note(automation, "watching files: %s", message);
}

static void on_watch_note(void *ctx, const char *line) {
    weft__automation_note(ctx, "watching files: %s", line);
}

/* A row without a path stands for the project, and is not named. */
static int write_watch_list(weft_automation *automation, const weft_json *rows) {
    weft_buf out = {0};
    const weft_alloc *alloc = automation->alloc;
    bool first = true;
    int r = weft__write_raw(&out, alloc, "[", 1);
    for (weft_iter it = weft_iterate(rows); r == 0 && weft_next(&it);) {
        weft_json path = weft_get(&it.value, "path");
        weft_val value = weft_copy(&path);
        if (weft_typeof(&path) != WEFT_STRING)
            continue;
        if (!first)
            r = weft__write_raw(&out, alloc, ",", 1);
        if (r == 0)
            r = weft__write_val(&out, alloc, &value);
        first = false;
    }
    if (r == 0)
        r = weft__write_raw(&out, alloc, "]", 1);
    if (r == 0 && !(automation->watch_list = weft__strndup(alloc, weft__buf_head(&out), weft__buf_len(&out))))
        r = -ENOMEM;
    weft__buf_done(&out, alloc);
    return r;
}

/* "/etc", "../other", "a/../../other": from anywhere or above. */
static bool leads_out(const char *path) {
    int depth = 0;
    if (*path == '/')
        return true;
    for (; *path && depth >= 0; path += strspn(path, "/")) {
        size_t len = strcspn(path, "/");
        if (len == 2 && strncmp(path, "..", 2) == 0)
            depth--;
        else if (len > 1 || *path != '.')
            depth++;
        path += len;
    }
    return depth < 0;
}

static void note_outside(const weft_automation *automation, const char *const *paths) {
    for (; paths && *paths; paths++)
        if (leads_out(*paths))
            weft__automation_note(automation, "%.200s is not watched: only files of this folder are", *paths);
}

/* What cannot be watched is said, and everything else works. */
static int start_watcher(weft_automation *automation, const weft_automation_opts *opts) {
    weft_watcher_opts watch = {.loop = automation->loop,
                               .alloc = automation->alloc,
                               .folder = weft__engine_folder(automation->engine),
                               .paths = opts->watch_paths,
                               .ignore = opts->ignore,
                               .settle_ms = opts->settle_ms,
                               .all_files = opts->all_files,
                               .on_change = on_change,
                               .on_burst = on_burst,
                               .on_note = on_watch_note,
                               .ctx = automation};
    int r = opts->watches ? weft__watch_filter_new(opts->watches, automation->alloc, &automation->filter) : 0;
    if (r >= 0 && opts->watches)
        r = write_watch_list(automation, opts->watches);
    if (r >= 0 && opts->watch)
        note_outside(automation, opts->watch_paths);
    if (r >= 0 && opts->watch)
        r = weft__watcher_new(&watch, &automation->watcher);
    if (r < 0) {
        automation->watch_failed = r;
        weft__automation_note(automation, "files cannot be watched: %s", weft_strerror(r));
    }
    return r == -ENOMEM ? r : 0;
}

/* ---- life ---- */

static int start_rules(weft_automation *automation, const weft_automation_opts *opts) {
    int r = add_rules(automation, opts->rules);
    if (r == 0)
        r = weft__webhooks_new(&(weft_webhook_opts){.loop = automation->loop, .alloc = automation->alloc},
                               &automation->webhooks);
    if (r == 0)
        r = start_scheduler(automation, opts->jobs);
    if (r == 0)
        r = start_watcher(automation, opts);
    if (r < 0)
        return r;
    r = weft__automation_recall(automation);
    if (r < 0)
        return r;
    weft__automation_find_deep(automation);
    weft__engine_listen(automation->engine, &automation->listener);
    weft__automation_catch_up(automation);
    return 0;
}

int weft__automation_new(weft_engine *engine, const weft_automation_opts *opts, weft_automation **ret) {
    weft_automation *automation = weft__zalloc(weft__engine_alloc(engine), sizeof *automation);
    if (!automation)
        return -ENOMEM;
    automation->engine = engine;
    automation->loop = weft__engine_loop(engine);
    automation->alloc = weft__engine_alloc(engine);
    automation->on_note = opts->on_note;
    automation->ctx = opts->ctx;
    automation->enabled = automation->configured = opts->enabled;
    automation->aiwg = opts->aiwg;
    automation->listener.on_event = weft__automation_hear;
    weft__list_init(&automation->listener.link);
    weft__list_init(&automation->firings);
    int r = start_rules(automation, opts);
    if (r < 0) {
        weft__automation_free(automation);
        return r;
    }
    *ret = automation;
    return 0;
}

weft_automation *weft__automation_free(weft_automation *automation) {
    if (!automation)
        return NULL;
    weft__engine_unlisten(&automation->listener);
    weft__automation_orphan(automation);
    weft__webhooks_free(automation->webhooks);
    weft__scheduler_free(automation->scheduler);
    weft__watcher_free(automation->watcher);
    for (size_t i = 0; i < automation->rule_count; i++)
        weft__rule_free(automation->rules[i].rule);
    weft__free(automation->alloc, automation->rules);
    weft__free(automation->alloc, automation->last_fires);
    weft__free(automation->alloc, automation->watch_list);
    weft_doc_free(automation->jobs);
    weft__watch_filter_free(automation->filter);
    return weft__free(automation->alloc, automation);
}

/* ---- what people see ---- */

enum { RULE_MEMBERS = 8, EXECUTION_MEMBERS = 6 };

/* What the configuration says, where somebody has switched it since. */
static weft_val configured_if_switched(int64_t switched_ms, bool configured) {
    return switched_ms ? weft_bool(configured) : weft_none();
}

static weft_val show_rule(const known_rule *known, weft_member *members) {
    const weft_rule *rule = known->rule;
    weft_member shown[RULE_MEMBERS] = {{"id", weft_str(rule->id)},
                                       {"trigger", weft_copy(&rule->shown)},
                                       {"action", weft_copy(rule->hidden ? weft_doc_root(rule->hidden) : &rule->action)},
                                       {"enabled", weft_bool(known->enabled)},
                                       {"cooldownMs", weft_int(rule->cooldown_ms)},
                                       {"requiresApproval", weft_bool(rule->approval)},
                                       {"error", *rule->error ? weft_str(rule->error) : weft_none()},
                                       {"configured", configured_if_switched(known->switched_ms, rule->enabled)}};
    memcpy(members, shown, sizeof shown);
    return weft_obj(members, RULE_MEMBERS);
}

/* A firing in AIWG's words, which say what was done. What it has no word for is called as here. */
static const char *aiwg_status(const weft_automation *automation, const execution *is) {
    static const char *const done[WEFT_RULE_KINDS] = {"submitted", "notified", "webhook_sent"};
    const known_rule *known = weft__automation_rule(automation, is->rule);
    if (strcmp(is->status, "failed") == 0)
        return "error";
    if (strcmp(is->status, "triggered") != 0 && strcmp(is->status, "approved") != 0)
        return is->status;
    return known && !*known->rule->error ? done[known->rule->kind] : *is->task ? done[WEFT_RULE_AGENT] : is->status;
}

static weft_val show_execution(const weft_automation *automation, const execution *is, char iso[WEFT_STAMP],
                               weft_member *members) {
    const char *status = automation->aiwg ? aiwg_status(automation, is) : is->status;
    weft_member shown[EXECUTION_MEMBERS] = {{"ruleId", weft_str(is->rule)},
                                            {"eventType", weft_str(is->type)},
                                            {"status", weft_str(status)},
                                            {"timestamp", weft_str(weft__stamp(is->time_ms, iso))},
                                            {"taskId", *is->task ? weft_str(is->task) : weft_none()},
                                            {"error", *is->error ? weft_str(is->error) : weft_none()}};
    memcpy(members, shown, sizeof shown);
    return weft_obj(members, EXECUTION_MEMBERS);
}

int weft__automation_status(weft_automation *automation, char **ret, size_t *ret_len) {
    size_t count = automation->rule_count;
    weft_val recent[AUTOMATION_RECENT];
    weft_member members[AUTOMATION_RECENT][EXECUTION_MEMBERS];
    char iso[AUTOMATION_RECENT][WEFT_STAMP];
    char *room = weft__alloc(automation->alloc, (count + 1) * (sizeof(weft_val) + RULE_MEMBERS * sizeof(weft_member)));
    if (!room)
        return -ENOMEM;
    weft_member *rule_members = (weft_member *) (void *) room;
    weft_val *rules = (weft_val *) (void *) (room + (count + 1) * RULE_MEMBERS * sizeof(weft_member));
    for (size_t i = 0; i < count; i++)
        rules[i] = show_rule(&automation->rules[i], rule_members + i * RULE_MEMBERS);
    for (size_t i = 0; i < automation->recent_count; i++)
        recent[i] = show_execution(automation, &automation->recent[i], iso[i], members[i]);
    int r = weft_to_text(WEFT_OBJ({"enabled", weft_bool(automation->enabled)}, {"ruleCount", weft_uint(count)},
                                  {"configured", configured_if_switched(automation->switched_ms, automation->configured)},
                                  {"rules", weft_arr(rules, count)},
                                  {"recentExecutions", weft_arr(recent, automation->recent_count)}),
                         automation->alloc, ret, ret_len);
    weft__free(automation->alloc, room);
    return r;
}

int weft__automation_switch(weft_automation *automation, const char *rule, bool enabled, void (*done)(void *ctx, int r),
                            void *ctx) {
    const known_rule *known = rule ? weft__automation_rule(automation, rule) : NULL;
    if (rule && !known)
        return -ENOENT;
    if (known && *known->rule->error)
        return -EINVAL;
    return weft__engine_append(automation->engine, WEFT_STREAM_HUB, "automation.switched",
                               WEFT_OBJ({"enabled", weft_bool(enabled)}, {"ruleId", weft_str_or_none(rule)}), done, ctx);
}

weft_automation_health weft__automation_health(const weft_automation *automation) {
    weft_watcher_stats watch = automation->watcher ? weft__watcher_stats(automation->watcher) : (weft_watcher_stats){0};
    size_t jobs = weft__scheduler_jobs(automation->scheduler);
    return (weft_automation_health){
        .enabled = automation->enabled,
        .watching = automation->watcher && !watch.failed,
        .watch_failed = automation->watch_failed ? automation->watch_failed : watch.failed,
        .polling = watch.polling,
        .watch_paths = watch.folders,
        .watch_list = automation->watch_list,
        .watch_events = automation->watch_events,
        .scheduling = jobs > 0,
        .schedule_failed = automation->schedule_failed,
        .jobs = jobs,
        .last_fires = automation->last_fires ? automation->last_fires : "{}",
    };
}
