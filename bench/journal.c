/* journal PATH [ROWS [TASKS]]: write the journal of a hub that has been used for a while: so many tasks from queued to
 * completed, and the rest of the rows (a million) what their agents said. Through the store's own door, cleanly closed. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "events.h"
#include "lib/net.h"
#include "store.h"

#define BATCH WEFT_STORE_EVENTS
#define DATA 512   /* bytes of one event's data, at most */
#define HUB_ROWS 5 /* of a task: session.created, task.queued, task.started, task.process, task.completed */

static struct journal {
    weft_store *store;
    weft_event events[BATCH];
    char data[BATCH][DATA], streams[BATCH][48];
    size_t count;
    int64_t time_ms;
} j;

static void send_batch(void) {
    while (j.count && weft__store_append(j.store, &(weft_append){j.events, j.count, NULL}, NULL, NULL) == -EXFULL) {
        struct pollfd ready = {.fd = weft__store_fd(j.store), .events = POLLIN};
        poll(&ready, 1, -1);
        weft__store_dispatch(j.store);
    }
    j.count = 0;
}

#define ADD(to, kind, ...)                                                                                                  \
    do {                                                                                                                    \
        int n = snprintf(j.data[j.count], DATA, __VA_ARGS__);                                                               \
        add(to, kind, (size_t) n);                                                                                          \
    } while (0)

static void add(const char *stream, const char *type, size_t len) {
    if (len >= DATA)
        die("an event that is too long");
    snprintf(j.streams[j.count], sizeof j.streams[0], "%s", stream);
    j.events[j.count] =
        (weft_event){.stream = j.streams[j.count], .type = type, .data = {j.data[j.count], len}, .time_ms = j.time_ms++};
    if (++j.count == BATCH)
        send_batch();
}

static void add_task(long number, long lines) {
    char stream[48];
    snprintf(stream, sizeof stream, WEFT_STREAM_SESSION "session-%04ld", number);
    ADD(WEFT_STREAM_HUB, "session.created",
        "{\"sessionId\":\"session-%04ld\",\"agent\":\"demo\",\"folder\":\"/home/me/project\"}", number);
    ADD(WEFT_STREAM_HUB, "task.queued",
        "{\"taskId\":\"task-%04ld\",\"number\":%ld,\"prompt\":\"find out why the build of the second target fails and mend "
        "it\","
        "\"agent\":null,\"runsOn\":\"demo\",\"priority\":0,\"sessionId\":\"session-%04ld\",\"metadata\":{},\"timeoutMs\":"
        "7200000,"
        "\"retries\":0,\"depth\":0}",
        number, number, number);
    ADD(WEFT_STREAM_HUB, "task.started", "{\"taskId\":\"task-%04ld\",\"attempt\":1}", number);
    ADD(WEFT_STREAM_HUB, "task.process", "{\"taskId\":\"task-%04ld\",\"pid\":%ld}", number, 1000 + number);
    for (long i = 1; i <= lines; i++)
        ADD(stream, "session.update",
            "{\"sessionId\":\"session-%04ld\",\"taskId\":\"task-%04ld\",\"update\":{\"sessionUpdate\":\"agent_message_"
            "chunk\",\"content\":"
            "{\"type\":\"text\",\"text\":\"line %05ld of what an agent says while it works, a few words at a time\\n\"}}}",
            number, number, i);
    ADD(WEFT_STREAM_HUB, "task.completed",
        "{\"taskId\":\"task-%04ld\",\"stopReason\":\"end_turn\",\"output\":\"the last of what it said\",\"outputBytes\":%ld,"
        "\"outputFrom\":1,\"outputTo\":%ld}",
        number, lines * 75, lines);
}

int main(int argc, char **argv) {
    long rows = argc > 2 ? atol(argv[2]) : 1000000, tasks = argc > 3 ? atol(argv[3]) : 20000;
    char why[WEFT_STORE_WHY];

    if (argc < 2 || tasks < 1 || rows < tasks * HUB_ROWS)
        die("usage: journal PATH [ROWS [TASKS]]");
    if (weft__store_open(&weft__sqlite, &(weft_store_opts){.path = argv[1]}, &j.store, why) < 0)
        die("%s: %s", argv[1], why);
    /* Young enough to be kept. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    j.time_ms = (int64_t) now.tv_sec * 1000 - rows;
    long said = rows - tasks * HUB_ROWS;
    for (long i = 0; i < tasks; i++)
        add_task(i, said / tasks + (i < said % tasks));
    send_batch();
    weft__store_close(j.store);
    return 0;
}
