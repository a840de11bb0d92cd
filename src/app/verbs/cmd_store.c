/* weft store copy: a journal from a file into a database, with its positions. */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "copy.h"
#include "failure.h"
#include "subcommand.h"

#define FROM "sqlite:"

static weft_exit fail_usage(weft_app *app, const char *what) {
    return weft__fail(app, WEFT_USAGE, "weft store copy sqlite:.weft/weft.db postgresql://weft@db.example.com/weft", "%s",
                      what);
}

static weft_exit copy_journal(weft_app *app) {
    const char *from = app->args[0], *to = app->args[1];
    char why[WEFT_STORE_WHY] = "";
    weft_copied copied = {0};
    if (strncmp(from, FROM, strlen(FROM)) != 0 || !from[strlen(FROM)])
        return fail_usage(app, "what is copied must be sqlite:PATH");
    if (weft__database_refused(to))
        return fail_usage(app, weft__database_refused(to));
    weft_store_opts source = {.path = from + strlen(FROM), .check = WEFT_CHECK_ALWAYS}, target = {.url = to};
    int r = weft__store_copy(&source, &target, &copied, why);
    if (r < 0)
        return weft__fail(app, r == -EBUSY ? WEFT_BUSY : WEFT_FAILED, r == -EBUSY ? "weft stop" : NULL, "%s",
                          *why ? why : weft_strerror(r));
    if (app->common.json)
        weft__put_line(&app->out,
                       WEFT_OBJ({"events", weft_int((int64_t) copied.events)},
                                {"documents", weft_int((int64_t) copied.documents)}, {"epoch", weft_str(copied.epoch)}));
    else
        fprintf(app->err.file,
                "copied %llu events and %llu documents, epoch %s\n"
                "Both journals have the same positions now. Serve only one of them:\n"
                "    weft config set store.kind postgres\n"
                "    weft config set store.url URL\n",
                (unsigned long long) copied.events, (unsigned long long) copied.documents, copied.epoch);
    return WEFT_DONE;
}

static const weft_subcommand subcommands[] = {
    {"copy", NULL, "from where, and to where?", 2, 2, copy_journal, .usage = "sqlite:PATH postgresql://USER@HOST/NAME",
     .help = "copy a journal from a file into a database"},
    {0},
};

static weft_exit run_store(weft_app *app) {
    return weft__subcommand_run(app);
}

static const char *const examples[] = {
    "weft store copy sqlite:.weft/weft.db postgresql://weft@db.example.com/weft",
    "move this project's journal to PostgreSQL",
    NULL,
};

const weft_verb weft__store_verb = {
    .name = "store",
    .help = "move a journal from a file to PostgreSQL",
    .subcommands = subcommands,
    .examples = examples,
    .about =
        "Stop the daemon first (\"weft stop\"). The database must have no events yet. Epoch, positions, keys and documents\n"
        "stay the same, so clients go on where they were. The file stays as it is.\n",
    .run = run_store,
};
