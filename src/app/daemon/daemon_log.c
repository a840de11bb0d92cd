/* Writing the log. Only the daemon that holds the folder does, so nobody else rotates at the same time. */
#include "daemon_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "private_file.h"
#include "screen.h"

/* Weeks of an ordinary daemon's talk, and nothing that would matter on a disk. */
#define MAX_LOG (10 * 1024 * 1024)

static int open_log_file(const weft_layout *layout) {
    return weft__private_open(layout->log, O_WRONLY | O_CREAT | O_APPEND);
}

int weft__log_open(weft_log *log, const weft_layout *layout) {
    int fd = open_log_file(layout);
    if (fd < 0)
        return fd;
    *log = (weft_log){.layout = layout, .fd = fd, .open = true};
    return 0;
}

void weft__log_close(weft_log *log) {
    if (log->open)
        close(log->fd);
    log->open = false;
}

void weft__log_take_stderr(weft_log *log) {
    if (log->open)
        log->is_stderr = dup2(log->fd, STDERR_FILENO) >= 0;
}

void weft__log_rotate(weft_log *log) {
    struct stat info;
    if (!log->open || fstat(log->fd, &info) < 0 || info.st_size < MAX_LOG)
        return;
    if (rename(log->layout->log, log->layout->log_old) < 0)
        return; /* then it grows on: a long log is better than none */
    int fd = open_log_file(log->layout);
    if (fd < 0)
        return;
    close(log->fd);
    log->fd = fd;
    if (log->is_stderr)
        weft__log_take_stderr(log);
}

/* One line, as a terminal may show it; the caller frees it. */
static int make_log_line(weft_val value, char **ret, size_t *ret_len) {
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    if (!file)
        return -ENOMEM;
    weft__put_line(&(weft_screen){.file = file, .terminal = true}, value);
    if (fclose(file) != 0 || !len) {
        free(text);
        return -ENOMEM;
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

void weft__log_put(weft_log *log, const char *level, const char *message) {
    char now[WEFT_STAMP];
    char *text;
    size_t len;
    if (!log->open)
        return;
    weft__log_rotate(log);
    weft_val line =
        WEFT_OBJ({"timestamp", weft_str(weft__clock_text(now))}, {"level", weft_str(level)}, {"message", weft_str(message)});
    if (make_log_line(line, &text, &len) < 0)
        return;
    /* One write: a reader never sees half a line. */
    ssize_t n = write(log->fd, text, len);
    (void) n;
    free(text);
}
