/* Files that agents read and write through the hub: beneath the session's folder only, by the editor that is there, and not
 * at all where somebody said no. The agent is a connection of the test's own whose requests are handed to the rows. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acp.h"
#include "hub_client.h"
#include "passages.h"

typedef struct agent_world {
    hub_world hub;
    hub_client editor, agent;
    weft_service *service; /* of the agent's connection */
    test_memory memory;
    const char *session, *task;
    char folder[64];
} agent_world;

static agent_world *stage;

static int hand_on(weft_req *req, const weft_json *params, void *ctx) {
    const weft_passage *row = ctx;
    return row->handler(&stage->hub.hub, &(weft_passage_call){.session = stage->session, .task = stage->task}, req, params);
}

static void run(const char *folder, const char *command) {
    char text[2048];
    snprintf(text, sizeof text, "cd %s && { %s; }", folder, command);
    CHECK_INT(system(text), 0);
}

static void make_project(agent_world *w) {
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-passage-XXXXXX");
    REQUIRE(mkdtemp(w->folder) != NULL);
    run(w->folder, "printf 'one\\ntwo\\nthree' >a.txt && mkdir sub .git .aiwg .aiwg/daemon && printf 'in' >sub/in.txt && "
                   "printf '\\377x' >bytes && : >empty && mkfifo pipe && ln -s /etc/passwd out && ln -s a.txt inside && "
                   "ln -s ../a.txt sub/up && ln -s /etc etc && printf 'x' >.git/config && printf 't' >.aiwg/daemon/token && "
                   "printf 'r' >locked && chmod 444 locked && printf 'm' >mode && chmod 750 mode && "
                   "ln -s /tmp/weft-passage-none dangling && truncate -s 17M large");
}

static void remove_project(const agent_world *w) {
    char text[128];
    snprintf(text, sizeof text, "rm -rf %s", w->folder);
    CHECK_INT(system(text), 0);
}

static void say_path(const agent_world *w, hub_client *to, int id, const char *method, const char *path, const char *more) {
    char text[1024];
    const char *root = *path == '/' || !*path ? "" : w->folder;
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{\"sessionId\":\"s\",\"path\":\"%s%s%s\"%s}}", id,
             method, root, *root ? "/" : "", path, more);
    hub_say(to, text);
}

static void say(hub_client *to, const char *format, const char *a) {
    char text[1024];
    snprintf(text, sizeof text, format, a);
    hub_say(to, text);
}

/* offers: what the editor says in initialize; NULL: there is no editor, and somebody else began the task. */
static void open_world_at(agent_world *w, const char *offers, const char *scopes, const char *beneath) {
    static weft_method methods[3];
    static const weft_carrier carrier = {.free = hub_client_gone};
    stage = w;
    for (size_t i = 0; weft__passages[i].method && i < 2; i++)
        methods[i] = (weft_method){.name = weft__passages[i].method,
                                   .handler = hand_on,
                                   .help = "",
                                   .ctx = (void *) (uintptr_t) &weft__passages[i]};
    test_memory_init(&w->memory, 0);
    CHECK_INT(hub_init(&w->hub, &(hub_opts){.alloc = &w->memory.alloc, .folder = w->folder}), 0);
    CHECK_INT(weft__files_new(&(weft_files_opts){.loop = w->hub.loop, .folder = w->folder, .umask = 022}, &w->hub.hub.files),
              0);
    hub_connect(&w->hub, offers ? "acp" : "aiwg", &w->editor);
    if (offers) {
        say(&w->editor,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
            "\"clientCapabilities\":%s}}",
            offers);
        HUB_TOLD(&w->editor, "\"id\":1,\"result\"");
        char text[512];
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"%s%s\",\"mcpServers\":[]}}",
                 w->folder, beneath);
        hub_say(&w->editor, text);
        HUB_TOLD(&w->editor, "\"sessionId\":\"session-0000\"");
        hub_say(&w->editor, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":"
                            "\"session-0000\",\"prompt\":[{\"type\":\"text\",\"text\":\"go\"}]}}");
        w->session = "session-0000";
        w->task = "task-0001";
    } else {
        hub_say(&w->editor, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}");
        w->session = "session-0000";
        w->task = "task-0000";
    }
    hub_settle(&w->hub);
    REQUIRE(hub_run(&w->hub, w->task) != NULL);
    if (!offers)
        while (hub_take(&w->editor))
            ;
    if (scopes) {
        weft_identity who = *weft_peer_identity(w->editor.peer);
        who.scopes = scopes;
        CHECK_INT(weft_peer_set_identity(w->editor.peer, &who), 0);
    }
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods}, &w->service), 0);
    w->agent = (hub_client){.world = &w->hub};
    CHECK_INT(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson}, &w->agent.peer), 0);
    weft__peer_set_carrier(w->agent.peer, &carrier, &w->agent);
    weft__peer_set_protocol(w->agent.peer, WEFT_STYLE_ACP, true);
}

static void open_world(agent_world *w, const char *offers) {
    open_world_at(w, offers, NULL, "");
}

static void close_world(agent_world *w) {
    w->memory.fail_at = 0;
    w->hub.hub.files = weft__files_free(w->hub.hub.files);
    hub_disconnect(&w->editor);
    hub_done(&w->hub);
    if (w->agent.peer)
        weft_peer_free(w->agent.peer);
    free(w->agent.line);
    weft_service_unref(w->service);
    CHECK_INT(w->memory.live, 0);
}

#define READ "fs/read_text_file"
#define WRITE "fs/write_text_file"
#define BOTH "{\"fs\":{\"readTextFile\":true,\"writeTextFile\":true}}"

static const struct {
    const char *method, *path, *more, *answer;
} asked[] = {
    {READ, "a.txt", "", "\"result\":{\"content\":\"one\\ntwo\\nthree\"}"},
    {READ, "a.txt", ",\"line\":2,\"limit\":1", "\"content\":\"two\\n\""},
    {READ, "a.txt", ",\"line\":0,\"limit\":1", "\"content\":\"one\\n\""},
    {READ, "a.txt", ",\"line\":3,\"limit\":null", "\"content\":\"three\""},
    {READ, "a.txt", ",\"line\":9", "\"content\":\"\""},
    {READ, "a.txt", ",\"limit\":0", "\"content\":\"\""},
    {READ, "a.txt", ",\"limit\":-1", "\"code\":-32602"},
    {READ, "a.txt", ",\"line\":\"x\"", "\"code\":-32602"},
    {READ, "empty", "", "\"content\":\"\""},
    {READ, "inside", "", "\"content\":\"one\\ntwo\\nthree\""},
    {READ, "sub/up", "", "\"content\":\"one\\ntwo\\nthree\""},
    {READ, "none", "", "\"result\":{\"content\":\"\"}"},
    {READ, "none/none", "", "\"result\":{\"content\":\"\"}"},
    {READ, "none", ",\"line\":1", "\"code\":-32002"},
    {READ, "bytes", "", "\"reason\":\"notText\""},
    {READ, "large", "", "\"reason\":\"tooLarge\""},
    {READ, "sub", "", "\"reason\":\"notAFile\""},
    {READ, "pipe", "", "\"reason\":\"notAFile\""},
    {READ, "out", "", "\"reason\":\"outsideFolder\""},
    {READ, "dangling", "", "\"reason\":\"outsideFolder\""},
    {READ, "etc/passwd", "", "\"reason\":\"outsideFolder\""},
    {READ, "../x", "", "\"reason\":\"outsideFolder\""},
    {READ, "sub/../a.txt", "", "\"reason\":\"outsideFolder\""},
    {READ, "/etc/passwd", "", "\"reason\":\"outsideFolder\""},
    {READ, "", "", "\"code\":-32602"},
    {READ, ".git/config", "", "\"reason\":\"notPermitted\""},
    {READ, ".aiwg/daemon/token", "", "\"reason\":\"notPermitted\""},
    {READ, "a.txt/x", "", "\"reason\":\"notAFolder\""},
    {WRITE, "new", ",\"content\":\"n\"", "\"result\":{}"},
    {READ, "new", "", "\"content\":\"n\""},
    {WRITE, "deep/er/new", ",\"content\":\"d\"", "\"result\":{}"},
    {READ, "deep/er/new", "", "\"content\":\"d\""},
    {WRITE, "mode", ",\"content\":\"\"", "\"result\":{}"},
    {READ, "mode", "", "\"content\":\"\""},
    {WRITE, "new", ",\"content\":7", "\"code\":-32602"},
    {WRITE, "new", "", "\"code\":-32602"},
    {WRITE, "inside", ",\"content\":\"x\"", "\"reason\":\"isLink\""},
    {WRITE, "etc/x", ",\"content\":\"x\"", "\"reason\":\"isLink\""},
    {WRITE, "sub", ",\"content\":\"x\"", "\"reason\":\"notAFile\""},
    {WRITE, "/tmp/x", ",\"content\":\"x\"", "\"reason\":\"outsideFolder\""},
    {WRITE, ".git/hooks/post-commit", ",\"content\":\"x\"", "\"reason\":\"notPermitted\""},
    {WRITE, ".weft/x", ",\"content\":\"x\"", "\"reason\":\"notPermitted\""},
};

TEST(what_is_answered) {
    agent_world w;
    make_project(&w);
    open_world(&w, NULL);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        test_row(asked[i].path);
        say_path(&w, &w.agent, (int) i, asked[i].method, asked[i].path, asked[i].more);
        const char *line = hub_wait(&w.agent);
        if (!strstr(line, asked[i].answer))
            CHECK_STR(line, asked[i].answer);
    }
    test_row(NULL);
    CHECK_INT(w.hub.hub.passage_files, 0);
    CHECK_INT(w.hub.hub.passage_bytes, 0);
    struct stat st;
    char path[128];
    snprintf(path, sizeof path, "%s/mode", w.folder);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0750);
    snprintf(path, sizeof path, "%s/new", w.folder);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0644);
    run(w.folder, "test -z \"$(find . -name '.weft-*')\"");
    close_world(&w);
    remove_project(&w);
}

/* A session's folder is its root, also for what would be beneath the hub's. */
TEST(a_folder_of_its_own) {
    agent_world w;
    make_project(&w);
    open_world_at(&w, "{}", NULL, "/sub");
    say_path(&w, &w.agent, 1, READ, "sub/in.txt", "");
    HUB_TOLD(&w.agent, "\"content\":\"in\"");
    say_path(&w, &w.agent, 2, READ, "a.txt", "");
    HUB_TOLD(&w.agent, "outsideFolder");
    say_path(&w, &w.agent, 3, READ, "sub/up", "");
    HUB_TOLD(&w.agent, "outsideFolder");
    say_path(&w, &w.agent, 4, READ, "subway", "");
    HUB_TOLD(&w.agent, "outsideFolder");
    say_path(&w, &w.agent, 5, WRITE, "sub/n", ",\"content\":\"n\"");
    HUB_TOLD(&w.agent, "\"result\":{}");
    say_path(&w, &w.agent, 6, READ, "sub", "");
    HUB_TOLD(&w.agent, "notAFile");
    run(w.folder, "test \"$(cat sub/n)\" = n");
    close_world(&w);
    open_world_at(&w, "{}", NULL, "/.aiwg"); /* of which only the name says that something in it is closed */
    say_path(&w, &w.agent, 1, READ, ".aiwg/daemon/token", "");
    HUB_TOLD(&w.agent, "notPermitted");
    run(w.folder, "ln -s daemon/token .aiwg/x");
    say_path(&w, &w.agent, 2, READ, ".aiwg/x", "");
    HUB_TOLD(&w.agent, "notPermitted");
    close_world(&w);
    remove_project(&w);
}

/* ---- who may write ---- */

static void mode_is(agent_world *w, const char *mode) {
    CHECK_INT(weft__engine_append(
                  w->hub.engine, WEFT_STREAM_HUB, "session.state",
                  WEFT_OBJ({"sessionId", weft_str(w->session)}, {"name", weft_str("mode")}, {"value", weft_str(mode)}), NULL,
                  NULL),
              0);
    hub_settle(&w->hub);
}

TEST(who_may_only_read_does_not_write) {
    static const weft_agent readers[] = {{.name = "actor", .driver = "played", .permission = WEFT_PERMISSION_DENY}};
    static const weft_agents agents = {readers, 1, "actor"};
    agent_world w;
    make_project(&w);
    open_world(&w, NULL);
    mode_is(&w, "plan");
    say_path(&w, &w.agent, 1, WRITE, "a.txt", ",\"content\":\"x\"");
    HUB_TOLD(&w.agent, "the session is in a mode that changes no files");
    mode_is(&w, "code");
    say_path(&w, &w.agent, 2, WRITE, "new", ",\"content\":\"x\"");
    HUB_TOLD(&w.agent, "\"result\":{}");
    weft__engine_set(w.hub.engine, &agents, weft__engine_limits(w.hub.engine));
    say_path(&w, &w.agent, 3, WRITE, "a.txt", ",\"content\":\"x\"");
    HUB_TOLD(&w.agent, "this agent may only read");
    say_path(&w, &w.agent, 4, READ, "a.txt", "");
    HUB_TOLD(&w.agent, "\"content\":\"one");
    weft__engine_set(w.hub.engine, &hub_agents, weft__engine_limits(w.hub.engine));
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"task.cancel\",\"params\":{\"taskId\":\"task-0000\"}}");
    hub_settle(&w.hub);
    say_path(&w, &w.agent, 5, WRITE, "a.txt", ",\"content\":\"x\"");
    HUB_TOLD(&w.agent, "the turn is being ended");
    run(w.folder, "test \"$(wc -l <a.txt)\" = 2");
    close_world(&w);
    remove_project(&w);
}

/* What a person said of this file in this task holds, whatever the agent does then. The last word counts. */
TEST(what_was_denied_is_not_written) {
    static const char *const words[] = {"n", "y", ""};
    agent_world w;
    char asks[512], key[8];
    make_project(&w);
    open_world(&w, NULL);
    weft_run *agent = hub_run(&w.hub, w.task);
    for (size_t i = 0; i < 3; i++) {
        snprintf(asks, sizeof asks,
                 "{\"kind\":\"permission\",\"title\":\"edit\",\"options\":[{\"id\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_"
                 "once\"},{\"id\":\"n\",\"name\":\"No\",\"kind\":\"reject_once\"}],\"detail\":{\"kind\":\"edit\",%s%s/"
                 "a.txt\"}]}}",
                 i % 2 ? "\"content\":[{\"type\":\"diff\",\"newText\":\"\",\"path\":\"" : "\"locations\":[{\"path\":\"",
                 w.folder);
        snprintf(key, sizeof key, "k%zu", i);
        agent->host->on_ask(agent->ctx, key, weft_raw(asks, strlen(asks)));
        hub_settle(&w.hub);
        snprintf(key, sizeof key, "%04zu", i);
        char id[32];
        snprintf(id, sizeof id, "question-%s", key);
        CHECK_INT(weft__question_answer(w.hub.engine, id, words[i], "me", NULL, NULL, NULL), 0);
        hub_settle(&w.hub);
        while (hub_take(&w.editor))
            ;
        say_path(&w, &w.agent, (int) i, WRITE, "a.txt", ",\"content\":\"x\"");
        HUB_TOLD(&w.agent, i == 1 ? "\"result\":{}" : "a person has not allowed this change");
        say_path(&w, &w.agent, (int) i, WRITE, "b.txt", ",\"content\":\"x\"");
        HUB_TOLD(&w.agent, "\"result\":{}");
    }
    close_world(&w);
    remove_project(&w);
}

/* ---- through an editor ---- */

TEST(the_editor_has_the_file_open) {
    agent_world w;
    make_project(&w);
    open_world(&w, BOTH);
    say_path(&w, &w.agent, 1, READ, "a.txt", ",\"line\":2");
    HUB_TOLD(&w.editor, "\"method\":\"fs/read_text_file\",\"params\":{\"sessionId\":\"session-0000\",\"path\":\"");
    CHECK(strstr(w.editor.line, "/a.txt\",\"line\":2}") != NULL);
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":\"not saved\"}}");
    HUB_TOLD(&w.agent, "\"result\":{\"content\":\"not saved\"}");
    say_path(&w, &w.agent, 2, WRITE, "a.txt", ",\"content\":\"w\"");
    HUB_TOLD(&w.editor, "/a.txt\",\"content\":\"w\"}");
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}");
    HUB_TOLD(&w.agent, "\"result\":{}");
    run(w.folder, "test \"$(head -n 1 a.txt)\" = one"); /* that is the editor's to do */
    close_world(&w);
    remove_project(&w);
}

/* What leads outside is not handed to an editor, which would follow it. */
TEST(the_editor_is_not_asked) {
    static const char *const paths[] = {"out",         "etc/passwd", "sub/../a.txt", "/etc/passwd",
                                        ".git/config", "dangling",   "pipe"};
    agent_world w;
    make_project(&w);
    open_world(&w, BOTH);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        say_path(&w, &w.agent, 1, READ, paths[i], "");
        HUB_TOLD(&w.agent, "\"error\"");
        say_path(&w, &w.agent, 2, WRITE, paths[i], ",\"content\":\"x\"");
        HUB_TOLD(&w.agent, "\"error\"");
    }
    HUB_SILENT(&w.editor);
    close_world(&w);
    open_world_at(&w, BOTH, "read", ""); /* who may only look does not say what is in a file */
    say_path(&w, &w.agent, 1, READ, "a.txt", "");
    HUB_TOLD(&w.agent, "\"content\":\"one");
    HUB_SILENT(&w.editor);
    close_world(&w);
    open_world(&w, "{\"fs\":{\"readTextFile\":true,\"writeTextFile\":false}}");
    say_path(&w, &w.agent, 1, WRITE, "b.txt", ",\"content\":\"b\"");
    HUB_TOLD(&w.agent, "\"result\":{}");
    run(w.folder, "test \"$(cat b.txt)\" = b");
    HUB_SILENT(&w.editor);
    close_world(&w);
    remove_project(&w);
}

/* Reading goes on from the disk, and it is said; a write that the editor refused is not done behind its back. */
TEST(the_editor_refuses) {
    agent_world w;
    make_project(&w);
    open_world(&w, BOTH);
    say_path(&w, &w.agent, 1, READ, "a.txt", "");
    HUB_TOLD(&w.editor, "fs/read_text_file");
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"no\"}}");
    HUB_TOLD(&w.agent, "\"content\":\"one");
    HUB_TOLD(&w.editor, "it was read from the disk");
    say_path(&w, &w.agent, 2, READ, "none", "");
    HUB_TOLD(&w.editor, "fs/read_text_file");
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32002,\"message\":\"no\"}}");
    HUB_TOLD(&w.agent, "\"result\":{\"content\":\"\"}");
    HUB_SILENT(&w.editor);
    say_path(&w, &w.agent, 3, READ, "a.txt", "");
    HUB_TOLD(&w.editor, "fs/read_text_file");
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":7}}");
    HUB_TOLD(&w.agent, "\"content\":\"one");
    HUB_TOLD(&w.editor, "from the disk");
    say_path(&w, &w.agent, 4, WRITE, "a.txt", ",\"content\":\"w\"");
    HUB_TOLD(&w.editor, "fs/write_text_file");
    hub_say(&w.editor, "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32603,\"message\":\"read-only buffer\"}}");
    HUB_TOLD(&w.agent, "The editor did not write the file: read-only buffer");
    run(w.folder, "test \"$(head -n 1 a.txt)\" = one");
    close_world(&w);
    remove_project(&w);
}

/* It goes while it is asked: what the agent wants is done without it. */
TEST(the_editor_goes) {
    static const char *const methods[] = {READ, WRITE};
    agent_world w;
    make_project(&w);
    for (int i = 0; i < 2; i++) {
        open_world(&w, BOTH);
        say_path(&w, &w.agent, 1, methods[i], "a.txt", i ? ",\"content\":\"w\"" : "");
        HUB_TOLD(&w.editor, methods[i]);
        hub_disconnect(&w.editor);
        HUB_TOLD(&w.agent, i ? "\"result\":{}" : "\"content\":\"one");
        close_world(&w);
    }
    run(w.folder, "test \"$(cat a.txt)\" = w");
    remove_project(&w);
}

/* It says nothing: the agent reads from the disk, and hears that its write may not be done. */
TEST(the_editor_is_silent) {
    agent_world w;
    make_project(&w);
    open_world(&w, BOTH);
    say_path(&w, &w.agent, 1, READ, "a.txt", "");
    HUB_TOLD(&w.editor, "fs/read_text_file");
    say_path(&w, &w.agent, 2, WRITE, "a.txt", ",\"content\":\"w\"");
    HUB_TOLD(&w.editor, "fs/write_text_file");
    weft_peer_tick(w.editor.peer, 1 + WEFT_EDITOR_MS + 1);
    HUB_TOLD(&w.agent, "has not said within 10 s");
    HUB_TOLD(&w.agent, "\"content\":\"one");
    run(w.folder, "test \"$(head -n 1 a.txt)\" = one");
    close_world(&w);
    remove_project(&w);
}

/* The agent gives its request up: it is answered so, and the editor is told. */
TEST(the_agent_gives_up) {
    agent_world w;
    make_project(&w);
    open_world(&w, BOTH);
    say_path(&w, &w.agent, 7, READ, "a.txt", "");
    HUB_TOLD(&w.editor, "fs/read_text_file");
    hub_say(&w.agent, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":7}}");
    HUB_TOLD(&w.agent, "\"id\":7,\"error\":{\"code\":-32800");
    HUB_TOLD(&w.editor, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}");
    say_path(&w, &w.agent, 8, READ, "b.txt", "");
    HUB_TOLD(&w.editor, "fs/read_text_file");
    weft_peer_free(w.agent.peer); /* and one that goes */
    HUB_TOLD(&w.editor, "$/cancel_request");
    CHECK_INT(w.hub.hub.passage_files, 0);
    close_world(&w);
    remove_project(&w);
}

TEST(the_hub_goes_first) {
    agent_world w;
    make_project(&w);
    for (int i = 0; i < 4; i++) {
        open_world(&w, i < 2 ? NULL : BOTH);
        say_path(&w, &w.agent, 1, READ, "a.txt", "");
        say_path(&w, &w.agent, 2, WRITE, "c.txt", ",\"content\":\"c\"");
        if (i == 3) {
            HUB_TOLD(&w.editor, "fs/");
            HUB_TOLD(&w.editor, "fs/");
        } else if (i)
            hub_turn(&w.hub, 1);
        close_world(&w);
    }
    remove_project(&w);
}

TEST(too_many_at_once) {
    agent_world w;
    make_project(&w);
    open_world(&w, BOTH);
    for (int i = 0; i < WEFT_PASSAGE_FILES; i++) {
        say_path(&w, &w.agent, i, READ, "a.txt", "");
        HUB_TOLD(&w.editor, "fs/read_text_file");
    }
    say_path(&w, &w.agent, 999, READ, "a.txt", "");
    HUB_TOLD(&w.agent, "\"id\":999,\"error\":{\"code\":-32603");
    close_world(&w);
    remove_project(&w);
}

/* Each allocation of what is above the engine fails once. The agent is answered all the same. */
TEST(memory_is_short) {
    agent_world w;
    make_project(&w);
    for (int kind = 0; kind < 4; kind++) {
        bool reached = true;
        for (long n = 1; reached; n++) {
            open_world(&w, kind < 2 ? NULL : BOTH);
            w.memory.fail_at = w.memory.count + n;
            say_path(&w, &w.agent, 1, kind % 2 ? WRITE : READ, "a.txt", kind % 2 ? ",\"content\":\"w\"" : "");
            HUB_UNTIL(&w.hub,
                      weft_peer_output(w.agent.peer).len > 0 || !w.editor.peer || weft_peer_output(w.editor.peer).len > 0);
            if (kind >= 2 && w.editor.peer && weft_peer_output(w.editor.peer).len > 0) {
                static const char done[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":\"e\"}}\n";
                if (weft_peer_feed(w.editor.peer, done, sizeof done - 1, 1) < 0)
                    hub_disconnect(&w.editor); /* as a transport does */
            }
            HUB_UNTIL(&w.hub, weft_peer_output(w.agent.peer).len > 0);
            reached = w.memory.count >= w.memory.fail_at;
            close_world(&w);
        }
    }
    remove_project(&w);
}

TEST_MAIN(CASE(what_is_answered) CASE(a_folder_of_its_own) CASE(who_may_only_read_does_not_write)
              CASE(what_was_denied_is_not_written) CASE(the_editor_has_the_file_open) CASE(the_editor_is_not_asked)
                  CASE(the_editor_refuses) CASE(the_editor_goes) CASE(the_editor_is_silent) CASE(the_agent_gives_up)
                      CASE(the_hub_goes_first) CASE(too_many_at_once) CASE(memory_is_short))
