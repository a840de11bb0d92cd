/* The calls, each a piece of work for a thread; see files.h. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "workers.h"

struct weft_files {
    const weft_alloc *alloc;
    weft_workers *workers;
    char *folder;
    int root;
    mode_t umask;
    unsigned how;
    size_t bytes; /* of content that waits */
};

typedef enum call_kind { READ, LIST, WRITE } call_kind;

typedef struct file_call {
    weft_work work;
    weft_files *files;
    call_kind kind;
    weft_file_done *done;
    void *ctx;
    weft_file_read read;
    size_t max;
    weft_file_write write;
    /* Set by the thread. */
    int r;
    weft_file_content content;
    weft_file_list list;
    bool created;
    char *folder; /* that it is beneath; NULL: the root */
    char room[];  /* the path, the content, the folder */
} file_call;

static void free_file_call(file_call *call) {
    weft_files *files = call->files;
    files->bytes -= call->write.content.len;
    weft__file_content_done(&call->content, files->alloc);
    weft__file_list_done(&call->list, files->alloc);
    weft__free(files->alloc, call);
}

static int open_call_folder(const file_call *call) {
    if (*call->folder != '/')
        return weft__beneath_root(call->files->root, call->folder, call->files->how);
    int root = open(call->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return root < 0 ? -errno : root;
}

static void run_file_call(weft_work *work) {
    file_call *call = WEFT_CONTAINER(work, file_call, work);
    const weft_files *files = call->files;
    unsigned how = files->how | WEFT_BENEATH_LINKS;
    int root = call->folder ? open_call_folder(call) : files->root;
    if (root < 0)
        call->r = root;
    else if (call->kind == READ)
        call->r = weft__file_read(root, &call->read, how, files->alloc, &call->content);
    else if (call->kind == LIST)
        call->r = weft__file_list(root, call->read.path, call->max, how, files->alloc, &call->list);
    else
        call->r = weft__file_write(root, &call->write, files->how, &call->created);
    if (call->folder && root >= 0)
        close(root);
}

static void call_done(weft_work *work, bool lost) {
    file_call *call = WEFT_CONTAINER(work, file_call, work);
    bool ok = call->r == 0;
    weft_file_result result = {
        .r = call->r,
        .content = ok && call->kind == READ ? &call->content : NULL,
        .list = ok && call->kind == LIST ? &call->list : NULL,
        .written = ok && call->kind == WRITE,
        .created = call->created,
    };
    if (!lost)
        call->done(call->ctx, &result);
    free_file_call(call);
}

static int make_call(weft_files *files, call_kind kind, weft_bytes path, weft_bytes content, weft_bytes folder,
                     file_call **ret) {
    char checked[PATH_MAX];
    int r = weft__beneath_check(path, checked);
    if (r >= 0 && folder.len && *folder.data != '/')
        r = weft__beneath_check(folder, checked);
    if (r < 0)
        return r;
    if (content.len > WEFT_FILE_WRITE_MAX)
        return -EFBIG;
    if (content.len > WEFT_FILES_BYTES - files->bytes)
        return -EAGAIN;
    file_call *call = weft__zalloc(files->alloc, sizeof *call + path.len + content.len + folder.len + 1);
    if (!call)
        return -ENOMEM;
    call->work = (weft_work){.run = run_file_call, .done = call_done};
    call->files = files;
    call->kind = kind;
    memcpy(call->room, path.data, path.len);
    if (content.len)
        memcpy(call->room + path.len, content.data, content.len);
    call->read.path = call->write.path = (weft_bytes){call->room, path.len};
    call->write.content = (weft_bytes){call->room + path.len, content.len};
    if (folder.len)
        call->folder = memcpy(call->room + path.len + content.len, folder.data, folder.len);
    files->bytes += content.len;
    *ret = call;
    return 0;
}

static int give_call(file_call *call, weft_file_done *done, void *ctx) {
    call->done = done;
    call->ctx = ctx;
    int r = weft__workers_give(call->files->workers, &call->work);
    if (r < 0)
        free_file_call(call);
    return r;
}

int weft__files_read(weft_files *files, const weft_file_read *read, weft_file_done *done, void *ctx) {
    file_call *call;
    int r = make_call(files, READ, read->path, (weft_bytes){0}, read->folder, &call);
    if (r < 0)
        return r;
    weft_bytes path = call->read.path;
    call->read = *read;
    call->read.path = path;
    return give_call(call, done, ctx);
}

int weft__files_list(weft_files *files, weft_bytes path, size_t max, weft_file_done *done, void *ctx) {
    file_call *call;
    int r = make_call(files, LIST, path, (weft_bytes){0}, (weft_bytes){0}, &call);
    if (r < 0)
        return r;
    call->max = max;
    return give_call(call, done, ctx);
}

int weft__files_write(weft_files *files, const weft_file_write *write, weft_file_done *done, void *ctx) {
    file_call *call;
    int r = make_call(files, WRITE, write->path, write->content, write->folder, &call);
    if (r < 0)
        return r;
    call->write.folders = write->folders;
    call->write.umask = files->umask;
    return give_call(call, done, ctx);
}

int weft__files_relative(const weft_files *files, weft_bytes path, weft_bytes *ret) {
    size_t len = strlen(files->folder);
    if (!path.len || *path.data != '/') {
        *ret = path;
        return 0;
    }
    while (len && files->folder[len - 1] == '/')
        len--;
    if (path.len < len || memcmp(path.data, files->folder, len) != 0 || (path.len > len && path.data[len] != '/'))
        return -EXDEV;
    while (len < path.len && path.data[len] == '/')
        len++;
    *ret = len == path.len ? (weft_bytes){".", 1} : (weft_bytes){path.data + len, path.len - len};
    return 0;
}

static int open_files(weft_files *files, const weft_files_opts *opts) {
    files->folder = weft__strndup(opts->alloc, opts->folder, strlen(opts->folder));
    if (!files->folder)
        return -ENOMEM;
    files->root = open(opts->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (files->root < 0)
        return -errno;
    return weft__workers_new(
        &(weft_workers_opts){.loop = opts->loop, .alloc = opts->alloc, .max_waiting = WEFT_FILES_WAITING}, &files->workers);
}

int weft__files_new(const weft_files_opts *opts, weft_files **ret) {
    weft_files *files = weft__zalloc(opts->alloc, sizeof *files);
    if (!files)
        return -ENOMEM;
    files->alloc = opts->alloc;
    files->umask = opts->umask;
    files->how = opts->how;
    files->root = -1;
    int r = open_files(files, opts);
    if (r < 0) {
        weft__files_free(files);
        return r;
    }
    *ret = files;
    return 0;
}

weft_files *weft__files_free(weft_files *files) {
    if (!files)
        return NULL;
    weft__workers_free(files->workers);
    if (files->root >= 0)
        close(files->root);
    weft__free(files->alloc, files->folder);
    return weft__free(files->alloc, files);
}
