/* What is known of tasks, sessions and questions, saved by key: one document for each, and one for the hub.
 *
 * A start reads the documents and then only the events that came after them, however long the journal is; and because they
 * say everything that still matters, events may be trimmed up to the last save. A save writes what has changed since the one
 * before. It takes what is known at one moment, so nobody has to wait for it and it waits for nobody.
 *
 * Much is written in several pieces. The hub's document comes with the last of them, when nothing else has changed: then
 * all documents together say what was known after one event, whose position it holds. A piece without the last one leaves
 * documents that are newer than that; the events between are then applied to what already knows of them, which changes
 * nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "write.h"

#define SAVE_CHANGES 500               /* things that have changed before they are saved, or */
#define SAVE_EVENTS 2000               /* events of the hub's stream: so many a start reads, at most */
#define PIECE_DOCUMENTS 500            /* of one append, */
#define PIECE_BYTES ((size_t) 1 << 20) /* about */
#define KEY_BYTES (ENGINE_ID + 16)
#define HUB WEFT_SAVED_HUB
#define TASK "task/"
#define SESSION "session/"
#define QUESTION "question/"
#define REQUESTS "requests/"

/* A document that is to be deleted. */
typedef struct forgotten {
    weft_link link;
    char key[KEY_BYTES];
} forgotten;

/* Outlives the engine while it is under way. */
typedef struct saving {
    weft_engine *engine; /* NULL: it is gone */
    const weft_alloc *alloc;
    uint64_t gseq, number;
    bool last;
    bool stopping; /* it was the engine's state when this was written */
} saving;

struct piece {
    weft_engine *engine;
    weft_buf text;
    weft_document documents[PIECE_DOCUMENTS + 1];
    char keys[PIECE_DOCUMENTS + 1][KEY_BYTES];
    size_t count;
    int r;
};

/* ---- what has changed ---- */

void weft__saved_init(saved_mark *mark, saved_kind kind) {
    mark->kind = kind;
    weft__list_init(&mark->link);
}

void weft__saved_changed(weft_engine *engine, saved_mark *mark) {
    if (weft__list_empty(&mark->link)) {
        weft__list_push(&engine->changed, &mark->link);
        engine->changed_count++;
    }
}

static void mark_everything_changed(weft_engine *engine) {
    for (weft_link *link = engine->all_sessions.next; link != &engine->all_sessions; link = link->next)
        weft__saved_changed(engine, &WEFT_CONTAINER(link, known_session, link)->saved);
    for (weft_link *link = engine->all_tasks.next; link != &engine->all_tasks; link = link->next)
        weft__saved_changed(engine, &WEFT_CONTAINER(link, known_task, all)->saved);
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->stored)
            weft__saved_changed(engine, &question->saved);
    }
    for (request_segment *segment = NULL; (segment = weft__requests_next(engine, segment));)
        weft__saved_changed(engine, weft__requests_mark(segment));
}

static bool save_is_due(const weft_engine *engine) {
    return engine->changed_count >= SAVE_CHANGES || engine->unsaved_events >= SAVE_EVENTS;
}

void weft__save_if_due(weft_engine *engine) {
    if (engine->phase == READY && save_is_due(engine))
        weft__save(engine);
}

/* The session first, so that it is read back before its task. */
static void note_things(weft_engine *engine, const weft_json *data) {
    char id[ENGINE_ID];
    static const char *const names[] = {"taskId", "sessionId", "questionId"};
    weft_json ids[3];
    weft__get_all(data, names, 3, ids);
    known_session *session = weft__session_known(engine, weft__value_id(&ids[1], id));
    if (session && session->stored)
        weft__saved_changed(engine, &session->saved);
    known_task *task = weft__task_known(engine, weft__value_id(&ids[0], id));
    if (task && task->stored)
        weft__saved_changed(engine, &task->saved);
    known_question *question = weft__question_known(engine, weft__value_id(&ids[2], id));
    if (question && question->stored)
        weft__saved_changed(engine, &question->saved);
}

void weft__saved_note(weft_engine *engine, const weft_event *event, const weft_json *data) {
    if (strcmp(event->stream, WEFT_STREAM_HUB) != 0)
        return;
    if (event->seq > engine->hub_seq)
        engine->hub_seq = event->seq;
    engine->unsaved_events++;
    if (data)
        note_things(engine, data);
    weft__save_if_due(engine);
}

static const char *prefix_of(saved_kind kind) {
    static const char *const prefixes[] = {
        [SAVED_TASK] = TASK, [SAVED_SESSION] = SESSION, [SAVED_QUESTION] = QUESTION, [SAVED_REQUESTS] = REQUESTS};
    return prefixes[kind];
}

/* Without memory for it the document stays: it is read at the next start and forgotten again. */
void weft__saved_forget(weft_engine *engine, saved_mark *mark, const char *id) {
    if (!weft__list_empty(&mark->link)) {
        weft__list_remove(&mark->link);
        engine->changed_count--;
    }
    forgotten *made = mark->saved && engine->phase != GONE ? weft__zalloc(engine->alloc, sizeof *made) : NULL;
    if (!made)
        return;
    snprintf(made->key, sizeof made->key, "%s%s", prefix_of(mark->kind), id);
    weft__list_push(&engine->forgotten, &made->link);
    engine->forgotten_count++;
}

/* ---- writing ---- */

static bool piece_is_full(const struct piece *piece) {
    return piece->r < 0 || piece->count >= PIECE_DOCUMENTS || weft__buf_len(&piece->text) >= PIECE_BYTES;
}

static void add_key(struct piece *piece, const char *prefix, const char *id) {
    char *key = piece->keys[piece->count];
    size_t begin = strlen(prefix), len = strnlen(id, KEY_BYTES - 1 - begin);
    memcpy(key, prefix, begin);
    memcpy(key + begin, id, len);
    key[begin + len] = '\0';
    piece->documents[piece->count] = (weft_document){.key = piece->keys[piece->count]};
}

/* The text may still move: its place is known when the piece is sent. */
static void end_document(struct piece *piece, const char *prefix, const char *id, size_t before) {
    if (piece->r < 0)
        return;
    add_key(piece, prefix, id);
    piece->documents[piece->count++].data = (weft_bytes){"", weft__buf_len(&piece->text) - before};
}

static void add_document(struct piece *piece, const char *prefix, const char *id, weft_val data) {
    size_t before = weft__buf_len(&piece->text);
    if (piece->r >= 0)
        piece->r = weft__write_val(&piece->text, piece->engine->alloc, &data);
    end_document(piece, prefix, id, before);
}

static void place_documents(struct piece *piece) {
    const char *at = weft__buf_head(&piece->text);
    for (size_t i = 0; i < piece->count; i++) {
        if (!piece->documents[i].data.data)
            continue;
        piece->documents[i].data.data = at;
        at += piece->documents[i].data.len;
    }
}

static weft_val raw_or_none(const char *json) {
    return json ? weft_raw(json, strlen(json)) : weft_none();
}

static weft_val raw_of(const weft_buf *text) {
    return weft_raw(weft__buf_head(text), weft__buf_len(text));
}

int weft__saved_task(weft_engine *engine, const known_task *task, weft_buf *out) {
    const weft_task *pub = &task->pub;
    bool over = pub->state >= WEFT_TASK_COMPLETED;
    weft_member members[TASK_DATA], changes[WEFT_CHANGES_MEMBERS];
    weft_buf spent = {0};
    int r = task->spent.turns ? weft__spent_write(&task->spent, engine->alloc, &spent) : 0;
    const weft_member end[] = {
        {"completedMs", weft_int(pub->completed_ms)},
        {"seq", weft_uint(task->end_seq)},
        {"error", weft_str_or_none(pub->error)},
        {"reason", weft_str_or_none(pub->reason)},
        {"stopReason", weft_str_or_none(pub->stop_reason)},
        {"exitCode", weft_int(pub->exit_code)},
        {"signal", pub->signal ? weft_int(pub->signal) : weft_none()},
        {"usage", raw_or_none(pub->usage)},
        {"output", weft_strn(pub->tail.data, pub->tail.len)},
        {"outputBytes", weft_uint(pub->output_bytes)},
        {"outputFrom", task->output_from ? weft_uint(task->output_from) : weft_none()},
        {"outputTo", task->output_from ? weft_uint(task->output_to) : weft_none()},
        {"outputTruncated", pub->output_cut ? weft_bool(true) : weft_none()},
        {"seen", pub->seen ? weft_bool(true) : weft_none()},
    };
    weft_val data = WEFT_OBJ({"state", weft_str(weft__task_states[pub->state])}, {"at", weft_uint(engine->applied)},
                             {"createdMs", weft_int(pub->created_ms)}, {"startedMs", weft_int(pub->started_ms)},
                             {"attempt", weft_int(pub->attempt)},
                             {"task", task->said ? raw_or_none(task->said) : weft__task_data(task, members)},
                             {"changes", weft__changes_val(pub->changes, true, changes)},
                             {"end", over ? weft_obj(end, sizeof end / sizeof end[0]) : weft_none()},
                             {"spent", weft__buf_len(&spent) ? raw_of(&spent) : weft_none()},
                             {"resumes", task->resumes ? weft_bool(true) : weft_none()},
                             {"lease", task->lease && weft__task_is_lent(task) ? weft_uint(task->lease) : weft_none()},
                             {"leaseAt", task->lease_at ? weft_uint(task->lease_at) : weft_none()});
    if (r >= 0)
        r = weft__write_val(out, engine->alloc, &data);
    weft__buf_done(&spent, engine->alloc);
    return r;
}

static void add_task(struct piece *piece, known_task *task) {
    size_t before = weft__buf_len(&piece->text);
    if (piece->r >= 0)
        piece->r = weft__saved_task(piece->engine, task, &piece->text);
    weft__task_forget_said(task);
    end_document(piece, TASK, task->pub.id, before);
}

#define SESSION_MEMBERS 20
/* What the document of a session is made of, until it is written. */
struct session_parts {
    weft_member members[SESSION_MEMBERS], facts[WEFT_SESSION_FACTS], told[2];
    weft_buf spent;
    char amount[WEFT_MONEY_TEXT];
};

static int session_data(const weft_engine *engine, const known_session *session, struct session_parts *parts) {
    const weft_session *pub = &session->pub;
    const char *currency = session->cost_told.currency;
    size_t known = 0;
    for (size_t i = 0; i < WEFT_SESSION_FACTS; i++)
        if (pub->facts[i])
            parts->facts[known++] = (weft_member){weft__session_facts[i], raw_or_none(pub->facts[i])};
    int r = session->spent.turns ? weft__spent_write(&session->spent, engine->alloc, &parts->spent) : 0;
    if (*currency) {
        const char *amount = weft__money_text(session->cost_told.nano, parts->amount);
        parts->told[0] = (weft_member){"amount", weft_raw(amount, strlen(amount))};
        parts->told[1] = (weft_member){"currency", weft_str(currency)};
    }
    const weft_member all[SESSION_MEMBERS] = {
        {"sessionId", weft_str(pub->id)},
        {"agent", weft_str(pub->agent)},
        {"agentSessionId", weft_str_or_none(pub->agent_session)},
        {"beneath", *pub->folder ? weft_str(pub->folder) : weft_none()},
        {"title", weft_str_or_none(pub->title)},
        {"settings", raw_or_none(pub->settings)},
        {"mcpServers", raw_or_none(pub->servers)},
        {"facts", known ? weft_obj(parts->facts, known) : weft_none()},
        {"closed", pub->closed ? weft_bool(true) : weft_none()},
        {"createdMs", weft_int(pub->created_ms)},
        {"updatedMs", weft_int(pub->updated_ms)},
        {"tasks", weft_uint(pub->tasks)},
        {"task", weft_str_or_none(pub->task)},
        {"first", pub->first ? weft_uint(pub->first) : weft_none()},
        {"spent", weft__buf_len(&parts->spent) ? raw_of(&parts->spent) : weft_none()},
        {"spentAt", session->spent_at ? weft_uint(session->spent_at) : weft_none()},
        {"costTold", *currency ? weft_obj(parts->told, 2) : weft_none()},
        {"isolation", weft_str_or_none(weft__isolation_name(pub->isolation))},
        {"worktree", weft_str_or_none(pub->worktree)},
        {"branch", weft_str_or_none(pub->branch)},
    };
    memcpy(parts->members, all, sizeof all);
    return r;
}

int weft__saved_session(weft_engine *engine, const known_session *session, weft_buf *out) {
    struct session_parts parts = {.spent = {0}};
    int r = session_data(engine, session, &parts);
    weft_val data = weft_obj(parts.members, SESSION_MEMBERS);
    if (r >= 0)
        r = weft__write_val(out, engine->alloc, &data);
    weft__buf_done(&parts.spent, engine->alloc);
    return r;
}

static void add_session(struct piece *piece, const known_session *session) {
    size_t before = weft__buf_len(&piece->text);
    if (piece->r >= 0)
        piece->r = weft__saved_session(piece->engine, session, &piece->text);
    end_document(piece, SESSION, session->pub.id, before);
}

void weft__saved_session_key(const char *id, char ret[ENGINE_ID + 16]) {
    snprintf(ret, KEY_BYTES, "%s%s", SESSION, id);
}

static void add_question(struct piece *piece, const known_question *question) {
    const weft_question *pub = &question->pub;
    weft_member members[24];
    weft_val data = weft__question_data(question, members);
    const weft_member more[] = {
        {"state", weft_str(weft__question_states[pub->state])},
        {"createdMs", weft_int(pub->created_ms)},
        {"orphaned", weft_bool(pub->orphaned)},
        {"acted", pub->acted ? weft_bool(true) : weft_none()},
        {"option", weft_str_or_none(pub->option)},
        {"by", weft_str_or_none(pub->by)},
        {"text", weft_str_or_none(pub->text)},
        {"approvalId", weft_str_or_none(pub->approval)},
        {"content", raw_or_none(pub->content)},
    };
    memcpy(members + data.len, more, sizeof more);
    add_document(piece, QUESTION, pub->id, weft_obj(members, data.len + sizeof more / sizeof more[0]));
}

static void add_requests(struct piece *piece, const request_segment *segment) {
    weft_buf list = {0};
    char id[ENGINE_ID];
    uint64_t number = weft__requests_number(segment);
    int r = weft__requests_write(segment, piece->engine->alloc, &list);
    snprintf(id, sizeof id, "%" PRIu64, number);
    if (r < 0)
        piece->r = r;
    else
        add_document(
            piece, REQUESTS, id,
            WEFT_OBJ({"number", weft_uint(number)}, {"requests", weft_raw(weft__buf_head(&list), weft__buf_len(&list))}));
    weft__buf_done(&list, piece->engine->alloc);
}

static void add_changed(struct piece *piece, saved_mark *mark) {
    if (mark->kind == SAVED_TASK)
        add_task(piece, WEFT_CONTAINER(mark, known_task, saved));
    else if (mark->kind == SAVED_SESSION)
        add_session(piece, WEFT_CONTAINER(mark, known_session, saved));
    else if (mark->kind == SAVED_QUESTION)
        add_question(piece, WEFT_CONTAINER(mark, known_question, saved));
    else
        add_requests(piece, weft__requests_of_mark(mark));
    if (piece->r < 0)
        return;
    mark->saved = true;
    weft__list_remove(&mark->link);
    piece->engine->changed_count--;
}

/* Deleted first: what was forgotten and is known again has a document in this piece or a later one. */
static void add_forgotten(struct piece *piece) {
    weft_engine *engine = piece->engine;
    while (!weft__list_empty(&engine->forgotten) && !piece_is_full(piece)) {
        forgotten *first = WEFT_CONTAINER(engine->forgotten.next, forgotten, link);
        add_key(piece, first->key, "");
        piece->count++;
        weft__list_remove(&first->link);
        weft__list_push(&engine->forgetting, &first->link);
        engine->forgotten_count--;
    }
}

static void free_forgotten(weft_engine *engine, weft_link *list) {
    while (!weft__list_empty(list)) {
        forgotten *first = WEFT_CONTAINER(list->next, forgotten, link);
        weft__list_remove(&first->link);
        weft__free(engine->alloc, first);
    }
}

/* Their documents are still there. */
static void forget_again(weft_engine *engine) {
    while (!weft__list_empty(&engine->forgetting)) {
        weft_link *last = engine->forgetting.prev;
        weft__list_remove(last);
        weft__list_push(engine->forgotten.next, last);
        engine->forgotten_count++;
    }
}

static void add_hub(struct piece *piece) {
    weft_engine *engine = piece->engine;
    const uint64_t *of = engine->counts.of;
    weft_buf switches = {0}, ages = {0}, firings = {0}, cost = {0}, approvals = {0}, open = {0}, runners = {0};
    int r = weft__retention_write_switches(engine, &switches);
    if (r >= 0)
        r = weft__firings_write(engine, &firings);
    if (r >= 0)
        r = weft__cost_write(engine, &cost);
    if (r >= 0)
        r = weft__approvals_write(engine, &approvals);
    if (r >= 0)
        r = weft__runners_write(engine, &runners);
    if (r >= 0)
        r = weft__age_write(&engine->age, engine->alloc, &ages);
    int open_r = r < 0 ? r : weft__past_write_open(engine, &open);
    r = open_r < 0 ? open_r : r;
    if (r >= 0)
        add_document(piece, HUB, "",
                     WEFT_OBJ({"gseq", weft_uint(engine->applied)}, {"seq", weft_uint(engine->hub_seq)},
                              {"tasks", weft_uint(engine->next_task)}, {"questions", weft_uint(engine->next_question)},
                              {"observedMs", weft_int(weft__retention_observed(engine))},
                              {"totals", WEFT_OBJ({"completed", weft_uint(of[WEFT_TASK_COMPLETED])},
                                                  {"failed", weft_uint(of[WEFT_TASK_FAILED])},
                                                  {"cancelled", weft_uint(of[WEFT_TASK_CANCELLED])})},
                              {"versions", weft_uint(engine->next_version)}, {"agent", weft_str_or_none(engine->chosen)},
                              {"switches", raw_of(&switches)}, {"fired", raw_of(&firings)}, {"ages", raw_of(&ages)},
                              {"cost", raw_of(&cost)}, {"costAt", weft_uint(engine->cost_at)},
                              {"approvals", raw_of(&approvals)}, {"runners", raw_of(&runners)},
                              {"open", open_r > 0 ? raw_of(&open) : weft_none()}));
    else
        piece->r = r;
    weft__buf_done(&switches, engine->alloc);
    weft__buf_done(&ages, engine->alloc);
    weft__buf_done(&firings, engine->alloc);
    weft__buf_done(&cost, engine->alloc);
    weft__buf_done(&approvals, engine->alloc);
    weft__buf_done(&runners, engine->alloc);
    weft__buf_done(&open, engine->alloc);
}

static bool fill_piece(struct piece *piece) {
    weft_engine *engine = piece->engine;
    add_forgotten(piece);
    while (!weft__list_empty(&engine->changed) && !piece_is_full(piece))
        add_changed(piece, WEFT_CONTAINER(engine->changed.next, saved_mark, link));
    bool last = weft__list_empty(&engine->changed) && weft__list_empty(&engine->forgotten);
    if (last && piece->r >= 0)
        add_hub(piece);
    return last;
}

/* What was written is not: everything is to be saved again. */
static void save_failed(weft_engine *engine, int r) {
    engine->save_wanted = false;
    forget_again(engine);
    mark_everything_changed(engine);
    engine->unsaved_events = 0; /* and not before as much has come again */
    weft__retention_save_failed(engine);
    weft__erasings_saved(engine, r, 0);
    weft__stop_check(engine);
}

static void on_saved(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    saving *made = ctx;
    weft_engine *engine = made->engine;
    (void) events, (void) count, (void) repeat;
    uint64_t gseq = made->gseq, number = made->number;
    bool last = made->last, made_stopping = made->stopping;
    weft__free(made->alloc, made);
    if (!engine)
        return;
    engine->saving = NULL;
    if (r < 0) {
        engine->save_failed = true;
        save_failed(engine, r);
        return;
    }
    engine->save_failed = false;
    free_forgotten(engine, &engine->forgetting);
    if (last) {
        engine->saved_gseq = gseq;
        engine->open_saved = made_stopping;
        weft__retention_saved(engine, gseq);
        weft__erasings_saved(engine, 0, number);
    }
    if (!last || engine->save_wanted)
        weft__save(engine);
    weft__stop_check(engine);
}

static int send_piece(struct piece *piece, bool last) {
    weft_engine *engine = piece->engine;
    saving *made = piece->r < 0 ? NULL : weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return piece->r < 0 ? piece->r : -ENOMEM;
    *made = (saving){.engine = engine,
                     .alloc = engine->alloc,
                     .gseq = engine->applied,
                     .number = ++engine->saves,
                     .last = last,
                     .stopping = engine->phase == STOPPING};
    place_documents(piece);
    int r = weft__store_append(engine->store, &(weft_append){.documents = piece->documents, .document_count = piece->count},
                               on_saved, made);
    if (r < 0)
        weft__free(engine->alloc, made);
    else
        engine->saving = made;
    return r;
}

void weft__save(weft_engine *engine) {
    engine->save_wanted = engine->saving != NULL;
    if (engine->saving)
        return;
    struct piece *piece = weft__zalloc(engine->alloc, sizeof *piece);
    int r = piece ? 0 : -ENOMEM;
    if (piece) {
        piece->engine = engine;
        bool last = fill_piece(piece);
        if (last)
            engine->unsaved_events = 0;
        r = send_piece(piece, last);
        weft__buf_done(&piece->text, engine->alloc);
        weft__free(engine->alloc, piece);
    }
    engine->save_failed = r < 0;
    if (r < 0)
        save_failed(engine, r);
}

bool weft__save_unfinished(const weft_engine *engine) {
    return engine->saving ||
           (!engine->save_failed && (engine->unsaved_events || (engine->opts.early && !engine->open_saved)));
}

void weft__saved_drop(weft_engine *engine) {
    if (engine->saving)
        engine->saving->engine = NULL;
    free_forgotten(engine, &engine->forgotten);
    free_forgotten(engine, &engine->forgetting);
}

/* ---- reading ---- */

/* It is kept until everything is read: what is known of tasks changes the counts. */
static int restore_hub(weft_engine *engine, const weft_json *data) {
    weft_event event = {.gseq = (uint64_t) weft__int_between(data, "gseq", 0, 0, INT64_MAX)};
    weft_json switches = weft_get(data, "switches"), totals = weft_get(data, "totals"), ages = weft_get(data, "ages");
    weft_json firings = weft_get(data, "fired"), cost = weft_get(data, "cost");
    weft__age_read(&engine->age, &ages, engine->limits.keep_ms);
    int r = weft__retention_apply_counted(engine, &event, data);
    for (int state = WEFT_TASK_COMPLETED; state < WEFT_TASK_STATES; state++)
        engine->saved_counts.of[state] = (uint64_t) weft__int_between(&totals, weft__task_states[state], 0, 0, INT64_MAX);
    if (r >= 0)
        r = weft__agent_apply_chosen(engine, &event, data);
    for (weft_iter it = weft_iterate(&switches); r >= 0 && weft_next(&it);)
        r = weft__retention_apply_switched(engine, &(weft_event){.time_ms = weft_get_int(&it.value, "time", 0)}, &it.value);
    if (r >= 0)
        r = weft__firings_restore(engine, &firings);
    if (r >= 0)
        r = weft__cost_restore(engine, &cost,
                               (uint64_t) weft__int_between(data, "costAt", (int64_t) event.gseq, 0, INT64_MAX));
    weft_json approvals = weft_get(data, "approvals");
    if (r >= 0)
        r = weft__approvals_restore(engine, &approvals, event.gseq);
    weft_json runners = weft_get(data, "runners");
    if (r >= 0)
        r = weft__runners_restore(engine, &runners);
    if (r < 0)
        return r;
    engine->saved_gseq = event.gseq;
    uint64_t versions = (uint64_t) weft__int_between(data, "versions", 1, 1, (int64_t) ENGINE_NUMBERS);
    if (versions > engine->next_version)
        engine->next_version = versions;
    engine->hub_seq = (uint64_t) weft__int_between(data, "seq", 0, 0, INT64_MAX);
    return 0;
}

static bool key_begins(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int restore_document(weft_engine *engine, const char *key, const weft_json *data) {
    if (weft_typeof(data) != WEFT_OBJECT)
        return -EBADMSG;
    return strcmp(key, HUB) == 0                  ? restore_hub(engine, data)
           : key_begins(key, TASK)                ? weft__task_restore(engine, data)
           : key_begins(key, SESSION)             ? weft__session_restore(engine, data)
           : key_begins(key, QUESTION)            ? weft__question_restore(engine, data)
           : key_begins(key, REQUESTS)            ? weft__requests_restore(engine, data)
           : key_begins(key, WEFT_SAVED_ITEM)     ? weft__item_restore(engine, data)
           : strcmp(key, WEFT_SAVED_CONTEXT) == 0 ? weft__context_restore(engine, data)
                                                  : 0; /* somebody else's */
}

int weft__saved_restore(weft_engine *engine, const weft_event *document) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(document->data.data, document->data.len, engine->alloc, &doc);
    if (r == -ENOMEM)
        return r;
    r = doc ? restore_document(engine, document->stream, weft_doc_root(doc)) : -EBADMSG;
    weft_doc_free(doc);
    if (r == -EBADMSG) {
        weft__note(engine, "what was saved as %.64s cannot be read and is passed over", document->stream);
        engine->skipped++;
    }
    return r == -EBADMSG ? 0 : r;
}

int weft__saved_restore_open(weft_engine *engine, const weft_event *document) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(document->data.data, document->data.len, engine->alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    const weft_json *hub = weft_doc_root(doc);
    if (weft__past_may_wait(engine, hub)) {
        r = restore_hub(engine, hub);
        if (r >= 0)
            r = weft__past_restore_open(engine, hub);
        r = r < 0 ? r : 1;
    }
    weft_doc_free(doc);
    return r;
}

static bool is_known(const weft_engine *engine, const char *key) {
    if (key_begins(key, TASK))
        return weft__task_known(engine, key + sizeof TASK - 1);
    if (key_begins(key, SESSION))
        return weft__session_known(engine, key + sizeof SESSION - 1);
    return key_begins(key, QUESTION) ? weft__question_known(engine, key + sizeof QUESTION - 1) != NULL
                                     : strcmp(key, HUB) == 0;
}

int weft__saved_restore_past(weft_engine *engine, const weft_event *document) {
    return is_known(engine, document->stream) ? 0 : weft__saved_restore(engine, document);
}

void weft__saved_restored(weft_engine *engine) {
    for (int state = WEFT_TASK_COMPLETED; state < WEFT_TASK_STATES; state++)
        engine->counts.of[state] = engine->saved_counts.of[state];
}
