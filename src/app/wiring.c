/* Every verb, store, driver and dialect of the program, each kind in one table. A new one is its own file and one line here.
 * Transports are libweft's: net/transports.c. */
#include "wiring.h"

#include "process.h"

int weft__demo_main(int argc, char **argv);

/* clang-format off */
/* In the order of the help. */
#define VERBS(ROW)             \
    ROW(weft__serve_verb)      \
    ROW(weft__start_verb)      \
    ROW(weft__stop_verb)       \
    ROW(weft__restart_verb)    \
    ROW(weft__reload_verb)     \
    ROW(weft__status_verb)     \
    ROW(weft__logs_verb)       \
    ROW(weft__top_verb)        \
    ROW(weft__doctor_verb)     \
    ROW(weft__config_verb)     \
    ROW(weft__trust_verb)      \
    ROW(weft__store_verb)      \
    ROW(weft__token_verb)      \
    ROW(weft__open_verb)       \
    ROW(weft__pair_verb)       \
    ROW(weft__task_verb)       \
    ROW(weft__chat_verb)       \
    ROW(weft__plan_verb)       \
    ROW(weft__build_verb)      \
    ROW(weft__answer_verb)     \
    ROW(weft__worktree_verb)   \
    ROW(weft__runner_verb)     \
    ROW(weft__promote_verb)    \
    ROW(weft__hubs_verb)       \
    ROW(weft__approvals_verb)  \
    ROW(weft__session_verb)    \
    ROW(weft__agents_verb)     \
    ROW(weft__mcp_verb)        \
    ROW(weft__cost_verb)       \
    ROW(weft__automation_verb) \
    ROW(weft__events_verb)     \
    ROW(weft__sub_verb)        \
    ROW(weft__call_verb)       \
    ROW(weft__notify_verb)     \
    ROW(weft__listen_verb)     \
    ROW(weft__methods_verb)    \
    ROW(weft__describe_verb)   \
    ROW(weft__ping_verb)       \
    ROW(weft__bridge_verb)     \
    ROW(weft__bench_verb)      \
    ROW(weft__acp_verb)        \
    ROW(weft__completion_verb) \
    ROW(weft__man_verb)        \
    ROW(weft__version_verb)    \
    ROW(weft__help_verb_row)

/* The first that lasts is the usual one. */
#define STORES(ROW)   \
    ROW(weft__sqlite) \
    ROW(weft__memory) \
    ROW(weft__postgres)

#define DRIVERS(ROW)       \
    ROW(weft__driver_acp)  \
    ROW(weft__driver_cli)  \
    ROW(weft__driver_demo) \
    ROW(weft__driver_planner)

/* Where several claim a connection or a method, the first has it. */
#define DIALECTS(ROW)      \
    ROW(weft__planner)     \
    ROW(weft__aiwg)        \
    ROW(weft__cdev)        \
    ROW(weft__acp)         \
    ROW(weft__tinyvex)     \
    ROW(weft__wiggum)      \
    ROW(weft__dashboard_methods) \
    ROW(weft__mcp_rows)    \
    ROW(weft__hub_methods)
/* clang-format on */

#define VERB(row) extern const weft_verb row;
#define STORE(row) extern const weft_store_kind row;
#define DRIVER(row) extern const weft_driver row;
#define DIALECT(row) extern const weft_dialect row;
#define LISTED(row) &row,

VERBS(VERB)
STORES(STORE)
DRIVERS(DRIVER)
DIALECTS(DIALECT)

const weft_verb *const weft__verbs[] = {VERBS(LISTED) NULL};
const weft_store_kind *const weft__stores[] = {STORES(LISTED) NULL};
const weft_driver *const weft__drivers[] = {DRIVERS(LISTED) NULL};
const weft_dialect *const weft__dialect_list[] = {DIALECTS(LISTED) NULL};

/* The program as a part of itself. */
const weft_inner weft__inner[] = {
    {"__guard", weft__guard_main},
    {"__demo", weft__demo_main},
    {0},
};
