/* What the tests of the ACP driver share: a host that writes down what it hears, and a run from its beginning to its end. */
#ifndef AGENTS_ACP_SCENE_H
#define AGENTS_ACP_SCENE_H

#include <sys/stat.h>

#include "agents/kit.h"
#include "agents/one_run.h"

/* ---- a host that writes down what it hears ---- */

typedef struct scene scene;
struct scene {
    weft_loop *loop;
    one_run *run;
    const weft_driver *driver;
    weft_agent agent;
    char folder[64];
    char log[1 << 16];
    size_t len;
    const char *option;       /* how questions are answered; NULL: not at all */
    const char *content;      /* or this is filled in */
    const char *cancel_after; /* when this has been heard */
    bool force;
    const char *free_after;
    const char *pause_after;
    bool holds_pipes; /* keep its standard output and error open from outside, so that they do not end with it */
    bool frees_at_end;
    int held[2];
    int64_t grace_ms;
    int starts, ends, asks, unasks;
    char key[32];
    char session[64];
    weft_run_end end;
    char reason[64], error[8192], stop[64];
};

static inline void hear(scene *s, const char *what, const char *text, size_t len) {
    int n = snprintf(s->log + s->len, sizeof s->log - s->len, "%s %.*s\n", what, (int) len, text);
    s->len += (size_t) n < sizeof s->log - s->len ? (size_t) n : 0;
    CHECK_INT(s->ends, 0); /* nothing comes after the end */
    if (s->cancel_after && strstr(s->log, s->cancel_after)) {
        s->cancel_after = NULL;
        one_run_cancel(s->run, s->force);
    }
    if (s->pause_after && strstr(s->log, s->pause_after)) {
        s->pause_after = NULL;
        one_run_pause(s->run, true);
    }
    if (s->free_after && strstr(s->log, s->free_after)) {
        s->free_after = NULL;
        s->run = one_run_free(s->run);
        s->ends = 1;
    }
}

static inline void hear_str(scene *s, const char *what, const char *text) {
    hear(s, what, text ? text : "null", text ? strlen(text) : 4);
}

static inline void on_process(void *ctx, pid_t pid) {
    scene *s = ctx;
    CHECK(pid > 1);
    CHECK_INT(s->len, 0); /* before everything else */
    s->starts++;
    for (int i = 0; s->holds_pipes && i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int) pid, i + 1);
        s->held[i] = open(path, O_WRONLY | O_CLOEXEC);
        CHECK(s->held[i] >= 0);
    }
    hear_str(s, "process", "");
}

static inline void on_session(void *ctx, const char *session) {
    scene *s = ctx;
    snprintf(s->session, sizeof s->session, "%s", session ? session : "");
    hear_str(s, "session", session ? "named" : NULL);
}

static inline void on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    hear(ctx, stream == WEFT_RUN_STDERR ? "stderr" : "stdout", text.data, text.len);
}

static inline void on_update(void *ctx, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    const char *kind = weft_get_str(update, "sessionUpdate", "?");
    if (strcmp(kind, "agent_message_chunk") == 0)
        hear_str(ctx, "chunk", weft_str_of(&text, NULL));
    else
        hear_str(ctx, kind, "");
}

static inline void on_ask(void *ctx, const char *key, weft_val question) {
    scene *s = ctx;
    char *text;
    size_t len;
    CHECK_INT(weft_to_text(question, NULL, &text, &len), 0);
    s->asks++;
    snprintf(s->key, sizeof s->key, "%s", key);
    if (s->content)
        CHECK_INT(one_run_accept(s->run, key, s->content), 0);
    else if (s->option)
        CHECK_INT(one_run_answer(s->run, key, s->option), 0);
    hear(s, "ask", text, len);
    weft_text_free(text, NULL);
}

static inline void on_unask(void *ctx, const char *key) {
    scene *s = ctx;
    s->unasks++;
    CHECK_STR(key, s->key);
    CHECK_INT(one_run_answer(s->run, key, "x"), -ENOENT);
    hear_str(s, "unask", "");
}

static inline void on_end(void *ctx, const weft_run_end *end) {
    scene *s = ctx;
    CHECK_INT(s->ends++, 0);
    s->end = *end;
    CHECK_INT(end->ok, !end->reason);
    CHECK_INT(end->ok, !end->error);
    snprintf(s->reason, sizeof s->reason, "%s", end->reason ? end->reason : "");
    snprintf(s->error, sizeof s->error, "%s", end->error ? end->error : "");
    snprintf(s->stop, sizeof s->stop, "%s", end->stop_reason ? end->stop_reason : "");
    if (s->frees_at_end)
        s->run = one_run_free(s->run);
}

static const weft_run_host host = {on_process, on_session, on_output, on_update, on_ask, on_unask, on_end};

/* ---- a scene ---- */

static int fds_before;

static inline void prepare(scene *s, const weft_driver *driver) {
    *s = (scene){.driver = driver, .agent = {.name = "it"}};
    weft_loop *first; /* libuv opens some descriptors once */
    CHECK_INT(weft_loop_new(NULL, &first), 0);
    weft_loop_free(first);
    fds_before = kit_open_fds();
    static char state[4096];
    setenv("XDG_STATE_HOME", kit_program("acp-state", state, sizeof state), 1);
    snprintf(s->folder, sizeof s->folder, "/tmp/weft-acp-XXXXXX");
    CHECK(mkdtemp(s->folder));
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
}

static inline bool start_with(scene *s, const char *prompt, const char *session, const weft_alloc *alloc) {
    weft_run_spec spec = {
        .loop = s->loop,
        .alloc = alloc,
        .agent = &s->agent,
        .program = kit_weft(),
        .folder = s->folder,
        .task = "task-1",
        .prompt = prompt,
        .agent_session = session,
        .grace_ms = s->grace_ms,
    };
    int r = one_run_start(s->driver, &spec, &host, s, &s->run);
    CHECK_INT(s->len, 0); /* nothing is called from inside */
    return r == 0;
}

static inline void clean(scene *s) {
    char path[128];
    s->run = one_run_free(s->run);
    weft_loop_run(s->loop);
    weft_loop_free(s->loop);
    snprintf(path, sizeof path, "%s/weft-demo.txt", s->folder);
    unlink(path);
    CHECK_INT(rmdir(s->folder), 0);
    CHECK(kit_children_go());
    CHECK_INT(kit_open_fds(), fds_before);
}

/* Until it has ended, by itself or because it was freed. */
static inline void finish(scene *s) {
    KIT_UNTIL(s->loop, s->ends);
    clean(s);
}

#define HEARD(s, text) CHECK(strstr((s)->log, text) != NULL)
#define NOT_HEARD(s, text) CHECK(strstr((s)->log, text) == NULL)

#endif
