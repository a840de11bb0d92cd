/* The conformance suite of drivers: a process, its sessions, their turns, as driver.h promises them. A driver joins with one
 * line that says which agent to start and which prompts make it do what; a prompt that it has none for is left out.
 *
 *     DRIVER_SUITE(demo, .say = "echo hello", .wait = "ask", ...) */
#ifndef SUITES_DRIVER_H
#define SUITES_DRIVER_H

#include <stdlib.h>

#include "agents/kit.h"
#include "driver_single.h" /* the table itself has the name of this file */

typedef struct driver_case {
    const weft_driver *driver;
    const char *const *argv; /* NULL: the driver knows */
    const char *verb;        /* or the program is weft with this verb */
    const char *say;         /* says "hello" and ends well */
    const char *wait;        /* says something and waits until it is cancelled */
    const char *hang;        /* says something and does not end when it is cancelled */
    const char *crash;       /* its process ends in the middle */
    const char *ask;         /* asks one question, and ends when it is answered */
    const char *much;        /* says at least much_bytes */
    size_t much_bytes;
    const char *odd;  /* says bytes that are no UTF-8, and "hello" behind them */
    const char *mode; /* that can be set; NULL: the driver cannot set anything */
    bool blunt;       /* its agents have no word for giving up a turn, so the process goes with a turn that is cancelled */
    bool keeps;       /* conversations can be listed, gone on with in another process, and deleted */
} driver_case;

typedef struct suite_world suite_world;

typedef struct suite_session {
    suite_world *world;
    weft_driver_session *handle;
    int opened, ends, asks, unasks;
    bool busy;
    bool ok, gone;
    char reason[64], key[64], text[256]; /* the end of what it said */
    char own[64], states[256];           /* the agent's name for it; the names of what holds for it */
    size_t bytes;
} suite_session;

/* A request that is not a turn. */
typedef struct suite_request {
    suite_world *world;
    int times, r;
    bool has_error;
    char text[8192];
} suite_request;

struct suite_world {
    const driver_case *which;
    weft_loop *loop;
    weft_agent agent;
    const char *argv[3];
    weft_driver_process *process;
    suite_session sessions[2];
    int processes, ends;
    int calls;   /* callbacks so far */
    int free_at; /* free it within this one; 0: never */
    bool inside; /* one of the driver's functions runs */
    char folder[64];
    int fds;
};

/* ---- the host ---- */

static inline void suite_called(suite_world *w) {
    CHECK(w->process != NULL); /* nothing comes after free() */
    CHECK(!w->inside);         /* nor inside a call */
    CHECK_INT(w->ends, 0);     /* nor behind the end */
    if (++w->calls == w->free_at)
        w->process = w->which->driver->free(w->process);
}

static inline void suite_on_process(void *ctx, pid_t pid) {
    suite_world *w = ctx;
    CHECK(pid > 0);
    CHECK_INT(w->calls, 0);
    w->processes++;
    suite_called(w);
}

static inline void suite_on_end(void *ctx, int exit_code, int signal) {
    suite_world *w = ctx;
    (void) exit_code, (void) signal;
    suite_called(w);
    w->ends++;
    for (int i = 0; i < 2; i++)
        CHECK(!w->sessions[i].busy); /* turns end first */
}

static inline void suite_on_session(void *ctx, const weft_session_info *info) {
    suite_session *s = ctx;
    snprintf(s->own, sizeof s->own, "%s", info->agent_session ? info->agent_session : "");
    s->opened++;
    suite_called(s->world);
}

static inline void suite_on_state(void *ctx, const char *name, const weft_json *value) {
    suite_session *s = ctx;
    size_t len = strlen(s->states);
    CHECK(value->text != NULL);
    snprintf(s->states + len, sizeof s->states - len, "%s ", name);
    suite_called(s->world);
}

static inline void suite_done(void *ctx, int r, const weft_json *result, const char *error) {
    suite_request *q = ctx;
    q->times++;
    q->r = r;
    q->has_error = error && *error;
    CHECK((r == 0) == (result != NULL));
    if (result)
        snprintf(q->text, sizeof q->text, "%.*s", (int) result->len, result->text);
    suite_called(q->world);
}

static inline void suite_hear(suite_session *s, const char *text, size_t len) {
    size_t have = strlen(s->text), room = sizeof s->text - 1;
    s->bytes += len;
    if (len > room) {
        text += len - room;
        len = room;
    }
    if (have + len > room) {
        memmove(s->text, s->text + have + len - room, room - len);
        have = room - len;
    }
    memcpy(s->text + have, text, len);
    s->text[have + len] = '\0';
}

static inline void suite_on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    suite_session *s = ctx;
    weft_doc *doc;
    char *json;
    size_t len;
    CHECK(s->busy);
    CHECK(!memchr(text.data, '\0', text.len));
    CHECK_INT(weft_to_text(weft_strn(text.data, text.len), NULL, &json, &len), 0);
    CHECK_INT(weft_doc_parse(json, len, NULL, &doc), 0); /* it is valid UTF-8 */
    weft_doc_free(doc);
    weft_text_free(json, NULL);
    if (stream == WEFT_RUN_STDOUT)
        suite_hear(s, text.data, text.len);
    suite_called(s->world);
}

static inline void suite_on_update(void *ctx, const weft_json *update) {
    suite_session *s = ctx;
    weft_json text = weft_pointer(update, "/content/text");
    const char *said = weft_str_of(&text, "");
    CHECK(weft_get_str(update, "sessionUpdate", NULL) != NULL);
    if (strcmp(weft_get_str(update, "sessionUpdate", ""), "agent_message_chunk") == 0)
        suite_hear(s, said, strlen(said));
    else
        s->bytes++;
    suite_called(s->world);
}

static inline void suite_on_ask(void *ctx, const char *key, weft_val question) {
    suite_session *s = ctx;
    (void) question;
    CHECK(s->busy);
    s->asks++;
    snprintf(s->key, sizeof s->key, "%s", key);
    suite_called(s->world);
}

static inline void suite_on_unask(void *ctx, const char *key) {
    suite_session *s = ctx;
    (void) key;
    s->unasks++;
    suite_called(s->world);
}

static inline void suite_on_turn_end(void *ctx, const weft_turn_end *end) {
    suite_session *s = ctx;
    CHECK(s->busy);
    CHECK(end->ok == !end->reason && end->ok == !end->error);
    s->busy = false;
    s->ends++;
    s->ok = end->ok;
    s->gone = end->gone;
    snprintf(s->reason, sizeof s->reason, "%s", end->reason ? end->reason : "");
    suite_called(s->world);
}

/* ---- playing ---- */

static inline int suite_open(suite_world *w, const weft_alloc *alloc) {
    static const weft_process_host host = {suite_on_process, suite_on_end};
    w->inside = true;
    int r = w->which->driver->open(&(weft_process_spec){.loop = w->loop,
                                                        .alloc = alloc,
                                                        .agent = &w->agent,
                                                        .program = kit_weft(),
                                                        .folder = w->folder,
                                                        .grace_ms = 600},
                                   &host, w, &w->process);
    w->inside = false;
    return r;
}

static inline int suite_begin_as(suite_world *w, int which, const weft_session_spec *spec) {
    static const weft_session_host host = {
        .on_session = suite_on_session,
        .on_state = suite_on_state,
        .on_output = suite_on_output,
        .on_update = suite_on_update,
        .on_ask = suite_on_ask,
        .on_unask = suite_on_unask,
        .on_turn_end = suite_on_turn_end,
    };
    suite_session *s = &w->sessions[which];
    *s = (suite_session){.world = w};
    w->inside = true;
    int r = w->which->driver->session(w->process, spec, &host, s, &s->handle);
    w->inside = false;
    return r;
}

static inline int suite_begin(suite_world *w, int which) {
    return suite_begin_as(w, which, &(weft_session_spec){.folder = w->folder});
}

/* Go on with a conversation, or nothing. */
static inline void suite_go_on(suite_world *w, int which, const char *own) {
    CHECK_INT(suite_begin_as(w, which, &(weft_session_spec){.folder = w->folder, .agent_session = own, .must_exist = true}),
              0);
}

static inline void suite_close(suite_world *w, suite_session *s) {
    w->inside = true;
    s->handle = w->which->driver->close(s->handle);
    w->inside = s->busy = false;
}

static inline int suite_set(suite_session *s, const char *mode, suite_request *ret) {
    suite_world *w = s->world;
    char text[64];
    int n = snprintf(text, sizeof text, "\"%s\"", mode);
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(text, (size_t) n, NULL, &doc), 0);
    *ret = (suite_request){.world = w};
    w->inside = true;
    int r = w->which->driver->set(s->handle, &(weft_session_setting){.name = "mode", .value = *weft_doc_root(doc)},
                                  suite_done, ret);
    w->inside = false;
    weft_doc_free(doc);
    return r;
}

static inline void suite_list(suite_world *w, suite_request *ret) {
    *ret = (suite_request){.world = w};
    w->inside = true;
    CHECK_INT(w->which->driver->list(w->process, w->folder, NULL, suite_done, ret), 0);
    w->inside = false;
}

static inline void suite_remove(suite_world *w, const char *own, suite_request *ret) {
    *ret = (suite_request){.world = w};
    w->inside = true;
    CHECK_INT(w->which->driver->remove(w->process, own, suite_done, ret), 0);
    w->inside = false;
}

static inline int suite_prompt(suite_session *s, const char *prompt) {
    suite_world *w = s->world;
    w->inside = s->busy = true;
    s->text[0] = '\0';
    s->bytes = 0;
    int r = w->which->driver->prompt(s->handle, &(weft_turn_spec){.task = "task-1", .prompt = prompt});
    w->inside = false;
    s->busy = r >= 0;
    return r;
}

static inline void suite_stop(suite_world *w, suite_session *s, bool force) {
    w->inside = true;
    w->which->driver->stop(w->process, s ? s->handle : NULL, force);
    w->inside = false;
}

static inline void suite_start(suite_world *w, const char *prompt) {
    CHECK_INT(suite_open(w, NULL), 0);
    CHECK_INT(suite_begin(w, 0), 0);
    CHECK_INT(suite_prompt(&w->sessions[0], prompt), 0);
}

/* Its end, which needs to be asked for where a process lives on. */
static inline void suite_leave(suite_world *w) {
    if (!w->ends)
        suite_stop(w, NULL, false);
    KIT_UNTIL(w->loop, w->ends);
    CHECK_INT(w->ends, 1);
}

/* ---- the cases ---- */

static inline void suite_one_turn(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->say);
    CHECK_INT(w->which->driver->prompt(s->handle, &(weft_turn_spec){.task = "task-1", .prompt = "x"}), -EBUSY);
    KIT_UNTIL(w->loop, s->ends);
    CHECK(s->ok && strstr(s->text, "hello") != NULL);
    CHECK_INT(s->gone, w->which->driver->one_turn);
    suite_leave(w);
    CHECK_INT(w->processes, 1);
    CHECK_INT(suite_prompt(s, w->which->say), -EPIPE);
    CHECK_INT(w->which->driver->answer(s->handle, "1", "x"), -ENOENT);
}

static inline void suite_two_turns(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->say);
    KIT_UNTIL(w->loop, s->ends == 1);
    CHECK_INT(suite_prompt(s, w->which->say), 0);
    KIT_UNTIL(w->loop, s->ends == 2);
    CHECK(s->ok && strstr(s->text, "hello") != NULL);
    CHECK_INT(s->opened, 1);
    suite_leave(w);
    CHECK_INT(w->processes, 1);
}

static inline void suite_two_sessions(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    suite_start(w, w->which->wait);
    CHECK_INT(suite_begin(w, 1), 0);
    CHECK_INT(suite_prompt(b, w->which->say), 0);
    KIT_UNTIL(w->loop, b->ends && a->bytes);
    CHECK(b->ok && strstr(b->text, "hello") != NULL);
    CHECK_INT(a->ends, 0);
    suite_stop(w, a, false);
    KIT_UNTIL(w->loop, a->ends);
    CHECK(!a->gone);
    CHECK_INT(suite_prompt(b, w->which->say), 0);
    KIT_UNTIL(w->loop, b->ends == 2);
    suite_leave(w);
    CHECK_INT(w->processes, 1);
}

static inline void suite_cancelled(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->wait);
    KIT_UNTIL(w->loop, s->bytes);
    suite_stop(w, s, false);
    suite_stop(w, s, false);
    KIT_UNTIL(w->loop, s->ends);
    CHECK(!s->ok);
    CHECK_INT(s->gone, w->which->driver->one_turn || w->which->blunt);
    suite_leave(w);
    suite_stop(w, s, true); /* too late, and harmless */
}

static inline void suite_does_not_obey(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->hang);
    KIT_UNTIL(w->loop, s->bytes);
    suite_stop(w, s, false);
    KIT_UNTIL(w->loop, w->ends);
    CHECK(s->ends == 1 && !s->ok && s->gone);
}

static inline void suite_neighbour_does_not_obey(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    suite_start(w, w->which->wait);
    KIT_UNTIL(w->loop, a->bytes);
    CHECK_INT(suite_begin(w, 1), 0);
    CHECK_INT(suite_prompt(b, w->which->hang), 0);
    KIT_UNTIL(w->loop, b->bytes);
    suite_stop(w, b, false);
    KIT_UNTIL(w->loop, w->ends);
    CHECK_STR(b->reason, "cancelled");
    CHECK_STR(a->reason, "agentEnded");
}

static inline void suite_killed(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->wait);
    KIT_UNTIL(w->loop, s->bytes);
    suite_stop(w, s, true);
    KIT_UNTIL(w->loop, w->ends);
    CHECK(s->ends == 1 && !s->ok && s->gone);
}

static inline void suite_ended_in_a_turn(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->wait);
    KIT_UNTIL(w->loop, s->bytes);
    suite_stop(w, NULL, false);
    KIT_UNTIL(w->loop, w->ends);
    CHECK(s->ends == 1 && !s->ok && s->gone);
}

static inline void suite_crashes(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->crash);
    KIT_UNTIL(w->loop, w->ends);
    CHECK(s->ends == 1 && !s->ok && s->gone);
    CHECK(strcmp(s->reason, "signalled") == 0 || strcmp(s->reason, "exited") == 0);
}

static inline void suite_crashes_for_all(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    suite_start(w, w->which->wait);
    KIT_UNTIL(w->loop, a->bytes);
    CHECK_INT(suite_begin(w, 1), 0);
    CHECK_INT(suite_prompt(b, w->which->crash), 0);
    KIT_UNTIL(w->loop, w->ends);
    CHECK(a->ends == 1 && !a->ok && a->gone && b->ends == 1 && !b->ok && b->gone);
    CHECK_STR(a->reason, b->reason);
}

static inline void suite_asks(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->ask);
    KIT_UNTIL(w->loop, s->asks);
    w->inside = true;
    CHECK_INT(w->which->driver->answer(s->handle, "no such key", "x"), -ENOENT);
    CHECK_INT(w->which->driver->answer(s->handle, s->key, NULL), 0);
    CHECK_INT(w->which->driver->answer(s->handle, s->key, NULL), -ENOENT);
    w->inside = false;
    KIT_UNTIL(w->loop, s->ends);
    suite_leave(w);
}

static inline void suite_asks_and_is_cancelled(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->ask);
    KIT_UNTIL(w->loop, s->asks);
    suite_stop(w, s, false);
    KIT_UNTIL(w->loop, s->ends);
    CHECK(!s->ok);
    CHECK_INT(w->which->driver->answer(s->handle, s->key, "x"), -ENOENT);
    suite_leave(w);
}

static inline void suite_freed_while_it_asks(suite_world *w) {
    suite_start(w, w->which->ask);
    KIT_UNTIL(w->loop, w->sessions[0].asks);
    w->inside = true;
    w->process = w->which->driver->free(w->process);
    w->inside = false;
}

static inline void suite_pauses(suite_world *w) {
    suite_session *s = &w->sessions[0];
    CHECK_INT(suite_open(w, NULL), 0);
    CHECK_INT(suite_begin(w, 0), 0);
    w->which->driver->pause(w->process, true);
    CHECK_INT(suite_prompt(s, w->which->say), 0);
    KIT_UNTIL(w->loop, w->processes);
    for (int i = 0; i < 50; i++)
        weft_loop_once(w->loop, false);
    CHECK_INT(s->bytes, 0);
    CHECK_INT(s->ends, 0);
    w->which->driver->pause(w->process, false);
    KIT_UNTIL(w->loop, s->ends);
    CHECK(s->ok && strstr(s->text, "hello") != NULL);
    suite_leave(w);
}

static inline void suite_closes(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    suite_start(w, w->which->wait);
    KIT_UNTIL(w->loop, a->bytes);
    w->inside = true;
    a->handle = w->which->driver->close(a->handle);
    w->inside = false;
    a->busy = false;
    if (!w->which->driver->one_turn && !w->which->blunt) {
        CHECK_INT(suite_begin(w, 1), 0);
        CHECK_INT(suite_prompt(b, w->which->say), 0);
        KIT_UNTIL(w->loop, b->ends);
        CHECK(b->ok);
    }
    suite_leave(w);
    CHECK_INT(a->ends, 0);
}

static inline void suite_stopped_before_a_turn(suite_world *w) {
    CHECK_INT(suite_open(w, NULL), 0);
    CHECK_INT(suite_begin(w, 0), 0);
    suite_stop(w, NULL, false);
    KIT_UNTIL(w->loop, w->ends);
    CHECK_INT(w->sessions[0].ends, 0);
}

static inline void suite_says_much(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->much);
    KIT_UNTIL(w->loop, s->ends);
    CHECK(s->ok && s->bytes >= w->which->much_bytes);
    suite_leave(w);
}

static inline void suite_says_odd_bytes(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_start(w, w->which->odd);
    KIT_UNTIL(w->loop, s->ends);
    CHECK(s->ok && strstr(s->text, "hello") != NULL);
    suite_leave(w);
}

/* A turn without a prompt. */
static inline void suite_opens_only(suite_world *w) {
    suite_session *s = &w->sessions[0];
    CHECK_INT(suite_open(w, NULL), 0);
    CHECK_INT(suite_begin(w, 0), 0);
    if (w->which->driver->one_turn) {
        CHECK_INT(suite_prompt(s, NULL), -ENOTSUP);
        suite_leave(w);
        return;
    }
    for (int i = 1; i <= 2; i++) {
        CHECK_INT(suite_prompt(s, NULL), 0);
        KIT_UNTIL(w->loop, s->ends == i);
        CHECK(s->ok && s->opened == 1 && !s->bytes);
    }
    CHECK_INT(suite_prompt(s, w->which->say), 0);
    KIT_UNTIL(w->loop, s->ends == 3);
    CHECK(s->ok && strstr(s->text, "hello") != NULL);
    suite_leave(w);
}

static inline void suite_cannot(suite_world *w) {
    const weft_driver *driver = w->which->driver;
    CHECK(!w->which->mode == !driver->set);
    CHECK(!w->which->keeps == !driver->list && !w->which->keeps == !driver->remove);
}

static inline void suite_sets(suite_world *w) {
    suite_session *s = &w->sessions[0];
    suite_request q;
    CHECK_INT(suite_open(w, NULL), 0);
    CHECK_INT(suite_begin(w, 0), 0);
    CHECK_INT(suite_set(s, w->which->mode, &q), -EAGAIN); /* it is not open yet */
    CHECK_INT(suite_prompt(s, w->which->wait), 0);
    KIT_UNTIL(w->loop, s->bytes);
    CHECK(strstr(s->states, "modes ") != NULL);
    CHECK_INT(suite_set(s, w->which->mode, &q), 0); /* in the middle of its turn */
    KIT_UNTIL(w->loop, q.times);
    CHECK(q.r == 0 && s->ends == 0);
    CHECK_INT(suite_set(s, "there is no such mode", &q), 0);
    KIT_UNTIL(w->loop, q.times);
    CHECK(q.r == -EREMOTEIO && q.has_error);
    suite_stop(w, s, false);
    KIT_UNTIL(w->loop, s->ends);
    suite_leave(w);
    CHECK_INT(suite_set(s, w->which->mode, &q), -EPIPE);
}

static inline int suite_begin_set(suite_world *w, int which, const char *mode) {
    char text[128];
    int n = snprintf(text, sizeof text, "{\"mode\":\"%s\"}", mode);
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(text, (size_t) n, NULL, &doc), 0);
    int r = suite_begin_as(w, which, &(weft_session_spec){.folder = w->folder, .settings = weft_doc_root(doc)});
    weft_doc_free(doc);
    return r;
}

/* What was chosen is set before the turn, or there is none. */
static inline void suite_sets_first(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    CHECK_INT(suite_open(w, NULL), 0);
    CHECK_INT(suite_begin_set(w, 0, w->which->mode), 0);
    CHECK_INT(suite_prompt(a, w->which->say), 0);
    KIT_UNTIL(w->loop, a->ends);
    CHECK(a->ok && strstr(a->text, "hello") != NULL);
    CHECK_INT(suite_begin_set(w, 1, "there is no such mode"), 0);
    CHECK_INT(suite_prompt(b, w->which->say), 0);
    KIT_UNTIL(w->loop, b->ends);
    CHECK_STR(b->reason, "settingRefused");
    CHECK(!b->bytes && !b->gone);
    suite_close(w, b);
    CHECK_INT(suite_prompt(a, w->which->say), 0); /* its neighbour does not mind */
    KIT_UNTIL(w->loop, a->ends == 2);
    CHECK(a->ok);
    suite_leave(w);
}

static inline void suite_keeps(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    suite_request q;
    char own[64];
    suite_start(w, w->which->say);
    suite_list(w, &q); /* it is not ready yet */
    KIT_UNTIL(w->loop, a->ends && q.times);
    CHECK_INT(q.r, 0);
    memcpy(own, a->own, sizeof own);
    CHECK(*own);
    suite_list(w, &q);
    KIT_UNTIL(w->loop, q.times);
    CHECK(strstr(q.text, own) != NULL);
    suite_close(w, a);
    suite_go_on(w, 1, own);
    CHECK_INT(suite_prompt(b, w->which->say), 0);
    KIT_UNTIL(w->loop, b->ends);
    CHECK(b->ok);
    CHECK_STR(b->own, own);
    suite_close(w, b);
    suite_remove(w, own, &q);
    KIT_UNTIL(w->loop, q.times);
    CHECK_INT(q.r, 0);
    suite_remove(w, own, &q);
    KIT_UNTIL(w->loop, q.times);
    CHECK(q.r == -EREMOTEIO && q.has_error);
    suite_go_on(w, 1, own);
    CHECK_INT(suite_prompt(b, NULL), 0);
    KIT_UNTIL(w->loop, b->ends);
    CHECK_STR(b->reason, "sessionNotFound");
    CHECK(!b->gone && !b->opened);
    suite_leave(w);
}

/* Requests that are open when their session is closed, their process ends, or is freed. */
static inline void suite_leaves_requests(suite_world *w) {
    suite_session *a = &w->sessions[0], *b = &w->sessions[1];
    suite_request q, p;
    suite_start(w, w->which->say);
    KIT_UNTIL(w->loop, a->ends);
    CHECK_INT(suite_set(a, w->which->mode, &q), 0);
    suite_close(w, a);
    CHECK_INT(suite_begin(w, 1), 0);
    CHECK_INT(suite_prompt(b, w->which->say), 0);
    KIT_UNTIL(w->loop, b->ends);
    CHECK_INT(q.times, 0);
    CHECK_INT(suite_set(b, w->which->mode, &q), 0);
    suite_list(w, &p);
    suite_stop(w, NULL, true);
    KIT_UNTIL(w->loop, w->ends);
    CHECK(q.times == 1 && p.times == 1); /* before the end */
    CHECK(q.r == 0 || q.r == -EPIPE);
    CHECK(p.r == 0 || p.r == -EPIPE);
}

static inline void suite_freed_with_requests(suite_world *w) {
    suite_request q;
    CHECK_INT(suite_open(w, NULL), 0);
    suite_list(w, &q);
    w->inside = true;
    w->process = w->which->driver->free(w->process);
    w->inside = false;
    CHECK_INT(q.times, 0);
}

/* ---- running them ---- */

static inline void suite_prepare(suite_world *w, const driver_case *which) {
    *w = (suite_world){.which = which, .agent = {.name = "it", .argv = which->argv}, .argv = {kit_weft(), which->verb}};
    if (which->verb)
        w->agent.argv = w->argv;
    w->fds = kit_open_fds();
    static char state[4096]; /* where the demo agent keeps its conversations */
    setenv("XDG_STATE_HOME", kit_program("driver-state", state, sizeof state), 1);
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-driver-XXXXXX");
    CHECK(mkdtemp(w->folder));
    CHECK_INT(weft_loop_new(NULL, &w->loop), 0);
}

static inline void suite_clean(suite_world *w) {
    if (w->process)
        w->process = w->which->driver->free(w->process);
    weft_loop_run(w->loop);
    weft_loop_free(w->loop);
    CHECK_INT(rmdir(w->folder), 0);
    CHECK(kit_children_go());
    CHECK_INT(kit_open_fds(), w->fds);
}

static inline void suite_row(const driver_case *which, const char *name, bool can, void (*run)(suite_world *w)) {
    suite_world w;
    if (!can)
        return;
    test_row(name);
    suite_prepare(&w, which);
    run(&w);
    suite_clean(&w);
}

/* Freed within each of the callbacks that there are. */
static inline void suite_frees(const driver_case *which, const char *prompt) {
    bool all = false;
    for (int at = 1; !all; at++) {
        suite_world w;
        suite_prepare(&w, which);
        w.free_at = at;
        suite_start(&w, prompt);
        KIT_UNTIL(w.loop, !w.process || w.sessions[0].ends);
        if (w.process && !w.ends)
            suite_stop(&w, NULL, false);
        KIT_UNTIL(w.loop, !w.process || w.ends);
        all = w.process != NULL;
        suite_clean(&w);
    }
}

/* Every third allocation: tests of each driver try all of them. */
static inline void suite_fails_allocations(const driver_case *which) {
    bool failed = true;
    for (long n = 1; failed; n += 3) {
        test_memory memory;
        suite_world w;
        suite_prepare(&w, which);
        test_memory_init(&memory, n);
        int r = suite_open(&w, &memory.alloc);
        if (r >= 0)
            r = which->mode ? suite_begin_set(&w, 0, which->mode) : suite_begin(&w, 0);
        if (r >= 0)
            r = suite_prompt(&w.sessions[0], which->say);
        if (r >= 0) {
            KIT_UNTIL(w.loop, w.sessions[0].ends);
            suite_leave(&w);
        } else
            CHECK_INT(r, -ENOMEM);
        if (w.process)
            w.process = which->driver->free(w.process);
        weft_loop_run(w.loop);
        CHECK_INT(memory.live, 0);
        failed = memory.count >= n;
        suite_clean(&w);
    }
}

static inline void driver_suite(const driver_case *which) {
    bool many = !which->driver->one_turn;
    weft_loop *first; /* libuv opens some descriptors once */
    CHECK_INT(weft_loop_new(NULL, &first), 0);
    weft_loop_free(first);
    suite_row(which, "a turn", true, suite_one_turn);
    suite_row(which, "two turns in a session", many, suite_two_turns);
    suite_row(which, "two sessions in a process", many && !which->blunt, suite_two_sessions);
    suite_row(which, "a turn is cancelled", true, suite_cancelled);
    suite_row(which, "a turn that does not obey", which->hang, suite_does_not_obey);
    suite_row(which, "a neighbour that does not obey", many && which->hang, suite_neighbour_does_not_obey);
    suite_row(which, "a turn is killed", true, suite_killed);
    suite_row(which, "the process is ended in a turn", true, suite_ended_in_a_turn);
    suite_row(which, "the process is ended before a turn", true, suite_stopped_before_a_turn);
    suite_row(which, "a crash", which->crash, suite_crashes);
    suite_row(which, "a crash with two turns", many && which->crash, suite_crashes_for_all);
    suite_row(which, "a question", which->ask, suite_asks);
    suite_row(which, "a question when it is cancelled", which->ask, suite_asks_and_is_cancelled);
    suite_row(which, "freed with an open question", which->ask, suite_freed_while_it_asks);
    suite_row(which, "a pause", true, suite_pauses);
    suite_row(which, "a session is closed in its turn", true, suite_closes);
    suite_row(which, "a session is only opened", true, suite_opens_only);
    suite_row(which, "what the driver cannot", true, suite_cannot);
    suite_row(which, "a mode is set", which->mode, suite_sets);
    suite_row(which, "a mode is set before the turn", which->mode, suite_sets_first);
    suite_row(which, "conversations are kept", which->keeps, suite_keeps);
    suite_row(which, "requests are left", which->keeps && which->mode, suite_leaves_requests);
    suite_row(which, "freed with a request", which->keeps, suite_freed_with_requests);
    suite_row(which, "much output", which->much, suite_says_much);
    suite_row(which, "odd bytes", which->odd, suite_says_odd_bytes);
    test_row("freed in a callback");
    suite_frees(which, which->say);
    test_row("allocations fail");
    suite_fails_allocations(which);
}

#define DRIVER_SUITE(name, ...)                                                                                             \
    TEST(driver_##name) {                                                                                                   \
        static const driver_case which = {.driver = &weft__driver_##name, __VA_ARGS__};                                     \
        driver_suite(&which);                                                                                               \
    }

#endif
