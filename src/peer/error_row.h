/* Which code a method has for a failure that is not its own: a number means what the dialect of the method says, and its row
 * says it. */
#ifndef WEFT_ERROR_ROW_H
#define WEFT_ERROR_ROW_H

#include <string.h>

#include <weft/method.h>

/* The code of the row's error with this reason, or the usual one. row may be NULL. */
static inline int weft__row_code(const weft_method *row, const char *reason, int usual) {
    for (const weft_error_row *error = row ? row->errors : NULL; error && error->code; error++)
        if (error->reason && strcmp(error->reason, reason) == 0)
            return error->code;
    return usual;
}

/* What its protocol calls that; NULL: nothing. */
static inline const char *weft__row_name(const weft_method *row, const char *reason) {
    for (const weft_error_row *error = row ? row->errors : NULL; error && error->code; error++)
        if (error->reason && strcmp(error->reason, reason) == 0)
            return error->name;
    return NULL;
}

#endif
