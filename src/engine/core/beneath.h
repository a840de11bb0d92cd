/* A folder beneath another one, found without being led out of it: not by "..", not by an absolute path, not by a link. */
#ifndef WEFT_BENEATH_H
#define WEFT_BENEATH_H

#include <weft/base.h>

/* Bytes of a path beneath the root, as it is kept. */
#define WEFT_BENEATH_PATH 1024

/* Where this folder is, relative to root and without links, into ret; "": it is root itself. path is relative to root, or
 * absolute and written with root in front. links: those that stay beneath root are followed; otherwise none is, and what was
 * found once is found again only if nobody has put a link there. -EXDEV it leads out; -ENOENT, -ENOTDIR; -ELOOP a link;
 * -ENAMETOOLONG; or the system's error. */
int weft__beneath(const char *root, const char *path, bool links, char ret[WEFT_BENEATH_PATH]);

#endif
