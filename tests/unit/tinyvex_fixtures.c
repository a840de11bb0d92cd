/* The updates of the ACP that tinyvex was written for (../shared/data/tinyvex/acp-fixtures): an agent says each of them, and
 * it is the same in the store, in the history, in the stream of updates and in session/update. */
#include <dirent.h>

#include "hub_client.h"

#define FIXTURES "tinyvex/acp-fixtures"

/* The next line with this in it; NULL: there is none any more. */
static const char *take_with(hub_client *c, const char *part) {
    const char *line;
    hub_settle(c->world);
    while ((line = hub_take(c)) && !strstr(line, part))
        ;
    return line;
}

static void check_same(const weft_json *is, const weft_json *want, const char *where, const char *name) {
    char *a = NULL, *b = NULL;
    size_t a_len = 0, b_len = 0;
    if (!CHECK(is->text != NULL))
        return;
    CHECK_INT(weft_to_canonical(is, NULL, &a, &a_len), 0);
    CHECK_INT(weft_to_canonical(want, NULL, &b, &b_len), 0);
    bool same = a_len == b_len && memcmp(a, b, a_len) == 0;
    test_check(same, __FILE__, __LINE__, name);
    if (!same)
        printf("  in %s\n  is   %.*s\n  want %.*s\n", where, (int) a_len, a, (int) b_len, b);
    weft_text_free(a, NULL);
    weft_text_free(b, NULL);
}

static void check_line(const char *line, const char *pointer, const weft_json *want, const char *where, const char *name) {
    weft_doc *doc = NULL;
    if (!CHECK(line != NULL) || !CHECK_INT(weft_doc_parse(line, strlen(line), NULL, &doc), 0))
        return;
    weft_json is = weft_pointer(weft_doc_root(doc), pointer);
    check_same(&is, want, where, name);
    weft_doc_free(doc);
}

struct stored {
    int times;
    const weft_json *want;
    const char *name;
};

static void on_stored(void *ctx, int r, const weft_page *page) {
    struct stored *stored = ctx;
    stored->times++;
    if (!CHECK_INT(r, 0) || !CHECK(page->count == 1))
        return;
    char *text = weft__strndup(NULL, page->events[0].data.data, page->events[0].data.len);
    CHECK_STR(page->events[0].type, "session.update");
    check_line(text, "/update", stored->want, "the store", stored->name);
    free(text);
}

static void check_fixture(hub_world *w, hub_client *c, const char *name, const weft_json *update, int seq) {
    char text[256];
    weft_run *run = hub_run(w, "task-0001");
    if (!CHECK(run != NULL))
        return;
    run->host->on_update(run->ctx, update);
    const char *line = take_with(c, "\"method\":\"session/update\"");
    check_line(line, "/params/update", update, "session/update", name);
    CHECK(line && strstr(line, "\"session_id\":\"session-0000\""));
    struct stored stored = {.want = update, .name = name};
    CHECK_INT(weft__store_read(w->store,
                               &(weft_query){.stream = "session/session-0000", .after = (uint64_t) seq - 1, .max_events = 1},
                               on_stored, &stored),
              0);
    HUB_UNTIL(w, stored.times);
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tinyvex/history.sessionUpdates\",\"params\":{\"session_id\":"
             "\"session-0000\",\"since_seq\":%d}}",
             seq - 1);
    hub_say(c, text);
    /* The first has the prompt before it. */
    check_line(take_with(c, "\"id\":7"), seq == 1 ? "/result/1/update" : "/result/0/update", update, "the history", name);
}

/* In the order of their names, so that a failure is found again. */
static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_update(const struct dirent *entry) {
    return strncmp(entry->d_name, "session_update_", 15) == 0;
}

TEST(updates_come_out_as_they_went_in) {
    hub_world w;
    hub_client c;
    struct dirent **names = NULL;
    char path[512];
    const char *data = test_data_dir();
    snprintf(path, sizeof path, "%s/" FIXTURES, data ? data : "");
    int count = data ? scandir(path, &names, is_update, compare_names) : -1;
    if (count <= 0) {
        test_skip("../shared/data/" FIXTURES " is not there");
        return;
    }
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "aiwg", &c);
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/connect\"}");
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"initialize\",\"params\":{\"protocol_version\":\"0.7.0\"}}");
    hub_say(
        &c,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"/srv/project\",\"mcpServers\":[]}}");
    CHECK(take_with(&c, "session-0000") != NULL);
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/"
                "prompt\",\"params\":{\"sessionId\":\"session-0000\",\"prompt\":[{"
                "\"type\":\"text\",\"text\":\"go\"}]}}");
    hub_settle(&w);
    CHECK_INT(count, 8); /* as many as there are kinds */
    for (int i = 0; i < count; i++) {
        weft_doc *doc = NULL;
        size_t len;
        snprintf(path, sizeof path, FIXTURES "/%s", names[i]->d_name);
        char *text = test_data(path, &len);
        if (CHECK(text != NULL) && CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0)) {
            weft_json update = weft_pointer(weft_doc_root(doc), "/params/update");
            check_fixture(&w, &c, names[i]->d_name, &update, i + 1);
        }
        weft_doc_free(doc);
        free(text);
        free(names[i]);
    }
    free(names);
    hub_disconnect(&c);
    hub_done(&w);
}

TEST_MAIN(CASE(updates_come_out_as_they_went_in))
