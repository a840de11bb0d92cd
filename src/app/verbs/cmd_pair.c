/* weft pair: let a phone on the same network in. The hub opens the door and makes the code; here they are shown, and waited
 * for.
 *
 * The link with the code is printed on standard output and nowhere else: it is in no argument, no file and no log. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "failure.h"
#include "hub_call.h"
#include "qr_code.h"
#include "token_life.h"

typedef struct settings {
    const char *url, *address, *name, *scope, *expires;
    int64_t port;
    bool off, no_wait;
} settings;

/* How often the hub is asked whether the device has come. */
#define ASK_MS 500
/* Above and below the code: blank lines, sentences, a link of two lines, the fingerprint, the cursor's line. */
#define ROWS_OF_TEXT 11

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void) number;
    interrupted = 1;
}

/* ---- showing ---- */

/* "AB:CD:...", as browsers show it. */
static void put_fingerprint(FILE *to, const char *hex) {
    for (size_t i = 0; hex[i] && hex[i + 1]; i += 2) {
        if (i == 32)
            fputs("\n      ", to);
        fprintf(to, "%s%c%c", i && i != 32 ? ":" : "", hex[i] >= 'a' ? hex[i] - 32 : hex[i],
                hex[i + 1] >= 'a' ? hex[i + 1] - 32 : hex[i + 1]);
    }
}

/* How many rows the code needs together with what is said about it; 0: no code is shown. */
static int put_code(const weft_app *app, const char *link) {
    weft_buf drawn = {0};
    int rows = 0;
    if (app->err.terminal && weft__qr_draw(link, app->err.colour, &drawn) >= 0) {
        fputc('\n', app->err.file);
        fwrite(weft__buf_head(&drawn), 1, weft__buf_len(&drawn), app->err.file);
        fputc('\n', app->err.file);
        fflush(app->err.file);
        for (size_t i = 0; i < weft__buf_len(&drawn); i++)
            rows += weft__buf_head(&drawn)[i] == '\n';
        rows += ROWS_OF_TEXT;
    }
    weft__buf_done(&drawn, NULL);
    return rows;
}

static void show_start(const weft_app *app, const weft_json *answer) {
    const char *link = weft_get_str(answer, "url", "");
    FILE *to = app->err.file;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer));
        return;
    }
    int rows = put_code(app, link), height = weft__screen_height(&app->err);
    fputs("Scan the code with the phone, or open this address there:\n", to);
    fflush(to);
    fprintf(app->out.file, "%s\n", link);
    fflush(app->out.file);
    fprintf(to, "The phone must be in the same network. Its browser does not know the\n"
                "certificate and asks; go on if it is this one:\n      ");
    put_fingerprint(to, weft_get_str(answer, "fingerprint", ""));
    fprintf(to, "\nIt will be able to: %s. The code works once, for five minutes.\n", weft_get_str(answer, "scopes", ""));
    if (height && height < rows)
        fprintf(
            to,
            "This terminal has %d rows, and the code needs %d with this text: make it\nhigher, or its letters smaller.\n",
            height, rows);
    fflush(to);
}

/* ---- waiting ---- */

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static weft_exit withdraw(weft_connection *connection, const weft_app *app) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(connection, "pair.stop", WEFT_OBJ({"code", weft_bool(true)}), &answer);
    if (status == WEFT_DONE)
        fputs("\nThe code is no longer valid.\n", app->err.file);
    return status ? status : WEFT_INTERRUPTED;
}

static weft_exit tell_paired(const weft_app *app, const weft_json *paired) {
    const char *name = weft_get_str(paired, "name", "");
    weft__say(app, "Paired: %s, at %s.", name, weft_get_str(paired, "address", ""));
    weft__say(app, "  Take that back: %s token revoke %s", program_invocation_name, name);
    weft__say(app, "  No access for any paired device: %s pair --off", program_invocation_name);
    return WEFT_DONE;
}

static weft_exit wait_for_device(weft_connection *connection, const weft_app *app) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    for (;;) {
        WEFT_ANSWER answer = {0};
        if (interrupted)
            return withdraw(connection, app);
        weft_exit status = weft__hub_call(connection, "pair.status", weft_none(), &answer);
        if (status)
            return status;
        weft_json paired = weft_get(answer.result, "paired");
        if (paired.text)
            return tell_paired(app, &paired);
        if (!weft_get_bool(answer.result, "waiting", false))
            return weft__fail(app, WEFT_TOO_LATE, "\"weft pair\" makes another code.", "no device came within five minutes");
        pause_ms(ASK_MS);
    }
}

/* ---- the verb ---- */

static weft_exit close_door(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "pair.stop", weft_none(), &answer);
    if (status == WEFT_DONE && app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else if (status == WEFT_DONE)
        fputs("paired devices cannot connect any more; their tokens stay: weft token list\n", app->err.file);
    return status;
}

static weft_exit pair_device(weft_app *app, int64_t life) {
    const settings *how = app->settings;
    weft_connection connection;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_open(app, how->url, &connection);
    if (status == WEFT_DONE)
        status = weft__hub_call(&connection, "pair.start",
                                WEFT_OBJ({"address", weft_str_or_none(how->address)}, {"name", weft_str_or_none(how->name)},
                                         {"scopes", weft_str_or_none(how->scope)}, {"port", weft_int(how->port)},
                                         {"expiresIn", weft_int(life)}),
                                &answer);
    if (status == WEFT_DONE)
        show_start(app, answer.result);
    if (status == WEFT_DONE && !how->no_wait && !app->common.json)
        status = wait_for_device(&connection, app);
    weft__connection_done(&connection);
    return status;
}

static weft_exit run_pair(weft_app *app) {
    const settings *how = app->settings;
    int64_t life = weft__token_life(how->expires);
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    if (life < 0)
        return weft__misused(app, "--expires: a time such as 12h, 30d or 8w");
    return how->off ? close_door(app) : pair_device(app, life);
}

static const weft_option options[] = {
    WEFT_URL_OPTION(settings),
    WEFT_OPTION(settings, address, text, "address", 'a', "IP",
                "of this machine, by which the phone reaches it (default: found)"),
    WEFT_OPTION(settings, port, number, "port", 'p', "N", "where to listen (default 16443, or one behind it that is free)"),
    WEFT_OPTION(settings, name, text, "name", 'n', "NAME", "of the phone's token (default: as the phone says)"),
    WEFT_OPTION(settings, scope, text, "scope", 0, "SCOPES", "what it may do, separated by commas (default read,work)"),
    WEFT_OPTION(settings, expires, text, "expires", 0, "TIME", "when its token expires: 12h, 30d, 8w (default 90d)"),
    WEFT_OPTION(settings, no_wait, flag, "no-wait", 0, NULL, "do not wait for the phone"),
    WEFT_OPTION(settings, off, flag, "off", 0, NULL, "let no paired device connect; their tokens stay"),
    {0},
};

static const char *const examples[] = {
    "weft pair",
    "show a code; the phone that scans it gets a token of its own",
    "weft pair --scope read --expires 1d",
    "one that may only look, until tomorrow",
    "weft pair --off",
    "paired devices cannot connect any more",
    "weft token revoke phone",
    "end the access of this one",
    NULL,
};

const weft_verb weft__pair_verb = {
    .name = "pair",
    .help = "connect a phone in the same network, by a code that it scans",
    .usage = "",
    .examples = examples,
    .about =
        "Until now the hub listens on this machine alone. This opens a port with TLS for the network, with a certificate\n"
        "made here whose fingerprint is in the code. The code works once, for five minutes. The port stays open for\n"
        "the phone until --off or until the hub stops; with the setting pair.keep it is opened again.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_pair,
};
