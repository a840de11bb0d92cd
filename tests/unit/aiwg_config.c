/* AIWG's configuration in Weft's words. */
#include "aiwg_config.h"

#include <errno.h>

#include "harness.h"

/* What a pointer into the translation finds. */
TEST(translations) {
    static const struct {
        const char *file, *pointer, *found; /* found NULL: nothing */
    } rows[] = {
        {NULL, "/default_agent", "\"claude\""},
        {NULL, "/agents/claude/command", "[\"claude\",\"-p\",\"{prompt}\"]"},
        {NULL, "/agents/claude/persona", "[\"--agent\",\"{agent}\"]"},
        {NULL, "/tasks", "{\"max_running\":3,\"timeout_ms\":7200000}"},
        {NULL, "/automation", "{\"enabled\":true,\"rules\":[],\"jobs\":[],\"watch\":false}"},
        {"5", "/tasks/max_running", "3"},
        {"{\"daemon\": {\"max_parallel_actions\": 5}}", "/tasks/max_running", "5"},
        {"{\"daemon\": {\"max_parallel_actions\": 0}}", "/tasks/max_running", "3"},
        {"{\"daemon\": {\"max_parallel_actions\": -1}}", "/tasks/max_running", "3"},
        {"{\"daemon\": {\"max_parallel_actions\": 0.5}}", "/tasks/max_running", "1"},
        {"{\"daemon\": {\"max_parallel_actions\": \"many\"}}", "/tasks/max_running", "3"},
        {"{\"daemon\": {\"max_parallel_actions\": 1e30}}", "/tasks/max_running", "1000"},
        {"{\"daemon\": {\"action_timeout_minutes\": 0.5}}", "/tasks/timeout_ms", "30000"},
        {"{\"daemon\": {\"action_timeout_minutes\": 1e9}}", "/tasks/timeout_ms", "2678400000"},
        {"{\"messaging\": {\"a\": 1}, \"unknown\": 2}", "/automation/rules", "[]"},
        {"{\"automation\": {\"enabled\": false}}", "/automation/enabled", "false"},
        {"{\"schedule\": {\"enabled\": true, \"jobs\": [{\"id\": \"a\", \"cron\": \"* * * * *\", \"action\": \"x\"}]}}",
         "/automation/jobs", "[{\"id\":\"a\",\"schedule\":\"* * * * *\",\"action\":\"x\"}]"},
        {"{\"schedule\": {\"enabled\": false, \"jobs\": [{\"id\": \"a\", \"cron\": \"* * * * *\"}]}}", "/automation/jobs",
         "[]"},
        {"{\"schedule\": {\"enabled\": true, \"jobs\": [{}]}}", "/automation/jobs", "[{\"id\":\"\",\"schedule\":\"\"}]"},
        {"{\"schedule\": {\"enabled\": true, \"jobs\": [{\"name\": \"n\", \"cron\": \"0 9 * * *\"}]}}", "/automation/jobs",
         "[{\"id\":\"n\",\"schedule\":\"0 9 * * *\"}]"},
        {"{\"rules\": []}", "/automation/watch", "false"},
        {"{\"watch\": {\"enabled\": false, \"paths\": []}}", "/automation/watch", "false"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [{\"path\": \"src/\"}, {\"path\": \"a//\"}, {}, {\"path\": \"/\"}]}}",
         "/automation/watch_paths", "[\"src\",\"a\",\"/\"]"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [\"src/\", {\"path\": \"b\", \"events\": [\"create\"], \"extensions\": "
         "[\".ts\"], \"ignore\": [\"x/**\"]}], \"events\": [\"modify\"], \"ignore\": [\"*.log\"]}}",
         "/automation/watches",
         "[{\"path\":\"src/\",\"events\":[\"modify\"],\"ignore\":[\"*.log\",\".git\",\"node_modules\"]},"
         "{\"path\":\"b\",\"events\":[\"create\"],\"extensions\":[\".ts\"],"
         "\"ignore\":[\"x/**\",\"*.log\",\".git\",\"node_modules\"]}]"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [\"a\"]}}", "/automation/ignore",
         "[\".aiwg/daemon\",\".aiwg/daemon.pid*\",\".aiwg/working\",\"node_modules\"]"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [\"a\"]}}", "/automation/gitignore", "false"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [\"a\"]}}", "/automation/settle_ms", "500"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [\"a\"], \"debounce_ms\": 2000}}", "/automation/settle_ms", "2000"},
        {"{\"watch\": {\"enabled\": true}}", "/automation/watch", "false"},
        {NULL, "/aiwg",
         "{\"heartbeat_ms\":30000,\"max_loops\":3,\"max_loop_queue\":20,\"max_restarts\":3,\"restart_window_ms\":300000,"
         "\"failure_threshold\":5,\"cooldown_ms\":120000}"},
        {"{\"daemon\": {\"heartbeat_interval_seconds\": 5, \"max_parallel_actions\": 2}, \"supervisor\": "
         "{\"max_concurrent\": 7, "
         "\"max_queue_depth\": 10, \"restart_intensity\": {\"max_restarts\": 2, \"window_seconds\": 60}, "
         "\"circuit_breaker\": "
         "{\"failure_threshold\": 4, \"cooldown_ms\": 30000}}}",
         "/aiwg",
         "{\"heartbeat_ms\":5000,\"max_loops\":7,\"max_loop_queue\":10,\"max_restarts\":2,\"restart_window_ms\":60000,"
         "\"failure_threshold\":4,\"cooldown_ms\":30000,\"job_actions\":true}"},
        {"{\"interface\": {\"web\": {\"enabled\": true}}}", "/aiwg/web", "\"http://127.0.0.1:7474/\""},
        {"{\"interface\": {\"web\": {\"enabled\": true, \"port\": 80, \"host\": \"::1\", \"token\": \"t\"}}}", "/aiwg/web",
         "\"http://[::1]:80/\""},
        {"{\"interface\": {\"web\": {\"enabled\": true, \"token\": \"t\"}}}", "/aiwg/web_token", "\"t\""},
        {"{\"interface\": {\"web\": {\"enabled\": false}}}", "/aiwg/web", NULL},
        {"{\"supervisor\": {\"daily_budget_usd\": 2.5}}", "/cost/day", "\"2.5000 USD\""},
        {"{\"supervisor\": {\"daily_budget_usd\": 0}}", "/cost", NULL},
        {"{\"daemon\": {\"log\": {\"level\": \"warn\"}}}", "/log/level", "\"warn\""},
        {"{\"daemon\": {\"log\": {\"level\": \"loud\"}}}", "/log", NULL},
        {"{\"rules\": [{\"id\": \"r\", \"trigger\": {\"source\": \"watch\"}, \"action\": {\"type\": \"notify\"}, "
         "\"cooldownMs\": 9}]}",
         "/automation/rules/0",
         "{\"aiwg\":{\"trigger\":{\"source\": "
         "\"watch\"}},\"trigger\":{\"source\":\"watcher\"},\"id\":\"r\",\"action\":{\"type\": "
         "\"notify\"},\"enabled\":true,\"cooldownMs\":9,\"conditions\":[]}"},
        {"{\"rules\": [{\"id\": \"r\", \"enabled\": 0, \"cooldownMs\": \"x\", \"requiresApproval\": true}]}",
         "/automation/rules/0",
         "{\"aiwg\":{},\"trigger\":null,\"id\":\"r\",\"enabled\":true,\"requiresApproval\":true,\"cooldownMs\":0,"
         "\"conditions\":[]}"},
        {"{\"rules\": [{\"cooldownMs\": \"5000\"}]}", "/automation/rules/0/cooldownMs", "5000"},
        {"{\"rules\": [{\"cooldownMs\": \" 1e3 \"}]}", "/automation/rules/0/cooldownMs", "1000"},
        {"{\"rules\": [{\"cooldownMs\": \"5000 ms\"}]}", "/automation/rules/0/cooldownMs", "0"},
        {"{\"rules\": [{\"cooldownMs\": \"-1\"}]}", "/automation/rules/0/cooldownMs", "0"},
        {"{\"rules\": [{\"cooldownMs\": \"[7]\"}]}", "/automation/rules/0/cooldownMs", "0"},
        {"{\"rules\": [{\"id\": \"r\", \"trigger\": {\"source\": \"schedule\", \"type\": \"cron.fired\"}}]}",
         "/automation/rules/0/trigger", "{\"source\":\"scheduler\",\"type\":\"cron.fired\"}"},
        {"{\"rules\": [{\"trigger\": {}}]}", "/automation/rules/0/trigger", "{\"type\":\"*\"}"},
        {"{\"rules\": [{\"trigger\": {\"pattern\": \"^file\"}}]}", "/automation/rules/0/conditions",
         "[{\"field\":\"type\",\"operator\":\"matches\",\"value\":\"^(?:"
         "file\\\\.create|"
         "file\\\\.modify|file\\\\.delete)$\"}]"},
        {"{\"rules\": [{\"trigger\": {\"source\": \"watch\", \"pattern\": \"modify:watch|schedule$\"}}]}",
         "/automation/rules/0/conditions/0/value", "\"^(?:file\\\\.modify|cron\\\\.fired)$\""},
        {"{\"rules\": [{\"trigger\": {\"pattern\": \"task\"}}]}", "/automation/rules/0/conditions/0/value",
         "\"^(?:(?!))$\""},
        {"{\"rules\": [{\"trigger\": {\"pattern\": \"(\"}}]}", "/automation/rules/0/conditions/0/value", "\"(\""},
        {"{\"rules\": [{\"trigger\": {\"pattern\": 5}}]}", "/automation/rules/0/conditions/0/value", "5"},
        {"{\"rules\": [{\"trigger\": {}}]}", "/automation/rules/0/conditions",
         "[{\"field\":\"source\",\"operator\":\"neq\",\"value\":\"queue\"},{\"field\":\"source\",\"operator\":\"neq\","
         "\"value\":\"question\"}]"},
        {"{\"rules\": [{\"trigger\": {\"type\": \"a\"}, \"conditions\": [{\"field\": \"payload.job_id\", \"operator\": "
         "\"equals\", "
         "\"value\": 1}, {\"operator\": \"not_equals\"}, 5]}]}",
         "/automation/rules/0/conditions",
         "[{\"field\":\"payload.job\",\"operator\":\"eq\",\"value\":1},{\"operator\":\"neq\"},5]"},
        {"{\"rules\": [1], \"automation\": {\"rules\": [{\"id\": \"b\", \"trigger\": 7}]}}", "/automation/rules",
         "[1,{\"aiwg\":{\"trigger\":7},\"trigger\":7,\"id\":\"b\",\"enabled\":true,\"cooldownMs\":0,\"conditions\":[]}]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *file = NULL, *doc = NULL;
        const weft_json none = {0};
        test_row(rows[i].file ? rows[i].file : rows[i].pointer);
        if (rows[i].file)
            REQUIRE(weft_doc_parse(rows[i].file, strlen(rows[i].file), NULL, &file) == 0);
        REQUIRE(weft__aiwg_config(file ? weft_doc_root(file) : &none, NULL, &doc) == 0);
        weft_json found = weft_pointer(weft_doc_root(doc), rows[i].pointer);
        if (rows[i].found && found.text)
            CHECK_TEXT(found.text, found.len, rows[i].found);
        CHECK_INT(found.text != NULL, rows[i].found != NULL);
        weft_doc_free(doc);
        weft_doc_free(file);
    }
}

TEST(failing_allocations) {
    static const char text[] = "{\"rules\": [{\"id\": \"\\u0061\", \"trigger\": {\"type\": \"fil\\u0065.modify\", "
                               "\"pattern\": \"f\"}}], \"watch\": "
                               "{\"paths\": [{\"path\": \"\\u0061\"}]}}";
    test_memory memory;
    int r = -ENOMEM;
    for (long fail_at = 1; r == -ENOMEM && fail_at < 1000; fail_at++) {
        weft_doc *file = NULL, *doc = NULL;
        REQUIRE(weft_doc_parse(text, strlen(text), NULL, &file) == 0);
        test_memory_init(&memory, fail_at);
        r = weft__aiwg_config(weft_doc_root(file), &memory.alloc, &doc);
        weft_doc_free(doc);
        weft_doc_free(file);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    CHECK(memory.count > 1);
}

TEST_MAIN(CASE(translations) CASE(failing_allocations))
