/* What agents say holds for their sessions: modes, models, options, commands, titles. Only the last of each counts, so what
 * comes while an append is under way replaces what waits, and an agent that says it often costs no more than one that does
 * not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

/* Of one fact: a list of a few hundred commands. */
#define FACT_BYTES ((size_t) 64 * 1024)

/* Between two appends of one session's facts: an agent that changes its mind all the time does not fill the journal. */
#define REST_MS 1000

/* Outlives its session. */
typedef struct telling {
    weft_engine *engine;
    char id[ENGINE_ID];
} telling;

/* ---- being told ---- */

/* The newest that is known, whether stored or not; NULL: nothing is. */
static const char *newest_fact(const known_session *session, size_t fact) {
    return session->told[fact]      ? session->told[fact]
           : session->telling[fact] ? session->telling[fact]
                                    : session->facts[fact];
}

bool weft__session_only_reads(const weft_engine *engine, const char *id) {
    static const char *const known[] = {"\"read-only\"", "\"read_only\"", "\"readonly\"", "\"plan\""};
    const known_session *session = weft__session_known(engine, id);
    const char *mode = session ? newest_fact(session, WEFT_SESSION_MODE) : NULL;
    for (size_t i = 0; mode && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i], mode) == 0)
            return true;
    return false;
}

static bool is_news(const known_session *session, size_t fact, const weft_json *value) {
    const char *known = newest_fact(session, fact);
    if (!known)
        return weft_typeof(value) != WEFT_NULL;
    return strlen(known) != value->len || memcmp(known, value->text, value->len) != 0;
}

static void note_fact(weft_engine *engine, known_session *session, size_t fact, const weft_json *value) {
    if (!value->text || !is_news(session, fact, value))
        return;
    char *copy = value->len <= FACT_BYTES ? weft__strndup(engine->alloc, value->text, value->len) : NULL;
    if (!copy) {
        weft__note(engine, "%s: what its agent says of its %s cannot be kept: %s", session->pub.id,
                   weft__session_facts[fact], value->len > FACT_BYTES ? "it is too long" : "out of memory");
        return;
    }
    weft__free(engine->alloc, session->told[fact]);
    session->told[fact] = copy;
    if (weft__list_empty(&session->told_at))
        weft__list_push(&engine->told, &session->told_at);
    weft__sessions_soon(engine);
}

void weft__session_told(weft_engine *engine, const char *id, const char *name, const weft_json *value) {
    known_session *session = weft__session_known(engine, id);
    for (size_t i = 0; session && i < WEFT_SESSION_FACTS; i++)
        if (strcmp(name, weft__session_facts[i]) == 0)
            note_fact(engine, session, i, value);
    if (session && strcmp(name, "modes") == 0) {
        weft_json mode = weft_get(value, "currentModeId");
        note_fact(engine, session, WEFT_SESSION_MODE, &mode);
    }
}

/* ---- what people set ---- */

const char *weft__session_fact(const weft_engine *engine, const char *id, weft_session_fact fact) {
    const known_session *session = weft__session_known(engine, id);
    return session ? newest_fact(session, fact) : NULL;
}

static int put_option(weft_buf *out, const weft_alloc *alloc, const weft_json *option, const weft_json *value) {
    int r = weft__buf_put_text(out, alloc, "{");
    for (weft_iter it = weft_iterate(option); r >= 0 && weft_next(&it);) {
        if (weft_name_is(&it, "currentValue"))
            continue;
        r = weft__buf_put(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put_text(out, alloc, ":");
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
        if (r >= 0)
            r = weft__buf_put_text(out, alloc, ",");
    }
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, "\"currentValue\":");
    if (r >= 0)
        r = weft__buf_put(out, alloc, value->text, value->len);
    return r < 0 ? r : weft__buf_put_text(out, alloc, "}");
}

/* The options as they were said, with another value of this one. */
static int put_options(weft_buf *out, const weft_alloc *alloc, const weft_json *options, const weft_session_setting *set) {
    int r = weft__buf_put_text(out, alloc, "[");
    bool first = true;
    for (weft_iter it = weft_iterate(options); r >= 0 && weft_next(&it); first = false) {
        if (!first)
            r = weft__buf_put_text(out, alloc, ",");
        if (r >= 0 && weft__field_is(&it.value, "id", set->option))
            r = put_option(out, alloc, &it.value, &set->value);
        else if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : weft__buf_put_text(out, alloc, "]");
}

/* What cannot be made for want of memory is said by the agent when it is opened next. */
static void note_option(weft_engine *engine, known_session *session, const weft_session_setting *set) {
    const char *known = newest_fact(session, WEFT_SESSION_OPTIONS);
    weft_doc *doc = NULL, *made = NULL;
    weft_buf out = {0};
    int r = known ? weft_doc_parse(known, strlen(known), engine->alloc, &doc) : -ENOENT;
    if (r >= 0 && weft_typeof(weft_doc_root(doc)) == WEFT_ARRAY)
        r = put_options(&out, engine->alloc, weft_doc_root(doc), set);
    if (r >= 0 && weft__buf_len(&out))
        r = weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), engine->alloc, &made);
    if (made)
        note_fact(engine, session, WEFT_SESSION_OPTIONS, weft_doc_root(made));
    weft_doc_free(made);
    weft_doc_free(doc);
    weft__buf_done(&out, engine->alloc);
}

void weft__session_told_setting(weft_engine *engine, const char *id, const weft_session_setting *set) {
    known_session *session = weft__session_known(engine, id);
    if (session && strcmp(set->name, "mode") == 0)
        note_fact(engine, session, WEFT_SESSION_MODE, &set->value);
    else if (session && set->option)
        note_option(engine, session, set);
}

void weft__session_named(weft_engine *engine, const char *id, const char *agent_session) {
    const known_session *session = weft__session_known(engine, id);
    struct draft draft = {.engine = engine};
    /* One that is being created has been given its name. */
    if (!session || !session->stored)
        return;
    const char *known = session->pub.agent_session;
    if (known == agent_session || (known && agent_session && strcmp(known, agent_session) == 0))
        return;
    weft__draft_add(&draft, WEFT_STREAM_HUB, "session.agent",
                    WEFT_OBJ({"sessionId", weft_str(id)}, {"agentSessionId", weft_str_or_none(agent_session)}));
    /* Without it the next task begins a new conversation, and says so. */
    if (weft__draft_send(&draft, NULL, NULL, NULL) < 0)
        weft__note(engine, "%s: its agent's name for it could not be stored", id);
}

/* ---- storing ---- */

static bool is_telling(const known_session *session) {
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++)
        if (session->telling[i])
            return true;
    return false;
}

/* Those that could not be stored wait again, unless something newer does. */
static void take_back_facts(weft_engine *engine, known_session *session) {
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++) {
        if (!session->telling[i])
            continue;
        if (session->told[i])
            weft__free(engine->alloc, session->telling[i]);
        else
            session->told[i] = session->telling[i];
        session->telling[i] = NULL;
    }
    if (weft__list_empty(&session->told_at))
        weft__list_push(&engine->told, &session->told_at);
}

static void facts_stored(void *ctx, int r) {
    telling *made = ctx;
    weft_engine *engine = made->engine;
    known_session *session = weft__session_known(engine, made->id);
    weft__free(engine->alloc, made);
    if (!session || engine->phase == GONE)
        return;
    if (r < 0) {
        take_back_facts(engine, session);
        weft__again(engine, &engine->session_timer, r);
        return;
    }
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++)
        session->telling[i] = weft__free(engine->alloc, session->telling[i]);
    if (!weft__list_empty(&session->told_at))
        weft__sessions_soon(engine);
}

static int send_facts(weft_engine *engine, known_session *session) {
    struct draft draft = {.engine = engine};
    telling *made = weft__alloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->engine = engine;
    snprintf(made->id, sizeof made->id, "%s", session->pub.id);
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++) {
        session->telling[i] = session->told[i];
        session->told[i] = NULL;
        if (session->telling[i])
            weft__draft_add(&draft, WEFT_STREAM_HUB, "session.state",
                            WEFT_OBJ({"sessionId", weft_str(session->pub.id)}, {"name", weft_str(weft__session_facts[i])},
                                     {"value", weft_raw(session->telling[i], strlen(session->telling[i]))}));
    }
    weft__list_remove(&session->told_at);
    session->told_again = weft__add_ms(weft_loop_now(engine->loop), REST_MS);
    int r = weft__draft_send(&draft, NULL, facts_stored, made);
    if (r < 0) {
        weft__free(engine->alloc, made);
        take_back_facts(engine, session);
    }
    return r;
}

static bool may_be_sent(const known_session *session) {
    return session->stored && !is_telling(session) && !session->job;
}

void weft__facts_send(weft_engine *engine) {
    int64_t now = weft_loop_now(engine->loop), due = INT64_MAX;
    if (engine->stop_sent)
        return;
    for (weft_link *link = engine->told.next, *next; link != &engine->told; link = next) {
        known_session *session = WEFT_CONTAINER(link, known_session, told_at);
        next = link->next;
        if (!may_be_sent(session))
            continue;
        if (session->told_again > now) {
            due = session->told_again < due ? session->told_again : due;
            continue;
        }
        int r = send_facts(engine, session);
        if (r < 0) {
            weft__again(engine, &engine->session_timer, r);
            return;
        }
    }
    if (due < engine->session_timer.due)
        weft__timer_set(engine->loop, &engine->session_timer, due);
}
