/* The daemon's log, .weft/daemon.log: one JSON object per line, in the form {"timestamp", "level", "message"}. When it has
 * grown large it becomes daemon.log.1, and a new one begins: two files at most, whatever happens. */
#ifndef WEFT_DAEMON_LOG_H
#define WEFT_DAEMON_LOG_H

#include <stdbool.h>

#include "app.h"

#define WEFT_LOG_DEBUG "DEBUG"
#define WEFT_LOG_INFO "INFO"
#define WEFT_LOG_WARN "WARN"
#define WEFT_LOG_ERROR "ERROR"

struct weft_log {
    const weft_layout *layout;
    int fd;
    bool open;
    bool is_stderr; /* standard error goes there too: what libraries and sanitizers print when all is lost */
};

int weft__log_open(weft_log *log, const weft_layout *layout);
void weft__log_close(weft_log *log);
/* Standard error from now on is the log as well. */
void weft__log_take_stderr(weft_log *log);
/* A line; a log that is not open takes none. Failing to write is not an error: there is nobody to tell. */
void weft__log_put(weft_log *log, const char *level, const char *message);
/* Begin a new file if this one is large. weft__log_put() does; others that write to standard error must ask. */
void weft__log_rotate(weft_log *log);

#endif
