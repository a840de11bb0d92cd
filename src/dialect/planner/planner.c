/* The planner's dialect: its methods, their errors and what they answer. A method is a row here and a handler in the file
 * that is named for what it is about. */
#include "planner.h"

#include "planner_schemas.h"
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
#define S_ACCEPTED S_OF(S_IS("accepted", S_BOOL), "\"accepted\"")
#define S_HOLDER S_OF( \
    S_IS("role", S_STRING) "," \
    S_IS("holder", S_STRING) "," \
    S_IS("driver", S_STRING) "," \
    S_IS("registered", S_BOOL) "," \
    S_IS("running", S_COUNT) "," \
    S_IS("concurrency", S_COUNT_OR_NULL) "," \
    S_IS("task_types", "{\"type\":[\"array\",\"null\"],\"items\":" S_STRING "}"), \
    "\"role\",\"holder\",\"driver\",\"registered\",\"running\",\"concurrency\",\"task_types\"")
#define S_ISSUE S_OF( \
    S_IS("rule", S_STRING) "," \
    S_IS("severity", "{\"enum\":[\"error\",\"warning\",\"info\"]}") "," \
    S_IS("line", S_COUNT) "," \
    S_IS("column", S_COUNT) "," \
    S_IS("message", S_STRING), \
    "\"rule\",\"severity\",\"line\",\"column\",\"message\"")
#define S_VALIDATED S_OF( \
    S_IS("valid", S_BOOL) "," \
    S_IS("issues", S_LIST(S_ISSUE)) "," \
    S_IS("checkers", S_STRINGS) "," \
    S_IS("unsupported_rules", S_STRINGS) "," \
    S_IS("truncated", S_TRUE), \
    "\"valid\",\"issues\",\"checkers\",\"unsupported_rules\"")
#define S_UPDATED S_OF( \
    S_IS("status", "{\"const\":\"success\"}") "," \
    S_IS("version", S_COUNT) "," \
    S_IS("delivered", S_COUNT) "," \
    S_IS("failed", S_STRINGS), \
    "\"status\",\"version\",\"delivered\",\"failed\"")
#define S_ENTRY S_OF( \
    S_IS("context_type", "{\"enum\":[\"file\",\"dependency\",\"state\"]}") "," \
    S_IS("key", S_STRING) "," \
    S_IS("data", "{}") "," \
    S_IS("version", S_COUNT), \
    "\"context_type\",\"key\",\"data\",\"version\"")
#define S_CONTEXT S_OF( \
    S_IS("version", S_COUNT) "," \
    S_IS("entries", S_LIST(S_ENTRY)), \
    "\"version\",\"entries\"")
#define S_PLANNED_TASK S_OF( \
    S_IS("id", S_STRING) "," \
    S_IS("type", S_STRING) "," \
    S_IS("description", S_STRING) "," \
    S_IS("prompt", S_STRING) "," \
    S_IS("dependencies", S_STRINGS) "," \
    S_IS("priority", S_COUNT) "," \
    S_IS("context", S_OBJECT) "," \
    S_IS("constraints", S_OBJECT), \
    "\"id\",\"type\",\"description\",\"dependencies\",\"priority\"")
#define S_PLANNED S_OF( \
    S_IS("plan_id", S_STRING) "," \
    S_IS("created_at", S_TIME) "," \
    S_IS("user_request", S_STRING) "," \
    S_IS("tasks", S_LIST(S_PLANNED_TASK)) "," \
    S_IS("estimated_time_seconds", S_COUNT) "," \
    S_IS("explanation", S_STRING) "," \
    S_IS("constraints", S_OBJECT), \
    "\"plan_id\",\"created_at\",\"tasks\",\"estimated_time_seconds\"")
#define S_PLAN_RESULT S_OF( \
    S_IS("task_id", S_STRING) "," \
    S_IS("status", S_STRING) "," \
    S_IS("output", S_OBJECT) "," \
    S_IS("error", S_OBJECT) "," \
    S_IS("metadata", S_OBJECT), \
    "\"task_id\",\"status\",\"output\",\"metadata\"")
#define S_PLAN_RAN S_OF( \
    S_IS("plan_id", S_STRING) "," \
    S_IS("status", "{\"enum\":[\"success\",\"partial\",\"failure\",\"timeout\",\"cancelled\",\"running\"]}") "," \
    S_IS("results", S_LIST(S_PLAN_RESULT)) "," \
    S_IS("output", S_STRING) "," \
    S_IS("metadata", S_OBJECT), \
    "\"plan_id\",\"status\",\"results\",\"metadata\"")
/* clang-format on */

static const weft_error_row execute_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_GATE_ROWS,
    PLANNER_ERROR_ROWS,
    {WEFT_CANCELLED, "Request cancelled", "taskCancelled"},
    {PLANNER_FAILED, "The output does not fit into an answer", "outputTooLarge"},
    {PLANNER_FAILED, "Another attempt said something else than was streamed", "streamDiverged"},
    {PLANNER_FAILED, "The stream could not be told", "streamFailed"},
    {413, "The prompt is too long", "tooLarge"},
    {409, "The idempotency key was used for other params", "idempotencyKeyReused"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row validate_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_GATE_ROWS,
    {PLANNER_UNAVAILABLE, "No checker for the language is installed", "noChecker"},
    {PLANNER_UNAVAILABLE, "Too many checks are waiting", "resourceUnavailable"},
    {PLANNER_FAILED, "A checker took too long", "executionTimeout"},
    {PLANNER_FAILED, "A checker failed", "executionFailed"},
    {413, "The code is too long", "tooLarge"},
    WEFT_ERROR_STOPPING,
    {0},
};
static const weft_error_row update_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_GATE_ROWS,
    {WEFT_INVALID_PARAMS, "What is to be modified is not in the context", "notInContext"},
    {413, "There would be too much in the context", "contextFull"},
    {413, "What is said of an entry is too long", "tooLarge"},
    {PLANNER_UNAVAILABLE, "Too many changes are under way", "resourceUnavailable"},
    WEFT_ERROR_AGENT,
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row create_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_GATE_ROWS,
    PLANNER_ERROR_ROWS,
    {WEFT_CANCELLED, "Request cancelled", "taskCancelled"},
    {413, "The prompt is too long", "tooLarge"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row run_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_GATE_ROWS,
    {PLANNER_UNAVAILABLE, "Resource unavailable", "resourceUnavailable"},
    {404, "There is no such plan", "planNotFound"},
    {409, "The plan runs already, or has run", "planHasRun"},
    {429, "Too many plans are running", "tooManyPlans"},
    WEFT_ERROR_STOPPING,
    WEFT_ERROR_STORAGE,
    {0},
};
static const weft_error_row role_errors[] = {WEFT_ERROR_PARAMS, PLANNER_GATE_ROWS, {0}};
static const weft_error_row register_errors[] = {
    WEFT_ERROR_PARAMS,
    PLANNER_GATE_ROWS,
    {PLANNER_UNAVAILABLE, "Resource unavailable", "resourceUnavailable"},
    {WEFT_INVALID_REQUEST, "Nothing can be asked of this connection", "cannotListen"},
    WEFT_ERROR_AGENT,
    WEFT_ERROR_STOPPING,
    {0},
};
static const weft_error_row unregister_errors[] = {WEFT_ERROR_PARAMS, PLANNER_GATE_ROWS, WEFT_ERROR_AGENT, {0}};

static const weft_method methods[] = {
    /* planner_execute.c */
    {.name = "execute_task",
     .handler = weft__planner_on_execute,
     .params = weft__planner_execute_params,
     .params_schema = weft__planner_execute_schema,
     .help = "give a task to whoever holds the role of the executor, and wait for what comes of it",
     .scope = WEFT_WORK,
     .result = S_EXECUTED,
     .errors = execute_errors,
     .flags = WEFT_ROW_CHANGES},
    /* planner_plan.c */
    {.name = "create_plan",
     .handler = weft__planner_on_create,
     .params = weft__planner_create_params,
     .params_schema = weft__planner_create_schema,
     .help = "let whoever holds the role of the planner make a plan of a request; it is stored and does not run",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("plan", S_PLANNED), "\"plan\""),
     .errors = create_errors,
     .flags = WEFT_ROW_CHANGES},
    /* planner_run.c */
    {.name = "run_plan",
     .handler = weft__planner_on_run,
     .params = weft__planner_run_params,
     .params_schema = weft__planner_run_schema,
     .help = "run a plan's tasks in the order of what they need, and wait for what comes of them",
     .scope = WEFT_WORK,
     .result = S_PLAN_RAN,
     .errors = run_errors,
     .flags = WEFT_ROW_CHANGES},
    /* planner_check.c */
    {.name = "validate_code",
     .handler = weft__planner_on_validate,
     .params = weft__planner_validate_params,
     .params_schema = weft__planner_validate_schema,
     .help = "have the checkers that are installed here look at a piece of code; nothing of it is run",
     .scope = WEFT_WORK,
     .result = S_VALIDATED,
     .errors = validate_errors,
     .flags = WEFT_ROW_CHANGES}, /* it takes time and a place, so nobody repeats it without being asked */
    /* planner_context.c */
    {.name = "update_context",
     .handler = weft__planner_on_update,
     .params = weft__planner_update_params,
     .help = "change what planner and executors are to know of: later prompts for a role carry it",
     .scope = WEFT_WORK,
     .result = S_UPDATED,
     .errors = update_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "context.get",
     .handler = weft__planner_on_context,
     .params = weft__no_params,
     .help = "the context as it is now, and its version",
     .scope = WEFT_READ,
     .result = S_CONTEXT,
     .errors = role_errors},
    /* planner_role.c */
    {.name = "role.register",
     .handler = weft__planner_on_register,
     .params = weft__planner_register_params,
     .params_schema = weft__planner_register_schema,
     .help = "hold a role with this connection: its tasks are requests of the hub's, until role.unregister or the end",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("registered", S_TRUE) "," S_IS("holder", S_STRING), "\"registered\",\"holder\""),
     .errors = register_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "role.unregister",
     .handler = weft__planner_on_unregister,
     .params = weft__planner_unregister_params,
     .help = "take no more tasks of a role; what was begun may be finished",
     .scope = WEFT_WORK,
     .result = S_OF(S_IS("unregistered", S_BOOL), "\"unregistered\""),
     .errors = unregister_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE},
    {.name = "stream_start",
     .handler = weft__planner_on_stream,
     .params = weft__planner_start_params,
     .help = "from who registered: the output of a task begins",
     .scope = WEFT_WORK,
     .result = S_ACCEPTED,
     .errors = role_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "stream_data",
     .handler = weft__planner_on_stream,
     .params = weft__planner_data_params,
     .help = "from who registered: a piece of the output of a task",
     .scope = WEFT_WORK,
     .result = S_ACCEPTED,
     .errors = role_errors,
     .flags = WEFT_ROW_CHANGES},
    {.name = "stream_end",
     .handler = weft__planner_on_stream,
     .params = weft__planner_end_params,
     .help = "from who registered: the output of a task was streamed",
     .scope = WEFT_WORK,
     .result = S_ACCEPTED,
     .errors = role_errors,
     .flags = WEFT_ROW_CHANGES},
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
