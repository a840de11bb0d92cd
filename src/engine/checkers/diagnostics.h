/* What a build or a test printed, as a list of places and messages: the forms of gcc, clang, linkers, tsc, esbuild, cargo
 * and rustc (in words and as JSON), and go. Whatever else stands there is passed over; that a command failed is seen from
 * its status, not from here.
 *
 * The text is a stranger's: nothing is believed but its form, and everything has a limit. */
#ifndef WEFT_DIAGNOSTICS_H
#define WEFT_DIAGNOSTICS_H

#include "arena.h"
#include "buf.h"
#include "checkers.h"

#define WEFT_DIAGNOSTICS 200         /* of one command; the first are kept, and all are counted */
#define WEFT_DIAGNOSTIC_MESSAGE 2048 /* bytes of one that are kept */
#define WEFT_DIAGNOSTIC_FILE 1024
#define WEFT_DIAGNOSTIC_CODE 64

typedef struct weft_diagnostic {
    const char *file;     /* relative to the folder where it lies in it; "": none is named */
    int64_t line, column; /* from 1; 0: not said */
    weft_severity severity;
    const char *message;
    const char *code; /* "unused-variable", "TS2322", "E0308"; "": none */
} weft_diagnostic;

typedef struct weft_diagnostics {
    weft_arena arena;
    weft_diagnostic items[WEFT_DIAGNOSTICS];
    size_t count;
    uint64_t errors, warnings; /* all of them, also those that are not kept */
    bool truncated;
} weft_diagnostics;

/* Read a text, and add what is found. folder: absolute, where the command ran. One that lies on the heap: it is large. The
 * arena's allocator must be set. -ENOMEM. */
int weft__diagnostics_read(weft_diagnostics *found, weft_bytes text, const char *folder);
void weft__diagnostics_done(weft_diagnostics *found);
/* As JSON: [{file?, line?, column?, severity, message, code?}]. most: at most so many. -ENOMEM. */
int weft__diagnostics_write(const weft_diagnostics *found, size_t most, const weft_alloc *alloc, weft_buf *out);
/* One as members of an object. */
#define WEFT_DIAGNOSTIC_MEMBERS 6
weft_val weft__diagnostic_val(const weft_diagnostic *one, weft_member members[WEFT_DIAGNOSTIC_MEMBERS]);

#endif
