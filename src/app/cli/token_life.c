/* Reading how long a token lasts. */
#include "token_life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t weft__token_life(const char *text) {
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    char *end;
    if (!text || strcmp(text, "never") == 0)
        return 0;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || end == text || n <= 0 || n > 1000000 || !*end || end[1])
        return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (units[i].unit == *end && n * units[i].seconds <= (int64_t) 100 * 366 * 86400)
            return n * units[i].seconds;
    return -EINVAL;
}
