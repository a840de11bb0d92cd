/* Gated tasks in the simulation: somebody sends them and cancels some, and gates take a while and pass by chance. When an
 * iteration may be queued, when a gate may run, and how one may end is checked against what is on the disk. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "gated.h"
#include "loop.h"
#include "sim.h"

#define MOST_SENT 256
#define MOST_ITERATIONS 4
#define MOST_GATES 2

typedef struct sim_gated {
    char id[SIM_NAME];
    unsigned gates;
    int64_t most;
    unsigned ran[MOST_ITERATIONS + 1], passed[MOST_ITERATIONS + 1]; /* a bit for each gate */
    bool finished, resumed;
} sim_gated;

typedef struct sim_gate {
    bool used, cancelled;
    uint64_t id;
    weft_timer timer;
    weft_gate_done *done;
    void *ctx;
    bool passes;
} sim_gate;

#define GATES_AT_ONCE 4

static struct {
    weft_gated_tasks *tasks;
    weft_loop *loop;
    sim_gated sent[MOST_SENT];
    size_t count;
    sim_gate gates[GATES_AT_ONCE];
    uint64_t next_gate;
} box;

static const char *const names[MOST_GATES] = {"lint", "test"};

/* ---- gates ---- */

static int find_gate(void *ctx, const char *gate, const char *folder) {
    (void) ctx, (void) folder;
    return strcmp(gate, names[0]) == 0 || strcmp(gate, names[1]) == 0 ? 0 : -ESRCH;
}

static void end_gate(sim_gate *gate, int r) {
    gate->used = false;
    gate->done(
        gate->ctx,
        &(weft_gate_report){
            .r = r, .passed = r == 0 && gate->passes, .exit_code = gate->passes ? 0 : 1, .ms = 1, .output = {"found", 5}});
}

static void on_gate_due(weft_timer *timer) {
    sim_gate *gate = WEFT_CONTAINER(timer, sim_gate, timer);
    end_gate(gate, gate->cancelled ? -ECANCELED : 0);
}

static int run_gate(void *ctx, const char *name, const char *folder, weft_gate_done *done, void *done_ctx,
                    uint64_t *ret_id) {
    (void) ctx, (void) name, (void) folder;
    sim_gate *gate = box.gates;
    while (gate < box.gates + GATES_AT_ONCE && gate->used)
        gate++;
    if (gate == box.gates + GATES_AT_ONCE)
        return -EAGAIN;
    *gate = (sim_gate){.used = true, .id = ++box.next_gate, .done = done, .ctx = done_ctx, .passes = sim_chance(60)};
    weft__timer_init(&gate->timer, on_gate_due);
    weft__timer_set(box.loop, &gate->timer, weft__add_ms(weft_loop_now(box.loop), 1 + (int64_t) sim_below(300)));
    *ret_id = gate->id;
    return 0;
}

static void cancel_gate(void *ctx, uint64_t id) {
    (void) ctx;
    for (size_t i = 0; i < GATES_AT_ONCE; i++)
        if (box.gates[i].used && box.gates[i].id == id)
            box.gates[i].cancelled = true;
}

/* ---- sending them ---- */

static void ignore_gated(void *ctx, int r, const weft_gated *gated) {
    (void) ctx, (void) r, (void) gated;
}

static void send_one(void) {
    size_t wrong;
    unsigned gates = sim_below(MOST_GATES) + 1;
    weft_gated_spec spec = {
        .prompt = "mend", .gates = names, .gate_count = gates, .max_iterations = 1 + (int64_t) sim_below(MOST_ITERATIONS)};
    int r = weft__gated_send(box.tasks, &spec, ignore_gated, NULL, &wrong);
    sim_say("gated   is sent: %d", r);
    if (r == -EINVAL || r == -ESRCH || r == -ENOENT || r == -EMSGSIZE || r == -EOVERFLOW)
        sim_broken("gated: one that is right was refused: %d", r);
}

static void cancel_one(void) {
    for (const weft_gated *is = weft__gated_newest(box.tasks); is; is = weft__gated_older(box.tasks, is))
        if (is->state == WEFT_GATED_STATE_RUNNING && sim_chance(50)) {
            sim_say("gated   %s is cancelled", is->id);
            (void) weft__gated_cancel(box.tasks, is->id, "sim", ignore_gated, NULL);
            return;
        }
}

void gated_step(void) {
    if (!box.tasks)
        return;
    if (sim_chance(75))
        send_one();
    else
        cancel_one();
}

/* ---- the daemon ---- */

static void on_gated_ready(void *ctx, int r) {
    (void) ctx;
    sim_say("gated   read: %d", r);
}

void gated_start(weft_engine *engine) {
    if (!sim_now_plan()->gated)
        return;
    box.loop = weft__engine_loop(engine);
    weft_gated_opts opts = {.engine = engine, .gates = {.check = find_gate, .run = run_gate, .cancel = cancel_gate}};
    if (weft__gated_new(&opts, on_gated_ready, NULL, &box.tasks) < 0)
        abort();
    for (size_t i = 0; i < box.count; i++)
        box.sent[i].resumed |= !box.sent[i].finished;
}

/* As when a daemon dies: what ran is told to nobody. */
void gated_stop(void) {
    box.tasks = weft__gated_free(box.tasks);
    for (size_t i = 0; i < GATES_AT_ONCE; i++)
        if (box.gates[i].used) {
            weft__timer_stop(box.loop, &box.gates[i].timer);
            end_gate(&box.gates[i], -ECANCELED);
        }
}

void gated_open(void) {
    memset(&box, 0, sizeof box);
}

bool gated_at_rest(void) {
    if (!sim_now_plan()->gated)
        return true;
    for (const weft_gated *is = box.tasks ? weft__gated_newest(box.tasks) : NULL; is; is = weft__gated_older(box.tasks, is))
        if (is->state == WEFT_GATED_STATE_RUNNING)
            return false;
    return box.tasks != NULL;
}

/* ---- what is on the disk ---- */

static sim_gated *find_sent(const char *id) {
    for (size_t i = 0; i < box.count; i++)
        if (strcmp(box.sent[i].id, id) == 0)
            return &box.sent[i];
    return NULL;
}

static const truth_task *turn_of(const sim_gated *sent, int64_t iteration) {
    char key[64];
    snprintf(key, sizeof key, "gated/%s/%lld", sent->id, (long long) iteration);
    for (size_t i = 0; i < truth_tasks(); i++)
        if (strcmp(truth_task_at(i)->key, key) == 0)
            return truth_task_at(i);
    return NULL;
}

/* An iteration is queued when the gates have said no to the one before it, and never when it is over. */
static void check_queued(const weft_json *data) {
    char id[SIM_NAME];
    unsigned iteration;
    if (sscanf(weft_get_str(data, "key", ""), "gated/%31[^/]/%u", id, &iteration) != 2)
        return;
    const sim_gated *sent = find_sent(id);
    if (!sent || iteration < 1 || (int64_t) iteration > sent->most)
        sim_broken("gated: iteration %u of %s, which may not be", iteration, id);
    else if (sent->finished)
        sim_broken("gated: iteration %u of %s was queued after its end", iteration, id);
    else if (iteration > 1 && (sent->ran[iteration - 1] != (1u << sent->gates) - 1 ||
                               sent->passed[iteration - 1] == sent->ran[iteration - 1]))
        sim_broken("gated: iteration %u of %s was queued before the gates had said no", iteration, id);
}

static void check_gate(sim_gated *sent, const weft_json *data) {
    int64_t iteration = weft_get_int(data, "iteration", 0);
    unsigned bit = strcmp(weft_get_str(data, "gate", ""), names[0]) == 0 ? 1 : 2;
    const truth_task *turn = turn_of(sent, iteration);
    if (iteration < 1 || iteration > sent->most)
        sim_broken("gated: a gate of iteration %d of %s", (int) iteration, sent->id);
    else {
        if (turn && turn->state != TRUTH_COMPLETED)
            sim_broken("gated: a gate of %s ran before iteration %d had completed", sent->id, (int) iteration);
        if (sent->ran[iteration] & bit)
            sim_broken("gated: a gate of iteration %d of %s is there twice", (int) iteration, sent->id);
        sent->ran[iteration] |= bit;
        sent->passed[iteration] |= weft_get_bool(data, "passed", false) ? bit : 0;
    }
}

static void check_finished(sim_gated *sent, const weft_json *data) {
    bool good = strcmp(weft_get_str(data, "state", ""), "completed") == 0;
    int64_t last = weft_get_int(data, "iterations", 0);
    if (sent->finished)
        sim_broken("gated: %s ended twice", sent->id);
    sent->finished = true;
    for (int64_t i = 1; i <= sent->most; i++) {
        const truth_task *turn = turn_of(sent, i);
        if (turn && turn->state <= TRUTH_RUNNING)
            sim_broken("gated: %s ended before its iteration %d", sent->id, (int) i);
    }
    if (last < 0 || last > sent->most)
        sim_broken("gated: %s ended after %d iterations", sent->id, (int) last);
    else if (good && sent->passed[last] != (1u << sent->gates) - 1)
        sim_broken("gated: %s completed, and not all gates have passed", sent->id);
    sim_saw(!good ? SAW_GATED_ENDED : last > 1 ? SAW_GATED_AGAIN : SAW_GATED);
    if (good && sent->resumed)
        sim_saw(SAW_GATED_RESUMED);
}

static void note_created(const char *id, const weft_json *data) {
    weft_json gates = weft_get(data, "gates");
    if (find_sent(id))
        sim_broken("gated: the id %s is used twice", id);
    if (box.count == MOST_SENT)
        return;
    sim_gated *sent = &box.sent[box.count++];
    *sent = (sim_gated){.gates = (unsigned) weft_count(&gates), .most = weft_get_int(data, "maxIterations", 0)};
    snprintf(sent->id, sizeof sent->id, "%s", id);
}

void gated_truth(const char *type, const weft_json *data) {
    if (strcmp(type, "task.queued") == 0)
        check_queued(data);
    if (strncmp(type, "gated.", 6) != 0)
        return;
    const char *id = weft_get_str(data, "gatedId", "");
    sim_gated *sent = find_sent(id);
    if (strcmp(type, "gated.created") == 0)
        note_created(id, data);
    else if (!sent)
        sim_broken("gated: %s for %s, which is not on the disk", type, id);
    else if (strcmp(type, "gated.finished") == 0)
        check_finished(sent, data);
    else if (sent->finished && strcmp(type, "gated.removed") != 0)
        sim_broken("gated: %s for %s, which has ended", type, id);
    else if (strcmp(type, "gated.gate") == 0)
        check_gate(sent, data);
}

/* The disk is another. */
void gated_forget(void) {
    box.count = 0;
}
