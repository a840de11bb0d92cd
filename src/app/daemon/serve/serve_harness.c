/* The harness of a daemon. */
#include "serve_harness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loop.h"

static void note_failure(const weft_serve_harness *self, const char *what, int r) {
    char line[256];
    snprintf(line, sizeof line, "%s: %s", what, weft_strerror(r));
    self->on_note(self->ctx, line);
}

static void on_gated_ready(void *ctx, int r) {
    weft_serve_harness *self = ctx;
    self->ready = true;
    if (r < 0)
        note_failure(self, "gated tasks", r);
}

static int set_all(weft_serve_harness *self, const weft_serve_settings *how) {
    weft_hub *hub = self->hub;
    const char *const *const lines[WEFT_BUILD_KINDS] = {
        [WEFT_BUILD_FRONTEND] = (const char *const *) how->build_command.items,
        [WEFT_BUILD_BACKEND] = (const char *const *) how->build_backend.items};
    const char *root = how->preview_root ? how->preview_root : "";
    int r = hub->gates ? weft__gates_set(hub->gates, &how->gate_lines, how->gate_ms) : 0;
    if (r >= 0 && hub->builds)
        r = weft__builds_set(hub->builds, lines, how->build_ms);
    if (strlen(root) >= sizeof hub->preview_root)
        return -ENAMETOOLONG;
    memcpy(hub->preview_root, root, strlen(root) + 1);
    return r;
}

static int start_all(weft_serve_harness *self) {
    weft_hub *hub = self->hub;
    weft_loop *loop = weft__engine_loop(hub->engine);
    int r = weft__commands_new(&(weft_commands_opts){.loop = loop}, &self->commands);
    if (r >= 0)
        r = weft__gates_new(self->commands, NULL, &hub->gates);
    if (r >= 0)
        r = weft__builds_new(
            &(weft_builds_opts){
                .engine = hub->engine, .commands = self->commands, .on_note = self->on_note, .ctx = self->ctx},
            &hub->builds);
    return r;
}

static int start_gated(weft_serve_harness *self) {
    weft_hub *hub = self->hub;
    weft_gated_opts opts = {
        .engine = hub->engine, .gates = weft__gates_runner(hub->gates), .on_note = self->on_note, .ctx = self->ctx};
    int r = weft__gated_new(&opts, on_gated_ready, self, &hub->gated);
    while (r >= 0 && (!self->ready || !weft__builds_read(hub->builds)))
        if (weft_loop_once(weft__engine_loop(hub->engine), true) < 0)
            r = -EIO;
    return r;
}

/* The gates are configured before anything that ran goes on and asks for them. */
void weft__serve_harness_start(weft_serve_harness *self, const weft_serve_settings *how) {
    int r = start_all(self);
    if (r >= 0)
        r = set_all(self, how);
    if (r >= 0)
        r = start_gated(self);
    if (r < 0)
        note_failure(self, "builds and gated tasks", r);
}

void weft__serve_harness_set(weft_serve_harness *self, const weft_serve_settings *how) {
    int r = set_all(self, how);
    if (r < 0)
        note_failure(self, "builds and gated tasks", r);
}

void weft__serve_harness_end(weft_serve_harness *self) {
    weft_hub *hub = self->hub;
    if (!hub)
        return;
    self->commands = weft__commands_free(self->commands);
    hub->gated = weft__gated_free(hub->gated);
    hub->gates = weft__gates_free(hub->gates);
    hub->builds = weft__builds_free(hub->builds);
}
