/* Putting together what only an AIWG daemon has. */
#include "serve_aiwg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aiwg_actions.h"
#include "aiwg_state.h"
#include "aiwg_tasks_file.h"
#include "aiwg_web.h"
#include "alloc.h"
#include "daemon_folder.h"
#include "failure.h"
#include "private_file.h"

#define TASKS ".aiwg/daemon/tasks.json"
/* What AIWG's daemon had when we came, as it was. */
#define TASKS_KEPT ".aiwg/daemon/tasks.json.aiwg"
#define MAX_LINE 512
#define ACTION_PRIORITY 1
#define WEFT_AIWG_URL 512

struct weft_serve_aiwg {
    weft_hub *hub;
    weft_daemon *daemon;
    const weft_serve_settings *how;
    weft_aiwg_loops *loops;
    weft_service *service; /* of the web interface: it has no methods */
    weft_server *server;
    weft_aiwg_web *web;
    char url[WEFT_AIWG_URL]; /* of the web interface, as AIWG writes it; "": there is none */
    weft_aiwg_state *state;
    weft_event_listener listener;
    bool imported;
    int import_r;
};

/* ---- the log ---- */

static void WEFT_PRINTF(2, 3) log_line(const weft_serve_aiwg *self, const char *format, ...) {
    char line[MAX_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    weft__log_put(&self->daemon->log, WEFT_LOG_INFO, line);
}

static const weft_task *task_of_event(const weft_serve_aiwg *self, const weft_json *data) {
    return weft__task_find(self->hub->engine, weft_get_str(data, "taskId", ""));
}

static void log_task(const weft_serve_aiwg *self, const char *type, const weft_json *data) {
    const weft_task *task = task_of_event(self, data);
    if (!task)
        return;
    const char *error = task->error ? task->error : "";
    if (strcmp(type, "task.process") == 0)
        log_line(self, "Agent task started: %s (PID %ld)", task->id, (long) task->pid);
    else if (strcmp(type, "task.completed") == 0)
        log_line(self, "Agent task completed: %s (%lldms)", task->id, (long long) (task->completed_ms - task->started_ms));
    else if (strcmp(type, "task.cancelled") == 0)
        log_line(self, "Agent task cancelled: %s", task->id);
    else if (strcmp(type, "task.failed") == 0 && task->reason && strcmp(task->reason, "timeout") == 0)
        log_line(self, "Agent task timed out: %s", task->id);
    else if (strcmp(type, "task.failed") == 0)
        log_line(self, "Agent task failed: %s - %.*s", task->id, (int) strcspn(error, "\r\n"), error);
}

/* AIWG 2026.5.1 starts a loop for a job with an action that it knows. */
static void start_action(const weft_serve_aiwg *self, const weft_json *data) {
    const char *job = weft_get_str(data, "job", ""), *action = weft_get_str(data, "action", "");
    const char *prompt = self->how->aiwg_job_actions ? weft__aiwg_action_prompt(action) : NULL;
    char why[WEFT_AIWG_LOOP_WHY] = "";
    weft_aiwg_loop_place place;
    if (!prompt || self->hub->stopping)
        return;
    log_line(self, "Executing job %s: %s", job, action);
    weft_aiwg_loop_spec spec = {.prompt = prompt, .priority = ACTION_PRIORITY, .job = job, .action = action};
    int r = weft__aiwg_loops_submit(self->loops, &spec, &place, why);
    if (r < 0)
        log_line(self, "Failed to submit job %s: %s", job, *why ? why : weft_strerror(r));
}

static void on_logged_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    const weft_serve_aiwg *self = WEFT_CONTAINER(listener, weft_serve_aiwg, listener);
    if (strncmp(event->type, "task.", 5) == 0)
        log_task(self, event->type, data);
    else if (strcmp(event->stream, WEFT_STREAM_FILES) == 0)
        log_line(self, "Event received: watch - %s", event->type);
    else if (strcmp(event->stream, WEFT_STREAM_CRON) == 0) {
        log_line(self, "Event received: schedule - %s", event->type);
        start_action(self, data);
    }
}

/* ---- loops ---- */

static void log_loops_event(const weft_serve_aiwg *self, const char *name, const weft_json *data) {
    const char *id = weft_get_str(data, "loopId", "");
    if (strcmp(name, "loop:started") == 0)
        log_line(self, "Loop started: %s", id);
    else if (strcmp(name, "loop:completed") == 0)
        log_line(self, "Loop completed: %s", id);
    else if (strcmp(name, "loop:failed") == 0)
        log_line(self, "Loop failed: %s (permanent: %s)", id, weft_get_bool(data, "permanent", false) ? "true" : "false");
    else if (strcmp(name, "circuit:trip") == 0)
        log_line(self, "Circuit breaker tripped: %lld failures", (long long) weft_get_int(data, "consecutiveFailures", 0));
    else if (strcmp(name, "budget:warning") == 0)
        log_line(self, "Budget warning: %s%% used", weft_get_str(data, "percentUsed", ""));
}

static void on_loops_event(void *ctx, const char *name, const char *data, size_t len) {
    const weft_serve_aiwg *self = ctx;
    weft_doc *doc;
    if (weft_doc_parse(data, len, NULL, &doc) >= 0) {
        log_loops_event(self, name, weft_doc_root(doc));
        weft_doc_free(doc);
    }
    if (self->web)
        weft__aiwg_web_event(self->web, name, data, len);
}

static void on_loops_output(void *ctx, const char *loop, weft_bytes text) {
    const weft_serve_aiwg *self = ctx;
    if (self->web)
        weft__aiwg_web_output(self->web, loop, text);
}

/* ---- tasks.json ---- */

/* A whole file of ours. Owned; NULL with *ret_r 0: there is none. */
static char *read_whole(const char *path, size_t max, size_t *ret_len, int *ret_r) {
    struct stat info;
    char *text = NULL;
    size_t len = 0;
    int fd = weft__private_open(path, O_RDONLY);
    *ret_r = fd == -ENOENT ? 0 : fd < 0 ? fd : 0;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) < 0 || (size_t) info.st_size > max)
        *ret_r = -EFBIG;
    else if (!(text = weft__alloc(NULL, (size_t) info.st_size + 1)))
        *ret_r = -ENOMEM;
    for (ssize_t n = 1; text && n > 0 && len<(size_t) info.st_size; len += n> 0 ? (size_t) n : 0)
        n = read(fd, text + len, (size_t) info.st_size - len);
    close(fd);
    *ret_len = len;
    return text;
}

static void on_imported(void *ctx, int r) {
    weft_serve_aiwg *self = ctx;
    self->imported = true;
    self->import_r = r;
}

static int import_text(weft_serve_aiwg *self, const char *text, size_t len) {
    weft_doc *doc;
    int r = weft_doc_parse(text, len, NULL, &doc);
    if (r < 0)
        return r;
    uint64_t before = weft__task_next(self->hub->engine);
    r = weft__aiwg_tasks_import(self->hub, weft_doc_root(doc), on_imported, self);
    weft_doc_free(doc);
    while (r > 0 && !self->imported)
        if (weft_loop_once(weft__engine_loop(self->hub->engine), true) < 0)
            return -EIO;
    if (r > 0 && self->import_r >= 0)
        log_line(self, "Task store initialized (tasks %llu to %llu taken over from tasks.json)", (unsigned long long) before,
                 (unsigned long long) weft__task_next(self->hub->engine) - 1);
    return r > 0 ? self->import_r : r;
}

/* Ours is written over it later; whatever AIWG's own was stays beside it, once. */
static void import_tasks(weft_serve_aiwg *self) {
    size_t len = 0;
    int r;
    char *text = read_whole(TASKS, WEFT_AIWG_TASKS_FILE, &len, &r);
    if (text && link(TASKS, TASKS_KEPT) < 0 && errno != EEXIST)
        r = -errno;
    if (text && r >= 0)
        r = import_text(self, text, len);
    if (r < 0)
        weft__warn(self->daemon->app, "weft serve: " TASKS ": it is not taken over: %s",
                   r == -EINVAL || r == -EBADMSG ? "it is not JSON" : weft_strerror(r));
    weft__free(NULL, text);
}

/* ---- the web interface ---- */

static void on_web_note(weft_server *server, const char *line, void *data) {
    const weft_serve_aiwg *self = data;
    (void) server;
    weft__warn(self->daemon->app, "weft serve: web: %s", line);
}

/* AIWG takes its token from the variable as well. */
static const char *web_token(const weft_serve_settings *how) {
    const char *token = how->aiwg_web_token ? how->aiwg_web_token : getenv("AIWG_WEB_TOKEN");
    return token && *token ? token : NULL;
}

static int open_web_server(weft_serve_aiwg *self, const char *token) {
    const weft_serve_settings *how = self->how;
    weft_service_opts service = {.title = "aiwg", .version = weft_version(), .limits = how->limits};
    weft_server_opts server = how->server;
    weft_token tokens[] = {{.token = token, .name = "aiwg-web", .scopes = WEFT_READ " " WEFT_WORK}, {0}};
    weft_listen_opts listen = {.tokens = token ? tokens : NULL,
                               .hosts = how->hosts.count ? how->hosts.items : NULL,
                               .origins = how->origins.count ? how->origins.items : NULL};
    int r = weft_service_new(&service, &self->service);
    server.service = self->service;
    server.on_note = on_web_note;
    server.data = self;
    if (r >= 0)
        r = weft_server_new(weft__engine_loop(self->hub->engine), &server, &self->server);
    if (r >= 0)
        r = weft__aiwg_web_new(self->hub, self->server, token != NULL, &self->web);
    if (r >= 0 && token)
        r = weft_server_public(self->server, "/");
    return r < 0 ? r : weft_server_listen(self->server, how->aiwg_web, &listen);
}

/* The rules of every other endpoint hold: beyond this machine only with insecure_listen, and then with a token. */
static int check_web_url(const weft_serve_aiwg *self, const char *token) {
    weft_url url;
    weft_serve_settings how = *self->how;
    how.auth = token ? NULL : "none";
    if (weft__url_check(self->daemon->app, how.aiwg_web, &url))
        return -EINVAL;
    weft_exit status = weft__serve_check(self->daemon->app, &how, &url);
    weft__url_done(&url, NULL);
    return status ? -EACCES : 0;
}

static void close_web(weft_serve_aiwg *self) {
    self->web = weft__aiwg_web_free(self->web);
    self->server = weft_server_free(self->server);
    weft_service_unref(self->service);
    self->service = NULL;
}

/* Without the slash behind it, since AIWG's programs put "/api/..." there. */
static void note_web_url(weft_serve_aiwg *self) {
    snprintf(self->url, sizeof self->url, "%s", weft_server_url(self->server, 0));
    for (size_t len = strlen(self->url); len && self->url[len - 1] == '/'; len--)
        self->url[len - 1] = '\0';
}

static void start_web(weft_serve_aiwg *self) {
    const char *token = web_token(self->how);
    if (!self->how->aiwg_web || !self->daemon->held)
        return;
    int r = check_web_url(self, token);
    if (r >= 0)
        r = open_web_server(self, token);
    if (r >= 0) {
        note_web_url(self);
        log_line(self, "Web server listening on %s", self->url);
        weft__remark(self->daemon->app, "AIWG's web interface: %s", self->url);
        return;
    }
    close_web(self);
    weft__warn(self->daemon->app, "weft serve: the web interface %s: %s", self->how->aiwg_web,
               r == -EACCES ? "it is not opened" : weft_strerror(r));
}

/* ---- life ---- */

/* AIWG 2026.5.1 takes these before daemon.json, and "aiwg daemon init" writes one. */
static void warn_of_yaml(const weft_serve_aiwg *self) {
    static const char *const names[] = {".aiwg/daemon.yaml", ".aiwg/daemon.yml"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (access(names[i], F_OK) == 0) {
            log_line(self, "%s is not read, only .aiwg/daemon.json", names[i]);
            weft__warn(self->daemon->app, "weft serve: %s is not read: put its settings into .aiwg/daemon.json", names[i]);
        }
}

int weft__serve_aiwg_new(weft_hub *hub, weft_daemon *daemon, const weft_serve_settings *how, weft_serve_aiwg **ret) {
    weft_serve_aiwg *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    self->daemon = daemon;
    self->how = how;
    weft__list_init(&self->listener.link);
    weft_aiwg_loops_opts opts = {
        .hub = hub, .limits = how->loops, .on_event = on_loops_event, .on_output = on_loops_output, .ctx = self};
    int r = weft__aiwg_loops_new(&opts, &self->loops);
    if (r < 0) {
        weft__free(NULL, self);
        return r;
    }
    hub->loops = self->loops;
    *ret = self;
    if (!daemon->app->layout->aiwg)
        return 0;
    if (daemon->held)
        import_tasks(self);
    warn_of_yaml(self);
    self->listener.on_event = on_logged_event;
    weft__engine_listen(hub->engine, &self->listener);
    start_web(self);
    return 0;
}

void weft__serve_aiwg_ready(weft_serve_aiwg *self) {
    const weft_layout *layout = self->daemon->app->layout;
    weft_aiwg_state_opts opts = {.hub = self->hub,
                                 .folder = layout->home,
                                 .socket = layout->socket,
                                 .web = self->server ? self->url : NULL,
                                 .beat_ms = self->how->aiwg_beat_ms,
                                 .put = weft__daemon_folder_put};
    if (!self->daemon->held || !layout->aiwg)
        return;
    int r = weft__aiwg_state_new(&opts, &self->state);
    if (r >= 0)
        r = weft__aiwg_state_trouble(self->state);
    if (r < 0)
        weft__warn(self->daemon->app, "weft serve: %s: %s", layout->home, weft_strerror(r));
}

void weft__serve_aiwg_stop(weft_serve_aiwg *self) {
    weft__aiwg_loops_stop(self->loops);
    if (self->server)
        weft_server_refuse(self->server);
}

weft_serve_aiwg *weft__serve_aiwg_free(weft_serve_aiwg *self) {
    if (!self)
        return NULL;
    weft__engine_unlisten(&self->listener);
    self->state = weft__aiwg_state_free(self->state);
    close_web(self);
    self->hub->loops = NULL;
    weft__aiwg_loops_free(self->loops);
    return weft__free(NULL, self);
}
