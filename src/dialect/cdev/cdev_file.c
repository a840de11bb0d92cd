/* file/get and file/list: what lies beneath the project's folder. Whatever leads out of it is not found. */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "alloc.h"
#include "cdev.h"
#include "reply.h"
#include "write.h"

struct file_params {
    const char *path;
};
const weft_param weft__cdev_file_get_params[] = {
    {"path", WEFT_PARAM_str, offsetof(struct file_params, path), WEFT_REQUIRED | WEFT_NONEMPTY,
     "of a file, from the project's folder"},
    WEFT_END(struct file_params),
};
const weft_param weft__cdev_file_list_params[] = {
    {"path", WEFT_PARAM_str, offsetof(struct file_params, path), WEFT_NULLABLE,
     "of a folder, from the project's; absent or empty: that itself"},
    WEFT_END(struct file_params),
};

/* A request that waits for the disk. */
struct reading {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
    char path[];
};

static void free_reading(weft_hub_wait *wait) {
    struct reading *reading = WEFT_CONTAINER(wait, struct reading, wait);
    weft__reply_failure(reading->req, -ESHUTDOWN);
    weft__free(reading->hub->alloc, reading);
}

/* ---- saying no ---- */

int weft__cdev_no_file(weft_req *req, const char *path, const char *why) {
    if (!req)
        return 0;
    return weft_fail(req, CDEV_NO_FILE, "Requested file not found",
                     WEFT_OBJ({"reason", weft_str("fileNotFound")}, {"path", weft_str(path)}, {"details", weft_str(why)}));
}

static const struct {
    int r;
    const char *why;
} reasons[] = {
    {-ENOENT, "there is no such file"},
    {-ENOTDIR, "there is no such folder"},
    {-EISDIR, "it is a folder"},
    {-EINVAL, "it is not a file that can be read"},
    {-ENAMETOOLONG, "the path is too long"},
    {-EXDEV, "it is not in the project's folder"},
    {-ELOOP, "too many links are in the way"},
    {-EACCES, "it may not be read"},
    {-EPERM, "it may not be read"},
};

static int refuse_file(weft_req *req, const char *path, int r) {
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].r == r)
            return weft__cdev_no_file(req, path, reasons[i].why);
    if (r == -EAGAIN)
        return weft__reply_error(req, 429, "rateLimited", "Too many files are being read; try again in a moment");
    return weft__reply_error(req, WEFT_INTERNAL_ERROR, "internalError", "The file cannot be read: %s", weft_strerror(r));
}

/* ---- reading ---- */

static int encode_base64(const weft_alloc *alloc, const weft_buf *content, weft_buf *out) {
    size_t len = weft__buf_len(content), room = (len + 2) / 3 * 4 + 1;
    int r = weft__buf_reserve(out, alloc, room);
    if (r < 0)
        return r;
    if (len)
        out->end += (size_t) EVP_EncodeBlock((unsigned char *) weft__buf_tail(out),
                                             (const unsigned char *) weft__buf_head(content), (int) len);
    return 0;
}

static void answer_content(const struct reading *reading, const weft_file_content *content) {
    const weft_alloc *alloc = reading->hub->alloc;
    weft_buf encoded = {0};
    char modified[WEFT_STAMP];
    int r = content->text ? 0 : encode_base64(alloc, &content->content, &encoded);
    const weft_buf *shown = content->text ? &content->content : &encoded;
    if (r < 0)
        weft__reply_error(reading->req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
    else
        weft__reply_val(reading->req,
                        WEFT_OBJ({"path", weft_str(reading->path)},
                                 {"content", weft__buf_len(shown) ? weft_strn(weft__buf_head(shown), weft__buf_len(shown))
                                                                  : weft_str("")},
                                 {"encoding", weft_str(content->text ? "utf-8" : "base64")},
                                 {"size", weft_uint(content->size)}, {"truncated", weft_bool(content->truncated)},
                                 {"modified", weft_str(weft__stamp(content->mtime_ms, modified))}));
    weft__buf_done(&encoded, alloc);
}

static int write_entry(const weft_alloc *alloc, const weft_file_entry *entry, weft_buf *out) {
    static const char *const types[] = {[WEFT_FILE_REGULAR] = "file",
                                        [WEFT_FILE_FOLDER] = "directory",
                                        [WEFT_FILE_LINK] = "link",
                                        [WEFT_FILE_OTHER] = "other"};
    char modified[WEFT_STAMP];
    weft_val value = WEFT_OBJ({"name", weft_str(entry->name)}, {"type", weft_str(types[entry->type])},
                              {"size", entry->type == WEFT_FILE_REGULAR ? weft_uint(entry->size) : weft_none()},
                              {"modified", weft_str(weft__stamp(entry->mtime_ms, modified))});
    return weft__write_val(out, alloc, &value);
}

static void answer_list(const struct reading *reading, const weft_file_list *list) {
    const weft_alloc *alloc = reading->hub->alloc;
    weft_buf out = {0};
    int r = weft__buf_put(&out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < list->count; i++) {
        r = i ? weft__buf_put(&out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_entry(alloc, &list->entries[i], &out);
    }
    if (r >= 0)
        r = weft__buf_put(&out, alloc, "]", 1);
    if (r < 0)
        weft__reply_error(reading->req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
    else
        weft__reply_val(reading->req,
                        WEFT_OBJ({"path", weft_str(strcmp(reading->path, ".") == 0 ? "" : reading->path)},
                                 {"entries", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                 {"total_count", weft_uint(list->count)}, {"truncated", weft_bool(list->truncated)}));
    weft__buf_done(&out, alloc);
}

static void on_file(void *ctx, const weft_file_result *result) {
    struct reading *reading = ctx;
    weft__hub_wait_over(&reading->wait);
    if (result->r < 0)
        refuse_file(reading->req, reading->path, result->r);
    else if (result->content)
        answer_content(reading, result->content);
    else
        answer_list(reading, result->list);
    weft__free(reading->hub->alloc, reading);
}

static int read_path(weft_req *req, const weft_hub *hub, const char *path, bool list) {
    size_t size = strlen(path) + 1;
    if (!hub->files)
        return weft__cdev_no_file(weft__req_keep(req), path, "the project's files are not served");
    struct reading *reading = weft__alloc(hub->alloc, sizeof *reading + size);
    if (!reading)
        return -ENOMEM;
    *reading = (struct reading){.wait.on_end = free_reading, .hub = hub, .req = weft__req_keep(req)};
    memcpy(reading->path, path, size);
    weft_bytes bytes = {path, size - 1};
    int r = list ? weft__files_list(hub->files, bytes, 0, on_file, reading)
                 : weft__files_read(hub->files, &(weft_file_read){.path = bytes}, on_file, reading);
    if (r < 0) {
        weft__free(hub->alloc, reading);
        return r == -ENOMEM ? r : refuse_file(weft__req_keep(req), path, r);
    }
    weft__hub_wait(hub->clients, &reading->wait);
    return 0;
}

int weft__cdev_file_get(weft_req *req, const weft_json *params, void *ctx) {
    const struct file_params *in = weft_req_params(req);
    (void) params;
    return read_path(req, ctx, in->path, false);
}

int weft__cdev_file_list(weft_req *req, const weft_json *params, void *ctx) {
    const struct file_params *in = weft_req_params(req);
    (void) params;
    return read_path(req, ctx, in->path && *in->path ? in->path : ".", true);
}
