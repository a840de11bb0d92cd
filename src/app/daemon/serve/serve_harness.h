/* The harness of a daemon: the project's commands, gates, gated tasks and builds, put together and taken apart. */
#ifndef WEFT_SERVE_HARNESS_H
#define WEFT_SERVE_HARNESS_H

#include "hub.h"
#include "serve.h"

typedef struct weft_serve_harness {
    weft_hub *hub;
    weft_commands *commands;
    bool ready;
    void (*on_note)(void *ctx, const char *line);
    void *ctx;
} weft_serve_harness;

/* After the engine is ready: runs the loop until what was stored is read; what ran goes on. What cannot start is noted, and
 * its methods say that it is missing. */
void weft__serve_harness_start(weft_serve_harness *harness, const weft_serve_settings *how);
/* The configuration was read again. */
void weft__serve_harness_set(weft_serve_harness *harness, const weft_serve_settings *how);
/* Before the clients and the engine. */
void weft__serve_harness_end(weft_serve_harness *harness);

#endif
