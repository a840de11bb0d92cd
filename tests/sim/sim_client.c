/* Clients: each has a connection or none, speaks JSON-RPC in bytes that may arrive in any pieces, and checks what it is told
 * against the disk. It outlives its connections: after one was lost it comes back and resumes from its last position. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/json.h>

#include "sim.h"

#define MAX_CLIENTS 6
#define MAX_PENDING 12
#define SUBSCRIPTIONS 3        /* side by side: the one without a name, one with, and the stream "events" of tinyvex */
#define STREAM 2               /* which of them that is */
enum { TASKS, THREAD, VIEWS }; /* the states: the tasks, and what was said in a session */
#define MAX_PIECE 400          /* bytes that move at a time, mostly */

typedef enum want {
    WANT_SUBMIT,
    WANT_CANCEL,
    WANT_ANSWER,
    WANT_SUBSCRIBE,
    WANT_UNSUBSCRIBE,
    WANT_VIEW,
    WANT_LIST,
    WANT_CHANGE,
    WANT_CREATE,
    WANT_SET,
    WANT_CLOSE,
    WANT_DELETE,
    WANT_SESSION, /* something else of a session */
} want;

/* What a subscription lets through, and where it stands. */
typedef struct subscription {
    bool on;
    char prefix[16], task[SIM_NAME], session[SIM_NAME]; /* "": any */
    bool oldest;                                        /* it began with everything that was kept */
    uint64_t last;                                      /* the event heard last */
    uint64_t floor;                                     /* nothing up to this one must be heard */
    char epoch[WEFT_EPOCH + 1];
} subscription;

/* One of a client's subscriptions, over its connections. */
typedef struct followed {
    subscription sub;
    bool wanted;
    bool refused; /* it could not resume */
} followed;

/* A stream of tinyvex that is a state: the value that the client has, over its connections. */
typedef struct view {
    bool wanted, on;
    char *value; /* NULL: none yet */
    uint64_t seq;
    char journal[128];
    char session[SIM_NAME]; /* of messagesByThread */
} view;

/* A value that comes in pieces, of one stream at a time. */
typedef struct pieces {
    char sub[16], transition[24];
    uint64_t seq;
    int64_t part, total;
    char *text; /* NULL: none comes */
    size_t len;
} pieces;

typedef struct request {
    want want;
    uint64_t id;
    char subject[64], option[8]; /* task or question; key of a submission */
    size_t which;                /* of the subscriptions */
    subscription next;
    bool live;
    bool repeats; /* a submission that may have arrived before */
    bool busy;    /* the session had tasks when this was asked */
} request;

typedef struct client {
    char name[SIM_NAME];
    hub_conn *conn;
    bool aiwg, slow;
    bool fair;      /* it is to come to rest */
    char *out, *in; /* not yet sent; the beginning of a line */
    size_t out_len, in_len;
    request pending[MAX_PENDING];
    size_t pending_count;
    uint64_t next_id;
    unsigned keys;
    unsigned changes; /* mutations that it has made up */
    char unsure[64];  /* the key of a submission of which nothing was heard; "": none */
    followed follows[SUBSCRIPTIONS];
    view views[VIEWS];
    pieces pieces;
    uint64_t doubtful; /* the last it was told was perhaps not this event, which is trimmed, but a later one like it */
    uint64_t words;    /* of its dialect: all up to this gseq were told, or were before its time */
} client;

static struct {
    client list[MAX_CLIENTS];
    size_t count;
} clients;

/* ---- sending ---- */

static void append_bytes(char **buffer, size_t *len, const char *data, size_t more) {
    *buffer = realloc(*buffer, *len + more + 1);
    if (!*buffer)
        abort();
    if (more)
        memcpy(*buffer + *len, data, more);
    *len += more;
    (*buffer)[*len] = '\0';
}

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
    append_bytes(&c->out, &c->out_len, line, (size_t) n);
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

static const char *const view_names[VIEWS] = {"view", "thread"};

/* With the position of the value it has, sometimes without the journal that came with it. */
static void send_view(client *c, size_t which) {
    view *of = &c->views[which];
    char position[256] = "", params[80] = "";
    if (of->value && (c->fair || sim_chance(85)))
        snprintf(position, sizeof position, ",\"lastSeq\":%llu,\"journal\":\"%s\"", (unsigned long long) of->seq,
                 of->journal);
    if (which == THREAD)
        snprintf(params, sizeof params, ",\"params\":{\"threadId\":\"%s\"}", of->session);
    ask(c, WANT_VIEW, "\"method\":\"tinyvex/subscribe\",\"params\":{\"subId\":\"%s\",\"name\":\"%s\"%s%s}",
        view_names[which], which == THREAD ? "messagesByThread" : "tasks", params, position)
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
        send_view(c, THREAD);
}

/* From the last position; where that was refused, from now on, or again from the oldest that is kept. */
static void resume(client *c, size_t which) {
    followed *follows = &c->follows[which];
    bool live = follows->refused && !follows->sub.last && (c->fair || sim_chance(50));
    follows->refused = false;
    send_subscribe(c, which, &follows->sub, live);
}

static void connect_client(client *c) {
    c->aiwg = sim_chance(60);
    c->conn = hub_connect(c->name, c->aiwg ? "aiwg" : "weft", c);
    c->in_len = c->out_len = 0;
    if (!c->conn)
        return;
    c->words = hub_told();
    sim_say("%-7s connects as %s at %llu", c->name, c->aiwg ? "aiwg" : "weft", (unsigned long long) c->words);
    for (size_t i = 0; i < SUBSCRIPTIONS; i++)
        if (c->follows[i].wanted && sim_chance(80))
            resume(c, i);
    for (size_t i = 0; i < VIEWS; i++)
        if (c->views[i].wanted && sim_chance(80))
            send_view(c, i);
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

static void hear_changed(const client *c, const request *asked, const weft_json *result) {
    weft_json value = weft_get(result, "value");
    uint64_t told = (uint64_t) weft_get_int(&value, "version", 0), version = 0;
    if (!truth_request(c->name, asked->subject, &version))
        sim_broken("acknowledged too soon: %s was told of %s, which is not on the disk", c->name, asked->subject);
    else if (told != version)
        sim_broken("another answer: %s was told version %llu of %s, which has %llu", c->name, (unsigned long long) told,
                   asked->subject, (unsigned long long) version);
    sim_saw(asked->repeats ? SAW_MUTATION_AGAIN : SAW_MUTATION);
}

static void act(client *c) {
    if (sim_now_plan()->sessions && c->conn && c->pending_count < MAX_PENDING && sim_chance(40)) {
        use_session(c);
        return;
    }
    uint32_t what = sim_below(100);
    if (!c->conn)
        connect_client(c);
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
        send_view(c, TASKS);
    else if (what < 95)
        unsubscribe(c);
    else
        ask(c, WANT_LIST, "\"method\":\"question.list\"");
}

void clients_act(void) {
    client *c = &clients.list[sim_below((uint32_t) clients.count)];
    act(c);
    /* Two at once, where that matters: the same question, answered by two. */
    if (sim_chance(20))
        act(&clients.list[sim_below((uint32_t) clients.count)]);
}

/* ---- events ---- */

static bool lets_through(const subscription *sub, const truth_event *event) {
    return strncmp(event->type, sub->prefix, strlen(sub->prefix)) == 0 &&
           (!*sub->task || strcmp(event->task, sub->task) == 0) &&
           (!*sub->session || strcmp(event->session, sub->session) == 0);
}

/* After memory was short, or while reads are slow or fail. */
static bool engine_may_be_behind(void) {
    const sim_plan *plan = sim_now_plan();
    return plan->memory_faults || plan->store_faults || plan->slow_disk;
}

/* Most events name neither their session nor, at the end of a question, their task: a subscription then asks the engine. And
 * what is trimmed before the engine has seen it nobody hears. */
static bool may_be_unknown(const subscription *sub, const truth_event *event) {
    return event->unseen ||
           (engine_may_be_behind() && ((*sub->task && !event->names_task) || (*sub->session && !event->names_session)));
}

/* Whatever lies between what was heard last and this should have been heard. */
static void check_missed(const client *c, const subscription *sub, uint64_t until) {
    uint64_t from = sub->last > sub->floor ? sub->last : sub->floor;
    for (uint64_t gseq = from + 1; gseq < until; gseq++) {
        const truth_event *event = truth_at(gseq);
        if (lets_through(sub, event) && !(sub->oldest && event->trimmed) && !event->removed && !may_be_unknown(sub, event))
            sim_broken("lost event: %s did not hear %llu %s", c->name, (unsigned long long) gseq, event->type);
    }
}

static void hear_event(client *c, size_t which, const weft_json *params) {
    subscription *sub = &c->follows[which].sub;
    uint64_t gseq = (uint64_t) weft_get_int(params, "gseq", 0);
    const truth_event *event = truth_at(gseq);
    weft_json data = weft_get(params, "data");
    sim_say("%-7s < event %llu", c->name, (unsigned long long) gseq);
    if (!sub->on || !event)
        sim_broken("stray event: %s heard %llu, which %s", c->name, (unsigned long long) gseq,
                   event ? "it did not subscribe to" : "is not on the disk");
    else if (gseq <= sub->last)
        sim_broken("double event: %s heard %llu after %llu", c->name, (unsigned long long) gseq,
                   (unsigned long long) sub->last);
    else if (event->removed && strcmp(weft_get_str(params, "type", ""), WEFT_REMOVED) == 0)
        sub->last = gseq; /* that it was there is all it says */
    else if (!lets_through(sub, event))
        sim_broken("stray event: %s heard %llu %s", c->name, (unsigned long long) gseq, event->type);
    else if (strcmp(weft_get_str(params, "type", ""), event->type) != 0 || data.len != event->len ||
             memcmp(data.text, event->data, event->len) != 0)
        sim_broken("wrong event: %s heard another %llu than is on the disk", c->name, (unsigned long long) gseq);
    else {
        check_missed(c, sub, gseq);
        sub->last = gseq;
    }
}

/* ---- the values of streams ---- */

static void hear_view(client *c, view *had, const weft_json *params, const weft_json *value) {
    uint64_t seq = (uint64_t) weft_get_int(params, "seq", 0);
    const char *journal = weft_get_str(params, "journal", "");
    bool same = strncmp(journal, had->journal, strcspn(journal, ".") + 1) == 0;
    sim_say("%-7s < value %llu", c->name, (unsigned long long) seq);
    if (!truth_at(seq))
        sim_broken("stray value: %s was told a value of %llu, which is not on the disk", c->name, (unsigned long long) seq);
    if (had->on && same && seq <= had->seq)
        sim_broken("double value: %s was told a value of %llu after %llu", c->name, (unsigned long long) seq,
                   (unsigned long long) had->seq);
    free(had->value);
    had->value = strndup(value->text, value->len);
    had->seq = seq;
    had->on = true;
    snprintf(had->journal, sizeof had->journal, "%s", journal);
}

static void hear_data(client *c, const weft_json *params) {
    weft_json value = weft_get(params, "value");
    for (size_t i = 0; i < VIEWS; i++)
        if (strcmp(weft_get_str(params, "subId", ""), view_names[i]) == 0) {
            hear_view(c, &c->views[i], params, &value);
            return;
        }
    if (weft_get_int(params, "seq", 0) != weft_get_int(&value, "gseq", -1))
        sim_broken("wrong event: %s heard one with another position than its own", c->name);
    else
        hear_event(c, STREAM, &value);
}

/* ---- values in pieces ---- */

static void forget_pieces(client *c) {
    free(c->pieces.text);
    c->pieces = (pieces){0};
}

/* All of it is there: as if it had come whole. */
static void take_whole(client *c, const weft_json *params) {
    size_t size = c->pieces.len + 300;
    char *text = malloc(size);
    weft_doc *doc = NULL;
    if (!text)
        abort();
    int n = snprintf(text, size, "{\"subId\":\"%s\",\"seq\":%llu,\"journal\":\"%s\",\"value\":%s}", c->pieces.sub,
                     (unsigned long long) c->pieces.seq, weft_get_str(params, "journal", ""), c->pieces.text);
    forget_pieces(c);
    if (weft_doc_parse(text, (size_t) n, NULL, &doc) < 0)
        sim_broken("wrong pieces: %s has %.200s", c->name, text);
    else
        hear_data(c, weft_doc_root(doc));
    weft_doc_free(doc);
    free(text);
}

/* From 1 to total, without a gap; another transition gives up the one before. */
static void hear_piece(client *c, const weft_json *params) {
    pieces *had = &c->pieces;
    const char *transition = weft_get_str(params, "transitionId", "");
    weft_json chunk = weft_get(params, "chunk");
    weft_bytes text = {"", 0};
    int64_t part = weft_get_int(params, "part", 0);
    sim_say("%-7s < part %lld of %lld of %s", c->name, (long long) part, (long long) weft_get_int(params, "total", 0),
            transition);
    if (had->text && strcmp(had->transition, transition) != 0) {
        sim_saw(SAW_SUPERSEDED);
        forget_pieces(c);
    }
    if (!had->text) {
        snprintf(had->sub, sizeof had->sub, "%s", weft_get_str(params, "subId", ""));
        snprintf(had->transition, sizeof had->transition, "%s", transition);
        had->seq = (uint64_t) weft_get_int(params, "seq", 0);
        had->total = weft_get_int(params, "total", 0);
    }
    if (part != had->part + 1 || weft_get_int(params, "total", 0) != had->total || part > had->total ||
        (uint64_t) weft_get_int(params, "seq", 0) != had->seq || weft_bytes_of(&chunk, &text) < 0 || !text.len ||
        (sim_now_plan()->chunk && text.len > sim_now_plan()->chunk)) {
        sim_broken("wrong piece: %s was told part %lld after %lld of %lld", c->name, (long long) part, (long long) had->part,
                   (long long) had->total);
        return;
    }
    had->part = part;
    append_bytes(&had->text, &had->len, text.data, text.len);
    if (part < had->total)
        return;
    sim_saw(SAW_PIECES);
    take_whole(c, params);
}

/* ---- what was said in a session ---- */

/* What its agent said on standard output, by the disk; kept: without what was trimmed. */
static char *said_in(const char *session, bool kept) {
    char *text = NULL;
    size_t len = 0;
    append_bytes(&text, &len, "", 0);
    for (uint64_t gseq = 1; gseq <= truth_head(); gseq++) {
        const truth_event *event = truth_at(gseq);
        weft_doc *doc;
        if (!event || strcmp(event->type, "session.output") != 0 || strcmp(event->session, session) != 0 ||
            (kept && (event->trimmed || event->unseen)) || event->removed ||
            weft_doc_parse(event->data, event->len, NULL, &doc) < 0)
            continue;
        weft_json said = weft_get(weft_doc_root(doc), "text");
        weft_bytes bytes = {"", 0};
        if (strcmp(weft_get_str(weft_doc_root(doc), "stream", ""), "stdout") == 0 && weft_bytes_of(&said, &bytes) >= 0)
            append_bytes(&text, &len, bytes.data, bytes.len);
        weft_doc_free(doc);
    }
    return text;
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), more = strlen(end);
    return len >= more && strcmp(text + len - more, end) == 0;
}

/* The value of the client: all that is kept was said to it, in its order, and nothing that was not said. What was trimmed
 * after the value was computed may still be there. */
static void check_thread(const client *c) {
    const view *of = &c->views[THREAD];
    weft_doc *doc;
    char *told = NULL;
    size_t len = 0;
    if (!of->value || weft_doc_parse(of->value, strlen(of->value), NULL, &doc) < 0) {
        sim_broken("lost value: %s has nothing of what was said in %s", c->name, of->session);
        return;
    }
    bool there = hub_session_mode(of->session) != NULL;
    if ((weft_typeof(weft_doc_root(doc)) == WEFT_NULL) == there)
        sim_broken("old value: %s believes that %s is %s", c->name, of->session, there ? "not there" : "there");
    append_bytes(&told, &len, "", 0);
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); there && weft_next(&it);) {
        weft_json text = weft_get(&it.value, "text");
        weft_bytes bytes;
        if (strcmp(weft_get_str(&it.value, "kind", ""), "output") == 0 && weft_bytes_of(&text, &bytes) >= 0)
            append_bytes(&told, &len, bytes.data, bytes.len);
    }
    char *kept = said_in(of->session, true), *all = said_in(of->session, false);
    if (there && (!ends_with(told, kept) || !ends_with(all, told)))
        sim_broken("old value: %s was told that %s said \"%.100s\", it said \"%.100s\"", c->name, of->session, told, all);
    if (there && len)
        sim_saw(SAW_THREAD);
    free(told);
    free(kept);
    free(all);
    weft_doc_free(doc);
}

/* Every task that the hub knows is in the value that the client has, in the state that the disk says. */
static void check_view(const client *c) {
    weft_doc *doc;
    const view *of = &c->views[TASKS];
    size_t known = 0;
    if (!of->value || weft_doc_parse(of->value, strlen(of->value), NULL, &doc) < 0) {
        sim_broken("lost value: %s has no value of the tasks", c->name);
        return;
    }
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it);) {
        const char *id = weft_get_str(&it.value, "id", ""), *state = hub_task_state(id);
        if (!state || strcmp(state, weft_get_str(&it.value, "state", "")) != 0)
            sim_broken("old value: %s believes that %s is %s, it is %s", c->name, id, weft_get_str(&it.value, "state", ""),
                       state ? state : "forgotten");
        known++;
    }
    for (size_t i = 0; i < truth_tasks(); i++)
        known -= hub_task_state(truth_task_at(i)->id) != NULL;
    if (known != 0)
        sim_broken("old value: %s has not all tasks", c->name);
    weft_doc_free(doc);
}

/* ---- the words of the dialect ---- */

static const char *word_for(const truth_event *event) {
    static const char *const words[][2] = {
        {"task.queued", "event.taskQueued"},    {"task.retrying", "event.taskQueued"},
        {"task.started", "event.taskStarted"},  {"task.completed", "event.taskCompleted"},
        {"task.failed", "event.taskFailed"},    {"task.cancelled", "event.taskCancelled"},
        {"session.output", "event.taskOutput"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i][0], event->type) == 0)
            return words[i][1];
    return NULL;
}

/* The next event that it must be told in words; NULL: none. */
static const truth_event *next_word(client *c) {
    const truth_event *event;
    while ((event = truth_at(c->words + 1)) && !word_for(event))
        c->words++;
    return event;
}

/* Output must be the event's own, byte for byte. */
static bool is_word(const truth_event *event, const char *method, const weft_json *params) {
    weft_json output = weft_get(params, "output");
    return strcmp(word_for(event), method) == 0 && strcmp(event->task, weft_get_str(params, "taskId", "")) == 0 &&
           (!output.text || memmem(event->data, event->len, output.text, output.len));
}

/* What is no longer kept when a slow client comes to it is left out of its dialect's words: decision 0032. */
static bool need_not_be_said(const truth_event *event) {
    return event->unseen || event->trimmed || event->removed;
}

/* It was told already, when an event before it that says the same was trimmed. */
static bool was_said(const client *c, const truth_event *event) {
    const truth_event *before = c->doubtful ? truth_at(c->doubtful) : NULL;
    return before && strcmp(word_for(before), word_for(event)) == 0 && strcmp(before->task, event->task) == 0;
}

static void hear_word(client *c, const char *method, const weft_json *params) {
    const truth_event *event;
    const char *task = weft_get_str(params, "taskId", "");
    for (event = next_word(c); event && !is_word(event, method, params) && (need_not_be_said(event) || was_said(c, event));
         event = next_word(c))
        c->words++;
    sim_say("%-7s < %s %s", c->name, method, task);
    if (!event)
        sim_broken("double event: %s heard %s of %s, and everything was told", c->name, method, task);
    else if (!is_word(event, method, params))
        sim_broken("lost event: %s heard %s of %s instead of %llu %s of %s", c->name, method, task,
                   (unsigned long long) event->gseq, event->type, event->task);
    else {
        c->doubtful = need_not_be_said(event) ? event->gseq : 0;
        c->words++;
    }
}

/* ---- answers ---- */

static const char *reason_of(const weft_json *message) {
    weft_json reason = weft_pointer(message, "/error/data/reason");
    return weft_str_of(&reason, "");
}

static void hear_submitted(client *c, const request *asked, const weft_json *result) {
    char key[128];
    const char *id = weft_get_str(result, "taskId", NULL);
    const truth_task *task = id ? truth_find(id) : NULL;
    if (!id)
        return;
    snprintf(key, sizeof key, "%s: %s", c->name, asked->subject);
    if (*asked->subject && asked->repeats)
        sim_saw(SAW_REPEAT);
    if (!task)
        sim_broken("acknowledged too soon: %s was told of %s, which is not on the disk", c->name, id);
    else if (*asked->subject && strcmp(task->key, key) != 0)
        sim_broken("wrong task: %s was given %s for the key %s", c->name, id, key);
    else if (strncmp(task->prompt, c->name, strlen(c->name)) != 0)
        sim_broken("wrong task: %s was given %s, which is somebody else's", c->name, id);
}

static void hear_cancelled(const client *c, const request *asked, const weft_json *message, bool ok) {
    const truth_task *task = truth_find(asked->subject);
    const char *reason = reason_of(message);
    if (!task)
        return; /* the disk was lost */
    sim_saw(ok ? SAW_CANCEL : SAW_CANCEL_LATE);
    if (ok && task->state != TRUTH_CANCELLED)
        sim_broken("acknowledged too soon: %s was told that %s is cancelled", c->name, task->id);
    if (strcmp(reason, "taskNotCancellable") == 0 && task->state <= TRUTH_RUNNING)
        sim_broken("wrong answer: %s was told that %s is over", c->name, task->id);
    if (strcmp(reason, "taskNotFound") == 0 && task->state <= TRUTH_RUNNING)
        sim_broken("lost task: %s was told that %s does not exist", c->name, task->id);
}

static void hear_answered(const client *c, const request *asked, const weft_json *message, bool ok) {
    const truth_question *question = truth_question_find(asked->subject);
    weft_json said = weft_pointer(message, "/error/data/answer/option");
    const char *option = weft_str_of(&said, NULL);
    if (!question)
        return; /* the disk was lost */
    sim_saw(ok ? SAW_ANSWER : SAW_ANSWER_LATE);
    if (ok && (strcmp(question->option, asked->option) != 0 || strcmp(question->by, c->name) != 0))
        sim_broken("two winners: %s was told it answered %s, which was %s by %s", c->name, question->id, question->end,
                   question->by);
    if (strcmp(reason_of(message), "questionResolved") == 0 && !*question->end)
        sim_broken("wrong answer: %s was told that %s is over", c->name, question->id);
    if (option && strcmp(question->option, option) != 0)
        sim_broken("two winners: %s was told that %s was answered %s, it was %s", c->name, question->id, option,
                   question->option);
}

/* Where a session was trimmed is not remembered exactly: who follows it alone and stands between the last event that went
 * and the first that is kept is refused, too (decision 32). */
static bool may_be_trimmed(const subscription *sub) {
    const truth_task *task = *sub->task ? truth_find(sub->task) : NULL;
    const char *session = task ? task->session : sub->session;
    return truth_trimmed_after(sub->last) || (*session && truth_session_trimmed(session));
}

static void check_refusal(const client *c, const request *asked, const char *reason) {
    sim_saw(strcmp(reason, "trimmed") == 0 ? SAW_TRIMMED_GAP : SAW_EPOCH_GAP);
    bool same = strcmp(asked->next.epoch, truth_epoch()) == 0 || !asked->next.last;
    if (strcmp(reason, "epochChanged") == 0 ? same
        : strcmp(reason, "trimmed") == 0    ? !same || !may_be_trimmed(&asked->next)
                                            : true)
        sim_broken("untrue gap: %s was refused %llu because of %s", c->name, (unsigned long long) asked->next.last, reason);
}

/* It is subscribed in any case: from its position, or anew after startSeq. */
static void hear_stream(client *c, const request *asked, const weft_json *result) {
    subscription *sub = &c->follows[STREAM].sub;
    const char *reason = weft_get_str(result, "reason", NULL), *journal = weft_get_str(result, "journal", "");
    bool resumed = weft_get_bool(result, "resumed", false);
    if (reason)
        check_refusal(c, asked, reason);
    if (resumed && asked->next.last && strcmp(asked->next.epoch, truth_epoch()) != 0)
        sim_broken("untrue resume: %s went on with another epoch", c->name);
    if (resumed == (asked->live || reason))
        sim_broken("wrong answer: %s was told %s", c->name, resumed ? "that it was resumed" : "that it was not");
    if (resumed && asked->next.last)
        sim_saw(SAW_STREAM_RESUMED);
    if (reason)
        sim_saw(SAW_STREAM_ANEW);
    *sub = asked->next;
    sub->on = true;
    sub->floor = (uint64_t) weft_get_int(result, "startSeq", 0);
    sub->last = resumed ? asked->next.last : 0;
    snprintf(sub->epoch, sizeof sub->epoch, "%s", journal);
}

/* With a position of this epoch it is resumed, and told nothing if it has the value. */
static void hear_viewed(client *c, const request *asked, const weft_json *result) {
    view *of = &c->views[asked->which];
    bool resumed = weft_get_bool(result, "resumed", false);
    const char *journal = weft_get_str(result, "journal", "");
    if (strncmp(journal, truth_epoch(), strlen(truth_epoch())) != 0)
        sim_broken("wrong answer: %s was told of another epoch", c->name);
    of->on = resumed && of->value;
    of->seq = resumed ? (uint64_t) weft_get_int(result, "startSeq", 0) : of->seq;
    if (resumed && strchr(journal, '.'))
        sim_saw(SAW_VIEW_KEPT);
}

static void hear_subscribed(client *c, const request *asked, const weft_json *result) {
    subscription *sub = &c->follows[asked->which].sub;
    if (asked->which == STREAM) {
        hear_stream(c, asked, result);
        return;
    }
    if (!weft_get_bool(result, "resumed", false)) {
        check_refusal(c, asked, weft_get_str(result, "reason", ""));
        *sub = asked->next;
        sub->on = false;
        sub->last = sub->floor = 0; /* it will begin anew */
        c->follows[asked->which].refused = true;
        return;
    }
    if (asked->next.last && strcmp(asked->next.epoch, truth_epoch()) != 0)
        sim_broken("untrue resume: %s went on with another epoch", c->name);
    if (asked->next.last)
        sim_saw(SAW_RESUMED);
    *sub = asked->next;
    sub->on = true;
    sub->floor = asked->live ? (uint64_t) weft_get_int(result, "head", 0) : asked->next.last;
    snprintf(sub->epoch, sizeof sub->epoch, "%s", weft_get_str(result, "epoch", ""));
}

/* What is refused at once leaves the subscription there was; what fails later has replaced it. */
static void hear_unsubscribed(client *c, const request *asked, const weft_json *message) {
    const char *reason = reason_of(message);
    if (strcmp(reason, "superseded") == 0 || strcmp(reason, "storageFailed") == 0)
        c->follows[asked->which].sub.on = false;
}

static void hear_created(const client *c, const weft_json *result) {
    weft_json session = weft_get(result, "session");
    const char *id = weft_get_str(&session, "id", "");
    if (!truth_session_find(id))
        sim_broken("acknowledged too soon: %s was told of %s, which is not on the disk", c->name, id);
}

/* ok: it was done. */
static void hear_session(const client *c, const request *asked) {
    const truth_session *session = truth_session_find(asked->subject);
    if (!session)
        return; /* the disk was lost */
    if (asked->busy && asked->want == WANT_CLOSE)
        sim_saw(SAW_SESSION_CLOSED);
    if (asked->busy && asked->want == WANT_DELETE)
        sim_saw(SAW_SESSION_DELETED);
    if ((asked->want == WANT_SET && !session->sets) || (asked->want == WANT_CLOSE && !session->closes) ||
        (asked->want == WANT_DELETE && !session->deleted))
        sim_broken("acknowledged too soon: %s was told of %s, and the disk says otherwise", c->name, session->id);
}

static void hear_answer(client *c, const weft_json *message) {
    uint64_t id = (uint64_t) weft_get_int(message, "id", 0);
    weft_json result = weft_get(message, "result");
    bool ok = result.text != NULL;
    size_t i = 0;
    while (i < c->pending_count && c->pending[i].id != id)
        i++;
    sim_say("%-7s < %.*s", c->name, (int) (message->len < 300 ? message->len : 300), message->text);
    if (i == c->pending_count) {
        sim_broken("double answer: %s was answered %llu", c->name, (unsigned long long) id);
        return;
    }
    request asked = c->pending[i];
    memmove(&c->pending[i], &c->pending[i + 1], (--c->pending_count - i) * sizeof asked);
    if (asked.want == WANT_SUBMIT && ok)
        hear_submitted(c, &asked, &result);
    else if (asked.want == WANT_CREATE && ok)
        hear_created(c, &result);
    else if (asked.want > WANT_CREATE && ok)
        hear_session(c, &asked);
    else if (asked.want == WANT_CANCEL)
        hear_cancelled(c, &asked, message, ok);
    else if (asked.want == WANT_ANSWER)
        hear_answered(c, &asked, message, ok);
    else if (asked.want == WANT_SUBSCRIBE && ok)
        hear_subscribed(c, &asked, &result);
    else if (asked.want == WANT_SUBSCRIBE)
        hear_unsubscribed(c, &asked, message);
    else if (asked.want == WANT_VIEW && ok)
        hear_viewed(c, &asked, &result);
    else if (asked.want == WANT_CHANGE && ok)
        hear_changed(c, &asked, &result);
    else if (asked.want == WANT_UNSUBSCRIBE && ok)
        c->follows[asked.which].sub.on = false;
}

/* ---- bytes ---- */

static void hear_line(client *c, const char *line, size_t len) {
    weft_doc *doc;
    sim_digest(line, len);
    if (weft_doc_parse(line, len, NULL, &doc) < 0) {
        sim_broken("not JSON: %s heard %.*s", c->name, (int) (len < 200 ? len : 200), line);
        return;
    }
    const weft_json *message = weft_doc_root(doc);
    const char *method = weft_get_str(message, "method", NULL);
    weft_json params = weft_get(message, "params");
    if (!method)
        hear_answer(c, message);
    else if (strcmp(method, "event") == 0)
        hear_event(c, weft_get_str(&params, "subscription", NULL) ? 1 : 0, &params);
    else if (strcmp(method, "tinyvex/data") == 0)
        hear_data(c, &params);
    else if (strcmp(method, "tinyvex/transitionChunk") == 0)
        hear_piece(c, &params);
    else if (strcmp(method, "tinyvex/error") == 0)
        sim_saw(SAW_SKIPPED);
    else
        hear_word(c, method, &params);
    weft_doc_free(doc);
}

void client_hear(void *ctx, const char *data, size_t len) {
    client *c = ctx;
    append_bytes(&c->in, &c->in_len, data, len);
    char *end;
    size_t from = 0;
    while (!sim_is_broken() && (end = memchr(c->in + from, '\n', c->in_len - from))) {
        hear_line(c, c->in + from, (size_t) (end - (c->in + from)));
        from = (size_t) (end + 1 - c->in);
    }
    memmove(c->in, c->in + from, c->in_len - from);
    c->in_len -= from;
}

/* It has no connection any more. What it asked for may have happened or not. */
static void forget_connection(client *c) {
    for (size_t i = 0; i < c->pending_count; i++)
        if (c->pending[i].want == WANT_SUBMIT && *c->pending[i].subject)
            snprintf(c->unsure, sizeof c->unsure, "%s", c->pending[i].subject);
    c->conn = NULL;
    c->pending_count = 0;
    c->in_len = c->out_len = 0;
    forget_pieces(c);
    for (size_t i = 0; i < VIEWS; i++)
        c->views[i].on = false;
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        subscription *sub = &c->follows[i].sub;
        sub->on = false;
        /* Who subscribed from now on and has heard nothing yet resumes from there. */
        sub->last = sub->last > sub->floor ? sub->last : sub->floor;
    }
}

void client_lost(void *ctx) {
    client *c = ctx;
    sim_say("%-7s is disconnected", c->name);
    forget_connection(c);
}

static size_t piece(bool fair) {
    return fair ? 1 << 20 : sim_below(sim_chance(30) ? 8 : MAX_PIECE) + 1;
}

static bool send_bytes(client *c, size_t max) {
    size_t n = c->out_len < max ? c->out_len : max;
    if (!n)
        return false;
    char *data = c->out;
    size_t rest = c->out_len - n;
    /* The hub may end the connection while it is fed. */
    c->out = NULL;
    c->out_len = 0;
    if (hub_feed(c->conn, data, n))
        append_bytes(&c->out, &c->out_len, data + n, rest);
    free(data);
    return true;
}

static bool receive_bytes(client *c, size_t max) {
    static char bytes[1 << 20];
    size_t n = c->conn ? hub_take(c->conn, bytes, max) : 0;
    /* Where the hub ended the connection meanwhile, that is already known and these bytes came too late. */
    if (n && c->conn)
        client_hear(c, bytes, n);
    return n > 0;
}

bool clients_wire(bool fair) {
    bool moved = false;
    if (!fair) {
        client *c = &clients.list[sim_below((uint32_t) clients.count)];
        if (!c->conn || (c->slow && !sim_chance(10)))
            return false;
        return sim_chance(40) ? send_bytes(c, piece(false)) : receive_bytes(c, piece(false));
    }
    for (size_t i = 0; i < clients.count; i++) {
        client *c = &clients.list[i];
        moved |= c->conn && send_bytes(c, piece(true));
        moved |= c->conn && receive_bytes(c, piece(true));
    }
    return moved;
}

void clients_drop(void) {
    client *c = &clients.list[sim_below((uint32_t) clients.count)];
    if (!c->conn)
        return;
    sim_say("%-7s disconnects", c->name);
    hub_disconnect(c->conn);
    forget_connection(c);
}

void clients_cut(void) {
    for (size_t i = 0; i < clients.count; i++)
        forget_connection(&clients.list[i]);
}

/* ---- the fair end ---- */

static bool wants_events(const client *c) {
    for (size_t i = 0; i < SUBSCRIPTIONS; i++)
        if (c->follows[i].wanted)
            return true;
    return c->views[TASKS].wanted || c->views[THREAD].wanted;
}

static bool mend_client(client *c) {
    bool done = false;
    c->fair = true;
    if (!c->conn && wants_events(c)) {
        connect_client(c);
        done = c->conn != NULL;
    }
    for (size_t i = 0; i < SUBSCRIPTIONS; i++)
        if (c->conn && c->follows[i].wanted && !c->follows[i].sub.on && !c->pending_count) {
            resume(c, i);
            done = true;
        }
    for (size_t i = 0; i < VIEWS; i++)
        if (c->conn && c->views[i].wanted && !c->views[i].on && !c->pending_count) {
            send_view(c, i);
            done = true;
        }
    return done;
}

bool clients_mend(void) {
    bool done = false;
    for (size_t i = 0; i < clients.count && hub_is_ready(); i++) {
        done |= mend_client(&clients.list[i]);
    }
    return done;
}

void clients_check(void) {
    for (size_t i = 0; i < clients.count; i++) {
        client *c = &clients.list[i];
        if (!c->conn)
            continue;
        if (c->pending_count)
            sim_broken("no answer: %s waits for the answer to %llu", c->name, (unsigned long long) c->pending[0].id);
        for (size_t k = 0; k < SUBSCRIPTIONS; k++)
            if (c->follows[k].sub.on)
                check_missed(c, &c->follows[k].sub, truth_head() + 1);
        if (c->views[TASKS].wanted)
            check_view(c);
        if (c->views[THREAD].wanted)
            check_thread(c);
        while (c->aiwg && next_word(c) && need_not_be_said(next_word(c)))
            c->words++;
        if (c->aiwg && next_word(c))
            sim_broken("lost event: %s was not told of %llu %s", c->name, (unsigned long long) next_word(c)->gseq,
                       next_word(c)->type);
    }
}

void clients_open(size_t count) {
    memset(&clients, 0, sizeof clients);
    clients.count = count < MAX_CLIENTS ? count : MAX_CLIENTS;
    for (size_t i = 0; i < clients.count; i++) {
        client *c = &clients.list[i];
        snprintf(c->name, sizeof c->name, "client%zu", i);
        c->slow = sim_chance(30);
    }
}

void clients_close(void) {
    for (size_t i = 0; i < clients.count; i++) {
        free(clients.list[i].out);
        free(clients.list[i].in);
        for (size_t k = 0; k < VIEWS; k++)
            free(clients.list[i].views[k].value);
        forget_pieces(&clients.list[i]);
    }
    memset(&clients, 0, sizeof clients);
}
