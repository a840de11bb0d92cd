/* Writing the log. Only the daemon that holds the folder does, so nobody else rotates at the same time. */
#include "daemon_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "private_file.h"
#include "screen.h"
#include "write.h"

/* Weeks of an ordinary daemon's talk, and nothing that would matter on a disk. */
#define MAX_LOG (10 * 1024 * 1024)
#define LOCAL_STAMP 48

static const char *const levels[] = {WEFT_LOG_DEBUG, WEFT_LOG_INFO, WEFT_LOG_WARN, WEFT_LOG_ERROR};

static int level_number(const char *name) {
    int found = 0;
    for (int i = 0; name && i < (int) (sizeof levels / sizeof levels[0]); i++)
        if (strcasecmp(levels[i], name) == 0)
            found = i;
    return found;
}

static int open_log_file(const weft_log *log) {
    return weft__private_open(log->path, O_WRONLY | O_CREAT | O_APPEND);
}

int weft__log_open(weft_log *log, const weft_log_opts *opts) {
    weft_log made = {.fd = STDERR_FILENO, .open = true, .on_stderr = !opts->file, .level = level_number(opts->level)};
    made.text = opts->format ? strcmp(opts->format, "text") == 0 : !opts->file;
    if (opts->file && strlen(opts->file) >= sizeof made.path)
        return -ENAMETOOLONG;
    if (opts->file) {
        snprintf(made.path, sizeof made.path, "%s", opts->file);
        snprintf(made.path_old, sizeof made.path_old, "%s.1", opts->file);
        made.fd = open_log_file(&made);
    }
    if (made.fd < 0)
        return made.fd;
    *log = made;
    return 0;
}

void weft__log_close(weft_log *log) {
    if (log->open && !log->on_stderr)
        close(log->fd);
    log->open = false;
}

void weft__log_take_stderr(weft_log *log) {
    if (log->open && !log->on_stderr)
        log->is_stderr = dup2(log->fd, STDERR_FILENO) >= 0;
}

void weft__log_rotate(weft_log *log) {
    struct stat info;
    if (!log->open || log->on_stderr || fstat(log->fd, &info) < 0 || info.st_size < MAX_LOG)
        return;
    if (rename(log->path, log->path_old) < 0)
        return; /* then it grows on: a long log is better than none */
    int fd = open_log_file(log);
    if (fd < 0)
        return;
    close(log->fd);
    log->fd = fd;
    if (log->is_stderr)
        weft__log_take_stderr(log);
}

/* The time here, as everything that is said to a person has it; with its distance to UTC, because a log is read elsewhere.
 */
static const char *local_text(char ret[LOCAL_STAMP]) {
    struct timespec now;
    struct tm here;
    char zone[8];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &here);
    size_t n = strftime(ret, LOCAL_STAMP, "%Y-%m-%dT%H:%M:%S", &here);
    strftime(zone, sizeof zone, "%z", &here); /* +0100 */
    snprintf(ret + n, LOCAL_STAMP - n, ".%03d%.3s:%s", (int) (now.tv_nsec / 1000000), zone, zone + 3);
    return ret;
}

/* "2026-01-31T12:34:56.789+01:00 WARN  what happened method=ping id=1": members behind it in the order they have, strings
 * without quotes where nothing in them needs any. */
static void put_words(const weft_screen *screen, const char *level, const char *message, const weft_json *data) {
    char now[LOCAL_STAMP];
    fprintf(screen->file, "%s %-5s ", local_text(now), level);
    weft__put_text(screen, message, strlen(message));
    for (weft_iter it = weft_iterate(data); data->text && weft_next(&it);) {
        const char *text = weft_str_of(&it.value, "");
        fprintf(screen->file, " %s=", weft_str_of(&it.name, ""));
        if (weft_typeof(&it.value) == WEFT_STRING && *text && !strpbrk(text, " \"=\n\t"))
            weft__put_text(screen, text, strlen(text));
        else
            weft__put_compact(screen, &it.value);
    }
    fputc('\n', screen->file);
}

static int write_words(const weft_screen *screen, const char *level, const char *message, const weft_val *data) {
    weft_buf text = {0};
    weft_doc *doc = NULL;
    weft_json none = {0};
    int r = data->kind == WEFT_VAL_NONE ? 0 : weft__write_val(&text, NULL, data);
    if (r >= 0 && weft__buf_len(&text))
        r = weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), NULL, &doc);
    if (r >= 0)
        put_words(screen, level, message, doc ? weft_doc_root(doc) : &none);
    weft_doc_free(doc);
    weft__buf_done(&text, NULL);
    return r;
}

/* One line, as a terminal may show it; the caller frees it. */
static int make_log_line(const weft_log *log, const char *level, const char *message, const weft_val *data, char **ret,
                         size_t *ret_len) {
    char *text = NULL, now[WEFT_STAMP];
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    weft_screen screen = {.file = file, .terminal = true};
    int r = 0;
    if (!file)
        return -ENOMEM;
    if (log->text)
        r = write_words(&screen, level, message, data);
    else
        weft__put_line(&screen, WEFT_OBJ({"timestamp", weft_str(weft__clock_text(now))}, {"level", weft_str(level)},
                                         {"message", weft_str(message)}, {"data", *data}));
    if (fclose(file) != 0 || !len || r < 0) {
        free(text);
        return -ENOMEM;
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

static void write_log_line(weft_log *log, const char *level, const char *message, weft_val data) {
    char *text;
    size_t len;
    if (!log->open || level_number(level) < log->level)
        return;
    weft__log_rotate(log);
    if (make_log_line(log, level, message, &data, &text, &len) < 0)
        return;
    /* One write: a reader never sees half a line. */
    ssize_t n = write(log->fd, text, len);
    (void) n;
    free(text);
}

bool weft__log_speaks(const weft_log *log) {
    return log->open && log->on_stderr && !log->text;
}

bool weft__log_takes(const weft_log *log) {
    return log->open && (!log->on_stderr || !log->text); /* otherwise people are told in other words */
}

void weft__log_put(weft_log *log, const char *level, const char *message) {
    if (weft__log_takes(log))
        write_log_line(log, level, message, weft_none());
}

void weft__log_put_data(weft_log *log, const char *level, const char *message, weft_val data) {
    write_log_line(log, level, message, data);
}
