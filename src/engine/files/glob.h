/* Patterns as people write them for paths: "*" and "?" within one folder, "**" over any number of folders, "[a-z]", "\"
 * before a character that means itself, and in a weft_glob "{a,b}".
 *
 * A pattern cannot be made to take long: a star goes back only to the last one before it, so that matching takes at most the
 * length of the pattern times the length of the text. */
#ifndef WEFT_GLOB_H
#define WEFT_GLOB_H

#include <weft/base.h>

/* One word: a slash is a character like any other. "?" is one character of UTF-8. */
bool weft__glob_word(weft_bytes pattern, weft_bytes text);
/* A whole path, folder by folder. "**" at the end is everything in a folder, but not the folder; before a slash it may also
 * be nothing. */
bool weft__glob_path(const char *pattern, const char *path);

/* A pattern with its braces written out, at most WEFT_GLOB_MAX patterns. */
#define WEFT_GLOB_MAX 64
typedef struct weft_glob weft_glob;
/* -EINVAL a brace that is not closed, -E2BIG more than WEFT_GLOB_MAX alternatives, -ENOMEM. */
int weft__glob_new(const char *pattern, const weft_alloc *alloc, weft_glob **ret);
weft_glob *weft__glob_free(weft_glob *glob);
/* A path. As in a .gitignore, a pattern without a slash is for the name alone, in whatever folder. */
bool weft__glob_matches(const weft_glob *glob, const char *path);
/* Any text: stars take slashes too. */
bool weft__glob_says(const weft_glob *glob, weft_bytes text);

#endif
