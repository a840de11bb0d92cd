/* The query of a URL: names and values, decoded; what is no pair is passed over. */
#include "http_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

TEST(queries_are_read_pair_by_pair) {
    static const struct {
        const char *query, *pairs;
    } rows[] = {
        {"", ""},
        {"a=1", "a=1;"},
        {"a=1&b=2", "a=1;b=2;"},
        {"&&a=1&&b=&c", "a=1;b=;"},
        {"=x", "=x;"},
        {"path=src%2Fa+b.c", "path=src/a b.c;"},
        {"p%61th=%41", "path=A;"},
        {"a=%", "a=%;"},
        {"a=%4", "a=%4;"},
        {"a=%zz%4g", "a=%zz%4g;"},
        {"a=x%00y", "a=x%00y;"},
        {"a=%26b%3D2", "a=&b=2;"},
        {"a=b=c", "a=b=c;"},
        {"a=%C3%A9", "a=\xc3\xa9;"},
        {"a=1&a=2", "a=1;a=2;"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char is[256] = "", *text = strdup(rows[i].query), *rest = text, *value;
        const char *name;
        size_t n = 0;
        test_row(rows[i].query);
        while (weft__query_next(&rest, &name, &value))
            n += (size_t) snprintf(is + n, sizeof is - n, "%s=%s;", name, value);
        const char *shown = is;
        CHECK_STR(shown, rows[i].pairs);
        free(text);
    }
    test_row(NULL);
}

TEST_MAIN(CASE(queries_are_read_pair_by_pair))
