/* Which changes of files are events. */
#include "watch_filter.h"

#include <errno.h>

#include "harness.h"

static const char rows_text[] = "[{\"path\":\".aiwg/\",\"ignore\":[\"*.tmp\",\"working/**\",\"daemon/**\"]},"
                                "{\"path\":\"./src\",\"events\":[\"modify\"],\"extensions\":[\".ts\",\".test.js\"]},"
                                "{\"path\":\"docs\",\"events\":[],\"ignore\":[5,\"draft\"]},"
                                "{\"path\":\"one.txt\",\"events\":[\"create\",\"delete\"]}]";

TEST(chooses) {
    static const struct {
        const char *path;
        weft_change_kind kind;
        bool wanted;
    } rows[] = {
        {".aiwg/a.md", WEFT_FILE_CREATE, true},
        {".aiwg/a.md", WEFT_FILE_DELETE, true},
        {".aiwg/x.tmp", WEFT_FILE_CREATE, false},
        {".aiwg/deep/x.tmp.md", WEFT_FILE_CREATE, false}, /* anywhere in it, as AIWG has it */
        {".aiwg/working/b", WEFT_FILE_MODIFY, false},
        {".aiwgs/a.md", WEFT_FILE_CREATE, false},
        {"src/a.ts", WEFT_FILE_MODIFY, true},
        {"src/deep/a.test.js", WEFT_FILE_MODIFY, true},
        {"src/a.js", WEFT_FILE_MODIFY, false},
        {"src/a.ts", WEFT_FILE_CREATE, false},
        {"src", WEFT_FILE_MODIFY, false},
        {"docs/a", WEFT_FILE_DELETE, true},
        {"docs/the draft of a", WEFT_FILE_DELETE, false},
        {"one.txt", WEFT_FILE_CREATE, true},
        {"one.txt", WEFT_FILE_MODIFY, false},
        {"one.txt.bak", WEFT_FILE_CREATE, false},
        {"elsewhere", WEFT_FILE_CREATE, false},
    };
    weft_doc *doc;
    weft_watch_filter *filter = NULL;
    REQUIRE(weft_doc_parse(rows_text, strlen(rows_text), NULL, &doc) == 0);
    REQUIRE(weft__watch_filter_new(weft_doc_root(doc), NULL, &filter) == 0);
    weft_doc_free(doc);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].path);
        CHECK_INT(weft__watch_filter_wants(filter, rows[i].kind, rows[i].path), rows[i].wanted);
    }
    CHECK(weft__watch_filter_wants(NULL, WEFT_FILE_CREATE, "anything"));
    weft__watch_filter_free(filter);
    CHECK(weft__watch_filter_free(NULL) == NULL);
}

TEST(the_project_itself) {
    static const char text[] = "[{\"path\":\".\",\"extensions\":[\".c\"]}]";
    weft_doc *doc;
    weft_watch_filter *filter = NULL;
    REQUIRE(weft_doc_parse(text, strlen(text), NULL, &doc) == 0);
    REQUIRE(weft__watch_filter_new(weft_doc_root(doc), NULL, &filter) == 0);
    CHECK(weft__watch_filter_wants(filter, WEFT_FILE_CREATE, "src/deep/a.c"));
    CHECK(!weft__watch_filter_wants(filter, WEFT_FILE_CREATE, "src/deep/a.h"));
    weft__watch_filter_free(filter);
    weft_doc_free(doc);
}

TEST_MAIN(CASE(chooses) CASE(the_project_itself))
