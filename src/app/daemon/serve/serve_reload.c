/* See serve_reload.h. */
#include "serve_reload.h"

#include <stdio.h>

#include "hub.h"

void weft__reload_changed(weft_reload *reload, const weft_key *key) {
    if (key->live)
        reload->changed[reload->changed_count++] = key->path;
    else
        reload->restart[reload->restart_count++] = key->path;
}

void weft__reload_problem(weft_reload *reload, const weft_remark *remark) {
    if (reload->problem_count == WEFT_RELOAD_PROBLEMS)
        return;
    weft_reload_problem *problem = &reload->problems[reload->problem_count++];
    problem->place = remark->place;
    problem->error = remark->error;
    snprintf(problem->where, sizeof problem->where, "%s", remark->where);
    snprintf(problem->text, sizeof problem->text, "%s", remark->text);
}

static weft_val key_names(const char *const *names, size_t count, weft_val ret[WEFT_MAX_KEYS]) {
    for (size_t i = 0; i < count; i++)
        ret[i] = weft_str(names[i]);
    return weft_arr(ret, count);
}

#define PROBLEM_MEMBERS 5

static weft_val problem_list(const weft_reload *reload, weft_member members[][PROBLEM_MEMBERS], weft_val *ret) {
    for (size_t i = 0; i < reload->problem_count; i++) {
        const weft_reload_problem *problem = &reload->problems[i];
        bool placed = problem->place.line > 0;
        members[i][0] = (weft_member){"where", weft_str(problem->where)};
        members[i][1] = (weft_member){"line", placed ? weft_uint(problem->place.line) : weft_none()};
        members[i][2] = (weft_member){"column", placed ? weft_uint(problem->place.column) : weft_none()};
        members[i][3] = (weft_member){"severity", weft_str(problem->error ? "error" : "warning")};
        members[i][4] = (weft_member){"message", weft_str(problem->text)};
        ret[i] = weft_obj(members[i], PROBLEM_MEMBERS);
    }
    return weft_arr(ret, reload->problem_count);
}

int weft__reload_reply(weft_req *req, const weft_reload *reload) {
    weft_val changed[WEFT_MAX_KEYS], restart[WEFT_MAX_KEYS], problems[WEFT_RELOAD_PROBLEMS];
    weft_member members[WEFT_RELOAD_PROBLEMS][PROBLEM_MEMBERS];
    return weft_reply(req, WEFT_OBJ({"reloaded", weft_bool(reload->done)}, {"why", weft_str_or_none(reload->why)},
                                    {"untrusted", reload->untrusted ? weft_bool(true) : weft_none()},
                                    {"changed", key_names(reload->changed, reload->changed_count, changed)},
                                    {"restart", key_names(reload->restart, reload->restart_count, restart)},
                                    {"problems", problem_list(reload, members, problems)}));
}

const weft_method weft__reload_row = {
    .name = "daemon.reload",
    .help = "read the configuration and the tokens again; a file with a mistake changes nothing",
    .scope = WEFT_ADMIN,
    .result = "{\"type\":\"object\",\"properties\":{\"reloaded\":{\"type\":\"boolean\"},\"why\":{\"type\":\"string\"},"
              "\"untrusted\":{\"type\":\"boolean\"},\"changed\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
              "\"restart\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
              "\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
              "\"required\":[\"reloaded\",\"changed\",\"restart\",\"problems\"]}",
    .flags = WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE,
};
