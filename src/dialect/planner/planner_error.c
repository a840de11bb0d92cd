/* Errors in the seed's form. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "planner.h"
#include "reply.h"

static const struct {
    int code;
    const char *type, *reason, *message;
} kinds[] = {
    {PLANNER_FAILED, PLANNER_TIMEOUT, "executionTimeout", "Execution timeout"},
    {PLANNER_FAILED, PLANNER_PARSE, "unreadableAnswer", "Execution failed"},
    {PLANNER_FAILED, PLANNER_EXECUTION, "executionFailed", "Execution failed"},
    {PLANNER_UNAVAILABLE, NULL, "resourceUnavailable", "Resource unavailable"},
    {PLANNER_RATE_LIMITED, NULL, "rateLimited", "Rate limit exceeded"},
    {PLANNER_UNAUTHENTICATED, NULL, "authenticationFailed", "Authentication failed"},
    {WEFT_CANCELLED, NULL, "taskCancelled", "Request cancelled"},
};

static size_t kind_of(const weft_planner_error *error) {
    size_t count = sizeof kinds / sizeof kinds[0], i = 0;
    while (i < count - 1 && (kinds[i].code != error->code || (kinds[i].type && strcmp(kinds[i].type, error->type) != 0)))
        i++;
    return i;
}

int weft__planner_fail_with(weft_req *req, const weft_planner_error *error) {
    size_t kind = kind_of(error), count = 0;
    weft_val suggestions[4];
    if (!req)
        return 0;
    for (; count < 4 && error->suggestions[count]; count++)
        suggestions[count] = weft_str(error->suggestions[count]);
    return weft_fail(req, error->code, error->message ? error->message : kinds[kind].message,
                     WEFT_OBJ({"type", weft_str(error->type)}, {"details", weft_str(error->details ? error->details : "")},
                              {"stack_trace", weft_str(error->stack_trace ? error->stack_trace : "")},
                              {"recovery_suggestions", weft_arr(suggestions, count)},
                              {"reason", weft_str(error->reason ? error->reason : kinds[kind].reason)},
                              {"retryable", error->retryable ? weft_bool(true) : weft_none()},
                              {"taskId", weft_str_or_none(error->task)}));
}

int weft__planner_fail(weft_req *req, int code, const char *type, const char *details, const char *suggestion) {
    return weft__planner_fail_with(
        req, &(weft_planner_error){.code = code, .type = type, .details = details, .suggestions = {suggestion}});
}

static int refuse_no_holder(weft_req *req, const char *role) {
    char details[120], suggestion[200];
    snprintf(details, sizeof details, "Nobody holds the role %s for this type of task", role);
    snprintf(suggestion, sizeof suggestion,
             "Name an agent for it in the configuration (roles.%s), or let one register with role.register", role);
    return weft__planner_fail(req, PLANNER_UNAVAILABLE, PLANNER_EXECUTION, details, suggestion);
}

int weft__planner_not_submitted(weft_req *req, const weft_hub *hub, const char *role, const char *path, int r) {
    if (r == -ENODEV)
        return refuse_no_holder(req, role);
    if (r == -ENOBUFS)
        return weft__planner_fail_with(req,
                                       &(weft_planner_error){.code = PLANNER_UNAVAILABLE,
                                                             .type = PLANNER_EXECUTION,
                                                             .details = "Too many tasks are waiting",
                                                             .suggestions = {"Wait until some have ended, and ask again"},
                                                             .retryable = true});
    return weft__reply_not_submitted(req, hub, path, r);
}
