/* The parsers over git's output, by tables; what git really prints is in git.c. */
#include "git_parse.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

#define H "0123456789abcdef0123456789abcdef01234567"
#define H2 "fedcba9876543210fedcba9876543210fedcba98"
#define TEXT(literal)                                                                                                       \
    { literal, sizeof literal - 1 }

typedef struct input {
    const char *data;
    size_t len;
} input;

/* A copy of exactly its size, which parsers may change; and one byte of room. */
static weft_git_text copy_of(input in, bool cut) {
    char *data = malloc(in.len + 1);
    memcpy(data, in.data, in.len);
    data[in.len] = 'x';
    return (weft_git_text){data, in.len, cut};
}

static const struct {
    const char *name;
    input in;
    bool cut;
    const char *prefix;
    int r;
    const char *files;
} statuses[] = {
    {"empty", TEXT(""), false, "", 0, ""},
    {"changed", TEXT("1 .M N... 100644 100644 100644 " H " " H " a b\0"), false, "", 0, ".M a b|"},
    {"a submodule", TEXT("1 .M SC.. 160000 160000 160000 " H " " H " m\0"), false, "", 0, ".M m(sub)|"},
    {"renamed", TEXT("2 R. N... 100644 100644 100644 " H " " H " R100 new\0old\0? u\0"), false, "", 0, "R. new<old|?? u|"},
    {"in conflict", TEXT("u UU N... 100644 100644 100644 100644 " H " " H " " H " c\0"), false, "", 0, "UU c(!)|"},
    {"ignored", TEXT("! i\0? u\0"), false, "", 0, "?? u|"},
    {"a header we do not know", TEXT("# stash 3\0# branch.head main\0"), false, "", 0, ""},
    {"below a folder", TEXT("? sub/u\0? other\0? sub/\0"), false, "sub/", 0, "?? u|?? ./|"},
    {"renamed from outside", TEXT("2 R. N... 1 1 1 " H " " H " R100 sub/new\0old\0"), false, "sub/", 0, "R. new|"},
    {"without an end", TEXT("? u"), false, "", -EBADMSG, ""},
    {"cut", TEXT("? u\0? v"), true, "", 0, "?? u|"},
    {"cut before the origin",
     TEXT("? u\0"
          "2 R. N... 1 1 1 " H " " H " R100 new\0ol"),
     true, "", 0, "?? u|"},
    {"no origin", TEXT("2 R. N... 1 1 1 " H " " H " R100 new\0"), false, "", -EBADMSG, ""},
    {"too few fields", TEXT("1 .M N... 100644 100644 a\0"), false, "", -EBADMSG, ""},
    {"no path", TEXT("1 .M N... 100644 100644 100644 " H " " H " \0"), false, "", -EBADMSG, ""},
    {"empty field", TEXT("1 .M N...  100644 100644 " H " " H " a\0"), false, "", -EBADMSG, ""},
    {"a short line", TEXT("1\0"), false, "", -EBADMSG, ""},
    {"a shorter line", TEXT("\0"), false, "", -EBADMSG, ""},
    {"a question without a path", TEXT("? \0"), false, "", -EBADMSG, ""},
    {"another kind", TEXT("7 x\0"), false, "", -EBADMSG, ""},
};

TEST(status_lines) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        weft_git_status status = {0};
        char said[256] = "";
        size_t len = 0;
        test_row(statuses[i].name);
        weft_git_text text = copy_of(statuses[i].in, statuses[i].cut);
        int r = weft__git_parse_status(text, statuses[i].prefix, 100, NULL, &status);
        CHECK_INT(r, statuses[i].r);
        for (size_t k = 0; k < status.count; k++) {
            const weft_git_file *file = &status.files[k];
            len += (size_t) snprintf(said + len, sizeof said - len, "%c%c %s%s%s%s%s|", file->index, file->worktree,
                                     file->path, file->orig_path ? "<" : "", file->orig_path ? file->orig_path : "",
                                     file->submodule ? "(sub)" : "", file->conflicted ? "(!)" : "");
        }
        CHECK_TEXT(said, len, statuses[i].files);
        CHECK_INT(status.truncated, r == 0 && statuses[i].cut);
        free(status.files);
        free(text.data);
    }
    test_row(NULL);
}

TEST(status_headers) {
    weft_git_status status = {0};
    weft_git_text text =
        copy_of((input) TEXT("# branch.oid " H "\0# branch.head a b\0# branch.upstream o/m\0# branch.ab +12 "
                             "-3\0"),
                false);
    CHECK_INT(weft__git_parse_status(text, "", 10, NULL, &status), 0);
    CHECK_STR(status.head, H);
    CHECK_STR(status.branch, "a b");
    CHECK_STR(status.upstream, "o/m");
    CHECK(status.compared && status.ahead == 12 && status.behind == 3 && status.is_clean);
    free(text.data);
    text = copy_of((input) TEXT("# branch.oid (initial)\0# branch.head (detached)\0# branch.ab +? -?\0"), false);
    CHECK_INT(weft__git_parse_status(text, "", 10, NULL, &status), 0);
    CHECK(!status.head && !status.branch && !status.upstream && !status.compared);
    free(text.data);
}

TEST(status_has_a_limit) {
    weft_git_status status = {0};
    weft_git_text text = copy_of((input) TEXT("? a\0? b\0? c\0"), false);
    CHECK_INT(weft__git_parse_status(text, "", 2, NULL, &status), 0);
    CHECK_INT(status.count, 2);
    CHECK(status.truncated && !status.is_clean);
    free(status.files);
    free(text.data);
}

static const struct {
    const char *name;
    input in;
    bool cut;
    size_t max;
    int r;
    size_t count;
    bool truncated;
} logs[] = {
    {"empty", TEXT(""), false, 9, 0, 0, false},
    {"one",
     TEXT(H "\0\0n\0e\0"
            "1\0"
            "2\0\0s\0b\n\n\0"),
     false, 9, 0, 1, false},
    {"a hash of 64",
     TEXT(H "012345670123456701234567\0\0n\0e\0"
            "1\0"
            "2\0\0s\0b\0"),
     false, 9, 0, 1, false},
    {"more than asked for",
     TEXT(H "\0\0n\0e\0"
            "1\0"
            "2\0\0s\0b\0" H2 "\0\0n\0e\0"
            "1\0"
            "2\0\0s\0b\0"),
     false, 1, 0, 1, true},
    {"too few", TEXT(H "\0\0n\0"), false, 9, -EBADMSG, 0, false},
    {"cut",
     TEXT(H "\0\0n\0e\0"
            "1\0"
            "2\0\0s\0b\0" H2 "\0\0n\0e"),
     true, 9, 0, 1, true},
    {"no hash",
     TEXT("HEAD\0\0n\0e\0"
          "1\0"
          "2\0\0s\0b\0"),
     false, 9, -EBADMSG, 0, false},
    {"odd times",
     TEXT(H "\0\0n\0e\0"
            "99999999999999999999\0x\0\0s\0b\0"),
     false, 9, 0, 1, false},
};

TEST(log_records) {
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        weft_git_log log = {0};
        test_row(logs[i].name);
        weft_git_text text = copy_of(logs[i].in, logs[i].cut);
        CHECK_INT(weft__git_parse_log(text, logs[i].max, NULL, &log), logs[i].r);
        CHECK_INT(log.count, logs[i].count);
        CHECK_INT(log.truncated, logs[i].truncated);
        if (log.count) {
            CHECK_STR(log.commits[0].subject, "s");
            CHECK_STR(log.commits[0].body, "b");
        }
        free(log.commits);
        free(text.data);
    }
    test_row(NULL);
}

static const struct {
    const char *name;
    input in;
    bool cut;
    int r;
    size_t count;
} branch_lists[] = {
    {"empty", TEXT(""), false, 0, 0},
    {"one",
     TEXT("*\0refs/heads/m\0" H "\0\0"
          "1\0\0s\0\n"),
     false, 0, 1},
    {"another name",
     TEXT(" \0refs/remotes/o/HEAD\0" H "\0\0"
          "1\0refs/remotes/o/m\0s\0\n"),
     false, 0, 0},
    {"no newline",
     TEXT("*\0refs/heads/m\0" H "\0\0"
          "1\0\0s\0"),
     false, -EBADMSG, 0},
    {"cut before the newline",
     TEXT("*\0refs/heads/m\0" H "\0\0"
          "1\0\0s\0"),
     true, 0, 0},
    {"something else there",
     TEXT("*\0refs/heads/m\0" H "\0\0"
          "1\0\0s\0x"),
     false, -EBADMSG, 0},
    {"no ref",
     TEXT("*\0m\0" H "\0\0"
          "1\0\0s\0\n"),
     false, -EBADMSG, 0},
    {"no mark",
     TEXT("\0refs/heads/m\0" H "\0\0"
          "1\0\0s\0\n"),
     false, -EBADMSG, 0},
};

TEST(branch_records) {
    for (size_t i = 0; i < sizeof branch_lists / sizeof branch_lists[0]; i++) {
        weft_git_branches list = {0};
        test_row(branch_lists[i].name);
        weft_git_text text = copy_of(branch_lists[i].in, branch_lists[i].cut);
        CHECK_INT(weft__git_parse_branches(text, 9, NULL, &list), branch_lists[i].r);
        CHECK_INT(list.count, branch_lists[i].count);
        free(list.branches);
        free(text.data);
    }
    test_row(NULL);
}

static const struct {
    const char *name, *text;
    uint64_t files, additions, deletions;
    bool is_new, is_binary;
} diffs[] = {
    {"empty", "", 0, 0, 0, false, false},
    {"lines that look like headers",
     "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@ x\n-diff --git\n--- x\n+++ y\n+new file mode\n same\n", 1, 2, 2,
     false, false},
    {"one line", "diff --git a/a b/a\n@@ -1 +1 @@\n-a\n+b\n", 1, 1, 1, false, false},
    {"no newline at the end", "diff --git a/a b/a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", 1, 1, 1, false,
     false},
    {"new", "diff --git a/a b/a\nnew file mode 100644\n@@ -0,0 +1,2 @@\n+a\n+b\n", 1, 2, 0, true, false},
    {"two", "diff --git a/a b/a\nnew file mode 100644\n@@ -0,0 +1 @@\n+a\ndiff --git a/b b/b\n@@ -1 +0,0 @@\n-b\n", 2, 1, 1,
     false, false},
    {"binary", "diff --git a/a b/a\nBinary files a/a and b/a differ\n", 1, 0, 0, false, true},
    {"a conflict", "diff --cc a\n@@@ -1,1 -1,1 +1,5 @@@\n++<<<<<<< HEAD\n +main\n", 1, 0, 0, false, false},
    {"empty lines of a hunk", "diff --git a/a b/a\n@@ -1,2 +1,2 @@\n\n-a\n+b\n", 1, 1, 1, false, false},
    {"cut", "diff --git a/a b/a\n@@ -1,200 +1,200 @@\n-a\n+b", 1, 1, 1, false, false},
    {"a range without end", "diff --git a/a b/a\n@@ -1,99999999999999999999 +1 @@\n-a\n", 1, 0, 1, false, false},
};

TEST(diff_texts) {
    for (size_t i = 0; i < sizeof diffs / sizeof diffs[0]; i++) {
        weft_git_diff diff = {0};
        test_row(diffs[i].name);
        weft__git_scan_diff((weft_bytes){diffs[i].text, strlen(diffs[i].text)}, &diff);
        CHECK_INT(diff.files, diffs[i].files);
        CHECK_INT(diff.additions, diffs[i].additions);
        CHECK_INT(diff.deletions, diffs[i].deletions);
        CHECK_INT(diff.is_new, diffs[i].is_new);
        CHECK_INT(diff.is_binary, diffs[i].is_binary);
    }
    test_row(NULL);
}

TEST(settings) {
    weft_git_settings settings = {0};
    weft_git_text text =
        copy_of((input) TEXT("core.bare\0filter.a.clean\0filter.a.smudge\0filter.b.c.clean\0filter.x\0filter..clean\0core."
                             "worktree\0filter\0filters.z.clean\0"),
                false);
    CHECK_INT(weft__git_parse_settings(text, 3, NULL, &settings), 0);
    CHECK_INT(settings.filter_count, 3);
    CHECK_STR(settings.filters[0], "a");
    CHECK_STR(settings.filters[1], "b.c");
    CHECK_STR(settings.filters[2], "");
    CHECK(settings.worktree);
    free(settings.filters);
    free(text.data);
    text = copy_of((input) TEXT("filter.a.clean\0filter.b.clean\0"), false);
    CHECK_INT(weft__git_parse_settings(text, 1, NULL, &settings), -E2BIG);
    free(text.data);
    text = copy_of((input) TEXT("filter.a.clean"), false);
    CHECK_INT(weft__git_parse_settings(text, 1, NULL, &settings), -EBADMSG);
    free(text.data);
}

TEST(names) {
    static const char *const refs[] = {"HEAD", "main", "a/b", "v1.0", "refs/heads/x", "0123456", "a@b", "\xC3\xA4"};
    static const char *const no_refs[] = {"",   "-",    "-x", "a..b", "a b",   "a^",     "a~1",   "a:b",
                                          "a?", "a*",   "a[", "a\\",  "a\x7f", "@",      "a@{0}", "/a",
                                          "a/", "a//b", ".a", "a/.b", "a.",    "a.lock", "a\nb"};
    static const char *const paths[] = {"a", "a/b", "-a", "..a", "a..", "a/..b", ":(top)", "a/", "...", "."};
    static const char *const no_paths[] = {"", "/", "/a", "..", "../a", "a/..", "a/../b", "a//.."};
    for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++)
        CHECK(weft__git_is_ref(refs[i]));
    for (size_t i = 0; i < sizeof no_refs / sizeof no_refs[0]; i++)
        CHECK(!weft__git_is_ref(no_refs[i]));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        CHECK(weft__git_is_path(paths[i]));
    for (size_t i = 0; i < sizeof no_paths / sizeof no_paths[0]; i++)
        CHECK(!weft__git_is_path(no_paths[i]));
}

TEST(no_memory) {
    weft_git_status status;
    weft_git_log log;
    weft_git_branches list;
    weft_git_settings settings;
    for (int i = 0; i < 4; i++) {
        test_memory memory;
        test_memory_init(&memory, 1);
        static const input inputs[] = {TEXT("? a\0"),
                                       TEXT(H "\0\0n\0e\0"
                                              "1\0"
                                              "2\0\0s\0b\0"),
                                       TEXT("*\0refs/heads/m\0" H "\0\0"
                                            "1\0\0s\0\n"),
                                       TEXT("filter.a.clean\0")};
        weft_git_text text = copy_of(inputs[i], false);
        int r = i == 0   ? weft__git_parse_status(text, "", 9, &memory.alloc, &status)
                : i == 1 ? weft__git_parse_log(text, 9, &memory.alloc, &log)
                : i == 2 ? weft__git_parse_branches(text, 9, &memory.alloc, &list)
                         : weft__git_parse_settings(text, 9, &memory.alloc, &settings);
        CHECK_INT(r, -ENOMEM);
        CHECK_INT(memory.live, 0);
        free(text.data);
    }
}

TEST_MAIN(CASE(status_lines) CASE(status_headers) CASE(status_has_a_limit) CASE(log_records) CASE(branch_records)
              CASE(diff_texts) CASE(settings) CASE(names) CASE(no_memory))
