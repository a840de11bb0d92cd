/* weft config get, set, unset, edit and init: one key at a time, or the whole file in an editor. A file is replaced as a
 * whole, only by one without mistakes, and is on record afterwards if it was before. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_edit.h"
#include "config_verb.h"
#include "daemon.h"
#include "daemon_folder.h"
#include "descent.h"
#include "editor.h"
#include "failure.h"
#include "private_file.h"
#include "read_all.h"
#include "stdin_lines.h"
#include "trust.h"

#define MAX_EDITED ((size_t) 1024 * 1024) /* as long as a configuration may be */

/* A file that is being changed. */
typedef struct config_change {
    weft_config_view *view;
    weft_app *app;
    bool user;
    weft_config_file old;
    char path[WEFT_PATH_SIZE];
    char beside[WEFT_PATH_SIZE + 8]; /* the new one, until it is right */
} config_change;

static const char first_text[] =
    "// What Weft does differently in this project. \"weft config keys\" lists every key, \"weft config check\" finds\n"
    "// mistakes, \"weft reload\" lets a running hub read this again.\n"
    "{\n"
    "    // The agent of tasks that name none. \"weft agents\" lists those that are installed.\n"
    "    // \"default_agent\": \"claude\",\n"
    "\n"
    "    // How many tasks run at a time, and for how long.\n"
    "    // \"tasks\": {\"max_running\": 4, \"timeout_ms\": 7200000},\n"
    "\n"
    "    // What agents may spend, as far as they say it.\n"
    "    // \"cost\": {\"task\": \"2.50 USD\", \"day\": \"20 USD\"},\n"
    "}\n";

/* ---- keys ---- */

/* The row that a path is about; a structured value may be named inside of it: agents.mine.command. */
static const weft_key *find_key(const char *path) {
    for (const weft_key *key = weft__keys; key->path; key++) {
        size_t len = strlen(key->path);
        bool deep = key->kind == WEFT_KEY_named || key->kind == WEFT_KEY_argvs;
        if (strcmp(key->path, path) == 0 || (deep && strncmp(key->path, path, len) == 0 && path[len] == '.'))
            return key;
    }
    return NULL;
}

static weft_exit unknown_key(const weft_app *app, const char *path) {
    weft_suggestion suggestion = {.typed = path};
    for (const weft_key *key = weft__keys; key->path; key++)
        weft__suggest(&suggestion, key->path);
    if (suggestion.best)
        return weft__misused(app, "unknown key \"%s\"; did you mean \"%s\"?", path, suggestion.best);
    return weft__misused(app, "unknown key \"%s\"; \"weft config keys\" lists them", path);
}

/* ---- get ---- */

/* What a path names inside of a structured value. */
static weft_json inside_value(const weft_key *key, const char *path, const weft_json *value) {
    char pointer[256];
    const char *rest = path + strlen(key->path);
    if (!*rest)
        return *value;
    snprintf(pointer, sizeof pointer, "%s", rest);
    for (char *dot = pointer; (dot = strchr(dot, '.'));)
        *dot = '/';
    return weft_pointer(value, pointer);
}

weft_exit weft__config_get(weft_config_view *view, char **args) {
    const weft_app *app = view->app;
    const weft_key *key = args[0] ? find_key(args[0]) : NULL;
    if (!args[0] || args[1])
        return weft__misused(app, "name one key");
    if (!key)
        return unknown_key(app, args[0]);
    weft_exit status = weft__config_load_shown(view);
    if (status == WEFT_DONE)
        status = weft__config_hide_secrets(view);
    if (status)
        return status;
    weft_json value = inside_value(key, args[0], weft__config_shown(view, (size_t) (key - weft__keys)));
    weft_bytes text;
    if (!value.text)
        return weft__fail(app, WEFT_NOT_FOUND, NULL, "%s has no value", args[0]);
    if (!app->common.json && weft_bytes_of(&value, &text) >= 0)
        weft__put_text(&app->out, text.data, text.len);
    else
        weft__put_compact(&app->out, &value);
    fputc('\n', app->out.file);
    return WEFT_DONE;
}

/* ---- the file ---- */

/* The folders of the user's own file. */
static int make_parents(const char *path) {
    char part[WEFT_PATH_SIZE];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int) (slash - path), path);
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

static weft_exit find_user_file(config_change *self) {
    weft__config_user_path(self->path);
    if (!*self->path)
        return weft__fail(self->app, WEFT_FAILED, NULL, "neither XDG_CONFIG_HOME nor HOME is set");
    char real[PATH_MAX];
    if (realpath(self->path, real) && strlen(real) < sizeof self->path) /* who keeps it elsewhere has a link here */
        snprintf(self->path, sizeof self->path, "%.*s", (int) sizeof self->path - 1, real);
    return WEFT_DONE;
}

/* That of the project we stand in, or of this folder. */
static weft_exit find_project_file(config_change *self) {
    int r = weft__daemon_project(self->app->layout);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    snprintf(self->path, sizeof self->path, "%s", self->app->layout->config);
    return weft__daemon_folder_check(self->app);
}

/* Its folder, which is made only when there is something to write: a folder without one becomes a project, as with
 * "weft start". */
static weft_exit make_place(const config_change *self) {
    if (!self->user)
        return weft__daemon_folder_make(self->app);
    int r = make_parents(self->path);
    return r < 0 ? weft__fail(self->app, WEFT_FAILED, NULL, "%s: %s", self->path, weft_strerror(r)) : WEFT_DONE;
}

/* A mistake in the old file is one for "edit" to mend, so it is only told. */
static weft_exit begin_change(config_change *self, weft_config_view *view, bool mend) {
    *self =
        (config_change){.view = view, .app = view->app, .user = ((const weft_config_settings *) view->app->settings)->user};
    weft_exit status = self->user ? find_user_file(self) : find_project_file(self);
    if (status)
        return status;
    snprintf(self->beside, sizeof self->beside, "%s.new", self->path);
    int r = weft__config_read(&self->old, self->path, !self->user, &(weft_remarks){weft__config_show_remark, view}, NULL);
    return r >= 0 || (mend && self->old.text) ? WEFT_DONE : weft__config_fail(view, r);
}

static void end_change(config_change *self) {
    weft__config_file_done(&self->old, NULL);
}

static weft_bytes old_text(const config_change *self) {
    return (weft_bytes){self->old.text ? self->old.text : "", self->old.len};
}

static weft_exit fail_file(const config_change *self, const char *path, int r) {
    return weft__fail(self->app, WEFT_FAILED, NULL, "%s: %s", path, weft__private_why(r));
}

static weft_exit write_beside(const config_change *self, weft_bytes text) {
    weft_exit status = make_place(self);
    if (status)
        return status;
    unlink(self->beside); /* of one that was killed in between */
    int fd = weft__private_open(self->beside, O_WRONLY | O_CREAT | O_EXCL);
    int r = fd < 0 ? fd : weft__private_write_synced(fd, text.data, text.len);
    if (fd >= 0)
        close(fd);
    return r < 0 ? fail_file(self, self->beside, r) : WEFT_DONE;
}

/* Is the new file right? What is wrong was said. */
static int check_beside(config_change *self) {
    weft_config config;
    weft_remarks to = {weft__config_show_remark, self->view};
    int r = weft__config_load(&config, &(weft_config_from){.user = self->beside}, &to, NULL);
    if (r >= 0)
        r = weft__config_rules(&config, &to);
    weft__config_done(&config);
    return r;
}

/* Programs that an agent starts may write files as their user may. They do not put them on record by this way. */
static weft_exit record_change(const config_change *self, weft_bytes now) {
    char why[WEFT_TRUST_WHY] = "";
    weft_bytes old = old_text(self);
    if (self->user)
        return WEFT_DONE;
    int r = weft__descends_from_guard(getppid()) == 1
                ? 0
                : weft__trust_config(self->app->layout, self->old.text ? &old : NULL, now, why);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, WEFT_TRUST_PLACE, "%s", why);
    if (r == 0)
        weft__warn(self->app, "  The file is not trusted: what it runs and opens has no effect before \"weft trust\".");
    return WEFT_DONE;
}

/* A daemon that runs has read the file before. */
static void say_what_next(const config_change *self, const weft_key *key) {
    pid_t pid;
    if (self->app->common.json)
        weft__put_line(&self->app->out,
                       WEFT_OBJ({"file", weft_str(self->path)}, {"key", weft_str_or_none(key ? key->path : NULL)}));
    if (self->app->common.json || weft__daemon_holder(self->app->layout, &pid) != 1)
        return;
    if (key && !key->live)
        weft__warn(self->app, "  A hub is running here: \"weft restart\" makes it use the change.");
    else
        weft__warn(self->app, "  A hub is running here: \"weft reload\" makes it use the change.");
}

/* The new file takes the old one's place. */
static weft_exit keep_beside(const config_change *self, const weft_key *key, weft_bytes now) {
    if (rename(self->beside, self->path) < 0) {
        int r = -errno;
        unlink(self->beside);
        return fail_file(self, self->path, r);
    }
    weft_exit status = record_change(self, now);
    if (status == WEFT_DONE)
        say_what_next(self, key);
    return status;
}

static weft_exit replace_file(config_change *self, const weft_key *key, weft_bytes now) {
    weft_exit status = write_beside(self, now);
    if (status)
        return status;
    int r = check_beside(self);
    if (r >= 0)
        return keep_beside(self, key, now);
    unlink(self->beside);
    return weft__fail(self->app, WEFT_FAILED, NULL, "%s was not changed", self->path);
}

/* ---- set and unset ---- */

static int parse_value(const char *text, weft_doc **ret) {
    return weft_doc_parse(text, strlen(text), NULL, ret);
}

static int quote_values(char **args, bool list, weft_doc **ret) {
    weft_val items[WEFT_MAX_TEXTS];
    size_t count = 0, len;
    char *text;
    for (; args[count]; count++) {
        if (count == WEFT_MAX_TEXTS)
            return -E2BIG;
        items[count] = weft_str(args[count]);
    }
    int r = weft_to_text(list ? weft_arr(items, count) : items[0], NULL, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, NULL, ret);
    weft_text_free(text, NULL);
    return r;
}

/* A string needs no quotes, and a list of strings no brackets. */
static int read_value(const weft_key *key, const char *path, char **args, weft_doc **ret) {
    bool list = key->kind == WEFT_KEY_texts || key->kind == WEFT_KEY_urls;
    bool text = key->kind == WEFT_KEY_text || key->kind == WEFT_KEY_money, inside = strcmp(key->path, path) != 0;
    if ((text && args[0][0] != '"') || (list && args[0][0] != '['))
        return list || !args[1] ? quote_values(args, list, ret) : -EINVAL;
    int r = args[1] ? -EINVAL : parse_value(args[0], ret);
    return r == -EBADMSG && inside ? quote_values(args, false, ret) : r;
}

/* The key is named by the mistake itself, so there is no need to say where it is. */
static void show_value_remark(void *ctx, const weft_remark *remark) {
    weft_config_view *view = ctx;
    if (remark->place.line == 0 && strncmp(remark->text, remark->where, strlen(remark->where)) == 0)
        weft__warn(view->app, "%s", remark->text);
    else
        weft__config_show_remark(view, remark);
}

static weft_exit check_value(const config_change *self, const weft_key *key, const char *path, char **args, weft_doc **ret) {
    weft_checking checking = {.to = &(weft_remarks){show_value_remark, self->view}, .where = path};
    int r = read_value(key, path, args, ret);
    if (r == -EBADMSG || r == -EINVAL) {
        char wants[WEFT_KEY_TEXT];
        weft__key_wants(key, wants);
        return weft__fail(self->app, WEFT_USAGE, NULL, "%s must be %s", path, strcmp(key->path, path) == 0 ? wants : "JSON");
    }
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (strcmp(key->path, path) == 0 && weft__config_check(&checking, key, weft_doc_root(*ret)) < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s was not changed", self->path);
    return WEFT_DONE;
}

static weft_exit fail_edit(const config_change *self, const char *path, int r) {
    if (r == -ENOTDIR || r == -E2BIG)
        return weft__fail(self->app, WEFT_FAILED, "\"weft config edit\" opens the file.", "%s: %s cannot be set there",
                          self->path, path);
    return weft__config_fail(self->view, r);
}

static weft_exit set_value(config_change *self, const weft_key *key, char **args) {
    WEFT_AUTO(weft_doc) value = NULL;
    weft_buf made = {0};
    weft_exit status = check_value(self, key, args[0], args + 1, &value);
    if (status)
        return status;
    const weft_json *root = weft_doc_root(value);
    int r = weft__config_edit_set(old_text(self), args[0], (weft_bytes){root->text, root->len}, &made);
    status = r < 0 ? fail_edit(self, args[0], r)
                   : replace_file(self, key, (weft_bytes){weft__buf_head(&made), weft__buf_len(&made)});
    weft__buf_done(&made, NULL);
    return status;
}

static weft_exit unset_value(config_change *self, const weft_key *key, char **args) {
    weft_buf made = {0};
    int r = weft__config_edit_unset(old_text(self), args[0], &made);
    weft_exit status = r < 0    ? fail_edit(self, args[0], r)
                       : r == 0 ? weft__fail(self->app, WEFT_NOT_FOUND, NULL, "%s is not set in %s", args[0], self->path)
                                : replace_file(self, key, (weft_bytes){weft__buf_head(&made), weft__buf_len(&made)});
    weft__buf_done(&made, NULL);
    return status;
}

static weft_exit change_key(weft_config_view *view, char **args,
                            weft_exit (*change)(config_change *self, const weft_key *key, char **args)) {
    const weft_key *key = find_key(args[0]);
    config_change self;
    if (!key)
        return unknown_key(view->app, args[0]);
    weft_exit status = begin_change(&self, view, false);
    if (status == WEFT_DONE)
        status = change(&self, key, args);
    end_change(&self);
    return status;
}

weft_exit weft__config_set(weft_config_view *view, char **args) {
    return args[0] && args[1] ? change_key(view, args, set_value) : weft__misused(view->app, "name a key and its value");
}

weft_exit weft__config_unset(weft_config_view *view, char **args) {
    return args[0] && !args[1] ? change_key(view, args, unset_value) : weft__misused(view->app, "name one key");
}

/* ---- edit ---- */

static int read_beside(const config_change *self, weft_buf *ret) {
    int fd = weft__private_open(self->beside, O_RDONLY);
    if (fd < 0)
        return fd;
    int r = weft__read_text(fd, MAX_EDITED, NULL, ret);
    close(fd);
    return r;
}

static bool wants_again(const weft_app *app) {
    char line[64] = "";
    if (app->common.json || !weft__stdin_is_person())
        return false;
    fputs("Edit it again? [Y/n] ", app->err.file);
    fflush(app->err.file);
    return fgets(line, sizeof line, stdin) && *line != 'n' && *line != 'N';
}

static weft_exit run_editor(const config_change *self) {
    char editor[256];
    int ended = weft__editor_run(self->beside, editor, sizeof editor);
    if (ended < 0)
        return weft__fail(self->app, WEFT_FAILED, "Name an editor: export EDITOR=nano", "%.200s: %s", editor,
                          ended == -EINVAL ? "it must be a program with arguments; no shell runs it" : weft_strerror(ended));
    if (ended > 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%.200s ended with status %d: nothing was changed", editor, ended);
    return WEFT_DONE;
}

/* What was written with a mistake in it is not thrown away. */
static weft_exit edit_until_right(config_change *self) {
    weft_exit status;
    int r;
    do {
        status = run_editor(self);
        if (status) {
            unlink(self->beside);
            return status;
        }
        r = check_beside(self);
    } while (r == -EBADMSG && wants_again(self->app));
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s was not changed; what you wrote is in %s", self->path,
                          self->beside);
    return WEFT_DONE;
}

static weft_exit edit_file(config_change *self) {
    weft_bytes text = self->old.text ? old_text(self) : (weft_bytes){first_text, sizeof first_text - 1};
    weft_buf edited = {0};
    weft_exit status = write_beside(self, text);
    if (status == WEFT_DONE)
        status = edit_until_right(self);
    if (status)
        return status;
    int r = read_beside(self, &edited);
    status = r < 0 ? fail_file(self, self->beside, r)
                   : keep_beside(self, NULL, (weft_bytes){weft__buf_head(&edited), weft__buf_len(&edited)});
    weft__buf_done(&edited, NULL);
    return status;
}

weft_exit weft__config_edit(weft_config_view *view, char **args) {
    config_change self;
    if (*args)
        return weft__misused(view->app, "\"edit\" takes no arguments; --user opens your own file");
    weft_exit status = begin_change(&self, view, true);
    if (status == WEFT_DONE)
        status = edit_file(&self);
    end_change(&self);
    return status;
}

/* ---- init ---- */

weft_exit weft__config_init(weft_config_view *view, char **args) {
    config_change self;
    if (*args)
        return weft__misused(view->app, "\"init\" takes no arguments; --user makes your own file");
    weft_exit status = begin_change(&self, view, true);
    if (status == WEFT_DONE && self.old.text)
        status = weft__fail(view->app, WEFT_FAILED, "\"weft config edit\" opens it.", "%s is there already", self.path);
    if (status == WEFT_DONE)
        status = replace_file(&self, NULL, (weft_bytes){first_text, sizeof first_text - 1});
    if (status == WEFT_DONE && !view->app->common.json)
        fprintf(view->app->out.file, "%s\n", self.path);
    end_change(&self);
    return status;
}
