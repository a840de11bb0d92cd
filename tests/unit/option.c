/* Choosing an option of a question: every order of every set of options, and agents that name theirs to deceive. */
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "option.h"

static const char *const kinds[] = {"allow_once", "allow_always", "reject_once", "reject_always"};

/* The option's id for a word; "none" where there is none, or the failure's name. */
static const char *choose(const char *options, const char *said) {
    static char kept[64];
    const char *id = NULL;
    weft_doc *doc = NULL;
    if (!CHECK(weft_doc_parse(options, strlen(options), NULL, &doc) == 0))
        return "";
    int r = weft__option_meant(weft_doc_root(doc), said, strlen(said), &id);
    snprintf(kept, sizeof kept, "%s", r == 1 ? id : r == 0 ? "none" : r == -EPERM ? "only always" : "several");
    weft_doc_free(doc);
    return kept;
}

static bool has(const int *order, size_t count, int kind) {
    for (size_t i = 0; i < count; i++)
        if (order[i] == kind)
            return true;
    return false;
}

static void check_order(const int *order, size_t count) {
    char text[512] = "[";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s{\"id\":\"%c\",\"name\":\"x\",\"kind\":\"%s\"}", i ? "," : "",
                 'a' + order[i], kinds[order[i]]);
    }
    strcat(text, "]");
    test_row(text);
    const char *allowed = has(order, count, 0) ? "a" : has(order, count, 1) ? "only always" : "none";
    const char *denied = has(order, count, 2) ? "c" : WEFT_OPTION_DENIED;
    CHECK_STR(choose(text, "allow"), allowed);
    CHECK_STR(choose(text, "Yes"), allowed);
    CHECK_STR(choose(text, "deny"), denied);
    CHECK_STR(choose(text, "no"), denied);
    CHECK_STR(choose(text, "reject"), denied);
    for (int kind = 0; kind < 4; kind++) {
        const char id[] = {(char) ('a' + kind), '\0'};
        CHECK_STR(choose(text, kinds[kind]), has(order, count, kind) ? id : "none");
        CHECK_STR(choose(text, id), has(order, count, kind) ? id : "none");
    }
}

static void try_orders(int *order, size_t count) {
    check_order(order, count);
    for (int kind = 0; kind < 4; kind++)
        if (!has(order, count, kind)) {
            order[count] = kind;
            try_orders(order, count + 1);
        }
}

TEST(every_order) {
    int order[4] = {0};
    try_orders(order, 0);
    test_row(NULL);
}

TEST(names_that_deceive) {
    static const struct {
        const char *options, *said, *chosen;
    } rows[] = {
        {"[{\"id\":\"allow\",\"kind\":\"allow_always\"},{\"id\":\"x\",\"kind\":\"allow_once\"}]", "allow", "x"},
        {"[{\"id\":\"allow\",\"kind\":\"allow_always\"}]", "allow", "only always"},
        {"[{\"id\":\"deny\",\"kind\":\"allow_once\"}]", "deny", ""},
        {"[{\"id\":\"no\",\"kind\":\"allow_once\"},{\"id\":\"x\",\"kind\":\"reject_once\"}]", "no", "x"},
        {"[{\"id\":\"allow_once\",\"kind\":\"allow_always\"}]", "allow_once", "none"},
        {"[{\"id\":\"reject_once\",\"kind\":\"allow_always\"}]", "reject_once", "none"},
        {"[{\"id\":\"allow_always\",\"kind\":\"allow_always\"}]", "allow_always", "allow_always"},
        {"[{\"id\":\"1\",\"kind\":\"allow_once\"},{\"id\":\"2\",\"kind\":\"allow_once\"}]", "allow", "several"},
        {"[{\"id\":\"1\",\"kind\":\"allow_once\"},{\"id\":\"2\",\"kind\":\"allow_once\"}]", "2", "2"},
        {"[{\"id\":\"1\",\"kind\":\"reject_once\"},{\"id\":\"2\",\"kind\":\"reject_once\"}]", "deny", "1"},
        {"[{\"id\":\"yes\",\"kind\":\"\"},{\"id\":\"no\",\"kind\":\"\"}]", "no", "no"},
        {"[{\"id\":\"yes\"},{\"id\":\"no\"}]", "yes", "yes"},
        {"[{\"id\":\"\",\"kind\":\"allow_once\"},7,null]", "allow", "none"},
        {"{}", "deny", ""},
        {"[]", "", "none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].options);
        CHECK_STR(choose(rows[i].options, rows[i].said), rows[i].chosen);
    }
    test_row(NULL);
}

TEST_MAIN(CASE(every_order) CASE(names_that_deceive))
