/* Terminals as an agent asks for them, in ACP's words: who gets one, what it prints, who waits for it, and what the tool
 * calls that show it say at its end. */
#include "terminals.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "agents/kit.h"

typedef struct scene {
    weft_loop *loop;
    weft_service *service;
    weft_terminals *terminals;
    test_memory memory;
    const char *mark, *env[4];
    char root[64];
    int answers, updates, lost;
    int code; /* of the last answer; 0: a result */
    char answer[4096], update[1 << 17];
    char id[WEFT_TERMINAL_ID];
} scene;

static int take(weft_req *req, const weft_json *params, void *ctx) {
    static const char *const names[] = {"create", "output", "wait", "kill", "release"};
    scene *s = ctx;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(weft_req_method(req), names[i]) == 0)
            return weft__terminals_take(s->terminals, (weft_terminals_call) i, req, params);
    return -ENOENT;
}

static const weft_method methods[] = {{.name = "create", .handler = take},  {.name = "output", .handler = take},
                                      {.name = "wait", .handler = take},    {.name = "kill", .handler = take},
                                      {.name = "release", .handler = take}, {0}};

static void on_update(void *ctx, int r, weft_val update) {
    scene *s = ctx;
    char *text = NULL;
    size_t len;
    if (r < 0) {
        s->lost++;
        return;
    }
    s->updates++;
    CHECK_INT(weft_to_text(update, NULL, &text, &len), 0);
    snprintf(s->update, sizeof s->update, "%s", text);
    weft_text_free(text, NULL);
}

static void make_terminals(scene *s) {
    CHECK_INT(weft__terminals_new(&(weft_terminals_opts){.loop = s->loop,
                                                         .alloc = &s->memory.alloc,
                                                         .guard = kit_weft(),
                                                         .root = s->root,
                                                         .env = s->env,
                                                         .grace_ms = 300,
                                                         .ctx = s,
                                                         .on_update = on_update},
                                  &s->terminals),
              0);
}

static void open_scene(scene *s) {
    *s = (scene){.mark = kit_mark()};
    test_memory_init(&s->memory, 0);
    s->env[0] = s->mark;
    s->env[1] = "FROM=agent";
    s->env[2] = "BOTH=agent";
    snprintf(s->root, sizeof s->root, "/tmp/weft-terminals-XXXXXX");
    CHECK(mkdtemp(s->root) != NULL);
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = s}, &s->service), 0);
    make_terminals(s);
}

static void close_scene(scene *s) {
    s->terminals = weft__terminals_free(s->terminals);
    weft_service_deliver(s->service);
    weft_service_unref(s->service);
    weft_loop_free(s->loop);
    CHECK_INT(s->memory.live, 0);
    CHECK_INT(kit_wait_gone(s->mark, PATIENCE_MS), 0);
    CHECK(kit_children_go());
    test_remove(s->root);
}

static void on_called(void *ctx, int r, const weft_answer *answer) {
    scene *s = ctx;
    char *text = NULL;
    size_t len;
    s->answers++;
    s->code = r;
    *s->answer = '\0';
    if (r < 0)
        return;
    s->code = answer->error ? answer->error->code : 0;
    if (answer->error)
        snprintf(s->answer, sizeof s->answer, "%s", answer->error->message);
    else if (CHECK_INT(weft_to_text(weft_copy(answer->result), NULL, &text, &len), 0))
        snprintf(s->answer, sizeof s->answer, "%s", text);
    weft_text_free(text, NULL);
}

static int64_t ask(scene *s, const char *method, const char *params) {
    int64_t id = 0;
    CHECK_INT(weft_service_call(s->service, NULL, method, weft_raw(params, strlen(params)), on_called, s, &id), 0);
    return id;
}

static void await(scene *s, int answers) {
    KIT_UNTIL(s->loop, (weft_service_deliver(s->service), s->answers >= answers));
    CHECK_INT(s->answers, answers);
}

/* Ask, and wait for the answer. */
static int call(scene *s, const char *method, const char *params) {
    int before = s->answers;
    ask(s, method, params);
    await(s, before + 1);
    return s->code;
}

static int about(scene *s, const char *method, const char *id) {
    char params[100];
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", id);
    return call(s, method, params);
}

/* A terminal with this shell line; its id is s->id. */
static void create(scene *s, const char *line) {
    char params[1000];
    snprintf(params, sizeof params, "{\"command\":\"/bin/sh\",\"args\":[\"-c\",\"%s\"]}", line);
    CHECK_INT(call(s, "create", params), 0);
    snprintf(s->id, sizeof s->id, "%.*s", (int) strcspn(s->answer + 15, "\""), s->answer + 15);
}

static void expect_ended(scene *s, const char *exit) {
    CHECK_INT(about(s, "wait", s->id), 0);
    CHECK_STR(s->answer, exit);
}

#define EXIT_0 "{\"exitCode\":0,\"signal\":null}"

/* ---- the calls ---- */

TEST(a_command_runs_and_is_released) {
    scene s;
    open_scene(&s);
    create(&s, "echo hello; exit 3");
    expect_ended(&s, "{\"exitCode\":3,\"signal\":null}");
    CHECK_INT(about(&s, "output", s.id), 0);
    CHECK_STR(s.answer, "{\"output\":\"hello\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":3,\"signal\":null}}");
    CHECK_INT(about(&s, "kill", s.id), 0); /* it has ended: nothing happens */
    CHECK_STR(s.answer, "{}");
    CHECK_INT(about(&s, "release", s.id), 0);
    CHECK_STR(s.answer, "{}");
    CHECK_INT(about(&s, "output", s.id), -32002);
    CHECK_STR(s.answer, "This terminal was released");
    CHECK_INT(about(&s, "release", s.id), -32002);
    close_scene(&s);
}

TEST(a_killed_one_keeps_its_id) {
    scene s;
    open_scene(&s);
    create(&s, "echo ready; exec sleep 1000");
    KIT_UNTIL(s.loop, (about(&s, "output", s.id), strstr(s.answer, "ready")));
    CHECK(!strstr(s.answer, "exitStatus"));
    CHECK_INT(about(&s, "kill", s.id), 0);
    expect_ended(&s, "{\"exitCode\":null,\"signal\":\"SIGTERM\"}");
    CHECK_INT(about(&s, "output", s.id), 0);
    CHECK(strstr(s.answer, "\"exitStatus\":{\"exitCode\":null,\"signal\":\"SIGTERM\"}"));
    close_scene(&s);
}

TEST(words_for_what_cannot_be) {
    static const struct {
        const char *method, *params;
        int code;
        const char *why;
    } rows[] = {
        {"create", "{}", -32602, "\"command\" must be the name of a program"},
        {"create", "{\"command\":\"\"}", -32602, "\"command\" must be the name of a program"},
        {"create", "{\"command\":\"a\\u0000b\"}", -32602, "\"command\" must be the name of a program"},
        {"create", "{\"command\":\"ls\",\"args\":\"x\"}", -32602, "\"args\" must be an array of strings"},
        {"create", "{\"command\":\"ls\",\"args\":[1]}", -32602, "\"args\" must be strings without NUL"},
        {"create", "{\"command\":\"ls\",\"env\":{}}", -32602, "\"env\" must be an array of at most 256 variables"},
        {"create", "{\"command\":\"ls\",\"env\":[{\"name\":\"A=B\",\"value\":\"\"}]}", -32602,
         "\"env\" must be {name, value}, without \"=\" in a name"},
        {"create", "{\"command\":\"ls\",\"env\":[{\"name\":\"A\"}]}", -32602,
         "\"env\" must be {name, value}, without \"=\" in a name"},
        {"create", "{\"command\":\"ls\",\"cwd\":\"here\"}", -32602, "\"cwd\" must be an absolute path"},
        {"create", "{\"command\":\"ls\",\"cwd\":7}", -32602, "\"cwd\" must be an absolute path"},
        {"create", "{\"command\":\"ls\",\"cwd\":\"/\"}", -32602, "\"cwd\" must be in the folder of the session"},
        {"create", "{\"command\":\"there-is-no-such-program\"}", -32603,
         "The program cannot be started: No such file or directory"},
        {"output", "{}", -32602, "\"terminalId\" must be a string"},
        {"output", "{\"terminalId\":\"x\"}", -32002, "There is no such terminal in this turn"},
        {"wait", "{\"terminalId\":\"x\"}", -32002, "There is no such terminal in this turn"},
        {"kill", "{\"terminalId\":\"x\"}", -32002, "There is no such terminal in this turn"},
        {"release", "{\"terminalId\":\"x\"}", -32002, "There is no such terminal in this turn"},
    };
    scene s;
    open_scene(&s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].params);
        CHECK_INT(call(&s, rows[i].method, rows[i].params), rows[i].code);
        CHECK_STR(s.answer, rows[i].why);
    }
    test_row(NULL);
    close_scene(&s);
}

/* ---- what is around the program ---- */

static void expect_output(scene *s, const char *params, const char *want) {
    CHECK_INT(call(s, "create", params), 0);
    snprintf(s->id, sizeof s->id, "%.*s", (int) strcspn(s->answer + 15, "\""), s->answer + 15);
    about(s, "wait", s->id);
    CHECK_INT(about(s, "output", s->id), 0);
    CHECK_STR(s->answer, want);
    about(s, "release", s->id);
}

#define PRINTED(text) "{\"output\":\"" text "\",\"truncated\":false,\"exitStatus\":" EXIT_0 "}"

/* What the agent says now, then its configuration, then ours; of what it says twice the last. */
TEST(the_environment_is_the_agents) {
    scene s;
    open_scene(&s);
    setenv("FROM", "daemon", 1);
    expect_output(
        &s,
        "{\"command\":\"/bin/sh\",\"args\":[\"-c\",\"echo $FROM $BOTH $MINE $TERM $PAGER\"],\"env\":[{\"name\":"
        "\"BOTH\",\"value\":\"first\"},{\"name\":\"BOTH\",\"value\":\"call\"},{\"name\":\"MINE\",\"value\":\"x=y\"},"
        "{\"name\":\"PAGER\",\"value\":\"less\"}]}",
        PRINTED("agent call x=y dumb less\\n"));
    unsetenv("FROM");
    close_scene(&s);
}

TEST(it_starts_in_the_folder_of_the_session_or_beneath) {
    scene s;
    char path[200], params[400], want[400];
    open_scene(&s);
    snprintf(path, sizeof path, "%s/in", s.root);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/out", s.root);
    CHECK_INT(symlink("/usr", path), 0);
    snprintf(want, sizeof want, PRINTED("%s\\n"), s.root);
    expect_output(&s, "{\"command\":\"pwd\"}", want);
    expect_output(&s, "{\"command\":\"pwd\",\"cwd\":null,\"args\":null,\"env\":null,\"outputByteLimit\":null}", want);
    snprintf(params, sizeof params, "{\"command\":\"pwd\",\"cwd\":\"%s/in\"}", s.root);
    snprintf(want, sizeof want, PRINTED("%s/in\\n"), s.root);
    expect_output(&s, params, want);
    snprintf(params, sizeof params, "{\"command\":\"pwd\",\"cwd\":\"%s/out\"}", s.root);
    CHECK_INT(call(&s, "create", params), -32602);
    CHECK_STR(s.answer, "\"cwd\" must be in the folder of the session");
    snprintf(path, sizeof path, "%s/.git", s.root);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(params, sizeof params, "{\"command\":\"pwd\",\"cwd\":\"%s/.git\"}", s.root);
    CHECK_INT(call(&s, "create", params), -32602);
    CHECK_STR(s.answer, "\"cwd\" is a folder that is closed");
    snprintf(params, sizeof params, "{\"command\":\"pwd\",\"cwd\":\"%s/none\"}", s.root);
    CHECK_INT(call(&s, "create", params), -32602);
    CHECK_STR(s.answer, "There is no such folder as \"cwd\" says");
    close_scene(&s);
}

/* More than the kernel takes. */
TEST(a_line_may_be_too_long) {
    enum { LENGTH = 9 << 20 };
    scene s;
    char *params = malloc(LENGTH + 100);
    open_scene(&s);
    int n = sprintf(params, "{\"command\":\"echo\",\"args\":[\"");
    memset(params + n, 'x', LENGTH);
    strcpy(params + n + LENGTH, "\"]}");
    CHECK_INT(call(&s, "create", params), -32603);
    CHECK_STR(s.answer, "The program cannot be started: Argument list too long");
    free(params);
    close_scene(&s);
}

/* A line for a shell, as agents send it; a name with a space in it is a file if there is one. */
TEST(a_line_is_given_to_a_shell) {
    scene s;
    char path[200], params[400];
    open_scene(&s);
    expect_output(&s, "{\"command\":\"echo one && echo two | tr o 0\"}", PRINTED("one\\ntw0\\n"));
    expect_output(&s, "{\"command\":\"echo\",\"args\":[\"$HOME; x\"]}", PRINTED("$HOME; x\\n"));
    snprintf(path, sizeof path, "%s/a program", s.root);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    CHECK(fd >= 0 && write(fd, "#!/bin/sh\necho it runs\n", 23) == 23);
    close(fd);
    snprintf(params, sizeof params, "{\"command\":\"%s\"}", path);
    expect_output(&s, params, PRINTED("it runs\\n"));
    close_scene(&s);
}

TEST(output_is_cut_from_the_front) {
    scene s;
    open_scene(&s);
    expect_output(&s, "{\"command\":\"printf 'abc\\\\303\\\\251de'\",\"outputByteLimit\":3}",
                  "{\"output\":\"de\",\"truncated\":true,\"exitStatus\":" EXIT_0 "}");
    expect_output(&s, "{\"command\":\"echo x\",\"outputByteLimit\":0}",
                  "{\"output\":\"\",\"truncated\":true,\"exitStatus\":" EXIT_0 "}");
    close_scene(&s);
}

TEST(people_see_what_was_asked_for) {
    scene s;
    weft_open_terminal one;
    char params[2000], long_word[401];
    open_scene(&s);
    CHECK(!weft__terminals_nth(s.terminals, 0, &one));
    CHECK_INT(call(&s, "create", "{\"command\":\"echo one | cat\"}"), 0);
    CHECK_INT(call(&s, "create", "{\"command\":\"echo\",\"args\":[\"a b\",\"c\"]}"), 0);
    for (int i = 0; i < 200; i++)
        memcpy(long_word + 2 * i, "\xC3\xA9", 3);
    snprintf(params, sizeof params, "{\"command\":\"echo\",\"args\":[\"%s\",\"%s\",\"x\"]}", long_word, long_word);
    CHECK_INT(call(&s, "create", params), 0);
    CHECK(weft__terminals_nth(s.terminals, 0, &one));
    CHECK_STR(one.command, "echo one | cat");
    CHECK(weft__terminals_nth(s.terminals, 1, &one));
    CHECK_STR(one.command, "echo a b c");
    CHECK(weft__terminals_nth(s.terminals, 2, &one));
    CHECK(weft__utf8_valid(one.command, strlen(one.command)));
    CHECK(strlen(one.command) > 240);
    CHECK_STR(one.command + strlen(one.command) - 3, "\xE2\x80\xA6");
    CHECK(!weft__terminals_nth(s.terminals, 3, &one));
    close_scene(&s);
}

/* ---- limits ---- */

TEST(there_are_so_many_at_a_time) {
    scene s;
    open_scene(&s);
    for (int i = 0; i < WEFT_TERMINALS_MOST; i++)
        create(&s, "exec sleep 1000");
    CHECK_INT(call(&s, "create", "{\"command\":\"ls\"}"), -32603);
    CHECK_STR(s.answer, "Too many terminals are open: release those that are done with");
    CHECK_INT(about(&s, "release", s.id), 0);
    create(&s, "exec sleep 1000");
    int before = s.answers;
    char params[100];
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s.id);
    for (int i = 0; i < 17; i++)
        ask(&s, "wait", params);
    await(&s, before + 1); /* the seventeenth is refused */
    CHECK_STR(s.answer, "Too many requests wait for this terminal");
    weft__terminals_finish(s.terminals);
    await(&s, before + 17);
    CHECK_STR(s.answer, "{\"exitCode\":null,\"signal\":\"SIGKILL\"}");
    close_scene(&s);
}

/* Those that were released are forgotten in the end, and their memory with them. */
TEST(released_ones_do_not_add_up) {
    scene s;
    open_scene(&s);
    for (int i = 0; i < 100; i++) {
        create(&s, "echo hello");
        expect_ended(&s, EXIT_0);
        CHECK_INT(about(&s, "release", s.id), 0);
    }
    CHECK(s.memory.live < 400);
    close_scene(&s);
}

/* ---- ends ---- */

TEST(a_wait_is_answered_when_the_turn_is_cancelled) {
    scene s;
    char params[100];
    open_scene(&s);
    create(&s, "trap '' TERM HUP; echo ready; while :; do sleep 1000; done");
    KIT_UNTIL(s.loop, (about(&s, "output", s.id), strstr(s.answer, "ready")));
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s.id);
    int before = s.answers;
    ask(&s, "wait", params);
    weft__terminals_stop(s.terminals);
    await(&s, before + 1);
    CHECK_STR(s.answer, "{\"exitCode\":null,\"signal\":\"SIGKILL\"}");
    CHECK_INT(call(&s, "create", "{\"command\":\"ls\"}"), -32603);
    CHECK_STR(s.answer, "The turn is being cancelled");
    CHECK_INT(about(&s, "output", s.id), 0); /* what was there is there */
    close_scene(&s);
}

TEST(requests_may_be_given_up) {
    scene s;
    char params[100];
    open_scene(&s);
    int64_t id = ask(&s, "create", "{\"command\":\"sleep 1000\"}");
    CHECK_INT(weft_service_cancel(s.service, id), 0);
    await(&s, 1);
    CHECK_INT(s.code, -ECANCELED);
    CHECK_INT(kit_wait_gone(s.mark, PATIENCE_MS), 0);
    create(&s, "exec sleep 1000");
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s.id);
    id = ask(&s, "wait", params);
    CHECK_INT(weft_service_cancel(s.service, id), 0);
    await(&s, 3);
    CHECK_INT(about(&s, "kill", s.id), 0);
    expect_ended(&s, "{\"exitCode\":null,\"signal\":\"SIGTERM\"}");
    close_scene(&s);
}

TEST(all_that_waits_is_answered_when_it_is_freed) {
    scene s;
    char params[100];
    open_scene(&s);
    create(&s, "exec sleep 1000");
    snprintf(params, sizeof params, "{\"terminalId\":\"%s\"}", s.id);
    int before = s.answers;
    ask(&s, "wait", params);
    ask(&s, "create", "{\"command\":\"sleep 1000\"}");
    s.terminals = weft__terminals_free(s.terminals);
    await(&s, before + 2);
    CHECK_INT(s.code, 0); /* the wait is answered last */
    make_terminals(&s);
    CHECK_INT(about(&s, "output", s.id), -32002); /* another turn has no terminal of this one */
    close_scene(&s);
}

/* ---- tool calls that show them ---- */

static int show(scene *s, const char *update, weft_buf *ret) {
    weft_doc *doc = NULL;
    char text[2000];
    snprintf(text, sizeof text, update, s->id);
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    int r = weft__terminals_show(s->terminals, weft_doc_root(doc), ret);
    weft_doc_free(doc);
    return r;
}

#define CALL                                                                                                                \
    "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t1\",\"title\":\"x\",\"content\":[{\"type\":\"terminal\","           \
    "\"terminalId\":\"%s\"}]}"
#define TEXT(text) "{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}"

TEST(a_tool_call_that_shows_it_says_what_it_printed) {
    scene s;
    weft_buf shown = {0};
    char want[1000];
    open_scene(&s);
    create(&s, "read line; echo 'it said ``` once'; exit 2");
    CHECK_INT(show(&s, CALL, &shown), 0); /* it has not ended */
    CHECK_INT(s.updates, 0);
    CHECK_INT(about(&s, "kill", s.id), 0);
    about(&s, "wait", s.id);
    CHECK_INT(s.updates, 1);
    snprintf(
        want, sizeof want,
        "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\",\"content\":[{\"type\":\"terminal\",\"terminalId\":"
        "\"%s\"}," TEXT("```\\n```\\nended by SIGTERM") "]}",
        s.id);
    CHECK_STR(s.update, want);
    close_scene(&s);
}

TEST(an_update_after_its_end_has_it_too) {
    scene s;
    weft_buf shown = {0};
    char want[1000];
    open_scene(&s);
    create(&s, "echo 'it said ``` once'; exit 2");
    about(&s, "wait", s.id);
    snprintf(
        want, sizeof want,
        "{\"sessionUpdate\":\"tool_call_update\",\"content\":[" TEXT("y") ",{\"type\":\"terminal\",\"terminalId\":\"%s\"}"
                                                                          "," TEXT("````\\nit said ``` once\\n````\\nexit "
                                                                                   "code 2") ",{\"type\":\"terminal\","
                                                                                             "\"terminalId\":\"another's\"}]"
                                                                                             ","
                                                                                             "\"toolCallId\":\"t1\","
                                                                                             "\"status\":\"completed\"}",
        s.id);
    for (int released = 0; released < 2; released++) {
        CHECK_INT(show(&s,
                       "{\"sessionUpdate\":\"tool_call_update\",\"content\":[" TEXT(
                           "y") ",{\"type\":\"terminal\",\"terminalId\":\"%s\"},{\"type\":\"terminal\",\"terminalId\":"
                                "\"another's\"}],\"toolCallId\":\"t1\",\"status\":\"completed\"}",
                       &shown),
                  1);
        CHECK_TEXT(weft__buf_head(&shown), weft__buf_len(&shown), want);
        weft__buf_done(&shown, &s.memory.alloc);
        CHECK_INT(about(&s, "release", s.id), released ? -32002 : 0);
        CHECK_INT(s.updates, 0); /* everything had been said */
    }
    close_scene(&s);
}

/* Without content an update changes nothing of what is shown; with another content the terminal is shown no more. */
TEST(only_what_is_shown_now_is_told) {
    scene s;
    weft_buf shown = {0};
    open_scene(&s);
    create(&s, "exec sleep 1000");
    CHECK_INT(show(&s, CALL, &shown), 0);
    CHECK_INT(
        show(&s, "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\",\"status\":\"in_progress\"}%.0s", &shown),
        0);
    CHECK_INT(about(&s, "release", s.id), 0);
    CHECK_INT(s.updates, 1);
    CHECK(strstr(s.update, "ended when it was released"));
    create(&s, "exec sleep 1000");
    CHECK_INT(show(&s, CALL, &shown), 0);
    CHECK_INT(show(&s, "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\",\"content\":[]}%.0s", &shown), 0);
    CHECK_INT(
        show(
            &s,
            "{\"sessionUpdate\":\"plan\",\"toolCallId\":\"t1\",\"content\":[{\"type\":\"terminal\",\"terminalId\":\"%s\"}]}",
            &shown),
        0);
    CHECK_INT(about(&s, "release", s.id), 0);
    CHECK_INT(s.updates, 1);
    close_scene(&s);
}

TEST(what_is_shown_is_bounded) {
    scene s;
    weft_buf shown = {0};
    open_scene(&s);
    create(&s, "head -c 100000 /dev/zero | tr '\\\\0' x");
    CHECK_INT(show(&s, CALL, &shown), 0);
    about(&s, "wait", s.id);
    CHECK_INT(s.updates, 1);
    CHECK(strstr(s.update, "(the beginning is left out)\\n```\\nxxx"));
    CHECK(strlen(s.update) < WEFT_TERMINALS_SHOWN + 400);
    char update[300];
    for (int i = 0; i < 300; i++) {
        snprintf(
            update, sizeof update,
            "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c%d\",\"content\":[{\"type\":\"terminal\",\"terminalId\":"
            "\"%%s\"}]}",
            i);
        CHECK_INT(show(&s, update, &shown), 1);
        weft__buf_done(&shown, &s.memory.alloc);
    }
    CHECK(s.memory.live < 300);
    close_scene(&s);
}

TEST(every_allocation_may_fail) {
    for (long fail_at = 1;; fail_at++) {
        scene s;
        weft_buf shown = {0};
        open_scene(&s);
        s.memory.fail_at = s.memory.count + fail_at;
        call(&s, "create", "{\"command\":\"echo hello\",\"env\":[{\"name\":\"A\",\"value\":\"b\"}]}");
        bool made = s.code == 0;
        CHECK(made || s.code == -32603);
        if (made) {
            snprintf(s.id, sizeof s.id, "%.*s", (int) strcspn(s.answer + 15, "\""), s.answer + 15);
            int r = show(&s, CALL, &shown);
            CHECK(r >= 0 || r == -ENOMEM);
            weft__buf_done(&shown, &s.memory.alloc);
            CHECK(about(&s, "wait", s.id) == 0 || s.code == -32603);
            CHECK_INT(about(&s, "release", s.id), 0);
        }
        bool whole = s.memory.count < s.memory.fail_at;
        if (whole)
            CHECK(made && !s.lost);
        close_scene(&s);
        if (whole)
            return;
    }
}

TEST_MAIN(CASE(a_command_runs_and_is_released) CASE(a_killed_one_keeps_its_id) CASE(words_for_what_cannot_be)
              CASE(the_environment_is_the_agents) CASE(it_starts_in_the_folder_of_the_session_or_beneath)
                  CASE(a_line_may_be_too_long) CASE(a_line_is_given_to_a_shell) CASE(output_is_cut_from_the_front)
                      CASE(people_see_what_was_asked_for) CASE(there_are_so_many_at_a_time) CASE(released_ones_do_not_add_up)
                          CASE(a_wait_is_answered_when_the_turn_is_cancelled) CASE(requests_may_be_given_up)
                              CASE(all_that_waits_is_answered_when_it_is_freed)
                                  CASE(a_tool_call_that_shows_it_says_what_it_printed)
                                      CASE(an_update_after_its_end_has_it_too) CASE(only_what_is_shown_now_is_told)
                                          CASE(what_is_shown_is_bounded) CASE(every_allocation_may_fail))
