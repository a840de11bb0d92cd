/* Errors with tinyvex's own names. */
#include <stdarg.h>
#include <stdio.h>

#include "tinyvex.h"

#define MAX_MESSAGE 1024

int weft__tinyvex_refuse(weft_req *req, int code, const char *name, const char *reason, const char *path, const char *format,
                         ...) {
    char message[MAX_MESSAGE];
    va_list args;
    if (!req)
        return 0;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return weft_fail(req, code, message,
                     WEFT_OBJ({"reason", weft_str(reason)}, {"code", weft_str(name)}, {"path", weft_str_or_none(path)}));
}
