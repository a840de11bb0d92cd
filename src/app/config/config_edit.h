/* Changing one value in the text of a configuration file. Everything else in it, comments and white space included, stays
 * as the person wrote it. No file is read or written here. */
#ifndef WEFT_CONFIG_EDIT_H
#define WEFT_CONFIG_EDIT_H

#include "buf.h"

/* Names in a path of a key are joined by dots; no key is deeper than this. */
#define WEFT_CONFIG_DEPTH 8

/* The text with this value at this path: put in place of the old one, or before the other members of its object; objects on
 * the way are made. value is JSON in one line. text ends with a NUL and may
 * be empty: there is no file yet. Owned: weft__buf_done(). -EBADMSG:
 * the text is not a configuration; -ENOTDIR: a name on the way has a value that is no object; -E2BIG: the path is too deep;
 * -ENOMEM. */
int weft__config_edit_set(weft_bytes text, const char *path, weft_bytes value, weft_buf *ret);
/* The text without the member, and without its line if nothing else stands there. 1, or 0 there is none and *ret is left
 * alone. */
int weft__config_edit_unset(weft_bytes text, const char *path, weft_buf *ret);

#endif
