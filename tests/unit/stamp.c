/* Times as text, at the borders of what can be written. */
#include "stamp.h"
#include "harness.h"

TEST(stamps) {
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {1767225599050, "2025-12-31T23:59:59.050Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "10000-01-01T00:00:00.000Z"},
        {-62167219200000, "0000-01-01T00:00:00.000Z"},
    };
    char text[WEFT_STAMP];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_STR(weft__stamp(rows[i].ms, text), rows[i].text);
    /* Years that fit no int: something, and not too long. */
    CHECK(strlen(weft__stamp(INT64_MAX, text)) < WEFT_STAMP);
    CHECK(strlen(weft__stamp(INT64_MIN, text)) < WEFT_STAMP);
}

/* clang-format off */
TEST_MAIN(
    CASE(stamps)
)
