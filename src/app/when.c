/* Times. */
#include "when.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t weft__when_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t weft__when_parse(const char *text) {
    struct tm utc = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    if (!rest)
        return 0;
    double fraction = *rest == '.' ? strtod(rest, (char **) &rest) : 0;
    if (*rest != '\0' && (*rest != 'Z' || rest[1]))
        return 0;
    return (int64_t) timegm(&utc) * 1000 + (int64_t) (fraction * 1000 + 0.5);
}

int64_t weft__when_of(const weft_json *value) {
    const char *text = weft_str_of(value, NULL);
    return text ? weft__when_parse(text) : weft_int_of(value, 0);
}

int64_t weft__when_get(const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    return weft__when_of(&value);
}

const char *weft__duration(char ret[WEFT_WHEN_TEXT], int64_t ms) {
    long long s = ms / 1000;
    if (ms < 0)
        snprintf(ret, WEFT_WHEN_TEXT, "0 s");
    else if (ms < 1000)
        snprintf(ret, WEFT_WHEN_TEXT, "%lld ms", (long long) ms);
    else if (s < 60)
        snprintf(ret, WEFT_WHEN_TEXT, "%lld s", s);
    else if (s < 3600)
        snprintf(ret, WEFT_WHEN_TEXT, "%lld min %lld s", s / 60, s % 60);
    else if (s < 24 * 3600)
        snprintf(ret, WEFT_WHEN_TEXT, "%lld h %lld min", s / 3600, s / 60 % 60);
    else
        snprintf(ret, WEFT_WHEN_TEXT, "%lld d %lld h", s / (24 * 3600), s / 3600 % 24);
    return ret;
}

const char *weft__time_of_day(char ret[WEFT_WHEN_TEXT], int64_t ms) {
    time_t s = (time_t) (ms / 1000), now = time(NULL);
    struct tm then, today;
    localtime_r(&s, &then);
    localtime_r(&now, &today);
    bool same = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
    size_t n = strftime(ret, WEFT_WHEN_TEXT, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
    snprintf(ret + n, WEFT_WHEN_TEXT - n, ".%03d", (int) (ms % 1000));
    return ret;
}
