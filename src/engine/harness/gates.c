/* Running gates: a name of the configuration becomes a command, and what that printed becomes findings. */
#include "gates.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "find_program.h"
#include "list.h"
#include "utf8.h"
#include "utf8_stream.h"

struct weft_gates {
    weft_commands *commands;
    const weft_alloc *alloc;
    weft_doc *configured; /* NULL: none */
    int64_t within_ms;
    weft_link runs;
};

typedef struct gate_run {
    weft_link link;
    const weft_alloc *alloc;
    uint64_t id;
    weft_gate_done *done;
    void *ctx;
    char folder[];
} gate_run;

/* ---- command lines ---- */

void weft__command_line_free(char **line, const weft_alloc *alloc) {
    for (size_t i = 0; line && line[i]; i++)
        weft__free(alloc, line[i]);
    weft__free(alloc, line);
}

int weft__command_line(const weft_json *line, const weft_alloc *alloc, char ***ret) {
    size_t count = weft_typeof(line) == WEFT_ARRAY ? weft_count(line) : 0, i = 0;
    if (!count || count > WEFT_COMMANDS_ARGS)
        return -EINVAL;
    char **made = weft__zalloc(alloc, (count + 1) * sizeof *made);
    int r = made ? 0 : -ENOMEM;
    for (weft_iter it = weft_iterate(line); r >= 0 && weft_next(&it); i++) {
        weft_bytes text;
        r = weft_typeof(&it.value) == WEFT_STRING ? weft_bytes_of(&it.value, &text) : -EINVAL;
        if (r >= 0 && memchr(text.data, '\0', text.len))
            r = -EINVAL;
        if (r >= 0 && !(made[i] = weft__strndup(alloc, text.data, text.len)))
            r = -ENOMEM;
    }
    if (r < 0)
        weft__command_line_free(made, alloc);
    else
        *ret = made;
    return r;
}

/* ---- findings ---- */

/* The end of what was printed, from the beginning of a line where there is one. */
weft_bytes weft__end_of_output(const weft_command_report *report) {
    weft_bytes text = report->tail.len ? report->tail : report->head;
    size_t skip = text.len > WEFT_GATE_OUTPUT ? text.len - WEFT_GATE_OUTPUT : 0;
    const char *line = skip ? memchr(text.data + skip, '\n', text.len - skip) : NULL;
    if (line && (size_t) (line - text.data) + 1 < text.len)
        skip = (size_t) (line - text.data) + 1;
    while (skip < text.len && skip && weft__utf8_follows((unsigned char) text.data[skip]))
        skip++;
    return (weft_bytes){text.data + skip, text.len - skip};
}

/* Without colours and other control characters but line ends and tabs; what is no UTF-8 is shown as "?". In ret, which has
 * room for as many bytes. */
size_t weft__plain_output(weft_bytes text, char *ret) {
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char) text.data[i];
        if (c == 0x1b && i + 1 < text.len && text.data[i + 1] == '[') {
            for (i += 2; i < text.len && ((unsigned char) text.data[i] < '@' || (unsigned char) text.data[i] > '~'); i++)
                ;
            continue;
        }
        if (c >= 0x80) {
            size_t len = weft__utf8_len(text.data + i, text.len - i);
            if (len)
                memcpy(ret + n, text.data + i, len);
            else
                ret[n] = '?';
            n += len ? len : 1;
            i += len ? len - 1 : 0;
        } else if (c == '\n' || c == '\t' || (c >= ' ' && c != 0x7f))
            ret[n++] = (char) c;
    }
    return n;
}

static int read_findings(const gate_run *run, const weft_command_report *report, weft_diagnostics *ret) {
    ret->arena.alloc = run->alloc;
    int r = weft__diagnostics_read(ret, report->head, run->folder);
    return r < 0 || !report->tail.len ? r : weft__diagnostics_read(ret, report->tail, run->folder);
}

static void tell_gate(const gate_run *run, const weft_command_report *report) {
    char *text = weft__alloc(run->alloc, WEFT_GATE_OUTPUT + 1);
    weft_diagnostics *found = weft__zalloc(run->alloc, sizeof *found);
    int r = text && found ? read_findings(run, report, found) : -ENOMEM;
    weft_gate_report outcome = {.r = r < 0 ? r : report->r,
                                .passed = r >= 0 && report->r == 0 && report->exit_code == 0,
                                .exit_code = report->exit_code,
                                .ms = report->ms,
                                .diagnostics = r < 0 ? NULL : found};
    if (r >= 0)
        outcome.output = (weft_bytes){text, weft__plain_output(weft__end_of_output(report), text)};
    run->done(run->ctx, &outcome);
    if (found)
        weft__diagnostics_done(found);
    weft__free(run->alloc, found);
    weft__free(run->alloc, text);
}

static void on_gate_end(void *ctx, const weft_command_report *report) {
    gate_run *run = ctx;
    weft__list_remove(&run->link);
    tell_gate(run, report);
    weft__free(run->alloc, run);
}

/* ---- running ---- */

static weft_json find_gate(const weft_gates *self, const char *name) {
    weft_json none = {0};
    return self->configured ? weft_get(weft_doc_root(self->configured), name) : none;
}

/* As it is written: whoever links out of the project, or into it, is asked when the gate runs. */
static bool lies_beneath(const char *path, const char *folder, size_t path_len) {
    size_t len = strlen(folder);
    return path_len >= len && strncmp(path, folder, len) == 0 && (path_len == len || path[len] == '/');
}

/* A PATH with a folder of the project (its node_modules/.bin, its virtual environment) finds what an agent installs there.
 */
static bool searches_beneath(const char *path, const char *folder) {
    while (path && *path) {
        size_t len = strcspn(path, ":");
        if (lies_beneath(path, folder, len))
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* With the PATH that its command will have: the hub's. */
static int look_for_program(const char *program, const char *folder) {
    char file[PATH_MAX];
    const char *path = getenv("PATH");
    bool named = strchr(program, '/') != NULL;
    if (named ? *program != '/' || lies_beneath(program, folder, strlen(program)) : searches_beneath(path, folder))
        return 0;
    return weft__find_program(program, path, file, sizeof file);
}

int weft__gates_check(const weft_gates *self, const char *gate, const char *folder, char *ret, size_t size) {
    weft_json line = find_gate(self, gate);
    weft_iter it = line.text ? weft_iterate(&line) : (weft_iter){0};
    if (!line.text)
        return -ESRCH;
    const char *program = weft_next(&it) ? weft_str_of(&it.value, "") : "";
    snprintf(ret, size, "%s", program);
    return look_for_program(program, folder);
}

static int check_gate(void *ctx, const char *gate, const char *folder) {
    char program[PATH_MAX];
    return weft__gates_check(ctx, gate, folder, program, sizeof program);
}

static int run_gate(void *ctx, const char *gate, const char *folder, weft_gate_done *done, void *done_ctx,
                    uint64_t *ret_id) {
    weft_gates *self = ctx;
    weft_json line = find_gate(self, gate);
    char **argv = NULL;
    if (!line.text)
        return -ENOENT;
    size_t size = strlen(folder) + 1;
    gate_run *run = weft__zalloc(self->alloc, sizeof *run + size);
    int r = run ? weft__command_line(&line, self->alloc, &argv) : -ENOMEM;
    if (r >= 0) {
        *run = (gate_run){.alloc = self->alloc, .done = done, .ctx = done_ctx};
        memcpy(run->folder, folder, size);
        weft_command_order order = {.argv = (const char *const *) argv,
                                    .folder = folder,
                                    .within_ms = self->within_ms,
                                    .on_end = on_gate_end,
                                    .ctx = run};
        r = weft__commands_run(self->commands, &order, &run->id);
        weft__command_line_free(argv, self->alloc);
    }
    if (r < 0) {
        weft__free(self->alloc, run);
        return r;
    }
    weft__list_push(&self->runs, &run->link);
    *ret_id = run->id;
    return 0;
}

static void cancel_gate(void *ctx, uint64_t id) {
    const weft_gates *self = ctx;
    weft__commands_cancel(self->commands, id);
}

weft_gate_runner weft__gates_runner(weft_gates *self) {
    return (weft_gate_runner){.ctx = self, .check = check_gate, .run = run_gate, .cancel = cancel_gate};
}

/* ---- life ---- */

int weft__gates_new(weft_commands *commands, const weft_alloc *alloc, weft_gates **ret) {
    weft_gates *self = weft__zalloc(alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->commands = commands;
    self->alloc = alloc;
    self->within_ms = WEFT_GATE_MS;
    weft__list_init(&self->runs);
    *ret = self;
    return 0;
}

int weft__gates_set(weft_gates *self, const weft_json *configured, int64_t within_ms) {
    weft_doc *copy = NULL;
    int r = configured && configured->text ? weft_doc_keep(configured, self->alloc, &copy) : 0;
    if (r < 0)
        return r;
    weft_doc_free(self->configured);
    self->configured = copy;
    self->within_ms = within_ms > 0 ? within_ms : WEFT_GATE_MS;
    return 0;
}

const weft_json *weft__gates_configured(const weft_gates *self) {
    return self->configured ? weft_doc_root(self->configured) : NULL;
}

weft_gates *weft__gates_free(weft_gates *self) {
    if (!self)
        return NULL;
    while (!weft__list_empty(&self->runs)) {
        gate_run *run = WEFT_CONTAINER(self->runs.next, gate_run, link);
        weft__list_remove(&run->link);
        run->done(run->ctx, &(weft_gate_report){.r = -ECANCELED});
        weft__free(self->alloc, run);
    }
    weft_doc_free(self->configured);
    return weft__free(self->alloc, self);
}
