/* measured_echo [--measure] URL...: an echo server on libweft, with or without the figures that a service can keep and those
 * of the loop. The difference is what metrics cost. */
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "clock.h"
#include "loop.h"

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_json value = weft_typeof(params) == WEFT_OBJECT ? weft_get(params, "s") : weft_at(params, 0);
    return weft_reply(req, weft_copy(&value));
}

static const weft_method methods[] = {{"echo", answer_echo}, {0}};

static int64_t steady_us(void *ctx) {
    (void) ctx;
    return weft__clock_ns() / 1000;
}

int main(int argc, char **argv) {
    bool measure = argc > 1 && strcmp(argv[1], "--measure") == 0;
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_service_opts opts = {.methods = methods, .measure = measure, .now_us = steady_us};
    int r = weft_loop_new(NULL, &loop);
    if (r >= 0 && measure)
        r = weft__loop_measure(loop);
    if (r >= 0)
        r = weft_service_new(&opts, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service}, &server);
    for (char **url = argv + 1 + measure; r >= 0 && *url; url++)
        r = weft_server_listen(server, *url, NULL);
    if (r >= 0)
        r = weft_loop_run(loop);
    fprintf(stderr, "measured_echo: %s\n", weft_strerror(r));
    return 1;
}
