/* Templates: holes, what fills them, and what does not become one. */
#include "template.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

static const char event_text[] =
    "{\"type\":\"file.modify\",\"payload\":{\"path\":\"src/a b&c?.ts\",\"size\":10,\"ok\":true,"
    "\"none\":null,\"list\":[1, \"x\"],\"quote\":\"say \\\"hi\\\"\\n\",\"hole\":\"{{payload.size}}\","
    "\"nul\":\"a\\u0000b\",\"uni\":\"\\u00fc\"}}";

TEST(fills) {
    static const struct {
        const char *text;
        weft_template_use use;
        const char *want;
    } rows[] = {
        {"", 0, ""},
        {"plain", 0, "plain"},
        {"look at {{payload.path}}", 0, "look at src/a b&c?.ts"},
        {"{{path}}", 0, "src/a b&c?.ts"},
        {"{{ payload.size }}/{{type}}", 0, "10/file.modify"},
        {"{{payload.ok}} {{payload.none}}{{payload.missing}}.", 0, "true ."},
        {"{{payload.list}}", 0, "[1, \"x\"]"},
        {"{{payload.list.1}}", 0, "x"},
        {"{{payload.quote}}", 0, "say \"hi\"\n"},
        {"{{payload.hole}}", 0, "{{payload.size}}"},
        {"{{payload.nul}}", 0, "ab"},
        {"{{", 0, "{{"},
        {"{{payload.size", 0, "{{payload.size"},
        {"a } b }} {c}", 0, "a } b }} {c}"},
        {"{{}}x{{ }}", 0, "x"},
        {"{{{payload.size}}}", 0, "}"},
        {"{{payload.path}} {{nope}} {{payload.nope}} {{path}}", WEFT_TEMPLATE_AIWG,
         "src/a b&c?.ts {{nope}} {{payload.nope}} {{path}}"},
        {"{{payload.none}} {{ type }} {{type}}", WEFT_TEMPLATE_AIWG, "null {{ type }} file.modify"},
        {"{{payload.hole}} {{", WEFT_TEMPLATE_AIWG, "{{payload.size}} {{"},
        {"http://h/{{payload.path}}?q={{payload.uni}}", WEFT_TEMPLATE_URL, "http://h/src/a%20b%26c%3F.ts?q=%C3%BC"},
    };
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(event_text, strlen(event_text), NULL, &doc), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = NULL;
        test_row(rows[i].text);
        CHECK_INT(weft__template_fill(rows[i].text, weft_doc_root(doc), rows[i].use, 1000, NULL, &text), 0);
        CHECK_STR(text, rows[i].want);
        free(text);
    }
    test_row(NULL);
    weft_doc_free(doc);
}

TEST(limits) {
    weft_doc *doc;
    char *text = NULL;
    CHECK_INT(weft_doc_parse(event_text, strlen(event_text), NULL, &doc), 0);
    CHECK_INT(weft__template_fill("12{{size}}", weft_doc_root(doc), 0, 4, NULL, &text), 0);
    CHECK_STR(text, "1210");
    free(text);
    text = NULL;
    CHECK_INT(weft__template_fill("12{{size}}", weft_doc_root(doc), 0, 3, NULL, &text), -EMSGSIZE);
    CHECK_INT(weft__template_fill("123", weft_doc_root(doc), 0, 2, NULL, &text), -EMSGSIZE);
    CHECK(text == NULL);
    weft_doc_free(doc);
}

TEST(finds_holes) {
    const char *text = "a {{ b {{c}}";
    CHECK(weft__template_hole(text) == text + 2);
    CHECK(weft__template_hole("{{") == NULL);
    CHECK(weft__template_hole("") == NULL);
}

TEST_MAIN(CASE(fills) CASE(limits) CASE(finds_holes))
