/* The conformance suite of the stores, over each kind there is. */
#include "suites/store.h"

STORE_SUITE(memory)
STORE_SUITE(sqlite, .one_writer = true)

TEST_MAIN(CASE(store_memory) CASE(store_sqlite))
