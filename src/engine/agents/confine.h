/* Keeping a program to some folders: what it may read, what it may write, and no network. By Landlock, which needs no
 * privilege; a kernel without it lets the program read and write what the user may. Used by the guard, in the process that
 * becomes the program, so nothing here uses the library. */
#ifndef WEFT_CONFINE_H
#define WEFT_CONFINE_H

#include <stdbool.h>

/* What the texts of a list begin with: the rest is an absolute path. */
enum { WEFT_CONFINE_READ = 'r', WEFT_CONFINE_WRITE = 'w' };

/* Does the kernel do it? */
bool weft__confine_possible(void);
/* From now on, for this process and all that it starts: only what lies beneath these paths is opened; those of
 * WEFT_CONFINE_READ may be read and run, those of WEFT_CONFINE_WRITE also be written. Paths that are not there are passed
 * over. Ends with NULL. 0 also where the kernel does not know how; <0: it could not be done. */
int weft__confine(char *const *list);

#endif
