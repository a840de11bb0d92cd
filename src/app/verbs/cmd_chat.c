/* weft chat: a conversation. Each message is a task in one session, so that the agent remembers what was said before, and
 * everything that holds for tasks holds here. */
#include <errno.h>
#include <string.h>

#include "chat_history.h"
#include "failure.h"
#include "hub_call.h"
#include "task.h"
#include "task_follow.h"
#include "terminal_input.h"

typedef struct settings {
    const char *url, *agent, *session;
    int64_t timeout_ms;
    bool go_on;
} settings;

/* Messages that were typed while an answer came. */
#define MOST_WAITING 16

typedef struct waiting_message {
    char *text; /* until the hub has it */
    char task[WEFT_TASK_ID];
    bool sent;
} waiting_message;

typedef struct chatting {
    weft_app *app;
    weft_task_follow follow;
    weft_terminal_input input;
    char *message; /* the only one; NULL: as they are typed */
    char session[256];
    waiting_message waiting[MOST_WAITING];
    size_t waiting_count;
    weft_exit worst;
    bool talks;  /* a person at a terminal */
    bool edits;  /* whose terminal can move its cursor */
    bool busy;   /* a message was sent, and its answer has not ended */
    bool ending; /* there will be no more messages */
} chatting;

static void on_chat_line(void *ctx, const char *line);

static const char *session_of_chat(const chatting *self) {
    const settings *how = self->app->settings;
    return *self->session ? self->session : how->session;
}

/* chat.send is for those who have nothing else to say: it takes no agent and no session. */
static void send_message(chatting *self, const char *message) {
    const settings *how = self->app->settings;
    const char *session = session_of_chat(self);
    char key[WEFT_KEY_LEN];
    weft__task_follow_key(key);
    weft_val meta = WEFT_OBJ({"weft/idempotencyKey", weft_str(key)});
    self->busy = true;
    self->follow.terminal.idle = false;
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

/* ---- messages that wait ---- */

static waiting_message take_waiting(chatting *self) {
    waiting_message first = self->waiting[0];
    memmove(self->waiting, self->waiting + 1, --self->waiting_count * sizeof *self->waiting);
    return first;
}

static void on_prompt_queued(weft_peer *peer, int r, const weft_answer *answer, void *ctx);
static void next_message(chatting *self);

/* Their session is known as soon as the first task is queued; until then they stay here. */
static void send_waiting(chatting *self) {
    for (size_t i = 0; i < self->waiting_count && *self->follow.session; i++) {
        waiting_message *message = &self->waiting[i];
        if (message->sent)
            continue;
        message->sent = true;
        weft__event_follow_call(&self->follow.events, "session.prompt",
                                WEFT_OBJ({"sessionId", weft_str(self->follow.session)}, {"prompt", weft_str(message->text)}),
                                on_prompt_queued);
    }
}

/* Answers come in the order of the calls: this is about the first that was sent and has no task. */
static void on_prompt_queued(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    chatting *self = ((weft_task_follow *) ctx)->opts->ctx;
    size_t i = 0;
    (void) peer;
    while (i < self->waiting_count && (!self->waiting[i].sent || *self->waiting[i].task))
        i++;
    if (i == self->waiting_count || self->follow.events.over)
        return;
    waiting_message *message = &self->waiting[i];
    const char *task = r < 0 || answer->error ? NULL : weft_get_str(answer->result, "taskId", NULL);
    if (task) {
        snprintf(message->task, sizeof message->task, "%s", task);
        weft__terminal_line(&self->follow.terminal, WEFT_INK_DIM, "  queued as %s: %zu wait%s", task, self->waiting_count,
                            self->waiting_count == 1 ? "s" : "");
    } else {
        weft__terminal_line(&self->follow.terminal, WEFT_INK_WARN, "  not sent: %s",
                            r < 0           ? weft_strerror(r)
                            : answer->error ? answer->error->message
                                            : "the answer names no task");
        weft__free(NULL, message->text);
        memmove(message, message + 1, (--self->waiting_count - i) * sizeof *message);
    }
    if (!self->busy)
        next_message(self);
}

static void keep_waiting(chatting *self, const char *text) {
    char *copy = self->waiting_count < MOST_WAITING ? weft__strndup(NULL, text, strlen(text)) : NULL;
    if (!copy) {
        weft__terminal_line(&self->follow.terminal, WEFT_INK_WARN, "  not sent: %d messages wait already", MOST_WAITING);
        return;
    }
    self->waiting[self->waiting_count++] = (waiting_message){.text = copy};
    send_waiting(self);
}

/* ---- the next message ---- */

/* One that waits is a task already, or becomes one now. false: it is on its way to the hub. */
static bool follow_waiting(chatting *self) {
    if (self->waiting[0].sent && !*self->waiting[0].task)
        return false;
    waiting_message first = take_waiting(self);
    if (first.sent) {
        self->busy = true;
        self->follow.terminal.idle = false;
        weft__task_follow_watch(&self->follow, first.task);
    } else {
        send_message(self, first.text);
    }
    weft__free(NULL, first.text);
    return true;
}

static void next_message(chatting *self) {
    if (self->waiting_count) {
        follow_waiting(self);
        return;
    }
    if (self->ending) {
        weft__task_follow_end(&self->follow, self->worst);
        return;
    }
    if (self->edits) {
        self->follow.terminal.idle = true;
        weft__terminal_input_resume(&self->input);
        weft__terminal_edit(&self->follow.terminal);
        return;
    }
    if (self->talks) {
        weft__terminal_clear(&self->follow.terminal);
        weft__ink(&self->app->err, WEFT_INK_BOLD);
        fputs("> ", self->app->err.file);
        weft__plain(&self->app->err);
        fflush(self->app->err.file);
    }
    weft__task_follow_want(&self->follow, on_chat_line, self);
}

static void on_chat_line(void *ctx, const char *line) {
    chatting *self = ctx;
    if (line && !line[strspn(line, " \t")]) {
        next_message(self);
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

/* From the editor, at any time. */
static void on_chat_message(void *ctx, const char *message) {
    chatting *self = ctx;
    if (!message) {
        self->ending = true;
        if (!self->busy && !self->waiting_count)
            weft__task_follow_end(&self->follow, self->worst);
        else
            weft__terminal_line(&self->follow.terminal, NULL, "  ends after this answer; Ctrl-C ends the answer");
        return;
    }
    if (!message[strspn(message, " \t\n")])
        return;
    weft__chat_history_add(message);
    if (self->busy || self->waiting_count)
        keep_waiting(self, message);
    else
        send_message(self, message);
}

/* ---- going on with the last conversation ---- */

static void begin_talking(chatting *self) {
    if (self->message) {
        send_message(self, self->message);
        return;
    }
    if (self->edits)
        fputs("Type a message and Enter (Alt-Enter: a new line); Ctrl-D ends the conversation, Ctrl-C an answer.\n",
              self->app->err.file);
    else if (self->talks)
        fputs("Type a message and Enter; Ctrl-D ends the conversation, Ctrl-C an answer.\n", self->app->err.file);
    next_message(self);
}

/* The newest that is open, and of this agent if one was named. */
static void on_sessions(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    chatting *self = ((weft_task_follow *) ctx)->opts->ctx;
    const settings *how = self->app->settings;
    (void) peer;
    if (r < 0 || self->follow.events.over)
        return;
    weft_json sessions = answer->error ? (weft_json){0} : weft_get(answer->result, "sessions");
    for (weft_iter it = weft_iterate(&sessions); weft_next(&it) && !*self->session;)
        if (!weft_get_bool(&it.value, "closed", false) &&
            (!how->agent || strcmp(how->agent, weft_get_str(&it.value, "agent", "")) == 0)) {
            snprintf(self->session, sizeof self->session, "%s", weft_get_str(&it.value, "id", ""));
            weft__terminal_line(&self->follow.terminal, NULL, "continuing %s: %s", self->session,
                                weft_get_str(&it.value, "title", weft_get_str(&it.value, "agent", "")));
        }
    if (answer->error)
        weft__task_follow_end(&self->follow, weft__hub_call_refused(self->app, "session.list", answer->error));
    else if (*self->session)
        begin_talking(self);
    else
        weft__task_follow_end(&self->follow, weft__fail(self->app, WEFT_NOT_FOUND, "\"weft chat\" begins one.",
                                                        "there is no conversation to continue"));
}

static int open_chat_input(chatting *self) {
    if (!self->edits || self->input.loop)
        return 0;
    weft__chat_history_load(&self->input.editor);
    return weft__terminal_input_open(&self->input, self->follow.events.loop, &self->follow.terminal, on_chat_message, self);
}

static void on_chat_begin(weft_task_follow *follow) {
    chatting *self = follow->opts->ctx;
    const settings *how = self->app->settings;
    if (open_chat_input(self) < 0)
        self->edits = false;
    if (how->go_on)
        weft__event_follow_call(&follow->events, "session.list", WEFT_OBJ({"limit", weft_int(100)}), on_sessions);
    else
        begin_talking(self);
}

/* ---- what the hub says ---- */

/* One answer that failed does not end a conversation, but a script should know. */
static void on_chat_done(weft_task_follow *follow, weft_exit how) {
    chatting *self = follow->opts->ctx;
    if (*follow->session)
        snprintf(self->session, sizeof self->session, "%s", follow->session);
    self->busy = false;
    if (self->message) {
        weft__task_follow_end(follow, how);
        return;
    }
    if (how && !self->talks)
        self->worst = how;
    weft__terminal_break(&follow->terminal);
    next_message(self);
}

/* A person may say it again in a moment, or say something else; but no agent or session of that name will be there then. */
static void on_refused(weft_task_follow *follow, weft_exit how) {
    chatting *self = follow->opts->ctx;
    self->busy = false;
    if (self->talks && (how == WEFT_BUSY || *self->session))
        next_message(self);
    else
        weft__task_follow_end(follow, how);
}

static void on_idle_signal(weft_task_follow *follow) {
    chatting *self = follow->opts->ctx;
    if (self->edits && !weft__line_editor_empty(&self->input.editor)) {
        weft__line_editor_drop(&self->input.editor);
        weft__terminal_edit(&follow->terminal);
        return;
    }
    weft__terminal_clear(&follow->terminal);
    if (self->talks)
        fputc('\n', self->app->err.file);
    weft__task_follow_end(follow, self->talks ? WEFT_DONE : WEFT_INTERRUPTED);
}

/* A question is answered by a line, which the terminal itself edits; what was typed before comes back afterwards. */
static void on_asking(weft_task_follow *follow, bool asks) {
    chatting *self = follow->opts->ctx;
    if (asks)
        weft__terminal_input_suspend(&self->input);
    else if (self->edits && !follow->events.over)
        weft__terminal_input_resume(&self->input);
}

static void on_chat_close(weft_task_follow *follow) {
    chatting *self = follow->opts->ctx;
    weft__terminal_input_close(&self->input);
}

static weft_exit hold_chat(chatting *self) {
    const settings *how = self->app->settings;
    weft_task_follow_opts opts = {.url = how->url,
                                  .ctx = self,
                                  .on_begin = on_chat_begin,
                                  .on_done = on_chat_done,
                                  .on_refused = on_refused,
                                  .on_asking = on_asking,
                                  .on_idle_signal = on_idle_signal,
                                  .on_close = on_chat_close};
    if (how->go_on && how->session)
        return weft__misused(self->app, "--continue continues the last conversation, --session another; not both");
    if (self->app->arg_count) {
        weft_exit status = weft__prompt_read(self->app, &self->message);
        if (status)
            return status;
    }
    self->talks = !self->message && weft__stdin_is_person();
    self->edits = self->talks && !self->app->common.json && weft__terminal_can_edit();
    weft_exit status = weft__task_follow_run(&self->follow, self->app, &opts);
    if (status == WEFT_DONE && self->talks && *self->session)
        fprintf(self->app->err.file, "  Continue it later: weft chat --session %s\n", self->session);
    return status;
}

static weft_exit run_chat(weft_app *app) {
    chatting *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    self->app = app;
    self->input.fd = -1;
    weft_exit status = hold_chat(self);
    while (self->waiting_count)
        weft__free(NULL, self->waiting[--self->waiting_count].text);
    weft__line_editor_done(&self->input.editor);
    weft__free(NULL, self->message);
    weft__free(NULL, self);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, agent, text, "agent", 'a', "NAME", "the agent to talk with (\"weft agents\" lists them)"),
    WEFT_OPTION(settings, session, text, "session", 's', "ID", "continue this session"),
    WEFT_OPTION(settings, go_on, flag, "continue", 'c', NULL, "continue the last conversation"),
    WEFT_OPTION(settings, timeout_ms, time, "timeout", 't', "TIME", "how long one answer may take: 90s, 10m"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft chat",
    "a conversation with the default agent, until Ctrl-D",
    "weft chat --continue",
    "continue the last one; \"weft session list\" shows all",
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
    .about = "At a terminal: arrow keys and those of Emacs edit the message, Up and Ctrl-R find earlier ones, Alt-Enter "
             "begins a\n"
             "new line, and what you paste is one message. What you send while an answer comes waits for it.\n"
             "Questions of the agent are put to you in between. With --json every answer is a task, one per line.\n"
             "exit status: as that of \"weft task submit --wait\"; a conversation at a terminal ends with 0\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_chat,
};
