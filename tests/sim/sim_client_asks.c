/* What clients ask for: submissions, answers, subscriptions, sessions, mutations, in any order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_client.h"

/* ---- sending ---- */

static request *ask(client *c, want what, const char *format, ...) WEFT_PRINTF(3, 4);
static request *ask(client *c, want what, const char *format, ...) {
    char line[1024];
    va_list args;
    int n = snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%llu,", (unsigned long long) ++c->next_id);
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t) n, format, args);
    va_end(args);
    sim_say("%-7s > %s}", c->name, line);
    n += snprintf(line + n, sizeof line - (size_t) n, "}\n");
    client_append(&c->out, &c->out_len, line, (size_t) n);
    request *made = &c->pending[c->pending_count++];
    *made = (request){.want = what, .id = c->next_id};
    return made;
}

static const char *agent_name(void) {
    static const char *const names[] = {"any", "any", "solo", "free", "odd"};
    if (sim_now_plan()->sessions && sim_chance(50))
        return "live";
    return names[sim_below(sim_chance(90) ? 4 : 5)];
}

static void submit(client *c) {
    char key[64] = "", meta[128] = "", session[64] = "";
    const truth_task *any = truth_tasks() ? truth_task_at(sim_below((uint32_t) truth_tasks())) : NULL;
    const char *agent = agent_name();
    if (*c->unsure && sim_chance(80))
        snprintf(key, sizeof key, "%s", c->unsure);
    else if (sim_chance(40))
        snprintf(key, sizeof key, "k%u", c->keys++);
    if (*key)
        snprintf(meta, sizeof meta, ",\"_meta\":{\"weft/idempotencyKey\":\"%s\"}", key);
    else if (any && sim_chance(30)) {
        snprintf(session, sizeof session, ",\"sessionId\":\"%s\"", any->session);
        agent = any->agent;
    }
    unsigned priority = sim_below(3), retries = sim_chance(40) ? 2 : 0, timeout = sim_chance(20) ? 300 : 0;
    request *made =
        ask(c, WANT_SUBMIT,
            "\"method\":\"task.submit\",\"params\":{\"prompt\":\"%s%s\",\"agent\":\"%s\",\"priority\":%u,\"retries\":%u,"
            "\"timeoutMs\":%u%s%s}",
            c->name, key, agent, priority, retries, timeout, session, meta);
    snprintf(made->subject, sizeof made->subject, "%s", key);
    made->repeats = *key && strcmp(key, c->unsure) == 0;
    c->unsure[0] = '\0';
}

static void cancel(client *c) {
    if (!truth_tasks())
        return;
    /* Mostly one of the last: the others have ended. */
    size_t back = sim_below(sim_chance(80) ? 4 : (uint32_t) truth_tasks());
    const truth_task *task = truth_task_at(truth_tasks() - 1 - back % truth_tasks());
    /* What nobody was told of yet nobody can ask for. */
    if (!hub_task_state(task->id))
        return;
    request *made = ask(c, WANT_CANCEL, "\"method\":\"task.cancel\",\"params\":{\"taskId\":\"%s\"}", task->id);
    snprintf(made->subject, sizeof made->subject, "%s", task->id);
}

static void answer(client *c) {
    const char *id = hub_open_question(sim_below(3));
    if (!id)
        return;
    const char *option = sim_chance(50) ? "yes" : "no";
    request *made = ask(c, WANT_ANSWER,
                        "\"method\":\"question.answer\",\"params\":{\"questionId\":\"%s\",\"option\":\"%s\"}", id, option);
    snprintf(made->subject, sizeof made->subject, "%s", id);
    snprintf(made->option, sizeof made->option, "%s", option);
}

static void choose_filter(subscription *sub) {
    static const char *const prefixes[] = {"", "", "task.", "question.", "session."};
    *sub = (subscription){0};
    snprintf(sub->prefix, sizeof sub->prefix, "%s", prefixes[sim_below(5)]);
    const truth_task *task = truth_tasks() && sim_chance(40) ? truth_task_at(sim_below((uint32_t) truth_tasks())) : NULL;
    if (task && sim_chance(60))
        snprintf(sub->task, sizeof sub->task, "%s", task->id);
    else if (task)
        snprintf(sub->session, sizeof sub->session, "%s", task->session);
}

static const char *const names[SUBSCRIPTIONS] = {NULL, "second", "third"};

/* A stream has no filter by task or session. */
static request *ask_stream(client *c, const subscription *next, bool live) {
    char position[128] = "", types[64] = "";
    if (!live)
        snprintf(position, sizeof position, ",\"lastSeq\":%llu%s%s%s", (unsigned long long) next->last,
                 next->last ? ",\"journal\":\"" : "", next->last ? next->epoch : "", next->last ? "\"" : "");
    if (*next->prefix)
        snprintf(types, sizeof types, ",\"params\":{\"types\":[\"%s\"]}", next->prefix);
    return ask(c, WANT_SUBSCRIBE, "\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"%s\",\"name\":\"events\"%s%s}",
               names[STREAM], types, position);
}

static void send_subscribe(client *c, size_t which, const subscription *next, bool live) {
    char position[128] = "", types[64] = "", subject[64] = "\"taskId\":null", name[32] = "";
    if (names[which])
        snprintf(name, sizeof name, ",\"id\":\"%s\"", names[which]);
    if (!live && next->last)
        snprintf(position, sizeof position, ",\"after\":%llu,\"epoch\":\"%s\"", (unsigned long long) next->last,
                 next->epoch);
    else if (!live)
        snprintf(position, sizeof position, ",\"after\":0");
    if (*next->prefix)
        snprintf(types, sizeof types, ",\"types\":[\"%s\"]", next->prefix);
    if (*next->task)
        snprintf(subject, sizeof subject, "\"taskId\":\"%s\"", next->task);
    else if (*next->session)
        snprintf(subject, sizeof subject, "\"sessionId\":\"%s\"", next->session);
    request *made = which == STREAM ? ask_stream(c, next, live)
                                    : ask(c, WANT_SUBSCRIBE, "\"method\":\"event.subscribe\",\"params\":{%s%s%s%s}", subject,
                                          position, types, name);
    made->which = which;
    made->next = *next;
    made->next.oldest = !live && !next->last && which != STREAM;
    made->live = live;
    c->follows[which].wanted = true;
}

/* Go on with what was heard, or begin another. */
static void subscribe(client *c) {
    size_t which = sim_below(SUBSCRIPTIONS);
    const followed *follows = &c->follows[which];
    subscription next = follows->sub;
    bool goes_on = (next.on || follows->wanted) && next.last && sim_chance(70);
    if (!goes_on)
        choose_filter(&next);
    if (which == STREAM)
        next.task[0] = next.session[0] = '\0';
    send_subscribe(c, which, &next, !goes_on && sim_chance(50));
}

static void unsubscribe(client *c) {
    size_t which = sim_below(SUBSCRIPTIONS);
    c->follows[which].wanted = false;
    request *made =
        which == STREAM
            ? ask(c, WANT_UNSUBSCRIBE, "\"method\":\"tinyvex/unsubscribe\",\"params\":{\"subId\":\"%s\"}", names[which])
        : names[which]
            ? ask(c, WANT_UNSUBSCRIBE, "\"method\":\"event.unsubscribe\",\"params\":{\"id\":\"%s\"}", names[which])
            : ask(c, WANT_UNSUBSCRIBE, "\"method\":\"event.unsubscribe\"");
    made->which = which;
}

const char *const client_views[VIEWS] = {"view", "thread"};

/* With the position of the value it has, sometimes without the journal that came with it. */
void client_send_view(client *c, size_t which) {
    view *of = &c->views[which];
    char position[256] = "", params[80] = "";
    if (of->value && (c->fair || sim_chance(85)))
        snprintf(position, sizeof position, ",\"lastSeq\":%llu,\"journal\":\"%s\"", (unsigned long long) of->seq,
                 of->journal);
    if (which == THREAD)
        snprintf(params, sizeof params, ",\"params\":{\"threadId\":\"%s\"}", of->session);
    ask(c, WANT_VIEW, "\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"%s\",\"name\":\"%s\"%s%s}",
        client_views[which], which == THREAD ? "messagesByThread" : "tasks", params, position)
        ->which = which;
    of->wanted = true;
    of->on = false;
}

/* What was said in a session: the same as before, or one of the last. */
static void send_thread(client *c) {
    const truth_task *task =
        truth_tasks() ? truth_task_at(truth_tasks() - 1 - sim_below((uint32_t) truth_tasks()) / 2) : NULL;
    view *of = &c->views[THREAD];
    if (!*of->session && task)
        snprintf(of->session, sizeof of->session, "%s", task->session);
    if (*of->session)
        client_send_view(c, THREAD);
}

/* From the last position; where that was refused, from now on, or again from the oldest that is kept. */
void client_resume(client *c, size_t which) {
    followed *follows = &c->follows[which];
    bool live = follows->refused && !follows->sub.last && (c->fair || sim_chance(50));
    follows->refused = false;
    send_subscribe(c, which, &follows->sub, live);
}

void client_connect(client *c) {
    c->aiwg = sim_chance(60);
    c->conn = hub_connect(c->name, c->aiwg ? "aiwg" : "weft", c);
    c->in_len = c->out_len = 0;
    if (!c->conn)
        return;
    c->words = hub_told();
    sim_say("%-7s connects as %s at %llu", c->name, c->aiwg ? "aiwg" : "weft", (unsigned long long) c->words);
    for (size_t i = 0; i < SUBSCRIPTIONS; i++)
        if (c->follows[i].wanted && sim_chance(80))
            client_resume(c, i);
    for (size_t i = 0; i < VIEWS; i++)
        if (c->views[i].wanted && sim_chance(80))
            client_send_view(c, i);
}

/* ---- sessions ---- */

static const char *any_mode(void) {
    static const char *const modes[] = {"ask", "plan", "allow"};
    return modes[sim_below(3)];
}

static void create_session(client *c) {
    char mode[32] = "";
    if (sim_chance(40))
        snprintf(mode, sizeof mode, ",\"mode\":\"%s\"", any_mode());
    ask(c, WANT_CREATE, "\"method\":\"session.create\",\"params\":{\"agent\":\"live\",\"title\":\"%s\"%s}", c->name, mode);
}

static request *ask_session(client *c, want what, const char *verb, const char *id, const char *more) {
    request *made = ask(c, what, "\"method\":\"session.%s\",\"params\":{\"sessionId\":\"%s\"%s}", verb, id, more);
    snprintf(made->subject, sizeof made->subject, "%s", id);
    made->busy = truth_unfinished(id) > 0;
    return made;
}

/* Mostly one of the last. */
static void use_session(client *c) {
    size_t count = truth_sessions(), back = count ? sim_below(sim_chance(80) ? 4 : (uint32_t) count) : 0;
    const truth_session *session = count ? truth_session_at(count - 1 - back % count) : NULL;
    uint32_t what = sim_below(100);
    char more[96];
    if (!session || what < 15) {
        create_session(c);
        return;
    }
    if (!hub_session_mode(session->id))
        return;
    if (what < 50) {
        snprintf(more, sizeof more, ",\"prompt\":\"%s\",\"retries\":%u", c->name, sim_chance(40) ? 2 : 0);
        ask_session(c, WANT_SUBMIT, "prompt", session->id, more)->subject[0] = '\0';
    } else if (what < 70) {
        const char *mode = any_mode();
        snprintf(more, sizeof more, ",\"name\":\"mode\",\"value\":\"%s\"", mode);
        ask_session(c, WANT_SET, "set", session->id, more);
    } else if (what < 80)
        ask_session(c, WANT_CLOSE, "close", session->id, "");
    else if (what < 86)
        ask_session(c, WANT_DELETE, "delete", session->id, "");
    else if (what < 93)
        ask_session(c, WANT_SESSION, "resume", session->id, "");
    else
        ask_session(c, WANT_SESSION, "open", session->id, "");
}

/* ---- mutations ---- */

/* What one of them is follows from its number, so that it can be repeated at any time: the last ones are, now and then. */
static void change(client *c) {
    unsigned number =
        c->changes && sim_chance(40) ? c->changes - 1 - sim_below(c->changes < 4 ? c->changes : 4) : c->changes++;
    char value[32] = "", id[16];
    bool put = number % 4 != 3;
    snprintf(id, sizeof id, "m%u", number);
    if (put)
        snprintf(value, sizeof value, ",\"value\":%u", number);
    request *made = ask(c, WANT_CHANGE,
                        "\"method\":\"tinyvex/mutation\",\"params\":{\"requestId\":\"%s\",\"name\":\"doc.%s\",\"args\":{"
                        "\"collection\":\"c\",\"key\":\"k%u\"%s}}",
                        id, put ? "put" : "delete", number % 3, value);
    uint64_t version;
    snprintf(made->subject, sizeof made->subject, "%s", id);
    made->repeats = truth_request(c->name, id, &version);
}

void client_act(client *c) {
    if (sim_now_plan()->sessions && c->conn && c->pending_count < MAX_PENDING && sim_chance(40)) {
        use_session(c);
        return;
    }
    uint32_t what = sim_below(100);
    if (!c->conn)
        client_connect(c);
    else if (c->pending_count == MAX_PENDING)
        return;
    else if (what < 8)
        change(c);
    else if (what < 40)
        submit(c);
    else if (what < 55)
        cancel(c);
    else if (what < 75)
        answer(c);
    else if (what < 89)
        subscribe(c);
    else if (what < 92 && sim_now_plan()->threads && sim_chance(60))
        send_thread(c);
    else if (what < 92)
        client_send_view(c, TASKS);
    else if (what < 95)
        unsubscribe(c);
    else
        ask(c, WANT_LIST, "\"method\":\"question.list\"");
}
