/* Runners in the simulation: two machines that come, go, crash and lose their journal; what they say of a lease comes late,
 * twice, or when the lease is long over. What is on the disk is checked: each line of a lease once and in order, none of a
 * lease that is over, and nobody but the holder of the last lease finishes a task. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "runners.h"
#include "sim.h"

#define MACHINES 2
#define SLOTS 2
#define MOST_LEASES 64 /* of one machine, that it has not forgotten */
#define MOST_ENTRIES 16
#define MOST_LINES 10
#define MOST_BATCH 6

typedef enum entry_kind { SAYS, COMPLETES, FAILS, STOPS } entry_kind;

typedef struct entry {
    uint64_t seq;
    entry_kind kind;
    unsigned line;
} entry;

/* A lease, as the machine's journal has it. */
typedef struct held {
    uint64_t number, kept;
    char task[SIM_NAME];
    entry entries[MOST_ENTRIES];
    size_t count, sent;
    unsigned lines;
    bool ended, over;
} held;

typedef struct machine {
    const char *name;
    char instance[16];
    unsigned lives;
    weft_runner *runner;
    weft_peer *peer; /* NULL: it is away */
    held leases[MOST_LEASES];
    size_t count;
    uint64_t seq;
} machine;

/* A lease, as the disk has it. */
typedef struct lent {
    uint64_t number, at;
    char task[SIM_NAME], runner[SIM_NAME];
    unsigned stored;         /* lines that are on the disk */
    unsigned said;           /* that the machine has said */
    bool completed, resumed; /* so the machine said; the hub was started again meanwhile */
} lent;

static struct {
    weft_engine *engine;
    machine machines[MACHINES];
    lent *lent;
    size_t lent_count, lent_cap;
} box;

static const char *const agents[] = {"writer", NULL}, *const any[] = {"*", NULL};
static const char *const labels[MACHINES][3] = {{"all", "one", NULL}, {"all", NULL}};

/* ---- what was lent ---- */

static lent *find_lent(uint64_t number) {
    for (size_t i = box.lent_count; i-- > 0;)
        if (box.lent[i].number == number)
            return &box.lent[i];
    return NULL;
}

static lent *last_lent(const char *task) {
    for (size_t i = box.lent_count; i-- > 0;)
        if (strcmp(box.lent[i].task, task) == 0)
            return &box.lent[i];
    return NULL;
}

static void note_start(uint64_t gseq, const weft_json *data) {
    const char *at = strrchr(weft_get_str(data, "agent", ""), '@');
    if (!at)
        return;
    if (box.lent_count == box.lent_cap) {
        box.lent_cap = box.lent_cap ? 2 * box.lent_cap : 64;
        box.lent = realloc(box.lent, box.lent_cap * sizeof *box.lent);
        if (!box.lent)
            abort();
    }
    lent *made = &box.lent[box.lent_count++];
    *made = (lent){.number = gseq};
    snprintf(made->task, sizeof made->task, "%s", weft_get_str(data, "taskId", ""));
    snprintf(made->runner, sizeof made->runner, "%s", at + 1);
    size_t running = 0;
    for (size_t i = 0; i < box.lent_count; i++) {
        const truth_task *task = truth_find(box.lent[i].task);
        running += strcmp(box.lent[i].runner, made->runner) == 0 && last_lent(box.lent[i].task) == &box.lent[i] && task &&
                   task->state == TRUTH_RUNNING;
    }
    if (running >= SLOTS) /* this one is not running yet */
        sim_broken("too many lent: %s got more than %d", made->runner, SLOTS);
}

/* "912.0;912.1;" */
static void check_lines(const char *task, const char *text) {
    lent *of = last_lent(task);
    unsigned long long number;
    unsigned line;
    int n;
    if (!of)
        return;
    for (; *text; text += n) {
        if (sscanf(text, "%llu.%u;%n", &number, &line, &n) != 2) {
            sim_broken("lent output: %s has something that nobody said: %.40s", task, text);
            return;
        }
        if (number != of->number)
            sim_broken("fence: line %u of lease %llu was stored for %s, whose lease is %" PRIu64, line, number, task,
                       of->number);
        else if (line != of->stored)
            sim_broken("lent output: line %u of lease %llu was stored, and %u is next", line, number, of->stored);
        of->stored = line + 1;
    }
}

static void check_completed(const char *task) {
    const lent *of = last_lent(task);
    if (of && !of->completed)
        sim_broken("fence: %s is completed, and %s, which has its lease, did not say so", task, of->runner);
    else if (of && of->stored != of->said)
        sim_broken("lent output: %s is completed with %u lines of %u", task, of->stored, of->said);
    else if (of)
        sim_saw(of->resumed ? SAW_LENT_RESUMED : SAW_LENT);
}

static void check_late(const weft_json *data) {
    uint64_t number = (uint64_t) weft_get_int(data, "lease", 0);
    const char *id = weft_get_str(data, "taskId", "");
    const truth_task *task = truth_find(id);
    const lent *of = find_lent(number);
    if (!of || strcmp(of->task, id) != 0 || strcmp(of->runner, weft_get_str(data, "runner", "")) != 0)
        sim_broken("late: %s has something late of a lease that was not its own", id);
    else if (task && task->state == TRUTH_RUNNING && last_lent(id) == of)
        sim_broken("late: %s has something late of the lease that it has", id);
    sim_saw(SAW_LATE);
}

void runners_truth(uint64_t gseq, const char *type, const weft_json *data) {
    const char *task = weft_get_str(data, "taskId", "");
    if (strcmp(type, "task.started") == 0)
        note_start(gseq, data);
    else if (strcmp(type, "session.output") == 0)
        check_lines(task, weft_get_str(data, "text", ""));
    else if (strcmp(type, "task.completed") == 0)
        check_completed(task);
    else if (strcmp(type, "task.retrying") == 0 && strcmp(weft_get_str(data, "reason", ""), "leaseOver") == 0)
        sim_saw(SAW_LEASE_OVER);
    else if (strcmp(type, "runner.late") == 0)
        check_late(data);
    else if (strcmp(type, "runner.kept") == 0) {
        lent *of = last_lent(task);
        uint64_t at = (uint64_t) weft_get_int(data, "at", 0);
        if (!of || of->number != (uint64_t) weft_get_int(data, "lease", 0) || at <= of->at)
            sim_broken("kept: %s has %" PRIu64 " of a lease that it does not have, or again", task, at);
        else
            of->at = at;
    }
}

/* ---- a machine ---- */

static held *find_held(machine *m, uint64_t number) {
    for (size_t i = 0; i < m->count; i++)
        if (m->leases[i].number == number)
            return &m->leases[i];
    return NULL;
}

static void forget_held(machine *m, held *lease) {
    *lease = m->leases[--m->count];
}

static void add_entry(machine *m, held *lease, entry_kind kind) {
    lent *of = find_lent(lease->number);
    if (lease->count == MOST_ENTRIES || lease->ended)
        return;
    lease->entries[lease->count++] = (entry){.seq = ++m->seq, .kind = kind, .line = lease->lines};
    lease->lines += kind == SAYS;
    lease->ended = kind != SAYS;
    if (of) {
        of->said = lease->lines;
        of->completed |= kind == COMPLETES;
    }
}

/* Something of its work: a line, or its end. */
static void work(machine *m, held *lease) {
    entry_kind kind = lease->lines >= MOST_LINES || sim_chance(15) ? (sim_chance(75) ? COMPLETES : FAILS) : SAYS;
    add_entry(m, lease, kind);
}

static void answer_hub(machine *m, const weft_json *message, weft_val result, const char *error) {
    weft_json id = weft_get(message, "id");
    char *text;
    size_t len;
    if (!id.text)
        return;
    weft_val value = WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"id", weft_copy(&id)}, {"result", error ? weft_none() : result},
                              {"error", error ? WEFT_OBJ({"code", weft_int(503)}, {"message", weft_str("no")},
                                                         {"data", WEFT_OBJ({"reason", weft_str(error)})})
                                              : weft_none()});
    if (weft_to_text(value, NULL, &text, &len) < 0)
        abort();
    (void) weft_peer_feed(m->peer, text, len, hub_now());
    (void) weft_peer_feed(m->peer, "\n", 1, hub_now());
    weft_text_free(text, NULL);
}

static void take_start(machine *m, const weft_json *message, const weft_json *params) {
    uint64_t number = (uint64_t) weft_get_int(params, "lease", 0);
    const char *task = weft_get_str(params, "taskId", "");
    held *lease = find_held(m, number);
    if (!lease && (m->count == MOST_LEASES || sim_chance(5))) {
        answer_hub(m, message, weft_none(), sim_chance(50) ? "runnerBusy" : "refused");
        return;
    }
    if (!lease) {
        lease = &m->leases[m->count++];
        *lease = (held){.number = number};
        snprintf(lease->task, sizeof lease->task, "%s", task);
        sim_say("runner  %s has %s, lease %" PRIu64, m->name, task, number);
    }
    answer_hub(m, message, WEFT_OBJ({"taskId", weft_str("task-0000")}, {"sessionId", weft_str("session-0000")}), NULL);
}

static void take_message(machine *m, const weft_json *message) {
    const char *method = weft_get_str(message, "method", "");
    weft_json params = weft_get(message, "params");
    held *lease = find_held(m, (uint64_t) weft_get_int(&params, "lease", 0));
    uint64_t at = (uint64_t) weft_get_int(&params, "at", 0);
    if (strcmp(method, "runner.start") == 0) {
        take_start(m, message, &params);
        return;
    }
    if (lease && strcmp(method, "runner.cancel") == 0 && sim_chance(70))
        add_entry(m, lease, STOPS);
    else if (lease && strcmp(method, "runner.kept") == 0)
        lease->kept = at > lease->kept ? at : lease->kept;
    else if (lease && strcmp(method, "runner.released") == 0 && weft_get_bool(&params, "late", false))
        lease->over = true;
    else if (lease && strcmp(method, "runner.released") == 0)
        forget_held(m, lease);
    answer_hub(m, message, weft_null(), NULL);
}

/* True: there was something. */
static bool read_hub(machine *m) {
    weft_bytes out = m->peer ? weft_peer_output(m->peer) : (weft_bytes){0};
    char *text = out.len ? malloc(out.len) : NULL;
    if (!text)
        return false;
    memcpy(text, out.data, out.len);
    size_t len = out.len;
    weft_peer_sent(m->peer, len);
    for (char *at = text, *end; at < text + len && (end = memchr(at, '\n', (size_t) (text + len - at))); at = end + 1) {
        weft_doc *doc;
        if (weft_doc_parse(at, (size_t) (end - at), NULL, &doc) < 0)
            abort();
        take_message(m, weft_doc_root(doc));
        weft_doc_free(doc);
    }
    free(text);
    return true;
}

/* ---- coming and going ---- */

static void write_known(const machine *m, char *ret, size_t size) {
    size_t used = (size_t) snprintf(ret, size, "[");
    for (size_t i = 0; i < m->count; i++)
        used += (size_t) snprintf(ret + used, size - used, "%s{\"lease\":%" PRIu64 ",\"taskId\":\"%s\",\"questions\":[]}",
                                  i ? "," : "", m->leases[i].number, m->leases[i].task);
    snprintf(ret + used, size - used, "]");
}

/* As the answer to its hello says. */
static void take_states(machine *m) {
    for (size_t i = m->count; i-- > 0;) {
        held *lease = &m->leases[i];
        uint64_t at = 0;
        weft_lease_state state = weft__runner_lease(m->runner, lease->number, lease->task, &at);
        lease->over |= state == WEFT_LEASE_OVER;
        lease->kept = state == WEFT_LEASE_HELD && at ? at : lease->kept;
        lease->sent = 0;
        while (lease->sent < lease->count && lease->entries[lease->sent].seq <= lease->kept)
            lease->sent++;
        if (state == WEFT_LEASE_DONE || state == WEFT_LEASE_GONE)
            forget_held(m, lease);
    }
}

static bool come(machine *m) {
    size_t which = (size_t) (m - box.machines);
    weft_runner_spec spec = {
        .name = m->name, .instance = m->instance, .agents = agents, .labels = labels[which], .folders = any, .slots = SLOTS};
    char known[128 * MOST_LEASES];
    weft_doc *doc;
    if (m->peer || weft__runner_join(box.engine, &spec, &m->runner) < 0)
        return false;
    if (weft_peer_new(NULL, &(weft_peer_opts){.framing = &weft_ndjson}, &m->peer) < 0)
        abort();
    take_states(m);
    write_known(m, known, sizeof known);
    if (weft_doc_parse(known, strlen(known), NULL, &doc) < 0)
        abort();
    sim_say("runner  %s comes with %zu leases", m->name, m->count);
    weft__runner_up(m->runner, m->peer, weft_doc_root(doc));
    weft_doc_free(doc);
    return true;
}

static void go(machine *m) {
    if (!m->peer)
        return;
    sim_say("runner  %s goes", m->name);
    weft__runner_left(m->runner, m->peer);
    m->peer = weft_peer_free(m->peer);
    m->runner = NULL;
}

/* Its process ends; sometimes its disk goes with it. */
static void crash(machine *m) {
    go(m);
    if (sim_chance(20)) {
        sim_say("runner  %s has lost its journal", m->name);
        m->count = 0;
        snprintf(m->instance, sizeof m->instance, "life-%u", ++m->lives);
    }
    for (size_t i = 0; i < m->count; i++)
        add_entry(m, &m->leases[i], FAILS);
}

/* ---- telling ---- */

static size_t write_batch(const held *lease, size_t from, size_t n, char *ret, size_t size) {
    size_t used = (size_t) snprintf(ret, size, "[");
    for (size_t i = from; i < from + n; i++) {
        const entry *e = &lease->entries[i];
        used += (size_t) snprintf(ret + used, size - used, "%s{\"seq\":%" PRIu64 ",", i > from ? "," : "", e->seq);
        if (e->kind == SAYS)
            used += (size_t) snprintf(ret + used, size - used,
                                      "\"type\":\"session.output\",\"data\":{\"stream\":\"stdout\",\"text\":\"%" PRIu64
                                      ".%u;\"}}",
                                      lease->number, e->line);
        else
            used += (size_t) snprintf(ret + used, size - used, "\"type\":\"task.%s\",\"data\":{\"reason\":\"%s\"}}",
                                      e->kind == COMPLETES ? "completed"
                                      : e->kind == FAILS   ? "failed"
                                                           : "cancelled",
                                      e->kind == FAILS ? "daemonRestarted" : "cancelled");
    }
    return used + (size_t) snprintf(ret + used, size - used, "]");
}

static void nobody_waits(void *ctx, int r) {
    (void) ctx, (void) r;
}

/* The next of it; again: some of what was told before, too. True: it got further. */
static bool tell(machine *m, held *lease, bool again) {
    char text[MOST_ENTRIES * 160];
    size_t from = again && lease->sent ? sim_below((uint32_t) lease->sent) : lease->sent, n = lease->count - from;
    weft_doc *doc;
    int r;
    n = n > MOST_BATCH ? MOST_BATCH : n;
    if (!m->peer || !n)
        return false;
    if (weft_doc_parse(text, write_batch(lease, from, n, text, sizeof text), NULL, &doc) < 0)
        abort();
    weft_lease_state state =
        weft__runner_hear(m->runner, lease->number, lease->task, weft_doc_root(doc), nobody_waits, NULL, &r);
    weft_doc_free(doc);
    sim_say("runner  %s tells %zu of lease %" PRIu64 ": %s, %d", m->name, n, lease->number, weft__lease_states[state], r);
    if (r < 0)
        return false;
    bool further = from + n > lease->sent;
    lease->sent = further ? from + n : lease->sent;
    lease->over |= state == WEFT_LEASE_OVER;
    if (state == WEFT_LEASE_DONE || state == WEFT_LEASE_GONE ||
        (state == WEFT_LEASE_OVER && lease->ended && lease->sent == lease->count))
        forget_held(m, lease);
    return further;
}

/* ---- steps ---- */

static void ignore_task(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

static void submit(void) {
    const char *where[] = {"box", "rig", NULL};
    const char *runner = where[sim_below(3)];
    weft_task_spec spec = {.prompt = "lend", .agent = "writer", .runner = runner, .retries = (int64_t) sim_below(4)};
    spec.label = runner ? NULL : sim_chance(80) ? "all" : "one";
    int r = weft__task_submit(box.engine, &spec, ignore_task, NULL);
    sim_say("runner  a task for %s: %d", runner ? runner : spec.label, r);
}

void runners_step(void) {
    machine *m = &box.machines[sim_below(MACHINES)];
    held *lease = m->count ? &m->leases[sim_below((uint32_t) m->count)] : NULL;
    uint32_t what = sim_below(100);
    if (!box.engine)
        return;
    if (what < 12)
        submit();
    else if (!m->peer && what < 20)
        come(m);
    else if (what < 15)
        go(m);
    else if (what < 17)
        crash(m);
    else if (what < 50)
        read_hub(m);
    else if (lease && what < 70 && !lease->over)
        work(m, lease);
    else if (lease)
        tell(m, lease, sim_chance(20));
}

/* In the fair end: everybody is there, ends what it has and tells it. True: something was done. */
bool runners_mend(void) {
    bool done = false;
    if (!sim_now_plan()->runners || !box.engine)
        return false;
    for (machine *m = box.machines; m < box.machines + MACHINES; m++) {
        done |= come(m);
        done |= read_hub(m);
        for (size_t i = m->count; i-- > 0;) {
            held *lease = &m->leases[i];
            if (!lease->ended) {
                add_entry(m, lease, lease->over ? STOPS : COMPLETES);
                done |= lease->ended;
            }
            done |= tell(m, lease, false);
        }
    }
    return done;
}

/* ---- the daemon ---- */

void runners_open(void) {
    static const char *const names[MACHINES] = {"box", "rig"};
    memset(&box, 0, sizeof box);
    for (size_t i = 0; i < MACHINES; i++) {
        box.machines[i].name = names[i];
        snprintf(box.machines[i].instance, sizeof box.machines[i].instance, "life-0");
    }
}

void runners_start(weft_engine *engine) {
    box.engine = sim_now_plan()->runners ? engine : NULL;
    for (size_t i = 0; i < box.lent_count; i++)
        box.lent[i].resumed = true;
}

void runners_stop(void) {
    for (size_t i = 0; box.engine && i < MACHINES; i++)
        go(&box.machines[i]);
    box.engine = NULL;
}

/* Another journal than the leases are of: a machine forgets those. */
void runners_forget(void) {
    box.lent_count = 0;
    for (size_t i = 0; i < MACHINES; i++)
        box.machines[i].count = 0;
}

void runners_close(void) {
    runners_stop();
    free(box.lent);
    box.lent = NULL;
    box.lent_count = box.lent_cap = 0;
}
