/* What the watcher does not look at, by the rules of .gitignore: the last pattern that matches decides, "!" takes back, a
 * slash ties a pattern to its folder, a slash at the end is for folders only. Names are compared byte by byte, as on a file
 * system that tells capitals from small letters. */
#ifndef WEFT_IGNORE_H
#define WEFT_IGNORE_H

#include <weft/base.h>

/* Patterns of one list; what is longer is left out. No .gitignore that people write comes near. */
#define WEFT_IGNORE_PATTERNS 4096
#define WEFT_IGNORE_FILE (256 * 1024)

typedef struct weft_ignore weft_ignore;
typedef enum weft_ignored { WEFT_IGNORE_NO_WORD, WEFT_IGNORE_YES, WEFT_IGNORE_NO } weft_ignored;

int weft__ignore_new(const weft_alloc *alloc, weft_ignore **ret);
weft_ignore *weft__ignore_free(weft_ignore *ignore);
/* One line, or all the lines of a file. -ENOMEM. */
int weft__ignore_add(weft_ignore *ignore, weft_bytes line);
int weft__ignore_add_text(weft_ignore *ignore, weft_bytes text);
/* The .gitignore in an open folder. NULL when there is none, or none that can be read. Owned. */
weft_ignore *weft__ignore_read(int folder, const weft_alloc *alloc);
/* path is relative to the folder the list belongs to. */
weft_ignored weft__ignore_says(const weft_ignore *ignore, const char *path, bool folder);

#endif
