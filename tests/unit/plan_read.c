/* Plans that come from outside: what is one, what is wrong with the others, and where the JSON is in what an agent says. */
#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "plan.h"

#define T(id, needs) "{\"id\":\"" id "\",\"type\":\"testing\",\"description\":\"do " id "\",\"dependencies\":[" needs "]}"

static int read_text(const char *text, const weft_plan_limits *limits, const weft_alloc *alloc, weft_plan **ret, char *why) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(text, strlen(text), alloc, &doc);
    if (r >= 0)
        r = weft__plan_read(weft_doc_root(doc), limits, alloc, ret, why);
    weft_doc_free(doc);
    return r;
}

static void check_order(const weft_plan *plan, const char *want) {
    char is[1024] = "";
    for (size_t i = 0; i < plan->count; i++)
        snprintf(is + strlen(is), sizeof is - strlen(is), "%s%s", i ? " " : "", plan->steps[plan->order[i]].id);
    CHECK_TEXT(is, strlen(is), want);
}

TEST(the_seed_s_shape) {
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL;
    REQUIRE(read_text(
                "{\"plan\":{\"tasks\":[{\"id\":\"task_001\",\"type\":\"code_generation\",\"description\":\"Create React "
                "component\",\"dependencies\":[],\"priority\":1}],\"estimated_time_seconds\":120,"
                "\"explanation\":\"Plan rationale\"}}",
                &(weft_plan_limits){.max_tasks = 10, .time_limit_s = 300, .request = "a component"}, NULL, &plan, why) == 0);
    CHECK_INT(plan->count, 1);
    CHECK_STR(plan->request, "a component");
    CHECK_STR(plan->explanation, "Plan rationale");
    CHECK_STR(plan->steps[0].prompt, "Create React component");
    CHECK_STR(plan->steps[0].title, "Create React component");
    CHECK_INT(plan->steps[0].priority, 1);
    CHECK_INT(plan->estimated_s, 120);
    CHECK_INT(plan->time_limit_s, 300);
    weft__plan_free(plan);
}

TEST(the_stricter_shape_with_its_map) {
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL;
    REQUIRE(read_text("{\"plan_id\":\"plan_0000abcd\",\"user_request\":\"a game\",\"created_at\":\"2026-01-01T00:00:00Z\","
                      "\"tasks\":[{\"id\":\"task_0000000a\",\"type\":\"bug_fix\",\"prompt\":\"Repair the board\","
                      "\"context\":{\"files\":[\"a.c\"]},\"priority\":5,\"constraints\":{\"timeout\":30}},"
                      "{\"id\":\"task_0000000b\",\"type\":\"documentation\",\"prompt\":\"Write it down\",\"priority\":10}],"
                      "\"dependencies\":{\"task_0000000b\":[\"task_0000000a\"]},\"estimated_duration\":90}",
                      NULL, NULL, &plan, why) == 0);
    CHECK_INT(plan->steps[1].need_count, 1);
    CHECK_INT(plan->steps[1].needs[0], 0);
    CHECK_INT(plan->steps[0].timeout_ms, 30000);
    CHECK_STR(plan->steps[0].context, "{\"files\":[\"a.c\"]}");
    CHECK_INT(plan->estimated_s, 90);
    CHECK_STR(plan->request, "a game");
    check_order(plan, "task_0000000a task_0000000b");
    weft__plan_free(plan);
}

TEST(written_and_read_again_it_is_the_same) {
    static const char text[] =
        "{\"user_request\":\"f\\u00fcr \\\"dich\\\"\",\"explanation\":\"because\",\"constraints\":{\"max_tasks\":3,"
        "\"time_limit_seconds\":9},\"tasks\":[" T("a", "") "," T(
            "b", "\"a\",\"a\"") ",{\"id\":\"c\",\"type\":\"x\",\"description"
                                "\":\"short\",\"prompt\":\"long\",\"context\":{\"k\":1},\"dependencies\":[\"b\",\"a\"],"
                                "\"priority\":7,"
                                "\"constraints\":{\"timeout\":5}}]}";
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL, *again = NULL;
    weft_buf one = {0}, two = {0};
    REQUIRE(read_text(text, NULL, NULL, &plan, why) == 0);
    CHECK(weft__buf_put(&one, NULL, "{", 1) == 0 && weft__plan_write(plan, NULL, &one) == 0);
    CHECK(weft__buf_put(&one, NULL, "}", 2) == 0);
    REQUIRE(read_text(weft__buf_head(&one), NULL, NULL, &again, why) == 0);
    CHECK(weft__buf_put(&two, NULL, "{", 1) == 0 && weft__plan_write(again, NULL, &two) == 0);
    CHECK(weft__buf_put(&two, NULL, "}", 2) == 0);
    CHECK_STR(weft__buf_head(&two), weft__buf_head(&one));
    CHECK_INT(again->steps[1].need_count, 1);
    CHECK_STR(again->steps[2].prompt, "long");
    CHECK_INT(again->max_tasks, 3);
    weft__buf_done(&one, NULL);
    weft__buf_done(&two, NULL);
    weft__plan_free(plan);
    weft__plan_free(again);
}

TEST(the_higher_priority_is_first_among_those_that_could_be) {
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL;
    REQUIRE(
        read_text("{\"tasks\":[" T("a", "") "," T(
                      "b", "") ",{\"id\":\"c\",\"type\":\"t\",\"prompt\":\"p\",\"priority\":2},"
                               "{\"id\":\"d\",\"type\":\"t\",\"prompt\":\"p\",\"priority\":9,\"dependencies\":[\"b\"]}]}",
                  NULL, NULL, &plan, why) == 0);
    check_order(plan, "c a b d");
    weft__plan_free(plan);
}

TEST(what_is_wrong_is_said) {
    static const struct {
        const char *text, *why;
        int64_t max_tasks;
    } rows[] = {
        {"[]", "it is not an object", 0},
        {"{}", "it has no list of tasks", 0},
        {"{\"tasks\":[]}", "it has no tasks", 0},
        {"{\"tasks\":[1]}", "task 1 is not an object", 0},
        {"{\"tasks\":[{\"type\":\"t\",\"prompt\":\"p\"}]}", "task 1 has no id", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"prompt\":\"p\"}]}", "task 1 has no type", 0},
        {"{\"tasks\":[{\"id\":\"--help\",\"type\":\"t\",\"prompt\":\"p\"}]}", "task 1: its id is not 1 to 64 letters", 0},
        {"{\"tasks\":[{\"id\":\"a/../b\",\"type\":\"t\",\"prompt\":\"p\"}]}", "task 1: its id is not 1 to 64 letters", 0},
        {"{\"tasks\":[{\"id\":\"a\\u0000\",\"type\":\"t\",\"prompt\":\"p\"}]}", "task 1: its id is not 1 to 64 letters", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":7,\"prompt\":\"p\"}]}", "task 1: its type is not", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":\"t\"}]}", "a has neither a description nor a prompt", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"description\":\" \\n\"}]}", "a has neither", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":3}]}", "a: prompt is not a text", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":\"p\",\"priority\":1.5}]}", "a: priority is not a whole", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":\"p\",\"context\":[]}]}", "a: context is not an object", 0},
        {"{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":\"p\",\"dependencies\":\"b\"}]}", "dependencies is not a list",
         0},
        {"{\"tasks\":[" T("a", "") "," T("a", "") "]}", "there are two tasks a", 0},
        {"{\"tasks\":[" T("a", "\"z\"") "]}", "a depends on z, and there is no such task", 0},
        {"{\"tasks\":[" T("a", "7") "]}", "a: a dependency is not the id of a task", 0},
        {"{\"tasks\":[" T("a", "") "],\"dependencies\":{\"q\":[]}}", "dependencies names", 0},
        {"{\"tasks\":[" T("a", "") "],\"dependencies\":[]}", "dependencies is not an object", 0},
        {"{\"tasks\":[" T("a", "\"a\"") "]}", "in a circle: a -> a", 0},
        {"{\"tasks\":[" T("x", "\"c\"") "," T("a", "\"b\"") "," T("b", "\"c\"") "," T("c", "\"a\"") "]}",
         "in a circle: c -> a -> b -> c", 0},
        {"{\"tasks\":[" T("a", "") "," T("b", "") "]}", "it has 2 tasks, and max_tasks is 1", 1},
        {"{\"tasks\":[" T("a", "") "," T("b", "") "],\"constraints\":{\"max_tasks\":1}}", "max_tasks is 1", 5},
        {"{\"tasks\":[" T("a", "") "],\"constraints\":{\"max_tasks\":0}}", "max_tasks is not a whole number", 0},
        {"{\"tasks\":[" T("a", "") "],\"constraints\":{\"time_limit_seconds\":-1}}", "time_limit_seconds is not", 0},
        {"{\"tasks\":[" T("a", "") "],\"explanation\":{}}", "explanation is not a text", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WEFT_PLAN_WHY] = "";
        weft_plan *plan = NULL;
        CHECK_INT(read_text(rows[i].text, &(weft_plan_limits){.max_tasks = rows[i].max_tasks}, NULL, &plan, why), -EINVAL);
        if (!CHECK(strstr(why, rows[i].why) != NULL))
            fprintf(stderr, "  %s: %s\n", rows[i].text, why);
        CHECK(plan == NULL);
    }
}

/* More than the limits of a plan's parts. */
TEST(too_much_is_refused) {
    char why[WEFT_PLAN_WHY];
    weft_plan *plan = NULL;
    size_t size = 2 * WEFT_PLAN_BYTES, len = 0;
    char *text = malloc(size);
    len = (size_t) snprintf(text, size, "{\"tasks\":[");
    for (int i = 0; i <= WEFT_PLAN_STEPS; i++)
        len +=
            (size_t) snprintf(text + len, size - len, "%s{\"id\":\"t%d\",\"type\":\"t\",\"prompt\":\"p\"}", i ? "," : "", i);
    snprintf(text + len, size - len, "]}");
    CHECK_INT(read_text(text, NULL, NULL, &plan, why), -EINVAL);
    CHECK_TEXT(why, strlen(why), "it has 101 tasks, and max_tasks is 100");

    len = (size_t) snprintf(text, size, "{\"tasks\":[");
    for (int i = 0; i < 60; i++) {
        len += (size_t) snprintf(text + len, size - len,
                                 "%s{\"id\":\"t%d\",\"type\":\"t\",\"prompt\":\"p\",\"dependencies\":[", i ? "," : "", i);
        for (int j = 0; j < i; j++)
            len += (size_t) snprintf(text + len, size - len, "%s\"t%d\"", j ? "," : "", j);
        len += (size_t) snprintf(text + len, size - len, "]}");
    }
    snprintf(text + len, size - len, "]}");
    CHECK_INT(read_text(text, NULL, NULL, &plan, why), -EINVAL);
    CHECK_TEXT(why, strlen(why), "there are more than 1000 dependencies");

    len = (size_t) snprintf(text, size, "{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":\"");
    memset(text + len, 'x', WEFT_PLAN_TEXT + 1);
    strcpy(text + len + WEFT_PLAN_TEXT + 1, "\"}]}");
    CHECK_INT(read_text(text, NULL, NULL, &plan, why), -EINVAL);
    CHECK_TEXT(why, strlen(why), "a: prompt is longer than 32768 bytes");

    memset(text + len, 'x', WEFT_PLAN_BYTES + 1);
    strcpy(text + len + WEFT_PLAN_BYTES + 1, "\"}]}");
    CHECK_INT(read_text(text, NULL, NULL, &plan, why), -EINVAL);
    CHECK_TEXT(why, strlen(why), "it is longer than 262144 bytes");
    free(text);
}

/* ---- what agents say ---- */

#define PLAN "{\"tasks\":[" T("a", "") "]}"

TEST(the_json_in_a_text) {
    static const struct {
        const char *text, *found; /* NULL: nothing */
    } rows[] = {
        {PLAN, PLAN},
        {"Here it is:\n```json\n" PLAN "\n```\nGood luck!", PLAN},
        {"```\n" PLAN "\n```", PLAN},
        {"  ```json\n" PLAN "\n  ```", PLAN},
        {"First look: {\"not\": \"it\"}. Then " PLAN " and {\"tasks\":[]}", PLAN},
        {"```json\n{\"steps\":1}\n```\n```json\n" PLAN "\n```", PLAN},
        {"The set {a, b} and \"a quote { in text\" and " PLAN, PLAN},
        {"```json\n{\"tasks\": [broken\n```\n" PLAN, PLAN},
        {"{\"plan\":" PLAN "}", "{\"plan\":" PLAN "}"},
        {"{\"a\":\"}\\\"{\",\"tasks\":[]}", "{\"a\":\"}\\\"{\",\"tasks\":[]}"},
        {"", NULL},
        {"I cannot do that.", NULL},
        {"{\"tasks\":[1,2", NULL},
        {"{tasks: [1]}", NULL},
        {"```json\n", NULL},
        {"[" PLAN "]", PLAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *doc = NULL;
        int r = weft__plan_find((weft_bytes){rows[i].text, strlen(rows[i].text)}, NULL, &doc);
        CHECK_INT(r, rows[i].found ? 0 : -ENOENT);
        if (doc)
            CHECK_TEXT(weft_doc_root(doc)->text, weft_doc_root(doc)->len, rows[i].found);
        weft_doc_free(doc);
    }
}

/* Braces that never close are not looked at for ever, and what is behind them is not reached: that is the price. */
TEST(a_text_of_braces_ends) {
    size_t len = 2 << 20;
    char *text = malloc(len);
    weft_doc *doc = NULL;
    memset(text, '{', len);
    CHECK_INT(weft__plan_find((weft_bytes){text, len}, NULL, &doc), -ENOENT);
    memset(text, '\n', len);
    memcpy(text + len - sizeof PLAN + 1, PLAN, sizeof PLAN - 1);
    CHECK_INT(weft__plan_find((weft_bytes){text, len}, NULL, &doc), 0);
    weft_doc_free(doc);
    free(text);
}

TEST(every_allocation_fails_once) {
    static const char text[] = "{\"constraints\":{\"max_tasks\":3},\"tasks\":[" T(
        "a", "") ",{\"id\":\"b\",\"type\":\"x\","
                 "\"prompt\":\"\\u00e9\",\"context\":{\"k\":1},\"dependencies\":[\"a\"]}]}";
    test_memory memory;
    long n = 1;
    bool reached = true;
    for (; reached && n < 1000; n++) {
        char why[WEFT_PLAN_WHY];
        weft_plan *plan = NULL;
        weft_doc *doc = NULL;
        test_memory_init(&memory, n);
        int r = weft__plan_find((weft_bytes){text, strlen(text)}, &memory.alloc, &doc);
        if (r >= 0)
            r = weft__plan_read(weft_doc_root(doc), &(weft_plan_limits){.request = "wish"}, &memory.alloc, &plan, why);
        reached = memory.count >= n;
        CHECK_INT(r, reached ? -ENOMEM : 0);
        weft__plan_free(plan);
        weft_doc_free(doc);
        CHECK_INT(memory.live, 0);
    }
    CHECK(n > 8 && n < 1000);
}

TEST_MAIN(CASE(the_seed_s_shape) CASE(the_stricter_shape_with_its_map) CASE(written_and_read_again_it_is_the_same)
              CASE(the_higher_priority_is_first_among_those_that_could_be) CASE(what_is_wrong_is_said)
                  CASE(too_much_is_refused) CASE(the_json_in_a_text) CASE(a_text_of_braces_ends)
                      CASE(every_allocation_fails_once))
