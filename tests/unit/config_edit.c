/* Changing one value in the text of a configuration: what else is there stays to the letter. */
#include "config_edit.h"

#include <errno.h>

#include "harness.h"
#include "relaxed.h"

static weft_bytes bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

static const struct set_row {
    const char *name, *text, *path, *value, *want;
} set_rows[] = {
    {"no file", "", "auth", "\"none\"", "{\n    \"auth\": \"none\"\n}\n"},
    {"no file, a path", "", "tls.cert", "\"c\"", "{\n    \"tls\": {\"cert\": \"c\"}\n}\n"},
    {"in place", "{\"a\": 1, \"b\": 2}", "a", "5", "{\"a\": 5, \"b\": 2}"},
    {"in place, deep", "{\"a\": {\"b\": {\"c\": 1}}}", "a.b.c", "[2]", "{\"a\": {\"b\": {\"c\": [2]}}}"},
    {"comments stay", "// mine\n{\n  /* a, b */ \"a\": 1, // one\n}\n", "a", "2",
     "// mine\n{\n  /* a, b */ \"a\": 2, // one\n}\n"},
    {"a new member", "{\n  \"a\": 1\n}\n", "b", "2", "{\n  \"b\": 2,\n  \"a\": 1\n}\n"},
    {"in one line", "{\"a\": 1}", "b", "2", "{\"b\": 2, \"a\": 1}"},
    {"into nothing", "{}\n", "b", "2", "{\n    \"b\": 2\n}\n"},
    {"into nothing on lines", "{\n}\n", "b", "2", "{\n    \"b\": 2\n}\n"},
    {"an object on the way", "{\"a\": {\"x\": 1}}", "a.b.c", "2", "{\"a\": {\"b\": {\"c\": 2}, \"x\": 1}}"},
    {"an empty object on the way", "{\"a\": {}}", "a.b", "2", "{\"a\": {\"b\": 2}}"},
    {"the last of two counts", "{\"a\": 1, \"a\": 2}", "a", "3", "{\"a\": 1, \"a\": 3}"},
    {"a name with an escape", "{\"\\u0061\": 1}", "a", "3", "{\"\\u0061\": 3}"},
    {"a comma in a comment", "{\n    // x, y\n    \"a\": 1,\n}\n", "b", "{}",
     "{\n    \"b\": {},\n    // x, y\n    \"a\": 1,\n}\n"},
};

TEST(sets) {
    for (size_t i = 0; i < sizeof set_rows / sizeof set_rows[0]; i++) {
        const struct set_row *row = &set_rows[i];
        weft_buf made = {0};
        test_row(row->name);
        CHECK_INT(weft__config_edit_set(bytes(row->text), row->path, bytes(row->value), &made), 0);
        CHECK_TEXT(weft__buf_head(&made), weft__buf_len(&made), row->want);
        weft__buf_done(&made, NULL);
    }
    test_row(NULL);
}

static const struct unset_row {
    const char *name, *text, *path, *want;
} unset_rows[] = {
    {"a line", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", "{\n  \"b\": 2\n}\n"},
    {"the last", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b", "{\n  \"a\": 1,\n}\n"},
    {"in one line", "{\"a\": 1, \"b\": 2}", "a", "{\"b\": 2}"},
    {"the last in one line", "{\"a\": 1, \"b\": 2}", "b", "{\"a\": 1, }"},
    {"a comma in a comment", "{\"a\": 1 /* x, y */, \"b\": 2}", "a", "{\"b\": 2}"},
    {"a comment to the line's end", "{\n  \"a\": 1 // x, y\n  , \"b\": 2}", "a", "{\n  \"b\": 2}"},
    {"a comma at the end", "{\"a\": {\"b\": 1,},}", "a.b", "{\"a\": {},}"},
    {"not there", "{\"a\": 1}", "b", NULL},
    {"not there, deep", "{\"a\": 1}", "b.c", NULL},
    {"no file", "", "b", NULL},
};

TEST(unsets) {
    for (size_t i = 0; i < sizeof unset_rows / sizeof unset_rows[0]; i++) {
        const struct unset_row *row = &unset_rows[i];
        weft_buf made = {0};
        test_row(row->name);
        CHECK_INT(weft__config_edit_unset(bytes(row->text), row->path, &made), row->want != NULL);
        if (row->want)
            CHECK_TEXT(weft__buf_head(&made), weft__buf_len(&made), row->want);
        weft__buf_done(&made, NULL);
    }
    test_row(NULL);
}

/* Whatever is made can be read, and says what it was told. */
TEST(reads_back) {
    for (size_t i = 0; i < sizeof set_rows / sizeof set_rows[0]; i++) {
        weft_buf made = {0}, again = {0};
        weft_doc *doc = NULL;
        weft_fault fault;
        test_row(set_rows[i].name);
        REQUIRE(weft__config_edit_set(bytes(set_rows[i].text), "x.y.z", bytes("[1, 2]"), &made) == 0);
        REQUIRE(weft__buf_put(&made, NULL, "", 1) == 0);
        weft_bytes text = bytes(weft__buf_head(&made));
        REQUIRE(weft__relaxed_parse(text.data, text.len, NULL, &doc, &fault) >= 0);
        weft_json value = weft_pointer(weft_doc_root(doc), "/x/y/z/1");
        CHECK_INT(weft_int_of(&value, 0), 2);
        CHECK_INT(weft__config_edit_unset(text, "x.y.z", &again), 1);
        weft_doc_free(doc);
        weft__buf_done(&made, NULL);
        weft__buf_done(&again, NULL);
    }
    test_row(NULL);
}

TEST(refuses) {
    weft_buf made = {0};
    CHECK_INT(weft__config_edit_set(bytes("{\"a\": 1}"), "a.b", bytes("1"), &made), -ENOTDIR);
    CHECK_INT(weft__config_edit_set(bytes("{\"a\": "), "a", bytes("1"), &made), -EBADMSG);
    CHECK_INT(weft__config_edit_set(bytes("[]"), "a", bytes("1"), &made), -EBADMSG);
    CHECK_INT(weft__config_edit_set(bytes("{}"), "a.b.c.d.e.f.g.h.i", bytes("1"), &made), -E2BIG);
    CHECK_INT(weft__config_edit_set(bytes("{}"), "a..b", bytes("1"), &made), -E2BIG);
    CHECK_INT(weft__config_edit_unset(bytes("{"), "a", &made), -EBADMSG);
    CHECK(made.data == NULL);
}

TEST_MAIN(CASE(sets) CASE(unsets) CASE(reads_back) CASE(refuses))
