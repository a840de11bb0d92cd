/* Every dialect of the hub in the suite of all dialects. */
#include "suites/dialect.h"

DIALECT_SUITE(aiwg)
DIALECT_SUITE(cdev)
DIALECT_SUITE(acp)
DIALECT_SUITE(tinyvex)
DIALECT_SUITE(planner)
DIALECT_SUITE(mcp_rows)
DIALECT_SUITE(wiggum)
DIALECT_SUITE(hub_methods)
DIALECT_SUITE(dashboard_methods)

TEST_MAIN(CASE(dialect_aiwg) CASE(dialect_cdev) CASE(dialect_acp) CASE(dialect_tinyvex) CASE(dialect_planner)
              CASE(dialect_wiggum) CASE(dialect_mcp_rows) CASE(dialect_hub_methods) CASE(dialect_dashboard_methods))
