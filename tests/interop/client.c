/* A client for the tests with other people's servers: calls one method after the other and prints one line of JSON for each
 * thing that happens.
 *
 *     interop_client [--content-length] [--ca FILE] [--cert FILE] [--key FILE] [--name HOST] [--insecure] [--token T]
 *                    [--no-deflate] [--events] [--timeout MS] [--together | --batch | --cancel | --parts | --notify]
 *                    URL METHOD [PARAMS] METHOD [PARAMS]...
 *
 *     {"result":...}  {"error":{...}}  {"failed":"why"}  {"part":...}  {"notification":"method","params":...}
 *
 * PARAMS begin with [ or {, or are @FILE. --together starts all calls before waiting for any; --batch sends them as one
 * message. The server may call "add" {a, b} and "refuse". Exit status 1 when there is no connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum mode { ONE_BY_ONE, TOGETHER, BATCH, CANCEL, PARTS, NOTIFY };

typedef struct client {
    enum mode mode;
    weft_connect_opts connect;
    int64_t timeout_ms;
    weft_peer *peer;
    long waiting;
} client;

static void print(weft_val value) {
    char *text;
    size_t len;
    if (weft_to_text(value, NULL, &text, &len) < 0)
        return;
    printf("%.*s\n", (int) len, text);
    fflush(stdout);
    weft_text_free(text, NULL);
}

static void print_answer(int r, const weft_answer *answer) {
    if (r < 0)
        print(WEFT_OBJ({"failed", weft_str(weft_strerror(r))}));
    else if (answer->error)
        print(WEFT_OBJ(
            {"error", WEFT_OBJ({"code", weft_int(answer->error->code)}, {"message", weft_str(answer->error->message)},
                               {"data", answer->error->data.text ? weft_copy(&answer->error->data) : weft_none()})}));
    else
        print(WEFT_OBJ({"result", weft_copy(answer->result)}));
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    client *self = ctx;
    (void) peer;
    self->waiting--;
    print_answer(r, answer);
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    (void) peer, (void) ctx;
    print(WEFT_OBJ({"part", weft_copy(part)}));
}

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer, (void) data;
    print(WEFT_OBJ({"notification", weft_str(method)}, {"params", weft_copy(params)}));
}

/* ---- what the server may call ---- */

static int add(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_int(weft_get_int(params, "a", 0) + weft_get_int(params, "b", 0)));
}

static int refuse(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_fail(req, -32099, "no", WEFT_OBJ({"why", weft_str("I am a client")}));
}

static const weft_method methods[] = {{"add", add}, {"refuse", refuse}, {0}};

/* ---- calling ---- */

static int start(client *self, weft_batch *batch, const char *method, weft_val params) {
    weft_call_opts opts = {.on_answer = on_answer, .ctx = self, .timeout_ms = self->timeout_ms};
    int64_t id;
    int r;
    if (self->mode == PARTS)
        opts.on_part = on_part;
    if (self->mode == NOTIFY)
        return weft_notify(self->peer, method, params);
    r = batch ? weft_batch_call(batch, method, params, &opts, &id) : weft_call_start(self->peer, method, params, &opts, &id);
    self->waiting += r >= 0;
    if (r < 0 || self->mode != CANCEL)
        return r;
    r = weft_flush(self->peer, 5000);
    return r < 0 ? r : weft_cancel(self->peer, id);
}

static int wait_for_all(client *self) {
    int r = 1;
    while (self->waiting && r >= 0)
        r = weft_wait(self->peer, -1);
    return r < 0 ? r : 0;
}

static int call_one(client *self, weft_batch *batch, const char *method, weft_val params) {
    WEFT_ANSWER answer = {0};
    if (self->mode != ONE_BY_ONE) {
        int r = start(self, batch, method, params);
        return r < 0 || self->mode != PARTS ? r : wait_for_all(self);
    }
    int r = weft_call_with(self->peer, method, params, &(weft_call_opts){.timeout_ms = self->timeout_ms}, &answer);
    print_answer(r, &answer);
    return 0;
}

static bool is_params(const char *arg) {
    return arg && (*arg == '[' || *arg == '{' || *arg == '@');
}

/* Owned: free(). */
static char *read_params(const char *arg) {
    FILE *file = *arg == '@' ? fopen(arg + 1, "r") : NULL;
    char *text = NULL;
    size_t size = 0;
    if (!file)
        return strdup(arg);
    if (getdelim(&text, &size, '\0', file) < 0)
        text[0] = '\0';
    fclose(file);
    return text;
}

static int call_all(client *self, char **at) {
    weft_batch *batch = NULL;
    int r = self->mode == BATCH ? weft_batch_new(self->peer, &batch) : 0;
    while (*at && r >= 0) {
        const char *method = *at++;
        char *params = is_params(*at) ? read_params(*at++) : NULL;
        r = call_one(self, batch, method, params ? weft_raw(params, strlen(params)) : weft_none());
        free(params);
    }
    if (batch && r >= 0)
        r = weft_batch_send(batch);
    else
        weft_batch_free(batch);
    if (r >= 0)
        r = wait_for_all(self);
    return r < 0 ? r : weft_flush(self->peer, 5000);
}

/* ---- the command line ---- */

static bool read_flag(const char *arg, client *ret) {
    static const struct {
        const char *name;
        enum mode mode;
    } modes[] = {
        {"--together", TOGETHER}, {"--batch", BATCH}, {"--cancel", CANCEL}, {"--parts", PARTS}, {"--notify", NOTIFY}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(arg, modes[i].name) == 0)
            return ret->mode = modes[i].mode, true;
    if (strcmp(arg, "--content-length") == 0)
        return ret->connect.framing = &weft_content_length, true;
    if (strcmp(arg, "--insecure") == 0)
        return ret->connect.tls.insecure = true;
    if (strcmp(arg, "--no-deflate") == 0)
        return ret->connect.no_deflate = true;
    if (strcmp(arg, "--events") == 0)
        return ret->connect.events = true;
    return false;
}

static bool read_value(const char *arg, const char *value, client *ret) {
    const struct {
        const char *name;
        const char **place;
    } values[] = {{"--ca", &ret->connect.tls.ca},
                  {"--cert", &ret->connect.tls.cert},
                  {"--key", &ret->connect.tls.key},
                  {"--name", &ret->connect.tls.server_name},
                  {"--token", &ret->connect.token}};
    for (size_t i = 0; value && i < sizeof values / sizeof values[0]; i++)
        if (strcmp(arg, values[i].name) == 0)
            return *values[i].place = value, true;
    if (value && strcmp(arg, "--timeout") == 0)
        return ret->timeout_ms = strtol(value, NULL, 10), true;
    return false;
}

static char **read_arguments(char **at, client *ret) {
    for (; *at && strncmp(*at, "--", 2) == 0; at++) {
        if (read_flag(*at, ret))
            continue;
        if (!read_value(*at, at[1], ret))
            return NULL;
        at++;
    }
    return at[0] && at[1] ? at : NULL;
}

int main(int argc, char **argv) {
    weft_trouble trouble = {""};
    weft_service *service = NULL;
    client self = {.connect = {.on_notification = on_notification}};
    char **at = argc > 1 ? read_arguments(argv + 1, &self) : NULL;
    if (!at)
        return fprintf(stderr, "usage: see the top of client.c\n"), 2;
    int r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    self.connect.service = service;
    if (r >= 0)
        r = weft_connect_with(at[0], &self.connect, &self.peer, &trouble);
    if (r < 0)
        print(WEFT_OBJ({"failed", weft_str(weft_strerror(r))}, {"trouble", weft_str(trouble.text)}));
    else
        r = call_all(&self, at + 1);
    weft_peer_free(self.peer);
    weft_service_unref(service);
    return r < 0;
}
