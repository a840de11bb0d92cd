/* git and files over a hub whose project is a real folder: what cdev answers, what it refuses, requests that are open when
 * the hub goes, and every allocation failing once. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub_client.h"

typedef struct files_world {
    hub_world hub;
    hub_client phone;
    test_memory memory;
    char folder[64];
} files_world;

static void run(const char *folder, const char *command) {
    char text[512];
    snprintf(text, sizeof text,
             "cd %s && export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null && { %s; } >/dev/null 2>&1", folder,
             command);
    CHECK_INT(system(text), 0);
}

static void make_folder(files_world *w) {
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-files-XXXXXX");
    REQUIRE(mkdtemp(w->folder) != NULL);
    run(w->folder, "git init -q -b main . && printf 'one\\n' >a.txt && printf 'b\\n' >b.txt && git add . && "
                   "git -c user.name=t -c user.email=t@example.org commit -qm first");
    run(w->folder, "printf 'two\\n' >>a.txt && printf 'new\\n' >new.txt && printf 's\\n' >s.txt && git add s.txt && "
                   "mkdir sub && printf '\\0\\377' >sub/bytes && ln -s /etc/passwd out && : >empty");
}

static void remove_folder(const files_world *w) {
    char text[128];
    snprintf(text, sizeof text, "rm -rf %s", w->folder);
    CHECK_INT(system(text), 0);
}

/* The threads' memory is the system's; the dialect's is the test's. */
static int open_files(files_world *w, long fail_at) {
    test_memory_init(&w->memory, 0);
    int r = hub_init(&w->hub, &(hub_opts){.alloc = &w->memory.alloc});
    CHECK_INT(r, 0);
    CHECK_INT(weft__files_new(&(weft_files_opts){.loop = w->hub.loop, .folder = w->folder}, &w->hub.hub.files), 0);
    CHECK_INT(weft__git_new(&(weft_git_opts){.loop = w->hub.loop, .folder = w->folder}, &w->hub.hub.git), 0);
    hub_connect(&w->hub, "cdev", &w->phone);
    w->memory.fail_at = fail_at ? w->memory.count + fail_at : 0;
    return r;
}

static void close_files(files_world *w) {
    w->memory.fail_at = 0;
    w->hub.hub.files = weft__files_free(w->hub.hub.files);
    w->hub.hub.git = weft__git_free(w->hub.hub.git);
    hub_disconnect(&w->phone);
    hub_done(&w->hub);
    CHECK_INT(w->memory.live, 0);
}

static const struct {
    const char *method, *params, *answer;
} asked[] = {
    {"git/status", "{}",
     "\"result\":{\"branch\":\"main\",\"head\":\"*\",\"staged\":[\"s.txt\"],\"unstaged\":[\"a.txt\"],\"untracked\":["
     "\"empty\","
     "\"new.txt\",\"out\",\"sub/\"],\"conflicted\":[],\"files\":[{\"path\":\"a.txt\",\"index\":\".\",\"worktree\":\"M\"},"},
    {"git/diff", "{\"path\":\"a.txt\"}",
     "+two\\n\",\"is_staged\":false,\"is_new\":false,\"is_truncated\":false,\"additions\":1"},
    {"git/diff", "{\"path\":\"s.txt\"}", "+s\\n\",\"is_staged\":true,\"is_new\":true,\"is_truncated\":false"},
    {"git/diff", "{\"path\":\"new.txt\"}", "+new\\n\",\"is_staged\":false,\"is_new\":true,"},
    {"git/diff", "{\"path\":\"b.txt\"}",
     "\"result\":{\"path\":\"b.txt\",\"diff\":\"\",\"is_staged\":false,\"is_new\":false,"},
    {"git/diff", "{\"path\":\"nope\"}",
     "\"code\":-32010,\"message\":\"Requested file not found\",\"data\":{\"reason\":\"fileNotFound\","},
    {"git/diff", "{\"path\":\"../x\"}", "\"code\":-32602"},
    {"git/diff", "{\"path\":\"--output=x\"}", "\"code\":-32010"},
    {"git/diff", "{}", "\"path\":\"\",\"diff\":\"diff --git a/a.txt b/a.txt"},
    {"file/get", "{\"path\":\"a.txt\"}",
     "\"result\":{\"path\":\"a.txt\",\"content\":\"one\\ntwo\\n\",\"encoding\":\"utf-8\",\"size\":8,\"truncated\":false,"},
    {"file/get", "{\"path\":\"sub/bytes\"}", "\"content\":\"AP8=\",\"encoding\":\"base64\",\"size\":2,"},
    {"file/get", "{\"path\":\"empty\"}", "\"content\":\"\",\"encoding\":\"utf-8\",\"size\":0,"},
    {"file/get", "{\"path\":\"sub\"}",
     "\"code\":-32010,\"message\":\"Requested file not found\",\"data\":{\"reason\":"
     "\"fileNotFound\",\"path\":\"sub\",\"details\":\"it is a folder\"}"},
    {"file/get", "{\"path\":\"nope\"}", "\"code\":-32010"},
    {"file/get", "{\"path\":\"out\"}", "\"code\":-32010"},
    {"file/get", "{\"path\":\"../a.txt\"}", "\"code\":-32010"},
    {"file/get", "{\"path\":\"/etc/passwd\"}", "\"code\":-32010"},
    {"file/get", "{\"path\":\".git/config\"}", "\"code\":-32010"},
    {"file/get", "{\"path\":\"\"}", "\"code\":-32602"},
    {"file/list", "{\"path\":\"sub\"}",
     "\"result\":{\"path\":\"sub\",\"entries\":[{\"name\":\"bytes\",\"type\":\"file\",\"size\":2,\"modified\":\"*\"}],"
     "\"total_count\":1,\"truncated\":false}"},
    {"file/list", "{}", "\"result\":{\"path\":\"\",\"entries\":[{\"name\":\"a.txt\",\"type\":\"file\",\"size\":8,"},
    {"file/list", "{\"path\":\"a.txt\"}", "\"code\":-32010"},
};
#define ASKED (sizeof asked / sizeof asked[0])

static void ask(files_world *w, size_t i) {
    char text[256];
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"%s\",\"params\":%s}", i, asked[i].method,
             asked[i].params);
    hub_say(&w->phone, text);
}

/* A star stands for a text without quotes. */
static bool has(const char *line, const char *want) {
    for (; *line; line++) {
        const char *a = line, *b = want;
        while (*b && (*a == *b || *b == '*'))
            if (*b == '*') {
                a += strcspn(a, "\"");
                b++;
            } else
                a++, b++;
        if (!*b)
            return true;
    }
    return false;
}

TEST(what_is_answered) {
    files_world w;
    make_folder(&w);
    open_files(&w, 0);
    for (size_t i = 0; i < ASKED; i++) {
        test_row(asked[i].params);
        ask(&w, i);
        const char *line = hub_wait(&w.phone);
        if (!has(line, asked[i].answer))
            CHECK_STR(line, asked[i].answer);
    }
    test_row(NULL);
    close_files(&w);
    remove_folder(&w);
}

TEST(a_folder_without_a_repository) {
    files_world w;
    snprintf(w.folder, sizeof w.folder, "/tmp/weft-files-XXXXXX");
    REQUIRE(mkdtemp(w.folder) != NULL);
    open_files(&w, 0);
    ask(&w, 0);
    HUB_TOLD(&w.phone, "\"code\":-32011,\"message\":\"Git operation failed\",\"data\":{\"reason\":\"gitFailed\",\"cause\":"
                       "\"noRepository\"");
    close_files(&w);
    remove_folder(&w);
}

/* The hub goes while git and the disk are asked: nothing is left behind. */
TEST(the_hub_goes_first) {
    files_world w;
    make_folder(&w);
    for (int turns = 0; turns < 4; turns++) {
        open_files(&w, 0);
        for (size_t i = 0; i < ASKED; i++)
            ask(&w, i);
        for (int i = 0; i < turns; i++)
            hub_turn(&w.hub, 1);
        close_files(&w);
    }
    remove_folder(&w);
}

/* Without memory for the message itself the connection is over: <0. */
static int ask_shortly(files_world *w, size_t i) {
    char text[256];
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", asked[i].method,
             asked[i].params);
    return weft_peer_feed(w->phone.peer, text, strlen(text), 1);
}

static bool is_answered(const files_world *w) {
    const weft_peer *peer = w->phone.peer;
    return !peer || weft__peer_status(peer) < 0 || weft_peer_output(w->phone.peer).len > 0;
}

/* Each allocation of the dialect fails once, for one request of each kind. It is answered all the same, or its connection is
 * closed. */
TEST(memory_is_short) {
    static const size_t kinds[] = {0, 1, 3, 5, 9, 10, 12, 19};
    files_world w;
    make_folder(&w);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        bool reached = true;
        for (long n = 1; reached; n++) {
            open_files(&w, n);
            if (ask_shortly(&w, kinds[k]) >= 0)
                HUB_UNTIL(&w.hub, is_answered(&w));
            reached = w.memory.count >= w.memory.fail_at;
            close_files(&w);
        }
    }
    remove_folder(&w);
}

TEST_MAIN(CASE(what_is_answered) CASE(a_folder_without_a_repository) CASE(the_hub_goes_first) CASE(memory_is_short))
