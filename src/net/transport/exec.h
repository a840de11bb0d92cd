/* Child processes: started without forking this process's memory, watched by descriptor, ended politely and then not.
 *
 * A child talks over one socket that is its stdin and its stdout. It gets a process group of its own, default signals and
 * no other descriptor of ours than stderr. It never becomes a zombie that outlives its weft_child. */
#ifndef WEFT_EXEC_H
#define WEFT_EXEC_H

#include <sys/types.h>
#include <uv.h>

#include <weft/base.h>

#include "alloc.h"

typedef struct weft_child weft_child;

/* Start argv[0] with these arguments. A name without a slash is looked for in PATH, in absolute folders only: never in the
 * current one. *ret_fd is our end of its stdio, non-blocking and close-on-exec; owned. -ENOENT: there is no such program;
 * -EACCES it may not be run; others from the kernel. */
int weft__child_new(uv_loop_t *loop, const char *const *argv, bool quiet_stderr, const weft_alloc *alloc, weft_child **ret,
                    int *ret_fd);

/* Hear once that it has exited, with its wait status (as for WIFEXITED; -1 when somebody else collected it). */
void weft__child_on_exit(weft_child *child, void (*on_exit)(void *ctx, int status), void *ctx);

/* End it and free everything: its stdin must be closed already. It has 1 s to leave by itself, then its group gets SIGTERM,
 * 2 s later SIGKILL. on_gone (may be NULL) runs when nothing is left, never inside this call; on_exit is not called any
 * more. Takes the child. */
void weft__child_end(weft_child *child, void (*on_gone)(void *ctx), void *ctx);

/* Take the next step of ending it now. For tests, which do not wait. */
void weft__child_hurry(weft_child *child);

/* The program that would run, or -ENOENT or -EACCES. For tests. */
int weft__find_program(const char *name, const char *path, char *ret, size_t size);

#endif
