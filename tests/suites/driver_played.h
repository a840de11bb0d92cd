/* A driver without any program: the reference for the suite of drivers. A prompt is one word, which says what it does. */
#ifndef SUITES_DRIVER_PLAYED_H
#define SUITES_DRIVER_PLAYED_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver_single.h"
#include "list.h"
#include "loop.h"

/* For DRIVER_SUITE. */
#define DRIVER_PLAYED .say = "say", .wait = "wait", .hang = "hang", .crash = "crash", .ask = "ask"

struct weft_run {
    const weft_alloc *alloc;
    weft_loop *loop;
    const weft_run_host *host;
    void *ctx;
    weft_later later;
    weft_timer timer;
    int64_t grace_ms;
    char word[16];
    int step; /* 0: it has not said anything */
    bool paused, asked, cancelled, killed, ended;
};

static void played_end(weft_run *run, const char *reason) {
    weft_run_end end = {.ok = !reason, .reason = reason, .error = reason, .exit_code = reason ? -1 : 0};
    run->ended = true;
    run->host->on_end(run->ctx, &end);
}

static bool is_word(const weft_run *run, const char *word) {
    return strcmp(run->word, word) == 0;
}

static void played_go_on(weft_later *later) {
    weft_run *run = WEFT_CONTAINER(later, weft_run, later);
    if (run->ended)
        return;
    if (run->step++ == 0) {
        weft__later(run->loop, &run->later);
        run->host->on_process(run->ctx, 1);
    } else if (run->killed || (run->cancelled && !is_word(run, "hang")))
        played_end(run, "signalled");
    else if (run->paused)
        run->step = 1;
    else if (is_word(run, "crash"))
        played_end(run, "exited");
    else if (is_word(run, "ask") && !run->asked) {
        run->asked = true;
        run->host->on_ask(run->ctx, "key", weft_null());
    } else if (run->step == 2 && !is_word(run, "ask")) {
        weft__later(run->loop, &run->later);
        run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){"hello\n", 6});
    } else if (is_word(run, "say") || (is_word(run, "ask") && run->step == 100))
        played_end(run, NULL);
}

static void played_due(weft_timer *timer) {
    weft_run *run = WEFT_CONTAINER(timer, weft_run, timer);
    run->killed = true;
    weft__later(run->loop, &run->later);
}

static int played_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    weft_run *run = weft__zalloc(spec->alloc, sizeof *run);
    if (!run)
        return -ENOMEM;
    run->alloc = spec->alloc;
    run->loop = spec->loop;
    run->host = host;
    run->ctx = ctx;
    run->grace_ms = spec->grace_ms;
    snprintf(run->word, sizeof run->word, "%s", spec->prompt);
    weft__later_init(&run->later, played_go_on);
    weft__timer_init(&run->timer, played_due);
    weft__later(run->loop, &run->later);
    weft_loop_hold(run->loop); /* as a descriptor would */
    *ret = run;
    return 0;
}

static int played_answer(weft_run *run, const char *key, const char *option) {
    (void) option;
    if (!run->asked || run->step >= 99 || run->cancelled || strcmp(key, "key") != 0)
        return -ENOENT;
    run->step = 99;
    weft__later(run->loop, &run->later);
    return 0;
}

static void played_cancel(weft_run *run, bool force) {
    run->cancelled = true;
    run->killed |= force;
    weft__later(run->loop, &run->later);
    if (run->timer.due == INT64_MAX)
        weft__timer_set(run->loop, &run->timer, weft_loop_now(run->loop) + run->grace_ms);
}

static void played_pause(weft_run *run, bool paused) {
    run->paused = paused;
    weft__later(run->loop, &run->later);
}

static weft_run *played_free(weft_run *run) {
    weft_loop_release(run->loop);
    weft__later_cancel(&run->later);
    weft__timer_stop(run->loop, &run->timer);
    weft__free(run->alloc, run);
    return NULL;
}

static const weft_single played_runs = {played_start, played_answer, played_cancel, played_pause, played_free};

static int played_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    return weft__single_open(&played_runs, spec, host, ctx, ret);
}

static const weft_driver weft__driver_played = {.name = "played", .built_in = true, .open = played_open, WEFT_SINGLE};

#endif
