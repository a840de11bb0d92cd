/* The whole hub over a power cut (F2): clients on the wire submit, follow, cancel; at the n-th write or sync, for every n,
 * the machine dies and everything that was not synced is gone, the mark's last writes too. The next start must know every
 * task that was acknowledged and every event that was told, in the same places and the same epoch. */
#include <fcntl.h>
#include <unistd.h>

#include "hub_world.h"
#include "store/shim.h"

#define LAST 2000 /* more operations than the scene has */
#define MAX_TOLD 256
#define MAX_TASKS 8

typedef struct power {
    hub_world w;
    char folder[64], path[96], mark[104];
    char synced_mark[256]; /* as it was when it was last synced */
    ssize_t synced_mark_len;
    char epoch[64];
    char tasks[MAX_TASKS][32]; /* acknowledged */
    int task_count;
    char told[MAX_TOLD][64];
    int told_count;
} power;

/* ---- clients ---- */

static weft_peer *connect_client(power *p) {
    weft_identity who = {
        .transport = "mem", .dialect = "weft", .name = "n", .scopes = "*", .address = "", .authenticated = true};
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(p->w.service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0);
    weft__hub_clients_open(p->w.hub.clients, peer);
    return peer;
}

static void leave(power *p, weft_peer *peer) {
    weft__hub_clients_close(p->w.hub.clients, peer);
    weft_peer_free(peer);
}

/* The next whole line a client was sent, parsed; NULL: none yet. Owned. */
static weft_doc *next_line(weft_peer *peer) {
    weft_doc *doc = NULL;
    weft_bytes out = weft_peer_output(peer);
    const char *end = out.len ? memchr(out.data, '\n', out.len) : NULL;
    if (!end)
        return NULL;
    size_t len = (size_t) (end - out.data);
    CHECK_INT(weft_doc_parse(out.data, len, NULL, &doc), 0);
    weft_peer_sent(peer, len + 1);
    return doc;
}

/* The answer to a call; what is told in between is left out. Owned. */
static weft_doc *ask(power *p, weft_peer *peer, const char *method, const char *params) {
    char line[1024];
    weft_doc *doc = NULL;
    int n = snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method, params);
    CHECK_INT(weft_peer_feed(peer, line, (size_t) n, 1), 0);
    for (int64_t until = hub_ms() + HUB_PATIENCE_MS; hub_ms() < until;) {
        while ((doc = next_line(peer))) {
            if (weft_get(weft_doc_root(doc), "id").text)
                return doc;
            weft_doc_free(doc);
        }
        hub_turn(&p->w, 10);
    }
    CHECK(doc != NULL); /* no answer came */
    return NULL;
}

static void describe(const weft_json *params, char ret[64]) {
    snprintf(ret, 64, "%lld %lld %.30s", (long long) weft_get_int(params, "gseq", 0),
             (long long) weft_get_int(params, "seq", 0), weft_get_str(params, "type", ""));
}

/* Events a subscriber was told of, so far. */
static void take_told(weft_peer *peer, char told[MAX_TOLD][64], int *count) {
    for (weft_doc *doc; (doc = next_line(peer)); weft_doc_free(doc)) {
        weft_json params = weft_get(weft_doc_root(doc), "params");
        if (strcmp(weft_get_str(weft_doc_root(doc), "method", ""), "event") == 0 && *count < MAX_TOLD)
            describe(&params, told[(*count)++]);
    }
}

/* ---- what happens ---- */

static void submit_on_wire(power *p, weft_peer *peer, const char *prompt) {
    char params[64];
    snprintf(params, sizeof params, "{\"prompt\":\"%s\"}", prompt);
    weft_doc *doc = ask(p, peer, "task.submit", params);
    REQUIRE(doc);
    weft_json result = weft_get(weft_doc_root(doc), "result"), error = weft_get(weft_doc_root(doc), "error");
    if (result.text)
        snprintf(p->tasks[p->task_count++], 32, "%s", weft_get_str(&result, "taskId", ""));
    else
        CHECK_INT(weft_get_int(&error, "code", 0), 507);
    weft_doc_free(doc);
}

static void work(power *p, weft_peer *client) {
    submit_on_wire(p, client, "one");
    submit_on_wire(p, client, "two");
    weft_run *run = p->task_count ? hub_run(&p->w, p->tasks[0]) : NULL;
    if (run) {
        run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){"some text\n", 10});
        hub_settle(&p->w);
        hub_end(run, &(weft_run_end){.ok = true});
    }
    submit_on_wire(p, client, "three");
    hub_settle(&p->w);
}

static bool power_init(power *p) {
    *p = (power){0};
    snprintf(p->folder, sizeof p->folder, "%s/weft-power-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!CHECK(mkdtemp(p->folder) != NULL))
        return false;
    snprintf(p->path, sizeof p->path, "%s/weft.db", p->folder);
    snprintf(p->mark, sizeof p->mark, "%s-mark", p->path);
    shim_reset();
    return CHECK_INT(hub_init(&p->w, &(hub_opts){.kind = &weft__sqlite, .path = p->path, .vfs = "shim"}), 0);
}

static void remember_mark(power *p) {
    int fd = open(p->mark, O_RDONLY | O_CLOEXEC);
    p->synced_mark_len = fd < 0 ? -1 : read(fd, p->synced_mark, sizeof p->synced_mark);
    CHECK(p->synced_mark_len > 0);
    close(fd);
}

static void lose_mark(const power *p) {
    int fd = open(p->mark, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(write(fd, p->synced_mark, (size_t) p->synced_mark_len) == p->synced_mark_len);
    close(fd);
}

/* ---- afterwards ---- */

static bool is_told(char all[MAX_TOLD][64], int count, const char *one) {
    for (int i = 0; i < count; i++)
        if (strcmp(all[i], one) == 0)
            return true;
    return false;
}

static void check_after(power *p) {
    static char now[MAX_TOLD][64];
    char params[160];
    int count = 0;
    weft_peer *client = connect_client(p);
    for (int i = 0; i < p->task_count; i++) {
        snprintf(params, sizeof params, "{\"taskId\":\"%s\"}", p->tasks[i]);
        weft_doc *doc = ask(p, client, "task.get", params);
        CHECK(doc && weft_get(weft_doc_root(doc), "result").text);
        weft_doc_free(doc);
    }
    snprintf(params, sizeof params, "{\"after\":0,\"epoch\":\"%s\"}", p->epoch);
    weft_doc *doc = ask(p, client, "event.subscribe", params);
    weft_json result = weft_get(weft_doc_root(doc), "result");
    CHECK(weft_get_bool(&result, "resumed", false));
    weft_doc_free(doc);
    hub_settle(&p->w);
    take_told(client, now, &count);
    for (int i = 0; i < p->told_count; i++)
        if (!CHECK(is_told(now, count, p->told[i])))
            printf("  was told of: %s\n", p->told[i]);
    leave(p, client);
}

static bool cut_at(long n, bool torn, bool old_mark) {
    static power p;
    if (!power_init(&p))
        return false;
    remember_mark(&p);
    weft_peer *client = connect_client(&p), *follower = connect_client(&p);
    weft_doc *doc = ask(&p, follower, "event.subscribe", "{\"after\":0}");
    weft_json result = weft_get(weft_doc_root(doc), "result");
    snprintf(p.epoch, sizeof p.epoch, "%s", weft_get_str(&result, "epoch", ""));
    weft_doc_free(doc);
    shim_set(n, 0, SQLITE_IOERR_WRITE);
    work(&p, client);
    take_told(follower, p.told, &p.told_count);
    bool reached = shim_operations() >= n;
    leave(&p, client);
    leave(&p, follower);
    hub_done(&p.w);
    shim_crash(torn);
    if (old_mark)
        lose_mark(&p);
    if (CHECK_INT(hub_init(&p.w, &(hub_opts){.kind = &weft__sqlite, .path = p.path}), 0))
        check_after(&p);
    hub_done(&p.w);
    test_remove(p.folder);
    return reached;
}

static void cut_everywhere(bool torn, bool old_mark) {
    long n = 1;
    while (n < LAST && cut_at(n, torn, old_mark))
        n++;
    CHECK(n > 10 && n < LAST);
}

TEST(what_was_said_on_the_wire_survives_a_power_cut) {
    cut_everywhere(false, false);
}

TEST(also_with_torn_writes_and_an_old_mark) {
    cut_everywhere(true, true);
}

TEST_MAIN(CASE(what_was_said_on_the_wire_survives_a_power_cut) CASE(also_with_torn_writes_and_an_old_mark))
