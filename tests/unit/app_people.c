/* What the command line makes of people's words and shows them: answers to questions, changes as a diff, times, tables. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "diff.h"
#include "harness.h"
#include "question_text.h"
#include "table.h"
#include "terminal_status.h"
#include "time_text.h"

/* What a function writes to a screen. Owned. */
typedef void writer(const weft_screen *screen, const void *what);
static char *written(writer *write, const void *what, bool terminal) {
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    weft_screen screen = {.file = file, .terminal = terminal};
    write(&screen, what);
    fclose(file);
    return text;
}

/* ---- answers ---- */

static const char question_text[] =
    "{\"id\":\"question-0001\",\"title\":\"Edit a.c\",\"options\":["
    "{\"id\":\"always\",\"name\":\"Allow always\",\"kind\":\"allow_always\"},"
    "{\"id\":\"once\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
    "{\"id\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_once\"}],"
    "\"detail\":{\"toolCall\":{\"rawInput\":{\"command\":\"rm \\u001b[2J\"},\"content\":"
    "[{\"type\":\"diff\",\"path\":\"a.c\",\"oldText\":\"a\\nb\\n\",\"newText\":\"a\\nc\\n\"}]}}}";

TEST(what_an_answer_means) {
    static const struct {
        const char *typed, *option, *text;
    } rows[] = {
        {"1", "always", ""},
        {"2", "once", ""},
        {" 3 \t", "no", ""},
        {"3 not in this file", "no", "not in this file"},
        {"3: not in this file", "no", "not in this file"},
        {"once", "once", ""},
        {"ONCE", "once", ""},
        {"Allow always", "always", ""}, /* the whole name, not "Allow" and a reason */
        {"Allow", "once", ""},
        {"allow_always", "always", ""},
        {"y", "once", ""}, /* what is given once comes before what is given for good */
        {"yes please", "once", "please"},
        {"no, never", "no", "never"},
        {"deny", "no", ""},
        {"reject", "no", ""},
        {"4", NULL, NULL},
        {"0", NULL, NULL},
        {"", NULL, NULL},
        {"  ", NULL, NULL},
        {"maybe", NULL, NULL},
        {"on", NULL, NULL},
    };
    weft_doc *doc = NULL;
    REQUIRE(weft_doc_parse(question_text, strlen(question_text), NULL, &doc) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = NULL, *option = NULL;
        int r = weft__question_option(weft_doc_root(doc), rows[i].typed, &option, &text);
        test_row(rows[i].typed);
        if (rows[i].option) {
            CHECK_INT(r, 1);
            CHECK_STR(option, rows[i].option);
            CHECK_STR(text, rows[i].text);
        } else {
            CHECK_INT(r, 0);
        }
    }
    test_row(NULL);
    weft_doc_free(doc);
}

static void put_question(const weft_screen *screen, const void *what) {
    weft__question_put(screen, what);
}

TEST(a_question_is_shown_whole) {
    weft_doc *doc = NULL;
    REQUIRE(weft_doc_parse(question_text, strlen(question_text), NULL, &doc) == 0);
    char *text = written(put_question, weft_doc_root(doc), true);
    CHECK(strstr(text, "question-0001: Edit a.c\n"));
    CHECK(strstr(text, "  command: rm \\u001b[2J\n")); /* and steers no terminal */
    CHECK(strstr(text, "  a.c\n      a\n    - b\n    + c\n"));
    CHECK(strstr(text,
                 "  1) Allow always  always  allow_always\n  2) Allow  once  allow_once\n  3) Reject  no  reject_once\n"));
    free(text);
    weft_doc_free(doc);
}

/* ---- changes ---- */

typedef struct change {
    const char *name, *before, *after, *shown;
    size_t most;
} change;

static void put_change(const weft_screen *screen, const void *what) {
    const change *one = what;
    weft__diff_put(screen, one->before, one->after, one->most);
}

/* What an agent writes to hide or to imitate something is seen, on a terminal and in a file. */
TEST(a_question_cannot_deceive) {
    static const char asked[] =
        "{\"id\":\"question-0001\",\"title\":\"ls\\n  1) Reject\",\"options\":["
        "{\"id\":\"a\\u202e\",\"name\":\"Reject\\u0000\\nx\",\"kind\":\"allow_always\"}],"
        "\"detail\":{\"rawInput\":{\"command\":\"ls\\n  deny) x\\u0000 \\\\u0041\",\"a\\nb\":[\"\\u001b\"]},\"content\":["
        "{\"type\":\"diff\",\"path\":\"a\\nb\",\"oldText\":null,\"newText\":\"x\\u0000y\"},"
        "{\"type\":\"terminal\",\"terminalId\":\"t\"}]}}";
    for (int terminal = 0; terminal < 2; terminal++) {
        weft_doc *doc = NULL;
        REQUIRE(weft_doc_parse(asked, strlen(asked), NULL, &doc) == 0);
        char *text = written(put_question, weft_doc_root(doc), terminal);
        CHECK(strstr(text, "question-0001: ls\\u000a  1) Reject\n"));
        CHECK(strstr(text, "  command: \n    | ls\n    |   deny) x\\u0000 \\u005cu0041\n"));
        CHECK(strstr(text, "  a\\u000ab: [\"\\u001b\"]\n"));
        CHECK(strstr(text, "  a\\u000ab (new)\n    after:\n    | x\\u0000y\n"));
        CHECK(strstr(text, "  terminal: {\"type\":\"terminal\",\"terminalId\":\"t\"}\n"));
        CHECK(strstr(text, "  1) Reject\\u0000\\u000ax  a\\u202e  allow_always\n"));
        CHECK(strstr(text, "  deny: none of these"));
        free(text);
        weft_doc_free(doc);
    }
}

TEST(changes_line_by_line) {
    static const change rows[] = {
        {"nothing", "a\n", "a\n", "      a\n", 9},
        {"empty", "", "", "", 9},
        {"a new file", "", "a\nb\n", "    + a\n    + b\n", 9},
        {"all gone", "a\n", "", "    - a\n", 9},
        {"one of three", "a\nb\nc\n", "a\nB\nc\n", "      a\n    - b\n    + B\n      c\n", 9},
        {"two of them, something between", "a\nb\nc\n", "A\nb\nC\n", "    - a\n    + A\n      b\n    - c\n    + C\n", 9},
        {"only what is near", "1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n5\n6\n7\n",
         "      2\n      3\n    - 4\n    + x\n      5\n      6\n", 9},
        {"no end of line", "a", "a\nb", "      a\n    + b\n", 9},
        {"said twice", "a\na\n", "a\n", "      a\n    - a\n", 9},
        {"too much", "", "1\n2\n3\n", "    + 1\n    + 2\n    … 1 more lines; --json has all of them\n", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = written(put_change, &rows[i], false);
        test_row(rows[i].name);
        CHECK_STR(text, rows[i].shown);
        free(text);
    }
    test_row(NULL);
}

TEST(a_change_too_large_to_compare) {
    enum { LINES = 3000 };
    char *before = calloc(LINES + 1, 8), *after = calloc(LINES + 1, 8);
    REQUIRE(before && after);
    for (int i = 0; i < LINES; i++) {
        sprintf(before + strlen(before), "%d\n", i);
        sprintf(after + strlen(after), "%d\n", -i - 1);
    }
    char *text = written(put_change, &(change){"", before, after, "", 10}, false);
    CHECK(strstr(text, "    - 0\n"));
    CHECK(strstr(text, "5990 more lines"));
    free(text);
    free(before);
    free(after);
}

/* ---- times ---- */

TEST(times_of_the_wire) {
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"\"1970-01-01T00:00:01.5Z\"", 1500},
        {"\"2026-01-31T12:34:56.789Z\"", 1769862896789},
        {"\"2026-01-31T12:34:56Z\"", 1769862896000},
        {"\"2026-01-31T12:34:56\"", 1769862896000},
        {"1769862896789", 1769862896789},
        {"null", 0},
        {"\"soon\"", 0},
        {"\"2026-01-31T12:34:56.7Zoo\"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *doc = NULL;
        test_row(rows[i].text);
        REQUIRE(weft_doc_parse(rows[i].text, strlen(rows[i].text), NULL, &doc) == 0);
        CHECK_INT(weft__time_of(weft_doc_root(doc)), rows[i].ms);
        weft_doc_free(doc);
    }
    test_row(NULL);
}

/* Now is Saturday, 2026-01-31 12:34:56 UTC, which is 18:19:56 where the clock is 5:45 ahead. */
TEST(times_that_are_typed) {
    static const int64_t now = 1769862896000, midnight = 1769796900000, minute = 60000, hour = 3600000, day = 86400000;
    static const int64_t none = -1;
    const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"now", now},
        {"10m", now - 10 * minute},
        {"-10m", now - 10 * minute},
        {"10m ago", now - 10 * minute},
        {"10 min ago", now - 10 * minute},
        {"90s", now - 90000},
        {"250ms", now - 250},
        {"2h", now - 2 * hour},
        {"3d", now - 3 * day},
        {"1w", now - 7 * day},
        {"today", midnight},
        {"yesterday", midnight - day},
        {"11:00", midnight + 11 * hour},
        {"9:05", midnight + 9 * hour + 5 * minute},
        {"09:05:07", midnight + 9 * hour + 5 * minute + 7000},
        {"09:05:07.25", midnight + 9 * hour + 5 * minute + 7250},
        {"23:59", midnight + 23 * hour + 59 * minute},
        {"2026-01-31", midnight},
        {"2026-01-30", midnight - day},
        {"2026-01-31T11:00", midnight + 11 * hour},
        {"2026-01-31 11:00:30", midnight + 11 * hour + 30000},
        {"2026-01-31T12:34:56Z", now},
        {"2026-01-31T12:34:56.789Z", now + 789},
        {"2026-01-31T18:19:56+05:45", now},
        {"2026-01-31T10:34:56-0200", now},
        {"2024-02-29T00:00Z", 1709164800000},
        {"", none},
        {"soon", none},
        {"11", none},
        {"11:", none},
        {"11:0", none},
        {"11:60", none},
        {"24:00", none},
        {"11:00:60", none},
        {"11:00x", none},
        {"1:2:3", none},
        {"111:00", none},
        {"2026-02-30", none},
        {"2026-13-01", none},
        {"2026-00-01", none},
        {"2026-01-00", none},
        {"2026-1-1", none},
        {"2026-01-31T", none},
        {"2026-01-31T25:00", none},
        {"2026-01-31T12:00+2", none},
        {"2026-01-31T12:00Zoo", none},
        {"10", none},
        {"-10", none},
        {"10x", none},
        {"10m later", none},
        {"--10m", none},
        {"9223372036854775807d", none},
        {"99999999999999999999s", none},
    };
    setenv("TZ", "XXX-5:45", 1);
    tzset();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = none;
        test_row(rows[i].text);
        CHECK_INT(weft__time_typed(rows[i].text, now, &ms), rows[i].ms == none ? -EINVAL : 0);
        CHECK_INT(ms, rows[i].ms);
    }
    test_row(NULL);
    unsetenv("TZ");
    tzset();
}

TEST(durations) {
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{-1, "0 s"},
                {0, "0 ms"},
                {999, "999 ms"},
                {1000, "1 s"},
                {59999, "59 s"},
                {60000, "1 min 0 s"},
                {3599999, "59 min 59 s"},
                {3600000, "1 h 0 min"},
                {86399999, "23 h 59 min"},
                {86400000, "1 d 0 h"}};
    char text[WEFT_TIME_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_STR(weft__duration(text, rows[i].ms), rows[i].text);
}

/* ---- tables and prose ---- */

static void put_table(const weft_screen *screen, const void *what) {
    weft__table_put(what, screen);
}

TEST(a_row_stays_a_row) {
    static const char *const heads[] = {"ID", "PROMPT", NULL};
    weft_table table = {.heads = heads};
    const char *cells[] = {"task-0000", "two\nlines\x1b[2J", "t", "größer"};
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(weft__table_add(&table, cells[i]), 0);
    char *text = written(put_table, &table, false);
    CHECK_STR(text, "ID         PROMPT\ntask-0000  two lines\\u001b[2J\nt          größer\n");
    free(text);
    weft__table_done(&table);
}

static void put_prose(const weft_screen *screen, const void *what) {
    weft__put_prose(screen, what, strlen(what));
}

TEST(prose_keeps_its_lines) {
    char *text = written(put_prose, "a\tb\r\nc\x1b[2J\rd\n", true);
    CHECK_STR(text, "a\tb\nc\\u001b[2J\\u000dd\n");
    free(text);
    text = written(put_prose, "a\tb\r\nc\x1b\n", false);
    CHECK_STR(text, "a\tb\r\nc\x1b\n");
    free(text);
}

static ssize_t count_write(void *cookie, const char *text, size_t len) {
    (void) text;
    ++*(int *) cookie;
    return (ssize_t) len;
}

/* Standard error has no buffer: what can be shown as it is must not be a write for each character. */
TEST(text_goes_out_in_pieces) {
    static const struct {
        const char *text;
        int writes;
    } rows[] = {
        {"a sentence of the usual kind, with a \\ in it", 1},
        {"ein Satz wie \xc3\xbc"
         "blich \xe2\x80\xa6",
         1},
        {"before\x1b[2Jafter", 3},
        {"\x1b\x1b", 2},
        {"a\xff"
         "b",
         3},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int writes = 0;
        FILE *file = fopencookie(&writes, "w", (cookie_io_functions_t){.write = count_write});
        REQUIRE(file != NULL);
        setvbuf(file, NULL, _IONBF, 0);
        test_row(rows[i].text);
        weft__put_text(&(weft_screen){.file = file, .terminal = true}, rows[i].text, strlen(rows[i].text));
        CHECK_INT(writes, rows[i].writes);
        fclose(file);
    }
}

TEST_MAIN(CASE(what_an_answer_means) CASE(a_question_is_shown_whole) CASE(a_question_cannot_deceive)
              CASE(changes_line_by_line) CASE(a_change_too_large_to_compare) CASE(times_of_the_wire)
                  CASE(times_that_are_typed) CASE(durations) CASE(a_row_stays_a_row) CASE(prose_keeps_its_lines)
                      CASE(text_goes_out_in_pieces))
