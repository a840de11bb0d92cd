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
        {NULL, "/automation", "{\"enabled\":true,\"rules\":[],\"jobs\":[]}"},
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
        {"{\"rules\": []}", "/automation/watch", NULL},
        {"{\"watch\": {\"enabled\": false, \"paths\": []}}", "/automation/watch", "false"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [{\"path\": \"src/\"}, {\"path\": \"a//\"}, {}, {\"path\": \"/\"}]}}",
         "/automation/watch_paths", "[\"src\",\"a\",\"/\"]"},
        {"{\"watch\": {\"enabled\": true, \"paths\": [{\"path\": \"a\", \"ignore\": [\"*.tmp\", 5]}, {\"path\": \"b\", "
         "\"ignore\": "
         "[\"x/**\"]}]}}",
         "/automation/ignore", "[\".aiwg/daemon\",\".aiwg/daemon.pid*\",\"*.tmp\",\"b/x/**\"]"},
        {"{\"rules\": [{\"id\": \"r\", \"trigger\": {\"source\": \"watch\"}, \"action\": {\"type\": \"notify\"}, "
         "\"cooldownMs\": 9}]}",
         "/automation/rules/0",
         "{\"trigger\":{\"source\":\"watcher\"},\"id\":\"r\",\"action\":{\"type\": "
         "\"notify\"},\"cooldownMs\":9,\"conditions\":[]}"},
        {"{\"rules\": [{\"id\": \"r\", \"trigger\": {\"source\": \"schedule\", \"type\": \"cron.fired\"}}]}",
         "/automation/rules/0/trigger", "{\"source\":\"scheduler\",\"type\":\"cron.fired\"}"},
        {"{\"rules\": [{\"trigger\": {}}]}", "/automation/rules/0/trigger", "{\"type\":\"*\"}"},
        {"{\"rules\": [{\"trigger\": {\"pattern\": \"^file\"}}]}", "/automation/rules/0",
         "{\"trigger\":{\"type\":\"*\"},\"conditions\":[{\"field\":\"type\",\"operator\":\"matches\",\"value\":\"^(?:"
         "file\\\\.create|"
         "file\\\\.modify|file\\\\.delete)$\"}]}"},
        {"{\"rules\": [{\"trigger\": {\"source\": \"watch\", \"pattern\": \"modify:watch|schedule$\"}}]}",
         "/automation/rules/0/conditions/0/value", "\"^(?:file\\\\.modify|cron\\\\.fired)$\""},
        {"{\"rules\": [{\"trigger\": {\"pattern\": \"task\"}}]}", "/automation/rules/0/conditions/0/value",
         "\"^(?:(?!))$\""},
        {"{\"rules\": [{\"trigger\": {\"pattern\": \"(\"}}]}", "/automation/rules/0/conditions/0/value", "\"(\""},
        {"{\"rules\": [{\"trigger\": {\"pattern\": 5}}]}", "/automation/rules/0/conditions/0/value", "5"},
        {"{\"rules\": [{\"trigger\": {}}]}", "/automation/rules/0/conditions",
         "[{\"field\":\"source\",\"operator\":\"neq\",\"value\":\"queue\"}]"},
        {"{\"rules\": [{\"trigger\": {\"type\": \"a\"}, \"conditions\": [{\"field\": \"payload.job_id\", \"operator\": "
         "\"equals\", "
         "\"value\": 1}, {\"operator\": \"not_equals\"}, 5]}]}",
         "/automation/rules/0/conditions",
         "[{\"field\":\"payload.job\",\"operator\":\"eq\",\"value\":1},{\"operator\":\"neq\"},5]"},
        {"{\"rules\": [1], \"automation\": {\"rules\": [{\"id\": \"b\", \"trigger\": 7}]}}", "/automation/rules",
         "[1,{\"trigger\":7,\"id\":\"b\",\"conditions\":[]}]"},
        {"{\"watch\": {\"paths\": [{\"path\": \"s/\", \"extensions\": [\".ts\", \".test.js\"]}, {\"path\": \"t\"}]}}",
         "/automation/watch_paths", "[\"s/**/*.ts\",\"s/**/*.test.js\",\"t\"]"},
        {"{\"watch\": {\"paths\": [{\"path\": \"./\", \"extensions\": [\".ts\"], \"ignore\": [\"a/b\"]}]}}",
         "/automation/watch_paths", "[\"**/*.ts\"]"},
        {"{\"watch\": {\"paths\": [{\"path\": \"./\", \"ignore\": [\"a/b\"]}]}}", "/automation/ignore",
         "[\".aiwg/daemon\",\".aiwg/daemon.pid*\",\"a/b\"]"},
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
