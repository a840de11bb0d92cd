/* The files beneath one folder, for clients and agents: read, list, write. Nothing outside of it is reached, by whatever
 * path or link (beneath.h), and some names are closed. Only regular files are read and written, so that nobody waits for a
 * pipe or reaches a device.
 *
 * weft_files works on threads of its own (workers.h) and answers on the loop's. The functions below it do the work, and may
 * be called where waiting for a disk does not matter. */
#ifndef WEFT_FILES_H
#define WEFT_FILES_H

#include "buf.h"
#include "loop.h"

#define WEFT_FILE_READ (1u << 20)      /* bytes, unless somebody asks for more or less */
#define WEFT_FILE_READ_MAX (16u << 20) /* as base64 it still fits into the largest answer */
#define WEFT_FILE_SCAN (64u << 20)     /* bytes that are read in order to find a line */
#define WEFT_FILE_WRITE_MAX (16u << 20)
#define WEFT_FILE_ENTRIES 5000       /* of a folder */
#define WEFT_FILES_WAITING 256       /* calls that no thread has begun */
#define WEFT_FILES_BYTES (64u << 20) /* of content that waits to be written */

typedef enum weft_file_type { WEFT_FILE_REGULAR, WEFT_FILE_FOLDER, WEFT_FILE_LINK, WEFT_FILE_OTHER } weft_file_type;

/* ---- read ---- */

typedef struct weft_file_read {
    weft_bytes path;
    size_t max;           /* bytes; 0: WEFT_FILE_READ */
    uint64_t line, limit; /* only limit lines from this one on, the first is 1; 0: from the first, all */
    weft_bytes folder;    /* weft__files_read() only: beneath this folder, which is beneath the root; empty: the root. An
                             absolute one is a folder that the caller has made, wherever it is */
} weft_file_read;

typedef struct weft_file_content {
    weft_buf content;
    bool text;      /* UTF-8 without NUL; if not, it has to be sent in some other way */
    bool truncated; /* there is more of what was asked for */
    uint64_t size;  /* of the whole file */
    int64_t mtime_ms;
    unsigned mode; /* its permissions */
} weft_file_content;

/* -ENOENT, -EACCES, -EXDEV (it leads outside), -EISDIR, -EINVAL (not a regular file, or no path), -ENAMETOOLONG, -ENOMEM. */
int weft__file_read(int root, const weft_file_read *read, unsigned how, const weft_alloc *alloc, weft_file_content *ret);
void weft__file_content_done(weft_file_content *content, const weft_alloc *alloc);

/* ---- list ---- */

typedef struct weft_file_entry {
    char *name; /* as the system has it: not always UTF-8 */
    weft_file_type type;
    uint64_t size; /* of a regular file */
    int64_t mtime_ms;
} weft_file_entry;

typedef struct weft_file_list {
    weft_file_entry *entries; /* by name, byte by byte; closed names are left out */
    size_t count;
    bool truncated; /* there are more; which were left out is the system's choice */
} weft_file_list;

/* The folder itself is ".". max 0: WEFT_FILE_ENTRIES, which is also the most. -ENOTDIR; others as above. */
int weft__file_list(int root, weft_bytes path, size_t max, unsigned how, const weft_alloc *alloc, weft_file_list *ret);
void weft__file_list_done(weft_file_list *list, const weft_alloc *alloc);

/* ---- write ---- */

typedef struct weft_file_write {
    weft_bytes path, content;
    bool folders;      /* make the folders that are missing on the way */
    mode_t umask;      /* for what is new */
    weft_bytes folder; /* weft__files_write() only, as above */
} weft_file_write;

/* All of it or nothing: written beside the file under another name, synced, and renamed. The file keeps its permissions; a
 * new one has 0666 without the umask's. Never through a link, nor over one: -ELOOP. Other names of the same file (hard
 * links) keep the old content. -EACCES also when the file is there and may not be written, -EFBIG; others as above.
 * *ret_created: there was no such file. */
int weft__file_write(int root, const weft_file_write *write, unsigned how, bool *ret_created);

/* ---- on threads ---- */

typedef struct weft_files weft_files;

typedef struct weft_files_opts {
    weft_loop *loop;
    const weft_alloc *alloc; /* is used from the threads too */
    const char *folder;      /* absolute; stays open, whatever happens to its name */
    mode_t umask;            /* of the user, not of the daemon */
    unsigned how;            /* WEFT_BENEATH_WALK, for tests; links are followed in reading */
} weft_files_opts;

/* Exactly one of the pointers is set, or none when r is below zero; borrowed. */
typedef struct weft_file_result {
    int r;
    const weft_file_content *content;
    const weft_file_list *list;
    bool written, created;
} weft_file_result;
/* Runs once for each call that was accepted, never inside of it; not when the files are freed before. It may make other
 * calls, but not free the files. */
typedef void weft_file_done(void *ctx, const weft_file_result *result);

int weft__files_new(const weft_files_opts *opts, weft_files **ret);
weft_files *weft__files_free(weft_files *files);

/* Everything is copied. -EAGAIN: too much is waiting; -ENOMEM, and what can be said without looking at the disk (-EINVAL,
 * -EXDEV, -EACCES, -EFBIG, -ENAMETOOLONG). */
int weft__files_read(weft_files *files, const weft_file_read *read, weft_file_done *done, void *ctx);
int weft__files_list(weft_files *files, weft_bytes path, size_t max, weft_file_done *done, void *ctx);
int weft__files_write(weft_files *files, const weft_file_write *write, weft_file_done *done, void *ctx);

/* An absolute path, as ACP has them, as one that the calls above take: what follows the folder's own path, "." for the
 * folder itself; a relative one as it is. Points into path, or is a constant. It is not looked at further; that is done when
 * it is used. -EXDEV: it begins otherwise. */
int weft__files_relative(const weft_files *files, weft_bytes path, weft_bytes *ret);

#endif
