/* Patterns: globs, and lists of them by the rules of .gitignore. */
#include "ignore.h"

#include <errno.h>
#include <stdlib.h>

#include "glob.h"
#include "harness.h"

TEST(paths) {
    static const struct {
        const char *pattern, *path;
        bool want;
    } rows[] = {
        {"a", "a", true},
        {"a", "b", false},
        {"a", "a/b", false},
        {"*", "a", true},
        {"*", "a/b", false},
        {"*.ts", "a.ts", true},
        {"*.ts", ".ts", true},
        {"*.ts", "a.tsx", false},
        {"a*b*c", "aXbXbXc", true},
        {"a*b*c", "aXbX", false},
        {"?", "\xc3\xbc", true},
        {"?", "ab", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[^a]x", "ax", false},
        {"[]]", "]", true},
        {"[a", "[a", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"src/*.c", "src/a.c", true},
        {"src/*.c", "src/x/a.c", false},
        {"src/**", "src/a", true},
        {"src/**", "src/a/b/c", true},
        {"src/**", "src", false},
        {"**", "a/b", true},
        {"**/a", "a", true},
        {"**/a", "x/y/a", true},
        {"**/a", "x/a/y", false},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"a/**/b", "a/x/y/c", false},
        {"a/**/b/**/c", "a/b/b/x/c", true},
        {"**/*.c", "a.c", true},
        {"**/x*/**/y", "1/x2/3/x4/5/y", true},
        {"a**b", "aXb", true},
        {"a**b", "a/b", false},
        {"", "", true},
        {"", "a", false},
        {"**", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s on %s", rows[i].pattern, rows[i].path);
        test_row(name);
        CHECK_INT(weft__glob_path(rows[i].pattern, rows[i].path), rows[i].want);
    }
    test_row(NULL);
}

TEST(braces) {
    static const struct {
        const char *pattern, *path;
        bool want;
    } rows[] = {
        {"*.{ts,tsx}", "src/a.tsx", true},
        {"*.{ts,tsx}", "src/a.js", false},
        {"{src,lib}/**/*.{c,h}", "lib/x/y.h", true},
        {"{src,lib}/**/*.{c,h}", "test/y.h", false},
        {"{a,b{c,d}}", "bd", true},
        {"{a,b{c,d}}", "b", false},
        {"{,x}a", "a", true},
        {"{a}", "a", true},
        {"\\{a", "{a", true},
        {"a}", "a}", true},
        {"/a", "a", true},
        {"/a", "b/a", false},
        {"a", "b/a", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_glob *glob = NULL;
        test_row(rows[i].pattern);
        if (!CHECK_INT(weft__glob_new(rows[i].pattern, NULL, &glob), 0))
            continue;
        CHECK_INT(weft__glob_matches(glob, rows[i].path), rows[i].want);
        weft__glob_free(glob);
    }
    test_row(NULL);
    weft_glob *glob = NULL;
    CHECK_INT(weft__glob_new("{a", NULL, &glob), -EINVAL);
    CHECK_INT(weft__glob_new("{a,{b}", NULL, &glob), -EINVAL);
    CHECK_INT(weft__glob_new("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", NULL, &glob), 0);
    CHECK(weft__glob_says(glob, (weft_bytes){"bababb", 6}));
    weft__glob_free(glob);
    CHECK_INT(weft__glob_new("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", NULL, &glob), -E2BIG);
    CHECK_INT(weft__glob_new("fix *", NULL, &glob), 0);
    CHECK(weft__glob_says(glob, (weft_bytes){"fix a/b", 7}));
    weft__glob_free(glob);
}

/* What hangs matchers that go back to every star: this one takes no time worth measuring, or the test's time limit ends it.
 */
TEST(no_pattern_takes_long) {
    char text[4097];
    memset(text, 'a', 4096);
    text[4096] = '\0';
    CHECK(!weft__glob_path("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
    for (size_t i = 1; i < 4096; i += 2)
        text[i] = '/';
    CHECK(!weft__glob_path("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", text));
}

TEST(lists) {
    static const char list[] = "\xef\xbb\xbf# a comment\n"
                               "*.o\r\n"
                               "\n"
                               "build/\n"
                               "/top\n"
                               "docs/*.txt\n"
                               "!docs/keep.txt\n"
                               "\\#odd\n"
                               "\\!bang\n"
                               "blank   \n"
                               "kept\\ \n"
                               "**/deep/**\n"
                               "!important.o";
    static const struct {
        const char *path;
        bool folder;
        weft_ignored want;
    } rows[] = {
        {"a.o", false, WEFT_IGNORE_YES},
        {"x/y/a.o", false, WEFT_IGNORE_YES},
        {"a.oo", false, WEFT_IGNORE_NO_WORD},
        {"important.o", false, WEFT_IGNORE_NO},
        {"x/important.o", false, WEFT_IGNORE_NO},
        {"build", true, WEFT_IGNORE_YES},
        {"x/build", true, WEFT_IGNORE_YES},
        {"build", false, WEFT_IGNORE_NO_WORD},
        {"top", false, WEFT_IGNORE_YES},
        {"x/top", false, WEFT_IGNORE_NO_WORD},
        {"docs/a.txt", false, WEFT_IGNORE_YES},
        {"docs/keep.txt", false, WEFT_IGNORE_NO},
        {"x/docs/a.txt", false, WEFT_IGNORE_NO_WORD},
        {"#odd", false, WEFT_IGNORE_YES},
        {"!bang", false, WEFT_IGNORE_YES},
        {"blank", false, WEFT_IGNORE_YES},
        {"kept ", false, WEFT_IGNORE_YES},
        {"kept", false, WEFT_IGNORE_NO_WORD},
        {"x/deep/y", false, WEFT_IGNORE_YES},
        {"# a comment", false, WEFT_IGNORE_NO_WORD},
    };
    weft_ignore *ignore = NULL;
    CHECK_INT(weft__ignore_new(NULL, &ignore), 0);
    CHECK_INT(weft__ignore_add_text(ignore, (weft_bytes){list, sizeof list - 1}), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].path);
        CHECK_INT(weft__ignore_says(ignore, rows[i].path, rows[i].folder), rows[i].want);
    }
    test_row(NULL);
    CHECK_INT(weft__ignore_says(NULL, "a", false), WEFT_IGNORE_NO_WORD);
    weft__ignore_free(ignore);
}

/* The rest of a list that is too long is left out. */
TEST(limits) {
    weft_ignore *ignore = NULL;
    char name[32];
    CHECK_INT(weft__ignore_new(NULL, &ignore), 0);
    for (int i = 0; i < WEFT_IGNORE_PATTERNS + 1; i++) {
        int n = snprintf(name, sizeof name, "name%d", i);
        CHECK_INT(weft__ignore_add(ignore, (weft_bytes){name, (size_t) n}), 0);
    }
    snprintf(name, sizeof name, "name%d", WEFT_IGNORE_PATTERNS - 1);
    CHECK_INT(weft__ignore_says(ignore, name, false), WEFT_IGNORE_YES);
    snprintf(name, sizeof name, "name%d", WEFT_IGNORE_PATTERNS);
    CHECK_INT(weft__ignore_says(ignore, name, false), WEFT_IGNORE_NO_WORD);
    weft__ignore_free(ignore);
}

TEST_MAIN(CASE(paths) CASE(braces) CASE(no_pattern_takes_long) CASE(lists) CASE(limits))
