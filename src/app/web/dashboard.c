/* The routes of the dashboard, and the headers that keep its pages to themselves. */
#include "dashboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "coding.h"
#include "files.h"
#include "web_files.h"

#define ASSETS "/assets/"
/* Of a folder's files there is no version: they change while they are looked at. */
#define FOLDER_VERSION "folder"
#define FOREVER "public, max-age=31536000, immutable"
/* What stands in the pages for the path of the files. */
#define ASSETS_MARK "{{assets}}"
/* The folder is somebody's source: a file that is larger was not meant. */
#define MAX_FOLDER_FILE ((size_t) 8 << 20)
/* The longest name of the host in a policy: a name has at most 253 characters, and there is a port. */
#define MAX_HOST 260

struct weft_dashboard {
    weft_gzip *gzip;
    int root; /* of the folder; -1: the program's own files */
    const char *version;
};

/* ---- headers ---- */

static const weft_header page_headers[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
                           "hid=(), magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=()"},
};
#define PAGE_HEADERS (sizeof page_headers / sizeof page_headers[0])

/* No inline script or style, nothing from another host. Some browsers do not take 'self' to mean the WebSocket of the same
 * host, so it is named. Text never becomes markup or the address of a script (Trusted Types without a policy). */
#define PAGE_POLICY                                                                                                         \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "                \
    "connect-src 'self' %s%s; worker-src 'self'; manifest-src 'self'; frame-src 'self'; form-action 'self'; "               \
    "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

/* The preview shows a page of the project, with whatever scripts it has. It has an origin of its own that no other page has
 * (sandbox without allow-same-origin): no cookie, no storage, nothing of the dashboard's. And no network: what it shows
 * comes through the dashboard's port, as blob: and data: addresses. */
#define PREVIEW_POLICY                                                                                                      \
    "sandbox allow-scripts allow-forms allow-modals; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: "   \
    "data:; style-src 'unsafe-inline' blob: data:; img-src blob: data:; font-src blob: data:; media-src blob: data:; "      \
    "connect-src blob: data:; worker-src blob: data:; frame-src blob: data:; form-action 'none'; frame-ancestors 'self'; "  \
    "base-uri 'none'"

/* The host has been checked already, but where all are allowed it can be anything: only what cannot end a policy is put
 * into one. */
static bool is_plain_host(const char *host) {
    size_t len = strlen(host);
    return len && len < MAX_HOST &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-[]_") == len;
}

static void write_page_policy(const weft_http *http, char *ret, size_t size) {
    const char *host = weft_http_header(http, "host"), *transport = weft_http_identity(http)->transport;
    bool plain = host && is_plain_host(host), secure = strcmp(transport, "https") == 0 || strcmp(transport, "wss") == 0;
    snprintf(ret, size, PAGE_POLICY, !plain ? "" : secure ? "wss://" : "ws://", plain ? host : "");
}

/* ---- the files ---- */

/* Pages are not among them: they are served at their own paths, under their policies. */
static const char *type_of(const char *name) {
    static const char *const types[][2] = {{".js", "text/javascript; charset=utf-8"},
                                           {".mjs", "text/javascript; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".svg", "image/svg+xml"},
                                           {".json", "application/json"},
                                           {".webmanifest", "application/manifest+json"},
                                           {".png", "image/png"},
                                           {".ico", "image/x-icon"},
                                           {".woff2", "font/woff2"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(dot, types[i][0]) == 0)
            return types[i][1];
    return NULL;
}

/* One file of the dashboard, in the form that it is to be sent in. */
typedef struct dashboard_file {
    weft_bytes body;
    weft_buf memory; /* where it is, unless it is in the program */
    bool packed;
} dashboard_file;

static const weft_web_file *embedded_file(const char *name) {
    for (const weft_web_file *file = weft__web_files; file->name; file++)
        if (strcmp(file->name, name) == 0)
            return file;
    return NULL;
}

static int take_embedded(weft_dashboard *self, const char *name, bool packed, dashboard_file *ret) {
    const weft_web_file *file = embedded_file(name);
    if (!file)
        return -ENOENT;
    ret->packed = packed;
    ret->body = (weft_bytes){(const char *) file->packed, file->packed_len};
    if (packed)
        return 0;
    int r = weft__gzip_unpack(self->gzip, (const char *) file->packed, file->packed_len, file->size, &ret->memory);
    ret->body = (weft_bytes){weft__buf_head(&ret->memory), weft__buf_len(&ret->memory)};
    return r;
}

/* The same folders as are embedded, and never what lies elsewhere (beneath.h). */
static int read_from_folder(const weft_dashboard *self, const char *name, dashboard_file *ret) {
    weft_file_content content;
    bool ours = strncmp(name, "dashboard/", 10) == 0 || strncmp(name, "weft/", 5) == 0;
    if (!ours || strstr(name, ".."))
        return -ENOENT;
    int r = weft__file_read(self->root, &(weft_file_read){.path = {name, strlen(name)}, .max = MAX_FOLDER_FILE}, 0, NULL,
                            &content);
    if (r < 0)
        return r;
    ret->memory = content.content;
    ret->body = (weft_bytes){weft__buf_head(&ret->memory), weft__buf_len(&ret->memory)};
    return content.truncated ? -EFBIG : 0;
}

static int take_file(weft_dashboard *self, const char *name, bool packed, dashboard_file *ret) {
    *ret = (dashboard_file){0};
    return self->root >= 0 ? read_from_folder(self, name, ret) : take_embedded(self, name, packed, ret);
}

/* ---- the routes ---- */

static void answer_missing(weft_http *http) {
    static const char text[] = "{\"status\":404,\"error\":\"Not Found\",\"reason\":\"notFound\"}\n";
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = 404,
                                                         .type = "application/json",
                                                         .cache = "no-store",
                                                         .headers = (const weft_header[]){page_headers[0], {0}},
                                                         .body = {text, sizeof text - 1}});
}

/* "/assets/VERSION/dashboard/app.js": the name behind the version; NULL: it is another version's, which is gone. */
static const char *asset_name(const weft_dashboard *self, const char *path) {
    size_t len = strlen(self->version);
    path += strlen(ASSETS);
    return strncmp(path, self->version, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static bool takes_gzip(const weft_http *http) {
    const char *list = weft_http_header(http, "accept-encoding");
    return list && weft__accepts_gzip((weft_bytes){list, strlen(list)});
}

static void show_asset(weft_http *http, void *ctx) {
    weft_dashboard *self = ctx;
    const char *name = asset_name(self, weft_http_path(http)), *type = name ? type_of(name) : NULL;
    dashboard_file file;
    int r = type ? take_file(self, name, takes_gzip(http), &file) : -ENOENT;
    if (r < 0) {
        if (type)
            weft__buf_done(&file.memory, NULL);
        answer_missing(http);
        return;
    }
    weft_header headers[] = {page_headers[0], {"Cross-Origin-Resource-Policy", "same-origin"}, {0}, {0}, {0}};
    if (file.packed) {
        headers[2] = (weft_header){"Content-Encoding", "gzip"};
        headers[3] = (weft_header){"Vary", "Accept-Encoding"};
    }
    weft_http_answer_with(http, &(weft_http_answer_opts){.type = type,
                                                         .headers = headers,
                                                         .cache = self->root < 0 ? FOREVER : "no-store",
                                                         .etag = self->root < 0 ? self->version : NULL,
                                                         .body = file.body});
    weft__buf_done(&file.memory, NULL);
}

/* The page with the path of its files put in. */
static int fill_page(const weft_dashboard *self, weft_bytes page, weft_buf *ret) {
    const char *at = page.data, *end = at + page.len, *mark;
    char assets[64];
    int n = snprintf(assets, sizeof assets, ASSETS "%s", self->version), r = 0;
    while (r >= 0 && (mark = memmem(at, (size_t) (end - at), ASSETS_MARK, strlen(ASSETS_MARK)))) {
        r = weft__buf_put(ret, NULL, at, (size_t) (mark - at));
        if (r >= 0)
            r = weft__buf_put(ret, NULL, assets, (size_t) n);
        at = mark + strlen(ASSETS_MARK);
    }
    return r < 0 ? r : weft__buf_put(ret, NULL, at, (size_t) (end - at));
}

static void answer_page(weft_dashboard *self, weft_http *http, const char *name, const weft_header *headers) {
    dashboard_file file;
    weft_buf page = {0};
    int r = take_file(self, name, false, &file);
    if (r >= 0)
        r = fill_page(self, file.body, &page);
    weft__buf_done(&file.memory, NULL);
    if (r < 0)
        answer_missing(http);
    else
        weft_http_answer_with(http, &(weft_http_answer_opts){.type = "text/html; charset=utf-8",
                                                             .headers = headers,
                                                             .cache = "no-cache",
                                                             .etag = self->root < 0 ? self->version : NULL,
                                                             .body = {weft__buf_head(&page), weft__buf_len(&page)}});
    weft__buf_done(&page, NULL);
}

static void send_to_login(weft_http *http) {
    const weft_header headers[] = {{"Location", "/login"}, {0}};
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = 303, .headers = headers, .cache = "no-store"});
}

static void show_dashboard(weft_http *http, void *ctx) {
    char policy[sizeof PAGE_POLICY + MAX_HOST + 8];
    weft_header headers[PAGE_HEADERS + 2] = {{"Content-Security-Policy", policy}};
    if (!weft_http_identity(http)->authenticated) {
        send_to_login(http);
        return;
    }
    write_page_policy(http, policy, sizeof policy);
    memcpy(headers + 1, page_headers, sizeof page_headers);
    answer_page(ctx, http, "dashboard/index.html", headers);
}

static void show_preview(weft_http *http, void *ctx) {
    static const weft_header headers[] = {{"Content-Security-Policy", PREVIEW_POLICY},
                                          {"X-Content-Type-Options", "nosniff"},
                                          {"X-Frame-Options", "SAMEORIGIN"},
                                          {"Referrer-Policy", "no-referrer"},
                                          {"Cross-Origin-Resource-Policy", "same-origin"},
                                          {0}};
    answer_page(ctx, http, "dashboard/preview.html", headers);
}

/* Browsers ask for it on pages that name no icon: the login page. */
static void show_no_icon(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = 204, .cache = "max-age=86400"});
}

static int add_dashboard_routes(weft_dashboard *self, weft_server *server) {
    int r = weft_server_route(server, "GET", "/", show_dashboard, self);
    if (r >= 0)
        r = weft_server_public(server, "/");
    if (r >= 0)
        r = weft_server_route(server, "GET", ASSETS "*", show_asset, self);
    if (r >= 0)
        r = weft_server_route(server, "GET", "/preview", show_preview, self);
    if (r >= 0)
        r = weft_server_route(server, "GET", "/favicon.ico", show_no_icon, self);
    return r < 0 ? r : weft_server_public(server, "/favicon.ico");
}

/* ---- beginning and end ---- */

static int open_folder(weft_dashboard *self, const char *folder) {
    if (!folder)
        return 0;
    self->version = FOLDER_VERSION;
    self->root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return self->root < 0 ? -errno : 0;
}

int weft__dashboard_new(weft_server *server, const char *folder, weft_dashboard **ret) {
    weft_dashboard *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->root = -1;
    self->version = weft__web_version;
    int r = open_folder(self, folder);
    if (r >= 0)
        r = weft__gzip_new(NULL, &self->gzip);
    if (r < 0) {
        weft__dashboard_free(self);
        return r;
    }
    *ret = self;
    return add_dashboard_routes(self, server); /* those that were added before one failed need what is there */
}

weft_dashboard *weft__dashboard_free(weft_dashboard *self) {
    if (!self)
        return NULL;
    if (self->root >= 0)
        close(self->root);
    weft__gzip_free(self->gzip);
    return weft__free(NULL, self);
}
