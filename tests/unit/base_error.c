/* A sentence for every error. */
#include <errno.h>
#include <limits.h>

#include "harness.h"

TEST(sentences) {
    CHECK_STR(weft_strerror(-ETIMEDOUT), "timed out");
    CHECK_STR(weft_strerror(-EMSGSIZE), "the message is too large");
    CHECK(weft_strerror(-ENOENT)[0] != '\0');
    CHECK_STR(weft_strerror(-99999), "unknown error");
    CHECK_STR(weft_strerror(INT_MIN), "unknown error");
    for (int r = -200; r < 200; r++)
        CHECK(weft_strerror(r) != NULL);
}

TEST(version) {
    CHECK_STR(weft_version(), WEFT_VERSION);
}

TEST_MAIN(CASE(sentences) CASE(version))
