/* What was said in earlier processes, so that a session can be gone on with: one file per session below the user's state
 * folder ($XDG_STATE_HOME or ~/.local/state, weft/demo), one update per line. Only the newest sessions are kept.
 *
 * A session's id names its file, so an id that we did not make up is looked for nowhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"
#include "utf8.h"

/* A history is for a demonstration: enough for an afternoon, and it cannot fill a disk. */
#define MOST_BYTES (1024 * 1024)
#define MOST_SESSIONS 50

/* ---- where ---- */

static bool find_folder(char ret[WEFT_DEMO_PATH]) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state && *state == '/')
        n = snprintf(ret, WEFT_DEMO_PATH, "%s/weft/demo", state);
    else if (home && *home == '/')
        n = snprintf(ret, WEFT_DEMO_PATH, "%s/.local/state/weft/demo", home);
    return n > 0 && n < WEFT_DEMO_PATH - WEFT_DEMO_ID - 16;
}

/* Like mkdir -p, private where it is ours to make. */
static bool make_folder(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int r = mkdir(path, 0700);
        bool made = r == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

bool weft__demo_history_works(void) {
    char folder[WEFT_DEMO_PATH];
    return find_folder(folder) && make_folder(folder) && access(folder, W_OK | X_OK) == 0;
}

static bool is_ours(const char *id) {
    static const char prefix[] = "demo-";
    size_t digits = strspn(id + (strncmp(id, prefix, 5) == 0 ? 5 : strlen(id)), "0123456789abcdef");
    return digits == 16 && strlen(id) == strlen(prefix) + digits;
}

static bool find_file(const char *id, char ret[WEFT_DEMO_PATH]) {
    if (!is_ours(id) || !find_folder(ret))
        return false;
    size_t n = strlen(ret);
    snprintf(ret + n, WEFT_DEMO_PATH - n, "/%s.jsonl", id);
    return true;
}

/* ---- forgetting ---- */

/* The one that was written to longest ago, when there are more than enough. */
static bool find_oldest(DIR *folder, char ret[NAME_MAX + 1]) {
    struct stat st;
    size_t count = 0;
    struct timespec oldest = {0};
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t len = strlen(entry->d_name);
        if (len < 6 || strcmp(entry->d_name + len - 6, ".jsonl") || fstatat(dirfd(folder), entry->d_name, &st, 0) < 0)
            continue;
        if (count++ == 0 || st.st_mtim.tv_sec < oldest.tv_sec) {
            oldest = st.st_mtim;
            memcpy(ret, entry->d_name, len + 1);
        }
    }
    return count > MOST_SESSIONS;
}

static void forget_old(void) {
    char path[WEFT_DEMO_PATH], oldest[NAME_MAX + 1];
    DIR *folder = find_folder(path) ? opendir(path) : NULL;
    while (folder && find_oldest(folder, oldest) && unlinkat(dirfd(folder), oldest, 0) == 0)
        rewinddir(folder);
    if (folder)
        closedir(folder);
}

/* ---- writing ---- */

static void put_line(FILE *file, weft_val value) {
    char *text;
    size_t len;
    if (weft_to_text(value, NULL, &text, &len) < 0)
        return;
    fwrite(text, 1, len, file);
    fputc('\n', file);
    weft_text_free(text, NULL);
}

/* Lines are appended whole, so two processes that go on with one session do not cut each other's. */
static FILE *open_to_append(const weft_demo_session *session) {
    char path[WEFT_DEMO_PATH];
    struct stat st;
    if (!find_file(session->id, path))
        return NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size < MOST_BYTES)
        return fdopen(fd, "a");
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void put_chunk(FILE *file, const char *kind, const char *text, size_t len) {
    put_line(file, WEFT_OBJ({"sessionUpdate", weft_str(kind)},
                            {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_strn(text, len)})}));
}

void weft__demo_history_begin(const weft_demo_session *session) {
    FILE *file = open_to_append(session);
    if (file) {
        put_line(file, WEFT_OBJ({"cwd", weft_str(session->folder)}));
        fclose(file);
    }
    forget_old();
}

void weft__demo_history_turn(const weft_demo_session *session, const char *prompt, weft_bytes said) {
    FILE *file = open_to_append(session);
    if (!file)
        return;
    put_chunk(file, "user_message_chunk", prompt, strnlen(prompt, WEFT_DEMO_SAID));
    if (said.len)
        put_chunk(file, "agent_message_chunk", said.data, said.len);
    fclose(file);
}

void weft__demo_history_always(const weft_demo_session *session, const char *always) {
    FILE *file = open_to_append(session);
    if (!file)
        return;
    put_line(file, WEFT_OBJ({"always", weft_str(always)}));
    fclose(file);
}

/* ---- reading ---- */

static void take_line(weft_demo_session *session, const weft_json *line,
                      void (*on_update)(void *ctx, const weft_json *update), void *ctx) {
    const char *update = weft_get_str(line, "sessionUpdate", "");
    const char *always = weft_get_str(line, "always", "");
    if (strcmp(update, "user_message_chunk") == 0)
        session->turns++;
    if (*update && on_update)
        on_update(ctx, line);
    if (strcmp(always, "allow_always") == 0)
        session->always = "allow_always";
    else if (strcmp(always, "reject_always") == 0)
        session->always = "reject_always";
}

int weft__demo_history_read(weft_demo_session *session, void (*on_update)(void *ctx, const weft_json *update), void *ctx) {
    char path[WEFT_DEMO_PATH], *line = NULL;
    size_t size = 0;
    FILE *file = find_file(session->id, path) ? fopen(path, "re") : NULL;
    if (!file)
        return -ENOENT;
    for (ssize_t n; (n = getline(&line, &size, file)) > 0;) {
        WEFT_AUTO(weft_doc) doc = NULL;
        if (weft_doc_parse(line, (size_t) n, NULL, &doc) == 0) /* a line that was cut off by a crash is no loss */
            take_line(session, weft_doc_root(doc), on_update, ctx);
    }
    free(line);
    fclose(file);
    return 0;
}

/* ---- all of them ---- */

/* Where it was begun, and the first prompt. */
static void read_head(const char *id, int64_t changed_s, weft_demo_each *each, void *ctx) {
    char path[WEFT_DEMO_PATH], folder[WEFT_DEMO_PATH] = "", title[128] = "", *line = NULL;
    size_t size = 0;
    FILE *file = find_file(id, path) ? fopen(path, "re") : NULL;
    for (int i = 0; file && i < 2 && getline(&line, &size, file) > 0; i++) {
        WEFT_AUTO(weft_doc) doc = NULL;
        if (weft_doc_parse(line, strlen(line), NULL, &doc) < 0)
            continue;
        weft_json text = weft_pointer(weft_doc_root(doc), "/content/text");
        const char *cwd = weft_get_str(weft_doc_root(doc), "cwd", NULL), *said = weft_str_of(&text, "");
        if (cwd)
            snprintf(folder, sizeof folder, "%s", cwd);
        snprintf(title, sizeof title, "%.*s", (int) weft__utf8_fit(said, strcspn(said, "\r\n"), sizeof title - 1), said);
    }
    free(line);
    if (file)
        fclose(file);
    if (file)
        each(ctx, id, folder, title, changed_s);
}

void weft__demo_history_each(weft_demo_each *each, void *ctx) {
    char path[WEFT_DEMO_PATH], id[WEFT_DEMO_ID];
    struct stat st;
    DIR *folder = find_folder(path) ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(id, sizeof id, "%.*s", (int) strcspn(entry->d_name, "."), entry->d_name);
        if (is_ours(id) && fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            read_head(id, st.st_mtim.tv_sec, each, ctx);
    }
    if (folder)
        closedir(folder);
}

int weft__demo_history_delete(const char *id) {
    char path[WEFT_DEMO_PATH];
    if (!find_file(id, path))
        return -ENOENT;
    return unlink(path) == 0 ? 0 : -errno;
}
