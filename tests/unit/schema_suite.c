/* JSON-Schema-Test-Suite: every required test of both drafts, and the optional ones but for those that are listed here with
 * a reason. Read where it is, and skipped without it. Our own tables are in schema.c. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include <weft/schema.h>

#include "harness.h"

#define SUITE "JSON-Schema-Test-Suite"
#define REMOTES "http://localhost:1234/"
#define MAX_FILES 128

#define NO_2019 "draft 2019-09 is not one of ours"
#define NO_CONTENT "contentEncoding and contentMediaType are annotations"
#define NO_IDNA "the tables of IDNA 2008 are not built in: a label xn--... is only spelled right, idn-hostname says nothing"
#define NO_LOOKBEHIND "PCRE2 looks behind for texts of one length only"

/* What is left out of the optional tests, and why. group NULL: the whole file. */
static const struct {
    const char *file, *group, *why;
} left_out[] = {
    {"draft2020-12/optional/cross-draft.json", "refs to historic drafts are processed as historic drafts", NO_2019},
    {"draft7/optional/cross-draft.json", "refs to future drafts are processed as future drafts", NO_2019},
    {"draft7/optional/content.json", NULL, NO_CONTENT},
    {"draft2020-12/optional/format/idn-hostname.json", NULL, NO_IDNA},
    {"draft7/optional/format/idn-hostname.json", NULL, NO_IDNA},
    {"draft2020-12/optional/format/hostname.json", "validation of A-label (punycode) host names", NO_IDNA},
    {"draft7/optional/format/hostname.json", "validation of A-label (punycode) host names", NO_IDNA},
    {"draft2020-12/optional/format/ecmascript-regex.json", "ECMA 262 lookbehind is valid, including variable width",
     NO_LOOKBEHIND},
    {"draft7/optional/format/ecmascript-regex.json", "ECMA 262 lookbehind is valid, including variable width",
     NO_LOOKBEHIND},
    {NULL, NULL, NULL},
};

static bool is_left_out(const char *file, const char *group) {
    for (size_t i = 0; left_out[i].file; i++)
        if (strcmp(left_out[i].file, file) == 0 && (!left_out[i].group || strcmp(left_out[i].group, group) == 0))
            return true;
    return false;
}

/* ---- remotes ---- */

typedef struct remotes {
    char *texts[MAX_FILES];
    size_t count;
} remotes;

static int find_remote(void *ctx, const char *uri, weft_bytes *ret) {
    remotes *all = ctx;
    char path[512];
    size_t len = 0;
    if (strncmp(uri, REMOTES, strlen(REMOTES)) != 0 || all->count == MAX_FILES)
        return -ENOENT;
    snprintf(path, sizeof path, SUITE "/remotes/%s", uri + strlen(REMOTES));
    char *text = test_data(path, &len);
    if (!text)
        return -ENOENT;
    all->texts[all->count++] = text;
    *ret = (weft_bytes){text, len};
    return 0;
}

static void free_remotes(remotes *all) {
    for (size_t i = 0; i < all->count; i++)
        free(all->texts[i]);
}

/* ---- running ---- */

static void run_cases(const weft_schema *schema, const weft_json *tests, const char *file, const char *group) {
    for (weft_iter it = weft_iterate(tests); weft_next(&it);) {
        char row[512];
        WEFT_SCHEMA_REPORT report = {0};
        weft_json data = weft_get(&it.value, "data");
        bool valid = weft_get_bool(&it.value, "valid", false);
        snprintf(row, sizeof row, "%s: %s: %s", file, group, weft_get_str(&it.value, "description", ""));
        test_row(row);
        CHECK_INT(weft_schema_check(schema, &data, NULL), valid ? 0 : -EBADMSG);
        CHECK_INT(weft_schema_check(schema, &data, &report), valid ? 0 : -EBADMSG);
        CHECK(valid == (report.count == 0));
    }
}

static void run_file(const char *folder, const char *file, weft_draft draft, bool formats) {
    char path[512];
    size_t len = 0;
    weft_doc *doc = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *text = test_data(path, &len);
    REQUIRE(text);
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    const char *shown = strstr(path, "tests/") + 6;
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it);) {
        const char *group = weft_get_str(&it.value, "description", "");
        if (is_left_out(shown, group))
            continue;
        remotes all = {.count = 0};
        WEFT_SCHEMA_REPORT report = {0};
        weft_schema_opts opts = {.draft = draft, .find = find_remote, .ctx = &all, .check_formats = formats};
        weft_json text_of = weft_get(&it.value, "schema"), tests = weft_get(&it.value, "tests");
        weft_schema *schema = NULL;
        char row[512];
        snprintf(row, sizeof row, "%s: %s", shown, group);
        test_row(row);
        if (!CHECK_INT(weft_schema_compile(text_of.text, text_of.len, &opts, &schema, &report), 0) && report.count)
            printf("  %s %s\n", report.errors[0].keyword, report.errors[0].message);
        free_remotes(&all);
        if (schema)
            run_cases(schema, &tests, shown, group);
        weft_schema_free(schema);
    }
    weft_doc_free(doc);
    free(text);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* The number of files that there are. */
static size_t run_folder(const char *name, weft_draft draft, bool formats) {
    char path[512], folder[256], *files[MAX_FILES];
    const char *data = test_data_dir();
    size_t count = 0;
    snprintf(folder, sizeof folder, SUITE "/tests/%s", name);
    snprintf(path, sizeof path, "%s/%s", data ? data : "", folder);
    DIR *dir = data ? opendir(path) : NULL;
    if (!dir) {
        test_skip(SUITE " is not there");
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) && count < MAX_FILES;)
        if (strstr(entry->d_name, ".json"))
            files[count++] = strdup(entry->d_name);
    closedir(dir);
    qsort(files, count, sizeof files[0], by_name);
    for (size_t i = 0; i < count; i++) {
        run_file(folder, files[i], draft, formats);
        free(files[i]);
    }
    test_row(name);
    return count;
}

TEST(draft_2020_12) {
    size_t count = run_folder("draft2020-12", WEFT_DRAFT_2020_12, false);
    CHECK(count == 0 || count == 46);
}

TEST(draft_07) {
    size_t count = run_folder("draft7", WEFT_DRAFT_07, false);
    CHECK(count == 0 || count == 37);
}

TEST(optional_2020_12) {
    run_folder("draft2020-12/optional", WEFT_DRAFT_2020_12, false);
}

TEST(optional_07) {
    run_folder("draft7/optional", WEFT_DRAFT_07, false);
}

TEST(formats_2020_12) {
    run_folder("draft2020-12/optional/format", WEFT_DRAFT_2020_12, true);
}

TEST(formats_07) {
    run_folder("draft7/optional/format", WEFT_DRAFT_07, true);
}

TEST_MAIN(CASE(draft_2020_12) CASE(draft_07) CASE(optional_2020_12) CASE(optional_07) CASE(formats_2020_12) CASE(formats_07))
