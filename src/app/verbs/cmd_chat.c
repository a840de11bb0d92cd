/* weft chat: a conversation. Each message is a task in one session, so that the agent remembers what was said before, and
 * everything that holds for tasks holds here. */
#include <errno.h>
#include <string.h>

#include "failure.h"
#include "task.h"
#include "task_follow.h"

typedef struct settings {
    const char *url, *agent, *session;
    int64_t timeout_ms;
} settings;

typedef struct chatting {
    weft_app *app;
    weft_task_follow follow;
    char *message; /* the only one; NULL: as they are typed */
    char session[256];
    weft_exit worst;
    bool talks; /* a person at a terminal */
} chatting;

static void on_line(void *ctx, const char *line);

static void next(chatting *self) {
    if (self->talks) {
        weft__terminal_clear(&self->follow.terminal);
        weft__ink(&self->app->err, WEFT_INK_BOLD);
        fputs("> ", self->app->err.file);
        weft__plain(&self->app->err);
        fflush(self->app->err.file);
    }
    weft__task_follow_want(&self->follow, on_line, self);
}

/* chat.send is for those who have nothing else to say: it takes no agent and no session. */
static void send_message(chatting *self, const char *message) {
    const settings *how = self->app->settings;
    const char *session = *self->session ? self->session : how->session;
    char key[WEFT_KEY_LEN];
    weft__task_follow_key(key);
    weft_val meta = WEFT_OBJ({"weft/idempotencyKey", weft_str(key)});
    if (self->message && !how->agent && !session && !how->timeout_ms)
        weft__task_follow_submit(&self->follow, "chat.send", WEFT_OBJ({"message", weft_str(message)}, {"_meta", meta}));
    else
        weft__task_follow_submit(&self->follow, "task.submit",
                                 WEFT_OBJ({"prompt", weft_str(message)},
                                          {"agent", how->agent && !session ? weft_str(how->agent) : weft_none()},
                                          {"sessionId", weft_str_or_none(session)},
                                          {"timeoutMs", how->timeout_ms ? weft_int(how->timeout_ms) : weft_none()},
                                          {"metadata", WEFT_OBJ({"source", weft_str("chat")})}, {"_meta", meta}));
}

static void on_line(void *ctx, const char *line) {
    chatting *self = ctx;
    if (line && !line[strspn(line, " \t")]) {
        next(self);
        return;
    }
    if (line) {
        send_message(self, line);
        return;
    }
    if (self->talks)
        fputc('\n', self->app->err.file);
    weft__task_follow_end(&self->follow, self->worst);
}

static void on_begin(weft_task_follow *follow) {
    chatting *self = follow->opts->ctx;
    if (self->message) {
        send_message(self, self->message);
        return;
    }
    if (self->talks)
        fputs("Type a message and Enter; Ctrl-D ends the conversation, Ctrl-C an answer.\n", self->app->err.file);
    next(self);
}

/* One answer that failed does not end a conversation, but a script should know. */
static void on_done(weft_task_follow *follow, weft_exit how) {
    chatting *self = follow->opts->ctx;
    snprintf(self->session, sizeof self->session, "%s", follow->session);
    if (self->message) {
        weft__task_follow_end(follow, how);
        return;
    }
    if (how && !self->talks)
        self->worst = how;
    weft__terminal_break(&follow->terminal);
    next(self);
}

/* A person may say it again in a moment, or say something else; but no agent or session of that name will be there then. */
static void on_refused(weft_task_follow *follow, weft_exit how) {
    chatting *self = follow->opts->ctx;
    if (self->talks && (how == WEFT_BUSY || *self->session))
        next(self);
    else
        weft__task_follow_end(follow, how);
}

static void on_idle_signal(weft_task_follow *follow) {
    chatting *self = follow->opts->ctx;
    if (self->talks)
        fputc('\n', self->app->err.file);
    weft__task_follow_end(follow, self->talks ? WEFT_DONE : WEFT_INTERRUPTED);
}

static weft_exit chat(chatting *self) {
    const settings *how = self->app->settings;
    weft_task_follow_opts opts = {.url = how->url,
                                  .ctx = self,
                                  .on_begin = on_begin,
                                  .on_done = on_done,
                                  .on_refused = on_refused,
                                  .on_idle_signal = on_idle_signal};
    if (self->app->arg_count) {
        weft_exit status = weft__prompt_read(self->app, &self->message);
        if (status)
            return status;
    }
    self->talks = !self->message && weft__stdin_is_person();
    weft_exit status = weft__task_follow_run(&self->follow, self->app, &opts);
    if (status == WEFT_DONE && self->talks && *self->session)
        fprintf(self->app->err.file, "  Go on with it later: weft chat --session %s\n", self->session);
    return status;
}

static weft_exit run(weft_app *app) {
    chatting *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    self->app = app;
    weft_exit status = chat(self);
    weft__free(NULL, self->message);
    weft__free(NULL, self);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, agent, text, "agent", 'a', "NAME", "with this agent (see \"weft agents\")"),
    WEFT_OPTION(settings, session, text, "session", 's', "ID", "go on with this conversation"),
    WEFT_OPTION(settings, timeout_ms, time, "timeout", 't', "TIME", "how long one answer may take: 90s, 10m"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft chat",
    "a conversation with the default agent, until Ctrl-D",
    "weft chat 'what does main.c do?'",
    "one message, one answer (- for standard input, @FILE for a file)",
    "weft chat --agent claude < questions.txt",
    "one message per line, in one conversation",
    NULL,
};

const weft_verb weft__chat_verb = {
    .name = "chat",
    .help = "talk with an agent",
    .usage = "[MESSAGE...]",
    .examples = examples,
    .about = "Questions of the agent are put to you in between. With --json every answer is a task, one per line.\n"
             "exit status: as that of \"weft task submit --wait\"; a conversation at a terminal ends with 0\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run,
};
