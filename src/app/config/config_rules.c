/* Rules that can never fire, and jobs that never come: what can be seen in a configuration without running it. A daemon
 * starts with such a rule and shows it with its error; "weft config check" and "weft doctor" say where it stands in the
 * file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agents.h"
#include "config.h"
#include "rule.h"

/* Room for "automation.rules[255] (ID)", with an id that is cut. */
#define MAX_NAME 96

typedef struct judging {
    const weft_config *config;
    weft_checking checking; /* of the rules, or of the jobs */
    weft_json rules, jobs;
    weft_rule *list[WEFT_MAX_ITEMS]; /* in the order of the file */
    size_t count;
    bool wrong;
} judging;

static const weft_setting *find_setting(const weft_config *config, const char *path) {
    size_t i = 0;
    while (strcmp(weft__keys[i].path, path) != 0)
        i++;
    return &config->settings[i];
}

static weft_checking checking_of(const judging *self, const weft_setting *setting, const weft_remarks *to) {
    const weft_config *config = self->config;
    const weft_config_file *file = setting->doc                           ? NULL
                                   : setting->source == WEFT_FROM_user    ? &config->user
                                   : setting->source == WEFT_FROM_project ? &config->project
                                                                          : NULL;
    return (weft_checking){to, file && !file->foreign ? file : NULL, weft__config_where(config, setting), config->alloc};
}

/* ---- saying it ---- */

static void name_rule(const judging *self, size_t index, char ret[MAX_NAME]) {
    const char *id = self->list[index]->id;
    snprintf(ret, MAX_NAME, *id ? "automation.rules[%zu] (%.48s)" : "automation.rules[%zu]", index, id);
}

static void refuse_rule(judging *self, size_t index, const weft_json *rule, const char *at, const char *why) {
    char name[MAX_NAME];
    weft_json part = weft_pointer(rule, at);
    name_rule(self, index, name);
    self->wrong = true;
    weft__config_say(&self->checking, part.text ? &part : rule, true, "%s can never fire: %s", name, why);
}

/* ---- what it waits for ---- */

static bool listens_only(const weft_rule *rule, const char *source) {
    bool any = false;
    for (const weft_rule_type *row = weft__rule_types; row->type; row++) {
        if (!weft__rule_listens(rule, row->type, row->source))
            continue;
        any = true;
        if (strcmp(row->source, source) != 0)
            return false;
    }
    return any;
}

static bool rule_fits_job(const weft_rule *rule, const char *job) {
    return !rule->pattern || weft__glob_says(rule->pattern, (weft_bytes){job, strlen(job)});
}

/* Is there a job whose event it would take? */
static bool has_job(const judging *self, const weft_rule *rule) {
    char own[WEFT_RULE_ID + 8];
    for (weft_iter it = weft_iterate(&self->jobs); self->jobs.text && weft_next(&it);)
        if (rule_fits_job(rule, weft_get_str(&it.value, "id", "")))
            return true;
    for (size_t i = 0; i < self->count; i++) {
        weft__rule_job(self->list[i], own);
        if (!*self->list[i]->error && self->list[i]->schedule && rule_fits_job(rule, own))
            return true;
    }
    return false;
}

/* Paths are relative to the project's folder, and these folders are never looked into. */
static const char *why_no_path(const char *pattern) {
    static const char *const ignored[] = {".git", ".weft", ".aiwg"};
    size_t first = strcspn(pattern, "/");
    if (*pattern == '/' || strncmp(pattern, "./", 2) == 0 || strncmp(pattern, "../", 3) == 0)
        return "the pattern is for paths within the project, which begin with a name: src/**/*.c";
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (strlen(ignored[i]) == first && strncmp(pattern, ignored[i], first) == 0)
            return "the pattern is for a folder that is not watched: .git, .weft and .aiwg are left out";
    return NULL;
}

static void judge_files(judging *self, size_t index, const weft_json *rule) {
    weft_json trigger = weft_get(rule, "trigger"), watch = find_setting(self->config, "automation.watch")->value;
    const char *why = why_no_path(weft_get_str(&trigger, "pattern", "*"));
    if (why)
        refuse_rule(self, index, rule, "/trigger/pattern", why);
    if (watch.text && !weft_bool_of(&watch, true))
        refuse_rule(self, index, rule, "/trigger", "it waits for files, and automation.watch is false");
}

static void judge_jobs(judging *self, size_t index, const weft_json *rule) {
    const weft_rule *is = self->list[index];
    if (is->schedule || has_job(self, is))
        return;
    if (is->pattern)
        refuse_rule(self, index, rule, "/trigger/pattern", "no job in automation.jobs has such a name");
    else
        refuse_rule(self, index, rule, "/trigger", "it waits for a job, and there is none: it needs a schedule");
}

/* ---- what it does ---- */

static void judge_agent(judging *self, size_t index, const weft_json *rule) {
    const weft_rule *is = self->list[index];
    const weft_json *agents = &find_setting(self->config, "agents")->value;
    weft_json at = weft_pointer(rule, "/action/agent");
    char name[MAX_NAME];
    if (is->kind != WEFT_RULE_AGENT || !is->agent || weft__agent_preset(is->agent) || weft_get(agents, is->agent).text)
        return;
    weft_suggestion suggestion = {.typed = is->agent};
    weft__agent_suggest(&suggestion, agents);
    const char *best = suggestion.best;
    self->wrong = true;
    name_rule(self, index, name);
    weft__config_say(&self->checking, &at, true, "%s cannot start a task: there is no agent \"%.64s\"%s%.64s%s", name,
                     is->agent, best ? "; did you mean \"" : "", best ? best : "", best ? "\"?" : "");
}

/* ---- one rule ---- */

static bool is_second(const judging *self, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (!*self->list[i]->error && strcmp(self->list[i]->id, self->list[index]->id) == 0)
            return true;
    return false;
}

static void warn_disabled(const judging *self, size_t index, const weft_json *rule) {
    char name[MAX_NAME];
    weft_json at = weft_get(rule, "enabled");
    if (self->list[index]->enabled)
        return;
    name_rule(self, index, name);
    weft__config_say(&self->checking, &at, false, "%s is switched off", name);
}

static int judge_rule(judging *self, size_t index, const weft_json *value) {
    const weft_rule *rule = self->list[index];
    char why[WEFT_RULE_WHY], at[WEFT_RULE_AT];
    if (*rule->error) {
        refuse_rule(self, index, value, rule->at, rule->error);
        return 0;
    }
    if (is_second(self, index))
        refuse_rule(self, index, value, "/id", "there is another rule of this name before it");
    int r = weft__rule_sense(rule, why, at);
    if (r < 0)
        return r;
    if (r == 0)
        refuse_rule(self, index, value, at, why);
    if (listens_only(rule, "watcher"))
        judge_files(self, index, value);
    if (listens_only(rule, "scheduler"))
        judge_jobs(self, index, value);
    judge_agent(self, index, value);
    warn_disabled(self, index, value);
    return 0;
}

static int judge_rules(judging *self) {
    int r = 0;
    for (weft_iter it = weft_iterate(&self->rules); r >= 0 && self->count < WEFT_MAX_ITEMS && weft_next(&it);) {
        r = weft__rule_new(&it.value, self->config->alloc, &self->list[self->count]);
        self->count += r >= 0;
    }
    size_t index = 0;
    for (weft_iter it = weft_iterate(&self->rules); r >= 0 && index < self->count && weft_next(&it); index++)
        r = judge_rule(self, index, &it.value);
    return r;
}

/* ---- the jobs ---- */

static bool is_second_job(const judging *self, size_t index, const char *id) {
    size_t i = 0;
    for (weft_iter it = weft_iterate(&self->jobs); i < index && weft_next(&it); i++)
        if (strcmp(weft_get_str(&it.value, "id", ""), id) == 0)
            return true;
    return false;
}

static void judge_job(judging *self, size_t index, const weft_json *job) {
    const char *id = weft_get_str(job, "id", ""), *why;
    weft_json schedule = weft_get(job, "schedule"), name = weft_get(job, "id");
    weft_cron cron;
    if (weft__cron_parse(weft_str_of(&schedule, ""), &cron, &why) < 0) {
        self->wrong = true;
        weft__config_say(&self->checking, &schedule, true, "automation.jobs[%zu] (%.48s) never runs: %s", index, id, why);
    }
    if (is_second_job(self, index, id)) {
        self->wrong = true;
        weft__config_say(&self->checking, &name, true,
                         "automation.jobs[%zu] (%.48s) never runs: there is another job of this name before it", index, id);
    }
}

/* ---- all of it ---- */

static void warn_off(const judging *self, const weft_remarks *to) {
    const weft_setting *enabled = find_setting(self->config, "automation.enabled");
    weft_checking checking = checking_of(self, enabled, to);
    if (self->count && !weft_bool_of(&enabled->value, true))
        weft__config_say(&checking, &enabled->value, false, "automation.enabled is false, so no rule fires");
}

int weft__config_rules(const weft_config *config, const weft_remarks *to) {
    judging self = {.config = config,
                    .rules = find_setting(config, "automation.rules")->value,
                    .jobs = find_setting(config, "automation.jobs")->value};
    size_t index = 0;
    self.checking = checking_of(&self, find_setting(config, "automation.jobs"), to);
    for (weft_iter it = weft_iterate(&self.jobs); weft_next(&it);)
        judge_job(&self, index++, &it.value);
    self.checking = checking_of(&self, find_setting(config, "automation.rules"), to);
    int r = judge_rules(&self);
    if (r >= 0)
        warn_off(&self, to);
    for (size_t i = 0; i < self.count; i++)
        weft__rule_free(self.list[i]);
    return r < 0 ? r : self.wrong ? -EBADMSG : 0;
}
