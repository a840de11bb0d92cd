/* When a schedule fires: five fields (minute, hour, day of the month, month, day of the week) in local time, each with
 * lists, ranges, steps and names. As everywhere, a day that is restricted in both ways matches in either.
 *
 * Where the clock is set: a schedule with fixed hours fires once, neither twice in the hour that comes again nor never in
 * the one that is left out, but right after it. A schedule for every hour goes by the time that really passes.
 *
 * No clock in here: times are arguments, and the time zone is the process's. */
#ifndef WEFT_CRON_H
#define WEFT_CRON_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_cron {
    uint64_t minutes; /* bit n: at n */
    uint32_t hours;
    uint32_t days;                                          /* 1 to 31 */
    uint16_t months;                                        /* 1 to 12 */
    uint8_t weekdays;                                       /* 0 to 6, Sunday is 0 */
    bool every_hour, every_day, every_month, every_weekday; /* the field begins with a star */
    bool utc;                                               /* not local time */
    bool both_days;                                         /* a day that is restricted in both ways must match in both */
} weft_cron;

/* -EINVAL with a sentence in *ret_why (static), also for one that never fires (the 30th of February). */
int weft__cron_parse(const char *text, weft_cron *ret, const char **ret_why);
/* Read it as AIWG does: in UTC, both days must match, and a star with a step means the multiples of the step, so that every
 * second day is the 2nd, the 4th, ... */
void weft__cron_as_aiwg(weft_cron *cron);
/* The first time after this one (seconds since 1970); -ERANGE when there is none in the next decades. */
int weft__cron_next(const weft_cron *cron, int64_t after, int64_t *ret);

#endif
