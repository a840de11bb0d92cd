/* weft logs: what the daemon of this project has said in the background, and what it says next. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "config.h"
#include "daemon.h"
#include "failure.h"
#include "private_file.h"
#include "time_text.h"
#include "trust.h"

#define USUAL_LINES 50
/* A longer line is shown in pieces. Only logged messages are that long. */
#define MAX_LINE (1024 * 1024)
#define BLOCK (64 * 1024)

typedef struct settings {
    const char *lines; /* NULL: the usual */
    const char *since; /* NULL: whenever */
    bool follow;
    bool aiwg;
} settings;

typedef struct log_view {
    weft_app *app;
    int fd; /* -1: there is no log yet */
    weft_buf line;
    int64_t since_ms; /* no entry older than this; 0: whatever its time is */
    char path[PATH_MAX], path_old[PATH_MAX + 2];
} log_view;

/* ---- one line ---- */

static void put_log_words(const weft_app *app, const weft_json *entry) {
    /* Escaped wherever it goes: a line of the log stays a line. */
    weft_screen screen = app->out;
    screen.terminal = true;
    char local[WEFT_TIME_TEXT];
    const char *when = weft_get_str(entry, "timestamp", weft_get_str(entry, "time", ""));
    int64_t at = weft__time_get(entry, weft_get(entry, "timestamp").text ? "timestamp" : "time");
    if (at)
        when = weft__time_of_day(local, at); /* for people: their time */
    const char *level = weft_get_str(entry, "level", weft_get_str(entry, "way", ""));
    weft_json message = weft_get(entry, "message");
    weft__ink(&app->out, WEFT_INK_DIM);
    weft__put_text(&screen, when, strlen(when));
    weft__plain(&app->out);
    fputc(' ', app->out.file);
    weft__ink(&app->out, strcmp(level, WEFT_LOG_ERROR) == 0  ? WEFT_INK_BAD
                         : strcmp(level, WEFT_LOG_WARN) == 0 ? WEFT_INK_WARN
                                                             : WEFT_INK_NAME);
    weft__put_text(&screen, level, strlen(level));
    weft__plain(&app->out);
    fputc(' ', app->out.file);
    const char *text = weft_str_of(&message, NULL);
    if (text)
        weft__put_text(&screen, text, strlen(text));
    else
        weft__put_compact(&app->out, &message);
    weft_json data = weft_get(entry, "data");
    if (data.text) {
        fputc(' ', app->out.file);
        weft__put_compact(&screen, &data);
    }
    fputc('\n', app->out.file);
}

/* What a crash left there is no JSON. */
static void put_foreign(const weft_app *app, const char *line, size_t len) {
    weft_screen screen = app->out;
    screen.terminal = true;
    if (app->common.json) {
        weft__put_line(&app->out, WEFT_OBJ({"message", weft_strn(line, len)}));
        return;
    }
    weft__put_text(&screen, line, len);
    fputc('\n', app->out.file);
}

/* A line without a time belongs to the one before it. The first one that is recent enough is followed by others that are. */
static bool is_older(log_view *self, const weft_json *entry) {
    if (!self->since_ms)
        return false;
    int64_t when = entry ? weft__time_get(entry, "timestamp") : 0;
    if (entry && !when)
        when = weft__time_get(entry, "time");
    if (when >= self->since_ms)
        self->since_ms = 0;
    return self->since_ms != 0;
}

static void put_log_entry(log_view *self, const char *line, size_t len) {
    WEFT_AUTO(weft_doc) doc = NULL;
    const weft_app *app = self->app;
    bool is_entry = weft_doc_parse(line, len, NULL, &doc) >= 0 && weft_typeof(weft_doc_root(doc)) == WEFT_OBJECT;
    if (is_older(self, is_entry ? weft_doc_root(doc) : NULL))
        return;
    if (!is_entry)
        put_foreign(app, line, len);
    else if (app->common.json)
        weft__put_line(&app->out, weft_copy(weft_doc_root(doc)));
    else
        put_log_words(app, weft_doc_root(doc));
}

/* ---- the file ---- */

static void put_whole_lines(log_view *self) {
    char *end;
    while (
        (end = weft__buf_len(&self->line) ? memchr(weft__buf_head(&self->line), '\n', weft__buf_len(&self->line)) : NULL)) {
        size_t len = (size_t) (end - weft__buf_head(&self->line));
        put_log_entry(self, weft__buf_head(&self->line), len);
        weft__buf_take(&self->line, NULL, len + 1);
    }
}

/* The rest of a file that will not be written to any more, or of a line that is too long. */
static void put_rest(log_view *self) {
    size_t len = weft__buf_len(&self->line);
    if (len)
        put_log_entry(self, weft__buf_head(&self->line), len);
    weft__buf_take(&self->line, NULL, len);
}

/* To the end of the file as it is now. */
static int put_new(log_view *self) {
    for (;;) {
        int r = weft__buf_reserve(&self->line, NULL, BLOCK);
        if (r < 0)
            return r;
        ssize_t n = read(self->fd, weft__buf_tail(&self->line), BLOCK);
        if (n <= 0)
            break;
        self->line.end += (size_t) n;
        put_whole_lines(self);
        if (weft__buf_len(&self->line) > MAX_LINE)
            put_rest(self);
    }
    fflush(self->app->out.file);
    return 0;
}

/* Where the last lines begin; lines < 0: all of them. The line end at the end of the file begins no line. */
static off_t find_lines(int fd, int64_t lines) {
    static char block[BLOCK];
    struct stat info;
    if (lines < 0 || fstat(fd, &info) < 0)
        return 0;
    if (lines == 0)
        return info.st_size;
    for (off_t at = info.st_size, begin; at > 0; at = begin) {
        begin = at > BLOCK ? at - BLOCK : 0;
        ssize_t n = pread(fd, block, (size_t) (at - begin), begin);
        for (ssize_t i = n - 1; i >= 0; i--)
            if (block[i] == '\n' && begin + i + 1 < info.st_size && --lines == 0)
                return begin + i + 1;
    }
    return 0;
}

static int open_log_to_read(const log_view *self) {
    return weft__private_open(self->path, O_RDONLY);
}

static void say_nothing(void *ctx, const weft_remark *remark) {
    (void) ctx, (void) remark;
}

/* log.file, as far as the daemon believes it, or the usual one. Mistakes in the configuration are not told here. */
static void find_log(log_view *self) {
    const weft_layout *layout = self->app->layout;
    char user[WEFT_PATH_SIZE];
    weft_config config;
    weft_trust trust;
    weft_serve_settings typed = {0}, found = {0};
    weft__config_user_path(user);
    weft__trust_look(layout, &trust);
    weft_config_from from = {user, layout->config, getenv, layout->aiwg, &typed, &trust};
    int r = weft__config_load(&config, &from, &(weft_remarks){say_nothing, NULL}, NULL);
    if (r >= 0)
        r = weft__config_fill(&config, &found);
    snprintf(self->path, sizeof self->path, "%s", r >= 0 && found.log.file ? found.log.file : layout->log);
    snprintf(self->path_old, sizeof self->path_old, "%s.1", self->path);
    weft__config_done(&config);
}

/* ---- following ---- */

/* Was the log put away and begun anew? */
static bool is_another(const char *path, int fd) {
    struct stat ours, there;
    return lstat(path, &there) == 0 && S_ISREG(there.st_mode) &&
           (fd < 0 || fstat(fd, &ours) < 0 || ours.st_ino != there.st_ino || ours.st_dev != there.st_dev);
}

static bool is_log_cut(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_size < lseek(fd, 0, SEEK_CUR);
}

static int catch_up(log_view *self) {
    int r = 0;
    if (self->fd >= 0 && is_log_cut(self->fd)) {
        weft__buf_take(&self->line, NULL, weft__buf_len(&self->line));
        lseek(self->fd, 0, SEEK_SET);
    }
    if (self->fd >= 0)
        r = put_new(self);
    if (r < 0 || !is_another(self->path, self->fd))
        return r;
    put_rest(self);
    if (self->fd >= 0)
        close(self->fd);
    self->fd = open_log_to_read(self);
    return self->fd < 0 ? 0 : put_new(self);
}

static int watch_log(int changes, int ends, log_view *self) {
    char events[4096];
    for (;;) {
        /* The third hears that nobody reads our output any more. */
        struct pollfd fds[] = {{.fd = changes, .events = POLLIN}, {.fd = ends, .events = POLLIN}, {.fd = STDOUT_FILENO}};
        int r = catch_up(self);
        if (r < 0 || ferror(self->app->out.file))
            return r;
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents || (fds[2].revents & (POLLERR | POLLHUP)))
            return 0;
        while (read(changes, events, sizeof events) > 0)
            ;
    }
}

/* It may be put away and begun anew, so its folder is watched. */
static const char *folder_of_log(const log_view *self, char room[PATH_MAX]) {
    const char *slash = strrchr(self->path, '/');
    snprintf(room, PATH_MAX, "%.*s", slash ? (int) (slash - self->path) + 1 : 1, slash ? self->path : ".");
    return room;
}

static int follow_log(log_view *self) {
    char folder[PATH_MAX];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int ends = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int r = ends < 0 || changes < 0 ? -errno : 0;
    if (r == 0 &&
        inotify_add_watch(changes, folder_of_log(self, folder), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM) < 0)
        r = -errno;
    if (r == 0)
        r = watch_log(changes, ends, self);
    if (changes >= 0)
        close(changes);
    if (ends >= 0)
        close(ends);
    return r;
}

/* ---- the verb ---- */

static weft_exit read_lines(const weft_app *app, const char *text, int64_t *ret) {
    char *end;
    *ret = USUAL_LINES;
    if (!text)
        return WEFT_DONE;
    if (strcmp(text, "all") == 0) {
        *ret = -1;
        return WEFT_DONE;
    }
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end)
        return weft__misused(app, "--lines wants a number or \"all\", not \"%s\"", text);
    return WEFT_DONE;
}

/* What was put away may be recent enough. */
static int put_old_log(log_view *self) {
    self->fd = open(self->path_old, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int r = self->fd < 0 ? 0 : put_new(self);
    put_rest(self);
    if (self->fd >= 0)
        close(self->fd);
    return r;
}

static weft_exit show_log(log_view *self, int64_t lines, bool on) {
    const weft_app *app = self->app;
    int r = self->since_ms && lines < 0 ? put_old_log(self) : 0;
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    self->fd = open_log_to_read(self);
    if (self->fd < 0 && !(on && self->fd == -ENOENT))
        return self->fd == -ENOENT ? weft__fail(app, WEFT_NOT_FOUND, "Only a hub in the background logs there: weft start",
                                                "there is no %s", self->path)
                                   : weft__fail(app, WEFT_FAILED, NULL, "%s: %s", self->path, weft__private_why(self->fd));
    if (self->fd >= 0) {
        lseek(self->fd, find_lines(self->fd, lines), SEEK_SET);
        r = put_new(self);
    }
    if (r >= 0 && on)
        r = follow_log(self);
    put_rest(self);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit run_logs(weft_app *app) {
    const settings *how = app->settings;
    log_view self = {.app = app, .fd = -1};
    int64_t lines;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    weft_exit status = read_lines(app, how->lines ? how->lines : how->since ? "all" : NULL, &lines);
    if (status)
        return status;
    if (how->since && weft__time_typed(how->since, weft__time_now(), &self.since_ms) < 0)
        return weft__misused(app, "--since does not understand \"%s\"; it takes " WEFT_TIME_FORMS, how->since);
    int r = weft__daemon_choose(app, how->aiwg);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (r == 0)
        return weft__fail(app, WEFT_NOT_FOUND, "\"weft start\" starts a hub here.",
                          "there is no %s in this folder or above it", app->layout->home);
    find_log(&self);
    status = show_log(&self, lines, how->follow);
    if (self.fd >= 0)
        close(self.fd);
    weft__buf_done(&self.line, NULL);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, follow, flag, "follow", 'f', NULL, "then show what is logged from now on, until Ctrl-C"),
    WEFT_OPTION(settings, lines, text, "lines", 'n', "N", "how many of the last lines (default 50), or \"all\""),
    WEFT_OPTION(settings, since, text, "since", 's', "TIME", "all since this time: 11:00, 10m, 2026-01-31T12:00"),
    WEFT_OPTION_AIWG(settings),
    {0},
};

static const char *const examples[] = {
    "weft logs",
    "the last 50 lines",
    "weft logs -f -n 0",
    "what happens from now on, until Ctrl-C",
    "weft logs --since 10m",
    "the last ten minutes",
    "weft logs -n all --json | jq 'select(.level==\"ERROR\")'",
    "as it is in the file, one JSON object per line",
    NULL,
};

const weft_verb weft__logs_verb = {
    .name = "logs",
    .help = "show the log of the hub in the background",
    .usage = "",
    .examples = examples,
    .about = "The file is .weft/daemon.log, or log.file; at 10 MiB it becomes daemon.log.1 and a new one begins, which -f "
             "follows.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run_logs,
};
