/* Finding programs, without ever running what lies in the current folder. */
#ifndef WEFT_FIND_PROGRAM_H
#define WEFT_FIND_PROGRAM_H

#include <stddef.h>

/* The program that would run: a name with a slash as it is, any other by the absolute folders of this PATH. -ENOENT: there
 * is none; -EACCES: what there is may not be run. */
int weft__find_program(const char *name, const char *path, char *ret, size_t size);

#endif
