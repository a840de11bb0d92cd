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

int weft__session_apply_created(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    const char *agent;
    if (!weft__id(data, "sessionId", id))
        return 0;
    known_session *session = weft__session_known(engine, id);
    if (session && session->stored)
        return 0;
    if (session && !weft__says(data, "agent", session->pub.agent)) {
        /* Another writer was quicker with this number. */
        weft__map_remove(&engine->sessions, &session->node);
        session = NULL;
    }
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

/* The members of a session's document. One that is known already was needed by a task whose document came first. */
enum { ID, AGENT, AGENT_SESSION, CREATED_MS, UPDATED_MS, TASKS, TASK };
static const char *const saved_members[] = {
    [ID] = "sessionId",
    [AGENT] = "agent",
    [AGENT_SESSION] = "agentSessionId",
    [CREATED_MS] = "createdMs",
    [UPDATED_MS] = "updatedMs",
    [TASKS] = "tasks",
    [TASK] = "task",
};
#define SAVED_MEMBERS (sizeof saved_members / sizeof saved_members[0])

int weft__session_restore(weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID], *copy = NULL;
    const char *agent, *name;
    weft_json of[SAVED_MEMBERS];
    weft__get_all(data, saved_members, SAVED_MEMBERS, of);
    if (!weft__value_id(&of[ID], id))
        return -EBADMSG;
    if (weft__value_string(&of[AGENT], &agent) < 0 || weft__value_string(&of[AGENT_SESSION], &name) < 0 ||
        (name && !(copy = weft__strndup(engine->alloc, name, strlen(name)))))
        return -ENOMEM;
    known_session *session = weft__session_known(engine, id);
    if (!session && weft__session_new(engine, id, agent ? agent : "", &session) < 0) {
        weft__free(engine->alloc, copy);
        return -ENOMEM;
    }
    if (!session->stored)
        weft__session_stored(engine, session, weft_int_of(&of[CREATED_MS], 0));
    weft__free(engine->alloc, session->agent_session);
    session->pub.agent_session = session->agent_session = copy;
    session->pub.updated_ms = weft_int_of(&of[UPDATED_MS], session->pub.created_ms);
    session->pub.tasks = (uint64_t) weft__value_between(&of[TASKS], 0, 0, INT64_MAX);
    if (weft__value_id(&of[TASK], session->task))
        session->pub.task = session->task;
    session->saved.saved = true;
    return 0;
}

void weft__session_tidy(weft_engine *engine) {
    weft_link *link = engine->all_sessions.next;
    while (engine->session_count > engine->limits.max_sessions && link != &engine->all_sessions) {
        known_session *session = WEFT_CONTAINER(link, known_session, link);
        link = link->next;
        /* Tasks that have ended and are still remembered only name it. */
        if (!session->refs && !session->claimed)
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
