/* The program: finds the verb, reads its options, runs it. What verbs there are is wiring.c's business. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "app.h"
#include "failure.h"
#include "process.h"
#include "subcommand.h"

static weft_exit unknown_verb(const weft_app *app, const char *name) {
    weft_suggestion suggestion = {.typed = name};
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        weft__suggest(&suggestion, (*verb)->name);
    if (*name == '-')
        return weft__misused(app, "there is no option %s before the verb", name);
    if (suggestion.best)
        return weft__misused(app, "there is no verb \"%s\"; did you mean \"%s\"?", name, suggestion.best);
    return weft__misused(app, "there is no verb \"%s\"", name);
}

/* Of the subcommand that is named, if there is one. A verb with a usage of its own also takes other words. */
static weft_exit print_verb_help(const weft_app *app) {
    const weft_verb *verb = app->verb;
    const weft_subcommand *subcommand = app->arg_count ? weft__subcommand_find(verb, app->args[0]) : NULL;
    if (app->arg_count && !subcommand && verb->subcommands && !verb->usage)
        return weft__subcommand_unknown(app, verb, app->args[0]);
    if (subcommand)
        weft__help_subcommand(app->out.file, verb, subcommand);
    else
        weft__help_verb(app->out.file, verb);
    return WEFT_DONE;
}

static weft_exit run_verb(weft_app *app, char **argv) {
    app->settings = weft__zalloc(NULL, app->verb->settings_size + 1);
    if (!app->settings)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    weft_exit status = weft__options_read(app, argv);
    if (status == WEFT_DONE && app->common.help)
        status = print_verb_help(app);
    else if (status == WEFT_DONE)
        status = app->verb->run(app);
    weft__free(NULL, app->settings);
    return status;
}

/* Data that did not arrive is a failure, also when everything else went well. */
static weft_exit close_output(const weft_app *app, weft_exit status) {
    if (fflush(app->out.file) == 0 && !ferror(app->out.file))
        return status;
    return status ? status : weft__fail(app, WEFT_FAILED, NULL, "cannot write to standard output");
}

/* exit() would wait for the threads of a resolver that does not answer, for as long as that takes. All of ours is closed and
 * written; a sanitizer still has something to say. */
static int leave_program(weft_exit status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return (int) status;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
    return (int) status;
#endif
#endif
    fflush(NULL);
    _exit((int) status);
}

static const weft_inner *inner_find(const char *name) {
    for (const weft_inner *inner = weft__inner; inner->name; inner++)
        if (strcmp(inner->name, name) == 0)
            return inner;
    return NULL;
}

/* A standard stream may be closed ("weft status >&-"). Its number would then go to the next socket, and what is printed into
 * that socket. A file that can only be used the other way round takes its place: reading or writing fails, as it did. */
static void fill_standard_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv) {
    static const char *const aliases[][2] = {
        {"-h", "help"}, {"--help", "help"}, {"-V", "version"}, {"--version", "version"}};
    const weft_inner *inner = argc > 1 ? inner_find(argv[1]) : NULL;
    if (inner)
        return inner->main(argc - 1, argv + 1);
    fill_standard_streams();
    weft__process_remember();
    weft_app app = {.out = weft__screen(stdout), .err = weft__screen(stderr), .layout = &weft__layout_weft};
    if (argc < 2) {
        weft__help_first(app.out.file);
        return leave_program(close_output(&app, WEFT_DONE));
    }
    const char *name = argv[1];
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(name, aliases[i][0]) == 0)
            name = aliases[i][1];
    app.verb = weft__verb_find(name);
    if (!app.verb)
        return (int) unknown_verb(&app, name);
    return leave_program(close_output(&app, run_verb(&app, argv + 2)));
}
