/* Schedules. Days are found by the calendar alone; only within a day that matches is the time zone asked, hour by hour, and
 * minute by minute around a change of its clock. */
#include "cron.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define HOUR 3600
#define DAY 86400
#define MAX_DAYS (40 * 366)  /* to look ahead: a 29th of February on a given weekday comes at least every 40 years */
#define MAX_SHIFT (3 * HOUR) /* of a clock that is set back; no zone does more but the one that crossed the date line */

/* ---- parsing ---- */

typedef struct field_row {
    const char *why;
    int low, high;
    const char *const *names; /* of low and the ones behind it; NULL: none */
} field_row;

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

enum { MINUTE, HOURS, MONTH_DAY, MONTH, WEEKDAY, FIELDS };
static const field_row fields[FIELDS] = {
    [MINUTE] = {"the minute must be 0 to 59, a list, a range or a step", 0, 59, NULL},
    [HOURS] = {"the hour must be 0 to 23, a list, a range or a step", 0, 23, NULL},
    [MONTH_DAY] = {"the day of the month must be 1 to 31, a list, a range or a step", 1, 31, NULL},
    [MONTH] = {"the month must be 1 to 12 or jan to dec, a list, a range or a step", 1, 12, month_names},
    [WEEKDAY] = {"the day of the week must be 0 to 7 or sun to sat, a list, a range or a step", 0, 7, day_names},
};

/* A number or a name at *at, which is moved behind it; -1: neither. */
static int take_cron_number(const field_row *field, const char **at) {
    int n = 0, digits = 0;
    for (; (*at)[digits] >= '0' && (*at)[digits] <= '9' && digits < 4; digits++)
        n = n * 10 + ((*at)[digits] - '0');
    if (digits) {
        *at += digits;
        return digits < 4 ? n : -1;
    }
    for (int i = 0; field->names && field->names[i]; i++)
        if (strncasecmp(*at, field->names[i], 3) == 0) {
            *at += 3;
            return field->low + i;
        }
    return -1;
}

/* "*", "5", "1-5", each with "/2" behind it; "5/10" is from 5 on. */
static bool take_range(const field_row *field, const char **at, uint64_t *bits) {
    int low = field->low, high = field->high, step = 1;
    bool star = **at == '*', range = star;
    if (star)
        ++*at;
    else
        low = high = take_cron_number(field, at);
    if (!star && **at == '-') {
        ++*at;
        range = true;
        high = take_cron_number(field, at);
    }
    if (low < field->low || high < low || high > field->high)
        return false;
    if (**at == '/') {
        ++*at;
        step = **at >= '0' && **at <= '9' ? take_cron_number(field, at) : 0;
        high = range ? high : field->high;
    }
    if (step < 1)
        return false;
    for (int i = low; i <= high; i += step)
        *bits |= UINT64_C(1) << i;
    return true;
}

static bool take_field(const field_row *field, const char **at, uint64_t *bits) {
    *bits = 0;
    do {
        if (!take_range(field, at, bits))
            return false;
    } while (**at == ',' && ++*at);
    return **at == '\0' || **at == ' ' || **at == '\t';
}

/* The usual short names. */
static const char *full_form(const char *text) {
    static const char *const forms[][2] = {{"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
                                           {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
                                           {"@annually", "0 0 1 1 *"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(text, forms[i][0]) == 0)
            return forms[i][1];
    return text;
}

static const char *skip_cron_blanks(const char *at) {
    return at + strspn(at, " \t");
}

/* Some month has such a day; with a day of the week it fires anyway. */
static bool ever_fires(const weft_cron *cron) {
    static const int longest[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int first = __builtin_ctz(cron->days);
    if (!cron->every_weekday)
        return true;
    for (int month = 1; month <= 12; month++)
        if (cron->months & 1 << month && first <= longest[month])
            return true;
    return false;
}

int weft__cron_parse(const char *text, weft_cron *ret, const char **ret_why) {
    uint64_t bits[FIELDS];
    bool star[FIELDS];
    const char *at = skip_cron_blanks(full_form(text));
    for (size_t i = 0; i < FIELDS; i++) {
        *ret_why = *at ? fields[i].why : "a schedule has five fields: minute, hour, day, month and day of the week";
        star[i] = *at == '*';
        if (!*at || !take_field(&fields[i], &at, &bits[i]))
            return -EINVAL;
        at = skip_cron_blanks(at);
    }
    *ret_why = "a schedule has five fields and nothing behind them";
    if (*at)
        return -EINVAL;
    weft_cron cron = {
        .minutes = bits[MINUTE],
        .hours = (uint32_t) bits[HOURS],
        .days = (uint32_t) bits[MONTH_DAY],
        .months = (uint16_t) bits[MONTH],
        .weekdays = (uint8_t) ((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f),
        .every_hour = star[HOURS],
        .every_day = star[MONTH_DAY],
        .every_month = star[MONTH],
        .every_weekday = star[WEEKDAY],
    };
    *ret_why = "there is no such day in these months";
    if (!ever_fires(&cron))
        return -EINVAL;
    *ret = cron;
    return 0;
}

/* "*" with a step begins at 1 where days and months are counted; the same steps from 0 on, without the 0. */
static uint32_t multiples_of_step(uint32_t bits, int last) {
    uint32_t first = bits & -bits, rest = bits & ~first, all = (uint32_t) ((UINT64_C(2) << last) - 2);
    if (first != 2 || !rest)
        return bits;
    return bits << (__builtin_ctz(rest) - 2) & all;
}

void weft__cron_as_aiwg(weft_cron *cron) {
    cron->utc = cron->both_days = true;
    if (cron->every_day)
        cron->days = multiples_of_step(cron->days, 31);
    if (cron->every_month)
        cron->months = (uint16_t) multiples_of_step(cron->months, 12);
}

/* ---- the next time ---- */

/* Local time as if it were UTC: the wall's seconds. Days and minutes of it are arithmetic. */
static int64_t wall_of(const weft_cron *cron, int64_t at) {
    time_t when = (time_t) at;
    struct tm local;
    if (cron->utc || !localtime_r(&when, &local))
        return at;
    return at + local.tm_gmtoff;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static bool day_matches(const weft_cron *cron, int64_t wall_day) {
    time_t when = (time_t) (wall_day * DAY);
    struct tm date;
    if (!gmtime_r(&when, &date) || !(cron->months & 1 << (date.tm_mon + 1)))
        return false;
    bool day = cron->days & UINT32_C(1) << date.tm_mday, weekday = cron->weekdays & 1 << date.tm_wday;
    /* The rule of every cron: both restricted means either. A star with a step is a restriction that still says "and". */
    return cron->both_days || cron->every_day || cron->every_weekday ? day && weekday : day || weekday;
}

static bool wall_matches(const weft_cron *cron, int64_t wall) {
    int64_t of_day = wall - floor_div(wall, DAY) * DAY;
    return cron->hours & UINT32_C(1) << (of_day / HOUR) && cron->minutes & UINT64_C(1) << (of_day % HOUR / 60) &&
           day_matches(cron, floor_div(wall, DAY));
}

/* Has the wall shown this minute before, because it was set back since? */
static bool is_repeat(const weft_cron *cron, int64_t at, int64_t wall) {
    int64_t offset_before = wall_of(cron, at - MAX_SHIFT) - (at - MAX_SHIFT), shift = offset_before - (wall - at);
    return shift > 0 && wall_of(cron, at - shift) == wall;
}

/* The wall was set forward by the minute before this one: did it jump over a minute that matches? */
static bool jumped_over(const weft_cron *cron, int64_t at, int64_t wall) {
    int64_t from = wall_of(cron, at - 60) + 60;
    if (from >= wall || cron->every_hour)
        return false;
    for (; from < wall; from += 60)
        if (wall_matches(cron, from))
            return true;
    return false;
}

static bool fires_at(const weft_cron *cron, int64_t at, int64_t wall) {
    if (jumped_over(cron, at, wall))
        return true;
    return wall_matches(cron, wall) && (cron->every_hour || !is_repeat(cron, at, wall));
}

/* Nothing can fire before this: the next minute, the next hour when this one does not match, the next day that does; none of
 * them beyond a change of the clock. -ERANGE: no day matches. */
static int64_t skip_to_candidate(const weft_cron *cron, int64_t at, int64_t wall) {
    int64_t day = floor_div(wall, DAY), to = wall - wall % 60 + 60;
    if (!day_matches(cron, day)) {
        int64_t last = day + MAX_DAYS;
        while (day < last && !day_matches(cron, ++day))
            continue;
        if (day == last)
            return -ERANGE;
        to = day * DAY;
    } else if (!(cron->hours & UINT32_C(1) << (wall - day * DAY) / HOUR))
        to = (floor_div(wall, HOUR) + 1) * HOUR;
    /* Stop a day short where the clock changes on the way, then hours, then minutes. */
    for (int64_t step = to - wall; step > 60; step = step > 2 * DAY ? step - DAY : step > 2 * HOUR ? step - HOUR : 60)
        if (wall_of(cron, at + step) - (at + step) == wall - at)
            return at + step;
    return at + 60;
}

int weft__cron_next(const weft_cron *cron, int64_t after, int64_t *ret) {
    int64_t at = floor_div(after, 60) * 60 + 60, end = at + (int64_t) MAX_DAYS * DAY;
    while (at < end) {
        int64_t wall = wall_of(cron, at);
        if (fires_at(cron, at, wall)) {
            *ret = at;
            return 0;
        }
        at = skip_to_candidate(cron, at, wall);
        if (at == -ERANGE)
            break;
    }
    return -ERANGE;
}
