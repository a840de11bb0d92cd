/* A copy of a journal: it is the same whenever it was interrupted, it becomes a journal of its own, and nothing that is said
 * to it makes it another than it was. */
#include <sqlite3.h>

#include "change_log.h"
#include "replica.h"
#include "store/world.h"

/* ---- a hub ---- */

typedef struct hub {
    store_world world;
    weft_change_log *log;
    unsigned seed;
    int keys;
    bool still; /* nothing happens while it is copied */
} hub;

static unsigned roll(hub *self, unsigned sides) {
    self->seed = self->seed * 1103515245u + 12345u;
    return (self->seed >> 16) % sides;
}

static void hub_init(hub *self, unsigned seed, size_t max_log) {
    *self = (hub){.seed = seed};
    world_init(&self->world, &weft__sqlite);
    CHECK(world_open(&self->world));
    CHECK_INT(weft__change_log_new(&(weft_change_log_opts){.store = self->world.store, .max_bytes = max_log}, &self->log),
              0);
}

static void hub_done(hub *self) {
    weft__change_log_free(self->log);
    world_done(&self->world);
}

static void hub_append(hub *self, const weft_append *append) {
    store_outcome outcome = {0};
    CHECK_INT(weft__store_append(self->world.store, append, world_appended, &outcome), 0);
    world_wait(&self->world, &outcome.times, 1);
    CHECK_INT(outcome.r, 0);
}

static void hub_trim(hub *self, const weft_trim *trim) {
    store_outcome outcome = {0};
    CHECK_INT(weft__store_trim(self->world.store, trim, world_trimmed, &outcome), 0);
    world_wait(&self->world, &outcome.times, 1);
    CHECK_INT(outcome.r, 0);
}

/* Something happens: what an engine does, in any order. */
static void hub_live(hub *self) {
    static const char *const streams[] = {"hub", "session/a", "session/b", "c", "d\"\\\n"};
    char key[32], document[32], data[64];
    weft_event events[3];
    weft_document documents[2] = {0};
    uint64_t removal = 0, head = weft__store_head(self->world.store);
    size_t count = roll(self, 4);
    snprintf(key, sizeof key, "key-%d", self->keys++);
    snprintf(document, sizeof document, "document-%u", roll(self, 30));
    snprintf(data, sizeof data, "{\"n\":%u,\"text\":\"\\u00e9\\\"\xc3\xa9\"}", roll(self, 1000));
    if (roll(self, 12) == 0)
        hub_trim(self, &(weft_trim){.stream = streams[roll(self, 5)], .rows = 3});
    if (roll(self, 40) == 0)
        hub_trim(self, &(weft_trim){.rows = 1 + roll(self, 40)});
    for (size_t i = 0; i < count; i++)
        events[i] = world_event(streams[roll(self, 5)], data);
    documents[0] = (weft_document){document, roll(self, 4) ? (weft_bytes){data, strlen(data)} : (weft_bytes){0}};
    documents[1] = (weft_document){"always", {data, strlen(data)}};
    if (head && roll(self, 5) == 0)
        removal = 1 + roll(self, (unsigned) head);
    weft_append append = {.events = events,
                          .count = count,
                          .key = count && roll(self, 2) ? key : NULL,
                          .documents = documents,
                          .document_count = roll(self, 3),
                          .removals = &removal,
                          .removal_count = removal ? 1 : 0};
    if (append.count + append.document_count + append.removal_count)
        hub_append(self, &append);
}

/* ---- what it says ---- */

typedef struct asked {
    int times, part;
    weft_buf text;
} asked;

static void on_page(void *ctx, int r, const weft_page *page) {
    asked *self = ctx;
    self->times++;
    if (CHECK_INT(r, 0))
        CHECK_INT(weft__copy_write_page(&self->text, NULL, (weft_copy_part) self->part, page), 0);
}

static weft_doc *hub_page(hub *self, int part, uint64_t after) {
    asked ask = {.part = part};
    weft_doc *doc = NULL;
    weft_query query = weft__copy_query((weft_copy_part) part, after);
    query.max_events = 1 + roll(self, 7);
    CHECK_INT(weft__store_read(self->world.store, &query, on_page, &ask), 0);
    world_wait(&self->world, &ask.times, 1);
    CHECK_INT(weft_doc_parse(weft__buf_head(&ask.text), weft__buf_len(&ask.text), NULL, &doc), 0);
    weft__buf_done(&ask.text, NULL);
    return doc;
}

/* -ERANGE: it is copied by pages again. */
static int take_changes(hub *self, weft_replica *copy, size_t bytes) {
    weft_buf text = {0};
    uint64_t last;
    weft_doc *doc = NULL;
    int r = weft__change_log_read(self->log, weft__replica_state(copy)->change, bytes, &text, &last);
    if (r == 0) {
        CHECK_INT(weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), NULL, &doc), 0);
        CHECK_INT(weft__replica_begin(copy), 0);
        r = weft__replica_take_changes(copy, weft_doc_root(doc));
        if (!CHECK_INT(r, 0))
            printf("  %s\n", weft__replica_why(copy));
        CHECK_INT(weft__replica_state(copy)->change, last);
        CHECK_INT(weft__replica_commit(copy), 0);
    }
    weft_doc_free(doc);
    weft__buf_done(&text, NULL);
    return r;
}

/* By pages, while the hub goes on. */
static void take_pages(hub *self, weft_replica *copy) {
    weft_replica_state *state = weft__replica_state(copy);
    CHECK_INT(weft__replica_begin(copy), 0);
    snprintf(state->epoch, sizeof state->epoch, "%s", weft__store_epoch(self->world.store));
    snprintf(state->log, sizeof state->log, "%s", weft__change_log_name(self->log));
    state->change = weft__change_log_last(self->log);
    for (int part = 0; part < WEFT_COPY_PARTS; part++) {
        uint64_t at = part == WEFT_COPY_EVENTS ? state->head : 0;
        bool more = true;
        while (more) {
            weft_doc *doc = hub_page(self, part, at);
            int r = weft__replica_take_page(copy, part, at, weft_doc_root(doc), &at, &more);
            if (!CHECK_INT(r, 0))
                printf("  %s\n", weft__replica_why(copy));
            more &= r == 0;
            weft_doc_free(doc);
            if (!self->still && roll(self, 2))
                hub_live(self);
        }
    }
    CHECK_INT(weft__replica_commit(copy), 0);
}

/* ---- are they the same? ---- */

static void dump(const char *path, const char *sql, weft_buf *out) {
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    CHECK_INT(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const char *text = (const char *) sqlite3_column_text(row, i);
            weft__buf_put_text(out, NULL, text ? text : "(null)");
            weft__buf_put_text(out, NULL, i + 1 < sqlite3_column_count(row) ? "|" : "\n");
        }
    sqlite3_finalize(row);
    sqlite3_close(db);
}

static void check_same(const char *name, const char *a, const char *b, const char *sql) {
    weft_buf x = {0}, y = {0};
    dump(a, sql, &x);
    dump(b, sql, &y);
    weft__buf_put(&x, NULL, "", 1);
    weft__buf_put(&y, NULL, "", 1);
    if (!CHECK(strcmp(weft__buf_head(&x), weft__buf_head(&y)) == 0))
        printf("  %s\n  there:\n%s\n  here:\n%s\n", name, weft__buf_head(&x), weft__buf_head(&y));
    weft__buf_done(&x, NULL);
    weft__buf_done(&y, NULL);
}

static void check_equal(const char *a, const char *b) {
    check_same("events", a, b,
               "SELECT gseq, (SELECT name FROM stream WHERE id = event.stream), seq, time, type, key, CAST(data AS TEXT)"
               " FROM event ORDER BY gseq");
    check_same("documents", a, b, "SELECT key, CAST(data AS TEXT) FROM document ORDER BY key");
    check_same(
        "streams", a, b,
        "SELECT name, max(trimmed, 0) FROM stream WHERE trimmed > 0 OR id IN (SELECT stream FROM event) ORDER BY name");
}

/* Opened as a hub would: everything is checked, and it goes on with a new epoch. */
static void check_journal(const char *path, const hub *from) {
    store_world opened = {.kind = &weft__sqlite, .opts = {.path = path, .check = WEFT_CHECK_ALWAYS}};
    store_outcome outcome;
    if (!CHECK(world_open(&opened))) {
        printf("  %s\n", opened.why);
        return;
    }
    CHECK(strcmp(weft__store_epoch(opened.store), weft__store_epoch(from->world.store)) != 0);
    CHECK_INT(weft__store_head(opened.store), weft__store_head(from->world.store));
    CHECK_INT(world_append(&opened, "hub", "{}"), 0);
    (void) outcome;
    opened.store = weft__store_close(opened.store);
}

static void copy_path(const hub *self, char ret[128]) {
    snprintf(ret, 128, "%s/copy.db", self->world.folder);
}

static void follow(unsigned seed, size_t max_log, int turns) {
    hub from;
    weft_replica *copy = NULL;
    char path[128], why[WEFT_STORE_WHY];
    hub_init(&from, seed, max_log);
    copy_path(&from, path);
    for (int i = 0; i < 40; i++)
        hub_live(&from);
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), 0);
    take_pages(&from, copy);
    for (int turn = 0; turn < turns; turn++) {
        for (unsigned n = roll(&from, 30); n; n--)
            hub_live(&from);
        if (roll(&from, 3) == 0) { /* a start of the standby */
            weft__replica_close(copy);
            CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), 0);
        }
        while (weft__replica_state(copy)->change < weft__change_log_last(from.log))
            if (take_changes(&from, copy, roll(&from, 2) ? 1 : 4000) == -ERANGE)
                take_pages(&from, copy);
        check_equal(from.world.path, path);
    }
    weft__replica_close(copy);
    check_journal(path, &from);
    hub_done(&from);
}

TEST(it_follows) {
    for (unsigned seed = 1; seed <= 6; seed++)
        follow(seed, 0, 12);
}

TEST(it_is_behind_again_and_again) {
    for (unsigned seed = 11; seed <= 16; seed++)
        follow(seed, 300, 12);
}

/* ---- a hub that means no good ---- */

static int take_text(weft_replica *copy, const char *text) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(text, strlen(text), NULL, &doc);
    if (r >= 0)
        r = weft__replica_begin(copy);
    if (r >= 0)
        r = weft__replica_take_changes(copy, weft_doc_root(doc));
    weft__replica_rollback(copy);
    weft_doc_free(doc);
    return r;
}

static int page_text(weft_replica *copy, int part, uint64_t after, const char *text) {
    weft_doc *doc = NULL;
    uint64_t last;
    bool more;
    int r = weft_doc_parse(text, strlen(text), NULL, &doc);
    if (r >= 0)
        r = weft__replica_begin(copy);
    if (r >= 0)
        r = weft__replica_take_page(copy, part, after, weft_doc_root(doc), &last, &more);
    weft__replica_rollback(copy);
    weft_doc_free(doc);
    return r;
}

#define EVENT(gseq, seq, rest) "{\"gseq\":" #gseq ",\"seq\":" #seq ",\"stream\":\"s\",\"type\":\"t\",\"time\":1" rest "}"
#define CHANGE(n, events) "[{\"number\":" #n ",\"events\":[" events "]}]"

TEST(what_does_not_follow_is_refused) {
    hub from;
    weft_replica *copy = NULL;
    char path[128], why[WEFT_STORE_WHY], long_name[400], text[600];
    hub_init(&from, 1, 0);
    copy_path(&from, path);
    weft_event two[] = {world_event("s", "{}"), world_event("s", "{}")};
    hub_append(&from, &(weft_append){.events = two, .count = 2});
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), 0);
    from.still = true;
    take_pages(&from, copy);
    CHECK_INT(weft__replica_state(copy)->head, 2);
    check_same("places", from.world.path, path, "SELECT id, key FROM document ORDER BY id");
    static const char *const refused[] = {
        "{}",
        "[1]",
        "[{}]",
        "[{\"number\":2}]",
        CHANGE(1, EVENT(3, 3, ",\"data\":\"\"")),                          /* a change twice */
        CHANGE(3, EVENT(3, 3, ",\"data\":\"\"")),                          /* one is missing */
        CHANGE(-2, EVENT(3, 3, ",\"data\":\"\"")),                         /* no number */
        CHANGE(2, EVENT(4, 3, ",\"data\":\"\"")),                          /* a hole */
        CHANGE(2, EVENT(3, 4, ",\"data\":\"\"")),                          /* in its stream */
        CHANGE(2, EVENT(3, 2, ",\"data\":\"\"")),                          /* a place twice */
        CHANGE(2, EVENT(3, 0, ",\"data\":\"\"")),                          /* no place */
        CHANGE(2, EVENT(3, -1, ",\"data\":\"\"")),                         /* no place */
        CHANGE(2, EVENT(3, 3, "")),                                        /* no data */
        CHANGE(2, EVENT(3, 3, ",\"data\":{}")),                            /* no text */
        CHANGE(2, EVENT(3, 3, ",\"data\":\"\",\"key\":\"\"")),             /* no key */
        CHANGE(2, EVENT(3, 3, ",\"data\":\"\",\"stream\":\"\"")),          /* no stream */
        CHANGE(2, EVENT(3, 3, ",\"data\":\"\",\"stream\":\"a\\u0000b\"")), /* no name */
        CHANGE(2, EVENT(9223372036854775807, 3, ",\"data\":\"\"")),        /* beyond all */
        CHANGE(2, EVENT(3, 9223372036854775807, ",\"data\":\"\"")),        /* beyond all */
        CHANGE(2, EVENT(3, 3, ",\"data\":\"\"") "," EVENT(3, 4, ",\"data\":\"\"") "," EVENT(5, 4, ",\"data\":\"\"")),
        "[{\"number\":2,\"trimmed\":{\"upto\":99}}]", /* what is not there */
        "[{\"number\":2,\"trimmed\":{\"upto\":0}}]",
        "[{\"number\":2,\"trimmed\":{\"upto\":1},\"removed\":[1]}]",
        "[{\"number\":2,\"trimmed\":{\"upto\":1,\"stream\":\"\"}}]",
        "[{\"number\":2,\"removed\":[-1]}]",
        "[{\"number\":2,\"removed\":[\"x\"]}]",
        "[{\"number\":2,\"documents\":[{\"key\":\"\",\"data\":\"{}\"}]}]",
        "[{\"number\":2,\"documents\":[{\"key\":\"k\",\"data\":7}]}]",
        "[{\"number\":2,\"documents\":[{\"data\":null}]}]",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (!CHECK_INT(take_text(copy, refused[i]), -EPROTO))
            printf("  %s\n", refused[i]);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    snprintf(text, sizeof text, "[{\"number\":2,\"documents\":[{\"key\":\"%s\",\"data\":\"{}\"}]}]", long_name);
    CHECK_INT(take_text(copy, text), -EPROTO);
    static const struct {
        int part;
        uint64_t after;
        const char *text;
    } pages[] = {
        {WEFT_COPY_EVENTS, 2, "{}"},
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[],\"last\":2,\"more\":true}"}, /* for ever */
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[],\"last\":1,\"more\":true}"},
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[" EVENT(2, 2, ",\"data\":\"\"") "],\"last\":2}"},
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[" EVENT(5, 5, ",\"data\":\"\"") "],\"last\":5,\"trimmed\":3}"},
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[" EVENT(3, 2, ",\"data\":\"\"") "],\"last\":3}"},
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[" EVENT(3, 3, ",\"data\":\"\"") "," EVENT(3, 4, ",\"data\":\"\"") "],\"last\":3}"},
        {WEFT_COPY_EVENTS, 2, "{\"rows\":[],\"last\":9223372036854775807,\"more\":true}"},
        {WEFT_COPY_STREAMS, 0, "{\"rows\":[{\"place\":1,\"stream\":\"\",\"trimmed\":1}],\"last\":1}"},
        {WEFT_COPY_STREAMS, 0, "{\"rows\":[{\"place\":0,\"stream\":\"s\",\"trimmed\":1}],\"last\":1}"},
        {WEFT_COPY_STREAMS, 0, "{\"rows\":[{\"place\":1,\"stream\":\"s\",\"trimmed\":-1}],\"last\":1}"},
        {WEFT_COPY_REMOVED, 0, "{\"rows\":[2,1],\"last\":2}"},
        {WEFT_COPY_REMOVED, 0, "{\"rows\":[-1],\"last\":2}"},
        {WEFT_COPY_DOCUMENTS, 0, "{\"rows\":[{\"place\":1,\"key\":\"k\"}],\"last\":1}"},
        {WEFT_COPY_DOCUMENTS, 5, "{\"rows\":[{\"place\":1,\"key\":\"k\",\"data\":\"\"}],\"last\":5}"},
    };
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (!CHECK_INT(page_text(copy, pages[i].part, pages[i].after, pages[i].text), -EPROTO))
            printf("  %s\n", pages[i].text);
    /* None of it left anything behind. */
    check_equal(from.world.path, path);
    hub_append(&from, &(weft_append){.events = two, .count = 2});
    CHECK_INT(take_changes(&from, copy, 4000), 0);
    check_equal(from.world.path, path);
    weft__replica_close(copy);
    check_journal(path, &from);
    hub_done(&from);
}

/* ---- life ---- */

TEST(a_hubs_own_journal_is_no_copy) {
    hub from;
    weft_replica *copy = NULL;
    char why[WEFT_STORE_WHY];
    hub_init(&from, 1, 0);
    CHECK_INT(weft__replica_open(NULL, from.world.path, NULL, &copy, why), -EBUSY);
    hub_live(&from), hub_live(&from), hub_live(&from);
    weft__change_log_free(from.log);
    from.log = NULL;
    from.world.store = weft__store_close(from.world.store);
    CHECK_INT(weft__replica_open(NULL, from.world.path, NULL, &copy, why), -EEXIST);
    CHECK(strstr(why, "a hub's own") != NULL);
    CHECK_INT(weft__replica_discard(from.world.path, why), 0);
    CHECK_INT(weft__replica_open(NULL, from.world.path, NULL, &copy, why), 0);
    weft__replica_close(copy);
    world_done(&from.world);
}

TEST(it_is_installed_and_promoted) {
    hub from;
    weft_replica *copy = NULL;
    weft_replica_state state;
    char path[128], place[140], why[WEFT_STORE_WHY] = "";
    hub_init(&from, 5, 0);
    copy_path(&from, path);
    snprintf(place, sizeof place, "%s-new", path);
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 20; i++)
            hub_live(&from);
        CHECK_INT(weft__replica_open(NULL, place, NULL, &copy, why), 0);
        take_pages(&from, copy);
        while (weft__replica_state(copy)->change < weft__change_log_last(from.log))
            CHECK_INT(take_changes(&from, copy, 4000), 0);
        if (!CHECK_INT(weft__replica_install(copy, path, why), 0))
            printf("  %s\n", why);
        CHECK(access(place, F_OK) < 0);
        check_equal(from.world.path, path);
    }
    CHECK(!weft__replica_was_promoted(path, NULL));
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), 0);
    CHECK_INT(weft__replica_promote(copy), 0);
    weft__replica_close(copy);
    CHECK(weft__replica_was_promoted(path, &state));
    CHECK_STR(state.epoch, weft__store_epoch(from.world.store));
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), -EEXIST);
    check_journal(path, &from);
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), -EEXIST);
    hub_done(&from);
}

/* A hub that was started on a copy has made it its own. */
TEST(a_copy_that_was_served_is_no_copy_any_more) {
    hub from;
    weft_replica *copy = NULL;
    char path[128], why[WEFT_STORE_WHY];
    hub_init(&from, 7, 0);
    copy_path(&from, path);
    for (int i = 0; i < 20; i++)
        hub_live(&from);
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), 0);
    take_pages(&from, copy);
    while (weft__replica_state(copy)->change < weft__change_log_last(from.log))
        CHECK_INT(take_changes(&from, copy, 4000), 0);
    weft__replica_close(copy);
    check_journal(path, &from);
    CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), -EEXIST);
    hub_done(&from);
}

/* ---- memory ---- */

/* A change that cannot be kept is a hole, and whoever is behind it copies by pages: 1 memory failed, and that was seen. */
static bool fail_log(long n) {
    hub from;
    test_memory memory;
    uint64_t last = 0;
    weft_buf text = {0};
    char path[128], why[WEFT_STORE_WHY];
    weft_replica *copy = NULL;
    hub_init(&from, 3, 0);
    weft__change_log_free(from.log);
    from.log = NULL;
    test_memory_init(&memory, n);
    weft_change_log_opts opts = {.alloc = &memory.alloc, .store = from.world.store};
    int r = weft__change_log_new(&opts, &from.log);
    if (r < 0)
        CHECK_INT(r, -ENOMEM);
    for (int i = 0; r == 0 && i < 3; i++)
        CHECK_INT(world_append(&from.world, "s", "{}"), 0);
    if (r == 0) {
        r = weft__change_log_read(from.log, 0, 1000, &text, &last);
        CHECK(r == 0 || r == -ERANGE || r == -ENOMEM);
        CHECK_INT(weft__change_log_last(from.log), 3);
    }
    weft__buf_done(&text, &memory.alloc);
    bool failed = memory.count >= n;
    memory.fail_at = 0;
    from.log = weft__change_log_free(from.log);
    CHECK_INT(memory.live, 0);
    /* And of the copy. */
    CHECK_INT(weft__change_log_new(&(weft_change_log_opts){.store = from.world.store}, &from.log), 0);
    from.still = true;
    copy_path(&from, path);
    test_memory_init(&memory, n);
    r = weft__replica_open(&memory.alloc, path, NULL, &copy, why);
    if (r < 0) {
        CHECK_INT(r, -ENOMEM);
        CHECK_INT(weft__replica_open(NULL, path, NULL, &copy, why), 0);
    }
    failed |= memory.count >= n;
    memory.fail_at = 0;
    take_pages(&from, copy);
    CHECK_INT(world_append(&from.world, "s", "{}"), 0);
    memory.fail_at = memory.count + n;
    weft_doc *doc = NULL;
    weft__change_log_read(from.log, 0, 1000, &text, &last);
    CHECK_INT(weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), NULL, &doc), 0);
    CHECK_INT(weft__replica_begin(copy), 0);
    r = weft__replica_take_changes(copy, weft_doc_root(doc));
    CHECK(r == 0 || r == -ENOMEM);
    weft__replica_rollback(copy);
    memory.fail_at = 0;
    CHECK_INT(take_changes(&from, copy, 1000), 0);
    check_equal(from.world.path, path);
    weft_doc_free(doc);
    weft__buf_done(&text, NULL);
    weft__replica_close(copy);
    hub_done(&from);
    return failed;
}

TEST(memory_fails) {
    long n = 1;
    while (n < 200 && fail_log(n))
        n++;
    CHECK(n > 5 && n < 200);
}

TEST_MAIN(CASE(memory_fails) CASE(it_follows) CASE(it_is_behind_again_and_again) CASE(what_does_not_follow_is_refused)
              CASE(a_hubs_own_journal_is_no_copy) CASE(it_is_installed_and_promoted)
                  CASE(a_copy_that_was_served_is_no_copy_any_more))
