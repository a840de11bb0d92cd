/* Where a text may be cut. */
#include "utf8.h"

#include "harness.h"

/* a, e with an accent (2 bytes), the euro sign (3), a face (4). */
#define TEXT "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"
#define LEN (sizeof TEXT - 1)

TEST(beginnings) {
    static const size_t fits[LEN + 1] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    for (size_t max = 0; max <= LEN; max++)
        CHECK_INT(weft__utf8_fit(TEXT, LEN, max), fits[max]);
    CHECK_INT(weft__utf8_fit(TEXT, LEN, LEN + 5), LEN);
    CHECK_INT(weft__utf8_fit("\x80\x80\x80", 3, 2), 0);
}

TEST(ends) {
    static const size_t from[LEN + 1] = {0, 1, 3, 3, 6, 6, 6, 10, 10, 10, 10};
    for (size_t at = 0; at <= LEN; at++)
        CHECK_INT(weft__utf8_from(TEXT, LEN, at), from[at]);
}

TEST(characters) {
    static const size_t bytes[] = {0, 1, 3, 6, 10, 10};
    for (size_t n = 0; n < sizeof bytes / sizeof bytes[0]; n++)
        CHECK_INT(weft__utf8_first(TEXT, n), bytes[n]);
}

TEST_MAIN(CASE(beginnings) CASE(ends) CASE(characters))
