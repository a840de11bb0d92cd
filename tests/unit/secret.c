/* Secrets of webhooks: what names one, what is put in, and that nothing an event says can name one. */
#include "secret.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "rule.h"
#include "template.h"

TEST(names) {
    static const struct {
        const char *text, *why; /* why NULL: it is right */
    } rows[] = {
        {"", NULL},
        {"$ $$ ${} ${x} ${other:y}", NULL},
        {"Bearer ${env:A_1}", NULL},
        {"${file:/a/b}${file:~/c}", NULL},
        {"${env:A", "not closed"},
        {"${env:}", "not the name of a variable"},
        {"${env:1}", "not the name of a variable"},
        {"${env:A B}", "not the name of a variable"},
        {"${file:}", "not a path"},
        {"${file:a}", "not a path"},
        {"${file:/}", "not a path"},
        {"${file:~/}", "not a path"},
        {"${file:/a\"b}", "not a path"},
        {"${file:/a b}", "not a path"},
        {"${env:A}${env:", "not closed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WEFT_SECRET_WHY] = "";
        test_row(rows[i].text);
        CHECK_INT(weft__secret_check(rows[i].text, why), rows[i].why ? -EINVAL : 0);
        CHECK(!rows[i].why || strstr(why, rows[i].why));
    }
    test_row(NULL);
}

static char *file_with(const char *text) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/weft-secret-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
    close(fd);
    return path;
}

TEST(what_is_put_in) {
    static const struct {
        const char *text;
        weft_secret_use use;
        int r;
        const char *want;
    } rows[] = {
        {"plain", WEFT_SECRET_TEXT, 0, "plain"},
        {"$$5 $ $", WEFT_SECRET_TEXT, 0, "$5 $ $"},
        {"a ${env:WEFT_T} b", WEFT_SECRET_TEXT, 0, "a va\"l\\ue b"},
        {"\"${env:WEFT_T}\"", WEFT_SECRET_JSON, 0, "\"va\\\"l\\\\ue\""},
        {"$${env:WEFT_T}", WEFT_SECRET_TEXT, 0, "${env:WEFT_T}"},
        {"$$${env:WEFT_T}", WEFT_SECRET_TEXT, 0, "$va\"l\\ue"},
        {"x ${env:WEFT_T}", WEFT_SECRET_LINE, 0, "x va\"l\\ue"},
        {"${env:WEFT_LINES}", WEFT_SECRET_LINE, -ENOKEY, "not one word"},
        {"${env:WEFT_LINES}", WEFT_SECRET_TEXT, 0, "a\r\nb"},
        {"${env:WEFT_NONE}", WEFT_SECRET_TEXT, -ENOKEY, "WEFT_NONE is not set"},
        {"${file:/nowhere/at/all}", WEFT_SECRET_TEXT, -ENOKEY, "cannot be read"},
        {"${file:/tmp}", WEFT_SECRET_TEXT, -ENOKEY, "not a file"},
        {"${file:/dev/zero}", WEFT_SECRET_TEXT, -ENOKEY, "not a file"},
        {"0123456789012345678901234567890", WEFT_SECRET_TEXT, -EMSGSIZE, NULL},
    };
    setenv("WEFT_T", "va\"l\\ue", 1);
    setenv("WEFT_LINES", "a\r\nb", 1);
    unsetenv("WEFT_NONE");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[WEFT_SECRET_WHY] = "", *got = NULL;
        size_t len = 0;
        test_row(rows[i].text);
        CHECK_INT(
            weft__secret_fill((weft_bytes){rows[i].text, strlen(rows[i].text)}, rows[i].use, 30, NULL, &got, &len, why),
            rows[i].r);
        if (rows[i].r == 0)
            CHECK_TEXT(got, len, rows[i].want);
        else
            CHECK(!rows[i].want || strstr(why, rows[i].want));
        weft__secret_free(got, len, NULL);
    }
    test_row(NULL);
}

TEST(files) {
    static const char *const texts[] = {"key", "key\n", "key\r\n\n"};
    char text[128], why[WEFT_SECRET_WHY], *got, *large = calloc(1, WEFT_SECRET_VALUE + 2);
    size_t len;
    memset(large, 'x', WEFT_SECRET_VALUE + 1);
    for (size_t i = 0; i < 3; i++) {
        const char *path = file_with(texts[i]);
        int n = snprintf(text, sizeof text, "<${file:%s}>", path);
        CHECK_INT(weft__secret_fill((weft_bytes){text, (size_t) n}, WEFT_SECRET_LINE, 100, NULL, &got, &len, why), 0);
        CHECK_TEXT(got, len, "<key>");
        weft__secret_free(got, len, NULL);
        unlink(path);
    }
    const char *path = file_with(large);
    int n = snprintf(text, sizeof text, "${file:%s}", path);
    CHECK_INT(weft__secret_fill((weft_bytes){text, (size_t) n}, WEFT_SECRET_TEXT, 1 << 20, NULL, &got, &len, why), -ENOKEY);
    CHECK(strstr(why, "too long") && !strstr(why, "xxx"));
    unlink(path);
    free(large);
}

/* Whatever an event says comes out as it was, and nothing in it is taken for the name of a secret. */
TEST(events_name_nothing) {
    static const char *const said[] = {"${env:WEFT_T}", "$${env:WEFT_T}",       "$",  "$$",
                                       "{env:WEFT_T}",  "a${file:/etc/passwd}", "$${"};
    static const char *const around[] = {
        "{{p}}", "${{p}}", "$${{p}}", "{{p}}{{p}}", "$ {{p}} ${env:WEFT_T}", "${env:WEFT_T}{{p}}"};
    setenv("WEFT_T", "secret", 1);
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        for (size_t j = 0; j < sizeof around / sizeof around[0]; j++) {
            weft_doc *doc;
            char json[128], why[WEFT_SECRET_WHY], *plain, *guarded, *got;
            size_t len, name;
            int n = snprintf(json, sizeof json, "{\"p\":\"%s\"}", said[i]);
            REQUIRE(weft_doc_parse(json, (size_t) n, NULL, &doc) == 0);
            REQUIRE(weft__template_fill_guarded(around[j], weft_doc_root(doc), WEFT_TEMPLATE_TEXT, 1000, NULL, &guarded) ==
                    0);
            REQUIRE(weft__secret_fill((weft_bytes){guarded, strlen(guarded)}, WEFT_SECRET_TEXT, 1000, NULL, &got, &len,
                                      why) == 0);
            bool own = weft__secret_find(around[j], &name) != NULL;
            REQUIRE(weft__template_fill(around[j], weft_doc_root(doc), WEFT_TEMPLATE_TEXT, 1000, NULL, &plain) == 0);
            test_row(plain);
            CHECK_INT(strstr(got, "secret") != NULL, own);
            if (!own)
                CHECK_TEXT(got, len, plain);
            free(plain);
            free(guarded);
            free(got);
            weft_doc_free(doc);
        }
    test_row(NULL);
}

/* A webhook is read, rendered and completed, or it is not, without each allocation once. */
TEST(failing_allocations) {
    static const char text[] = "{\"id\":\"r\",\"trigger\":{\"type\":\"file.modify\"},\"action\":{\"type\":\"webhook\","
                               "\"url\":\"http://h/${env:WEFT_T}\","
                               "\"method\":\"PUT\",\"headers\":{\"A\":\"\\u0062 ${env:WEFT_T}\",\"B\":\"{{payload.path}}\"},"
                               "\"body\":{\"\\u0061\":[\"{{payload.path}} ${env:WEFT_T}\",5]}}}";
    static const char event[] = "{\"type\":\"file.modify\",\"source\":\"watcher\",\"payload\":{\"path\":\"$a\"}}";
    int r = -ENOMEM;
    test_memory memory;
    setenv("WEFT_T", "secret", 1);
    for (long fail_at = 1; r == -ENOMEM && fail_at < 1000; fail_at++) {
        weft_doc *doc = NULL, *about = NULL;
        weft_rule *rule = NULL;
        char *rendered = NULL, *got = NULL, why[WEFT_SECRET_WHY];
        size_t len, got_len = 0;
        REQUIRE(weft_doc_parse(text, sizeof text - 1, NULL, &doc) == 0);
        REQUIRE(weft_doc_parse(event, sizeof event - 1, NULL, &about) == 0);
        test_memory_init(&memory, fail_at);
        r = weft__rule_new(weft_doc_root(doc), &memory.alloc, &rule);
        if (r == 0) {
            CHECK_STR(rule->error, "");
            r = weft__rule_render(rule, &(weft_rule_event){"file.modify", "watcher", weft_doc_root(about)}, &rendered, &len);
        }
        if (r == 0) {
            CHECK_STR(rendered,
                      "{\"type\":\"webhook\",\"url\":\"http://h/${env:WEFT_T}\",\"method\":\"PUT\",\"headers\":{\"A\":\"b "
                      "${env:WEFT_T}\",\"B\":\"$$a\"},\"body\":{\"a\":[\"$$a ${env:WEFT_T}\",5]},\"secrets\":true}");
            r = weft__secret_fill((weft_bytes){rendered, len}, WEFT_SECRET_JSON, 1000, &memory.alloc, &got, &got_len, why);
        }
        weft__secret_free(got, got_len, &memory.alloc);
        weft_text_free(rendered, &memory.alloc);
        weft__rule_free(rule);
        weft_doc_free(about);
        weft_doc_free(doc);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    CHECK(memory.count > 10);
}

TEST_MAIN(CASE(names) CASE(what_is_put_in) CASE(files) CASE(events_name_nothing) CASE(failing_allocations))
