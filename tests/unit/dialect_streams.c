/* Streams of tinyvex: values in pieces, slow readers, positions that were trimmed, what is shared and when it ends. With the
 * store in memory and with SQLite, whose pages come from another thread. The conversations are in scenes/hub. */
#include "collections.h"
#include "hub_client.h"
#include "hub_clients_private.h"
#include "tinyvex.h"

#define SUBSCRIBE(id, sub, name, more)                                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"" sub                     \
    "\",\"name\":\"" name "\"" more "}}"
#define UNSUBSCRIBE(id, sub)                                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tinyvex/unsubscribe\",\"params\":{\"subId\":\"" sub "\"}}"
#define NOTICES ",\"params\":{\"types\":[\"notice\"]}"
#define NOTES ",\"params\":{\"collection\":\"notes\"}"

static char folder[64];

static void open_again(hub_world *w, const weft_store_kind *kind) {
    char path[96];
    snprintf(path, sizeof path, "%s/weft.db", folder);
    CHECK_INT(hub_init(w, &(hub_opts){.kind = kind, .path = path, .service.out_soft = 65536}), 0);
}

/* A hub whose connections are full soon. */
static void open_hub(hub_world *w, const weft_store_kind *kind) {
    snprintf(folder, sizeof folder, "/tmp/weft-streams-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    open_again(w, kind);
}

static void close_hub(hub_world *w) {
    hub_done(w);
    test_remove(folder);
}

static const weft_store_kind *const kinds[] = {&weft__memory, &weft__sqlite};
#define EACH_KIND(kind) for (size_t kind = 0; kind < 2; kind++)

/* ---- what happens ---- */

static int changes;

static void on_changed(void *ctx, int r, uint64_t version) {
    (void) ctx, (void) version;
    CHECK_INT(r, 0);
    changes--;
}

/* A value of so many bytes, all of them two-byte characters after the number, under the only key. */
static void put_note(hub_world *w, int number, size_t bytes) {
    size_t room = bytes + 64, n;
    char *text = malloc(room);
    weft_doc *doc = NULL;
    n = (size_t) snprintf(text, room, "\"%d ", number);
    while (n < bytes) {
        memcpy(text + n, "\xc3\xa9", 2);
        n += 2;
    }
    text[n++] = '"';
    CHECK_INT(weft_doc_parse(text, n, NULL, &doc), 0);
    changes++;
    weft_item_change change = {.collection = "notes", .key = "only", .value = *weft_doc_root(doc), .expect = -1};
    CHECK_INT(weft__item_change(w->engine, &change, on_changed, NULL), 0);
    HUB_UNTIL(w, changes == 0);
    weft_doc_free(doc);
    free(text);
}

/* ---- what a client is told ---- */

static int64_t number_in(const char *line, const char *member) {
    const char *at = strstr(line, member);
    return at ? atoll(at + strlen(member)) : -1;
}

static int notice_of(const char *line) {
    return (int) number_in(line, "\"message\":\"");
}

/* Joins pieces as a client would. */
typedef struct joiner {
    char *text;
    size_t len, part, parts;
    int64_t transition, seq;
    int whole;  /* values so far, of both forms */
    int number; /* of the note in the last one */
    int given_up;
} joiner;

static void take_piece(joiner *j, const weft_json *params) {
    weft_json chunk = weft_get(params, "chunk");
    weft_bytes text = {"", 0};
    int64_t transition = atoll(weft_get_str(params, "transitionId", "0"));
    size_t part = (size_t) weft_get_int(params, "part", 0);
    CHECK_INT(weft_bytes_of(&chunk, &text), 0);
    CHECK(text.len <= TINYVEX_CHUNK && text.len > 0);
    CHECK(((unsigned char) text.data[0] & 0xC0) != 0x80); /* it begins with a character */
    if (transition != j->transition) {
        CHECK(transition > j->transition && part == 1);
        j->given_up += j->part < j->parts;
        j->len = j->part = 0;
        j->transition = transition;
        j->parts = (size_t) weft_get_int(params, "total", 0);
        CHECK(weft_get_int(params, "seq", 0) > j->seq);
        j->seq = weft_get_int(params, "seq", 0);
    }
    CHECK_INT(part, ++j->part);
    CHECK_INT(weft_get_int(params, "seq", 0), j->seq);
    j->text = realloc(j->text, j->len + text.len);
    memcpy(j->text + j->len, text.data, text.len);
    j->len += text.len;
    CHECK((weft_get_str(params, "journal", NULL) != NULL) == (part == j->parts));
}

static void take_whole(joiner *j, const char *text, size_t len) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    weft_json note = weft_pointer(weft_doc_root(doc), "/0/value");
    j->number = atoi(weft_str_of(&note, "-1"));
    j->whole++;
    weft_doc_free(doc);
}

/* true: the line was of a value. */
static bool take_value_line(joiner *j, const char *line) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(line, strlen(line), NULL, &doc), 0);
    const char *method = weft_get_str(weft_doc_root(doc), "method", "");
    weft_json params = weft_get(weft_doc_root(doc), "params"), value = weft_get(&params, "value");
    bool piece = strcmp(method, "tinyvex/transitionChunk") == 0, data = strcmp(method, "tinyvex/data") == 0;
    if (piece)
        take_piece(j, &params);
    if (piece && j->part == j->parts)
        take_whole(j, j->text, j->len);
    if (data) {
        CHECK(weft_get_int(&params, "seq", 0) > j->seq);
        j->seq = weft_get_int(&params, "seq", 0);
        take_whole(j, value.text, value.len);
    }
    weft_doc_free(doc);
    return piece || data;
}

static size_t computations(const hub_world *w) {
    return w->hub.clients->by_stream.count;
}

/* ---- sharing ---- */

/* Members in another order, and more of them, are the same stream. It ends with the last who follows it. */
TEST(one_computation_for_all) {
    hub_world w;
    hub_client a, b;
    open_hub(&w, &weft__memory);
    hub_connect(&w, "aiwg", &a);
    hub_connect(&w, "cdev", &b);
    hub_say(&a, SUBSCRIBE(1, "x", "events", ",\"params\":{\"types\":[\"a\",\"b\"],\"more\":1}"));
    HUB_TOLD(&a, "\"accepted\":true");
    hub_say(&b, SUBSCRIBE(1, "y", "events", ",\"params\":{ \"types\" : [ \"\\u0061\", \"b\" ] }"));
    HUB_TOLD(&b, "\"accepted\":true");
    CHECK_INT(computations(&w), 1);
    hub_say(&b, SUBSCRIBE(2, "z", "events", ",\"params\":{\"types\":[\"b\",\"a\"]}"));
    HUB_TOLD(&b, "\"accepted\":true");
    CHECK_INT(computations(&w), 2);
    hub_say(&b, SUBSCRIBE(3, "z", "tasks", ""));
    HUB_TOLD(&b, "\"accepted\":true");
    HUB_TOLD(&b, "\"value\":[]");
    CHECK_INT(computations(&w), 2);
    hub_disconnect(&a);
    CHECK_INT(computations(&w), 2);
    hub_say(&b, UNSUBSCRIBE(4, "y"));
    HUB_TOLD(&b, "\"ok\":true");
    CHECK_INT(computations(&w), 1);
    CHECK(w.hub.clients->value_bytes > 0);
    hub_disconnect(&b);
    CHECK_INT(computations(&w), 0);
    CHECK_INT(w.hub.clients->value_bytes, 0);
    close_hub(&w);
}

/* Many changes of one turn are one value, and a value that comes out the same is not sent. */
TEST(computed_once_for_many_events) {
    hub_world w;
    hub_client c;
    open_hub(&w, &weft__memory);
    hub_connect(&w, "aiwg", &c);
    hub_say(&c, SUBSCRIBE(1, "t", "threads", ""));
    HUB_TOLD(&c, "\"accepted\":true");
    HUB_TOLD(&c, "\"value\":[]");
    for (int i = 0; i < 50; i++)
        CHECK_INT(weft__engine_append(w.engine, "hub", "task.odd", WEFT_OBJ({"n", weft_int(i)}), NULL, NULL), 0);
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

TEST(so_many_subscriptions_and_no_more) {
    hub_world w;
    hub_client c;
    char text[200];
    open_hub(&w, &weft__memory);
    hub_connect(&w, "aiwg", &c);
    for (int i = 0; i < WEFT_CLIENT_SUBSCRIPTIONS; i++) {
        snprintf(text, sizeof text, SUBSCRIBE(1, "s%d", "events", NOTICES), i);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"accepted\":true");
    }
    CHECK_INT(computations(&w), 1);
    hub_say(&c, SUBSCRIBE(2, "more", "events", ""));
    HUB_TOLD(&c, "\"data\":{\"reason\":\"tooManySubscriptions\",\"code\":\"TVX002\"}");
    hub_say(&c, SUBSCRIBE(3, "s7", "tasks", "")); /* instead of one there is */
    HUB_TOLD(&c, "\"id\":3,\"result\":{\"accepted\":true");
    HUB_TOLD(&c, "\"value\":[]");
    hub_happen(&w, "notice", "to all of them");
    for (int i = 0; i < WEFT_CLIENT_SUBSCRIPTIONS - 1; i++)
        HUB_TOLD(&c, "to all of them");
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

/* ---- pace ---- */

/* A log has every number once and in order, however slowly it is read; nothing of it waits in memory. */
TEST(a_slow_log_misses_nothing) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        int next = 0, count;
        open_hub(&w, kinds[kind]);
        hub_connect(&w, "aiwg", &c);
        hub_say(&c, SUBSCRIBE(1, "n", "events", NOTICES));
        HUB_TOLD(&c, "\"accepted\":true");
        count = hub_fill_connection(&c, 0);
        for (int more = 0; more < 400; more++)
            hub_make_notice(&w, count++);
        HUB_UNTIL(&w, hub_pending == 0);
        CHECK(weft_peer_output(c.peer).len < 2 * 65536);
        while (c.peer && next < count && CHECK_INT(notice_of(hub_wait(&c)), next))
            next++;
        hub_make_notice(&w, count);
        CHECK_INT(notice_of(hub_wait(&c)), count);
        HUB_SILENT(&c);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* One of many stops reading: the others are told everything at once, and it is when it reads again. */
TEST(one_of_many_stops_reading) {
    hub_world w;
    hub_client c[20];
    int next = 0;
    open_hub(&w, &weft__memory);
    for (size_t i = 0; i < 20; i++) {
        hub_connect(&w, "aiwg", &c[i]);
        hub_say(&c[i], SUBSCRIBE(1, "n", "events", NOTICES));
        HUB_TOLD(&c[i], "\"accepted\":true");
    }
    for (int number = 0; number < 300; number++) {
        hub_make_notice(&w, number);
        for (size_t i = 1; i < 20; i++)
            CHECK_INT(notice_of(hub_wait(&c[i])), number);
    }
    CHECK(weft_peer_output(c[0].peer).len < 2 * 65536);
    while (next < 300 && CHECK_INT(notice_of(hub_wait(&c[0])), next))
        next++;
    for (size_t i = 0; i < 20; i++) {
        HUB_SILENT(&c[i]);
        hub_disconnect(&c[i]);
    }
    close_hub(&w);
}

/* A state that is read slowly skips values, says so once, and ends with the latest. */
TEST(a_slow_state_has_the_latest) {
    hub_world w;
    hub_client c;
    joiner j = {.number = -1};
    int told = 0;
    open_hub(&w, &weft__memory);
    hub_connect(&w, "aiwg", &c);
    hub_say(&c, SUBSCRIBE(1, "s", "documents", NOTES));
    HUB_TOLD(&c, "\"accepted\":true");
    HUB_TOLD(&c, "\"value\":[]");
    for (int i = 0; i < 60; i++)
        put_note(&w, i, 20000);
    CHECK(weft_peer_full(c.peer));
    CHECK(weft_peer_output(c.peer).len < 2 * 65536);
    hub_settle(&w);
    for (const char *line; c.peer && j.number < 59 && *(line = hub_wait(&c));)
        if (!take_value_line(&j, line) && CHECK(strstr(line, "\"method\":\"tinyvex/error\"") != NULL)) {
            CHECK(strstr(line, "\"subId\":\"s\",\"code\":\"TVX005\"") != NULL);
            CHECK(number_in(line, "\"skipped\":") > 40);
            told++;
        }
    CHECK_INT(j.number, 59);
    CHECK(j.whole < 15);
    CHECK_INT(told, 1);
    put_note(&w, 60, 10);
    CHECK(take_value_line(&j, hub_wait(&c)));
    CHECK_INT(j.number, 60);
    HUB_SILENT(&c);
    free(j.text);
    hub_disconnect(&c);
    close_hub(&w);
}

/* ---- pieces ---- */

TEST(a_long_value_comes_in_pieces) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        joiner j = {.number = -1};
        open_hub(&w, kinds[kind]);
        put_note(&w, 1, 250000);
        hub_connect(&w, "aiwg", &c);
        hub_say(&c, SUBSCRIBE(1, "s", "documents", NOTES));
        HUB_TOLD(&c, "\"accepted\":true");
        while (!j.whole && CHECK(take_value_line(&j, hub_wait(&c))))
            ;
        CHECK_INT(j.number, 1);
        CHECK_INT(j.parts, 4);
        HUB_SILENT(&c);
        free(j.text);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* A newer value takes the place of one under way, but not twice in a row. */
TEST(newer_pieces_supersede_older) {
    hub_world w;
    hub_client c;
    joiner j = {.number = -1};
    open_hub(&w, &weft__memory);
    put_note(&w, 0, 250000);
    hub_connect(&w, "aiwg", &c);
    hub_say(&c, SUBSCRIBE(1, "s", "documents", NOTES));
    HUB_TOLD(&c, "\"accepted\":true");
    hub_settle(&w);
    CHECK(take_value_line(&j, hub_wait(&c)));
    for (int i = 1; i <= 5; i++) {
        size_t before = w.hub.clients->value_bytes; /* a long value is not computed at once */
        put_note(&w, i, 250000 + 100 * (size_t) i);
        HUB_UNTIL(&w, w.hub.clients->value_bytes != before);
        for (const char *line; (line = hub_take(&c));) /* some of it */
            if (take_value_line(&j, line))
                break;
    }
    for (const char *line; c.peer && j.number < 5 && *(line = hub_wait(&c));)
        CHECK(take_value_line(&j, line) || strstr(line, "TVX005"));
    CHECK_INT(j.number, 5);
    CHECK(j.given_up > 0);
    CHECK(j.whole > 1); /* not only the last */
    HUB_SILENT(&c);
    free(j.text);
    hub_disconnect(&c);
    close_hub(&w);
}

/* A log whose values are long: each comes whole, and the next behind it. */
TEST(a_long_log_goes_on_behind_its_pieces) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        char *text = malloc(300001);
        int64_t last = 0;
        int whole = 0;
        memset(text, 'y', 300000);
        text[300000] = '\0';
        open_hub(&w, kinds[kind]);
        hub_connect(&w, "aiwg", &c);
        hub_say(&c, SUBSCRIBE(1, "n", "events", NOTICES));
        HUB_TOLD(&c, "\"accepted\":true");
        for (int i = 0; i < 6; i++)
            hub_happen(&w, "notice", i % 3 == 2 ? "short" : text);
        HUB_UNTIL(&w, hub_pending == 0);
        while (c.peer && whole < 6) {
            const char *line = hub_wait(&c);
            int64_t seq = number_in(line, "\"seq\":"), part = number_in(line, "\"part\":"),
                    total = number_in(line, "\"total\":");
            if (!CHECK(seq >= last && (part > 1 ? seq == last : seq > last)))
                break;
            last = seq;
            whole += part == total; /* both -1: it is in one piece */
        }
        HUB_SILENT(&c);
        hub_happen(&w, "notice", "live");
        HUB_TOLD(&c, "live");
        free(text);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* Two streams with long values on one connection, one of which ends in the midst. */
TEST(unsubscribed_in_pieces) {
    hub_world w;
    hub_client c;
    joiner j = {.number = -1};
    open_hub(&w, &weft__memory);
    put_note(&w, 3, 250000);
    hub_connect(&w, "aiwg", &c);
    hub_say(&c, SUBSCRIBE(1, "a", "documents", NOTES));
    hub_say(&c, SUBSCRIBE(2, "b", "documents", NOTES));
    HUB_TOLD(&c, "\"accepted\":true");
    hub_settle(&w);
    weft_hub_client *client = weft__hub_client_of(w.hub.clients, c.peer);
    CHECK(client->transfer == weft__hub_client_stream(client, "a"));
    CHECK(weft__hub_client_unsubscribe_stream(client, "a"));
    CHECK(client->transfer == NULL);
    for (const char *line; c.peer && !j.whole && *(line = hub_wait(&c));)
        if (strstr(line, "\"subId\":\"b\""))
            take_value_line(&j, line);
    CHECK_INT(j.number, 3);
    HUB_SILENT(&c);
    free(j.text);
    hub_disconnect(&c);
    close_hub(&w);
}

/* ---- positions ---- */

static void on_trimmed(void *ctx, int r, uint64_t removed) {
    CHECK_INT(r, 0);
    (void) removed;
    *(bool *) ctx = true;
}

static void trim(hub_world *w, const char *stream, uint64_t rows, uint64_t upto) {
    bool trimmed = false;
    CHECK_INT(weft__store_trim(w->store, &(weft_trim){.stream = stream, .rows = rows, .upto = upto}, on_trimmed, &trimmed),
              0);
    HUB_UNTIL(w, trimmed);
}

/* Exactly at the trim's edge it goes on; one before it begins anew. A state does not care. */
TEST(at_the_edge_of_a_trim) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        char text[300];
        open_hub(&w, kinds[kind]);
        uint64_t before = weft__store_head(w.store);
        for (int i = 0; i < 10; i++)
            hub_happen(&w, "notice", "n");
        HUB_UNTIL(&w, hub_pending == 0);
        trim(&w, NULL, 0, before + 5);
        hub_connect(&w, "aiwg", &c);
        snprintf(text, sizeof text, SUBSCRIBE(1, "n", "events", NOTICES ",\"lastSeq\":%d"), (int) before + 5);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"resumed\":true");
        for (int i = 6; i <= 10; i++)
            CHECK_INT(number_in(hub_wait(&c), "\"seq\":"), (int) before + i);
        snprintf(text, sizeof text, SUBSCRIBE(2, "n", "events", NOTICES ",\"lastSeq\":%d"), (int) before + 4);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"resumed\":false");
        CHECK(strstr(c.line, "\"reason\":\"trimmed\"") && number_in(c.line, "\"startSeq\":") == (int) before + 10);
        snprintf(text, sizeof text, SUBSCRIBE(3, "s", "questions", ",\"lastSeq\":%d"), (int) before + 4);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"resumed\":true");
        HUB_TOLD(&c, "\"value\":[]");
        /* A stream that is whole begins again with what is kept. */
        hub_say(&c, SUBSCRIBE(4, "o", "taskOutput", ",\"params\":{\"taskId\":\"task-0000\"},\"lastSeq\":0"));
        HUB_TOLD(&c, "\"resumed\":false,\"startSeq\":0");
        CHECK(strstr(c.line, "\"reason\":\"trimmed\"") != NULL);
        HUB_SILENT(&c);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* What it should have heard is trimmed while it pauses: the connection is closed, and told on its return. */
TEST(trimmed_during_replay) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        int count = 0;
        open_hub(&w, kinds[kind]);
        hub_connect(&w, "aiwg", &c);
        hub_say(&c, SUBSCRIBE(1, "n", "events", NOTICES));
        HUB_TOLD(&c, "\"accepted\":true");
        count = hub_fill_connection(&c, 0);
        for (int more = 0; more < 100; more++)
            hub_make_notice(&w, count++);
        HUB_UNTIL(&w, hub_pending == 0);
        trim(&w, NULL, 5, 0);
        int64_t until = hub_ms() + HUB_PATIENCE_MS;
        while (c.peer && hub_ms() < until)
            if (!hub_take(&c))
                hub_turn(&w, 1);
        CHECK(c.peer == NULL);
        hub_disconnect(&c);
        hub_connect(&w, "aiwg", &c);
        hub_say(&c, SUBSCRIBE(1, "n", "events", NOTICES ",\"lastSeq\":3"));
        HUB_TOLD(&c, "\"reason\":\"trimmed\"");
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* Ended, replaced and left in the midst of a replay: nothing comes behind it. */
TEST(ended_during_replay) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c, d;
        open_hub(&w, kinds[kind]);
        for (int i = 0; i < 600; i++)
            hub_make_notice(&w, i);
        HUB_UNTIL(&w, hub_pending == 0);
        hub_connect(&w, "aiwg", &c);
        hub_connect(&w, "aiwg", &d);
        hub_say(&c, SUBSCRIBE(1, "n", "events", NOTICES ",\"lastSeq\":0"));
        hub_say(&d, SUBSCRIBE(1, "n", "events", NOTICES ",\"lastSeq\":0"));
        HUB_TOLD(&c, "\"accepted\":true");
        CHECK_INT(notice_of(hub_wait(&c)), 0);
        HUB_TOLD(&d, "\"accepted\":true");
        hub_disconnect(&d);
        hub_say(&c, UNSUBSCRIBE(2, "n"));
        int next = 1;
        for (const char *line; *(line = hub_wait(&c)) && !strstr(line, "\"id\":2"); next++)
            if (!CHECK_INT(notice_of(line), next))
                break;
        HUB_SILENT(&c);
        CHECK(next < 600);
        CHECK_INT(computations(&w), 0);
        /* From where it was, on another connection. */
        char text[300];
        hub_connect(&w, "cdev", &d);
        snprintf(text, sizeof text, SUBSCRIBE(3, "n", "events", NOTICES ",\"lastSeq\":%d"), next + 1);
        hub_say(&d, text);
        HUB_TOLD(&d, "\"resumed\":true");
        while (next < 600 && CHECK_INT(notice_of(hub_wait(&d)), next))
            next++;
        HUB_SILENT(&d);
        hub_disconnect(&c);
        hub_disconnect(&d);
        close_hub(&w);
    }
}

/* After a restart, and after everything was trimmed, who has the value is not sent it again; who has another one is. */
TEST(a_state_over_a_restart) {
    hub_world w;
    hub_client c;
    char journal[200] = "", text[500];
    open_hub(&w, &weft__sqlite);
    put_note(&w, 7, 100);
    hub_connect(&w, "aiwg", &c);
    hub_say(&c, SUBSCRIBE(1, "s", "documents", NOTES));
    HUB_TOLD(&c, "\"accepted\":true");
    HUB_TOLD(&c, "\"value\":[{");
    int seq = (int) number_in(c.line, "\"seq\":");
    const char *at = strstr(c.line, "\"journal\":\"");
    if (CHECK(at != NULL))
        sscanf(at, "\"journal\":\"%199[^\"]", journal);
    hub_disconnect(&c);
    hub_done(&w);
    open_again(&w, &weft__sqlite);
    for (int i = 0; i < 10; i++)
        hub_happen(&w, "notice", "n");
    HUB_UNTIL(&w, hub_pending == 0);
    trim(&w, NULL, 1, 0);
    hub_connect(&w, "aiwg", &c);
    snprintf(text, sizeof text, SUBSCRIBE(2, "s", "documents", NOTES ",\"lastSeq\":%d,\"journal\":\"%s\""), seq, journal);
    hub_say(&c, text);
    HUB_TOLD(&c, "\"resumed\":true");
    CHECK(strstr(c.line, journal) && number_in(c.line, "\"startSeq\":") == seq);
    HUB_SILENT(&c);
    /* The digest belongs to its position. */
    snprintf(text, sizeof text, SUBSCRIBE(3, "s", "documents", NOTES ",\"lastSeq\":%d,\"journal\":\"%s\""), seq - 1,
             journal);
    hub_say(&c, text);
    HUB_TOLD(&c, "\"resumed\":true");
    HUB_TOLD(&c, "\"value\":[{");
    put_note(&w, 8, 100);
    HUB_TOLD(&c, "\"value\":[{");
    snprintf(text, sizeof text, SUBSCRIBE(4, "s", "documents", NOTES ",\"lastSeq\":%d,\"journal\":\"%s\""), seq, journal);
    hub_say(&c, text);
    HUB_TOLD(&c, "\"resumed\":true");
    HUB_TOLD(&c, "\"8 ");
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

/* ---- computing ---- */

static weft_computing *pending; /* a computation that the test finishes */
static const char *written = "1";
static int outcome;

static void compute_later(const weft_hub *hub, const weft_json *params, weft_computing *computing) {
    (void) hub, (void) params;
    pending = computing;
}

static void finish_pending(const char *text, int r) {
    weft_computing *computing = pending;
    pending = NULL;
    if (CHECK(computing != NULL)) {
        CHECK_INT(weft__buf_put(weft__computing_out(computing), NULL, text, strlen(text)), 0);
        weft__computing_done(computing, r);
    }
}

static void compute_written(const weft_hub *hub, const weft_json *params, weft_computing *computing) {
    (void) hub, (void) params;
    weft__computing_done(computing, weft__buf_put(weft__computing_out(computing), NULL, written, strlen(written)));
}

static weft_event_source *notice_source(const weft_json *params, const weft_alloc *alloc) {
    static const char *const types[] = {"notice"};
    (void) params;
    return weft__source_new(&(weft_subscription_spec){.types = types, .type_count = 1}, alloc);
}

static const weft_stream_kind later_kind = {
    .name = "later", .class = WEFT_CLASS_STATE, .source = notice_source, .compute = compute_later};
static const weft_stream_kind written_kind = {
    .name = "written", .class = WEFT_CLASS_STATE, .source = notice_source, .compute = compute_written};

static void on_outcome(void *ctx, int r, uint64_t start) {
    (void) ctx, (void) start;
    outcome = r;
}

static void follow(hub_client *c, const weft_stream_kind *kind, const char *id, uint64_t after, const char *digest) {
    weft_hub_client *client = weft__hub_client_of(c->world->hub.clients, c->peer);
    weft_subscription_spec spec = {.id = id, .kind = kind, .params = "{}", .live = !after, .after = after, .digest = digest};
    outcome = 1000;
    CHECK_INT(weft__hub_client_subscribe(client, &spec, on_outcome, NULL), 0);
    hub_settle(c->world);
}

/* Who waits is told after 10 s that there is none, who has an old value that it is old; one that comes at last is told. */
TEST(a_value_that_takes_long) {
    hub_world w;
    hub_client c;
    int64_t now = INT64_C(1) << 40;
    open_hub(&w, &weft__memory);
    weft_loop_set_now(w.loop, now);
    hub_connect(&w, "aiwg", &c);
    follow(&c, &later_kind, "l", 0, NULL);
    CHECK_INT(outcome, 1000);
    weft_loop_set_now(w.loop, now += 9999);
    hub_settle(&w);
    CHECK_INT(outcome, 1000);
    weft_loop_set_now(w.loop, now += 1);
    hub_settle(&w);
    CHECK_INT(outcome, -ETIMEDOUT);
    CHECK_INT(computations(&w), 0);
    finish_pending("too late", 0);
    follow(&c, &later_kind, "l", 0, NULL);
    finish_pending("", -EBUSY); /* it is tried again soon */
    CHECK(!pending && outcome == 1000);
    weft_loop_set_now(w.loop, now += 50);
    hub_settle(&w);
    finish_pending("\"a\"", 0);
    CHECK_INT(outcome, 0);
    HUB_TOLD(&c, "\"value\":\"a\"");
    hub_happen(&w, "notice", "n");
    HUB_UNTIL(&w, pending != NULL);
    weft_loop_set_now(w.loop, now += 10000);
    HUB_TOLD(&c, "\"subId\":\"l\",\"code\":\"TVX007\"");
    finish_pending("\"b\"", 0);
    HUB_TOLD(&c, "\"value\":\"b\"");
    hub_disconnect(&c);
    close_hub(&w);
}

static void fail_pending(hub_world *w, int64_t *now, int r) {
    weft_loop_set_now(w->loop, *now += 1000);
    HUB_UNTIL(w, pending != NULL);
    finish_pending("", r);
}

/* The last value stays, and it is tried again. Who has the last value is told once that it is old, and so is who comes
 * meanwhile. */
TEST(a_value_that_cannot_be_computed) {
    hub_world w;
    hub_client c;
    int64_t now = INT64_C(1) << 40;
    open_hub(&w, &weft__memory);
    weft_loop_set_now(w.loop, now);
    hub_connect(&w, "aiwg", &c);
    follow(&c, &later_kind, "l", 0, NULL);
    finish_pending("\"b\"", 0);
    HUB_TOLD(&c, "\"value\":\"b\"");
    hub_happen(&w, "notice", "n");
    fail_pending(&w, &now, -EIO);
    HUB_TOLD(&c, "\"method\":\"tinyvex/error\",\"params\":{\"subId\":\"l\",\"code\":\"TVX004\"");
    HUB_SILENT(&c);
    CHECK(!pending);
    fail_pending(&w, &now, -EIO);
    HUB_SILENT(&c);
    fail_pending(&w, &now, -EMSGSIZE);
    HUB_TOLD(&c, "\"subId\":\"l\",\"code\":\"TVX002\",\"message\":\"The value is too long; the last one is old\"");
    weft_loop_set_now(w.loop, now += 1000);
    HUB_UNTIL(&w, pending != NULL);
    follow(&c, &later_kind, "m", 0, NULL); /* there is a value for who comes meanwhile */
    CHECK_INT(outcome, 0);
    HUB_TOLD(&c, "\"subId\":\"m\",\"seq\"");
    HUB_TOLD(&c, "\"subId\":\"m\",\"code\":\"TVX002\"");
    finish_pending("\"b\"", 0);
    HUB_SILENT(&c);
    /* It failed, was well, and fails again: that is said again. */
    hub_happen(&w, "notice", "n");
    fail_pending(&w, &now, -EMSGSIZE);
    HUB_TOLD(&c, "\"code\":\"TVX002\"");
    hub_disconnect(&c);
    close_hub(&w);
}

/* The value is again what it was, but the client has heard another one since it asked. */
TEST(a_digest_of_who_heard_something_else) {
    hub_world w;
    hub_client c;
    char digest[WEFT_DIGEST + 1] = "";
    open_hub(&w, &weft__memory);
    hub_connect(&w, "aiwg", &c);
    written = "1";
    follow(&c, &written_kind, "x", 0, NULL);
    HUB_TOLD(&c, "\"value\":1");
    uint64_t seq = (uint64_t) number_in(c.line, "\"seq\":");
    const char *at = strrchr(c.line, '.');
    if (CHECK(at != NULL))
        snprintf(digest, sizeof digest, "%s", at + 1);
    written = "2";
    hub_happen(&w, "notice", "n");
    HUB_TOLD(&c, "\"value\":2");
    written = "1";
    hub_happen(&w, "notice", "n");
    HUB_TOLD(&c, "\"value\":1");
    follow(&c, &written_kind, "y", seq, digest);
    CHECK_INT(outcome, 0);
    HUB_SILENT(&c);
    follow(&c, &written_kind, "x", seq, digest);
    CHECK_INT(outcome, 0);
    HUB_TOLD(&c, "\"subId\":\"x\"");
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

/* ---- little memory ---- */

/* The connection may break. */
static void feed_line(hub_client *c, const char *text) {
    int r = c->peer ? weft_peer_feed(c->peer, text, strlen(text), 1) : -EPIPE;
    if (r >= 0 && c->peer)
        weft_peer_feed(c->peer, "\n", 1, 1);
}

/* Each allocation of a story with long values, a slow reader and somebody who leaves fails once. */
static long play_with(long fail_at) {
    test_memory memory;
    hub_world w;
    hub_client c, d;
    test_memory_init(&memory, 0);
    CHECK_INT(hub_init(&w, &(hub_opts){.alloc = &memory.alloc, .service.out_soft = 65536}), 0);
    put_note(&w, 1, 150000);
    hub_connect(&w, "aiwg", &c);
    hub_connect(&w, "aiwg", &d);
    long before = memory.count;
    memory.fail_at = fail_at ? before + fail_at : 0;
    feed_line(&c, SUBSCRIBE(1, "s", "documents", NOTES));
    feed_line(&d, SUBSCRIBE(1, "n", "events", NOTICES));
    feed_line(&d, SUBSCRIBE(2, "s", "documents", NOTES));
    hub_settle(&w);
    weft__engine_append(w.engine, "hub", "notice", WEFT_OBJ({"message", weft_str("a")}), NULL, NULL);
    hub_settle(&w);
    while (hub_take(&c))
        hub_settle(&w);
    hub_disconnect(&d);
    hub_settle(&w);
    memory.fail_at = 0;
    long count = memory.count - before;
    hub_disconnect(&c);
    hub_done(&w);
    CHECK_INT(memory.live, 0);
    return count;
}

TEST(little_memory) {
    char row[64];
    long count = play_with(0);
    for (long n = 1; n <= count; n++) {
        snprintf(row, sizeof row, "failing allocation %ld", n);
        test_row(row);
        play_with(n);
    }
    test_row(NULL);
}

TEST_MAIN(CASE(one_computation_for_all) CASE(computed_once_for_many_events) CASE(so_many_subscriptions_and_no_more)
              CASE(a_slow_log_misses_nothing) CASE(one_of_many_stops_reading) CASE(a_slow_state_has_the_latest)
                  CASE(a_long_value_comes_in_pieces) CASE(newer_pieces_supersede_older)
                      CASE(a_long_log_goes_on_behind_its_pieces) CASE(unsubscribed_in_pieces) CASE(at_the_edge_of_a_trim)
                          CASE(trimmed_during_replay) CASE(ended_during_replay) CASE(a_state_over_a_restart)
                              CASE(a_value_that_takes_long) CASE(a_value_that_cannot_be_computed)
                                  CASE(a_digest_of_who_heard_something_else) CASE(little_memory))
