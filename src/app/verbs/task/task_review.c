/* weft task review: a person's comments on what a task changed, written in an editor, become the task's next prompt. What
 * was written is never lost: whatever goes wrong behind the editor, the file stays, and its name is said. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor.h"
#include "failure.h"
#include "hub_call.h"
#include "read_all.h"
#include "review_text.h"
#include "task.h"
#include "task_follow.h"
#include "terminal_status.h"
#include "write.h"

#define MAX_DIFF (16u << 20) /* bytes: nobody reviews more at once */

typedef struct task_review {
    weft_app *app;
    const weft_task_settings *how;
    char id[64];
    weft_buf diff;
    weft_buf edited;
    weft_review_text said;
    char file[PATH_MAX]; /* with what was written; "": there is none */
    bool ours;           /* it is removed when it is not needed any more */
    bool sent;
} task_review;

static weft_exit no_memory(const task_review *self) {
    return weft__fail(self->app, WEFT_FAILED, NULL, "out of memory");
}

/* ---- the diff ---- */

/* A page of it. *offset is where the next one begins; -1: that was all. */
static weft_exit read_page(task_review *self, weft_connection *connection, int64_t *offset) {
    WEFT_ANSWER answer = {0};
    weft_bytes text;
    weft_exit status =
        weft__hub_call(connection, "task.diff",
                       WEFT_OBJ({"taskId", weft_str(self->id)}, {"offset", weft_int(*offset)},
                                {"path", weft_str_or_none(self->app->arg_count > 1 ? self->app->args[1] : NULL)},
                                {"context", self->how->context ? weft_int(self->how->context) : weft_none()}),
                       &answer);
    if (status)
        return status;
    weft_json diff = weft_get(answer.result, "diff");
    if (weft_bytes_of(&diff, &text) < 0 || weft__buf_put(&self->diff, NULL, text.data, text.len) < 0)
        return no_memory(self);
    *offset = weft_get_int(answer.result, "next", -1);
    if (*offset >= 0 && weft__buf_len(&self->diff) > MAX_DIFF)
        return weft__fail(self->app, WEFT_FAILED, "Name a file or a folder: weft task review ID PATH",
                          "%s changed too much to review at once", self->id);
    return WEFT_DONE;
}

static weft_exit read_diff(task_review *self) {
    weft_connection connection;
    int64_t offset = 0;
    self->app->reach.timeout_ms = self->how->timeout_ms;
    weft_exit status = weft__hub_call_open(self->app, self->how->url, &connection);
    if (status == WEFT_DONE)
        status = weft__task_find_id(self->app, &connection, self->id);
    while (status == WEFT_DONE && offset >= 0)
        status = read_page(self, &connection, &offset);
    /* A person takes time to read: no connection waits for that. */
    weft__connection_done(&connection);
    return status;
}

static weft_bytes bytes_of(const weft_buf *buf) {
    return (weft_bytes){weft__buf_len(buf) ? weft__buf_head(buf) : "", weft__buf_len(buf)};
}

/* ---- the file ---- */

static int write_whole(int fd, weft_bytes text) {
    while (text.len) {
        ssize_t n = write(fd, text.data, text.len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            text = (weft_bytes){text.data + n, text.len - (size_t) n};
    }
    return 0;
}

/* Only its owner may read it: it has what is in the project's files. */
static int make_file(task_review *self, weft_bytes text) {
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/weft-review-XXXXXX.diff", folder && *folder == '/' ? folder : "/tmp");
    if (n < 0 || (size_t) n >= sizeof path)
        return -ENAMETOOLONG;
    int fd = mkostemps(path, 5, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    snprintf(self->file, sizeof self->file, "%s", path);
    self->ours = true;
    int r = write_whole(fd, text);
    if (close(fd) < 0 && r >= 0)
        r = -errno;
    return r;
}

static int read_file_back(task_review *self) {
    int fd = open(self->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = weft__read_text(fd, WEFT_REVIEW_FILE, NULL, &self->edited);
    close(fd);
    return r;
}

static void remove_file(task_review *self) {
    if (self->ours && *self->file)
        unlink(self->file);
    *self->file = '\0';
}

/* How to go on with what was written. */
static const char *say_kept(const task_review *self, char *ret, size_t size) {
    char context[32] = "";
    bool path = self->app->arg_count > 1;
    if (self->how->context)
        snprintf(context, sizeof context, " --context %lld", (long long) self->how->context);
    snprintf(ret, size, "It is kept. To send it: weft task review %s%s%s%s --file %s", self->id, path ? " " : "",
             path ? self->app->args[1] : "", context, self->file);
    return ret;
}

/* ---- editing ---- */

static weft_exit edit_file(task_review *self, weft_bytes before) {
    char editor[256], kept[2 * PATH_MAX];
    int ended = weft__editor_run(self->file, editor, sizeof editor);
    int r = ended < 0 ? ended : read_file_back(self);
    bool same = r >= 0 && weft__buf_len(&self->edited) == before.len &&
                memcmp(weft__buf_head(&self->edited), before.data, before.len) == 0;
    if (ended < 0 || same)
        remove_file(self);
    if (ended < 0)
        return weft__fail(self->app, WEFT_FAILED, "Name an editor: export EDITOR=nano", "%.200s: %s", editor,
                          ended == -EINVAL ? "it must be a program with arguments; no shell runs it" : weft_strerror(ended));
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s: %s", self->file, weft_strerror(r));
    if (ended > 0)
        return weft__fail(self->app, WEFT_FAILED, same ? NULL : say_kept(self, kept, sizeof kept),
                          "%.200s ended with status %d: nothing was sent", editor, ended);
    return WEFT_DONE;
}

static weft_exit write_and_edit(task_review *self) {
    weft_buf text = {0};
    weft_exit status = WEFT_DONE;
    int r = weft__review_text_write(&text, NULL, self->id, bytes_of(&self->diff));
    if (r >= 0)
        r = make_file(self, bytes_of(&text));
    if (r < 0) {
        remove_file(self);
        status = weft__fail(self->app, WEFT_FAILED, NULL, "the file to edit could not be written: %s", weft_strerror(r));
    } else
        status = edit_file(self, bytes_of(&text));
    weft__buf_done(&text, NULL);
    return status;
}

static weft_exit read_given_file(task_review *self) {
    snprintf(self->file, sizeof self->file, "%s", self->how->file);
    int r = read_file_back(self);
    return r < 0 ? weft__fail(self->app, r == -ENOENT ? WEFT_USAGE : WEFT_FAILED, NULL, "%s: %s", self->how->file,
                              weft_strerror(r))
                 : WEFT_DONE;
}

static weft_exit read_said(task_review *self) {
    char kept[2 * PATH_MAX];
    int r = weft__review_text_read(bytes_of(&self->edited), bytes_of(&self->diff), NULL, &self->said);
    if (r == -EBADMSG)
        return weft__fail(self->app, WEFT_FAILED, say_kept(self, kept, sizeof kept), "%s:%zu: %s", self->file,
                          self->said.bad_line, self->said.why);
    return r < 0 ? no_memory(self) : WEFT_DONE;
}

/* ---- sending ---- */

static void put_indented(const weft_screen *screen, const char *text) {
    while (*text) {
        size_t len = strcspn(text, "\n");
        fputs("    ", screen->file);
        weft__put_prose(screen, text, len);
        fputc('\n', screen->file);
        text += len + (text[len] == '\n');
    }
}

static void put_said(const task_review *self) {
    const weft_screen *err = &self->app->err;
    fprintf(err->file, "%zu comment%s on what %s changed:\n", self->said.count, self->said.count == 1 ? "" : "s", self->id);
    if (self->said.text)
        put_indented(err, self->said.text);
    for (size_t i = 0; i < self->said.count; i++) {
        const weft_said *said = &self->said.said[i];
        fputs("  ", err->file);
        weft__ink(err, WEFT_INK_BOLD);
        weft__put_text(err, said->path, strlen(said->path));
        if (said->line)
            fprintf(err->file, ":%zu%s", said->line, said->old ? " (as it was before)" : "");
        weft__plain(err);
        fputc('\n', err->file);
        put_indented(err, said->text);
    }
}

static int write_said(const task_review *self, weft_buf *out) {
    int r = weft__buf_put(out, NULL, "[", 1);
    for (size_t i = 0; r >= 0 && i < self->said.count; i++) {
        const weft_said *said = &self->said.said[i];
        weft_val value = WEFT_OBJ({"path", weft_str(said->path)}, {"line", said->line ? weft_uint(said->line) : weft_none()},
                                  {"side", said->line ? weft_str(said->old ? "old" : "new") : weft_none()},
                                  {"text", weft_str(said->text)});
        r = i ? weft__buf_put(out, NULL, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, NULL, &value);
    }
    return r < 0 ? r : weft__buf_put(out, NULL, "]", 1);
}

typedef struct review_following {
    weft_val params;
    task_review *review;
} review_following;

static void on_review_begin(weft_task_follow *follow) {
    const review_following *following = follow->opts->ctx;
    weft__task_follow_submit(follow, "task.comment", following->params);
}

static void on_review_done(weft_task_follow *follow, weft_exit how) {
    const review_following *following = follow->opts->ctx;
    following->review->sent = true;
    weft__task_follow_end(follow, how);
}

static weft_exit send_and_wait(task_review *self, weft_val params) {
    review_following following = {params, self};
    weft_task_follow_opts opts = {
        .url = self->how->url, .ctx = &following, .on_begin = on_review_begin, .on_done = on_review_done};
    weft_task_follow *follow = weft__zalloc(NULL, sizeof *follow);
    if (!follow)
        return no_memory(self);
    weft_exit status = weft__task_follow_run(follow, self->app, &opts);
    self->sent |= *follow->task != '\0';
    weft__free(NULL, follow);
    return status;
}

static weft_exit send_at_once(task_review *self, weft_val params) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(self->app, self->how->url, "task.comment", params, &answer);
    if (status)
        return status;
    self->sent = true;
    if (self->app->common.json)
        weft__put_line(&self->app->out, weft_copy(answer.result));
    else
        fprintf(self->app->out.file, "%s\n", weft_get_str(answer.result, "taskId", ""));
    return WEFT_DONE;
}

static weft_exit send_review(task_review *self) {
    char key[WEFT_KEY_LEN];
    weft_buf list = {0};
    int r = write_said(self, &list);
    weft__task_follow_key(key); /* who waits may have to send it twice, over two connections */
    weft_val params =
        WEFT_OBJ({"taskId", weft_str(self->id)}, {"comments", weft_raw(weft__buf_head(&list), weft__buf_len(&list))},
                 {"text", weft_str_or_none(self->said.text)},
                 {"context", self->how->context ? weft_int(self->how->context) : weft_none()},
                 {"permission", weft_str_or_none(self->how->permission)},
                 {"_meta", WEFT_OBJ({"weft/idempotencyKey", weft_str(key)})});
    weft_exit status = r < 0 ? no_memory(self) : self->how->wait ? send_and_wait(self, params) : send_at_once(self, params);
    weft__buf_done(&list, NULL);
    return status;
}

/* ---- the word ---- */

static weft_exit finish_review(task_review *self) {
    char kept[2 * PATH_MAX];
    if (!self->said.count && !self->said.text) {
        remove_file(self);
        fprintf(self->app->err.file, "nothing was written about %s: nothing is sent\n", self->id);
        return WEFT_DONE;
    }
    put_said(self);
    weft_exit status = send_review(self);
    if (self->sent)
        remove_file(self);
    else
        fprintf(self->app->err.file, "%s\n", say_kept(self, kept, sizeof kept));
    return status;
}

static weft_exit review_task(task_review *self) {
    weft_exit status = read_diff(self);
    if (status == WEFT_DONE && !weft__buf_len(&self->diff)) {
        fprintf(self->app->err.file, "%s changed nothing that could be reviewed\n", self->id);
        return WEFT_DONE;
    }
    if (status == WEFT_DONE)
        status = self->how->file ? read_given_file(self) : write_and_edit(self);
    if (status == WEFT_DONE)
        status = read_said(self);
    return status == WEFT_DONE ? finish_review(self) : status;
}

weft_exit weft__task_review_word(weft_app *app) {
    task_review *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    self->app = app;
    self->how = app->settings;
    weft_exit status = review_task(self);
    weft__review_text_done(&self->said);
    weft__buf_done(&self->edited, NULL);
    weft__buf_done(&self->diff, NULL);
    weft__free(NULL, self);
    return status;
}
