/* What the configuration asks of requests before the hub's own gates: signatures by its "keys", and its "gates". */
#ifndef WEFT_SERVE_GATES_H
#define WEFT_SERVE_GATES_H

#include "hub.h"
#include "serve.h"

typedef struct weft_serve_gates weft_serve_gates;

/* Read the key files. Failures are explained. */
weft_exit weft__serve_gates_open(const weft_app *app, const weft_serve_settings *how, weft_serve_gates **ret);
/* The service that has the list must be gone. Returns NULL. */
weft_serve_gates *weft__serve_gates_free(weft_serve_gates *self);
/* For weft_service_opts.gates: ours, if the configuration has some, in front of these. Borrowed. */
const weft_gate *const *weft__serve_gates_list(weft_serve_gates *self, const weft_gate *const *others);
/* What they have let pass and refused so far. */
void weft__serve_gates_counts(const weft_serve_gates *self, weft_gate_counts *ret);
/* Warn of patterns that no method of the service is like. */
void weft__serve_gates_warn(const weft_serve_gates *self, const weft_app *app, weft_service *service);
/* For weft_hub_host.path. */
int weft__serve_gates_path(weft_serve_gates *self, const weft_identity *who, const char *method, int64_t *ret_wait_ms);
/* The largest messages on connections of this URL, which speak opts->dialect at first. */
void weft__serve_gates_limit(const weft_serve_gates *self, const char *url, weft_listen_opts *opts);

#endif
