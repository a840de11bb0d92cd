/* Diffs as git prints them, line by line; finding lines in them for a prompt; and the text in which a person comments on
 * them. */
#include "diff_lines.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "review.h"
#include "review_text.h"

static const char diff[] = "diff --git a/a b/a\n"
                           "index 1..2 100644\n"
                           "--- a/a\n"
                           "+++ b/a\n"
                           "@@ -1,4 +1,4 @@ int f(void)\n"
                           " one\n"
                           "-two\n"
                           "+2\n"
                           " \n"
                           "--- x\n"
                           "+++ y\n"
                           "\\ No newline at end of file\n"
                           "@@ -20 +20,2 @@\n"
                           " twenty\r\n"
                           "+more\tof \x1b[31mit\n"
                           "diff --git a/gone b/gone\n"
                           "deleted file mode 100644\n"
                           "--- a/gone\n"
                           "+++ /dev/null\n"
                           "@@ -1 +0,0 @@\n"
                           "-bye\n"
                           "diff --git a/old name b/new name\n"
                           "similarity index 90%\n"
                           "rename from old name\n"
                           "rename to new name\n"
                           "--- a/old name\t\n"
                           "+++ b/new name\t\n"
                           "@@ -3 +3 @@\n"
                           "-x\n"
                           "+y\n"
                           "diff --git a/bin b/bin\n"
                           "new file mode 100644\n"
                           "Binary files /dev/null and b/bin differ\n"
                           "diff --git \"a/q\\t\\303\\251\\\"\" \"b/q\\t\\303\\251\\\"\"\n"
                           "old mode 100644\n"
                           "new mode 100755\n"
                           "diff --git a/m b/n\n"
                           "similarity index 100%\n"
                           "rename from m\n"
                           "rename to n\n";

static weft_bytes bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

TEST(lines_have_kinds_and_numbers) {
    static const char letters[] = "FH@ +-\\";
    char got[2048] = "";
    weft_diff_reader reader = {.at = diff, .end = diff + sizeof diff - 1};
    weft_diff_line line;
    for (size_t i = 0; i < 15 && weft__diff_next(&reader, &line); i++) {
        size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%c%zu,%zu ", letters[line.kind], line.before, line.now);
    }
    CHECK_TEXT(got, strlen(got), "F0,0 H0,0 H0,0 H0,0 @0,0  1,1 -2,0 +0,2  3,3 -4,0 +0,4 \\0,0 @0,0  20,20 +0,21 ");
}

TEST(files_have_paths) {
    char got[2048] = "", path[WEFT_DIFF_PATH];
    weft_diff_reader reader = {.at = diff, .end = diff + sizeof diff - 1};
    weft_diff_line line;
    while (weft__diff_next(&reader, &line))
        if (line.kind == WEFT_DIFF_FILE)
            for (int old = 1; old >= 0; old--) {
                size_t n = strlen(got);
                bool there = weft__diff_path(&reader, old, path);
                snprintf(got + n, sizeof got - n, "%.200s%s", there ? path : "none", old ? " -> " : "|");
            }
    CHECK_TEXT(got, strlen(got),
               "a -> a|gone -> none|old name -> new name|none -> bin|q\t\xc3\xa9\" -> q\t\xc3\xa9\"|m -> n|");
}

TEST(odd_texts_are_read_to_their_end) {
    static const char *const texts[] = {"",
                                        "\n",
                                        "@@",
                                        "@@ -1",
                                        "@@ -1,99999999999999999999 +1 @@\n",
                                        "@@ -1 +1 @@\nx",
                                        "diff --git ",
                                        "diff --git \"a/\\",
                                        "diff --git a/x b/x\n@@ -1,9 +1,9 @@\n x\ndiff --git a/y b/y\n",
                                        "diff --git \"a/\\9\" \"b/\\9\"\n",
                                        "\\ "};
    char path[WEFT_DIFF_PATH];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        test_row(texts[i]);
        weft_diff_reader reader = {.at = texts[i], .end = texts[i] + strlen(texts[i])};
        weft_diff_line line;
        size_t count = 0;
        while (weft__diff_next(&reader, &line) && count++ < 100)
            (void) weft__diff_file(&reader, path);
        CHECK(count <= 4 && reader.at == reader.end);
    }
    test_row(NULL);
}

/* ---- finding ---- */

TEST(comments_are_found) {
    static const struct {
        const char *path;
        size_t line;
        bool old;
        const char *excerpt; /* NULL: it is not in the diff */
    } rows[] = {
        {"a", 2, false, "       one\n      -two\n    > +2\n       \n      --- x\n      +++ y\n"},
        {"a", 2, true, "       one\n    > -two\n      +2\n       \n      --- x\n"},
        {"a", 1, false, "    >  one\n      -two\n      +2\n       \n"},
        {"a", 21, false, "       twenty\n    > +more\tof \\u001b[31mit\n"},
        {"a", 5, false, NULL},
        {"a", 19, true, NULL},
        {"a", 0, false, ""},
        {"b", 1, false, NULL},
        {"gone", 1, true, "    > -bye\n"},
        {"gone", 1, false, NULL},
        {"new name", 3, false, "      -x\n    > +y\n"},
        {"new name", 3, true, "    > -x\n      +y\n"},
        {"old name", 3, true, "    > -x\n      +y\n"},
        {"old name", 3, false, NULL},
        {"bin", 0, false, ""},
        {"bin", 1, false, NULL},
        {"q\t\xc3\xa9\"", 0, false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s:%zu %d", rows[i].path, rows[i].line, rows[i].old);
        test_row(name);
        weft_comment comment = {.path = rows[i].path, .text = "t", .line = rows[i].line, .old = rows[i].old};
        CHECK_INT(weft__comments_find(&comment, 1, bytes(diff), NULL), 0);
        CHECK_INT(comment.found, rows[i].excerpt != NULL);
        const char *head = weft__buf_len(&comment.excerpt) ? weft__buf_head(&comment.excerpt) : "";
        CHECK_TEXT(head, weft__buf_len(&comment.excerpt), rows[i].excerpt ? rows[i].excerpt : "");
        weft__comments_done(&comment, 1, NULL);
    }
    test_row(NULL);
}

TEST(a_long_line_is_cut) {
    static char text[4000];
    size_t n = (size_t) snprintf(text, sizeof text, "diff --git a/l b/l\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n+");
    memset(text + n, 'x', 3000);
    weft_comment comment = {.path = "l", .text = "t", .line = 1};
    CHECK_INT(weft__comments_find(&comment, 1, bytes(text), NULL), 0);
    CHECK(comment.found && weft__buf_len(&comment.excerpt) == 6 + WEFT_REVIEW_LINE + 4 + 1);
    weft__comments_done(&comment, 1, NULL);
}

static int write_prompt(const weft_alloc *alloc, const char *about, weft_buf *ret) {
    weft_comment comments[] = {{.path = "gone", .text = "why?", .line = 1, .old = true}, {.path = "bin", .text = "what?"}};
    int r = weft__comments_find(comments, 2, bytes(diff), alloc);
    if (r >= 0)
        r = weft__review_write_prompt(
            ret, alloc,
            &(weft_review_prompt){.task = "task-0001", .about = about, .text = "Good.", .list = comments, .count = 2});
    weft__comments_done(comments, 2, alloc);
    return r;
}

TEST(what_the_agent_is_told) {
    weft_buf out = {0};
    CHECK_INT(write_prompt(NULL, "fix it", &out), 0);
    CHECK_STR(weft__buf_head(&out),
              "A person has reviewed what task-0001 changed in the project's files and has 2 comments on it.\n\n"
              "What was to be done there:\n\nfix it\n\nIts changes are in the project's files.\n\nGood.\n\n"
              "1. gone, line 1 of the file as it was before:\n\n    > -bye\n\nwhy?\n\n2. bin:\n\nwhat?\n\n");
    weft__buf_done(&out, NULL);
    CHECK_INT(write_prompt(NULL, NULL, &out), 0);
    CHECK(!strstr(weft__buf_head(&out), "What was to be done"));
    weft__buf_done(&out, NULL);
    static char long_prompt[3 * WEFT_REVIEW_PROMPT];
    memset(long_prompt, 'p', sizeof long_prompt - 1);
    CHECK_INT(write_prompt(NULL, long_prompt, &out), 0);
    CHECK(weft__buf_len(&out) < WEFT_REVIEW_PROMPT + 1000 && strstr(weft__buf_head(&out), "the beginning of it"));
    weft__buf_done(&out, NULL);
}

TEST(a_prompt_without_memory) {
    for (long fail_at = 1;; fail_at++) {
        test_memory memory;
        weft_buf out = {0};
        test_memory_init(&memory, fail_at);
        int r = write_prompt(&memory.alloc, "fix it", &out);
        weft__buf_done(&out, &memory.alloc);
        CHECK_INT(memory.live, 0);
        if (r == 0) {
            CHECK(fail_at > 2);
            return;
        }
        CHECK_INT(r, -ENOMEM);
    }
}

/* ---- the text that a person edits ---- */

/* Owned. Every line is followed by what says() has for it. */
typedef struct edit {
    const char *below, *insert; /* the line begins so; insert NULL: it is left out */
} edit;

static char *edit_text(const char *text, const edit *edits, size_t count) {
    char *out = calloc(1, 4 * strlen(text) + 4096);
    size_t len = 0;
    while (out && *text) {
        size_t n = strcspn(text, "\n");
        const edit *found = NULL;
        for (size_t i = 0; i < count && !found; i++)
            if (strncmp(text, edits[i].below, strlen(edits[i].below)) == 0)
                found = &edits[i];
        if (!found || found->insert)
            len += (size_t) sprintf(out + len, "%.*s\n", (int) n, text);
        if (found && found->insert)
            len += (size_t) sprintf(out + len, "%s", found->insert);
        text += n + (text[n] == '\n');
    }
    return out;
}

/* "path:line text|...", of an old line "path:-line". */
static const char *said_text(const weft_review_text *said) {
    static char text[2048];
    snprintf(text, sizeof text, "%s%s", said->text ? said->text : "", said->text ? "|" : "");
    for (size_t i = 0; i < said->count; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s:%s%zu %s|", said->said[i].path, said->said[i].old ? "-" : "",
                 said->said[i].line, said->said[i].text);
    }
    return text;
}

TEST(what_a_person_says) {
    static const struct {
        const char *name;
        edit edits[6];
        const char *said; /* NULL: it is refused, */
        const char *why;
    } rows[] = {
        {"nothing", {{0}}, "", NULL},
        {"below lines",
         {{"+2", "> new\n"}, {"-two", "> old\n"}, {" one", ">both\n"}, {"--- x", "> no head\n"}},
         "a:1 both|a:-2 old|a:2 new|a:-4 no head|",
         NULL},
        {"several lines are one", {{"+2", "> one\n>\n\n>   two\n> \n"}}, "a:2 one\n\n  two|", NULL},
        {"empty ones are none", {{"+2", ">\n> \n"}}, "", NULL},
        {"about all", {{"# What", "> first\n"}, {"+2", "> x\n"}}, "first|a:2 x|", NULL},
        {"about a file", {{"diff --git a/bin", "> bin\n"}, {"Binary", "> again\n"}}, "bin:0 bin|bin:0 again|", NULL},
        {"below the first line of a hunk",
         {{"@@ -20", "> twenty\n"}, {"@@ -1 +0", "> bye\n"}},
         "a:20 twenty|gone:-1 bye|",
         NULL},
        {"below a note", {{"\\ No", "> end\n"}}, "a:4 end|", NULL},
        {"with the ends of lines of others", {{"+2", "> dos\r\n> file\r\n"}}, "a:2 dos\nfile|", NULL},
        {"with air", {{"+2", "\n> x\n\n\n"}}, "a:2 x|", NULL},
        {"help is passed over", {{"+2", "# what now?\n> x\n#\n> y\n"}}, "a:2 x\ny|", NULL},
        {"a quoted name", {{"old mode", "> mode\n"}}, "q\t\xc3\xa9\":0 mode|", NULL},
        {"a name without a mark", {{"rename to n", "> n\n"}}, "new name:0 n|n:0 n|", NULL},
        {"a line that is shown otherwise", {{"+more", "> colour\n"}}, "a:21 colour|", NULL},
        {"a hunk is left out",
         {{"@@ -1,4", NULL}, {" one", NULL}, {"-two", NULL}, {"+2", NULL}, {"@@ -20", "> x\n"}},
         NULL,
         "this is not the next line"}, /* not all of it */
        {"a line is left out", {{"+2", NULL}}, NULL, "this is not the next line"},
        {"a line is added", {{"+2", "+3\n"}}, NULL, "this is not the next line"},
        {"a comment without its mark", {{"+2", "why?\n"}}, NULL, "a comment begins with"},
        {"no UTF-8", {{"+2", "> \xff\n"}}, NULL, "UTF-8"},
        {"another hunk", {{"+2", "@@ -5 +5 @@\n"}}, NULL, "this is not the next line"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf text = {0};
        weft_review_text said;
        size_t count = 0;
        test_row(rows[i].name);
        while (count < 6 && rows[i].edits[count].below)
            count++;
        CHECK_INT(weft__review_text_write(&text, NULL, "task-0001", bytes(diff)), 0);
        CHECK_INT(weft__buf_put(&text, NULL, "", 1), 0);
        char *edited = edit_text(weft__buf_head(&text), rows[i].edits, count);
        int r = weft__review_text_read(bytes(edited), bytes(diff), NULL, &said);
        CHECK_INT(r, rows[i].said ? 0 : -EBADMSG);
        if (rows[i].said)
            CHECK_STR(said_text(&said), rows[i].said);
        else
            CHECK(said.why && strstr(said.why, rows[i].why) && said.bad_line > 10);
        weft__review_text_done(&said);
        weft__buf_done(&text, NULL);
        free(edited);
    }
    test_row(NULL);
}

TEST(whole_files_and_hunks_may_be_left_out) {
    static const char edited[] = "@@ -20 +20,2 @@\n twenty\n+more\tof \\u001b[31mit\n> x\n";
    static const char file[] = "diff --git a/gone b/gone\n@@ -1 +0,0 @@\n-bye\n> y\ndiff --git a/n b/n\n";
    weft_review_text said;
    /* Without the name of its file a hunk is of the one that is being read: of none. */
    CHECK_INT(weft__review_text_read(bytes(edited), bytes(diff), NULL, &said), -EBADMSG);
    weft__review_text_done(&said);
    char whole[256];
    snprintf(whole, sizeof whole, "diff --git a/a b/a\n%s", edited);
    CHECK_INT(weft__review_text_read(bytes(whole), bytes(diff), NULL, &said), 0);
    CHECK_STR(said_text(&said), "a:21 x|");
    weft__review_text_done(&said);
    CHECK_INT(weft__review_text_read(bytes(file), bytes(diff), NULL, &said), -EBADMSG);
    CHECK_INT(said.bad_line, 5);
    weft__review_text_done(&said);
}

/* An editor that takes blanks away at the end of lines makes empty lines of blank ones. */
TEST(blanks_at_the_end_may_be_lost) {
    static const char edited[] =
        "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1,4 +1,4 @@ int f(void)\n one\n"
        "-two\n+2\n\n> blank\n--- x\n+++ y\n";
    weft_review_text said;
    CHECK_INT(weft__review_text_read(bytes(edited), bytes(diff), NULL, &said), 0);
    CHECK_STR(said_text(&said), "a:3 blank|");
    weft__review_text_done(&said);
}

TEST(there_is_a_limit) {
    char *lines = calloc(1, 1 << 20), *edited = calloc(1, 1 << 20);
    size_t n = (size_t) sprintf(lines, "diff --git a/l b/l\n--- a/l\n+++ b/l\n@@ -0,0 +1,%d @@\n", WEFT_REVIEW_COMMENTS + 1);
    size_t m = (size_t) sprintf(edited, "%s", lines);
    for (int i = 0; i <= WEFT_REVIEW_COMMENTS; i++) {
        n += (size_t) sprintf(lines + n, "+%d\n", i);
        m += (size_t) sprintf(edited + m, "+%d\n> x\n", i);
    }
    weft_review_text said;
    CHECK_INT(weft__review_text_read(bytes(edited), bytes(lines), NULL, &said), -EBADMSG);
    CHECK(strstr(said.why, "too many comments") != NULL);
    weft__review_text_done(&said);
    edited[m - 4] = '\0'; /* one less */
    CHECK_INT(weft__review_text_read(bytes(edited), bytes(lines), NULL, &said), 0);
    CHECK_INT(said.count, WEFT_REVIEW_COMMENTS);
    weft__review_text_done(&said);
    m = (size_t) sprintf(edited, "> ");
    memset(edited + m, 'x', WEFT_REVIEW_TEXT + 1);
    edited[m + WEFT_REVIEW_TEXT + 1] = '\0';
    CHECK_INT(weft__review_text_read(bytes(edited), bytes(lines), NULL, &said), -EBADMSG);
    weft__review_text_done(&said);
    free(lines);
    free(edited);
}

TEST(a_review_without_memory) {
    static const edit edits[] = {{"+2", "> x\n> y\n"}, {"-two", "> z\n"}, {"# What", "> all\n"}};
    weft_buf text = {0};
    CHECK_INT(weft__review_text_write(&text, NULL, "task-0001", bytes(diff)), 0);
    CHECK_INT(weft__buf_put(&text, NULL, "", 1), 0);
    char *edited = edit_text(weft__buf_head(&text), edits, 3);
    weft__buf_done(&text, NULL);
    for (long fail_at = 1, r = -1; r < 0; fail_at++) {
        test_memory memory;
        weft_review_text said;
        test_memory_init(&memory, fail_at);
        r = weft__review_text_read(bytes(edited), bytes(diff), &memory.alloc, &said);
        CHECK(r == 0 ? fail_at > 4 && said.count == 2 : r == -ENOMEM);
        weft__review_text_done(&said);
        CHECK_INT(memory.live, 0);
        test_memory_init(&memory, fail_at);
        int w = weft__review_text_write(&text, &memory.alloc, "t", bytes(diff));
        CHECK(w == 0 || w == -ENOMEM);
        weft__buf_done(&text, &memory.alloc);
        CHECK_INT(memory.live, 0);
    }
    free(edited);
}

TEST_MAIN(CASE(lines_have_kinds_and_numbers) CASE(files_have_paths) CASE(odd_texts_are_read_to_their_end)
              CASE(comments_are_found) CASE(a_long_line_is_cut) CASE(what_the_agent_is_told) CASE(a_prompt_without_memory)
                  CASE(what_a_person_says) CASE(blanks_at_the_end_may_be_lost) CASE(whole_files_and_hunks_may_be_left_out)
                      CASE(there_is_a_limit) CASE(a_review_without_memory))
