/* Reading and writing tasks.json. */
#include "aiwg_tasks_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aiwg.h"
#include "alloc.h"
#include "buf.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

#define MAX_METADATA (64 * 1024)
#define MAX_PROMPT (1024 * 1024)
#define MAX_ERROR (64 * 1024)
/* Of a number in an id: more than any daemon counts to. */
#define MAX_NUMBER 1000000000
/* The newest are written with the end of their output that is at hand, the others with less: the file is written often. */
#define RECENT 20
#define OLD_OUTPUT 4096
#define IMPORTED_BY "claude"

/* ---- reading ---- */

typedef struct found_task {
    uint64_t number;
    weft_json value;
} found_task;

/* "2026-11-15T02:50:21.613Z" in milliseconds; 0: it is none. */
static int64_t read_stamp(const weft_json *task, const char *name) {
    struct tm tm = {0};
    int ms = 0;
    const char *text = weft_get_str(task, name, "");
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
               &tm.tm_sec, &ms) != 7)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t at = (int64_t) timegm(&tm);
    return at > 0 ? at * 1000 + ms : 0;
}

/* "task-0012" as AIWG and we write it; false: another name, which none of ours can have. */
static bool read_number(const weft_json *task, uint64_t *ret) {
    const char *id = weft_get_str(task, "id", "");
    char again[32];
    if (strncmp(id, "task-", 5) != 0 || strlen(id) >= sizeof again)
        return false;
    unsigned long long number = strtoull(id + 5, NULL, 10);
    snprintf(again, sizeof again, "task-%04llu", number);
    *ret = number;
    return number < MAX_NUMBER && strcmp(again, id) == 0;
}

static int compare_found(const void *a, const void *b) {
    const found_task *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* The newest of those that are new, the oldest first. */
static size_t find_new_tasks(const weft_hub *hub, const weft_json *tasks, found_task *found, size_t room) {
    uint64_t next = weft__task_next(hub->engine);
    size_t count = 0, kept = 0;
    for (weft_iter it = weft_iterate(tasks); count < room && weft_next(&it);)
        if (weft_typeof(&it.value) == WEFT_OBJECT && read_number(&it.value, &found[count].number) &&
            found[count].number >= next)
            found[count++].value = it.value;
    if (count)
        qsort(found, count, sizeof *found, compare_found);
    size_t from = count > WEFT_AIWG_TASKS ? count - WEFT_AIWG_TASKS : 0;
    for (size_t i = from; i < count; i++)
        if (!kept || found[kept - 1].number != found[i].number)
            found[kept++] = found[i];
    return kept;
}

/* A text, or whatever else is there, as JSON; at most max bytes of it. */
static weft_val text_or_json(const weft_json *value, size_t max) {
    weft_bytes text = {value->text, value->len};
    if (weft_typeof(value) == WEFT_STRING && weft_bytes_of(value, &text) < 0)
        text = (weft_bytes){"", 0};
    if (text.len && memchr(text.data, '\0', text.len)) /* a task's texts have none: it is shown as it was written */
        text = (weft_bytes){value->text, value->len};
    return weft_strn(text.data ? text.data : "", weft__utf8_fit(text.data ? text.data : "", text.len, max));
}

static const char *state_of(const weft_json *task) {
    static const char *const ended[] = {"completed", "cancelled"};
    const char *state = weft_get_str(task, "state", "");
    for (size_t i = 0; i < 2; i++)
        if (strcmp(state, ended[i]) == 0)
            return ended[i];
    return "failed";
}

/* Every task was made at some time: as near to it as the file says, or now. */
static int64_t created_of(const weft_hub *hub, const weft_json *task) {
    static const char *const names[] = {"createdAt", "startedAt", "completedAt"};
    int64_t at = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && at <= 0; i++)
        at = read_stamp(task, names[i]);
    return at > 0 ? at : weft__engine_now(hub->engine);
}

/* Its end: how it failed, and the end of what it said. */
static weft_val end_of(const weft_json *task, const char *state, int64_t created, weft_member members[5]) {
    weft_json output = weft_get(task, "output"), error = weft_get(task, "error");
    weft_bytes text = {"", 0};
    bool failed = strcmp(state, "failed") == 0, done = strcmp(weft_get_str(task, "state", ""), "failed") == 0;
    if (weft_bytes_of(&output, &text) < 0)
        text = (weft_bytes){"", 0};
    size_t from = text.len > WEFT_TASK_TAIL ? weft__utf8_from(text.data, text.len, text.len - WEFT_TASK_TAIL) : 0;
    int64_t at = read_stamp(task, "completedAt"), started = read_stamp(task, "startedAt");
    members[0] = (weft_member){"completedMs", weft_int(at ? at : started ? started : created)};
    members[1] = (weft_member){"output", weft_strn(text.data + from, text.len - from)};
    members[2] = (weft_member){"outputBytes", weft_uint(text.len - from)};
    members[3] = (weft_member){"error", !failed ? weft_none()
                                        : done  ? text_or_json(&error, MAX_ERROR)
                                                : weft_str("the daemon that ran it has ended")};
    members[4] = (weft_member){"reason", failed && !done ? weft_str("daemonRestarted") : weft_none()};
    return weft_obj(members, 5);
}

/* As the engine's own documents have it. */
static int write_import(const weft_hub *hub, const found_task *found, weft_buf *out) {
    const weft_json *task = &found->value;
    char id[32], session[32];
    weft_member end[5];
    weft_json metadata = weft_get(task, "metadata"), prompt = weft_get(task, "prompt");
    const char *state = state_of(task), *agent = weft_get_str(task, "agent", NULL);
    int64_t created = created_of(hub, task);
    bool noted = weft_typeof(&metadata) == WEFT_OBJECT && metadata.len <= MAX_METADATA;
    snprintf(id, sizeof id, "task-%04llu", (unsigned long long) found->number);
    snprintf(session, sizeof session, "session-%04llu", (unsigned long long) found->number);
    weft_val asked =
        WEFT_OBJ({"taskId", weft_str(id)}, {"number", weft_uint(found->number)},
                 {"prompt", text_or_json(&prompt, MAX_PROMPT)}, {"agent", agent ? weft_str(agent) : weft_null()},
                 {"runsOn", weft_str(IMPORTED_BY)}, {"priority", weft_int(weft_get_int(task, "priority", 0))},
                 {"sessionId", weft_str(session)}, {"metadata", noted ? weft_copy(&metadata) : weft_raw("{}", 2)});
    weft_val value = WEFT_OBJ({"taskId", weft_str(id)}, {"state", weft_str(state)}, {"createdMs", weft_int(created)},
                              {"startedMs", weft_int(read_stamp(task, "startedAt"))}, {"attempt", weft_int(1)},
                              {"task", asked}, {"end", end_of(task, state, created, end)});
    return weft__write_val(out, hub->alloc, &value);
}

/* All in one append: either the history is there, or the next start takes it over. */
static int store_import(const weft_hub *hub, const found_task *found, size_t count, void (*done)(void *ctx, int r),
                        void *ctx) {
    weft_val *data = weft__zalloc(hub->alloc, count * sizeof *data);
    const char **types = weft__zalloc(hub->alloc, count * sizeof *types);
    size_t *ends = weft__zalloc(hub->alloc, count * sizeof *ends);
    weft_buf text = {0};
    int r = data && types && ends ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < count; i++) {
        r = write_import(hub, &found[i], &text);
        ends[i] = weft__buf_len(&text);
        types[i] = "task.imported";
    }
    for (size_t i = 0, from = 0; r >= 0 && i < count; from = ends[i++])
        data[i] = weft_raw(weft__buf_head(&text) + from, ends[i] - from);
    if (r >= 0)
        r = weft__engine_change(hub->engine,
                                &(weft_engine_change){.stream = WEFT_STREAM_HUB,
                                                      .types = types,
                                                      .data = data,
                                                      .count = count,
                                                      .counter = "task",
                                                      .number = found[count - 1].number},
                                done, ctx);
    weft__buf_done(&text, hub->alloc);
    weft__free(hub->alloc, ends);
    weft__free(hub->alloc, types);
    weft__free(hub->alloc, data);
    return r;
}

int weft__aiwg_tasks_import(const weft_hub *hub, const weft_json *file, void (*done)(void *ctx, int r), void *ctx) {
    weft_json tasks = weft_get(file, "tasks");
    size_t room = weft_typeof(&tasks) == WEFT_ARRAY ? weft_count(&tasks) : 0;
    found_task *found = room ? weft__zalloc(hub->alloc, room * sizeof *found) : NULL;
    if (!found)
        return room ? -ENOMEM : 0;
    size_t count = find_new_tasks(hub, &tasks, found, room);
    int r = count ? store_import(hub, found, count, done, ctx) : 0;
    weft__free(hub->alloc, found);
    return r < 0 ? r : count > 0;
}

/* ---- writing ---- */

int weft__aiwg_tasks_write(const weft_hub *hub, weft_buf *out) {
    const weft_task **list = weft__zalloc(hub->alloc, WEFT_AIWG_TASKS * sizeof *list);
    char now[WEFT_STAMP];
    size_t count = 0;
    if (!list)
        return -ENOMEM;
    for (const weft_task *task = weft__task_newest(hub->engine); task && count < WEFT_AIWG_TASKS;
         task = weft__task_older(hub->engine, task))
        list[count++] = task;
    static const char begin[] = "{\"version\":1,\"updatedAt\":\"", middle[] = "\",\"tasks\":[";
    weft__stamp(weft__engine_now(hub->engine), now);
    int r = weft__buf_put(out, hub->alloc, begin, sizeof begin - 1);
    if (r >= 0)
        r = weft__buf_put(out, hub->alloc, now, strlen(now));
    if (r >= 0)
        r = weft__buf_put(out, hub->alloc, middle, sizeof middle - 1);
    for (size_t i = count; r >= 0 && i-- > 0;) {
        r = i + 1 < count ? weft__buf_put(out, hub->alloc, ",\n", 2) : 0;
        if (r >= 0)
            r = weft__aiwg_write_task(out, hub->alloc, list[i], i < RECENT ? WEFT_TASK_TAIL : OLD_OUTPUT);
    }
    weft__free(hub->alloc, (void *) list);
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]}\n", 3);
}
