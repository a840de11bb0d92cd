/* The planner's dialect: its methods, their errors and what they answer. A method is a row here and a handler in the file
 * that is named for what it is about. */
#include "planner.h"

#include "reply.h"
#include "schemas.h"
#include "transport.h"

/* clang-format off */
#define S_STRINGS S_LIST(S_STRING)
#define S_OUTPUT S_OF( \
    S_IS("code", S_STRING) "," \
    S_IS("explanation", S_STRING) "," \
    S_IS("files_modified", S_STRINGS) "," \
    S_IS("files_created", S_STRINGS), \
    "\"code\",\"explanation\",\"files_modified\",\"files_created\"")
#define S_METADATA S_OF( \
    S_IS("execution_time_ms", S_COUNT) "," \
    S_IS("tokens_used", S_COUNT) "," \
    S_IS("model", S_STRING) "," \
    S_IS("task_id", S_STRING), \
    "\"execution_time_ms\"")
#define S_EXECUTED S_OF( \
    S_IS("status", "{\"enum\":[\"success\",\"failure\",\"partial\",\"timeout\"]}") "," \
    S_IS("output", S_OUTPUT) "," \
    S_IS("metadata", S_METADATA) "," \
    S_IS("task_id", S_STRING) "," \
    S_IS("metrics", S_METADATA), \
    "\"status\",\"output\",\"metadata\"")
#define S_HOLDER S_OF( \
    S_IS("role", S_STRING) "," \
    S_IS("holder", S_STRING) "," \
    S_IS("driver", S_STRING) "," \
    S_IS("registered", S_BOOL) "," \
    S_IS("running", S_COUNT) "," \
    S_IS("concurrency", S_COUNT_OR_NULL) "," \
    S_IS("task_types", "{\"type\":[\"array\",\"null\"],\"items\":" S_STRING "}"), \
    "\"role\",\"holder\",\"driver\",\"registered\",\"running\",\"concurrency\",\"task_types\"")
/* clang-format on */

static const weft_error_row execute_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_ERROR_ROWS,
    {WEFT_CANCELLED, "Request cancelled", "taskCancelled"},
    {413, "The prompt is too long", "tooLarge"},
    {409, "The idempotency key was used for other params", "idempotencyKeyReused"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row role_errors[] = {WEFT_ERROR_PARAMS, {0}};

static const weft_method methods[] = {
    /* planner_execute.c */
    {.name = "execute_task",
     .handler = weft__planner_on_execute,
     .params = weft__planner_execute_params,
     .help = "give a task to whoever holds the role of the executor, and wait for what comes of it",
     .scope = WEFT_WORK,
     .result = S_EXECUTED,
     .errors = execute_errors,
     .flags = WEFT_CHANGES},
    /* planner_plan.c: create_plan, run_plan */
    /* planner_check.c: validate_code */
    /* planner_context.c: update_context */
    /* planner_role.c */
    {.name = "role.list",
     .handler = weft__planner_on_roles,
     .params = weft__planner_roles_params,
     .help = "who holds the roles of planner and executor, and how busy they are",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("holders", S_LIST(S_HOLDER)), "\"holders\""),
     .errors = role_errors},
    {0},
};

/* A program that starts the hub and speaks to it by its standard input and output. */
static bool is_planner_endpoint(const weft_scheme *scheme, const char *path) {
    (void) path;
    return (scheme->flags & WEFT_OUR_STDIO) != 0;
}

const weft_dialect weft__planner = {.name = "planner", .methods = methods, .endpoint = is_planner_endpoint};
