/* The methods of the JSON-RPC 2.0 specification's section 7, and two more, on any number of endpoints: something to check
 * other people's clients with.
 *
 *     spec-server [--token T] [--tls-cert FILE --tls-key FILE [--tls-ca FILE]] [--any-host] URL... */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

/* A number keeps being an integer as long as it can. */
static weft_val number(double value) {
    return value > -9e15 && value < 9e15 && value == (double) (int64_t) value ? weft_int((int64_t) value) : weft_num(value);
}

struct two {
    double minuend, subtrahend;
};
static const weft_param subtract_params[] = {
    WEFT_MUST(struct two, minuend, num, "from this"),
    WEFT_MUST(struct two, subtrahend, num, "take this"),
    WEFT_END(struct two),
};

static int subtract(weft_req *req, const weft_json *params, void *ctx) {
    const struct two *two = weft_req_params(req); /* a request with other params has been refused already */
    (void) params;
    (void) ctx;
    return weft_reply(req, number(two->minuend - two->subtrahend));
}

struct pair {
    double a, b;
};
static const weft_param add_params[] = {
    WEFT_MUST(struct pair, a, num, "one number"),
    WEFT_MUST(struct pair, b, num, "and another"),
    WEFT_END(struct pair),
};

static int add(weft_req *req, const weft_json *params, void *ctx) {
    const struct pair *pair = weft_req_params(req);
    (void) params;
    (void) ctx;
    return weft_reply(req, number(pair->a + pair->b));
}

static int sum(weft_req *req, const weft_json *params, void *ctx) {
    double total = 0;
    (void) ctx;
    for (weft_iter it = weft_iterate(params); weft_next(&it);) {
        if (weft_typeof(&it.value) != WEFT_NUMBER)
            return weft_refuse(req, WEFT_INVALID_PARAMS, "every item must be a number", "invalidParams");
        total += weft_num_of(&it.value, 0);
    }
    return weft_reply(req, number(total));
}

static int get_data(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    (void) ctx;
    return weft_reply(req, WEFT_ARR(weft_str("hello"), weft_int(5)));
}

/* What comes as a notification needs no answer; called as a method these answer null. */
static int heard(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    (void) ctx;
    return weft_reply(req, weft_null());
}

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_json value = weft_typeof(params) == WEFT_OBJECT ? weft_get(params, "s") : weft_at(params, 0);
    return weft_reply(req, weft_copy(&value));
}

static const weft_method methods[] = {
    {"subtract", subtract, subtract_params, .help = "the difference of two numbers"},
    {"sum", sum, .help = "the sum of any number of numbers"},
    {"get_data", get_data, .help = "always [\"hello\", 5]"},
    {"update", heard, .help = "takes anything"},
    {"notify_hello", heard, .help = "takes anything"},
    {"notify_sum", heard, .help = "takes anything"},
    {"echo", echo, .help = "params[0], or params.s when they are named"},
    {"add", add, add_params, .help = "the sum of two numbers"},
    {0},
};

typedef struct settings {
    weft_listen_opts listen;
    weft_token tokens[2];
    const char *hosts[2];
    char **urls;
} settings;

/* The value behind an option, or NULL. */
static const char *value_of(char ***at, const char *name) {
    if (strcmp(**at, name) != 0 || !(*at)[1])
        return NULL;
    return *++*at;
}

/* 0, or -1 when something is not understood. Options come first. */
static int read_arguments(char **argv, settings *ret) {
    char **at = argv + 1;
    const char *value;
    for (; *at && strncmp(*at, "--", 2) == 0; at++) {
        if (strcmp(*at, "--any-host") == 0)
            ret->hosts[0] = "*", ret->listen.hosts = ret->hosts;
        else if ((value = value_of(&at, "--token")))
            ret->tokens[0] = (weft_token){.token = value, .name = "spec"}, ret->listen.tokens = ret->tokens;
        else if ((value = value_of(&at, "--tls-cert")))
            ret->listen.tls.cert = value;
        else if ((value = value_of(&at, "--tls-key")))
            ret->listen.tls.key = value;
        else if ((value = value_of(&at, "--tls-ca")))
            ret->listen.tls.ca = value;
        else
            return -1;
    }
    ret->urls = at;
    return *at ? 0 : -1;
}

static void on_note(weft_server *server, const char *line, void *data) {
    (void) server;
    (void) data;
    fprintf(stderr, "spec-server: %s\n", line);
}

static int serve(weft_loop *loop, weft_service *service, const settings *how) {
    WEFT_AUTO(weft_server) server = NULL;
    int r = weft_server_new(loop, &(weft_server_opts){.service = service, .on_note = on_note}, &server);
    for (char **url = how->urls; *url && r >= 0; url++) {
        r = weft_server_listen(server, *url, &how->listen);
        if (r < 0)
            fprintf(stderr, "spec-server: %s\n", weft_server_trouble(server));
    }
    for (size_t i = 0; r >= 0 && weft_server_url(server, i); i++)
        fprintf(stderr, "listening on %s\n", weft_server_url(server, i));
    return r < 0 ? r : weft_server_run(server);
}

int main(int argc, char **argv) {
    settings how = {0};
    WEFT_AUTO(weft_loop) loop = NULL;
    weft_service *service = NULL;
    (void) argc;
    if (read_arguments(argv, &how) < 0) {
        fprintf(stderr,
                "usage: spec-server [--token T] [--tls-cert FILE --tls-key FILE [--tls-ca FILE]] [--any-host] URL...\n");
        return 2;
    }
    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods, .title = "spec-server", .version = WEFT_VERSION},
                             &service);
    if (r >= 0)
        r = serve(loop, service, &how);
    weft_service_unref(service);
    return r < 0;
}
