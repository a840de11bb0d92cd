/* Opening the files of a daemon's folder. A clone or an archive can bring anything there: links to somebody's files, hard
 * links, pipes, folders. So nothing is opened through a link, and what was opened is a regular file of ours with one name,
 * or it is not used. */
#ifndef WEFT_PRIVATE_FILE_H
#define WEFT_PRIVATE_FILE_H

#include <stddef.h>

/* A descriptor. The flags are those of open(2); a file that is made, or opened for writing, has mode 0600 afterwards. Never
 * waits, for the writer of a pipe for example. -ENOENT there is none; -ELOOP a link, there or on the way; -EISDIR not a
 * regular file; -EPERM another user's; -EMLINK it has a second name. In a path that begins with '/', only the last folder
 * and the file are looked at this way. */
int weft__private_open(const char *path, int flags);
/* The same for a whole small file. Its length without the NUL that is put behind it; -EFBIG. */
int weft__private_read(const char *path, char *ret, size_t size);
/* Write all of it; synced: also to the disk. */
int weft__private_write(int fd, const char *text, size_t len);
int weft__private_write_synced(int fd, const char *text, size_t len);
/* Put this in place of the file: written beside it, synced, renamed, and the folder synced. */
int weft__private_replace(const char *path, const char *text, size_t len);
/* What is wrong with the file, in words. */
const char *weft__private_why(int r);

#endif
