/* Rules: what is wrong with one is said, what an event means to one, and what it does about it. */
#include "rule.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

static weft_rule *rule_of(const char *text) {
    weft_doc *doc;
    weft_rule *rule = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    CHECK_INT(weft__rule_new(weft_doc_root(doc), NULL, &rule), 0);
    weft_doc_free(doc);
    return rule;
}

#define TRIGGER "\"trigger\":{\"type\":\"file.modify\"}"
#define ACTION "\"action\":{\"type\":\"agent\",\"prompt\":\"go\"}"

TEST(says_what_is_wrong) {
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"5", "a rule is an object"},
        {"{" TRIGGER "," ACTION "}", "no id"},
        {"{\"id\":\"\"," TRIGGER "," ACTION "}", "no id"},
        {"{\"id\":5," TRIGGER "," ACTION "}", "\"id\" must be a text"},
        {"{\"id\":\"a\"," ACTION "}", "no trigger"},
        {"{\"id\":\"a\"," TRIGGER "}", "no action"},
        {"{\"id\":\"a\",\"trigger\":{}," ACTION "}", "neither a type"},
        {"{\"id\":\"a\",\"trigger\":{\"type\":\"file.changed\"}," ACTION "}", "no events of type \"file.changed\""},
        {"{\"id\":\"a\",\"trigger\":{\"type\":7}," ACTION "}", "\"type\" must be a text"},
        {"{\"id\":\"a\",\"trigger\":{\"source\":\"disk\"}," ACTION "}", "no source \"disk\""},
        {"{\"id\":\"a\",\"trigger\":{\"pattern\":\"{a\"}," ACTION "}", "brace"},
        {"{\"id\":\"a\",\"trigger\":{\"schedule\":\"* * *\"}," ACTION "}", "schedule \"* * *\" is not valid"},
        {"{\"id\":\"a\",\"trigger\":{\"type\":\"file.modify\",\"schedule\":\"* * * * *\"}," ACTION "}", "is for cron.fired"},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{}}", "no type"},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"shell\"}}", "no action \"shell\""},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"agent\"}}", "needs \"prompt\""},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"notify\",\"message\":\"\"}}", "needs \"message\""},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"agent\",\"prompt\":\"p\",\"priority\":\"high\"}}",
         "whole number"},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"webhook\"}}", "needs \"url\""},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"webhook\",\"url\":\"nonsense\"}}", "url is not valid"},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"webhook\",\"url\":\"tcp://h:1\"}}", "http:// or https://"},
        {"{\"id\":\"a\"," TRIGGER ",\"action\":{\"type\":\"webhook\",\"url\":\"http://{{path}}/x\"}}",
         "cannot be filled in"},
        {"{\"id\":\"a\",\"cooldownMs\":-1," TRIGGER "," ACTION "}", "negative"},
        {"{\"id\":\"a\",\"cooldownMs\":\"5s\"," TRIGGER "," ACTION "}", "whole number"},
        {"{\"id\":\"a\",\"enabled\":\"yes\"," TRIGGER "," ACTION "}", "true or false"},
        {"{\"id\":\"a\",\"conditions\":5," TRIGGER "," ACTION "}", "must be a list"},
        {"{\"id\":\"a\",\"conditions\":[{\"field\":\"x\",\"operator\":\"is\"}]," TRIGGER "," ACTION "}",
         "no operator \"is\""},
        {"{\"id\":\"a\",\"conditions\":[{\"field\":\"x\",\"operator\":\"matches\",\"value\":\"(\"}]," TRIGGER "," ACTION "}",
         "regular expression"},
        {"{\"id\":\"a\"," TRIGGER "," ACTION "}", ""},
        {"{\"id\":\"a\",\"trigger\":{\"type\":\"file.*\"}," ACTION "}", ""},
        {"{\"id\":\"a\",\"aiwg\":{\"trigger\":{\"type\":\"file.*\"}},\"trigger\":{\"type\":\"file.*\"}," ACTION "}",
         "has no \"*\""},
        {"{\"id\":\"a\",\"aiwg\":{\"trigger\":{}},\"trigger\":{\"type\":\"*\"}," ACTION "}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        weft_rule *rule = rule_of(rows[i].text);
        if (*rows[i].why)
            CHECK(strstr(rule->error, rows[i].why) != NULL);
        else
            CHECK_STR(rule->error, "");
        if (*rule->error && !strstr(rule->error, rows[i].why))
            fprintf(stderr, "    said: %s\n", rule->error);
        CHECK_INT(weft__rule_listens(rule, "file.modify", "watcher"), !*rows[i].why);
        weft__rule_free(rule);
    }
    test_row(NULL);
}

TEST(defaults) {
    weft_rule *rule = rule_of("{\"id\":\"a\"," TRIGGER "," ACTION "}");
    CHECK(rule->enabled && !rule->approval);
    CHECK_INT(rule->cooldown_ms, 5000);
    CHECK_INT(rule->priority, 0);
    weft__rule_free(rule);
    rule = rule_of("{\"id\":\"a\",\"enabled\":false,\"cooldownMs\":0,\"requiresApproval\":true," TRIGGER "," ACTION "}");
    CHECK(!rule->enabled && rule->approval);
    CHECK_INT(rule->cooldown_ms, 0);
    weft__rule_free(rule);
}

static int match(const char *trigger, const char *conditions, const char *type, const char *source, const char *payload) {
    char text[1024], event_text[1024];
    snprintf(text, sizeof text, "{\"id\":\"a\",\"trigger\":%s,\"conditions\":%s," ACTION "}", trigger, conditions);
    snprintf(event_text, sizeof event_text, "{\"type\":\"%s\",\"source\":\"%s\",\"payload\":%s,\"depth\":0}", type, source,
             payload);
    weft_rule *rule = rule_of(text);
    weft_doc *doc;
    CHECK_STR(rule->error, "");
    CHECK_INT(weft_doc_parse(event_text, strlen(event_text), NULL, &doc), 0);
    int r = weft__rule_matches(rule, &(weft_rule_event){type, source, weft_doc_root(doc)});
    weft_doc_free(doc);
    weft__rule_free(rule);
    return r;
}

TEST(matches) {
    static const struct {
        const char *trigger, *conditions, *type, *source, *payload;
        int want;
    } rows[] = {
        {"{\"type\":\"file.modify\"}", "[]", "file.modify", "watcher", "{\"path\":\"a\"}", 1},
        {"{\"type\":\"file.modify\"}", "[]", "file.create", "watcher", "{\"path\":\"a\"}", 0},
        {"{\"type\":\"file.*\"}", "[]", "file.create", "watcher", "{\"path\":\"a\"}", 1},
        {"{\"type\":\"file.*\"}", "[]", "task.failed", "queue", "{}", 0},
        {"{\"type\":\"*\"}", "[]", "task.failed", "queue", "{}", 1},
        {"{\"source\":\"queue\"}", "[]", "task.failed", "queue", "{}", 1},
        {"{\"source\":\"queue\"}", "[]", "file.create", "watcher", "{}", 0},
        {"{\"pattern\":\"*.ts\"}", "[]", "file.create", "watcher", "{\"path\":\"src/x.ts\"}", 1},
        {"{\"pattern\":\"*.ts\"}", "[]", "file.create", "watcher", "{\"path\":\"src/x.js\"}", 0},
        {"{\"pattern\":\"*\"}", "[]", "task.queued", "queue", "{\"prompt\":\"x\"}", 0},
        {"{\"type\":\"file.*\",\"pattern\":\"src/**/*.{ts,tsx}\"}", "[]", "file.modify", "watcher",
         "{\"path\":\"src/a/b.tsx\"}", 1},
        {"{\"type\":\"task.*\",\"pattern\":\"fix *\"}", "[]", "task.queued", "queue", "{\"prompt\":\"fix a/b\"}", 1},
        {"{\"type\":\"task.*\",\"pattern\":\"fix *\"}", "[]", "task.queued", "queue", "{\"prompt\":\"see a\"}", 0},
        {"{\"type\":\"cron.fired\",\"pattern\":\"night*\"}", "[]", "cron.fired", "scheduler", "{\"job\":\"nightly\"}", 1},
        {"{\"schedule\":\"* * * * *\"}", "[]", "cron.fired", "scheduler", "{\"job\":\"rule:a\"}", 1},
        {"{\"schedule\":\"* * * * *\"}", "[]", "cron.fired", "scheduler", "{\"job\":\"other\"}", 0},
        {"{\"type\":\"file.*\"}", "[{\"field\":\"size\",\"operator\":\"gt\",\"value\":5}]", "file.modify", "watcher",
         "{\"size\":6}", 1},
        {"{\"type\":\"file.*\"}",
         "[{\"field\":\"size\",\"operator\":\"gt\",\"value\":5},{\"field\":\"path\",\"operator\":\"exists\"}]",
         "file.modify", "watcher", "{\"size\":6}", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].trigger);
        CHECK_INT(match(rows[i].trigger, rows[i].conditions, rows[i].type, rows[i].source, rows[i].payload), rows[i].want);
    }
    test_row(NULL);
}

TEST(renders) {
    static const struct {
        const char *action, *want;
    } rows[] = {
        {"{\"type\":\"agent\",\"prompt\":\"see {{payload.path}}\"}",
         "{\"type\":\"agent\",\"prompt\":\"see a b\",\"priority\":0}"},
        {"{\"type\":\"agent\",\"prompt\":\"x\",\"agent\":\"demo\",\"priority\":7}",
         "{\"type\":\"agent\",\"prompt\":\"x\",\"agent\":\"demo\",\"priority\":7}"},
        {"{\"type\":\"notify\",\"message\":\"{{path}}!\"}", "{\"type\":\"notify\",\"message\":\"a b!\"}"},
        {"{\"type\":\"webhook\",\"url\":\"http://h/{{path}}\"}",
         "{\"type\":\"webhook\",\"url\":\"http://h/a%20b\",\"body\":{\"ruleId\":\"r\",\"eventType\":\"file.modify\","
         "\"timestamp\":\"T\",\"payload\":{\"path\":\"a b\"}}}"},
        {"{\"type\":\"webhook\",\"url\":\"http://h/\",\"message\":\"m {{path}}\"}",
         "{\"type\":\"webhook\",\"url\":\"http://h/\",\"body\":{\"ruleId\":\"r\",\"eventType\":\"file.modify\","
         "\"timestamp\":\"T\",\"payload\":{\"path\":\"a b\"},\"message\":\"m a b\"}}"},
    };
    const char *event_text = "{\"type\":\"file.modify\",\"timestamp\":\"T\",\"payload\":{\"path\":\"a b\"}}";
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(event_text, strlen(event_text), NULL, &doc), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512], *out = NULL;
        size_t len = 0;
        test_row(rows[i].action);
        snprintf(text, sizeof text, "{\"id\":\"r\"," TRIGGER ",\"action\":%s}", rows[i].action);
        weft_rule *rule = rule_of(text);
        CHECK_STR(rule->error, "");
        CHECK_INT(weft__rule_render(rule, &(weft_rule_event){"file.modify", "watcher", weft_doc_root(doc)}, &out, &len), 0);
        CHECK_TEXT(out, len, rows[i].want);
        weft_text_free(out, NULL);
        weft__rule_free(rule);
    }
    test_row(NULL);
    weft_doc_free(doc);
}

TEST(every_allocation) {
    const char *text = "{\"id\":\"a\",\"trigger\":{\"pattern\":\"{a,b}/*\"},\"conditions\":[{\"field\":\"x\",\"operator\":"
                       "\"matches\",\"value\":\"y\"}],\"action\":{\"type\":\"webhook\",\"url\":\"http://h/{{x}}\"}}";
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    for (long n = 1; n < 200; n++) {
        test_memory memory;
        weft_rule *rule = NULL;
        test_memory_init(&memory, n);
        int r = weft__rule_new(weft_doc_root(doc), &memory.alloc, &rule);
        bool good = r == 0 && !*rule->error;
        weft__rule_free(rule);
        CHECK_INT(memory.live, 0);
        if (good)
            break;
        CHECK_INT(r, -ENOMEM);
        CHECK(n < 199);
    }
    weft_doc_free(doc);
}

TEST_MAIN(CASE(says_what_is_wrong) CASE(defaults) CASE(matches) CASE(renders) CASE(every_allocation))
