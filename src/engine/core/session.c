/* What is known of sessions: conversations with one agent, each with a stream of its own for what the agent says. */
#include <errno.h>
#include <string.h>

#include "engine_private.h"

known_session *weft__session_known(const weft_engine *engine, const char *id) {
    weft_node *node = id ? weft__map_find(&engine->sessions, id) : NULL;
    return node ? WEFT_CONTAINER(node, known_session, node) : NULL;
}

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
    weft__saved_init(&session->saved, SAVED_SESSION);
    weft__map_put(&engine->sessions, &session->node, session->pub.id);
    *ret = session;
    return 0;
}

known_session *weft__session_drop(weft_engine *engine, known_session *session) {
    if (!session)
        return NULL;
    if (session->stored)
        engine->session_count--;
    weft__saved_forget(engine, &session->saved, session->pub.id);
    weft__list_remove(&session->link);
    weft__map_remove(&engine->sessions, &session->node);
    weft__free(engine->alloc, session->agent_session);
    return weft__free(engine->alloc, session);
}

void weft__session_stored(weft_engine *engine, known_session *session, int64_t now) {
    session->stored = true;
    session->pub.created_ms = session->pub.updated_ms = now;
    /* Nobody counted what an earlier daemon kept of it: as if it were full. */
    session->bytes = engine->phase == FOLDING ? engine->limits.keep_output : 0;
    engine->session_count++;
    weft__list_push(&engine->all_sessions, &session->link);
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
}

void weft__session_leave(known_task *task) {
    known_session *session = task->session;
    task->session = NULL;
    if (!session)
        return;
    weft__list_remove(&task->turn);
    count_turns(session, session->pub.turns - 1);
}

/* ---- events ---- */

int weft__session_apply_created(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    const char *agent;
    if (!weft__id(data, "sessionId", id))
        return 0;
    known_session *session = weft__session_known(engine, id);
    if (session && session->stored)
        return 0;
    /* One that was submitted here is known already, with its agent. */
    if (!session && weft__member(data, "agent", &agent) < 0)
        return -ENOMEM;
    if (!session && weft__session_new(engine, id, agent ? agent : "", &session) < 0)
        return -ENOMEM;
    weft__session_stored(engine, session, event->time_ms);
    return 0;
}

int weft__session_apply_agent(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID], *copy = NULL;
    const char *name;
    if (weft__member(data, "agentSessionId", &name) < 0)
        return -ENOMEM;
    known_session *session = weft__session_known(engine, weft__id(data, "sessionId", id));
    if (!session)
        return 0;
    if (name && !(copy = weft__strndup(engine->alloc, name, strlen(name))))
        return -ENOMEM;
    weft__free(engine->alloc, session->agent_session);
    session->pub.agent_session = session->agent_session = copy;
    session->pub.updated_ms = event->time_ms;
    return 0;
}

void weft__session_tidy(weft_engine *engine) {
    weft_link *link = engine->all_sessions.next;
    while (engine->session_count > engine->limits.max_sessions && link != &engine->all_sessions) {
        known_session *session = WEFT_CONTAINER(link, known_session, link);
        link = link->next;
        /* Tasks that have ended and are still remembered only name it. */
        if (!session->pub.turns && !session->claims)
            weft__session_drop(engine, session);
    }
}

const weft_session *weft__session_find(const weft_engine *engine, const char *id) {
    known_session *session = weft__session_known(engine, id);
    return session && session->stored ? &session->pub : NULL;
}

static const weft_session *at(const weft_engine *engine, const weft_link *link) {
    return link == &engine->all_sessions ? NULL : &WEFT_CONTAINER(link, known_session, link)->pub;
}

const weft_session *weft__session_newest(const weft_engine *engine) {
    return at(engine, engine->all_sessions.prev);
}

const weft_session *weft__session_older(const weft_engine *engine, const weft_session *session) {
    return at(engine, WEFT_CONTAINER(session, known_session, pub)->link.prev);
}
