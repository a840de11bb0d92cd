/* The commands on sessions. Each checks what can be checked and appends; what the agent must do first it does first, so that
 * nothing is stored that it refused.
 *
 * Closing and deleting take several steps:
 *
 *     CANCELLING ──no task is left──▶ closed: STORING
 *                                     deleted: ASKING the agent to delete its copy ──▶ ERASING what was said ──▶ STORING */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent_pool.h"
#include "beneath.h"
#include "once.h"

#define MAX_TITLE 1024
#define MAX_SERVERS 32
#define MAX_SERVER_BYTES ((size_t) 64 * 1024)
#define MAX_AGENT_SESSION 1024 /* bytes of an agent's own name for a session */
#define WHY 512                /* bytes of an agent's sentence that are handed on */

/* A command under way. */
typedef struct command {
    weft_engine *engine;
    char id[ENGINE_ID];
    known_session *made; /* the one that is being created; NULL: none */
    uint64_t number;
    weft_session_done *done;
    void *ctx;
    weft_request *request;    /* that it is done for; NULL: none */
    bool goes_on;             /* with a conversation of the agent's */
    char *by, *name, *option; /* of a setting */
    weft_doc *value;
    char why[WHY];
} command;

static int check_phase(const weft_engine *engine) {
    return engine->phase > READY ? -ESHUTDOWN : engine->phase < READY || engine->past_unread ? -EAGAIN : 0;
}

static int find_free_session(const weft_engine *engine, const char *id, known_session **ret) {
    int r = check_phase(engine);
    *ret = weft__session_known(engine, id);
    if (r < 0)
        return r;
    return !*ret || !(*ret)->stored ? -ESRCH : (*ret)->job ? -ESTALE : 0;
}

static char *copy_text_or_null(const weft_engine *engine, const char *text) {
    return text ? weft__strndup(engine->alloc, text, strlen(text)) : NULL;
}

static command *free_command(command *old) {
    const weft_alloc *alloc = old->engine->alloc;
    weft__free(alloc, old->by);
    weft__free(alloc, old->name);
    weft__free(alloc, old->option);
    weft_doc_free(old->value);
    return weft__free(alloc, old);
}

static command *new_command(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx) {
    command *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->engine = engine;
    made->done = done;
    made->ctx = ctx;
    snprintf(made->id, sizeof made->id, "%s", id);
    made->by = copy_text_or_null(engine, by);
    return by && !made->by ? free_command(made) : made;
}

/* It is over: tell whoever asked. */
static void finish_command(command *old, int r) {
    weft_engine *engine = old->engine;
    const known_session *session = weft__session_known(engine, old->id);
    weft_session_done *done = old->done;
    if (done)
        done(old->ctx, r, r >= 0 && session && session->stored ? &session->pub : NULL, *old->why ? old->why : NULL);
    free_command(old);
}

/* r 1: its request was done before, and is forgotten. */
static void command_stored(void *ctx, int r) {
    finish_command(ctx, r > 0 ? -EEXIST : r);
}

static void add_request(const command *made, struct draft *draft) {
    weft__request_add(made->request, draft, WEFT_OBJ({"sessionId", weft_str(made->id)}));
}

/* One event, and nothing else to do. */
static int send_event(command *made, const char *type, weft_val data) {
    struct draft draft = {.engine = made->engine};
    weft__draft_add(&draft, WEFT_STREAM_HUB, type, data);
    add_request(made, &draft);
    return weft__draft_send(&draft, weft__request_key(made->request), command_stored, made);
}

static void keep_why(command *old, const char *error) {
    snprintf(old->why, sizeof old->why, "%s", error ? error : "");
}

/* The agent has it open. Everything that it said of the session goes to the store before this event, so that whoever hears
 * of this one, or is answered, finds it. */
static int send_opened(command *made) {
    weft__facts_send(made->engine);
    return send_event(made, "session.opened", WEFT_OBJ({"sessionId", weft_str(made->id)}));
}

/* ---- create ---- */

static int accept_setting(void *ctx, const weft_session_setting *setting) {
    (void) ctx, (void) setting;
    return 0;
}

static int check_settings(const weft_engine *engine, const char *settings) {
    weft_doc *doc = NULL;
    if (strlen(settings) > WEFT_SETTINGS_BYTES)
        return -EMSGSIZE;
    int r = weft_doc_parse(settings, strlen(settings), engine->alloc, &doc);
    if (r >= 0)
        r = weft__settings_each(weft_doc_root(doc), accept_setting, NULL);
    weft_doc_free(doc);
    return r == -EBADMSG ? -EINVAL : r;
}

static int check_servers(const weft_engine *engine, const char *servers) {
    weft_doc *doc = NULL;
    if (strlen(servers) > MAX_SERVER_BYTES)
        return -EMSGSIZE;
    int r = weft_doc_parse(servers, strlen(servers), engine->alloc, &doc);
    const weft_json *list = r < 0 ? NULL : weft_doc_root(doc);
    if (r >= 0 && weft_typeof(list) != WEFT_ARRAY)
        r = -EINVAL;
    if (r >= 0 && weft_count(list) > MAX_SERVERS)
        r = -EMSGSIZE;
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it);)
        if (!*weft_get_str(&it.value, "name", ""))
            r = -EINVAL;
    weft_doc_free(doc);
    return r == -EBADMSG ? -EINVAL : r;
}

/* What its driver has no words for must not look as if it were done. */
static int check_driver(const weft_engine *engine, const weft_session_order *order, const weft_agent *agent) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    if (!driver)
        return order->settings || order->servers || order->agent_session ? -EOPNOTSUPP : 0;
    if ((order->settings && !driver->set) || (driver->one_turn && (order->servers || order->agent_session)))
        return -EOPNOTSUPP;
    return 0;
}

static int check_order(const weft_engine *engine, const weft_session_order *order) {
    int r = 0;
    if ((order->title && (!*order->title || strlen(order->title) > MAX_TITLE)) ||
        (order->agent_session && (!*order->agent_session || strlen(order->agent_session) > MAX_AGENT_SESSION)))
        return -EINVAL;
    if (order->settings)
        r = check_settings(engine, order->settings);
    if (r >= 0 && order->servers)
        r = check_servers(engine, order->servers);
    return r;
}

int weft__session_give_servers(weft_engine *engine, const char *id, const char *servers) {
    known_session *session;
    int r = find_free_session(engine, id, &session);
    if (r < 0 && r != -ESTALE)
        return r;
    if (weft__texts_equal(session->pub.servers, servers))
        return 0;
    const weft_agent *agent = weft__agent_find(engine->agents, session->pub.agent);
    r = check_servers(engine, servers);
    if (r >= 0 && agent)
        r = check_driver(engine, &(weft_session_order){.servers = servers}, agent);
    if (r >= 0)
        r = weft__session_fill(engine, session, &(weft_session){.servers = servers});
    if (r < 0)
        return r;
    weft__saved_changed(engine, &session->saved);
    weft__pool_reopen(engine, id);
    return 0;
}

/* The names alone: everybody may hear of an event, and the rest of a server may be secret. */
static int write_server_names(const weft_engine *engine, const char *servers, weft_buf *out) {
    weft_doc *doc = NULL;
    int r = servers ? weft_doc_parse(servers, strlen(servers), engine->alloc, &doc) : 0;
    if (r < 0 || !servers)
        return r;
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); r >= 0 && weft_next(&it);) {
        weft_json name = weft_get(&it.value, "name");
        r = weft__buf_put(out, engine->alloc, weft__buf_len(out) ? "," : "[", 1);
        if (r >= 0)
            r = weft__buf_put(out, engine->alloc, name.text, name.len);
    }
    if (r >= 0)
        r = weft__buf_put(out, engine->alloc, weft__buf_len(out) ? "]" : "[]", weft__buf_len(out) ? 1 : 2);
    weft_doc_free(doc);
    return r;
}

static void created_stored(void *ctx, int r) {
    command *made = ctx;
    weft_engine *engine = made->engine;
    if (r > 0)
        r = -EEXIST;
    if (r >= 0)
        made->made->saved.saved = true; /* its document came with it */
    else if (!made->made->stored)
        weft__session_drop(engine, made->made);
    if (r < 0 || !made->goes_on || engine->phase == GONE || send_opened(made) < 0)
        finish_command(made, r);
}

/* The event, and its document, which alone has all of the servers. */
static int send_created(command *made) {
    weft_engine *engine = made->engine;
    const weft_session *pub = &made->made->pub;
    weft_buf servers = {0}, text = {0};
    char key[ENGINE_ID + 16];
    made->made->pub.created_ms = made->made->pub.updated_ms = weft__engine_now(engine);
    int r = write_server_names(engine, pub->servers, &servers);
    if (r >= 0)
        r = weft__saved_session(engine, made->made, &text);
    weft__saved_session_key(pub->id, key);
    weft_document document = {.key = key, .data = {weft__buf_head(&text), weft__buf_len(&text)}};
    struct draft draft = {.engine = engine, .counter = "task", .number = made->number, .document = &document, .r = r};
    weft__draft_add(
        &draft, WEFT_STREAM_HUB, "session.created",
        WEFT_OBJ({"sessionId", weft_str(pub->id)}, {"number", weft_uint(made->number)}, {"agent", weft_str(pub->agent)},
                 {"folder", weft_str(engine->folder)}, {"beneath", *pub->folder ? weft_str(pub->folder) : weft_none()},
                 {"isolation", weft_str_or_none(weft__isolation_name(pub->isolation))},
                 {"title", weft_str_or_none(pub->title)},
                 {"settings", pub->settings ? weft_raw(pub->settings, strlen(pub->settings)) : weft_none()},
                 {"servers", pub->servers ? weft_raw(weft__buf_head(&servers), weft__buf_len(&servers)) : weft_none()},
                 {"agentSessionId", weft_str_or_none(pub->agent_session)}));
    add_request(made, &draft);
    r = weft__draft_send(&draft, weft__request_key(made->request), created_stored, made);
    weft__buf_done(&servers, engine->alloc);
    weft__buf_done(&text, engine->alloc);
    return r;
}

static void drop_created(command *made, int r) {
    weft__session_drop(made->engine, made->made);
    finish_command(made, r);
}

/* The agent has the conversation open, so that it exists. */
static void created_open(void *ctx, int r, const weft_json *result, const char *error) {
    command *made = ctx;
    (void) result;
    made->made->opening = false;
    keep_why(made, error);
    const weft_session *pub = &made->made->pub;
    if (r >= 0)
        r = check_phase(made->engine);
    if (r >= 0 && weft__session_find_own(made->engine, pub->agent, pub->agent_session))
        r = -EEXIST; /* somebody was quicker */
    if (r >= 0)
        r = send_created(made);
    if (r < 0)
        drop_created(made, r);
}

static int take_session_number(weft_engine *engine, command *made) {
    /* As of tasks: a session that is made with its first task has that one's number. */
    do {
        if (engine->next_task >= ENGINE_NUMBERS)
            return -EOVERFLOW;
        made->number = engine->next_task++;
        weft__name_numbered(made->id, "session-", made->number);
    } while (weft__session_known(engine, made->id));
    return 0;
}

static int begin_create(command *made, const weft_session_order *order, const weft_agent *agent, const char *folder) {
    weft_engine *engine = made->engine;
    bool placed = order->folder || order->agent_session;
    int r = take_session_number(engine, made);
    if (r >= 0)
        r = weft__session_new(engine, made->id, agent->name, &made->made);
    if (r >= 0)
        r = weft__session_fill(engine, made->made,
                               &(weft_session){.title = order->title,
                                               .folder = folder,
                                               .settings = order->settings,
                                               .servers = order->servers,
                                               .agent_session = order->agent_session,
                                               .isolation = placed
                                                                ? WEFT_ISOLATION_NONE
                                                                : weft__isolation_meant(engine, agent, order->isolation)});
    if (r >= 0)
        r = order->agent_session ? weft__pool_open(engine, agent, made->made, true, created_open, made) : send_created(made);
    if (r >= 0)
        made->made->opening = made->goes_on = order->agent_session != NULL;
    return r;
}

int weft__session_create(weft_engine *engine, const weft_session_order *order, weft_session_done *done, void *ctx) {
    char folder[WEFT_BENEATH_PATH] = "";
    int r = check_phase(engine);
    const weft_agent *agent = order->agent ? weft__agent_find(engine->agents, order->agent) : weft__agent_default(engine);
    if (r >= 0 && !agent)
        r = -ENOENT;
    if (r >= 0)
        r = check_order(engine, order);
    if (r >= 0)
        r = check_driver(engine, order, agent);
    /* An agent that knows the conversation already knows where it was held. */
    if (r >= 0 && order->isolation && order->isolation != WEFT_ISOLATION_OFF && (order->folder || order->agent_session))
        r = -EINVAL;
    if (r >= 0 && order->agent_session && weft__session_find_own(engine, agent->name, order->agent_session))
        r = -EEXIST;
    if (r >= 0 && order->folder)
        r = weft__beneath_folder(engine->folder, order->folder, true, folder);
    if (r == -ENOENT && agent)
        r = -ENOTDIR; /* the folder is not there */
    if (r < 0)
        return r;
    command *made = new_command(engine, "", NULL, done, ctx);
    if (!made)
        return -ENOMEM;
    made->request = order->request;
    r = begin_create(made, order, agent, folder);
    if (r < 0) {
        weft__session_drop(engine, made->made);
        free_command(made);
    }
    return r < 0 ? r : 0;
}

/* ---- set ---- */

static int send_set(command *made) {
    return send_event(made, "session.set",
                      WEFT_OBJ({"sessionId", weft_str(made->id)}, {"name", weft_str(made->name)},
                               {"option", weft_str_or_none(made->option)}, {"value", weft_copy(weft_doc_root(made->value))},
                               {"by", weft_str_or_none(made->by)}));
}

/* An agent that answers with all its options has said what came of it; otherwise it is what was asked for. */
static void tell_setting(const command *made, const weft_json *result) {
    weft_json options = result ? weft_get(result, "configOptions") : (weft_json){0};
    weft_session_setting setting = {made->name, made->option, *weft_doc_root(made->value)};
    if (weft_typeof(&options) != WEFT_ARRAY)
        weft__session_told_setting(made->engine, made->id, &setting);
}

/* The agent took it, or has no longer a process that could. */
static void set_by_agent(void *ctx, int r, const weft_json *result, const char *error) {
    command *made = ctx;
    if (r == -ENOTCONN || r == -EPIPE) {
        r = 0;
        result = NULL;
    }
    keep_why(made, r < 0 ? error : NULL);
    known_session *session;
    if (r >= 0) /* somebody may be closing it by now */
        r = find_free_session(made->engine, made->id, &session);
    if (r >= 0) {
        tell_setting(made, result);
        weft__facts_send(made->engine); /* what the agent said of it is stored first, so that who asked finds it */
        r = send_set(made);
    }
    if (r < 0)
        finish_command(made, r);
}

/* As far as is known; where the session is open, the agent says so itself. */
static bool is_mode_offered(const weft_engine *engine, const known_session *session, const weft_session_setting *setting) {
    const char *known = strcmp(setting->name, "mode") == 0 ? session->pub.facts[WEFT_SESSION_MODES] : NULL;
    weft_doc *doc = NULL;
    if (!known || weft_doc_parse(known, strlen(known), engine->alloc, &doc) < 0)
        return true;
    weft_json modes = weft_get(weft_doc_root(doc), "availableModes");
    const char *wanted = weft_str_of(&setting->value, "");
    bool found = weft_typeof(&modes) != WEFT_ARRAY || weft_count(&modes) == 0;
    for (weft_iter it = weft_iterate(&modes); !found && weft_next(&it);)
        found = weft__field_is(&it.value, "id", wanted);
    weft_doc_free(doc);
    return found;
}

static int check_setting(const weft_engine *engine, const known_session *session, const weft_session_setting *setting) {
    const weft_agent *agent = weft__agent_find(engine->agents, session->pub.agent);
    const weft_driver *driver = agent ? weft__pool_driver(engine, agent) : NULL;
    char *settings = NULL;
    if (setting->name && strcmp(setting->name, "title") == 0) {
        const char *title = weft_str_of(&setting->value, NULL);
        return weft_typeof(&setting->value) == WEFT_NULL || (title && *title && strlen(title) <= MAX_TITLE) ? 0 : -EINVAL;
    }
    int r = weft__settings_put(session->pub.settings, setting, engine->alloc, &settings);
    weft__free(engine->alloc, settings);
    return r < 0 ? r : !driver || !driver->set ? -EOPNOTSUPP : 0;
}

/* 1: the agent is asked first. 0: nobody has it open. */
static int ask_to_set(command *made, known_session *session, const weft_session_setting *setting) {
    int r = weft__pool_set(made->engine, session->pub.id, setting, set_by_agent, made);
    if (r == -ENOTCONN || r == -EPIPE)
        return is_mode_offered(made->engine, session, setting) ? 0 : -EINVAL;
    return r < 0 ? r : 1;
}

static int begin_setting(command *made, known_session *session, const weft_session_setting *setting) {
    made->name = copy_text_or_null(made->engine, setting->name);
    made->option = copy_text_or_null(made->engine, setting->option);
    int r = !made->name || (setting->option && !made->option)
                ? -ENOMEM
                : weft_doc_keep(&setting->value, made->engine->alloc, &made->value);
    if (r >= 0 && strcmp(setting->name, "title") != 0)
        r = ask_to_set(made, session, setting);
    if (r != 0)
        return r;
    tell_setting(made, NULL);
    return send_set(made);
}

int weft__session_set_for(weft_engine *engine, weft_request *request, const char *id, const weft_session_setting *setting,
                          const char *by, weft_session_done *done, void *ctx) {
    known_session *session;
    int r = find_free_session(engine, id, &session);
    if (r >= 0)
        r = check_setting(engine, session, setting);
    if (r < 0)
        return r;
    command *made = new_command(engine, id, by, done, ctx);
    if (made)
        made->request = request;
    r = made ? begin_setting(made, session, setting) : -ENOMEM;
    if (r < 0 && made)
        free_command(made);
    return r < 0 ? r : 0;
}

int weft__session_set(weft_engine *engine, const char *id, const weft_session_setting *setting, const char *by,
                      weft_session_done *done, void *ctx) {
    return weft__session_set_for(engine, NULL, id, setting, by, done, ctx);
}

void weft__session_act_set(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    const known_session *session = weft__session_known(engine, weft__id(data, "sessionId", id));
    (void) event;
    if (session)
        weft__pool_refresh(engine, session);
}

/* ---- open ---- */

static void on_session_opened(void *ctx, int r, const weft_json *result, const char *error) {
    command *made = ctx;
    weft_engine *engine = made->engine;
    known_session *session = weft__session_known(engine, made->id);
    (void) result;
    if (session)
        session->opening = false;
    weft__sessions_soon(engine); /* somebody may want to close it */
    keep_why(made, error);
    if (r >= 0)
        r = check_phase(engine);
    if (r >= 0)
        r = send_opened(made);
    if (r < 0)
        finish_command(made, r);
    if (engine->phase == READY)
        weft__queue_run(engine);
}

int weft__session_open(weft_engine *engine, const char *id, weft_session_done *done, void *ctx) {
    known_session *session;
    int r = find_free_session(engine, id, &session);
    if (r >= 0 && session->pub.closed)
        r = -ESTALE;
    if (r >= 0 && (session->pub.turns || session->claims || session->opening))
        r = -EBUSY;
    const weft_agent *agent = r < 0 ? NULL : weft__agent_find(engine->agents, session->pub.agent);
    if (r >= 0 && !agent)
        r = -ENOENT;
    command *made = r < 0 ? NULL : new_command(engine, id, NULL, done, ctx);
    if (r >= 0 && !made)
        r = -ENOMEM;
    if (r >= 0)
        r = weft__pool_open(engine, agent, session, false, on_session_opened, made);
    if (r >= 0)
        session->opening = true;
    else if (made)
        free_command(made);
    return r;
}

/* ---- resume ---- */

int weft__session_resume(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx) {
    known_session *session;
    int r = find_free_session(engine, id, &session);
    if (r >= 0 && !session->pub.closed)
        r = -EALREADY;
    if (r < 0)
        return r;
    command *made = new_command(engine, id, by, done, ctx);
    r = made ? send_event(made, "session.resumed", WEFT_OBJ({"sessionId", weft_str(id)}, {"by", weft_str_or_none(by)}))
             : -ENOMEM;
    if (r < 0 && made)
        free_command(made);
    return r;
}

/* ---- close, delete ---- */

typedef enum job_stage { CANCELLING, ASKING, ERASING, STORING } job_stage;

typedef struct session_job {
    weft_link link;
    known_session *session;
    command *command;
    job_stage stage;
    bool remove;
    int failed; /* a task could not be cancelled: why */
} session_job;

bool weft__session_stays(const weft_engine *engine, const char *id) {
    const known_session *session = weft__session_known(engine, id);
    return session && !(session->job && session->job->remove);
}

static void finish_job(session_job *job, int r) {
    weft_engine *engine = job->command->engine;
    known_session *session = job->session;
    command *made = job->command;
    for (weft_link *link = session->turns.next; link != &session->turns; link = link->next)
        WEFT_CONTAINER(link, known_task, turn)->leaving = false;
    session->job = NULL;
    weft__list_remove(&job->link);
    weft__free(engine->alloc, job);
    if (!session->stored) /* it was deleted */
        weft__session_drop(engine, session);
    finish_command(made, r);
    if (engine->phase == READY)
        weft__queue_run(engine);
}

/* A task of it has ended, or could not be cancelled. Its session is there as long as it has tasks. */
static void job_task_over(void *ctx, int r, const weft_task *task) {
    known_session *session = ctx;
    (void) task;
    if (!session->job)
        return;
    if (r < 0 && r != -EALREADY)
        session->job->failed = r;
    weft__sessions_soon(session->job->command->engine);
}

/* What its tasks asked is withdrawn behind their ends, which may have to be tried again: what says so is erased, too. */
static bool is_withdrawing(const weft_engine *engine, const known_session *session) {
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        const weft_question *question = &WEFT_CONTAINER(link, known_question, link)->pub;
        if (question->task && question->state == WEFT_QUESTION_OPEN && question->session &&
            strcmp(question->session, session->pub.id) == 0)
            return true;
    }
    return false;
}

/* 1: all of them have ended. 0: wait. */
static int cancel_tasks(session_job *job) {
    weft_engine *engine = job->command->engine;
    known_session *session = job->session;
    for (weft_link *link = session->turns.next, *next; link != &session->turns; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, turn);
        next = link->next;
        if (task->leaving)
            continue;
        int r = weft__task_cancel(engine, task->id, job->command->by, job_task_over, session);
        if (r < 0 && r != -EALREADY)
            return r;
        task->leaving = true;
    }
    return weft__list_empty(&session->turns) && !session->claims && !session->opening && !is_withdrawing(engine, session);
}

static void job_stored(void *ctx, int r) {
    session_job *job = ctx;
    if (r > 0)
        r = -EEXIST;
    weft_engine *engine = job->command->engine;
    bool removed = r >= 0 && job->remove && engine->phase != GONE;
    if (r >= 0 && engine->phase != GONE)
        weft__pool_close(engine, job->session->pub.id);
    finish_job(job, r);
    if (removed) /* the documents of its tasks go too, now and not at some time */
        weft__save(engine);
}

static int send_job(session_job *job) {
    const weft_session *pub = &job->session->pub;
    weft_engine *engine = job->command->engine;
    char key[ENGINE_ID + 16];
    weft__saved_session_key(pub->id, key);
    weft_document gone = {.key = key};
    struct draft draft = {.engine = engine, .document = job->remove ? &gone : NULL};
    weft__draft_add(&draft, WEFT_STREAM_HUB, job->remove ? "session.deleted" : "session.closed",
                    WEFT_OBJ({"sessionId", weft_str(pub->id)}, {"by", weft_str_or_none(job->command->by)}));
    add_request(job->command, &draft);
    job->stage = STORING;
    return weft__draft_send(&draft, weft__request_key(job->command->request), job_stored, job);
}

static void job_erased(void *ctx, int r) {
    session_job *job = ctx;
    weft_engine *engine = job->command->engine;
    if (engine->phase == GONE) /* it is finished with all others */
        return;
    if (r >= 0)
        r = check_phase(engine);
    if (r >= 0)
        r = send_job(job);
    if (r < 0)
        finish_job(job, r);
}

static int erase_of_job(session_job *job) {
    int r = weft__session_erase(job->command->engine, job->session->pub.id, job_erased, job);
    if (r >= 0)
        job->stage = ERASING;
    return r;
}

/* The agent has deleted its copy, or has not: then that is said. */
static void agent_removed(void *ctx, int r, const weft_json *result, const char *error) {
    session_job *job = ctx;
    (void) result;
    if (r < 0)
        keep_why(job->command, error ? error : weft_strerror(r));
    r = check_phase(job->command->engine);
    if (r >= 0)
        r = erase_of_job(job);
    if (r < 0)
        finish_job(job, r);
}

/* 1: it will be told. 0: there is nothing to ask for. */
static int ask_to_remove(session_job *job) {
    weft_engine *engine = job->command->engine;
    const weft_session *pub = &job->session->pub;
    const weft_agent *agent = weft__agent_find(engine->agents, pub->agent);
    if (!pub->agent_session)
        return 0;
    int r = agent ? weft__pool_remove(engine, agent, pub->agent_session, agent_removed, job) : -ENOENT;
    if (r < 0)
        keep_why(job->command, !agent             ? "the agent is no longer configured"
                               : r == -EOPNOTSUPP ? "the agent cannot delete sessions"
                                                  : weft_strerror(r));
    job->stage = r < 0 ? job->stage : ASKING;
    return r >= 0;
}

/* No task is left. The place in the process goes first: an agent does not delete what is open. What was said in the session
 * goes before the event that says so, so that it does not stay when we die in between. */
static int end_session_of_job(session_job *job) {
    weft_engine *engine = job->command->engine;
    if (!job->remove)
        return send_job(job);
    weft__pool_close(engine, job->session->pub.id);
    if (ask_to_remove(job))
        return 0;
    return erase_of_job(job);
}

static void step_job(session_job *job) {
    weft_engine *engine = job->command->engine;
    if (job->stage != CANCELLING)
        return;
    int r = job->failed < 0 ? job->failed : check_phase(engine);
    if (r >= 0)
        r = cancel_tasks(job);
    if (r > 0)
        r = end_session_of_job(job);
    if (r < 0)
        finish_job(job, r);
}

static int begin_session_job(weft_engine *engine, weft_request *request, const char *id, const char *by, bool remove,
                             weft_session_done *done, void *ctx) {
    known_session *session;
    int r = find_free_session(engine, id, &session);
    if (r >= 0 && session->pub.closed && !remove)
        r = -EALREADY;
    if (r < 0)
        return r;
    session_job *job = weft__zalloc(engine->alloc, sizeof *job);
    command *made = job ? new_command(engine, id, by, done, ctx) : NULL;
    if (!made) {
        weft__free(engine->alloc, job);
        return -ENOMEM;
    }
    made->request = request;
    *job = (session_job){.session = session, .command = made, .remove = remove};
    session->job = job;
    weft__list_push(&engine->session_jobs, &job->link);
    weft__sessions_soon(engine);
    return 0;
}

int weft__session_close(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx) {
    return begin_session_job(engine, NULL, id, by, false, done, ctx);
}

int weft__session_close_for(weft_engine *engine, weft_request *request, const char *id, const char *by,
                            weft_session_done *done, void *ctx) {
    return begin_session_job(engine, request, id, by, false, done, ctx);
}

int weft__session_remove(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx) {
    return begin_session_job(engine, NULL, id, by, true, done, ctx);
}

int weft__session_remove_for(weft_engine *engine, weft_request *request, const char *id, const char *by,
                             weft_session_done *done, void *ctx) {
    return begin_session_job(engine, request, id, by, true, done, ctx);
}

/* ---- the agent's own ---- */

int weft__agent_sessions(weft_engine *engine, const char *agent, const char *folder, const char *cursor,
                         weft_driver_done *done, void *ctx) {
    char beneath[WEFT_BENEATH_PATH], path[WEFT_BENEATH_PATH + PATH_MAX];
    int r = check_phase(engine);
    const weft_agent *known = agent ? weft__agent_find(engine->agents, agent) : weft__agent_default(engine);
    if (r < 0 || !known)
        return r < 0 ? r : -ENOENT;
    if (folder && (r = weft__beneath_folder(engine->folder, folder, true, beneath)) < 0)
        return r == -ENOENT ? -ENOTDIR : r;
    if (folder)
        snprintf(path, sizeof path, "%s%s%s", engine->folder, *beneath ? "/" : "", beneath);
    return weft__pool_list(engine, known, folder ? path : NULL, cursor, done, ctx);
}

int weft__agent_logout(weft_engine *engine, const char *agent, weft_driver_done *done, void *ctx) {
    int r = check_phase(engine);
    const weft_agent *known = weft__agent_find(engine->agents, agent);
    if (r < 0 || !known)
        return r < 0 ? r : -ENOENT;
    return weft__pool_logout(engine, known, done, ctx);
}

/* ---- all of them ---- */

static void look_at_sessions(weft_engine *engine) {
    for (weft_link *link = engine->session_jobs.next, *next; link != &engine->session_jobs; link = next) {
        next = link->next;
        step_job(WEFT_CONTAINER(link, session_job, link));
    }
    if (engine->phase == READY || engine->phase == STOPPING)
        weft__facts_send(engine);
}

static void sessions_due(weft_later *later) {
    look_at_sessions(WEFT_CONTAINER(later, weft_engine, session_later));
}

static void sessions_again(weft_timer *timer) {
    weft__sessions_soon(WEFT_CONTAINER(timer, weft_engine, session_timer));
}

void weft__sessions_init(weft_engine *engine) {
    weft__list_init(&engine->session_jobs);
    weft__list_init(&engine->told);
    weft__erasings_init(engine);
    weft__later_init(&engine->session_later, sessions_due);
    weft__timer_init(&engine->session_timer, sessions_again);
}

void weft__sessions_soon(weft_engine *engine) {
    weft__later(engine->loop, &engine->session_later);
}

void weft__sessions_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->session_jobs))
        finish_job(WEFT_CONTAINER(engine->session_jobs.next, session_job, link), -ECANCELED);
}
