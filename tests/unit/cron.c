/* Schedules: what is refused, and when the others fire, also where clocks are set. */
#include "cron.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "harness.h"

static void set_zone(const char *zone) {
    setenv("TZ", zone, 1);
    tzset();
}

/* "2026-03-29 02:30" in local time, or with a Z behind it in UTC. */
static int64_t at(const char *text) {
    struct tm tm = {.tm_isdst = -1};
    sscanf(text, "%d-%d-%d %d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return strchr(text, 'Z') ? timegm(&tm) : mktime(&tm);
}

static const char *show(int64_t when, char text[32]) {
    time_t t = (time_t) when;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(text, 32, "%Y-%m-%d %H:%MZ", &tm);
    return text;
}

TEST(refuses) {
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "five fields"},
        {"* * * *", "five fields"},
        {"* * * * * *", "nothing behind"},
        {"60 * * * *", "minute"},
        {"-1 * * * *", "minute"},
        {"*/0 * * * *", "minute"},
        {"5-1 * * * *", "minute"},
        {"1,,2 * * * *", "minute"},
        {"1, * * * *", "minute"},
        {"*/ * * * *", "minute"},
        {"1-2-3 * * * *", "minute"},
        {"99999999999 * * * *", "minute"},
        {"* 24 * * *", "hour"},
        {"* mon * * *", "hour"},
        {"* * 0 * *", "day of the month"},
        {"* * 32 * *", "day of the month"},
        {"* * * 13 *", "month must"},
        {"* * * foo *", "month must"},
        {"* * * * 8", "day of the week"},
        {"* * * * mond", "day of the week"},
        {"0 0 30 feb *", "no such day"},
        {"0 0 31 4,6,9,11 *", "no such day"},
        {"@never", "minute"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_cron cron;
        const char *why = NULL;
        test_row(rows[i].text);
        CHECK_INT(weft__cron_parse(rows[i].text, &cron, &why), -EINVAL);
        CHECK(why && strstr(why, rows[i].why));
    }
    test_row(NULL);
}

/* The next few firings after a moment, in UTC. */
static const struct {
    const char *zone, *text, *after, *want[4];
} rows[] = {
    {"UTC", "* * * * *", "2026-01-01 00:00", {"2026-01-01 00:01Z", "2026-01-01 00:02Z"}},
    {"UTC", "*/15 * * * *", "2026-01-01 00:16", {"2026-01-01 00:30Z", "2026-01-01 00:45Z", "2026-01-01 01:00Z"}},
    {"UTC",
     "0-30/10 * * * *",
     "2026-01-01 00:05",
     {"2026-01-01 00:10Z", "2026-01-01 00:20Z", "2026-01-01 00:30Z", "2026-01-01 01:00Z"}},
    {"UTC",
     "5/20 * * * *",
     "2026-01-01 00:00",
     {"2026-01-01 00:05Z", "2026-01-01 00:25Z", "2026-01-01 00:45Z", "2026-01-01 01:05Z"}},
    {"UTC",
     "1,3,5-6 * * * *",
     "2026-01-01 00:01",
     {"2026-01-01 00:03Z", "2026-01-01 00:05Z", "2026-01-01 00:06Z", "2026-01-01 01:01Z"}},
    {"UTC", "30 9 * * *", "2026-01-01 09:30", {"2026-01-02 09:30Z", "2026-01-03 09:30Z"}},
    {"UTC", "0 9-17/4 * * mon-fri", "2026-01-02 13:00", {"2026-01-02 17:00Z", "2026-01-05 09:00Z", "2026-01-05 13:00Z"}},
    {"UTC", "0 0 * * 0", "2026-01-01 00:00", {"2026-01-04 00:00Z", "2026-01-11 00:00Z"}},
    {"UTC", "0 0 * * 7", "2026-01-01 00:00", {"2026-01-04 00:00Z", "2026-01-11 00:00Z"}},
    {"UTC",
     "0 0 * * 5-7",
     "2026-01-01 00:00",
     {"2026-01-02 00:00Z", "2026-01-03 00:00Z", "2026-01-04 00:00Z", "2026-01-09 00:00Z"}},
    {"UTC", "0 0 * * SAT,sun", "2026-01-01 00:00", {"2026-01-03 00:00Z", "2026-01-04 00:00Z", "2026-01-10 00:00Z"}},
    {"UTC", "0 12 1 JAN,jul *", "2026-01-01 12:00", {"2026-07-01 12:00Z", "2027-01-01 12:00Z"}},
    /* Either the 13th or a Friday, */
    {"UTC",
     "0 0 13 * fri",
     "2026-02-06 00:00",
     {"2026-02-13 00:00Z", "2026-02-20 00:00Z", "2026-02-27 00:00Z", "2026-03-06 00:00Z"}},
    /* but a star with a step leaves the other restriction alone. */
    {"UTC", "0 0 */2 * fri", "2026-02-06 00:00", {"2026-02-13 00:00Z", "2026-02-27 00:00Z", "2026-03-13 00:00Z"}},
    {"UTC", "0 0 31 * *", "2026-01-31 00:00", {"2026-03-31 00:00Z", "2026-05-31 00:00Z"}},
    {"UTC", "0 0 29 2 *", "2026-01-01 00:00", {"2028-02-29 00:00Z", "2032-02-29 00:00Z"}},
    {"UTC", "0 0 29 2 *", "2096-03-01 00:00", {"2104-02-29 00:00Z"}},
    {"UTC", "59 23 31 12 *", "2026-06-01 00:00", {"2026-12-31 23:59Z", "2027-12-31 23:59Z"}},
    {"UTC", "@hourly", "2026-01-01 00:30", {"2026-01-01 01:00Z", "2026-01-01 02:00Z"}},
    {"UTC", "@weekly", "2026-01-01 00:30", {"2026-01-04 00:00Z"}},
    {"UTC", "  5  4 * * *  ", "2026-01-01 00:00", {"2026-01-01 04:05Z"}},
    /* East and west of Greenwich, and by half hours. */
    {"Asia/Tokyo", "0 9 * * *", "2026-01-01 00:00", {"2026-01-01 00:00Z", "2026-01-02 00:00Z"}},
    {"America/New_York", "0 22 * * *", "2026-01-10 00:00", {"2026-01-11 03:00Z", "2026-01-12 03:00Z"}},
    {"Asia/Kathmandu", "0 0 * * *", "2026-01-01 12:00", {"2026-01-01 18:15Z", "2026-01-02 18:15Z"}},
    /* Berlin, 29 March 2026: 02:00 becomes 03:00. What was meant for the missing hour comes right after it, once. */
    {"Europe/Berlin", "30 2 * * *", "2026-03-28 03:00", {"2026-03-29 01:00Z", "2026-03-30 00:30Z"}},
    {"Europe/Berlin", "*/10 2 * * *", "2026-03-29 00:00", {"2026-03-29 01:00Z", "2026-03-30 00:00Z", "2026-03-30 00:10Z"}},
    {"Europe/Berlin", "0 2,3 * * *", "2026-03-29 00:00", {"2026-03-29 01:00Z", "2026-03-30 00:00Z", "2026-03-30 01:00Z"}},
    {"Europe/Berlin", "0 4 * * *", "2026-03-28 12:00", {"2026-03-29 02:00Z", "2026-03-30 02:00Z"}},
    {"Europe/Berlin", "30 * * * *", "2026-03-29 01:00", {"2026-03-29 00:30Z", "2026-03-29 01:30Z", "2026-03-29 02:30Z"}},
    {"Europe/Berlin", "0 12 1 7 *", "2026-01-15 00:00", {"2026-07-01 10:00Z", "2027-07-01 10:00Z"}},
    /* Berlin, 25 October 2026: 03:00 becomes 02:00. A fixed hour fires the first time only, every hour means every hour. */
    {"Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", {"2026-10-25 00:30Z", "2026-10-26 01:30Z"}},
    {"Europe/Berlin", "0 3 * * *", "2026-10-24 12:00", {"2026-10-25 02:00Z", "2026-10-26 02:00Z"}},
    {"Europe/Berlin", "30 * * * *", "2026-10-25 00:00Z", {"2026-10-25 00:30Z", "2026-10-25 01:30Z", "2026-10-25 02:30Z"}},
    {"Europe/Berlin", "*/30 2 * * *", "2026-10-25 00:10Z", {"2026-10-25 00:30Z", "2026-10-26 01:00Z", "2026-10-26 01:30Z"}},
    /* New York, the same in another month; and Lord Howe, by half an hour. */
    {"America/New_York", "30 2 * * *", "2026-03-07 12:00", {"2026-03-08 07:00Z", "2026-03-09 06:30Z"}},
    {"America/New_York", "30 1 * * *", "2026-10-31 12:00", {"2026-11-01 05:30Z", "2026-11-02 06:30Z"}},
    {"Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00", {"2026-10-03 15:30Z", "2026-10-04 15:15Z"}},
    {"Australia/Lord_Howe",
     "45 1 * * *",
     "2026-04-04 00:00",
     {"2026-04-03 14:45Z", "2026-04-04 14:45Z", "2026-04-05 15:15Z"}},
    /* Midnight itself is missing (Havana), and a whole day is (Apia crossed the date line). */
    {"America/Havana", "0 0 * * *", "2026-03-07 12:00", {"2026-03-08 05:00Z", "2026-03-09 04:00Z"}},
    {"Pacific/Apia", "0 12 30 12 *", "2011-12-01 00:00", {"2011-12-30 10:00Z", "2012-12-29 22:00Z"}},
};

TEST(fires) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_cron cron;
        const char *why = "";
        char text[32];
        test_row(rows[i].text);
        set_zone(rows[i].zone);
        if (!CHECK_INT(weft__cron_parse(rows[i].text, &cron, &why), 0))
            continue;
        int64_t when = at(rows[i].after);
        for (size_t n = 0; n < 4 && rows[i].want[n]; n++) {
            CHECK_INT(weft__cron_next(&cron, when, &when), 0);
            CHECK_STR(show(when, text), rows[i].want[n]);
        }
    }
    test_row(NULL);
}

/* Jumping ahead and going minute by minute must agree; here with a calendar that is asked minute by minute. */
TEST(agrees_with_every_minute) {
    static const char *const texts[] = {"*/7 * * * *", "30 2 * * *", "0 0 1,15 * 1", "5 */6 * 3,10 *", "59 23 * * 6"};
    static const char *const zones[] = {"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"};
    for (size_t z = 0; z < 5; z++)
        for (size_t i = 0; i < 5; i++) {
            weft_cron cron;
            const char *why;
            set_zone(zones[z]);
            CHECK_INT(weft__cron_parse(texts[i], &cron, &why), 0);
            int64_t end = at("2026-11-20 00:00Z"), begin = at("2026-02-20 00:00Z"), next = begin;
            int wrong = 0;
            CHECK_INT(weft__cron_next(&cron, begin, &next), 0);
            for (int64_t t = begin + 60; t < end; t += 60) {
                struct tm now, before;
                time_t now_t = (time_t) t, before_t = (time_t) (t - 60);
                localtime_r(&now_t, &now);
                localtime_r(&before_t, &before);
                bool set = now.tm_gmtoff != before.tm_gmtoff;
                bool day = cron.days >> now.tm_mday & 1, weekday = cron.weekdays >> now.tm_wday & 1;
                bool plain = cron.minutes >> now.tm_min & 1 && cron.hours >> now.tm_hour & 1 &&
                             cron.months >> (now.tm_mon + 1) & 1 &&
                             (cron.every_day || cron.every_weekday ? day && weekday : day || weekday);
                bool fired = next == t;
                if (fired)
                    weft__cron_next(&cron, t, &next);
                /* The hours around a change are the other test's. */
                time_t near[] = {now_t - 4 * 3600, now_t + 4 * 3600};
                struct tm a, b;
                localtime_r(&near[0], &a);
                localtime_r(&near[1], &b);
                if (!set && a.tm_gmtoff == b.tm_gmtoff)
                    wrong += fired != plain;
            }
            CHECK_INT(wrong, 0);
        }
}

/* As AIWG reads it: UTC in any zone, both days, multiples of a step. */
TEST(fires_as_aiwgs) {
    static const struct {
        const char *schedule, *after, *fires;
    } theirs[] = {
        {"0 9 * * 1", "2026-11-17 00:00Z", "2026-11-23 09:00Z"},
        {"30 2 * * *", "2026-03-29 00:00Z", "2026-03-29 02:30Z"}, /* an hour that Berlin leaves out */
        {"0 0 13 * 5", "2026-11-01 00:00Z", "2026-11-13 00:00Z"},
        {"0 0 13 * 5", "2026-11-13 00:00Z", "2027-08-13 00:00Z"},
        {"0 0 */2 * *", "2026-11-01 00:00Z", "2026-11-02 00:00Z"},
        {"0 0 */2 * *", "2026-11-30 00:00Z", "2026-12-02 00:00Z"},
        {"0 0 1 */3 *", "2026-01-15 00:00Z", "2026-03-01 00:00Z"},
        {"0 0 1 */12 *", "2026-01-15 00:00Z", "2027-01-01 00:00Z"}, /* one month alone does not tell its step */
        {"*/15 * * * *", "2026-11-17 00:01Z", "2026-11-17 00:15Z"},
    };
    set_zone("Europe/Berlin");
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        weft_cron cron;
        const char *why;
        int64_t next = 0;
        char text[32];
        test_row(theirs[i].schedule);
        REQUIRE(weft__cron_parse(theirs[i].schedule, &cron, &why) == 0);
        weft__cron_as_aiwg(&cron);
        CHECK_INT(weft__cron_next(&cron, at(theirs[i].after), &next), 0);
        CHECK_STR(show(next, text), theirs[i].fires);
    }
}

TEST_MAIN(CASE(refuses) CASE(fires) CASE(agrees_with_every_minute) CASE(fires_as_aiwgs))
