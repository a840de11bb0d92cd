/* Every dialect of the hub in the suite of all dialects. */
#include "suites/dialect.h"

DIALECT_SUITE(aiwg)
DIALECT_SUITE(cdev)
DIALECT_SUITE(own)

TEST_MAIN(CASE(dialect_aiwg) CASE(dialect_cdev) CASE(dialect_own))
