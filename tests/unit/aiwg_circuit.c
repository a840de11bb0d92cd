/* The circuit breaker: when it opens, when it lets one try, when it closes. */
#include "aiwg_circuit.h"

#include "harness.h"

TEST(opens_and_closes) {
    weft_aiwg_circuit circuit = {.threshold = 3, .cooldown_ms = 1000};
    CHECK_STR(weft__aiwg_circuit_name(&circuit, 0), "closed");
    CHECK(!weft__aiwg_circuit_failed(&circuit, 1));
    CHECK(!weft__aiwg_circuit_succeeded(&circuit)); /* one in between begins anew */
    CHECK(!weft__aiwg_circuit_failed(&circuit, 2));
    CHECK(!weft__aiwg_circuit_failed(&circuit, 3));
    CHECK(weft__aiwg_circuit_failed(&circuit, 4));
    CHECK_STR(weft__aiwg_circuit_name(&circuit, 4), "open");
    CHECK(!weft__aiwg_circuit_allows(&circuit, 4));
    CHECK_INT(weft__aiwg_circuit_left(&circuit, 504), 500);
    CHECK(!weft__aiwg_circuit_allows(&circuit, 1003));
    CHECK(weft__aiwg_circuit_allows(&circuit, 1004));
    CHECK_STR(weft__aiwg_circuit_name(&circuit, 1004), "half-open");
    weft__aiwg_circuit_begin(&circuit, 1004);
    CHECK(!weft__aiwg_circuit_allows(&circuit, 1005)); /* one at a time */
    CHECK(weft__aiwg_circuit_failed(&circuit, 1006));  /* it opens again */
    CHECK_INT(circuit.failures, 4);
    CHECK_STR(weft__aiwg_circuit_name(&circuit, 1006), "open");
    weft__aiwg_circuit_begin(&circuit, 2006);
    CHECK(weft__aiwg_circuit_succeeded(&circuit));
    CHECK_STR(weft__aiwg_circuit_name(&circuit, 2006), "closed");
    CHECK_INT(circuit.failures, 0);
}

TEST(a_probe_that_is_cancelled) {
    weft_aiwg_circuit circuit = {.threshold = 1, .cooldown_ms = 10};
    CHECK(weft__aiwg_circuit_failed(&circuit, 0));
    weft__aiwg_circuit_begin(&circuit, 10);
    CHECK(!weft__aiwg_circuit_allows(&circuit, 11));
    weft__aiwg_circuit_dropped(&circuit);
    CHECK(weft__aiwg_circuit_allows(&circuit, 11));
}

TEST_MAIN(CASE(opens_and_closes) CASE(a_probe_that_is_cancelled))
