/* weft hubs: the hubs that a person works with, and one list of what waits in all of them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "clock.h"
#include "failure.h"
#include "hub_call.h"
#include "hubs_file.h"
#include "subcommand.h"
#include "table.h"

/* One that does not answer must not hold up the others for long. */
#define ASK_MS 3000

/* ---- add, remove ---- */

/* The name is used in other folders too. */
static weft_exit keep_path(const weft_app *app, const char *file, char ret[WEFT_HUBS_PATH + 1]) {
    char path[PATH_MAX];
    if (!file)
        return WEFT_DONE;
    if (!realpath(file, path))
        return weft__fail(app, WEFT_USAGE, NULL, "%s: %s", file, weft_strerror(-errno));
    if (strlen(path) > WEFT_HUBS_PATH)
        return weft__fail(app, WEFT_USAGE, NULL, "%s: %s", file, weft_strerror(-ENAMETOOLONG));
    snprintf(ret, WEFT_HUBS_PATH + 1, "%.*s", WEFT_HUBS_PATH, path);
    return WEFT_DONE;
}

/* What a name does not stand for is not taken in silence. */
static weft_exit check_kept(const weft_app *app) {
    const weft_reach *reach = &app->reach;
    const char *other = reach->cert       ? "cert"
                        : reach->key      ? "key"
                        : reach->key_file ? "key-file"
                        : reach->key_id   ? "key-id"
                        : reach->insecure ? "insecure"
                                          : NULL;
    return other ? weft__misused(app, "--%s is not kept with a name; --token-file and --cacert are", other) : WEFT_DONE;
}

static weft_exit add_hub(weft_app *app) {
    const char *name = app->args[0], *url = app->args[1];
    weft_hub_rows *rows = weft__zalloc(NULL, sizeof *rows);
    weft_url parsed;
    if (!rows)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    weft_exit status = check_kept(app);
    if (status == WEFT_DONE && !weft__hubs_is_name(name))
        status = weft__misused(app, "a name has 1 to %d letters, digits, \"-\" and \"_\"", WEFT_HUBS_NAME);
    else if (status == WEFT_DONE && (!weft__is_url(url) || strlen(url) > WEFT_HUBS_URL))
        status = weft__misused(app, "\"%s\" is not a URL", url);
    else if (status == WEFT_DONE)
        status = weft__url_check(app, url, &parsed);
    if (status == WEFT_DONE)
        weft__url_done(&parsed, NULL);
    if (status == WEFT_DONE)
        status = weft__hubs_load(app, rows);
    if (status == WEFT_DONE && weft__hubs_find(rows, name))
        status = weft__fail(app, WEFT_BUSY, "\"weft hubs remove NAME\" forgets it.", "there is a hub %s already", name);
    else if (status == WEFT_DONE && rows->count == WEFT_HUBS_MAX)
        status = weft__fail(app, WEFT_FAILED, NULL, "there are %d hubs, and no more are possible", WEFT_HUBS_MAX);
    weft_hub_row *row = status == WEFT_DONE ? &rows->rows[rows->count++] : NULL;
    if (row) {
        snprintf(row->name, sizeof row->name, "%s", name);
        snprintf(row->url, sizeof row->url, "%s", url);
        status = keep_path(app, app->reach.token_file, row->token_file);
    }
    if (status == WEFT_DONE)
        status = keep_path(app, app->reach.cacert, row->cacert);
    if (status == WEFT_DONE)
        status = weft__hubs_save(app, rows);
    if (status == WEFT_DONE && app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"name", weft_str(name)}, {"url", weft_str(url)}));
    weft__free(NULL, rows);
    return status;
}

static weft_exit remove_hub(weft_app *app) {
    weft_hub_rows *rows = weft__zalloc(NULL, sizeof *rows);
    weft_exit status = rows ? weft__hubs_load(app, rows) : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    weft_hub_row *row = status == WEFT_DONE ? weft__hubs_find(rows, app->args[0]) : NULL;
    if (status == WEFT_DONE && !row)
        status = weft__fail(app, WEFT_NOT_FOUND, "\"weft hubs\" shows which there are.", "there is no hub %s", app->args[0]);
    if (row) {
        size_t at = (size_t) (row - rows->rows);
        memmove(row, row + 1, (rows->count - at - 1) * sizeof *row);
        rows->count--;
        status = weft__hubs_save(app, rows);
        if (status == WEFT_DONE && app->common.json)
            weft__put_line(&app->out, WEFT_OBJ({"removed", weft_str(app->args[0])}));
    }
    weft__free(NULL, rows);
    return status;
}

/* ---- asking all of them ---- */

typedef struct asked_hub {
    weft_answer status, questions;
    char trouble[160]; /* why it did not answer; "": it did */
} asked_hub;

static void call_hub(weft_peer *peer, const char *method, weft_answer *ret, char *trouble, size_t size) {
    int r = weft_call_with(peer, method, weft_none(), &(weft_call_opts){.timeout_ms = ASK_MS}, ret);
    if (r < 0)
        snprintf(trouble, size, "%s", weft_strerror(r));
    else if (ret->error)
        snprintf(trouble, size, "%s", ret->error->message);
}

/* Nothing is explained: it goes into the list. */
static void ask_hub(weft_app *app, const weft_hub_row *row, asked_hub *ret) {
    weft_target target = {0};
    weft_trouble why = {""};
    weft_peer *peer = NULL;
    *ret = (asked_hub){0};
    const weft_reach typed = app->reach;
    app->reach.token_file = NULL; /* one that was typed is not for all of them */
    weft__hubs_reach(row, &app->reach);
    weft_exit status = weft__target_of(app, row->url, &target);
    app->reach = typed;
    if (status != WEFT_DONE) {
        snprintf(ret->trouble, sizeof ret->trouble, "its token cannot be read");
        weft__target_done(&target);
        return;
    }
    weft_connect_opts opts = weft__target_opts(app, &target, NULL);
    opts.timeout_ms = opts.timeout_ms ? opts.timeout_ms : ASK_MS;
    int r = weft_connect_with(target.url, &opts, &peer, &why);
    if (r < 0)
        snprintf(ret->trouble, sizeof ret->trouble, "%s", *why.text ? why.text : weft_strerror(r));
    if (r >= 0 && weft__target_shows_by_call(&target)) {
        WEFT_ANSWER shown = {0};
        weft_call(peer, "weft.auth", WEFT_OBJ({"token", weft_str(target.token)}), &shown);
    }
    if (r >= 0)
        call_hub(peer, "daemon.status", &ret->status, ret->trouble, sizeof ret->trouble);
    if (r >= 0 && !*ret->trouble)
        call_hub(peer, "question.list", &ret->questions, ret->trouble, sizeof ret->trouble);
    weft_peer_free(peer);
    weft__target_done(&target);
}

static void asked_done(asked_hub *asked) {
    weft_answer_done(&asked->status);
    weft_answer_done(&asked->questions);
}

static size_t count_open(const asked_hub *asked) {
    weft_json list = asked->questions.result ? weft_get(asked->questions.result, "questions") : (weft_json){0};
    size_t n = 0;
    for (weft_iter it = weft_iterate(&list); list.text && weft_next(&it);)
        n += strcmp(weft_get_str(&it.value, "state", ""), "open") == 0;
    return n;
}

static int add_hub_row(weft_table *table, const weft_hub_row *row, const asked_hub *asked) {
    char running[32] = "", waiting[32] = "", questions[32] = "";
    weft_json tasks = asked->status.result ? weft_get(asked->status.result, "tasks") : (weft_json){0};
    if (!*asked->trouble) {
        snprintf(running, sizeof running, "%lld", (long long) weft_get_int(&tasks, "running", 0));
        snprintf(waiting, sizeof waiting, "%lld", (long long) weft_get_int(&tasks, "queued", 0));
        snprintf(questions, sizeof questions, "%zu", count_open(asked));
    }
    const char *cells[] = {row->name, *asked->trouble ? asked->trouble : "ready", running, waiting, questions, row->url};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static int add_questions(weft_table *table, const weft_hub_row *row, const asked_hub *asked) {
    weft_json list = asked->questions.result ? weft_get(asked->questions.result, "questions") : (weft_json){0};
    int r = 0;
    for (weft_iter it = weft_iterate(&list); r >= 0 && list.text && weft_next(&it);) {
        const char *cells[] = {row->name, weft_get_str(&it.value, "id", ""), weft_get_str(&it.value, "taskId", ""),
                               weft_get_str(&it.value, "title", "")};
        if (strcmp(weft_get_str(&it.value, "state", ""), "open") != 0)
            continue;
        for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
            r = weft__table_add(table, cells[i]);
    }
    return r;
}

static void put_hub_json(weft_app *app, const weft_hub_row *row, const asked_hub *asked) {
    bool ok = !*asked->trouble;
    weft__put_line(&app->out, WEFT_OBJ({"name", weft_str(row->name)}, {"url", weft_str(row->url)},
                                       {"error", ok ? weft_none() : weft_str(asked->trouble)},
                                       {"status", ok ? weft_copy(asked->status.result) : weft_none()},
                                       {"questions", ok ? weft_copy(asked->questions.result) : weft_none()}));
}

static weft_exit show_hubs(weft_app *app, bool inbox) {
    static const char *const heads[] = {"HUB", "STATE", "RUNNING", "WAITING", "QUESTIONS", "URL", NULL};
    static const char *const inbox_heads[] = {"HUB", "QUESTION", "TASK", "WHAT", NULL};
    weft_hub_rows *rows = weft__zalloc(NULL, sizeof *rows);
    weft_table table = {.heads = inbox ? inbox_heads : heads};
    weft_exit status = rows ? weft__hubs_load(app, rows) : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    size_t open = 0;
    int r = 0;
    for (size_t i = 0; status == WEFT_DONE && r >= 0 && i < rows->count; i++) {
        asked_hub asked;
        ask_hub(app, &rows->rows[i], &asked);
        open += count_open(&asked);
        if (app->common.json)
            put_hub_json(app, &rows->rows[i], &asked);
        else
            r = (inbox ? add_questions : add_hub_row)(&table, &rows->rows[i], &asked);
        if (inbox && *asked.trouble)
            weft__warn(app, "%s: %s", rows->rows[i].name, asked.trouble);
        asked_done(&asked);
    }
    if (status == WEFT_DONE && r >= 0 && !app->common.json) {
        if (inbox ? open : rows->count)
            weft__table_put(&table, &app->out);
        else
            fputs(rows->count ? "nothing waits for an answer\n" : "there are no hubs; add one: weft hubs add NAME URL\n",
                  app->err.file);
        if (inbox && open && app->err.terminal)
            fputs("Answer: weft answer --url HUB QUESTION allow|deny\n", app->err.file);
    }
    weft__table_done(&table);
    weft__free(NULL, rows);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : status;
}

static weft_exit list_hubs(weft_app *app) {
    return show_hubs(app, false);
}

static weft_exit show_inbox(weft_app *app) {
    return show_hubs(app, true);
}

/* ---- the verb ---- */

static const weft_subcommand subcommands[] = {
    {"list", NULL, NULL, 0, 0, list_hubs, .help = "the hubs that have a name here, and how they are"},
    {"inbox", NULL, NULL, 0, 0, show_inbox, .help = "what waits for an answer, at every hub"},
    {"add", NULL, "give a name and a URL", 2, 2, add_hub, .usage = "NAME URL", .help = "give a hub a name"},
    {"remove", NULL, "a name", 1, 1, remove_hub, .usage = "NAME", .help = "forget a name"},
    {0},
};

static weft_exit run_hubs(weft_app *app) {
    return weft__subcommand_run(app);
}

static const char *const examples[] = {
    "weft hubs add work wss://hub.example:8443/ws --token-file ~/work.token",
    "give a hub a name; its token stays in that file",
    "weft hubs add home wss://home:8443/ws --token-file token --cacert ca.pem",
    "whose certificate your own CA has signed",
    "weft hubs",
    "which hubs you named, and what runs and waits in each",
    "weft hubs remove work",
    "forget the name; the token file stays",
    "weft hubs inbox",
    "the questions of all of them in one list",
    "weft answer --url work question-0007 allow",
    "a name stands for a URL wherever --url is an option",
    NULL,
};

const weft_verb weft__hubs_verb = {
    .name = "hubs",
    .help = "work with several hubs: name them, see what waits for you in all",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "The names are kept below $XDG_STATE_HOME/weft (~/.local/state/weft).\n",
    .settings_size = 1,
    .reaches = true,
    .run = run_hubs,
};
