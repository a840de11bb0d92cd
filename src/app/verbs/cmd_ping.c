/* weft ping: is somebody there, and how long does a round trip take? */
#include "app.h"
#include "clock.h"
#include "connection.h"
#include "failure.h"

typedef struct ping {
    int64_t count; /* 0: once */
} ping;

typedef struct times {
    int64_t answered;
    double least, most, sum;
} times;

static void add_time(times *all, double ms) {
    all->least = all->answered == 0 || ms < all->least ? ms : all->least;
    all->most = ms > all->most ? ms : all->most;
    all->sum += ms;
    all->answered++;
}

static void put_round_trip(const weft_app *app, const weft_connection *connection, int64_t number, double ms,
                           bool knows_ping) {
    if (app->common.json) {
        weft__put_line(&app->out, WEFT_OBJ({"url", weft_str(connection->target.shown)}, {"number", weft_int(number)},
                                           {"ms", weft_num(ms)}, {"ping", weft_bool(knows_ping)}));
        return;
    }
    fputs("answer from ", app->out.file);
    fprintf(app->out.file, "%s in %.3f ms%s\n", connection->target.shown, ms, knows_ping ? "" : " (it has no method ping)");
    fflush(app->out.file);
}

/* An answer is an answer: a server without a method ping says so, and that is a round trip too. */
static weft_exit ping_once(weft_connection *connection, int64_t number, times *all) {
    WEFT_ANSWER answer = {0};
    const weft_app *app = connection->app;
    int64_t begun = weft__clock_ns();
    int r = weft__connection_try(connection, "ping", weft_none(), &answer);
    double ms = (double) (weft__clock_ns() - begun) / 1e6;
    if (r < 0)
        return weft__connection_fail(connection, "ping", r);
    if (answer.error && answer.error->code != WEFT_METHOD_NOT_FOUND)
        return weft__fail_refused(app, "ping", answer.error, NULL);
    add_time(all, ms);
    put_round_trip(app, connection, number, ms, !answer.error);
    return WEFT_DONE;
}

static weft_exit run_ping(weft_app *app) {
    const ping *how = app->settings;
    weft_connection connection = {0};
    times all = {0};
    int64_t count = how->count ? how->count : 1;
    weft_exit status = weft__only_url_check(app);
    if (status == WEFT_DONE)
        status = weft__connection_open(app, &connection);
    for (int64_t i = 1; i <= count && status == WEFT_DONE; i++)
        status = ping_once(&connection, i, &all);
    if (all.answered > 1 && !app->common.json)
        fprintf(app->out.file, "%lld answers, least %.3f ms, mean %.3f ms, most %.3f ms\n", (long long) all.answered,
                all.least, all.sum / (double) all.answered, all.most);
    weft__connection_done(&connection);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(ping, count, number, "count", 'c', "N", "how many times (default 1)"),
    {0},
};

static const char *const examples[] = {
    "weft ping",
    "is the hub of this folder running? Exit status 3: no",
    "weft ping -c 10 ws://127.0.0.1:8080/",
    "ten round trips, and their mean",
    NULL,
};

const weft_verb weft__ping_verb = {
    .name = "ping",
    .help = "see whether an endpoint answers, and how fast",
    .usage = "[URL]",
    .examples = examples,
    .options = options,
    .settings_size = sizeof(ping),
    .reaches = true,
    .run = run_ping,
};
