/* Other people's vectors: JSONTestSuite's verdicts and the samples of RFC 8785, read where they are and skipped without
 * them. Our own tables of the same things are in json_scan.c and json_canonical.c. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include <weft/json.h>

#include "harness.h"

#define PARSING "JSONTestSuite/test_parsing"
#define TRANSFORM "JSONTestSuite/test_transform"
#define JCS "jcs-rfc8785/testdata"

static int parse_file(const char *folder, const char *name, weft_doc **ret) {
    char path[512];
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = test_data(path, &len);
    if (!text)
        return -ENOENT;
    int r = weft_doc_parse(text, len, NULL, ret);
    free(text);
    return r;
}

/* What the suite leaves open. Numbers keep their text, so their size is nobody's business here; escapes may name lone
 * surrogates; bytes that are not UTF-8 are refused, and so are a byte order mark and more than 128 levels. */
static const char *const open_and_accepted[] = {
    "i_number_double_huge_neg_exp.json",
    "i_number_huge_exp.json",
    "i_number_neg_int_huge_exp.json",
    "i_number_pos_double_huge_exp.json",
    "i_number_real_neg_overflow.json",
    "i_number_real_pos_overflow.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
    "i_object_key_lone_2nd_surrogate.json",
    "i_string_1st_surrogate_but_2nd_missing.json",
    "i_string_1st_valid_surrogate_2nd_invalid.json",
    "i_string_incomplete_surrogate_and_escape_valid.json",
    "i_string_incomplete_surrogate_pair.json",
    "i_string_incomplete_surrogates_escape_valid.json",
    "i_string_invalid_lonely_surrogate.json",
    "i_string_invalid_surrogate.json",
    "i_string_inverted_surrogates_U+1D11E.json",
    "i_string_lone_second_surrogate.json",
};

static bool should_accept(const char *name) {
    for (size_t i = 0; i < sizeof open_and_accepted / sizeof open_and_accepted[0]; i++)
        if (strcmp(name, open_and_accepted[i]) == 0)
            return true;
    return name[0] == 'y';
}

/* Whatever was accepted can be read to its end without a fault. */
static void read_all(const weft_json *value) {
    weft_bytes text;
    weft_typeof(value);
    weft_int_of(value, 0);
    weft_num_of(value, 0);
    weft_str_of(value, NULL);
    weft_bytes_of(value, &text);
    for (weft_iter it = weft_iterate(value); weft_next(&it);)
        read_all(&it.value);
}

TEST(parsing) {
    char path[512];
    const char *data = test_data_dir();
    snprintf(path, sizeof path, "%s/" PARSING, data ? data : "");
    DIR *folder = data ? opendir(path) : NULL;
    if (!folder) {
        test_skip(PARSING " is not there");
        return;
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".json"))
            continue;
        weft_doc *doc = NULL;
        test_row(entry->d_name);
        int r = parse_file(PARSING, entry->d_name, &doc);
        CHECK_INT(r, should_accept(entry->d_name) ? 0 : -EBADMSG);
        if (doc)
            read_all(weft_doc_root(doc));
        weft_doc_free(doc);
        count++;
    }
    closedir(folder);
    test_row("every file");
    CHECK_INT(count, 318);
}

/* What becomes of the texts that parsers transform in different ways, as the canonical form or the reason for none. */
TEST(transform) {
    static const struct {
        const char *name;
        int parse, canonical;
        const char *text;
    } rows[] = {
        {"number_-9223372036854775808.json", 0, 0, "[-9223372036854776000]"},
        {"number_-9223372036854775809.json", 0, 0, "[-9223372036854776000]"},
        {"number_1.0.json", 0, 0, "[1]"},
        {"number_1.000000000000000005.json", 0, 0, "[1]"},
        {"number_1000000000000000.json", 0, 0, "[1000000000000000]"},
        {"number_10000000000000000999.json", 0, 0, "[10000000000000000000]"},
        {"number_1e-999.json", 0, 0, "[0]"},
        {"number_1e6.json", 0, 0, "[1000000]"},
        {"number_9223372036854775807.json", 0, 0, "[9223372036854776000]"},
        {"number_9223372036854775808.json", 0, 0, "[9223372036854776000]"},
        {"object_key_nfc_nfd.json", 0, 0, "{\"e\xCC\x81\":\"NFD\",\"\xC3\xA9\":\"NFC\"}"},
        {"object_key_nfd_nfc.json", 0, 0, "{\"e\xCC\x81\":\"NFD\",\"\xC3\xA9\":\"NFC\"}"},
        {"object_same_key_different_values.json", 0, 0, "{\"a\":2}"},
        {"object_same_key_same_value.json", 0, 0, "{\"a\":1}"},
        {"object_same_key_unclear_values.json", 0, 0, "{\"a\":0}"},
        {"string_1_escaped_invalid_codepoint.json", 0, -EBADMSG, NULL},
        {"string_1_invalid_codepoint.json", -EBADMSG, 0, NULL},
        {"string_2_escaped_invalid_codepoints.json", 0, -EBADMSG, NULL},
        {"string_2_invalid_codepoints.json", -EBADMSG, 0, NULL},
        {"string_3_escaped_invalid_codepoints.json", 0, -EBADMSG, NULL},
        {"string_3_invalid_codepoints.json", -EBADMSG, 0, NULL},
        {"string_with_escaped_NULL.json", 0, 0, "[\"A\\u0000B\"]"},
    };
    if (!test_data_dir()) {
        test_skip(TRANSFORM " is not there");
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *doc = NULL;
        char *text = NULL;
        size_t len = 0;
        test_row(rows[i].name);
        CHECK_INT(parse_file(TRANSFORM, rows[i].name, &doc), rows[i].parse);
        if (doc)
            CHECK_INT(weft_to_canonical(weft_doc_root(doc), NULL, &text, &len), rows[i].canonical);
        if (rows[i].text)
            CHECK_TEXT(text, len, rows[i].text);
        weft_text_free(text, NULL);
        weft_doc_free(doc);
    }
}

TEST(jcs) {
    static const char *const names[] = {"arrays.json",  "french.json", "structures.json",
                                        "unicode.json", "values.json", "weird.json"};
    if (!test_data_dir()) {
        test_skip(JCS " is not there");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512], *is = NULL;
        size_t is_len = 0, want_len = 0;
        weft_doc *doc = NULL;
        snprintf(path, sizeof path, JCS "/output/%s", names[i]);
        char *want = test_data(path, &want_len);
        test_row(names[i]);
        CHECK_INT(parse_file(JCS "/input", names[i], &doc), 0);
        if (doc && CHECK(want)) {
            CHECK_INT(weft_to_canonical(weft_doc_root(doc), NULL, &is, &is_len), 0);
            CHECK_INT(is_len, want_len);
            CHECK_TEXT(is, is_len, want);
        }
        weft_text_free(is, NULL);
        weft_doc_free(doc);
        free(want);
    }
}

TEST_MAIN(CASE(parsing) CASE(transform) CASE(jcs))
