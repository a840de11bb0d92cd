/* Opening what lies beneath a folder and nothing else, whatever a path says and whatever somebody does to the tree
 * meanwhile.
 *
 * openat2() does it where no link is in the way. With a link, or where the kernel or a filter of system calls refuses
 * openat2(), the path is walked here, one name after the other, each opened without following it. A link is read and its
 * target walked like a part of the path; ".." goes back to the folder we came from, which is held open. So nothing depends
 * on what a name meant a moment ago, and no path is ever compared with another.
 *
 * Some names are closed, wherever they are and in capitals too: .git, .weft, and daemon in .aiwg. The first holds hooks and,
 * in its configuration, programs and passwords; the others hold a hub's token and journal. They are closed as well to a link
 * that leads there. */
#ifndef WEFT_BENEATH_H
#define WEFT_BENEATH_H

#include <limits.h>

#include <weft/base.h>

enum {
    WEFT_BENEATH_LINKS = 1 << 0, /* follow links that stay beneath */
    WEFT_BENEATH_WALK = 1 << 1,  /* do without openat2() */
};

#define WEFT_BENEATH_LINKS_MAX 40 /* links in one path, as in the kernel */
#define WEFT_BENEATH_DEPTH 256    /* folders in one path; each is a descriptor while it is walked */

/* A name that is closed in every folder? */
bool weft__beneath_closed(weft_bytes name);
/* Is it a path we work with at all? -EINVAL: it is empty or has a NUL; -ENAMETOOLONG; -EXDEV: it is absolute; -EACCES: a
 * closed name is in it. ret gets it with its end. */
int weft__beneath_check(weft_bytes path, char ret[PATH_MAX]);

/* Open a path beneath the folder root; the flags are those of open(), without O_CREAT. O_CLOEXEC and O_NOFOLLOW are added.
 * The descriptor is owned. -EXDEV: it leads outside; -ELOOP: a link is in the way, or too many; -EACCES: a closed name;
 * others from the kernel. */
int weft__beneath_open(int root, const char *path, int flags, unsigned how);
/* Open the folder that a path's last name is in, following no link; ret_name points into the path. -EINVAL: the last name
 * is no name ("..", "x/"). */
int weft__beneath_parent(int root, const char *path, unsigned how, char ret_name[NAME_MAX + 1]);

/* Open a folder beneath root as a root of its own, following no link. Nothing in it that is closed beneath root is open
 * beneath this one: -EACCES for an .aiwg, of which only the name says what is closed in it. */
int weft__beneath_root(int root, const char *folder, unsigned how);

/* Bytes of a folder's path beneath the root, as it is kept. */
#define WEFT_BENEATH_PATH 1024

/* Where this folder is, relative to root and without links, into ret; "": it is root itself. path is relative to root, or
 * absolute and written with root in front. links: those that stay beneath root are followed; otherwise none is, and what was
 * found once is found again only if nobody has put a link there. -ENOENT, -ENOTDIR, and as weft__beneath_open(). */
int weft__beneath_folder(const char *root, const char *path, bool links, char ret[WEFT_BENEATH_PATH]);

#endif
