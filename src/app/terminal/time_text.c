/* Times. */
#include "time_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* No journal and no log is older; what is more would overflow somewhere. */
#define MAX_AGO_MS ((int64_t) 100 * 366 * 24 * 3600 * 1000)

int64_t weft__time_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* "2026-01-31T12:34:56.789Z", with or without the fraction. 0: it is none. */
static int64_t parse_wire_time(const char *text) {
    struct tm utc = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    if (!rest)
        return 0;
    double fraction = *rest == '.' ? strtod(rest, (char **) &rest) : 0;
    if (*rest != '\0' && (*rest != 'Z' || rest[1]))
        return 0;
    return (int64_t) timegm(&utc) * 1000 + (int64_t) (fraction * 1000 + 0.5);
}

/* ---- as people type it ---- */

/* "10m", "-10m", "10m ago", "10 min ago". */
static int read_ago(const char *text, int64_t now_ms, int64_t *ret) {
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1},          {"s", 1000},        {"sec", 1000},       {"m", 60 * 1000},
                 {"min", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600000}, {"w", 7 * 24 * 3600000}};
    const char *digits = text + (*text == '-');
    char *end;
    errno = 0;
    long long n = isdigit((unsigned char) *digits) ? strtoll(digits, &end, 10) : -1;
    if (n < 0 || errno)
        return -EINVAL;
    end += strspn(end, " ");
    size_t len = strcspn(end, " ");
    const char *rest = end + len + strspn(end + len, " ");
    if (*rest && strcmp(rest, "ago") != 0)
        return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].unit) == len && strncmp(end, units[i].unit, len) == 0 && n <= MAX_AGO_MS / units[i].ms) {
            *ret = now_ms - n * units[i].ms;
            return 0;
        }
    return -EINVAL;
}

/* Exactly count digits, as a number up to max. NULL: something else stands there. */
static const char *read_digits(const char *text, int count, int max, int *ret) {
    int number = 0;
    for (int i = 0; text && i < count; i++, text++) {
        if (!isdigit((unsigned char) *text))
            return NULL;
        number = 10 * number + (*text - '0');
    }
    if (!text || number > max)
        return NULL;
    *ret = number;
    return text;
}

/* "12:34", "12:34:56", "12:34:56.789". Hours may have one digit. NULL: something else stands there. */
static const char *read_clock(const char *text, struct tm *clock, int *ret_ms) {
    const char *at = read_digits(text, isdigit((unsigned char) text[0]) && text[1] == ':' ? 1 : 2, 23, &clock->tm_hour);
    at = at && *at == ':' ? read_digits(at + 1, 2, 59, &clock->tm_min) : NULL;
    if (at && *at == ':')
        at = read_digits(at + 1, 2, 59, &clock->tm_sec);
    if (!at || *at != '.')
        return at;
    for (int i = 0, unit = 100; isdigit((unsigned char) *++at); i++, unit /= 10)
        *ret_ms += (*at - '0') * unit;
    return at;
}

/* Nothing: here. "Z", "+02:00", "-0530": there, ret_offset seconds east. false: something else. */
static bool read_zone(const char *at, bool *ret_here, long *ret_offset) {
    int hours = 0, minutes = 0;
    *ret_here = *at == '\0';
    *ret_offset = 0;
    if (*at == '\0' || strcasecmp(at, "Z") == 0)
        return true;
    if (*at != '+' && *at != '-')
        return false;
    const char *end = read_digits(at + 1, 2, 23, &hours);
    end = end ? read_digits(end + (*end == ':'), 2, 59, &minutes) : NULL;
    *ret_offset = (*at == '-' ? -60 : 60) * (60L * hours + minutes);
    return end && !*end;
}

/* false: there is no such day, such as the 30th of February. */
static bool is_day(const struct tm *day) {
    struct tm same = {.tm_year = day->tm_year, .tm_mon = day->tm_mon, .tm_mday = day->tm_mday, .tm_hour = 12};
    timegm(&same);
    return same.tm_mday == day->tm_mday && same.tm_mon == day->tm_mon;
}

static int64_t local_ms(struct tm local, int ms) {
    local.tm_isdst = -1;
    return (int64_t) mktime(&local) * 1000 + ms;
}

/* "2026-01-31", with or without a time and a zone behind it. */
static int read_date(const char *text, int64_t *ret) {
    struct tm day = {0};
    int ms = 0, year = 0, month = 0;
    bool here = true;
    long offset = 0;
    const char *at = read_digits(text, 4, 9999, &year);
    at = at && *at == '-' ? read_digits(at + 1, 2, 12, &month) : NULL;
    at = at && *at == '-' ? read_digits(at + 1, 2, 31, &day.tm_mday) : NULL;
    day.tm_year = year - 1900;
    day.tm_mon = month - 1;
    if (!at || year < 1970 || !is_day(&day))
        return -EINVAL;
    if (*at == 'T' || *at == 't' || *at == ' ')
        at = read_clock(at + 1, &day, &ms);
    if (!at || !read_zone(at, &here, &offset))
        return -EINVAL;
    *ret = here ? local_ms(day, ms) : ((int64_t) timegm(&day) - offset) * 1000 + ms;
    return 0;
}

/* "11:00" of today, and the days that have names. */
static int read_day(const char *text, int64_t now_ms, int64_t *ret) {
    time_t now = (time_t) (now_ms / 1000);
    struct tm day;
    int ms = 0;
    localtime_r(&now, &day);
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    if (strcmp(text, "yesterday") == 0)
        day.tm_mday--;
    else if (strcmp(text, "today") != 0) {
        const char *end = read_clock(text, &day, &ms);
        if (!end || *end)
            return -EINVAL;
    }
    *ret = local_ms(day, ms);
    return 0;
}

int weft__time_typed(const char *text, int64_t now_ms, int64_t *ret) {
    int64_t when = now_ms;
    int r = strcmp(text, "now") == 0 ? 0 : read_ago(text, now_ms, &when);
    if (r < 0)
        r = read_date(text, &when);
    if (r < 0)
        r = read_day(text, now_ms, &when);
    if (r >= 0)
        *ret = when;
    return r;
}

/* ---- on the wire ---- */

int64_t weft__time_of(const weft_json *value) {
    const char *text = weft_str_of(value, NULL);
    return text ? parse_wire_time(text) : weft_int_of(value, 0);
}

int64_t weft__time_get(const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    return weft__time_of(&value);
}

const char *weft__duration(char ret[WEFT_TIME_TEXT], int64_t ms) {
    long long s = ms / 1000;
    if (ms < 0)
        snprintf(ret, WEFT_TIME_TEXT, "0 s");
    else if (ms < 1000)
        snprintf(ret, WEFT_TIME_TEXT, "%lld ms", (long long) ms);
    else if (s < 60)
        snprintf(ret, WEFT_TIME_TEXT, "%lld s", s);
    else if (s < 3600)
        snprintf(ret, WEFT_TIME_TEXT, "%lld min %lld s", s / 60, s % 60);
    else if (s < 24 * 3600)
        snprintf(ret, WEFT_TIME_TEXT, "%lld h %lld min", s / 3600, s / 60 % 60);
    else
        snprintf(ret, WEFT_TIME_TEXT, "%lld d %lld h", s / (24 * 3600), s / 3600 % 24);
    return ret;
}

const char *weft__time_of_day(char ret[WEFT_TIME_TEXT], int64_t ms) {
    time_t s = (time_t) (ms / 1000), now = time(NULL);
    struct tm then, today;
    localtime_r(&s, &then);
    localtime_r(&now, &today);
    bool same = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
    size_t n = strftime(ret, WEFT_TIME_TEXT, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
    snprintf(ret + n, WEFT_TIME_TEXT - n, ".%03d", (int) (ms % 1000));
    return ret;
}

const char *weft__time_and_date(char ret[WEFT_TIME_TEXT], int64_t ms) {
    time_t s = (time_t) (ms / 1000);
    struct tm then;
    localtime_r(&s, &then);
    strftime(ret, WEFT_TIME_TEXT, "%Y-%m-%d %H:%M:%S", &then);
    return ret;
}

const char *weft__time_shown(char ret[WEFT_TIME_TEXT], const char *text, const char *otherwise) {
    int64_t ms;
    return text && weft__time_typed(text, 0, &ms) == 0 ? weft__time_and_date(ret, ms) : otherwise;
}
