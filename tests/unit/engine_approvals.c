/* Answers that stand: what they cover and what they do not, over restarts, until they are revoked; and what a task's own
 * permission allows. The project's folder is /tmp. */
#include "approval.h"
#include "engine/world.h"
#include "form.h"
#include "tool_call.h"

#define OPTIONS                                                                                                             \
    "[{\"id\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"},{\"id\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_"    \
    "once\"}]"

static void ask(weft_run *run, const char *key, const char *call) {
    run->host->on_ask(run->ctx, key,
                      WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str("may I?")},
                               {"options", weft_raw(OPTIONS, strlen(OPTIONS))}, {"detail", weft_raw(call, strlen(call))}));
}

static const weft_question *newest(engine_world *w) {
    const weft_question *last = NULL;
    for (const weft_question *q = weft__question_first(w->engine, true); q; q = weft__question_next(w->engine, q, true))
        last = q;
    return last;
}

static size_t count_asked(engine_world *w) {
    size_t count = 0;
    for (const weft_question *q = weft__question_first(w->engine, true); q; q = weft__question_next(w->engine, q, true))
        count++;
    return count;
}

typedef struct outcome {
    int times, r;
} outcome;

static void on_done(void *ctx, int r, const weft_question *question) {
    (void) question;
    ((outcome *) ctx)->r = r;
    ((outcome *) ctx)->times++;
}

static int answer(engine_world *w, const char *id, const char *option, const char *always, char why[WEFT_FORM_WHY]) {
    weft_doc *doc = NULL;
    outcome done = {0};
    *why = '\0';
    CHECK_INT(weft_doc_parse(always, strlen(always), NULL, &doc), 0);
    int r = weft__question_answer_with(
        w->engine, id, &(weft_question_answer){.option = option, .by = "ann", .always = weft_doc_root(doc), .why = why},
        on_done, &done);
    weft_doc_free(doc);
    if (r >= 0)
        CHECK(engine_wait(w, &done.times, 1));
    return r < 0 ? r : done.r;
}

/* Ask, and let the newest question be seen. */
static const weft_question *asked(engine_world *w, weft_run *run, const char *call) {
    size_t before = count_asked(w);
    ask(run, "k", call);
    ENGINE_UNTIL(w, count_asked(w) == before + 1);
    engine_settle(w);
    return newest(w);
}

static bool is_covered(engine_world *w, weft_run *run, const char *call) {
    const weft_question *question = asked(w, run, call);
    if (question->state == WEFT_QUESTION_ANSWERED) {
        CHECK_STR(question->by, "ann");
        CHECK_STR(question->approval, "approval-0000");
        CHECK_STR(question->option, "yes");
        return true;
    }
    return false;
}

static weft_run *begin(engine_world *w, const weft_store_kind *kind, const char *agent, task_outcome *t) {
    engine_begin(w, kind);
    CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = "x", .agent = agent}, t), 0);
    return play_of(t->id);
}

/* ---- what is covered ---- */

#define RUN(command) "{\"kind\":\"execute\",\"title\":\"t\",\"rawInput\":{\"command\":\"" command "\"}}"
#define EDIT(path) "{\"kind\":\"edit\",\"title\":\"t\",\"locations\":[{\"path\":\"" path "\"}]}"

static const struct row {
    const char *first, *always; /* what was asked, and how it was answered */
    const char *later;
    bool covered;
} rows[] = {
    /* a command's first words */
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test -- --watch"), true},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm  'test'"), true},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm install evil"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test; rm -rf ."), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test && rm x"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test $(id)"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test `id`"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test \\\"$X\\\""), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test > /etc/x"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test\\nrm x"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm test *"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("PATH=/x npm test"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm testing"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", RUN("npm"), false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":[\"bash\",\"-lc\",\"npm test -w a\"]}}", true},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":[\"bash\",\"-lc\",\"npm test; id\"]}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm\",\"args\":[\"test\",\"$HOME\"]}}", true},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm\",\"args\":\"test\"}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"other\",\"rawInput\":{\"command\":\"npm test\"}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}", "{\"rawInput\":{\"command\":\"npm test\"}}",
     false},
    /* the same command, somewhere else or with other variables; a shell that is another program */
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm test\",\"cwd\":\"/tmp/sub\",\"env\":{}}}", true},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm test\",\"cwd\":\"/usr\"}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm test\",\"workdir\":\"sub/../../usr\"}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":[\"npm\",\"test\"],\"directory\":7}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm test\",\"env\":{\"NODE_OPTIONS\":\"-r /x\"}}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":[\"/bin/sh\",\"-c\",\"npm test\"]}}", true},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":[\"/tmp/bash\",\"-c\",\"npm test\"]}}", false},
    {RUN("npm test"), "{\"scope\":\"project\",\"command\":[\"npm\",\"test\"]}",
     "{\"kind\":\"execute\",\"rawInput\":{\"command\":[\"su\",\"-c\",\"npm test\"]}}", false},
    /* one that runs others, only as it is */
    {RUN("python3.11 a.py"), "{\"scope\":\"project\",\"command\":[\"python3.11\",\"a.py\"]}", RUN("python3.11 a.py b"),
     false},
    {RUN("env npm test"), "{\"scope\":\"project\",\"command\":[\"env\",\"npm\",\"test\"]}", RUN("env npm test"), true},
    {RUN("env npm test"), "{\"scope\":\"project\",\"command\":[\"env\",\"npm\",\"test\"]}", RUN("env npm test x"), false},
    {RUN("/usr/bin/python3 a.py"), "{\"scope\":\"project\",\"command\":[\"/usr/bin/python3\",\"a.py\"]}",
     RUN("/usr/bin/python3 a.py b"), false},
    /* files beneath a folder */
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"./src/\"}", EDIT("/tmp/src/deep/b.c"), true},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}", EDIT("src/b.c"), true},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}", EDIT("/tmp/srcs/b.c"), false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}", EDIT("/tmp/src/../b.c"), false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}", EDIT("/etc/passwd"), false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}", "{\"kind\":\"edit\"}", false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}",
     "{\"kind\":\"edit\",\"locations\":[{\"path\":\"/tmp/src/a.c\"}],\"content\":[{\"type\":\"diff\",\"path\":\"/etc/x\"}]}",
     false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}",
     "{\"kind\":\"edit\",\"locations\":[{\"path\":\"/tmp/src/a.c\"}],\"rawInput\":{\"file_path\":\"/etc/x\"}}", false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\"src\"}",
     "{\"kind\":\"delete\",\"locations\":[{\"path\":\"/tmp/src/a.c\"}]}", false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\".\"}", EDIT("/tmp/else/b.c"), true},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\".\"}", EDIT("/tmp/.git/hooks/pre-commit"), false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\".\"}", EDIT("/tmp/sub/.Git/config"), false},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"project\",\"path\":\".\"}", EDIT(".weft/config.json"), false},
    /* the kind of tool */
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"session\"}", EDIT("/tmp/b.c"), true},
    {EDIT("/tmp/src/a.c"), "{\"scope\":\"session\"}", RUN("id"), false},
    {"{\"kind\":\"other\",\"title\":\"one thing\"}", "{\"scope\":\"session\"}",
     "{\"kind\":\"other\",\"title\":\"one thing\"}", true},
    {"{\"kind\":\"other\",\"title\":\"one thing\"}", "{\"scope\":\"session\"}", "{\"kind\":\"other\",\"title\":\"another\"}",
     false},
};

TEST(what_it_covers) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        engine_world w;
        task_outcome t;
        char why[WEFT_FORM_WHY];
        weft_run *run = begin(&w, play_store(), NULL, &t);
        CHECK_INT(asked(&w, run, rows[i].first)->state, WEFT_QUESTION_OPEN);
        CHECK_INT(answer(&w, "question-0000", "yes", rows[i].always, why), 0);
        CHECK_STR(newest(&w)->approval, "approval-0000");
        if (!CHECK(is_covered(&w, run, rows[i].later) == rows[i].covered))
            fprintf(stderr, "  %s\n  %s\n", rows[i].always, rows[i].later);
        play_end(run, true);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
        engine_end(&w);
    }
}

/* Nobody can allow more than the question at hand shows. */
TEST(what_cannot_be_given) {
    static const struct {
        const char *first, *option, *always;
    } bad[] = {
        {RUN("npm test"), "yes", "{}"},
        {RUN("npm test"), "yes", "{\"scope\":\"everywhere\"}"},
        {RUN("npm test"), "no", "{\"scope\":\"session\"}"},
        {RUN("npm test"), "", "{\"scope\":\"session\"}"},
        {RUN("npm test"), "yes", "{\"scope\":\"project\",\"command\":[]}"},
        {RUN("npm test"), "yes", "{\"scope\":\"project\",\"command\":\"npm\"}"},
        {RUN("npm test"), "yes", "{\"scope\":\"project\",\"command\":[1]}"},
        {RUN("npm test"), "yes", "{\"scope\":\"project\",\"command\":[\"rm\"]}"},
        {RUN("npm test"), "yes", "{\"scope\":\"project\",\"command\":[\"npm\",\"test\",\"x\"]}"},
        {RUN("npm test; id"), "yes", "{\"scope\":\"project\",\"command\":[\"npm\"]}"},
        {"{\"kind\":\"execute\",\"rawInput\":{\"command\":\"npm test\",\"cwd\":\"/usr\"}}", "yes",
         "{\"scope\":\"project\",\"command\":[\"npm\"]}"},
        {RUN("sudo id"), "yes", "{\"scope\":\"project\",\"command\":[\"sudo\"]}"},
        {RUN("npm test"), "yes", "{\"scope\":\"project\",\"path\":\"src\"}"},
        {EDIT("/tmp/src/a.c"), "yes", "{\"scope\":\"project\",\"path\":\"doc\"}"},
        {EDIT("/tmp/src/a.c"), "yes", "{\"scope\":\"project\",\"path\":\"../x\"}"},
        {EDIT("/tmp/src/a.c"), "yes", "{\"scope\":\"project\",\"path\":\"/etc\"}"},
        {EDIT("/etc/a.c"), "yes", "{\"scope\":\"project\",\"path\":\".\"}"},
        {EDIT("/tmp/src/a.c"), "yes", "{\"scope\":\"project\",\"path\":7}"},
        {"{\"title\":\"no kind\"}", "yes", "{\"scope\":\"session\"}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        engine_world w;
        task_outcome t;
        char why[WEFT_FORM_WHY];
        weft_run *run = begin(&w, play_store(), NULL, &t);
        asked(&w, run, bad[i].first);
        if (!CHECK_INT(answer(&w, "question-0000", bad[i].option, bad[i].always, why), -EDOM) || !CHECK(*why))
            fprintf(stderr, "  %s\n", bad[i].always);
        CHECK_INT(newest(&w)->state, WEFT_QUESTION_OPEN);
        engine_crash(&w);
        CHECK_INT(world_start(&w), 0);
        engine_end(&w);
    }
}

/* ---- whose, where and how long ---- */

static weft_run *run_task(engine_world *w, const weft_task_spec *spec, task_outcome *t) {
    CHECK_INT(submit_spec(w, spec, t), 0);
    ENGINE_UNTIL(w, play_of(t->id) != NULL);
    return play_of(t->id);
}

static void give(engine_world *w, weft_run *run, const char *always) {
    char why[WEFT_FORM_WHY];
    const weft_question *question = asked(w, run, EDIT("/tmp/a"));
    CHECK_INT(question->state, WEFT_QUESTION_OPEN);
    CHECK_INT(answer(w, question->id, "yes", always, why), 0);
}

static void finish_task(engine_world *w, const task_outcome *t) {
    play_end(play_of(t->id), true);
    ENGINE_UNTIL(w, state_of(w, t->id) == WEFT_TASK_COMPLETED);
}

TEST(it_is_the_same_agents_and_the_same_sessions) {
    engine_world w;
    task_outcome a, b, c, d;
    weft_run *run = begin(&w, play_store(), "one", &a);
    give(&w, run, "{\"scope\":\"session\"}");
    finish_task(&w, &a);
    CHECK(is_covered(&w, run_task(&w, &(weft_task_spec){.prompt = "x", .session = a.session}, &b), EDIT("/tmp/b")));
    CHECK(!is_covered(&w, run_task(&w, &(weft_task_spec){.prompt = "x", .agent = "one"}, &c), EDIT("/tmp/b")));
    CHECK(!is_covered(&w, run_task(&w, &(weft_task_spec){.prompt = "x", .agent = "two"}, &d), EDIT("/tmp/b")));
    finish_task(&w, &b);
    finish_task(&w, &c);
    finish_task(&w, &d);
    engine_end(&w);
}

static void on_revoked(void *ctx, int r) {
    CHECK_INT(r, 0);
    ++*(int *) ctx;
}

static void count_one(void *ctx, const char *id, int64_t time_ms, const weft_json *data) {
    (void) id, (void) time_ms, (void) data;
    ++*(int *) ctx;
}

static int count_all(const engine_world *w) {
    int count = 0;
    CHECK_INT(weft__approval_each(w->engine, count_one, &count), 0);
    return count;
}

static void stop_cleanly(engine_world *w) {
    int before = w->stopped;
    weft__engine_stop(w->engine, false, world_stopped, w);
    CHECK(engine_wait(w, &w->stopped, before + 1));
}

static void stand_over_starts(bool clean) {
    engine_world w;
    task_outcome a, b, c;
    int revoked = 0;
    weft_run *run = begin(&w, &weft__sqlite, "one", &a);
    give(&w, run, "{\"scope\":\"project\"}");
    finish_task(&w, &a);
    if (clean)
        stop_cleanly(&w);
    engine_restart(&w);
    CHECK_INT(count_all(&w), 1);
    CHECK(is_covered(&w, run_task(&w, &(weft_task_spec){.prompt = "x", .agent = "one"}, &b), EDIT("/tmp/b")));
    CHECK_INT(weft__approval_revoke(w.engine, "approval-0009", "bob", on_revoked, &revoked), -ENOENT);
    CHECK_INT(weft__approval_revoke(w.engine, "approval-0000", "bob", on_revoked, &revoked), 0);
    CHECK(engine_wait(&w, &revoked, 1));
    CHECK(!is_covered(&w, play_of(b.id), EDIT("/tmp/b")));
    finish_task(&w, &b);
    if (clean)
        stop_cleanly(&w);
    engine_restart(&w);
    CHECK_INT(count_all(&w), 0);
    CHECK(!is_covered(&w, run_task(&w, &(weft_task_spec){.prompt = "x", .agent = "one"}, &c), EDIT("/tmp/b")));
    finish_task(&w, &c);
    engine_end(&w);
}
TEST(over_kills) {
    stand_over_starts(false);
}
TEST(over_clean_stops) {
    stand_over_starts(true);
}

/* What an agent's configuration denies stays denied. */
TEST(a_configured_no_counts_more) {
    engine_world w;
    task_outcome a;
    weft_run *run = begin(&w, play_store(), "deny", &a);
    const weft_question *question = asked(&w, run, EDIT("/tmp/a"));
    CHECK_STR(question->option, "no");
    CHECK_STR(question->by, "configuration");
    finish_task(&w, &a);
    engine_end(&w);
}

TEST(there_are_only_so_many) {
    engine_world w;
    task_outcome a;
    char why[WEFT_FORM_WHY];
    weft_run *run = begin(&w, play_store(), "one", &a);
    for (int i = 0; i <= WEFT_APPROVALS; i++) {
        char call[200];
        snprintf(call, sizeof call, "{\"kind\":\"other\",\"title\":\"%d\"}", i);
        const weft_question *question = asked(&w, run, call);
        CHECK_INT(answer(&w, question->id, "yes", "{\"scope\":\"session\"}", why), i < WEFT_APPROVALS ? 0 : -EDOM);
    }
    CHECK_INT(count_all(&w), WEFT_APPROVALS);
    finish_task(&w, &a);
    engine_end(&w);
}

/* ---- a task's own permission ---- */

TEST(what_a_task_may_do) {
    static const struct {
        const char *call;
        weft_task_permission least; /* that allows it */
    } calls[] = {
        {"{\"kind\":\"read\"}", WEFT_TASK_MAY_READ},
        {"{\"kind\":\"read\",\"locations\":[{\"path\":\"/tmp/a\"}]}", WEFT_TASK_MAY_READ},
        {"{\"kind\":\"read\",\"locations\":[{\"path\":\"/etc/shadow\"}]}", WEFT_TASK_MAY_ALL},
        {"{\"kind\":\"search\"}", WEFT_TASK_MAY_READ},
        {EDIT("/tmp/a"), WEFT_TASK_MAY_EDIT},
        {EDIT("/etc/passwd"), WEFT_TASK_MAY_ALL},
        {EDIT("/tmp/.git/hooks/post-checkout"), WEFT_TASK_MAY_ALL},
        {EDIT("/tmp/.weft/config.json"), WEFT_TASK_MAY_ALL},
        {"{\"kind\":\"edit\"}", WEFT_TASK_MAY_ALL},
        {"{\"kind\":\"delete\",\"locations\":[{\"path\":\"/tmp/a\"}]}", WEFT_TASK_MAY_ALL},
        {RUN("id"), WEFT_TASK_MAY_ALL},
        {"{\"kind\":\"fetch\"}", WEFT_TASK_MAY_ALL},
        {"{}", WEFT_TASK_MAY_ALL},
    };
    for (int permission = WEFT_TASK_ASKS; permission <= WEFT_TASK_MAY_ALL; permission++) {
        engine_world w;
        task_outcome a;
        engine_begin(&w, &weft__sqlite);
        weft_run *run = run_task(
            &w, &(weft_task_spec){.prompt = "x", .agent = "allow", .permission = (weft_task_permission) permission}, &a);
        CHECK_INT(weft__task_find(w.engine, a.id)->permission, permission);
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            const weft_question *question = asked(&w, run, calls[i].call);
            bool allowed = question->state == WEFT_QUESTION_ANSWERED && strcmp(question->option, "yes") == 0;
            if (!CHECK(allowed == (permission >= (int) calls[i].least)))
                fprintf(stderr, "  %d %s\n", permission, calls[i].call);
        }
        finish_task(&w, &a);
        engine_restart(&w);
        CHECK_INT(weft__task_find(w.engine, a.id)->permission, permission);
        engine_end(&w);
    }
}

/* clang-format off */
TEST_MAIN(
    CASE(what_it_covers)
    CASE(what_cannot_be_given)
    CASE(it_is_the_same_agents_and_the_same_sessions)
    CASE(over_kills)
    CASE(over_clean_stops)
    CASE(a_configured_no_counts_more)
    CASE(there_are_only_so_many)
    CASE(what_a_task_may_do)
)
