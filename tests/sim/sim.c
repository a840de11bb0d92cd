/* The program: test_sim                  the seeds of a test run, WEFT_SIM_SEEDS of them from WEFT_SIM_FROM on
 *              test_sim SEED [SEED...]   these, each with all its steps
 *
 * A seed that fails is repeated without the steps that do not matter, then shown. */
#include "sim.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define SEEDS 6000
#define ENOUGH 1000          /* seeds in which everything should have happened */
#define SEEDS_SANITIZED 1000 /* a sanitizer makes it about ten times as slow */
#define SHRINK_RUNS 400
#define SHRINK_SECONDS 20
#define SHOWN_FAILURES 3
#define SEED_SECONDS 120 /* of real time: a run takes milliseconds, so this one never ends */
#define TWICE 25         /* seeds that are run twice, to see that they repeat themselves */

/* Seeds that found something once, tried whatever others are. */
static const uint64_t found_once[] = {
    5,      /* a question that the configuration answered was withdrawn as well */
    14,     /* what was said again called for saying it again, without end */
    111,    /* a task ended with output missing, because storing failed once while the hub stopped */
    749,    /* a subscription that was answered with an error went on */
    762,    /* a position was refused for its epoch, because memory was short for reading it */
    15069,  /* retention waited for an append that had long been applied */
    526756, /* a task was cancelled between two attempts, of which the second was about to start */
    30716,  /* an event was not delivered, because memory was short for reading its session */
};

/* And those that found something in sessions. */
static const uint64_t found_in_sessions[] = {
    13,    /* deleting a session that was being opened waited for ever */
    3231,  /* a task of a new session was not known yet, and the next one ran beside it */
    2719,  /* a session was deleted before it was stored that its question is withdrawn */
    12252, /* what was set was passed over, because memory was short for reading it */
};

static struct {
    uint64_t seed, state, digest;
    sim_plan plan;
    unsigned step;
    bool loud, broken;
    char why[400];
    test_memory memory;
    unsigned long sights[SIM_SIGHT_COUNT]; /* over all runs */
} sim;

/* ---- the same in every process ---- */

/* The engine writes its process id into the journal: with the real one no run would be like another. */
pid_t getpid(void) {
    return 4242;
}

/* splitmix64: every number of it is a good one, whatever the seed. */
static uint64_t next_random(void) {
    uint64_t z = sim.state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint32_t sim_below(uint32_t n) {
    return n ? (uint32_t) (next_random() % n) : 0;
}

bool sim_chance(uint32_t percent) {
    return sim_below(100) < percent;
}

void sim_begin_step(unsigned step) {
    sim.step = step;
    sim.state = sim.seed * UINT64_C(0xD6E8FEB86659FD93) + step;
    (void) next_random();
    sim.state = next_random();
}

/* ---- words ---- */

void sim_say(const char *format, ...) {
    va_list args;
    if (!sim.loud)
        return;
    printf("%5u %9lld  ", sim.step, (long long) hub_now());
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void sim_broken(const char *format, ...) {
    va_list args;
    if (sim.broken)
        return;
    sim.broken = true;
    va_start(args, format);
    vsnprintf(sim.why, sizeof sim.why, format, args);
    va_end(args);
    sim_say("BROKEN  %s", sim.why);
}

bool sim_is_broken(void) {
    return sim.broken;
}

void sim_digest(const void *data, size_t len) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++)
        sim.digest = (sim.digest ^ bytes[i]) * UINT64_C(1099511628211);
}

void sim_saw(sim_sight sight) {
    sim.sights[sight]++;
}

const weft_alloc *sim_alloc(void) {
    return &sim.memory.alloc;
}

bool sim_memory_failed(void) {
    return sim.memory.fail_at && sim.memory.count >= sim.memory.fail_at;
}

void sim_fail_memory(uint32_t n) {
    if (sim_memory_failed())
        sim_saw(SAW_MEMORY_FAULT);
    sim.memory.fail_at = n ? sim.memory.count + n : 0;
}

const sim_plan *sim_now_plan(void) {
    return &sim.plan;
}

/* ---- one run ---- */

/* Each fault is often absent, so that the others get far. */
static unsigned sometimes(uint32_t percent) {
    return sim_chance(percent) ? sim_below(3) + 1 : 0;
}

/* Those were found before there were sessions and plans, and are another run with them. */
static bool was_found_once(void) {
    for (size_t i = 0; i < sizeof found_once / sizeof found_once[0]; i++)
        if (found_once[i] == sim.seed)
            return true;
    return false;
}

/* Statement by statement: compilers differ in the order of what is within one. */
static sim_plan make_plan(void) {
    sim_plan plan = {0};
    plan.steps = 200 + sim_below(sim_chance(10) ? 3000 : 700);
    plan.clients = 1 + sim_below(5);
    plan.store_faults = sometimes(30);
    plan.kills = sometimes(40);
    plan.stops = sometimes(25);
    plan.drops = sometimes(50);
    plan.trims = sometimes(30);
    plan.time_jumps = sometimes(20);
    plan.requeue = sim_chance(50);
    plan.slow_disk = sim_chance(30);
    plan.max_running = 1 + sim_below(3);
    plan.max_queue = sim_chance(20) ? 3 : 60;
    plan.out_soft = sim_chance(60) ? 600 : 1 << 20;
    plan.timeout_ms = sim_chance(50) ? 1500 : 0;
    plan.question_ms = sim_chance(40) ? 800 : 0;
    plan.keep_bytes = sim_chance(30) ? 16000 + sim_below(40000) : 0;
    plan.keep_output = sim_chance(30) ? 500 + sim_below(3000) : 0;
    plan.memory_faults = sometimes(20);
    plan.sessions = sim_chance(50) && !was_found_once();
    plan.idle_ms = sim_chance(30) ? -1 : 1 + (int64_t) sim_below(2000);
    plan.threads = sim_chance(50) && !was_found_once();
    plan.chunk = sim_chance(40) && !was_found_once() ? 60 + sim_below(400) : 0;
    plan.plans = was_found_once() ? 0 : sometimes(35);
    plan.gated = was_found_once() ? 0 : sometimes(35);
    plan.runners = was_found_once() ? 0 : sometimes(35);
    return plan;
}

static void run_seed(uint64_t seed, const bool *skip, bool loud) {
    sim.seed = seed;
    sim.broken = false;
    sim.digest = UINT64_C(14695981039346656037);
    sim.loud = loud;
    test_memory_init(&sim.memory, 0);
    alarm(SEED_SECONDS);
    sim_begin_step(0);
    sim.plan = make_plan();
    store_open_disk();
    driver_open();
    plans_open();
    gated_open();
    runners_open();
    hub_open();
    clients_open(sim.plan.clients);
    sim_play(&sim.plan, skip);
    hub_close();
    runners_close();
    clients_close();
    driver_close();
    store_close_disk();
    if (sim.memory.live)
        sim_broken("leak: %ld allocations are left", sim.memory.live);
    alarm(0);
}

/* ---- a failed one ---- */

static bool same_promise(const char *a, const char *b) {
    size_t n = strcspn(a, ":");
    return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

static void leave_out(bool *skip, unsigned from, unsigned count, unsigned steps, bool out) {
    for (unsigned i = from; i < from + count && i <= steps; i++)
        skip[i] = out;
}

/* Steps that can be left out with the same promise broken are. */
static void shrink(uint64_t seed, const char *why, bool *skip, unsigned steps) {
    int runs = 0;
    time_t until = time(NULL) + SHRINK_SECONDS;
    for (unsigned size = steps / 2; size; size /= 2)
        for (unsigned from = 1; from <= steps && runs < SHRINK_RUNS && time(NULL) < until; from += size) {
            bool before[size];
            unsigned count = from + size > steps + 1 ? steps + 1 - from : size;
            memcpy(before, skip + from, count);
            leave_out(skip, from, count, steps, true);
            run_seed(seed, skip, false);
            runs++;
            if (!sim.broken || !same_promise(sim.why, why))
                memcpy(skip + from, before, count);
        }
}

static void show_failure(uint64_t seed) {
    char why[sizeof sim.why];
    unsigned steps = sim.plan.steps, left = 0;
    bool *skip = calloc(steps + 2, sizeof *skip);
    if (!skip)
        abort();
    snprintf(why, sizeof why, "%s", sim.why);
    shrink(seed, why, skip, steps);
    for (unsigned i = 1; i <= steps; i++)
        left += !skip[i];
    printf("seed %" PRIu64 ", the %u steps of %u that matter:\n", seed, left, steps);
    run_seed(seed, skip, true);
    printf("FAIL seed %" PRIu64 "\n  %s\n  all steps: build/tests/test_sim %" PRIu64 "\n", seed, why, seed);
    free(skip);
}

/* A crash, an assertion or an endless run must say which seed it was. */
static void tell_seed(void) {
    char line[160];
    int n = snprintf(line, sizeof line, "FAIL seed %" PRIu64 "\n  it crashed at step %u: build/tests/test_sim %" PRIu64 "\n",
                     sim.seed, sim.step, sim.seed);
    if (write(STDOUT_FILENO, line, (size_t) n) < 0)
        _exit(1);
}

static void on_signal(int number) {
    tell_seed();
    signal(number, SIG_DFL);
    raise(number);
}

void __asan_on_error(void);
void __asan_on_error(void) {
    tell_seed();
}

/* ---- many ---- */

static bool is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
    return __has_feature(address_sanitizer);
#else
    return false;
#endif
}

static uint64_t number_from(const char *name, uint64_t fallback) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

static long passed, failed;

static void try_seed(uint64_t seed) {
    run_seed(seed, NULL, false);
    if (!sim.broken) {
        passed++;
        return;
    }
    if (failed++ < SHOWN_FAILURES)
        show_failure(seed);
    else
        printf("FAIL seed %" PRIu64 "\n  %s\n", seed, sim.why);
}

/* The same seed, the same run: otherwise a failure could not be repeated. */
static void try_twice(uint64_t seed) {
    run_seed(seed, NULL, false);
    uint64_t first = sim.digest;
    run_seed(seed, NULL, false);
    if (sim.digest != first)
        printf("FAIL seed %" PRIu64 "\n  its second run is another\n", seed);
    failed += sim.digest != first;
    passed += sim.digest == first;
}

static void check_sights(void) {
    static const char *const words[] = {
#define X(name, words) words,
        SIM_SIGHTS(X)
#undef X
    };
    for (size_t i = 0; i < SIM_SIGHT_COUNT; i++) {
        if (!sim.sights[i])
            printf("FAIL it never happened that %s\n", words[i]);
        failed += !sim.sights[i];
        passed += sim.sights[i] > 0;
    }
}

static void try_many(void) {
    uint64_t from = number_from("WEFT_SIM_FROM", 1);
    uint64_t count = number_from("WEFT_SIM_SEEDS", is_sanitized() ? SEEDS_SANITIZED : SEEDS);
    for (size_t i = 0; i < sizeof found_once / sizeof found_once[0]; i++)
        try_seed(found_once[i]);
    for (size_t i = 0; i < sizeof found_in_sessions / sizeof found_in_sessions[0]; i++)
        try_seed(found_in_sessions[i]);
    for (uint64_t seed = from; seed < from + TWICE; seed++)
        try_twice(seed);
    for (uint64_t seed = from; seed < from + count; seed++)
        try_seed(seed);
    if (count >= ENOUGH)
        check_sights();
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
    signal(SIGALRM, on_signal);
    for (int i = 1; i < argc; i++) {
        run_seed(strtoull(argv[i], NULL, 10), NULL, true);
        printf("digest %016" PRIx64 "%s%s\n", sim.digest, sim.broken ? ", broken: " : "", sim.broken ? sim.why : "");
        failed += sim.broken;
        passed += !sim.broken;
    }
    if (argc == 1)
        try_many();
    printf("%ld passed, %ld failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
