/* Times as text; see stamp.h. */
#include "stamp.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static char *digits(char *at, int value, int count, char behind) {
    for (int i = count; i-- > 0; value /= 10)
        at[i] = (char) ('0' + value % 10);
    at[count] = behind;
    return at + count + 1;
}

/* Every event that is told has one, and strftime costs more than everything else about it. */
static void put_stamp(char *at, const struct tm *utc, int ms) {
    at = digits(at, utc->tm_year + 1900, 4, '-');
    at = digits(at, utc->tm_mon + 1, 2, '-');
    at = digits(at, utc->tm_mday, 2, 'T');
    at = digits(at, utc->tm_hour, 2, ':');
    at = digits(at, utc->tm_min, 2, ':');
    at = digits(at, utc->tm_sec, 2, '.');
    *digits(at, ms, 3, 'Z') = '\0';
}

const char *weft__stamp(int64_t ms, char text[WEFT_STAMP]) {
    struct tm utc;
    int64_t rest = ms % 1000;
    time_t s = (time_t) (ms / 1000);
    if (rest < 0) {
        rest += 1000;
        s--;
    }
    if (!gmtime_r(&s, &utc)) /* a year that does not fit an int */
        memset(&utc, 0, sizeof utc);
    if (utc.tm_year >= -1900 && utc.tm_year <= 9999 - 1900) {
        put_stamp(text, &utc, (int) rest);
        return text;
    }
    size_t n = strftime(text, WEFT_STAMP - 5, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + n, WEFT_STAMP - n, ".%03dZ", (int) rest);
    return text;
}
