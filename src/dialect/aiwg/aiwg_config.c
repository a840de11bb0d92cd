/* Translating AIWG's configuration: tasks, jobs, and what only its daemon has. Rules and watching are in files beside this
 * one. */
#include "aiwg_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aiwg_translate.h"
#include "write.h"

/* What AIWG has when its file says nothing. */
#define USUAL_PARALLEL 3
#define USUAL_MINUTES 120
/* The bounds of the keys they become. */
#define MAX_PARALLEL 1000
#define MAX_MINUTES (31 * 24 * 60)
#define USUAL_BEAT_S 30
#define MAX_BEAT_S 86400
#define USUAL_LOOP_QUEUE 20
#define MAX_LOOP_QUEUE 10000
#define USUAL_RESTARTS 3
#define USUAL_WINDOW_S 300
#define USUAL_FAILURES 5
#define USUAL_COOLDOWN_MS 120000
#define USUAL_WEB_PORT 7474
#define MAX_BUDGET 1000000

/* AIWG's agent. The name of another one in a task is its persona. */
#define AGENTS                                                                                                              \
    "\"agents\":{\"claude\":{\"driver\":\"cli\",\"command\":[\"claude\",\"-p\",\"{prompt}\"],\"persona\":[\"--agent\","     \
    "\"{agent}\"],\"about\":\"AIWG's agent: claude -p\"}},\"default_agent\":\"claude\""

void weft__translate_raw(weft_translation *self, const char *text) {
    if (self->r >= 0)
        self->r = weft__write_raw(&self->out, self->alloc, text, strlen(text));
}

void weft__translate_val(weft_translation *self, weft_val value) {
    if (self->r >= 0)
        self->r = weft__write_val(&self->out, self->alloc, &value);
}

/* A comma, unless it is the first. */
void weft__translate_separator(weft_translation *self) {
    char last = self->r < 0 || !weft__buf_len(&self->out) ? '{' : self->out.data[self->out.end - 1];
    if (last != '{' && last != '[')
        weft__translate_raw(self, ",");
}

void weft__translate_name(weft_translation *self, const weft_json *name) {
    weft__translate_separator(self);
    weft__translate_val(self, weft_copy(name));
    weft__translate_raw(self, ":");
}

/* ---- tasks ---- */

/* A text that is a number counts as one wherever JavaScript compares or multiplies it. 0: it is none. */
static double number_in(const char *text) {
    weft_doc *doc = NULL;
    double number = 0;
    if (weft_doc_parse(text, strlen(text), NULL, &doc) == 0)
        number = weft_num_of(weft_doc_root(doc), 0);
    weft_doc_free(doc);
    return number;
}

double weft__translate_number(const weft_json *file, const char *pointer, double fallback, double max) {
    weft_json value = weft_pointer(file, pointer);
    double number = weft_typeof(&value) == WEFT_STRING ? number_in(weft_str_of(&value, "")) : weft_num_of(&value, 0);
    return number > 0 ? (number < max ? number : max) : fallback;
}

static void put_task_limits(weft_translation *self, const weft_json *file) {
    int64_t parallel = (int64_t) weft__translate_number(file, "/daemon/max_parallel_actions", USUAL_PARALLEL, MAX_PARALLEL);
    double minutes = weft__translate_number(file, "/daemon/action_timeout_minutes", USUAL_MINUTES, MAX_MINUTES);
    int64_t timeout_ms = (int64_t) (minutes * 60 * 1000);
    weft__translate_raw(self, "\"tasks\":");
    weft__translate_val(self, WEFT_OBJ({"max_running", weft_int(parallel > 0 ? parallel : 1)},
                                       {"timeout_ms", weft_int(timeout_ms > 0 ? timeout_ms : 1)}));
}

/* ---- jobs ---- */

/* Its guide calls a job's name "name", its own code "id". */
static const char *job_name(const weft_json *job) {
    const char *id = weft_get_str(job, "id", "");
    return *id ? id : weft_get_str(job, "name", "");
}

static void put_jobs(weft_translation *self, const weft_json *schedule) {
    weft_json jobs = weft_get(schedule, "jobs");
    weft__translate_raw(self, ",\"jobs\":[");
    for (weft_iter it = weft_iterate(&jobs); weft_get_bool(schedule, "enabled", false) && weft_next(&it);) {
        weft_json action = weft_get(&it.value, "action");
        weft__translate_separator(self);
        weft__translate_val(self,
                            WEFT_OBJ({"id", weft_str(job_name(&it.value))},
                                     {"schedule", weft_str(weft_get_str(&it.value, "cron", ""))},
                                     {"action", weft_typeof(&action) == WEFT_STRING ? weft_copy(&action) : weft_none()}));
    }
    weft__translate_raw(self, "]");
}

static void put_automation(weft_translation *self, const weft_json *file) {
    weft_json automation = weft_get(file, "automation"), watch = weft_get(file, "watch"), rules = weft_get(file, "rules"),
              more = weft_get(&automation, "rules"), schedule = weft_get(file, "schedule");
    weft__translate_raw(self, ",\"automation\":{\"enabled\":");
    weft__translate_raw(self, weft_get_bool(&automation, "enabled", true) ? "true" : "false");
    weft__translate_raw(self, ",\"rules\":[");
    weft__translate_rules(self, &rules);
    weft__translate_rules(self, &more);
    weft__translate_raw(self, "]");
    put_jobs(self, &schedule);
    weft__translate_watch(self, &watch);
    weft__translate_raw(self, "}");
}

/* ---- what only AIWG's daemon has ---- */

static int64_t whole_of(const weft_json *file, const char *pointer, double fallback, double max, double scale) {
    double value = weft__translate_number(file, pointer, fallback, max) * scale;
    return value < 1 ? 1 : (int64_t) value;
}

/* Where its web interface is to be; none: it is off. A host that is no host is refused by whoever listens there. */
static weft_val web_url(const weft_json *file, char *room, size_t size) {
    weft_json web = weft_pointer(file, "/interface/web");
    const char *host = weft_get_str(&web, "host", "127.0.0.1");
    weft_json port = weft_get(&web, "port");
    int64_t number = weft_int_of(&port, USUAL_WEB_PORT);
    if (!weft_get_bool(&web, "enabled", false) || number < 0 || number > 65535)
        return weft_none();
    bool v6 = strchr(host, ':') != NULL;
    snprintf(room, size, "http://%s%.200s%s:%lld/", v6 ? "[" : "", host, v6 ? "]" : "", (long long) number);
    return weft_str(room);
}

static void put_supervisor(weft_translation *self, const weft_json *file) {
    char url[256];
    weft_json token = weft_pointer(file, "/interface/web/token"), supervisor = weft_get(file, "supervisor");
    bool has_token = weft_typeof(&token) == WEFT_STRING && *weft_str_of(&token, "");
    double parallel = weft__translate_number(file, "/daemon/max_parallel_actions", USUAL_PARALLEL, MAX_PARALLEL);
    weft__translate_raw(self, ",\"aiwg\":");
    weft__translate_val(
        self,
        WEFT_OBJ(
            {"heartbeat_ms", weft_int(whole_of(file, "/daemon/heartbeat_interval_seconds", USUAL_BEAT_S, MAX_BEAT_S, 1000))},
            {"max_loops", weft_int(whole_of(file, "/supervisor/max_concurrent", parallel, MAX_PARALLEL, 1))},
            {"max_loop_queue", weft_int(whole_of(file, "/supervisor/max_queue_depth", USUAL_LOOP_QUEUE, MAX_LOOP_QUEUE, 1))},
            {"max_restarts",
             weft_int(whole_of(file, "/supervisor/restart_intensity/max_restarts", USUAL_RESTARTS, MAX_PARALLEL, 1))},
            {"restart_window_ms",
             weft_int(whole_of(file, "/supervisor/restart_intensity/window_seconds", USUAL_WINDOW_S, MAX_BEAT_S, 1000))},
            {"failure_threshold",
             weft_int(whole_of(file, "/supervisor/circuit_breaker/failure_threshold", USUAL_FAILURES, MAX_PARALLEL, 1))},
            {"cooldown_ms",
             weft_int(whole_of(file, "/supervisor/circuit_breaker/cooldown_ms", USUAL_COOLDOWN_MS, MAX_BEAT_S * 1000, 1))},
            {"job_actions", weft_typeof(&supervisor) == WEFT_OBJECT ? weft_bool(true) : weft_none()},
            {"web", web_url(file, url, sizeof url)}, {"web_token", has_token ? weft_copy(&token) : weft_none()}));
}

/* What all tasks of a day may cost; 0: anything. */
static void put_budget(weft_translation *self, const weft_json *file) {
    char amount[64];
    double limit = weft__translate_number(file, "/supervisor/daily_budget_usd", 0, MAX_BUDGET);
    if (limit <= 0)
        return;
    snprintf(amount, sizeof amount, "%.4f USD", limit);
    weft__translate_raw(self, ",\"cost\":");
    weft__translate_val(self, WEFT_OBJ({"day", weft_str(amount)}));
}

static void put_log_level(weft_translation *self, const weft_json *file) {
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    weft_json level = weft_pointer(file, "/daemon/log/level");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(weft_str_of(&level, ""), levels[i]) == 0) {
            weft__translate_raw(self, ",\"log\":");
            weft__translate_val(self, WEFT_OBJ({"level", weft_copy(&level)}));
        }
}

int weft__aiwg_config(const weft_json *file, const weft_alloc *alloc, weft_doc **ret) {
    weft_translation self = {.alloc = alloc};
    weft__translate_raw(&self, "{" AGENTS ",");
    put_task_limits(&self, file);
    put_log_level(&self, file);
    put_automation(&self, file);
    put_supervisor(&self, file);
    put_budget(&self, file);
    weft__translate_raw(&self, "}");
    if (self.r >= 0)
        self.r = weft_doc_parse(weft__buf_head(&self.out), weft__buf_len(&self.out), alloc, ret);
    weft__buf_done(&self.out, alloc);
    return self.r;
}

const char weft__aiwg_default_config[] =
    "{\n"
    "  \"daemon\": {\n"
    "    \"heartbeat_interval_seconds\": 30,\n"
    "    \"max_parallel_actions\": 3,\n"
    "    \"action_timeout_minutes\": 120,\n"
    "    \"log\": { \"max_size_mb\": 50, \"max_files\": 5, \"level\": \"info\" }\n"
    "  },\n"
    "  \"watch\": {\n"
    "    \"enabled\": true,\n"
    "    \"paths\": [\n"
    "      { \"path\": \".aiwg/\", \"events\": [\"create\", \"modify\", \"delete\"],\n"
    "        \"ignore\": [\"*.tmp\", \"working/**\", \"daemon/**\"] },\n"
    "      { \"path\": \"src/\", \"events\": [\"modify\"], \"extensions\": [\".ts\", \".js\", \".mjs\"] },\n"
    "      { \"path\": \"test/\", \"events\": [\"modify\"], \"extensions\": [\".test.ts\", \".test.js\"] }\n"
    "    ],\n"
    "    \"debounce_ms\": 2000\n"
    "  },\n"
    "  \"webhook\": {\n"
    "    \"enabled\": false, \"port\": 9471, \"host\": \"127.0.0.1\", \"secret_env\": \"AIWG_WEBHOOK_SECRET\",\n"
    "    \"endpoints\": [{ \"path\": \"/ci\", \"method\": \"POST\" }, { \"path\": \"/health\", \"method\": \"GET\" }]\n"
    "  },\n"
    "  \"schedule\": {\n"
    "    \"enabled\": true,\n"
    "    \"jobs\": [\n"
    "      { \"id\": \"health-check\", \"cron\": \"0 */6 * * *\", \"action\": \"doctor\" },\n"
    "      { \"id\": \"artifact-audit\", \"cron\": \"0 9 * * 1\", \"action\": \"validate-metadata\" }\n"
    "    ]\n"
    "  },\n"
    "  \"rules\": []\n"
    "}\n";
