/* fetch: the project's files as a browser would ask for them. They come from one folder: the configured one, else the first
 * of a few usual ones that has an index.html. Nothing outside of it is reached (beneath.h). A file that is not there is an
 * answer with status 404; a path without an extension is a route of the page, and gets its index.html. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "reply.h"
#include "wiggum.h"

#define INDEX "index.html"

struct fetch_params {
    const char *url, *method;
};
const weft_param weft__wiggum_fetch_params[] = {
    {"url", WEFT_PARAM_str, offsetof(struct fetch_params, url), WEFT_REQUIRED | WEFT_NONEMPTY,
     "a path of the preview, with or without a query"},
    {"method", WEFT_PARAM_str, offsetof(struct fetch_params, method), WEFT_NULLABLE, "GET (when absent) or HEAD"},
    WEFT_END(struct fetch_params),
};

/* Where an index.html is looked for. */
static const char *const usual_roots[] = {"dist", "build", "out", "public", "."};
enum { USUAL_ROOTS = sizeof usual_roots / sizeof usual_roots[0] };

typedef enum fetch_stage {
    FETCH_ROOT,   /* which folder? */
    FETCH_FILE,   /* the file itself, */
    FETCH_FOLDER, /* or what a folder shows, */
    FETCH_INDEX,  /* or the page whose route it is */
} fetch_stage;

typedef struct fetching {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req;
    bool head;
    fetch_stage stage;
    size_t usual; /* which of the usual roots */
    char root[WEFT_PREVIEW_ROOT];
    char path[WIGGUM_URL];                     /* that was asked for */
    char reads[WIGGUM_URL + sizeof INDEX + 1]; /* that is being read */
} fetching;

static void free_fetching(weft_hub_wait *wait) {
    fetching *self = WEFT_CONTAINER(wait, fetching, wait);
    weft__reply_failure(self->req, -ESHUTDOWN);
    weft__free(self->hub->alloc, self);
}

static void end_fetching(fetching *self) {
    weft__hub_wait_over(&self->wait);
    weft__free(self->hub->alloc, self);
}

/* ---- answering ---- */

static int answer_status(weft_req *req, int status, const char *type, weft_val body, uint64_t length, const char *allow) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long) length);
    return weft__reply_val(
        req,
        WEFT_OBJ({"status", weft_int(status)},
                 {"headers", WEFT_OBJ({"content-type", weft_str(type)}, {"content-length", weft_str(text)},
                                      {"cache-control", weft_str("no-store")},
                                      {"x-content-type-options", weft_str("nosniff")}, {"allow", weft_str_or_none(allow)})},
                 {"body", body}, {"encoding", weft_str("base64")}));
}

/* "Not found" and the like, as base64 as well. */
static int answer_words(weft_req *req, bool head, int status, const char *words, const char *allow) {
    unsigned char coded[128];
    size_t len = strlen(words);
    int n = EVP_EncodeBlock(coded, (const unsigned char *) words, (int) len);
    return answer_status(req, status, "text/plain; charset=utf-8", weft_strn((const char *) coded, head ? 0 : (size_t) n),
                         len, allow);
}

static void answer_file(const fetching *self, const weft_file_content *content) {
    const weft_alloc *alloc = self->hub->alloc;
    size_t len = weft__buf_len(&content->content);
    weft_buf coded = {0};
    bool large = self->head ? content->size > WEFT_FILE_READ_MAX : content->truncated; /* for HEAD one byte is read */
    int r = self->head ? 0 : weft__buf_reserve(&coded, alloc, (len + 2) / 3 * 4 + 1);
    if (r >= 0 && !self->head && len)
        coded.end += (size_t) EVP_EncodeBlock((unsigned char *) weft__buf_tail(&coded),
                                              (const unsigned char *) weft__buf_head(&content->content), (int) len);
    if (r < 0)
        weft__reply_error(self->req, WEFT_INTERNAL_ERROR, "outOfMemory", "Internal error");
    else if (large)
        answer_words(self->req, self->head, 413, "The file is too large for the preview.\n", NULL);
    else
        answer_status(self->req, 200, weft__wiggum_mime(self->reads),
                      weft_strn(weft__buf_len(&coded) ? weft__buf_head(&coded) : "", weft__buf_len(&coded)), content->size,
                      NULL);
    weft__buf_done(&coded, alloc);
}

static int refuse_load(weft_req *req, const char *root) {
    return *root
               ? weft__reply_error(req, WIGGUM_PREVIEW_LOAD_FAILED, "previewLoadFailed", "There is no %s in %s", INDEX, root)
               : weft__reply_error(req, WIGGUM_PREVIEW_LOAD_FAILED, "previewLoadFailed",
                                   "There is no %s in the project; preview.root says where it is", INDEX);
}

/* ---- reading ---- */

static void on_fetched(void *ctx, const weft_file_result *result);

static int read_next(fetching *self) {
    const char *root = self->stage == FETCH_ROOT ? usual_roots[self->usual] : self->root;
    weft_file_read read = {.path = {self->reads, strlen(self->reads)},
                           .max = self->stage == FETCH_ROOT || self->head ? 1 : WEFT_FILE_READ_MAX};
    if (strcmp(root, ".") != 0)
        read.folder = (weft_bytes){root, strlen(root)};
    return weft__files_read(self->hub->files, &read, on_fetched, self);
}

static bool is_missing(int r) {
    return r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -EINVAL || r == -EXDEV || r == -EACCES || r == -EPERM ||
           r == -ELOOP || r == -ENAMETOOLONG;
}

static void fail_fetch(fetching *self, int r) {
    if (r == -EAGAIN)
        weft__reply_error(self->req, 429, "rateLimited", "Too many files are being read; try again in a moment");
    else
        weft__reply_error(self->req, WEFT_INTERNAL_ERROR, "internalError", "The file cannot be read: %s", weft_strerror(r));
    end_fetching(self);
}

/* "/dist/app.js" of a page in dist is dist/app.js too: as the project's files are called. */
static const char *without_root(const fetching *self) {
    size_t len = strlen(self->root);
    bool named = strcmp(self->root, ".") != 0 && strncmp(self->path, self->root, len) == 0 && self->path[len] == '/';
    return named ? self->path + len + 1 : self->path;
}

static void set_reads(fetching *self) {
    const char *path = without_root(self);
    size_t len = strlen(path);
    const char *slash = len && path[len - 1] != '/' ? "/" : "";
    if (self->stage == FETCH_INDEX || self->stage == FETCH_ROOT)
        snprintf(self->reads, sizeof self->reads, "%s", INDEX);
    else if (self->stage == FETCH_FOLDER || !len || path[len - 1] == '/')
        snprintf(self->reads, sizeof self->reads, "%s%s%s", path, self->stage == FETCH_FOLDER ? slash : "", INDEX);
    else
        snprintf(self->reads, sizeof self->reads, "%s", path);
}

static void turn_to(fetching *self, fetch_stage stage) {
    self->stage = stage;
    set_reads(self);
    int r = read_next(self);
    if (r < 0 && is_missing(r))
        on_fetched(self, &(weft_file_result){.r = r});
    else if (r < 0)
        fail_fetch(self, r);
}

static void root_missing(fetching *self) {
    if (++self->usual < USUAL_ROOTS)
        turn_to(self, FETCH_ROOT);
    else {
        refuse_load(self->req, "");
        end_fetching(self);
    }
}

static void file_missing(fetching *self, int r) {
    bool index = strcmp(self->reads, INDEX) == 0;
    if (self->stage == FETCH_FILE && r == -EISDIR)
        turn_to(self, FETCH_FOLDER);
    else if (self->stage != FETCH_INDEX && !index && !weft__wiggum_has_extension(self->path))
        turn_to(self, FETCH_INDEX);
    else {
        if (index)
            refuse_load(self->req, self->root);
        else
            answer_words(self->req, self->head, 404, "Not found\n", NULL);
        end_fetching(self);
    }
}

static void on_fetched(void *ctx, const weft_file_result *result) {
    fetching *self = ctx;
    if (result->r < 0 && !is_missing(result->r))
        fail_fetch(self, result->r);
    else if (result->r < 0 && self->stage == FETCH_ROOT)
        root_missing(self);
    else if (result->r < 0)
        file_missing(self, result->r);
    else if (self->stage == FETCH_ROOT) {
        snprintf(self->root, sizeof self->root, "%s", usual_roots[self->usual]);
        turn_to(self, FETCH_FILE);
    } else {
        answer_file(self, result->content);
        end_fetching(self);
    }
}

int weft__wiggum_fetch(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct fetch_params *in = weft_req_params(req);
    bool head = in->method && strcmp(in->method, "HEAD") == 0;
    char path[WIGGUM_URL];
    (void) params;
    if (in->method && !head && strcmp(in->method, "GET") != 0)
        return answer_words(weft__req_keep(req), false, 405, "Only GET and HEAD\n", "GET, HEAD");
    int r = weft__wiggum_path(in->url, path);
    if (r < 0)
        return weft__reply_error(req, WIGGUM_NAVIGATION_FAILED, "navigationFailed", "%s",
                                 r == -EXDEV ? "The URL is of another origin; only paths are of the preview"
                                             : "This is not a URL of the preview");
    if (!hub->files)
        return weft__reply_error(req, WIGGUM_PREVIEW_LOAD_FAILED, "previewLoadFailed", "The project's files are not served");
    fetching *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    self->req = weft__req_keep(req);
    self->head = head;
    memcpy(self->path, path, sizeof path);
    memcpy(self->root, hub->preview_root, sizeof self->root);
    weft__hub_wait(hub->clients, &self->wait);
    self->wait.on_end = free_fetching;
    turn_to(self, *self->root ? FETCH_FILE : FETCH_ROOT);
    return 0;
}
