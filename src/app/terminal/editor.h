/* The person's editor, for a text that is too long to be typed at a prompt. */
#ifndef WEFT_EDITOR_H
#define WEFT_EDITOR_H

#include <stddef.h>

/* Run $VISUAL, else $EDITOR, else "vi" on the file, and wait for its end. It is a program with arguments, quoted where they
 * have blanks; no shell runs it, and the program is not taken from the project. Its exit status (128 and more: a signal), or
 * <0; name says which it is in any case. -ENOENT: there is none of this name; -EINVAL: only a shell would understand it. */
int weft__editor_run(const char *file, char *name, size_t size);

#endif
