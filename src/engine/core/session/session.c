/* What is known of sessions: conversations with one agent, each with a stream of its own for what the agent says.
 *
 *     created ──session.closed──▶ closed ──session.resumed──▶ created     either ──session.deleted──▶ gone
 *
 * A session begins with session.created, by a command or with the first task that goes to none. */
#include <errno.h>
#include <string.h>

#include "engine_private.h"
#include "worktrees.h"

/* What agents say of all sessions together. It is said again whenever a session is opened, so the oldest goes first. */
#define ALL_FACT_BYTES ((size_t) 64 << 20)

const char *const weft__session_facts[WEFT_SESSION_FACTS] = {"modes", "mode", "models", "options", "commands", "title"};

known_session *weft__session_known(const weft_engine *engine, const char *id) {
    weft_node *node = id ? weft__map_find(&engine->sessions, id) : NULL;
    return node ? WEFT_CONTAINER(node, known_session, node) : NULL;
}

/* ---- its texts ---- */

/* text NULL: none. What pub shows is set by the caller. */
static int replace_text(weft_engine *engine, char **to, const char *text, size_t len) {
    char *copy = text ? weft__strndup(engine->alloc, text, len) : NULL;
    if (text && !copy)
        return -ENOMEM;
    weft__free(engine->alloc, *to);
    *to = copy;
    return 0;
}

static void show_texts(known_session *session) {
    weft_session *pub = &session->pub;
    pub->agent_session = session->agent_session;
    pub->folder = session->folder ? session->folder : "";
    pub->title = session->title;
    pub->settings = session->settings;
    pub->servers = session->servers;
    pub->worktree = session->worktree;
    pub->branch = session->branch;
    pub->path = session->path;
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++)
        pub->facts[i] = session->facts[i];
}

static int set_session_text(weft_engine *engine, known_session *session, char **to, const char *text) {
    int r = replace_text(engine, to, text, text ? strlen(text) : 0);
    show_texts(session);
    return r;
}

int weft__session_set_worktree(weft_engine *engine, known_session *session, const char *name, const char *branch) {
    char path[PATH_MAX];
    bool there = engine->opts.snapshots && weft__worktree_path(engine->opts.snapshots, name, path) == 0;
    int r = set_session_text(engine, session, &session->worktree, name);
    if (r >= 0)
        r = set_session_text(engine, session, &session->branch, branch);
    return r < 0 ? r : set_session_text(engine, session, &session->path, there ? path : NULL);
}

int weft__session_clear_worktree(weft_engine *engine, known_session *session) {
    int r = set_session_text(engine, session, &session->worktree, NULL);
    if (r >= 0)
        r = set_session_text(engine, session, &session->branch, NULL);
    return r < 0 ? r : set_session_text(engine, session, &session->path, NULL);
}

int weft__session_fill(weft_engine *engine, known_session *session, const weft_session *from) {
    session->pub.isolation = from->isolation ? from->isolation : session->pub.isolation;
    int r = from->title ? set_session_text(engine, session, &session->title, from->title) : 0;
    if (r >= 0 && from->folder && *from->folder)
        r = set_session_text(engine, session, &session->folder, from->folder);
    if (r >= 0 && from->settings)
        r = set_session_text(engine, session, &session->settings, from->settings);
    if (r >= 0 && from->servers)
        r = set_session_text(engine, session, &session->servers, from->servers);
    if (r >= 0 && from->agent_session)
        r = set_session_text(engine, session, &session->agent_session, from->agent_session);
    return r;
}

/* len 0: it is no longer known. */
static int put_fact(weft_engine *engine, known_session *session, weft_session_fact fact, const char *text, size_t len) {
    size_t before = session->facts[fact] ? strlen(session->facts[fact]) : 0;
    int r = replace_text(engine, &session->facts[fact], len ? text : NULL, len);
    if (r >= 0)
        engine->fact_bytes += len - before;
    if (engine->fact_bytes > ALL_FACT_BYTES)
        weft__later(engine->loop, &engine->tidy);
    show_texts(session);
    return r;
}

/* ---- life ---- */

int weft__session_new(weft_engine *engine, const char *id, const char *agent, known_session **ret) {
    size_t id_len = strlen(id) + 1, agent_len = strlen(agent) + 1, stream = sizeof WEFT_STREAM_SESSION - 1;
    known_session *session = weft__zalloc(engine->alloc, sizeof *session + stream + id_len + agent_len);
    if (!session)
        return -ENOMEM;
    memcpy(session->text, WEFT_STREAM_SESSION, stream);
    session->stream = session->text;
    session->pub.id = memcpy(session->text + stream, id, id_len);
    session->pub.agent = memcpy(session->text + stream + id_len, agent, agent_len);
    weft__list_init(&session->link);
    weft__list_init(&session->turns);
    weft__list_init(&session->told_at);
    weft__saved_init(&session->saved, SAVED_SESSION);
    weft__map_put(&engine->sessions, &session->node, session->pub.id);
    show_texts(session);
    *ret = session;
    return 0;
}

known_session *weft__session_drop(weft_engine *engine, known_session *session) {
    if (!session)
        return NULL;
    if (session->stored)
        engine->session_count--;
    weft__saved_forget(engine, &session->saved, session->pub.id);
    weft__past_leave(engine, &session->link);
    weft__list_remove(&session->link);
    weft__list_remove(&session->told_at);
    weft__map_remove(&engine->sessions, &session->node);
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++) {
        put_fact(engine, session, (weft_session_fact) i, NULL, 0);
        weft__free(engine->alloc, session->told[i]);
        weft__free(engine->alloc, session->telling[i]);
    }
    char *texts[] = {session->agent_session, session->folder,   session->title,  session->settings, session->servers,
                     session->agent,         session->worktree, session->branch, session->path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        weft__free(engine->alloc, texts[i]);
    return weft__free(engine->alloc, session);
}

void weft__session_stored(weft_engine *engine, known_session *session, int64_t now) {
    session->stored = true;
    session->pub.created_ms = session->pub.updated_ms = now;
    /* Nobody counted what an earlier daemon kept of it: as if it were full. */
    session->bytes = engine->phase == FOLDING || engine->past_restoring ? engine->limits.keep_output : 0;
    engine->session_count++;
    weft__past_put_session(engine, session);
    weft__sessions_soon(engine);
    /* Where many have tasks that wait, none of which can go, not all are looked at for each that comes. */
    size_t stuck = engine->sessions_stuck;
    if (engine->session_count > engine->limits.max_sessions && engine->session_count > stuck + stuck / 8)
        weft__later(engine->loop, &engine->tidy);
}

/* ---- turns ---- */

static void count_turns(known_session *session, size_t turns) {
    bool any = !weft__list_empty(&session->turns);
    session->pub.turns = turns;
    session->pub.busy = any;
    session->pub.turn = any ? WEFT_CONTAINER(session->turns.next, known_task, turn)->id : NULL;
}

/* From the end, because most come in their order. */
void weft__session_join(known_session *session, known_task *task) {
    weft_link *after = session->turns.prev;
    while (after != &session->turns && WEFT_CONTAINER(after, known_task, turn)->pub.number > task->pub.number)
        after = after->prev;
    weft__list_push(after->next, &task->turn);
    task->session = session;
    count_turns(session, session->pub.turns + 1);
    if (session->job)
        weft__sessions_soon(task->engine);
}

void weft__session_leave(known_task *task) {
    known_session *session = task->session;
    task->session = NULL;
    if (!session)
        return;
    weft__list_remove(&task->turn);
    count_turns(session, session->pub.turns - 1);
    if (session->job)
        weft__sessions_soon(task->engine);
}

/* What the agent before it called the conversation means nothing to this one. */
int weft__session_move(weft_engine *engine, known_session *session, const char *agent) {
    if (strcmp(session->pub.agent, agent) == 0)
        return 0;
    int r = replace_text(engine, &session->agent, agent, strlen(agent));
    if (r < 0)
        return r;
    session->pub.agent = session->agent;
    return set_session_text(engine, session, &session->agent_session, NULL);
}

bool weft__session_free(const known_session *session) {
    return !session->job && !session->opening;
}

/* ---- events ---- */

static known_session *session_of_event(const weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    known_session *session = weft__session_known(engine, weft__id(data, "sessionId", id));
    return session && session->stored ? session : NULL;
}

static const char *const isolations[] = {
    [WEFT_ISOLATION_WORKTREE] = "worktree", [WEFT_ISOLATION_WITH_CHANGES] = "worktree+changes", [WEFT_ISOLATION_OFF] = NULL};

const char *weft__isolation_name(weft_isolation isolation) {
    return isolations[isolation];
}

static weft_isolation isolation_of(const weft_json *value) {
    for (weft_isolation i = WEFT_ISOLATION_WORKTREE; i <= WEFT_ISOLATION_WITH_CHANGES; i++)
        if (weft__value_says(value, isolations[i]))
            return i;
    return WEFT_ISOLATION_NONE;
}

/* What session.created says besides who it is. */
static int read_order(weft_engine *engine, known_session *session, const weft_json *data) {
    weft_session from = {0};
    weft_json settings = weft_get(data, "settings"), isolation = weft_get(data, "isolation");
    if (weft__member(data, "title", &from.title) < 0 || weft__member(data, "beneath", &from.folder) < 0 ||
        weft__member(data, "agentSessionId", &from.agent_session) < 0)
        return -ENOMEM;
    from.isolation = isolation_of(&isolation);
    int r = weft__session_fill(engine, session, &from);
    if (r >= 0 && weft_typeof(&settings) == WEFT_OBJECT && settings.len <= WEFT_SETTINGS_BYTES)
        r = replace_text(engine, &session->settings, settings.text, settings.len);
    show_texts(session);
    return r;
}

int weft__session_apply_created(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    const char *agent;
    if (!weft__id(data, "sessionId", id) || !*id)
        return 0;
    known_session *session = weft__session_known(engine, id);
    if (session && session->stored)
        return 0;
    if (session && !weft__field_is(data, "agent", session->pub.agent)) {
        /* Another writer was quicker with this number. */
        weft__map_remove(&engine->sessions, &session->node);
        session = NULL;
    }
    /* One that was submitted here is known already, with its agent. */
    if (!session) {
        if (weft__member(data, "agent", &agent) < 0 || weft__session_new(engine, id, agent ? agent : "", &session) < 0)
            return -ENOMEM;
        if (read_order(engine, session, data) < 0) {
            weft__session_drop(engine, session);
            return -ENOMEM;
        }
    }
    uint64_t number = (uint64_t) weft__int_between(data, "number", -1, -1, (int64_t) ENGINE_NUMBERS - 1) + 1;
    if (number > engine->next_task)
        engine->next_task = number;
    session->pub.first = event->gseq;
    /* Of one that is read back at a start, what it said may come later, and is not read. */
    if (engine->phase > FOLDING)
        session->next_seq = 1;
    weft__session_stored(engine, session, event->time_ms);
    weft__saved_changed(engine, &session->saved);
    return 0;
}

int weft__session_apply_worktree(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *name, *branch;
    known_session *session = session_of_event(engine, data);
    (void) event;
    if (weft__member(data, "worktree", &name) < 0 || weft__member(data, "branch", &branch) < 0)
        return -ENOMEM;
    return session && name && branch ? weft__session_set_worktree(engine, session, name, branch) : 0;
}

int weft__session_apply_agent(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *name;
    if (weft__member(data, "agentSessionId", &name) < 0)
        return -ENOMEM;
    known_session *session = session_of_event(engine, data);
    if (!session)
        return 0;
    /* Another conversation of the agent's has a sum of its own. */
    bool same = weft__texts_equal(session->agent_session, name);
    if (set_session_text(engine, session, &session->agent_session, name) < 0)
        return -ENOMEM;
    if (!same)
        session->cost_told = (weft_money){0};
    session->pub.updated_ms = event->time_ms;
    return 0;
}

int weft__session_apply_state(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_session *session = session_of_event(engine, data);
    weft_json value = weft_get(data, "value");
    (void) event;
    if (!value.text)
        return -EBADMSG;
    for (size_t i = 0; session && i < WEFT_SESSION_FACTS; i++)
        if (weft__field_is(data, "name", weft__session_facts[i]))
            return put_fact(engine, session, (weft_session_fact) i, value.text,
                            weft_typeof(&value) == WEFT_NULL ? 0 : value.len);
    return 0;
}

static int apply_title(weft_engine *engine, known_session *session, const weft_json *data) {
    const char *title;
    if (weft__member(data, "value", &title) < 0)
        return -ENOMEM;
    return set_session_text(engine, session, &session->title, title);
}

int weft__session_apply_set(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_session *session = session_of_event(engine, data);
    weft_session_setting setting = {.value = weft_get(data, "value")};
    char *settings;
    if (weft__member(data, "name", &setting.name) < 0 || weft__member(data, "option", &setting.option) < 0)
        return -ENOMEM;
    if (!session)
        return 0;
    session->pub.updated_ms = event->time_ms;
    if (setting.name && strcmp(setting.name, "title") == 0)
        return apply_title(engine, session, data);
    int r = weft__settings_put(session->settings, &setting, engine->alloc, &settings);
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    /* An agent need not say what it was told to do. */
    if (strcmp(setting.name, "mode") == 0)
        r = put_fact(engine, session, WEFT_SESSION_MODE, setting.value.text, setting.value.len);
    if (r < 0) {
        weft__free(engine->alloc, settings);
        return r;
    }
    weft__free(engine->alloc, session->settings);
    session->settings = settings;
    show_texts(session);
    return 0;
}

int weft__session_apply_closed(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_session *session = session_of_event(engine, data);
    if (!session)
        return 0;
    session->pub.closed = strcmp(event->type, "session.closed") == 0;
    session->pub.updated_ms = event->time_ms;
    return 0;
}

/* A command that is under way finds it gone. At a start it is not known any more, because its document went with this event,
 * but what was in it has documents that stay until the next save: a daemon that was killed in between must forget them, too.
 */
int weft__session_apply_deleted(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    known_session *session = session_of_event(engine, data);
    const char *name = weft__id(data, "sessionId", id);
    (void) event;
    if (session && (session->pub.turns || session->claims))
        return -EBADMSG; /* nobody deletes one that has tasks */
    if (name) {
        weft__task_forget_session(engine, name);
        weft__question_forget_session(engine, name);
        weft__approvals_forget_session(engine, name);
    }
    if (!session)
        return 0;
    if (session->job) {
        /* Its document goes now; the rest when the command is answered, a moment later. */
        session->stored = false;
        engine->session_count--;
        weft__past_leave(engine, &session->link);
        weft__list_remove(&session->link);
        weft__saved_forget(engine, &session->saved, session->pub.id);
        session->saved.saved = false;
    } else
        weft__session_drop(engine, session);
    return 0;
}

/* ---- saved ---- */

/* The members of a session's document. One that is known already was needed by a task whose document came first. */
enum {
    ID,
    AGENT,
    AGENT_SESSION,
    TITLE,
    BENEATH,
    SETTINGS,
    SERVERS,
    FACTS,
    CLOSED,
    CREATED_MS,
    UPDATED_MS,
    TASKS,
    TASK,
    FIRST,
    SPENT,
    SPENT_AT,
    COST_TOLD,
    ISOLATION,
    WORKTREE,
    BRANCH
};
static const char *const saved_members[] = {
    [ID] = "sessionId",
    [AGENT] = "agent",
    [AGENT_SESSION] = "agentSessionId",
    [TITLE] = "title",
    [BENEATH] = "beneath",
    [SETTINGS] = "settings",
    [SERVERS] = "mcpServers",
    [FACTS] = "facts",
    [CLOSED] = "closed",
    [CREATED_MS] = "createdMs",
    [UPDATED_MS] = "updatedMs",
    [TASKS] = "tasks",
    [TASK] = "task",
    [FIRST] = "first",
    [SPENT] = "spent",
    [SPENT_AT] = "spentAt",
    [COST_TOLD] = "costTold",
    [ISOLATION] = "isolation",
    [WORKTREE] = "worktree",
    [BRANCH] = "branch",
};
#define SAVED_MEMBERS (sizeof saved_members / sizeof saved_members[0])

static int restore_facts(weft_engine *engine, known_session *session, const weft_json *facts) {
    int r = 0;
    for (size_t i = 0; facts->text && r >= 0 && i < WEFT_SESSION_FACTS; i++) {
        weft_json fact = weft_get(facts, weft__session_facts[i]);
        if (fact.text)
            r = put_fact(engine, session, (weft_session_fact) i, fact.text, fact.len);
    }
    return r;
}

static int restore_texts(weft_engine *engine, known_session *session, const weft_json *of) {
    weft_session from = {0};
    if (weft__value_string(&of[AGENT_SESSION], &from.agent_session) < 0 || weft__value_string(&of[TITLE], &from.title) < 0 ||
        weft__value_string(&of[BENEATH], &from.folder) < 0 || weft__value_string(&of[WORKTREE], &from.worktree) < 0 ||
        weft__value_string(&of[BRANCH], &from.branch) < 0)
        return -ENOMEM;
    from.isolation = isolation_of(&of[ISOLATION]);
    int r = weft__session_fill(engine, session, &from);
    if (r >= 0 && from.worktree && from.branch)
        r = weft__session_set_worktree(engine, session, from.worktree, from.branch);
    if (r >= 0 && weft_typeof(&of[SETTINGS]) == WEFT_OBJECT && of[SETTINGS].len <= WEFT_SETTINGS_BYTES)
        r = replace_text(engine, &session->settings, of[SETTINGS].text, of[SETTINGS].len);
    if (r >= 0 && weft_typeof(&of[SERVERS]) == WEFT_ARRAY)
        r = replace_text(engine, &session->servers, of[SERVERS].text, of[SERVERS].len);
    if (r >= 0)
        r = restore_facts(engine, session, &of[FACTS]);
    show_texts(session);
    return r;
}

int weft__session_restore(weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    const char *agent;
    weft_json of[SAVED_MEMBERS];
    weft__get_all(data, saved_members, SAVED_MEMBERS, of);
    if (!weft__value_id(&of[ID], id) || !*id)
        return -EBADMSG;
    if (weft__value_string(&of[AGENT], &agent) < 0)
        return -ENOMEM;
    known_session *session = weft__session_known(engine, id);
    bool fresh = !session;
    if (fresh && weft__session_new(engine, id, agent ? agent : "", &session) < 0)
        return -ENOMEM;
    if (!session->stored)
        weft__session_stored(engine, session, weft_int_of(&of[CREATED_MS], 0));
    int r = restore_texts(engine, session, of);
    if (r < 0) {
        if (fresh) /* half of it must not be known: it is read again */
            weft__session_drop(engine, session);
        return r;
    }
    session->pub.closed = weft_bool_of(&of[CLOSED], false);
    session->pub.updated_ms = weft_int_of(&of[UPDATED_MS], session->pub.created_ms);
    session->pub.tasks = (uint64_t) weft__value_between(&of[TASKS], 0, 0, INT64_MAX);
    session->pub.first = (uint64_t) weft__value_between(&of[FIRST], 0, 0, INT64_MAX);
    weft__spent_read(&session->spent, &of[SPENT]);
    session->spent_at = (uint64_t) weft__value_between(&of[SPENT_AT], 0, 0, INT64_MAX);
    if (!weft__money_read(&of[COST_TOLD], &session->cost_told))
        session->cost_told = (weft_money){0};
    if (weft__value_id(&of[TASK], session->task))
        session->pub.task = session->task;
    session->saved.saved = true;
    return 0;
}

/* ---- limits ---- */

static void forget_facts(weft_engine *engine) {
    for (weft_link *link = engine->all_sessions.next; engine->fact_bytes > ALL_FACT_BYTES && link != &engine->all_sessions;
         link = link->next)
        for (size_t i = 0; i < WEFT_SESSION_FACTS; i++)
            put_fact(engine, WEFT_CONTAINER(link, known_session, link), (weft_session_fact) i, NULL, 0);
}

void weft__session_tidy(weft_engine *engine) {
    weft_link *link = engine->all_sessions.next;
    while (engine->session_count > engine->limits.max_sessions && link != &engine->all_sessions) {
        known_session *session = WEFT_CONTAINER(link, known_session, link);
        link = link->next;
        /* Tasks that have ended and are still remembered only name it. */
        if (!session->pub.turns && !session->claims && weft__session_free(session))
            weft__session_drop(engine, session);
    }
    engine->sessions_stuck = engine->session_count > engine->limits.max_sessions ? engine->session_count : 0;
    forget_facts(engine);
}

/* ---- for everybody ---- */

const weft_session *weft__session_find(const weft_engine *engine, const char *id) {
    known_session *session = weft__session_known(engine, id);
    return session && session->stored ? &session->pub : NULL;
}

const weft_session *weft__session_find_own(const weft_engine *engine, const char *agent, const char *agent_session) {
    for (weft_link *link = engine->all_sessions.prev; link != &engine->all_sessions; link = link->prev) {
        const weft_session *pub = &WEFT_CONTAINER(link, known_session, link)->pub;
        if (pub->agent_session && strcmp(pub->agent_session, agent_session) == 0 && strcmp(pub->agent, agent) == 0)
            return pub;
    }
    return NULL;
}

static const weft_session *session_at(const weft_engine *engine, const weft_link *link) {
    return link == &engine->all_sessions ? NULL : &WEFT_CONTAINER(link, known_session, link)->pub;
}

const weft_session *weft__session_newest(const weft_engine *engine) {
    return session_at(engine, engine->all_sessions.prev);
}

const weft_session *weft__session_older(const weft_engine *engine, const weft_session *session) {
    return session_at(engine, WEFT_CONTAINER(session, known_session, pub)->link.prev);
}
