/* The schemas of the planner's rows and of what executors answer: they accept whatever the stricter schemas of the protocol
 * accept, and the seed's forms, and refuse what nobody could use. Documents are made at random from the stricter schemas. */
#include <stdarg.h>
#include <stdlib.h>

#include <weft/weft.h>

#include "answer_shape.h"
#include "harness.h"
#include "planner_schemas.h"

#define TRIES 4000
#define STRICT "../shared/data/planner/"

/* ---- documents at random, by a schema ---- */

typedef struct maker {
    char text[65536];
    size_t len;
    uint64_t state;
} maker;

static unsigned pick(maker *m, unsigned below) {
    m->state = m->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned) (m->state >> 33) % below;
}

static void put(maker *m, const char *format, ...) WEFT_PRINTF(2, 3);
static void put(maker *m, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(m->text + m->len, sizeof m->text - m->len, format, args);
    va_end(args);
    if (n > 0 && m->len + (size_t) n < sizeof m->text)
        m->len += (size_t) n;
}

static void put_anything(maker *m) {
    static const char *const some[] = {"null", "true", "7", "-1.5e3", "\"x\"", "[]", "[null,{}]", "{}", "{\"a\":[1]}"};
    put(m, "%s", some[pick(m, 9)]);
}

static void put_string(maker *m, const weft_json *schema) {
    static const char *const some[] = {"", "x", "a.c", "../a", "-rf", "\\n\\t", "\\u65e5\\u672c", "with blanks in between"};
    const char *pattern = weft_get_str(schema, "pattern", "");
    if (*pattern) { /* "^task_[0-9a-f]{8}$" and the like */
        put(m, "\"%.*s%08x\"", (int) strcspn(pattern + 1, "["), pattern + 1, pick(m, 1u << 31));
        return;
    }
    put(m, "\"%s", some[pick(m, 8)]);
    for (int64_t i = weft_get_int(schema, "minLength", 0); i > 0; i--)
        put(m, "%s", pick(m, 5) ? "y" : "\\u2602");
    put(m, "\"");
}

static void put_number(maker *m, bool whole) {
    static const char *const some[] = {"0", "1", "5", "10", "-3", "30.0", "100000000000000000000", "0.5", "1e2"};
    put(m, "%s", some[pick(m, whole ? 7 : 9)]);
}

static void put_by(maker *m, const weft_json *root, const weft_json *schema);

static bool is_required(const weft_json *schema, const weft_iter *member) {
    weft_json names = weft_get(schema, "required");
    for (weft_iter it = weft_iterate(&names); names.text && weft_next(&it);)
        if (weft_name_is(member, weft_str_of(&it.value, "")))
            return true;
    return false;
}

/* With members that it does not know as well. */
static void put_object(maker *m, const weft_json *root, const weft_json *schema) {
    weft_json properties = weft_get(schema, "properties"), more = weft_get(schema, "additionalProperties");
    const char *comma = "";
    put(m, "{");
    for (weft_iter it = weft_iterate(&properties); properties.text && weft_next(&it);) {
        if (!is_required(schema, &it) && pick(m, 3) == 0)
            continue;
        put(m, "%s%.*s:", comma, (int) it.name.len, it.name.text);
        put_by(m, root, &it.value);
        comma = ",";
    }
    if (pick(m, 3) == 0) {
        put(m, "%s\"unknown\":", comma);
        if (more.text)
            put_by(m, root, &more);
        else
            put_anything(m);
    }
    put(m, "}");
}

static void put_array(maker *m, const weft_json *root, const weft_json *schema) {
    weft_json items = weft_get(schema, "items");
    unsigned count = pick(m, 4);
    put(m, "[");
    for (unsigned i = 0; i < count; i++) {
        put(m, "%s", i ? "," : "");
        put_by(m, root, &items);
    }
    put(m, "]");
}

static void put_by(maker *m, const weft_json *root, const weft_json *schema) {
    weft_json values = weft_get(schema, "enum"), target;
    const char *ref = weft_get_str(schema, "$ref", ""), *type = weft_get_str(schema, "type", "");
    if (*ref) {
        target = weft_pointer(root, ref + 1);
        put_by(m, root, &target);
    } else if (values.text) {
        weft_json value = weft_at(&values, pick(m, (unsigned) weft_count(&values)));
        put(m, "%.*s", (int) value.len, value.text);
    } else if (strcmp(type, "object") == 0)
        put_object(m, root, schema);
    else if (strcmp(type, "array") == 0)
        put_array(m, root, schema);
    else if (strcmp(type, "string") == 0)
        put_string(m, schema);
    else if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        put_number(m, *type == 'i');
    else
        put_anything(m);
}

/* ---- comparing ---- */

static weft_schema *compile(const char *text) {
    weft_schema *schema = NULL;
    CHECK_INT(weft_schema_compile(text, strlen(text), NULL, &schema, NULL), 0);
    return schema;
}

static int check_with(const weft_schema *schema, const char *text, char why[WEFT_SHAPE_WHY]) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(text, strlen(text), NULL, &doc);
    if (CHECK_INT(r, 0))
        r = weft__shape_check(schema, weft_doc_root(doc), why);
    weft_doc_free(doc);
    return r;
}

/* Whatever strict accepts, ours does: in a member of that name, or as it is. */
static void compare(const char *strict_text, const char *our_text, const char *member) {
    static maker m;
    weft_schema *strict = compile(strict_text), *ours = compile(our_text);
    weft_doc *doc = NULL;
    size_t accepted = 0;
    REQUIRE(strict && ours && weft_doc_parse(strict_text, strlen(strict_text), NULL, &doc) >= 0);
    m.state = 11;
    for (int i = 0; i < TRIES; i++) {
        char why[WEFT_SHAPE_WHY] = "", wrapped[sizeof m.text + 64];
        m.len = 0;
        put_by(&m, weft_doc_root(doc), weft_doc_root(doc));
        if (check_with(strict, m.text, why) < 0)
            continue;
        accepted++;
        if (member)
            snprintf(wrapped, sizeof wrapped, "{\"%s\":%s}", member, m.text);
        else
            snprintf(wrapped, sizeof wrapped, "%s", m.text);
        if (!CHECK_INT(check_with(ours, wrapped, why), 0)) {
            printf("%s\n%s\n", why, wrapped);
            break;
        }
    }
    CHECK(accepted > TRIES / 20); /* otherwise this shows nothing */
    weft_doc_free(doc);
    weft_schema_free(strict);
    weft_schema_free(ours);
}

static char *read_strict(const char *name) {
    char path[128];
    size_t len;
    snprintf(path, sizeof path, STRICT "%s", name);
    return test_file(path, &len);
}

TEST(whatever_the_stricter_task_is) {
    char *task = read_strict("1-task-schema.json");
    if (task)
        compare(task, weft__planner_execute_schema, NULL);
    else
        test_skip("needs " STRICT);
    free(task);
}

/* It refers to the task's schema as one of its own definitions. */
TEST(whatever_the_stricter_plan_is) {
    char *task = read_strict("1-task-schema.json"), *plan = read_strict("2-plan-schema.json"), *both = NULL;
    if (!task || !plan)
        test_skip("needs " STRICT);
    else if (asprintf(&both, "{\"definitions\":{\"Task\":%s},%s", task, strchr(plan, '{') + 1) > 0)
        compare(both, weft__planner_run_schema, "plan");
    free(both);
    free(task);
    free(plan);
}

TEST(whatever_the_stricter_result_is) {
    char *result = read_strict("3-result-schema.json");
    if (result)
        compare(result, weft__executed_shape, NULL);
    else
        test_skip("needs " STRICT);
    free(result);
}

/* ---- by hand ---- */

#define EXECUTE weft__planner_execute_schema
#define CREATE weft__planner_create_schema
#define RUN weft__planner_run_schema

TEST(what_fits_and_what_does_not) {
    static const struct {
        const char *schema, *text, *why; /* NULL: it fits */
    } rows[] = {
        /* the seed's */
        {EXECUTE,
         "{\"task_type\":\"analysis\",\"prompt\":\"p\",\"context\":{\"files\":[\"a.js\"],\"current_directory\":\"/p\","
         "\"dependencies\":[\"react\"],\"constraints\":[]},\"options\":{\"language\":\"javascript\",\"framework\":\"react\","
         "\"style_guide\":\"airbnb\"}}",
         NULL},
        {CREATE,
         "{\"user_request\":\"r\",\"current_state\":{\"completed_tasks\":[],\"pending_tasks\":[],\"context\":{}},"
         "\"constraints\":{\"max_tasks\":10,\"time_limit_seconds\":300}}",
         NULL},
        {RUN,
         "{\"plan\":{\"tasks\":[{\"id\":\"task_001\",\"type\":\"code_generation\",\"description\":\"d\",\"dependencies\":[],"
         "\"priority\":1}],\"estimated_time_seconds\":120,\"explanation\":\"e\"}}",
         NULL},
        {RUN, "{\"plan\":{\"plan\":{\"tasks\":[{\"id\":\"a\",\"type\":\"t\",\"prompt\":\"p\"}]}}}", NULL},
        {weft__planner_validate_schema, "{\"code\":\"c\",\"language\":\"l\",\"rules\":[\"no-console\"]}", NULL},
        {weft__planner_validate_schema, "{\"rules\":null}", NULL},
        {weft__executed_shape,
         "{\"status\":\"success\",\"output\":{\"code\":\"c\",\"explanation\":\"e\",\"files_modified\":[],"
         "\"files_created\":[]},\"metadata\":{\"execution_time_ms\":1234,\"tokens_used\":5678,\"model\":\"m\"}}",
         NULL},
        /* absent in another way */
        {EXECUTE, "{\"options\":{\"language\":null,\"stream\":null},\"context\":{\"files\":null}}", NULL},
        /* wrong */
        {EXECUTE, "{\"context\":{\"files\":\"a.js\"}}", "/context/files must be an array or null"},
        {EXECUTE, "{\"context\":{\"dependencies\":[{}]}}", "/context/dependencies/0 must be a string"},
        {EXECUTE, "{\"options\":{\"stream\":1}}", "/options/stream must be a boolean or null"},
        {EXECUTE, "{\"options\":{\"max_retries\":\"3\"}}", "/options/max_retries must be an integer or null"},
        {EXECUTE, "{\"options\":{\"timeout_ms\":0}}", "/options/timeout_ms must be at least 1"},
        {EXECUTE, "{\"constraints\":{\"timeout\":\"5\"}}", "/constraints/timeout must be an integer or null"},
        {CREATE, "{\"constraints\":{\"max_tasks\":0.5}}", "/constraints/max_tasks must be an integer or null"},
        {CREATE, "{\"current_state\":{\"pending_tasks\":{}}}", "/current_state/pending_tasks must be an array or null"},
        {RUN, "{\"plan\":{\"tasks\":[7]}}", "/plan/tasks/0 must be an object"},
        {RUN, "{\"plan\":{\"tasks\":{}}}", "/plan/tasks must be an array"},
        {RUN, "{\"plan\":{\"plan\":{\"tasks\":[{\"id\":7}]}}}", "/plan/plan/tasks/0/id must be a string"},
        {RUN, "{\"plan\":{\"dependencies\":{\"a\":\"b\"}}}", "/plan/dependencies/a must be an array or null"},
        {RUN, "{\"options\":{\"wait\":\"no\"}}", "/options/wait must be a boolean or null"},
        {weft__planner_validate_schema, "{\"rules\":[\"a\",7]}", "/rules/1 must be a string"},
        {weft__planner_register_schema, "{\"task_types\":[[]]}", "/task_types/0 must be a string"},
        {weft__executed_shape, "7", "it must be an object (/type)"},
        {weft__executed_shape, "{\"status\":\"success\"}", "it has no \"output\" (/required)"},
        {weft__executed_shape, "{\"status\":\"done\",\"output\":{}}", "/status must be one of"},
        {weft__executed_shape, "{\"status\":\"success\",\"output\":{\"files_created\":[\"a\\u0000b\"]}}",
         "/output/files_created/0 must not fit"},
        {weft__executed_shape, "{\"status\":\"success\",\"output\":{\"warnings\":[null]}}", "/output/warnings/0 must be a"},
        {weft__executed_shape, "{\"status\":\"success\",\"output\":{},\"metadata\":[]}", "/metadata must be an object"},
        {weft__validated_shape, "{\"valid\":true}", NULL},
        {weft__validated_shape, "{\"valid\":false,\"issues\":[{\"message\":\"m\",\"line\":1}]}", NULL},
        {weft__validated_shape, "{}", "it has no \"valid\""},
        {weft__validated_shape, "{\"valid\":1}", "/valid must be a boolean"},
        {weft__validated_shape, "{\"valid\":true,\"issues\":[{\"line\":1}]}", "/issues/0 has no \"message\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WEFT_SHAPE_WHY] = "";
        weft_schema *schema = compile(rows[i].schema);
        test_row(rows[i].text);
        CHECK_INT(check_with(schema, rows[i].text, why) < 0, rows[i].why != NULL);
        if (rows[i].why && !CHECK(strncmp(why, rows[i].why, strlen(rows[i].why)) == 0))
            printf("  %s\n", why);
        weft_schema_free(schema);
    }
    test_row(NULL);
}

/* A long answer is checked in one go: no limit of the check is in its way. */
TEST(a_long_answer_is_checked) {
    size_t len = (size_t) 16 << 20;
    char *text = malloc(len + 64), why[WEFT_SHAPE_WHY];
    int n = snprintf(text, 64, "{\"status\":\"success\",\"output\":{\"code\":\"");
    memset(text + n, 'x', len);
    strcpy(text + n + len, "\"}}");
    weft_schema *schema = compile(weft__executed_shape);
    CHECK_INT(check_with(schema, text, why), 0);
    weft_schema_free(schema);
    free(text);
}

TEST_MAIN(CASE(whatever_the_stricter_task_is) CASE(whatever_the_stricter_plan_is) CASE(whatever_the_stricter_result_is)
              CASE(what_fits_and_what_does_not) CASE(a_long_answer_is_checked))
