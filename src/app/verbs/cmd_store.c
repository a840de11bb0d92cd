/* weft store copy: a journal from a file into a database or back, with its positions. */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "copy.h"
#include "failure.h"
#include "progress.h"
#include "subcommand.h"
#include "trust.h"

#define FILE_IS "sqlite:"
#define EVERY_MS 200

static weft_exit fail_usage(weft_app *app, const char *what) {
    return weft__fail(app, WEFT_USAGE, "weft store copy sqlite:.weft/weft.db postgresql://weft@db.example.com/weft", "%s",
                      what);
}

typedef struct drawing {
    const weft_app *app;
    int64_t began_ns, drawn_ns;
} drawing;

static void draw_rows(void *ctx, uint64_t done, uint64_t of) {
    drawing *self = ctx;
    char note[64];
    int64_t now = weft__clock_ns();
    if (!of || now - self->drawn_ns < (int64_t) EVERY_MS * 1000000)
        return;
    self->drawn_ns = now;
    snprintf(note, sizeof note, "%llu of %llu", (unsigned long long) done, (unsigned long long) of);
    weft__progress_draw(self->app, (double) done / (double) of, (now - self->began_ns) / 1000000, note);
}

/* A file that becomes this project's journal is put on record, as if the hub had made it. */
static int copy_to_path(weft_app *app, const weft_store_opts *from, const weft_store_opts *to, weft_copy_progress progress,
                        weft_copied *ret, char *why) {
    char epoch[WEFT_EPOCH + 1], trouble[WEFT_TRUST_WHY];
    bool ours =
        strcmp(to->path, app->layout->store) == 0 && weft__trust_open_begin(app->layout, to->path, epoch, trouble) >= 0;
    int r = weft__store_copy_back(from, to, progress, ret, why);
    if (ours)
        weft__trust_open_end(app->layout, to->path, r < 0 ? NULL : ret->epoch, trouble);
    return r;
}

static void tell_copied(weft_app *app, const weft_copied *copied, bool back) {
    if (app->common.json) {
        weft__put_line(&app->out,
                       WEFT_OBJ({"events", weft_int((int64_t) copied->events)},
                                {"documents", weft_int((int64_t) copied->documents)}, {"epoch", weft_str(copied->epoch)}));
        return;
    }
    fprintf(app->err.file,
            "copied %llu events and %llu documents, epoch %s\n"
            "Both journals have the same positions now. Serve only one of them:\n",
            (unsigned long long) copied->events, (unsigned long long) copied->documents, copied->epoch);
    fputs(back ? "    weft config set store.kind sqlite\n"
               : "    weft config set store.kind postgres\n    weft config set store.url URL\n",
          app->err.file);
}

static const char *file_of(const char *arg) {
    bool is = strncmp(arg, FILE_IS, strlen(FILE_IS)) == 0 && arg[strlen(FILE_IS)];
    return is ? arg + strlen(FILE_IS) : NULL;
}

static weft_exit copy_journal(weft_app *app) {
    const char *from = file_of(app->args[0]), *to = file_of(app->args[1]);
    const char *url = from ? app->args[1] : app->args[0], *path = from ? from : to;
    char why[WEFT_STORE_WHY] = "";
    weft_copied copied = {0};
    drawing self = {.app = app, .began_ns = weft__clock_ns(), .drawn_ns = weft__clock_ns()};
    weft_copy_progress progress = {draw_rows, &self};
    if ((from != NULL) == (to != NULL))
        return fail_usage(app, "one of both must be sqlite:PATH, and the other a database");
    if (weft__database_refused(url))
        return fail_usage(app, weft__database_refused(url));
    weft_store_opts file = {.path = path, .check = WEFT_CHECK_ALWAYS}, database = {.url = url};
    int r = from ? weft__store_copy(&file, &database, progress, &copied, why)
                 : copy_to_path(app, &database, &file, progress, &copied, why);
    weft__progress_clear(app);
    if (r < 0)
        return weft__fail(app, r == -EBUSY ? WEFT_BUSY : WEFT_FAILED, r == -EBUSY ? "weft stop" : NULL, "%s",
                          *why ? why : weft_strerror(r));
    tell_copied(app, &copied, to != NULL);
    return WEFT_DONE;
}

static const weft_subcommand subcommands[] = {
    {"copy", NULL, "from where, and to where?", 2, 2, copy_journal, .usage = "FROM TO",
     .help = "copy a journal from a file into a database, or back"},
    {0},
};

static weft_exit run_store(weft_app *app) {
    return weft__subcommand_run(app);
}

static const char *const examples[] = {
    "weft store copy sqlite:.weft/weft.db postgresql://weft@db.example.com/weft",
    "move this project's journal to PostgreSQL",
    "weft store copy postgresql://weft@db.example.com/weft sqlite:.weft/weft.db",
    "and back",
    NULL,
};

const weft_verb weft__store_verb = {
    .name = "store",
    .help = "move a journal from a file to PostgreSQL, or back",
    .subcommands = subcommands,
    .examples = examples,
    .about = "One of both is sqlite:PATH, the other postgresql://USER@HOST/NAME. Stop the\n"
             "hub first (\"weft stop\"). Where it goes there must be no events yet. Epoch,\n"
             "positions, keys and documents stay the same, so clients go on where they were.\n"
             "What is copied stays as it is.\n",
    .run = run_store,
};
