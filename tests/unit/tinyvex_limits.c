/* The limits of tinyvex at their border: results that wait for a caller who has left, and histories that are being read. */
#include "hub_client.h"
#include "tinyvex_change.h"

#define LATE 256     /* as in tinyvex_late.c */
#define HISTORIES 64 /* as in tinyvex_history.c */

static size_t count_told(hub_client *c, const char *part, int *ret_first) {
    size_t count = 0;
    const char *line;
    *ret_first = -1;
    while ((line = hub_take(c))) {
        const char *at = strstr(line, part);
        if (!at)
            continue;
        if (count++ == 0)
            *ret_first = atoi(at + strlen(part));
    }
    return count;
}

static void tell_late(hub_world *w, int number) {
    char id[16];
    snprintf(id, sizeof id, "r%d", number);
    weft__tinyvex_tell_late(&w->hub, "tester", WEFT_OBJ({"requestId", weft_str(id)}));
}

/* The last that fits, and the first that does not: then the oldest goes. */
TEST(so_many_results_wait_for_who_has_left) {
    for (int more = 0; more < 2; more++) {
        hub_world w;
        hub_client c;
        int first;
        CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
        for (int i = 0; i < LATE + more; i++)
            tell_late(&w, i);
        hub_connect(&w, "weft", &c);
        hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/connect\"}");
        hub_settle(&w);
        CHECK_INT(count_told(&c, "\"requestId\":\"r", &first), LATE);
        CHECK_INT(first, more);
        /* They are told once. */
        hub_client d;
        hub_connect(&w, "weft", &d);
        hub_say(&d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/connect\"}");
        hub_settle(&w);
        CHECK_INT(count_told(&d, "\"requestId\":\"r", &first), 0);
        hub_disconnect(&c);
        hub_disconnect(&d);
        hub_done(&w);
    }
}

/* And only so many bytes of them, but always the newest. */
TEST(so_many_bytes_of_results_wait) {
    hub_world w;
    hub_client c;
    int first;
    size_t size = (size_t) 1 << 20;
    char *text = malloc(size + 1);
    REQUIRE(text != NULL);
    memset(text, 'x', size);
    text[size] = '\0';
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "r%d", i);
        weft__tinyvex_tell_late(&w.hub, "tester", WEFT_OBJ({"requestId", weft_str(id)}, {"value", weft_str(text)}));
    }
    hub_connect(&w, "weft", &c);
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tinyvex/connect\"}");
    hub_settle(&w);
    CHECK_INT(count_told(&c, "\"requestId\":\"r", &first), 3); /* 4 MiB, with their names */
    CHECK_INT(first, 3);
    free(text);
    hub_disconnect(&c);
    hub_done(&w);
}

TEST(so_many_histories_are_read_at_a_time) {
    hub_world w;
    hub_client c;
    int first;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "weft", &c);
    hub_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}");
    HUB_UNTIL(&w, hub_run(&w, "task-0000"));
    hub_settle(&w);
    while (hub_take(&c))
        ;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i <= HISTORIES; i++) {
            char text[256];
            snprintf(
                text, sizeof text,
                "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tinyvex/history.sessionUpdates\",\"params\":{\"session_id\":"
                "\"session-0000\"}}",
                1000 + i);
            hub_say(&c, text);
            CHECK_INT(w.hub.histories, i < HISTORIES ? i + 1 : HISTORIES);
        }
        /* The first that is refused is the one that is too many, and it is told at once; the others get their answers. */
        const char *line = hub_take(&c);
        CHECK(line && strstr(line, "\"id\":1064,") && strstr(line, "\"code\":429"));
        HUB_UNTIL(&w, w.hub.histories == 0);
        hub_settle(&w);
        CHECK_INT(count_told(&c, "\"result\":", &first), HISTORIES);
    }
    hub_disconnect(&c);
    hub_done(&w);
}

TEST_MAIN(CASE(so_many_results_wait_for_who_has_left) CASE(so_many_bytes_of_results_wait)
              CASE(so_many_histories_are_read_at_a_time))
