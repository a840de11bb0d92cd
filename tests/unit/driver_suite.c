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

TEST_MAIN(CASE(driver_played) CASE(driver_cli) CASE(driver_acp) CASE(driver_demo))
