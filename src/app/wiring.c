/* Every verb, driver and dialect of the program. A new one is a file and a line or two here. */
#include "wiring.h"

#include "process.h"

extern const weft_verb weft__serve_verb, weft__call_verb, weft__notify_verb, weft__listen_verb, weft__methods_verb,
    weft__describe_verb, weft__ping_verb, weft__bridge_verb, weft__bench_verb, weft__completion_verb, weft__version_verb,
    weft__help_verb_row, weft__start_verb, weft__stop_verb, weft__restart_verb, weft__status_verb, weft__logs_verb,
    weft__config_verb, weft__task_verb, weft__chat_verb, weft__answer_verb, weft__agents_verb, weft__automation_verb,
    weft__events_verb, weft__doctor_verb, weft__man_verb, weft__trust_verb, weft__token_verb, weft__session_verb,
    weft__acp_verb;

int weft__demo_main(int argc, char **argv);

/* One per line, so that adding one changes one. */
/* clang-format off */
const weft_verb *const weft__verbs[] = {
    &weft__serve_verb,
    &weft__start_verb,
    &weft__stop_verb,
    &weft__restart_verb,
    &weft__status_verb,
    &weft__logs_verb,
    &weft__doctor_verb,
    &weft__config_verb,
    &weft__trust_verb,
    &weft__token_verb,
    &weft__task_verb,
    &weft__chat_verb,
    &weft__answer_verb,
    &weft__session_verb,
    &weft__agents_verb,
    &weft__automation_verb,
    &weft__events_verb,
    &weft__acp_verb,
    &weft__call_verb,
    &weft__notify_verb,
    &weft__listen_verb,
    &weft__methods_verb,
    &weft__describe_verb,
    &weft__ping_verb,
    &weft__bridge_verb,
    &weft__bench_verb,
    &weft__completion_verb,
    &weft__man_verb,
    &weft__version_verb,
    &weft__help_verb_row,
    NULL,
};

const weft_inner weft__inner[] = {
    {"__guard", weft__guard_main},
    {"__demo", weft__demo_main},
    {0},
};
/* clang-format on */

const weft_driver *const weft__drivers[] = {&weft__driver_acp, &weft__driver_cli, &weft__driver_demo, NULL};

const weft_dialect *const weft__dialect_list[] = {&weft__aiwg, &weft__cdev, &weft__acp, &weft__hub_methods, NULL};
