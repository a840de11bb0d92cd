/* The conformance suite of drivers, over each there is and the reference that is played without any program. */
#include "suites/driver.h"
#include "suites/driver_played.h"

/* ---- all of them ---- */

static const char *const shell[] = {"/bin/sh", "-c", "{prompt}", NULL};

DRIVER_SUITE(played, DRIVER_PLAYED)

DRIVER_SUITE(cli, .argv = shell, .say = "echo hello", .wait = "echo waiting; exec sleep 1000",
             .hang = "trap '' TERM; echo hanging; while :; do sleep 1000; done", .crash = "echo going; kill -SEGV $$",
             .much = "head -c 20000000 /dev/zero | tr '\\0' x | fold -w 1000; echo", .much_bytes = 20000000,
             .odd = "printf '\\377\\376\\000 \\303( hello\\n'")

DRIVER_SUITE(acp, .verb = "__demo", .say = "echo hello", .wait = "ask", .hang = "hang", .crash = "crash", .ask = "ask",
             .much = "lines 100000", .much_bytes = 1000000, .mode = "plan", .keeps = true)

DRIVER_SUITE(demo, .say = "echo hello", .wait = "ask", .hang = "hang", .crash = "crash", .ask = "ask",
             .much = "lines 100000", .much_bytes = 1000000, .mode = "plan", .keeps = true)

/* A child that speaks the planner's protocol: one line in, one line out, without a program started for either. */
static const char *const planner_child[] = {
    "/bin/sh", "-c",
    "tell() { printf "
    "'{\"jsonrpc\":\"2.0\",\"method\":\"stream_data\",\"params\":{\"stream_id\":\"s%s\",\"task_id\":%s,\"chunk\":\"%s\"}}"
    "\\n' $id $id \"$1\"; }\n"
    "while read -r line; do\n"
    "    id=${line#*'\"id\":'}; id=${id%%,*}\n"
    "    code=hello\n"
    "    case $line in\n"
    "    *'\"prompt\":\"hang\"'*) trap '' TERM; tell hanging; while :; do sleep 1000; done ;;\n"
    "    *'\"prompt\":\"wait\"'*) tell waiting; continue ;;\n"
    "    *'\"prompt\":\"crash\"'*) tell going; kill -SEGV $$ ;;\n"
    "    *'\"prompt\":\"much\"'*) code=$(head -c 1000000 /dev/zero | tr '\\0' x) ;;\n"
    "    *) tell hel ;;\n"
    "    esac\n"
    "    printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"status\":\"success\",\"output\":{\"code\":\"%s\"}}}\\n' "
    "\"$id\" \"$code\"\n"
    "done",
    NULL};

DRIVER_SUITE(planner, .argv = planner_child, .say = "say", .wait = "wait", .hang = "hang", .crash = "crash", .much = "much",
             .much_bytes = 1000000, .blunt = true)

TEST_MAIN(CASE(driver_played) CASE(driver_cli) CASE(driver_acp) CASE(driver_demo) CASE(driver_planner))
