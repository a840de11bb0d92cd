/* F1: a program with 64 writers is killed at random points, again and again, on one journal. After each kill every event
 * that it had said was acknowledged is there once, under the seq it had said, no seq is used twice, and the journal is
 * whole.
 *
 *     test_store_kill [KILLS]     or WEFT_STORE_KILLS; 20 when neither is given */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "store/world.h"

#define KILLS 20
#define STREAMS 100
#define CONTENT 24        /* characters of data that identify an event */
#define READ_AT_LEAST 200 /* lines before it is killed, and up to */
#define READ_AT_MOST 6000 /* so many */

/* What was acknowledged: by stream and seq, the content; "" where nothing is known. */
typedef struct known {
    char (*content)[CONTENT + 1];
    size_t cap;
    uint64_t head;  /* the highest acknowledged */
    uint64_t floor; /* the highest found in the journal: written, heard of or not, and not to be given again */
} known;

static known streams[STREAMS];
static char epoch[WEFT_EPOCH + 1];
static long acknowledged;

static known *stream_of(const char *name) {
    unsigned n = name[0] == 'w' ? (unsigned) atoi(name + 1) : STREAMS;
    return n < STREAMS ? &streams[n] : NULL;
}

static void note(const char *line) {
    char name[32], content[CONTENT + 1];
    unsigned long long seq;
    if (strncmp(line, "epoch ", 6) == 0 && strlen(line) > WEFT_EPOCH + 6) {
        CHECK(!*epoch || strncmp(epoch, line + 6, WEFT_EPOCH) == 0);
        memcpy(epoch, line + 6, WEFT_EPOCH);
        return;
    }
    known *stream = sscanf(line, "%31s %llu %24s", name, &seq, content) == 3 ? stream_of(name) : NULL;
    REQUIRE(stream && seq > 0);
    if (seq >= stream->cap) {
        size_t cap = (size_t) seq * 2;
        stream->content = realloc(stream->content, cap * sizeof *stream->content);
        memset(stream->content + stream->cap, 0, (cap - stream->cap) * sizeof *stream->content);
        stream->cap = cap;
    }
    /* Acknowledged once, and never again. */
    CHECK(!stream->content[seq][0] && seq > stream->floor);
    memcpy(stream->content[seq], content, sizeof content);
    stream->head = seq > stream->head ? seq : stream->head;
    acknowledged++;
}

/* All whole lines there are until the end; kill it after so many. A torn last line was acknowledged too, but nobody heard.
 */
static void listen_and_kill(FILE *from, pid_t pid, int after) {
    char line[256];
    for (int n = 0; fgets(line, sizeof line, from); n++) {
        if (strchr(line, '\n'))
            note(line);
        if (n == after)
            kill(pid, SIGKILL);
    }
}

static void run_and_kill(const char *path, unsigned seed) {
    extern char **environ;
    char program[4096], number[16];
    int ends[2], status = 0;
    pid_t pid;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    REQUIRE(n > 0);
    program[n] = '\0';
    memcpy(strrchr(program, '/'), "/store_writer", sizeof "/store_writer");
    snprintf(number, sizeof number, "%u", seed);
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    char *argv[] = {program, (char *) (uintptr_t) path, number, NULL};
    int r = posix_spawn(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    REQUIRE(r == 0);
    FILE *from = fdopen(ends[0], "r");
    listen_and_kill(from, pid, READ_AT_LEAST + rand() % (READ_AT_MOST - READ_AT_LEAST));
    fclose(from);
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

typedef struct audit {
    known *stream;
    int times, r;
    uint64_t last, head;
    bool more;
} audit;

static void audit_page(void *ctx, int r, const weft_page *page) {
    audit *a = ctx;
    a->times++;
    a->r = r;
    a->more = page && page->more;
    for (size_t i = 0; page && i < page->count; i++) {
        const weft_event *event = &page->events[i];
        const char *was = event->seq < a->stream->cap ? a->stream->content[event->seq] : "";
        if (*was)
            CHECK(strncmp(was, event->data.data, CONTENT) == 0);
    }
    if (page) {
        a->last = page->last;
        a->head = page->head;
    }
}

/* Pages are without holes, which the store's own suite shows; so the head and the content of each are enough. */
static void audit_journal(const char *path) {
    store_world world = {.kind = &weft__sqlite, .opts = {.path = path}};
    if (!CHECK(world_open(&world))) {
        printf("  %s\n", world.why);
        return;
    }
    CHECK_STR(world.why, "");
    CHECK_STR(weft__store_epoch(world.store), epoch);
    for (int i = 0; i < STREAMS; i++) {
        char name[16];
        audit a = {.stream = &streams[i], .more = true};
        snprintf(name, sizeof name, "w%d", i);
        while (a.more && a.r == 0) {
            weft_query query = {.stream = name, .after = a.last, .oldest = true, .max_events = 1000, .max_bytes = 1 << 22};
            int before = a.times;
            CHECK_INT(weft__store_read(world.store, &query, audit_page, &a), 0);
            world_wait(&world, &a.times, before + 1);
        }
        CHECK_INT(a.r, 0);
        CHECK(a.head >= streams[i].head);
        streams[i].floor = a.head;
    }
    weft__store_close(world.store);
}

static long kills_wanted = KILLS;

TEST(nothing_acknowledged_is_lost) {
    store_world world;
    world_init(&world, &weft__sqlite);
    srand((unsigned) time(NULL));
    unsigned seed = (unsigned) rand();
    printf("seed %u\n", seed);
    srand(seed);
    for (long i = 0; i < kills_wanted; i++) {
        run_and_kill(world.path, (unsigned) rand());
        /* Not after each: the next run must recover from a kill by itself too. */
        if (i % 2 == 1 || i == kills_wanted - 1)
            audit_journal(world.path);
    }
    CHECK(acknowledged >= kills_wanted * READ_AT_LEAST / 2);
    printf("%ld kills, %ld events acknowledged\n", kills_wanted, acknowledged);
    for (int i = 0; i < STREAMS; i++)
        free(streams[i].content);
    world_done(&world);
}

int main(int argc, char **argv) {
    static const test_case cases[] = {CASE(nothing_acknowledged_is_lost)};
    const char *wanted = argc > 1 ? argv[1] : getenv("WEFT_STORE_KILLS");
    if (wanted && strtol(wanted, NULL, 10) > 0)
        kills_wanted = strtol(wanted, NULL, 10);
    return test_main(1, argv, cases, 1);
}
