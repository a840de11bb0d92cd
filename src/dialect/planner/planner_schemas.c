/* The texts. */
#include "planner_schemas.h"

#include "schemas.h"

/* clang-format off */
#define S_MAYBE(type) "{\"type\":[\"" type "\",\"null\"]}"
#define S_MAYBE_TEXTS "{\"type\":[\"array\",\"null\"],\"items\":" S_STRING "}"
#define S_WITH(properties) "{\"properties\":{" properties "}}"
#define S_MAYBE_WITH(properties) "{\"type\":[\"object\",\"null\"],\"properties\":{" properties "}}"
/* At least 1; of a number that is too large the largest that is allowed is taken, or a handler says so. */
#define S_MAYBE_POSITIVE "{\"type\":[\"integer\",\"null\"],\"minimum\":1}"

#define S_TASK_CONTEXT S_MAYBE_WITH( \
    S_IS("files", S_MAYBE_TEXTS) "," \
    S_IS("current_directory", S_MAYBE("string")) "," \
    S_IS("language", S_MAYBE("string")) "," \
    S_IS("framework", S_MAYBE("string")) "," \
    S_IS("dependencies", S_MAYBE_TEXTS) "," \
    S_IS("constraints", "{\"type\":[\"array\",\"object\",\"string\",\"null\"]}"))
#define S_TASK_CONSTRAINTS S_MAYBE_WITH( \
    S_IS("maxTokens", S_MAYBE("integer")) "," \
    S_IS("timeout", S_MAYBE("integer")) "," \
    S_IS("style", S_MAYBE("string")))

const char weft__planner_execute_schema[] = S_WITH(
    S_IS("context", S_TASK_CONTEXT) ","
    S_IS("options", S_WITH(
        S_IS("language", S_MAYBE("string")) ","
        S_IS("framework", S_MAYBE("string")) ","
        S_IS("style_guide", S_MAYBE("string")) ","
        S_IS("timeout_ms", "{\"type\":\"integer\",\"minimum\":1}") ","
        S_IS("max_retries", S_MAYBE("integer")) ","
        S_IS("stream", S_MAYBE("boolean")))) ","
    S_IS("constraints", S_TASK_CONSTRAINTS));

const char weft__planner_create_schema[] = S_WITH(
    S_IS("current_state", S_WITH(
        S_IS("completed_tasks", S_MAYBE("array")) ","
        S_IS("pending_tasks", S_MAYBE("array")) ","
        S_IS("context", S_MAYBE("object")))) ","
    S_IS("constraints", S_WITH(
        S_IS("max_tasks", S_MAYBE_POSITIVE) ","
        S_IS("time_limit_seconds", S_MAYBE_POSITIVE))) ","
    S_IS("options", S_WITH(
        S_IS("timeout_ms", "{\"type\":\"integer\",\"minimum\":1}"))));

/* A plan may also be in a member "plan" of what is called the plan, as create_plan answers it. */
#define S_PLAN_TASK "{\"type\":\"object\",\"properties\":{" \
    S_IS("id", S_STRING) "," \
    S_IS("type", S_STRING) "," \
    S_IS("description", S_MAYBE("string")) "," \
    S_IS("prompt", S_MAYBE("string")) "," \
    S_IS("dependencies", S_MAYBE_TEXTS) "," \
    S_IS("priority", S_MAYBE("integer")) "," \
    S_IS("context", S_TASK_CONTEXT) "," \
    S_IS("constraints", S_TASK_CONSTRAINTS) "}}"
#define S_PLAN_MEMBERS \
    S_IS("plan_id", S_MAYBE("string")) "," \
    S_IS("created_at", S_MAYBE("string")) "," \
    S_IS("user_request", S_MAYBE("string")) "," \
    S_IS("explanation", S_MAYBE("string")) "," \
    S_IS("tasks", S_LIST(S_PLAN_TASK)) "," \
    S_IS("dependencies", "{\"type\":[\"object\",\"null\"],\"additionalProperties\":" S_MAYBE_TEXTS "}") "," \
    S_IS("constraints", S_MAYBE("object")) "," \
    S_IS("metadata", S_MAYBE("object"))

const char weft__planner_run_schema[] = S_WITH(
    S_IS("plan", S_WITH(
        S_PLAN_MEMBERS ","
        S_IS("plan", S_MAYBE_WITH(S_PLAN_MEMBERS)))) ","
    S_IS("options", S_WITH(
        S_IS("max_tasks", S_MAYBE_POSITIVE) ","
        S_IS("time_limit_seconds", S_MAYBE_POSITIVE) ","
        S_IS("stream", S_MAYBE("boolean")) ","
        S_IS("wait", S_MAYBE("boolean")))));

const char weft__planner_validate_schema[] = S_WITH(S_IS("rules", S_MAYBE_TEXTS));

const char weft__planner_register_schema[] = S_WITH(
    S_IS("concurrency", S_MAYBE_POSITIVE) ","
    S_IS("task_types", S_MAYBE_TEXTS));
/* clang-format on */
