/* Checks that wait and run. A check runs the programs of its language one after the other in one folder: the first that is
 * installed and looks at the syntax, and if that found no error the first linter.
 *
 *   waiting ──a place is free──▶ running ──a program has ended──▶ running, with the next one
 *                                        ──the last has ended──▶ over     end_check()
 *   either ──cancelled──▶ over, when its program has gone */
#include "checkers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent_program.h"
#include "check_private.h"
#include "texts.h"

/* A program that does not know some rules may name one of them each time. After so many attempts it runs without any. */
#define ATTEMPTS 4
#define PROGRAMS 2 /* of one check: one for the syntax, one linter */
#define CONFIGURED_FILE "code.txt"

/* What is to be run. */
typedef struct check_step {
    const weft_checker *row;
    char program[PATH_MAX];
    const char *const *argv; /* of the configuration; NULL: the row's */
} check_step;

typedef struct check {
    weft_link link;
    weft_checkers *of;
    uint64_t id;
    weft_check_done *done;
    void *ctx;
    char *code;
    size_t len;
    const char *language;           /* as it was named, or as the configuration names it */
    const weft_checker *configured; /* a row made for it, or NULL */
    check_step steps[PROGRAMS];
    size_t step_count, at;
    int attempts;       /* of this step */
    size_t first_issue; /* of this step */
    const char *ran[PROGRAMS];
    size_t ran_count;
    weft_findings found;
    char folder[PATH_MAX]; /* "": none yet */
    weft_check_program *program;
    bool cancelled, running;
    char why[256];
} check;

struct weft_checkers {
    weft_checkers_opts opts;
    const weft_alloc *alloc;
    char *folder, *project, *guard;
    weft_doc *configured;
    weft_link waiting, running;
    size_t waiting_count, running_count;
    uint64_t next_id;
    weft_later next;
};

/* ---- the end of a check ---- */

static void free_check(check *self) {
    const weft_alloc *alloc = self->of->alloc;
    weft__list_remove(&self->link);
    weft__check_program_free(self->program);
    if (*self->folder)
        weft__check_folder_remove(self->folder);
    weft__arena_done(&self->found.arena);
    weft__free(alloc, self->code);
    weft__free(alloc, self);
}

static bool breaks_rule(const weft_findings *found) {
    for (size_t i = 0; i < found->count; i++)
        for (size_t rule = 0; rule < found->rule_count; rule++)
            if (strcmp(found->issues[i].rule, found->rules[rule].name) == 0)
                return true;
    return false;
}

static void tell_check(check *self, int r) {
    const weft_findings *found = &self->found;
    const char *unsupported[WEFT_CHECK_RULES];
    size_t count = 0;
    for (size_t i = 0; i < found->rule_count; i++)
        if (!found->rules[i].known)
            unsupported[count++] = found->rules[i].name;
    weft_check_result result = {
        .r = r,
        .why = self->why,
        .valid = !found->error && !breaks_rule(found),
        .truncated = found->truncated,
        .issues = found->issues,
        .issue_count = found->count,
        .checkers = self->ran,
        .checker_count = self->ran_count,
        .unsupported = unsupported,
        .unsupported_count = count,
    };
    self->done(self->ctx, &result);
}

static void end_check(check *self, int r) {
    weft_checkers *of = self->of;
    if (self->running)
        of->running_count--;
    else
        of->waiting_count--;
    weft__list_remove(&self->link);
    if (self->cancelled)
        r = -ECANCELED;
    tell_check(self, r);
    free_check(self);
    weft__later(of->opts.loop, &of->next);
}

/* ---- arguments ---- */

/* Those that this row knows, and has not refused. */
static bool takes_rule(const weft_checker *row, const weft_named_rule *rule) {
    return row->rule_prefix && row->is_rule(rule->name) && !rule->refused;
}

static bool put_joined_rules(check *self, const weft_checker *row, const char **list, size_t *count) {
    const weft_findings *found = &self->found;
    char *text = weft__check_text(&self->found.arena, "%s", row->rule_prefix);
    bool any = false;
    for (size_t i = 0; text && i < found->rule_count; i++) {
        if (!takes_rule(row, &found->rules[i]))
            continue;
        text = weft__check_text(&self->found.arena, "%s%s%s", text, any ? "," : "", found->rules[i].name);
        any = true;
    }
    if (any && text)
        list[(*count)++] = text;
    return text != NULL;
}

static bool put_rules(check *self, const weft_checker *row, const char **list, size_t *count) {
    const weft_findings *found = &self->found;
    if (!found->rule_count) {
        if (row->usual)
            list[(*count)++] = row->usual;
        return true;
    }
    if (row->joined)
        return put_joined_rules(self, row, list, count);
    for (size_t i = 0; i < found->rule_count; i++) {
        if (!takes_rule(row, &found->rules[i]))
            continue;
        const char *suffix = row->rule_suffix ? row->rule_suffix : "";
        if (!(list[(*count)++] =
                  weft__check_text(&self->found.arena, "%s%s%s", row->rule_prefix, found->rules[i].name, suffix)))
            return false;
    }
    return true;
}

/* NULL: no memory. */
static const char *const *row_argv(check *self, const check_step *step) {
    const weft_checker *row = step->row;
    size_t most = weft__texts_count(row->args) + self->found.rule_count + 3, count = 0;
    const char **list = weft__arena_alloc(&self->found.arena, most * sizeof *list);
    if (!list)
        return NULL;
    list[count++] = step->program;
    for (const char *const *arg = row->args; *arg; arg++) {
        if (strcmp(*arg, CHECK_RULES) == 0) {
            if (!put_rules(self, row, list, &count))
                return NULL;
        } else
            list[count++] = strcmp(*arg, CHECK_FILE) == 0 ? self->found.file : *arg;
    }
    list[count] = NULL;
    return list;
}

/* Those of the configuration, as weft__checkers_set() says. */
static const char *const *configured_argv(check *self, const weft_json *row) {
    size_t count = 0;
    bool named = false;
    const char **list = weft__arena_alloc(&self->found.arena, (weft_count(row) + 2) * sizeof *list);
    for (weft_iter it = weft_iterate(row); list && weft_next(&it); count++) {
        const char *text = weft_str_of(&it.value, NULL), *at = text ? strstr(text, "{file}") : NULL;
        named |= at != NULL;
        list[count] = !text ? NULL
                      : at  ? weft__check_text(&self->found.arena, "%.*s%s/%s%s", (int) (at - text), text, self->folder,
                                               self->found.file, at + 6)
                            : weft__check_text(&self->found.arena, "%s", text);
        if (!list[count])
            return NULL;
    }
    if (!list)
        return NULL;
    if (!named && !(list[count++] = weft__check_text(&self->found.arena, "%s/%s", self->folder, self->found.file)))
        return NULL;
    list[count] = NULL;
    return list;
}

/* No more than programs need. A checker of the user's own finds the home folder, because it may be installed there. */
static const char *const *make_env(check *self, bool own) {
    weft_arena *arena = &self->found.arena;
    const char *path = getenv("PATH"), *home = own ? getenv("HOME") : NULL;
    char *outside = weft__arena_alloc(arena, (path ? strlen(path) : 0) + WEFT_OUTSIDE_PATH);
    const char **env = weft__arena_alloc(arena, 8 * sizeof *env);
    if (!outside || !env)
        return NULL;
    weft__outside_path(outside, self->of->project);
    env[0] = own && path
                 ? weft__check_text(arena, "PATH=%s", path)
                 : weft__check_text(arena, "PATH=/usr/local/bin:/usr/bin:/bin%s%s", outside[5] ? ":" : "", outside + 5);
    env[1] = weft__check_text(arena, "HOME=%s", home ? home : self->folder);
    env[2] = weft__check_text(arena, "TMPDIR=%s", self->folder);
    env[3] = "LC_ALL=C.UTF-8";
    env[4] = "NO_COLOR=1";
    env[5] = "ESLINT_USE_FLAT_CONFIG=true";
    env[6] = NULL;
    return env[0] && env[1] && env[2] ? env : NULL;
}

/* ---- running ---- */

static void run_step(check *self);

/* Its own words, where it has some: the first line that says something. */
static void keep_complaint(check *self, const check_step *step, const weft_check_output *output) {
    weft_bytes text = output->err.len ? output->err : output->out;
    size_t len = 0, from = 0;
    while (from < text.len && (text.data[from] == '\n' || text.data[from] == ' '))
        from++;
    while (from + len < text.len && len < 160 && text.data[from + len] != '\n')
        len++;
    bool hides = memmem(text.data + from, len, self->of->folder, strlen(self->of->folder)) != NULL;
    if (output->exit_code < 0)
        snprintf(self->why, sizeof self->why, "%s was ended by a signal", step->row->name);
    else if (!len || hides)
        snprintf(self->why, sizeof self->why, "%s exited with status %d", step->row->name, output->exit_code);
    else
        snprintf(self->why, sizeof self->why, "%s exited with status %d: %.*s", step->row->name, output->exit_code,
                 (int) len, text.data + from);
}

/* A rule that the program took is known; what it refused is left out when it runs again. */
static void settle_rules(check *self, const weft_checker *row) {
    for (size_t i = 0; i < self->found.rule_count; i++) {
        weft_named_rule *rule = &self->found.rules[i];
        rule->known |= takes_rule(row, rule);
        rule->refused = false;
    }
}

/* The others say what they find. */
static void pass_over(check *self) {
    const char *name = self->steps[self->at].row->name;
    self->at++;
    if (self->at < self->step_count)
        run_step(self);
    else if (self->ran_count)
        end_check(self, 0);
    else {
        snprintf(self->why, sizeof self->why, "%s is too old", name);
        end_check(self, -EIO);
    }
}

static bool is_too_old(const check_step *step, const weft_check_output *output) {
    const char *says = step->row->too_old;
    return says && !step->argv && output->exit_code > 0 &&
           memmem(output->err.data, output->err.len, says, strlen(says)) != NULL;
}

static void next_step(check *self) {
    self->attempts = 0;
    self->first_issue = self->found.count;
    settle_rules(self, self->steps[self->at].row);
    self->ran[self->ran_count++] = self->steps[self->at].row->name;
    self->at++;
    if (self->found.error)
        for (; self->at < self->step_count; self->at++)
            settle_rules(self, self->steps[self->at].row);
    if (self->at < self->step_count)
        run_step(self);
    else
        end_check(self, 0);
}

static void forget_issues(check *self) {
    self->found.count = self->first_issue;
    self->found.error = self->found.truncated = self->found.foreign = false;
}

/* A configured program that says no, and nothing that we understand, is believed. */
static void add_own_words(check *self, const weft_check_output *output) {
    weft_bytes text = output->err.len ? output->err : output->out;
    if (!text.len)
        text = (weft_bytes){"The checker says no.", 20};
    weft__findings_add(&self->found, &(weft_found){.rule = self->steps[0].row->name,
                                                   .rule_len = strlen(self->steps[0].row->name),
                                                   .severity = WEFT_SEVERITY_ERROR,
                                                   .message = text});
}

static void read_output(check *self, const weft_check_output *output) {
    const check_step *step = &self->steps[self->at];
    size_t refused = self->found.refused;
    if (is_too_old(step, output)) {
        pass_over(self);
        return;
    }
    step->row->parse(&self->found, output);
    if (self->found.no_memory) {
        end_check(self, -ENOMEM);
        return;
    }
    if (self->found.refused > refused && ++self->attempts <= ATTEMPTS) {
        forget_issues(self);
        for (size_t i = 0; self->attempts == ATTEMPTS && i < self->found.rule_count; i++)
            self->found.rules[i].refused = true;
        run_step(self);
        return;
    }
    bool explained = self->found.count > self->first_issue && (!step->row->fails_for_errors || self->found.error);
    if (output->exit_code != 0 && !explained && self->found.refused == refused) {
        if (!step->argv || output->exit_code < 0) {
            keep_complaint(self, step, output);
            end_check(self, -EIO);
            return;
        }
        add_own_words(self, output);
    }
    next_step(self);
}

static void on_program_over(void *ctx, int r, const weft_check_output *output) {
    check *self = ctx;
    weft_check_program *program = self->program;
    const char *name = self->steps[self->at].row->name;
    self->program = NULL;
    if (r == -ETIMEDOUT)
        snprintf(self->why, sizeof self->why, "%s took too long", name);
    else if (r == -EFBIG)
        snprintf(self->why, sizeof self->why, "%s said too much", name);
    else if (r < 0)
        snprintf(self->why, sizeof self->why, "%s could not be started: %s", name, weft_strerror(r));
    if (r < 0 || self->cancelled)
        end_check(self, r);
    else
        read_output(self, output);
    weft__check_program_free(program); /* which owns the output */
}

/* The code's own folder, when the first program needs it. */
static int make_folder(check *self) {
    if (*self->folder)
        return 0;
    char folder[PATH_MAX];
    int r = weft__check_folder_make(self->of->folder, self->found.file, (weft_bytes){self->code, self->len}, folder);
    if (r < 0)
        return r;
    memcpy(self->folder, folder, sizeof folder);
    self->found.folder = self->folder;
    return 0;
}

static int start_step(check *self) {
    check_step *step = &self->steps[self->at];
    weft_json rows = {0};
    int r = make_folder(self);
    if (r < 0)
        return r;
    bool own = self->configured != NULL;
    if (own && self->of->configured)
        rows = weft_get(weft_doc_root(self->of->configured), self->language);
    if (own && !rows.text)
        return -ENOENT; /* it was taken out of the configuration meanwhile */
    const char *const *argv = own ? configured_argv(self, &rows) : row_argv(self, step);
    const char *const *env = argv ? make_env(self, own) : NULL;
    const char *const *confined =
        own || !env ? NULL : weft__check_bounds(&self->found.arena, step->program, self->folder, self->of->project);
    if (!env || (!own && !confined))
        return -ENOMEM;
    step->argv = own ? argv : NULL;
    return weft__check_program_start(&(weft_check_program_opts){.loop = self->of->opts.loop,
                                                                .alloc = self->of->alloc,
                                                                .guard = self->of->guard,
                                                                .argv = argv,
                                                                .env = env,
                                                                .folder = self->folder,
                                                                .confined = confined,
                                                                .within_ms = self->of->opts.check_ms,
                                                                .on_end = on_program_over,
                                                                .ctx = self},
                                     &self->program);
}

static void run_step(check *self) {
    const check_step *step = &self->steps[self->at];
    if (!self->configured && !step->row->args) {
        weft__check_json(&self->found, (weft_bytes){self->code, self->len});
        if (self->found.no_memory)
            end_check(self, -ENOMEM);
        else
            next_step(self);
        return;
    }
    int r = start_step(self);
    if (r < 0) {
        snprintf(self->why, sizeof self->why, "%s could not be started: %s", step->row->name, weft_strerror(r));
        end_check(self, r);
    }
}

/* Those that waited, as long as there is a place; one that was cancelled is at the front and needs none. Nothing of them may
 * run inside of weft__check(). */
static void start_waiting(weft_later *later) {
    weft_checkers *of = WEFT_CONTAINER(later, weft_checkers, next);
    while (!weft__list_empty(&of->waiting)) {
        check *first = WEFT_CONTAINER(of->waiting.next, check, link);
        if (first->cancelled) {
            end_check(first, -ECANCELED);
            continue;
        }
        if (of->running_count >= WEFT_CHECKS_AT_ONCE)
            return;
        weft__list_remove(&first->link);
        weft__list_push(&of->running, &first->link);
        of->waiting_count--;
        of->running_count++;
        first->running = true;
        run_step(first);
    }
}

/* ---- what will be run ---- */

static bool is_installed(const weft_checkers *of, const weft_checker *row, char ret[PATH_MAX]) {
    char real[PATH_MAX];
    *ret = '\0';
    if (!row->args)
        return true;
    if (row->probe && !realpath(row->probe, real))
        return false;
    return weft__check_find(row->program ? row->program : row->name, of->project, ret) == 0;
}

static bool is_language_of(const weft_checker *row, const char *language) {
    return language && strcmp(row->language, language) == 0;
}

/* Of those that were named; also if none was. */
static bool has_rule_for(const check *self, const weft_checker *row) {
    bool any = self->found.rule_count == 0;
    for (size_t i = 0; i < self->found.rule_count; i++)
        any |= takes_rule(row, &self->found.rules[i]);
    return any;
}

static void choose_steps(check *self, const char *language) {
    bool has[2] = {false, false}; /* one for the syntax, one linter */
    for (const weft_checker *row = weft__checker_rows; row->language; row++) {
        check_step *step = &self->steps[self->step_count];
        if (self->step_count == PROGRAMS || !is_language_of(row, language) || has[row->lint] ||
            (row->lint && !has_rule_for(self, row)) || !is_installed(self->of, row, step->program))
            continue;
        step->row = row;
        has[row->lint] = true;
        self->step_count++;
    }
}

static int choose_configured(check *self, const char *language) {
    weft_checker *row = weft__arena_alloc(&self->found.arena, sizeof *row);
    if (!row)
        return -ENOMEM;
    *row = (weft_checker){.language = language, .file = CONFIGURED_FILE, .parse = weft__parse_lines};
    for (const weft_checker *known = weft__checker_rows; known->language; known++)
        if (is_language_of(known, weft__check_language(language, (weft_bytes){self->code, self->len}))) {
            row->file = known->file;
            break;
        }
    weft_json rows = weft_get(weft_doc_root(self->of->configured), language), first = weft_at(&rows, 0);
    const char *program = weft_str_of(&first, ""), *slash = strrchr(program, '/');
    row->name = weft__check_text(&self->found.arena, "%s", slash ? slash + 1 : program);
    self->configured = row;
    self->steps[0].row = row;
    self->step_count = 1;
    return row->name ? 0 : -ENOMEM;
}

/* The language as the configuration names it: the same word, in other letters, or another word for the same. The best of
 * these is taken. NULL: it has none. */
static const char *configured_name(check *self) {
    const weft_bytes code = {self->code, self->len};
    const char *known = weft__check_language(self->language, code), *found = NULL;
    int best = 0;
    if (!self->of->configured)
        return NULL;
    for (weft_iter it = weft_iterate(weft_doc_root(self->of->configured)); weft_next(&it);) {
        const char *name = weft_str_of(&it.name, ""), *same = weft__check_language(name, code);
        int fit = strcmp(name, self->language) == 0           ? 3
                  : strcasecmp(name, self->language) == 0     ? 2
                  : known && same && strcmp(known, same) == 0 ? 1
                                                              : 0;
        if (fit > best) {
            best = fit;
            found = name;
        }
    }
    return found ? weft__check_text(&self->found.arena, "%s", found) : NULL;
}

/* JavaScript is a module or a script, and its name says which. */
static const char *file_of(const check *self, const char *language) {
    const char *file = self->steps[0].row->file;
    bool module = strcmp(file, "code.cjs") == 0 && weft__check_is_module(language, (weft_bytes){self->code, self->len});
    return module ? "code.mjs" : file;
}

static int copy_rules(check *self, const char *const *rules) {
    size_t count = weft__texts_count(rules);
    if (count > WEFT_CHECK_RULES)
        return -E2BIG;
    self->found.rules = weft__arena_alloc(&self->found.arena, (count + 1) * sizeof *self->found.rules);
    for (size_t i = 0; self->found.rules && i < count; i++) {
        if (!weft__check_is_rule(rules[i]))
            return -EINVAL;
        const char *name = weft__check_text(&self->found.arena, "%s", rules[i]);
        if (!name)
            return -ENOMEM;
        self->found.rules[self->found.rule_count++] = (weft_named_rule){.name = name};
    }
    return self->found.rules ? 0 : -ENOMEM;
}

static int fill_check(check *self, const weft_check_spec *spec) {
    self->code = weft__alloc(self->of->alloc, spec->code.len + 1 + WEFT_SLACK);
    if (!self->code)
        return -ENOMEM;
    if (spec->code.len)
        memcpy(self->code, spec->code.data, spec->code.len);
    memset(self->code + spec->code.len, 0, 1 + WEFT_SLACK);
    self->len = spec->code.len;
    self->language = weft__check_text(&self->found.arena, "%s", spec->language);
    int r = self->language ? copy_rules(self, spec->rules) : -ENOMEM;
    if (r < 0)
        return r;
    const char *configured = configured_name(self);
    if (configured) {
        self->language = configured;
        r = choose_configured(self, configured);
    } else
        choose_steps(self, weft__check_language(self->language, spec->code));
    if (r >= 0 && !self->step_count)
        r = -ENOENT;
    if (r >= 0)
        self->found.file = file_of(self, spec->language);
    return r;
}

int weft__check(weft_checkers *of, const weft_check_spec *spec, weft_check_done *done, void *ctx, uint64_t *ret_id) {
    if (spec->code.len > WEFT_CHECK_CODE)
        return -EMSGSIZE;
    if (of->waiting_count >= of->opts.max_waiting)
        return -EAGAIN;
    check *made = weft__zalloc(of->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    weft__list_init(&made->link);
    made->of = of;
    made->id = ++of->next_id;
    made->done = done;
    made->ctx = ctx;
    made->found.arena.alloc = of->alloc;
    int r = fill_check(made, spec);
    if (r < 0) {
        free_check(made);
        return r;
    }
    weft__list_push(&of->waiting, &made->link);
    of->waiting_count++;
    weft__later(of->opts.loop, &of->next);
    if (ret_id)
        *ret_id = made->id;
    return 0;
}

static check *find_check(weft_link *list, uint64_t id) {
    for (weft_link *link = list->next; link != list; link = link->next) {
        check *one = WEFT_CONTAINER(link, check, link);
        if (one->id == id)
            return one;
    }
    return NULL;
}

void weft__check_cancel(weft_checkers *of, uint64_t id) {
    check *running = find_check(&of->running, id), *found = running ? running : find_check(&of->waiting, id);
    if (!found)
        return;
    found->cancelled = true;
    if (found->program)
        weft__check_program_stop(found->program, -ECANCELED);
    else if (!running) { /* to the front: it needs nothing */
        weft__list_remove(&found->link);
        weft__list_push(of->waiting.next, &found->link);
        weft__later(of->opts.loop, &of->next);
    }
}

/* ---- what can be checked ---- */

static void tell_more(char ret[WEFT_CHECK_SENTENCE], const char *between, const char *text) {
    size_t len = strlen(ret);
    snprintf(ret + len, WEFT_CHECK_SENTENCE - len, "%s%s", between, text);
}

void weft__checkers_tell(const weft_checkers *of, const char *name, char ret[WEFT_CHECK_SENTENCE]) {
    const char *language = weft__check_language(name, (weft_bytes){"", 0}), *last = "";
    char program[PATH_MAX];
    bool any = false;
    *ret = '\0';
    for (const weft_checker *row = weft__checker_rows; row->language; row++)
        if (is_language_of(row, language)) {
            tell_more(ret, any ? " or " : "Install one of its checkers: ", row->name);
            any = true;
        }
    if (any)
        return;
    for (const weft_checker *row = weft__checker_rows; row->language; row++) {
        if (strcmp(last, row->language) == 0 || !is_installed(of, row, program))
            continue;
        tell_more(ret, *last ? ", " : "Languages that can be checked here: ", row->language);
        last = row->language;
    }
}

/* ---- life ---- */

int weft__checkers_set(weft_checkers *of, const weft_json *configured) {
    weft_doc *doc = NULL;
    int r = configured && configured->text ? weft_doc_keep(configured, of->alloc, &doc) : 0;
    if (r < 0)
        return r;
    weft_doc_free(of->configured);
    of->configured = doc;
    return 0;
}

static int copy_opts(weft_checkers *of, const weft_checkers_opts *opts) {
    of->opts = *opts;
    of->opts.check_ms = opts->check_ms ? opts->check_ms : WEFT_CHECK_MS;
    of->opts.max_waiting = opts->max_waiting ? opts->max_waiting : WEFT_CHECKS_WAITING;
    int r = weft__copy_or_null(of->alloc, opts->folder, &of->folder);
    if (r >= 0)
        r = weft__copy_or_null(of->alloc, opts->project, &of->project);
    return r < 0 ? r : weft__copy_or_null(of->alloc, opts->guard, &of->guard);
}

int weft__checkers_new(const weft_checkers_opts *opts, weft_checkers **ret) {
    weft_checkers *made = weft__zalloc(opts->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->alloc = opts->alloc;
    weft__list_init(&made->waiting);
    weft__list_init(&made->running);
    weft__later_init(&made->next, start_waiting);
    int r = copy_opts(made, opts);
    if (r >= 0)
        r = weft__check_folder_sweep(made->folder);
    if (r < 0)
        weft__checkers_free(made);
    else
        *ret = made;
    return r;
}

weft_checkers *weft__checkers_free(weft_checkers *of) {
    if (!of)
        return NULL;
    weft_link *lists[] = {&of->waiting, &of->running};
    for (int i = 0; i < 2; i++)
        while (!weft__list_empty(lists[i]))
            free_check(WEFT_CONTAINER(lists[i]->next, check, link));
    weft__later_cancel(&of->next);
    weft_doc_free(of->configured);
    weft__free(of->alloc, of->folder);
    weft__free(of->alloc, of->project);
    weft__free(of->alloc, of->guard);
    return weft__free(of->alloc, of);
}
