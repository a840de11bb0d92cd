/* The daemon's log: one line for each thing it says, .weft/daemon.log unless log.file names another. A line is a JSON
 * object,
 * {"timestamp", "level", "message"} and "data" where there is some, or with log.format "text" the same in words. When a file
 * has grown large it becomes FILE.1, and a new one begins: two files at most, whatever happens.
 *
 * Without a file, in the foreground, it is standard error: what is said there for people anyway is not said twice. */
#ifndef WEFT_DAEMON_LOG_H
#define WEFT_DAEMON_LOG_H

#include <limits.h>
#include <stdbool.h>

#include "app.h"

#define WEFT_LOG_DEBUG "DEBUG"
#define WEFT_LOG_INFO "INFO"
#define WEFT_LOG_WARN "WARN"
#define WEFT_LOG_ERROR "ERROR"

typedef struct weft_log_opts {
    const char *file;   /* NULL: standard error */
    const char *format; /* "json", "text"; NULL: json in a file, text on standard error */
    const char *level;  /* "debug", "info", "warn", "error": nothing below this is kept; NULL: everything */
} weft_log_opts;

struct weft_log {
    char path[PATH_MAX], path_old[PATH_MAX + 2];
    int fd;
    int level; /* of what is kept, 0: everything */
    bool open;
    bool text;
    bool on_stderr; /* it has no file */
    bool is_stderr; /* standard error goes there too: what libraries and sanitizers print when all is lost */
};

int weft__log_open(weft_log *log, const weft_log_opts *opts);
void weft__log_close(weft_log *log);
/* Standard error from now on is the log as well. */
void weft__log_take_stderr(weft_log *log);
/* A line; a log that is not open takes none. Failing to write is not an error: there is nobody to tell. */
void weft__log_put(weft_log *log, const char *level, const char *message);
/* Would it take one? Then it is worth making. */
bool weft__log_takes(const weft_log *log);
/* With more about it: an object whose members are short. */
void weft__log_put_data(weft_log *log, const char *level, const char *message, weft_val data);
/* Is what is put there seen on standard error, so that it need not be said there as well? */
bool weft__log_speaks(const weft_log *log);
/* Begin a new file if this one is large. weft__log_put() does; others that write to standard error must ask. */
void weft__log_rotate(weft_log *log);

#endif
