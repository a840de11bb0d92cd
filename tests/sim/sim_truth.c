/* What is on the disk, as the simulation saw it being written, and the rules for it: states move along the table, a task
 * and a question end once, no more tasks run than may, and nothing an agent said is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/json.h>

#include "sim.h"

static struct {
    char epoch[WEFT_EPOCH + 1];
    truth_event *events; /* gseq 1 is the first */
    size_t count, cap;
    truth_task *tasks;
    size_t task_count, task_cap;
    truth_question *questions;
    size_t question_count, question_cap;
    truth_session *sessions;
    size_t session_count, session_cap;
    struct done_once {
        char by[SIM_NAME], id[SIM_NAME];
        uint64_t version, gseq;
    } * requests;
    size_t request_count, request_cap;
    uint64_t version; /* the highest */
    uint64_t trimmed; /* the highest gseq that is no longer kept */
} truth;

static const char *const state_names[] = {"none", "queued", "running", "completed", "failed", "cancelled"};

/* Room for one more in an array. */
static void *grown(void *array, size_t count, size_t *cap, size_t size) {
    if (count < *cap)
        return array;
    *cap = *cap ? *cap * 2 : 64;
    array = realloc(array, *cap * size);
    if (!array)
        abort();
    return array;
}

static char *copied(const char *text, size_t len) {
    char *copy = malloc(len + 1);
    if (!copy)
        abort();
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

/* ---- finding ---- */

static truth_task *find_task(const char *id) {
    for (size_t i = truth.task_count; i-- > 0;)
        if (strcmp(truth.tasks[i].id, id) == 0)
            return &truth.tasks[i];
    return NULL;
}

static truth_question *find_question(const char *id) {
    for (size_t i = truth.question_count; i-- > 0;)
        if (strcmp(truth.questions[i].id, id) == 0)
            return &truth.questions[i];
    return NULL;
}

static truth_session *find_session(const char *id) {
    for (size_t i = truth.session_count; i-- > 0;)
        if (strcmp(truth.sessions[i].id, id) == 0)
            return &truth.sessions[i];
    return NULL;
}

const truth_session *truth_session_find(const char *id) {
    return find_session(id);
}

size_t truth_sessions(void) {
    return truth.session_count;
}

const truth_session *truth_session_at(size_t index) {
    return &truth.sessions[index];
}

const truth_task *truth_find(const char *id) {
    return find_task(id);
}

static const truth_task *find_key(const char *key) {
    for (size_t i = 0; i < truth.task_count; i++)
        if (strcmp(truth.tasks[i].key, key) == 0)
            return &truth.tasks[i];
    return NULL;
}

size_t truth_tasks(void) {
    return truth.task_count;
}

const truth_task *truth_task_at(size_t index) {
    return &truth.tasks[index];
}

const truth_question *truth_question_find(const char *id) {
    return find_question(id);
}

const truth_question *truth_question_titled(const char *task, const char *title) {
    for (size_t i = truth.question_count; i-- > 0;)
        if (strcmp(truth.questions[i].task, task) == 0 && strcmp(truth.questions[i].title, title) == 0)
            return &truth.questions[i];
    return NULL;
}

size_t truth_open_tasks(void) {
    size_t n = 0;
    for (size_t i = 0; i < truth.task_count; i++)
        n += truth.tasks[i].state <= TRUTH_RUNNING;
    return n;
}

const char *truth_epoch(void) {
    return truth.epoch;
}

uint64_t truth_head(void) {
    return truth.count;
}

const truth_event *truth_at(uint64_t gseq) {
    return gseq && gseq <= truth.count ? &truth.events[gseq - 1] : NULL;
}

bool truth_trimmed_after(uint64_t gseq) {
    return truth.trimmed > gseq;
}

bool truth_session_trimmed(const char *session) {
    for (size_t i = 0; i < truth.count; i++)
        if (truth.events[i].trimmed && strcmp(truth.events[i].session, session) == 0)
            return true;
    return false;
}

/* ---- the rules ---- */

/* It is, or was, on a runner: sim_runners.c has the rules for that. */
static bool is_lent(const truth_task *task) {
    return strchr(task->agent, '@') != NULL;
}

static size_t running(const char *agent) {
    size_t n = 0;
    for (size_t i = 0; i < truth.task_count; i++)
        n += truth.tasks[i].state == TRUTH_RUNNING && !is_lent(&truth.tasks[i]) &&
             (!agent || strcmp(truth.tasks[i].agent, agent) == 0);
    return n;
}

static void check_slots(const truth_task *task) {
    if (is_lent(task))
        return;
    if (running(NULL) > hub_max_running(NULL) || running(task->agent) > hub_max_running(task->agent))
        sim_broken("too many run: %s started while all slots were taken", task->id);
}

/* Tasks of a session that have not ended, before this one of the list; all: before the end of it. */
static size_t unfinished(const char *session, const truth_task *until) {
    size_t n = 0;
    for (size_t i = 0; i < truth.task_count && &truth.tasks[i] != until; i++)
        n += truth.tasks[i].state <= TRUTH_RUNNING && strcmp(truth.tasks[i].session, session) == 0;
    return n;
}

size_t truth_unfinished(const char *session) {
    return unfinished(session, NULL);
}

/* One after the other, in the order in which they were stored. */
static void check_order(const truth_task *task) {
    if (unfinished(task->session, task))
        sim_broken("out of order: %s started before another of %s had ended", task->id, task->session);
}

static void check_takes_tasks(const truth_task *task, const char *type) {
    const truth_session *session = find_session(task->session);
    if (!session || session->deleted || session->closed)
        sim_broken("closed session: %s was stored for %s in %s", type, task->id, task->session);
}

static void move_to(truth_task *task, truth_state to, const char *type) {
    static const unsigned from[] = {
        [TRUTH_QUEUED] = 1 << TRUTH_RUNNING,
        [TRUTH_RUNNING] = 1 << TRUTH_QUEUED,
        [TRUTH_COMPLETED] = 1 << TRUTH_RUNNING,
        [TRUTH_FAILED] = 1 << TRUTH_RUNNING,
        [TRUTH_CANCELLED] = 1 << TRUTH_RUNNING | 1 << TRUTH_QUEUED,
    };
    if (task->state >= TRUTH_COMPLETED && to >= TRUTH_COMPLETED)
        sim_broken("two ends: %s was stored for %s, which is %s", type, task->id, state_names[task->state]);
    else if (!(from[to] & 1u << task->state))
        sim_broken("wrong state: %s was stored for %s, which is %s", type, task->id, state_names[task->state]);
    task->state = to;
}

static void copy_member(char *into, size_t size, const weft_json *data, const char *name) {
    snprintf(into, size, "%s", weft_get_str(data, name, ""));
}

static void task_queued(const truth_event *event, const weft_json *data) {
    truth_task made = {.state = TRUTH_QUEUED, .queued = event->gseq};
    copy_member(made.id, sizeof made.id, data, "taskId");
    copy_member(made.agent, sizeof made.agent, data, "runsOn");
    copy_member(made.session, sizeof made.session, data, "sessionId");
    copy_member(made.key, sizeof made.key, data, "key");
    copy_member(made.prompt, sizeof made.prompt, data, "prompt");
    if (find_task(made.id))
        sim_broken("id used twice: %s", made.id);
    if (*made.key && find_key(made.key) && !truth.trimmed)
        sim_broken("key used twice: %s became %s", made.key, made.id);
    check_takes_tasks(&made, "task.queued");
    if (unfinished(made.session, NULL))
        sim_saw(SAW_BEHIND);
    truth.tasks = grown(truth.tasks, truth.task_count, &truth.task_cap, sizeof made);
    truth.tasks[truth.task_count++] = made;
}

static void task_event(const truth_event *event, const weft_json *data) {
    const char *type = event->type + sizeof "task." - 1;
    if (strcmp(type, "queued") == 0) {
        task_queued(event, data);
        return;
    }
    truth_task *task = find_task(event->task);
    if (!task) {
        sim_broken("unknown task: %s was stored for %s", event->type, event->task);
    } else if (strcmp(type, "started") == 0) {
        move_to(task, TRUTH_RUNNING, event->type);
        if (is_lent(task))
            copy_member(task->agent, sizeof task->agent, data, "agent");
        else
            driver_begin(task->id);
        if (weft_get_int(data, "attempt", 0) != ++task->attempt)
            sim_broken("wrong attempt: %s has %lld", task->id, (long long) weft_get_int(data, "attempt", 0));
        check_slots(task);
        check_order(task);
        check_takes_tasks(task, "task.started");
    } else if (strcmp(type, "retrying") == 0) {
        move_to(task, TRUTH_QUEUED, event->type);
        if (!is_lent(task))
            driver_check_end(task->id, weft_get_str(data, "reason", ""));
        sim_saw(strcmp(weft_get_str(data, "reason", ""), "daemonRestarted") == 0 ? SAW_REQUEUE : SAW_RETRY);
    } else if (strcmp(type, "process") != 0) {
        bool ran = task->state == TRUTH_RUNNING;
        move_to(task,
                strcmp(type, "completed") == 0 ? TRUTH_COMPLETED
                : strcmp(type, "failed") == 0  ? TRUTH_FAILED
                                               : TRUTH_CANCELLED,
                event->type);
        if (ran && !is_lent(task))
            driver_check_end(task->id, weft_get_str(data, "reason", ""));
        if (strcmp(weft_get_str(data, "reason", ""), "timedOut") == 0)
            sim_saw(SAW_TIMEOUT);
    } else if (task->state != TRUTH_RUNNING)
        sim_broken("wrong state: a process was stored for %s, which is %s", task->id, state_names[task->state]);
}

static void question_asked(const weft_json *data) {
    truth_question made = {0};
    copy_member(made.id, sizeof made.id, data, "questionId");
    copy_member(made.task, sizeof made.task, data, "taskId");
    copy_member(made.title, sizeof made.title, data, "title");
    if (find_question(made.id))
        sim_broken("id used twice: %s", made.id);
    truth.questions = grown(truth.questions, truth.question_count, &truth.question_cap, sizeof made);
    truth.questions[truth.question_count++] = made;
}

static void question_event(const truth_event *event, const weft_json *data) {
    const char *type = event->type + sizeof "question." - 1;
    if (strcmp(type, "asked") == 0) {
        question_asked(data);
        return;
    }
    truth_question *question = find_question(weft_get_str(data, "questionId", ""));
    if (!question)
        sim_broken("unknown question: %s", event->type);
    else if (strcmp(type, "orphaned") == 0)
        sim_saw(SAW_ORPHANED);
    else if (strcmp(type, "adopted") == 0)
        sim_saw(SAW_ADOPTED);
    else {
        if (strcmp(type, "answered") != 0)
            sim_saw(strcmp(type, "expired") == 0 ? SAW_EXPIRED : SAW_WITHDRAWN);
        if (*question->end)
            sim_broken("two winners: %s was stored for %s, which was %s", event->type, question->id, question->end);
        snprintf(question->end, sizeof question->end, "%s", type);
        copy_member(question->option, sizeof question->option, data, "option");
        copy_member(question->by, sizeof question->by, data, "by");
    }
}

static void session_created(const weft_json *data) {
    truth_session made = {0};
    weft_json mode = weft_pointer(data, "/settings/mode");
    copy_member(made.id, sizeof made.id, data, "sessionId");
    copy_member(made.agent, sizeof made.agent, data, "agent");
    snprintf(made.mode, sizeof made.mode, "%s", weft_str_of(&mode, ""));
    if (find_session(made.id))
        sim_broken("id used twice: %s", made.id);
    truth.sessions = grown(truth.sessions, truth.session_count, &truth.session_cap, sizeof made);
    truth.sessions[truth.session_count++] = made;
}

/* Whoever deletes a session wants nothing of it to be read any more. */
static void check_erased(const char *session) {
    static const char *const kinds[] = {"task.",     "session.", "question.", "worktree.",
                                        "approval.", "plan.",    "gated.",    "runner.late"};
    for (size_t i = 0; i < truth.count; i++) {
        const truth_event *event = &truth.events[i];
        if (event->removed || event->trimmed || strcmp(event->session, session) != 0)
            continue;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            if (strncmp(event->type, kinds[k], strlen(kinds[k])) == 0)
                sim_broken("not erased: %s is deleted, and %llu %s can be read", session, (unsigned long long) event->gseq,
                           event->type);
    }
}

static void session_event(const truth_event *event, const weft_json *data) {
    const char *type = event->type + sizeof "session." - 1;
    truth_session *session = find_session(event->session);
    if (strcmp(type, "created") == 0)
        session_created(data);
    else if (!session || session->deleted)
        sim_broken("unknown session: %s was stored for %s", event->type, event->session);
    else if (strcmp(type, "set") == 0) {
        session->sets++;
        if (strcmp(weft_get_str(data, "name", ""), "mode") == 0)
            copy_member(session->mode, sizeof session->mode, data, "value");
    } else if (strcmp(type, "closed") == 0 || strcmp(type, "deleted") == 0) {
        if (unfinished(session->id, NULL))
            sim_broken("closed session: %s was stored for %s, which has tasks", event->type, session->id);
        session->closes++;
        session->closed = true;
        session->deleted = strcmp(type, "deleted") == 0;
        if (session->deleted)
            check_erased(session->id);
    } else if (strcmp(type, "resumed") == 0) {
        session->closed = false;
        session->resumes++;
        sim_saw(SAW_SESSION_RESUMED);
    } else if (strcmp(type, "opened") == 0)
        sim_saw(SAW_SESSION_OPENED);
}

/* ---- requests ---- */

static struct done_once *find_request(const char *by, const char *id) {
    for (size_t i = truth.request_count; i-- > 0;)
        if (strcmp(truth.requests[i].by, by) == 0 && strcmp(truth.requests[i].id, id) == 0)
            return &truth.requests[i];
    return NULL;
}

bool truth_request(const char *by, const char *id, uint64_t *ret_version) {
    const struct done_once *known = find_request(by, id);
    if (known)
        *ret_version = known->version;
    return known != NULL;
}

/* Once, as long as the event that says so is kept. */
static void request_done(const truth_event *event, const weft_json *said) {
    struct done_once made = {.gseq = event->gseq};
    weft_json result = weft_get(said, "result");
    copy_member(made.by, sizeof made.by, said, "by");
    copy_member(made.id, sizeof made.id, said, "requestId");
    made.version = (uint64_t) weft_get_int(&result, "version", 0);
    struct done_once *known = find_request(made.by, made.id);
    if (known && !truth_at(known->gseq)->trimmed)
        sim_broken("done twice: %s of %s, in %llu and %llu", made.id, made.by, (unsigned long long) known->gseq,
                   (unsigned long long) made.gseq);
    if (known) {
        *known = made;
        return;
    }
    truth.requests = grown(truth.requests, truth.request_count, &truth.request_cap, sizeof made);
    truth.requests[truth.request_count++] = made;
}

static void document_event(const truth_event *event, const weft_json *data) {
    uint64_t version = (uint64_t) weft_get_int(data, "version", 0);
    weft_json request = weft_get(data, "request");
    if (version <= truth.version)
        sim_broken("version used again: %llu", (unsigned long long) version);
    truth.version = version;
    request_done(event, &request);
}

static void output_event(const truth_event *event, const weft_json *data) {
    const truth_task *task = find_task(event->task);
    const char *text = weft_get_str(data, "text", "");
    if (!task || task->state != TRUTH_RUNNING)
        sim_broken("wrong state: output was stored for %s, which does not run", event->task);
    if (!task || !is_lent(task))
        driver_check_output(event->task, text, strlen(text));
}

/* As a subscription by task or session understands it: most events of a task do not name its session. */
static void find_subject(truth_event *event, const weft_json *data) {
    const truth_question *question = find_question(weft_get_str(data, "questionId", ""));
    const char *task = weft_get_str(data, "taskId", question ? question->task : "");
    const truth_task *known = find_task(task);
    event->names_task = *weft_get_str(data, "taskId", "");
    event->names_session = *weft_get_str(data, "sessionId", "");
    snprintf(event->task, sizeof event->task, "%s", task);
    copy_member(event->session, sizeof event->session, data, "sessionId");
    if (!*event->session && known)
        snprintf(event->session, sizeof event->session, "%s", known->session);
}

static void check_event(truth_event *event) {
    weft_doc *doc;
    if (weft_doc_parse(event->data, event->len, NULL, &doc) < 0) {
        sim_broken("not JSON: %s", event->data);
        return;
    }
    const weft_json *data = weft_doc_root(doc);
    find_subject(event, data);
    plans_truth(event->type, data);
    gated_truth(event->type, data);
    runners_truth(event->gseq, event->type, data);
    if (strncmp(event->type, "task.", 5) == 0)
        task_event(event, data);
    else if (strncmp(event->type, "question.", 9) == 0)
        question_event(event, data);
    else if (strncmp(event->type, "doc.", 4) == 0)
        document_event(event, data);
    else if (strcmp(event->type, "request.done") == 0)
        request_done(event, data);
    else if (strcmp(event->type, "session.output") == 0)
        output_event(event, data);
    else if (strncmp(event->type, "session.", 8) == 0)
        session_event(event, data);
    weft_doc_free(doc);
}

/* ---- writing and trimming ---- */

void truth_append(const weft_event *events, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const weft_event *from = &events[i];
        if (from->gseq != truth.count + 1) {
            sim_broken("wrong position: %llu after %zu", (unsigned long long) from->gseq, truth.count);
            return;
        }
        truth_event made = {.gseq = from->gseq,
                            .seq = from->seq,
                            .time_ms = from->time_ms,
                            .stream = copied(from->stream, strlen(from->stream)),
                            .type = copied(from->type, strlen(from->type)),
                            .data = copied(from->data.data, from->data.len),
                            .len = from->data.len};
        sim_digest(made.data, made.len);
        check_event(&made);
        sim_say("disk    %llu %s %.300s", (unsigned long long) made.gseq, made.type, made.data);
        truth.events = grown(truth.events, truth.count, &truth.cap, sizeof made);
        truth.events[truth.count++] = made;
    }
}

void truth_remove(const uint64_t *gseqs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        truth_event *event = gseqs[i] && gseqs[i] <= truth.count ? &truth.events[gseqs[i] - 1] : NULL;
        bool plan =
            event && !*event->session && strncmp(event->type, "plan.", 5) == 0; /* with the last session of its tasks */
        bool shared = event && (strcmp(event->stream, "hub") == 0 || strcmp(event->stream, "plans") == 0 ||
                                strcmp(event->stream, "gated") == 0 || strcmp(event->type, "runner.late") == 0);
        if (!shared || (!*event->session && !plan))
            sim_broken("wrong removal: %llu is about no session", (unsigned long long) gseqs[i]);
        else if (!plan && truth_unfinished(event->session))
            sim_broken("wrong removal: %llu is about %s, which has tasks", (unsigned long long) gseqs[i], event->session);
        else
            event->removed = true;
        sim_saw(SAW_REMOVAL);
    }
}

/* page: all that is kept after a trim. */
uint64_t truth_keep(const weft_page *page) {
    uint64_t removed = 0;
    size_t at = 0;
    for (size_t i = 0; i < truth.count; i++) {
        truth_event *event = &truth.events[i];
        bool kept = at < page->count && page->events[at].gseq == event->gseq;
        at += kept;
        if (kept && event->trimmed)
            sim_broken("wrong trim: %llu is there again", (unsigned long long) event->gseq);
        if (kept || event->trimmed)
            continue;
        event->trimmed = true;
        event->unseen = event->gseq > hub_told();
        truth.trimmed = event->gseq > truth.trimmed ? event->gseq : truth.trimmed;
        removed++;
        sim_saw(SAW_TRIM);
    }
    return removed;
}

/* ---- the engine's view ---- */

bool truth_is_known(void) {
    for (size_t i = 0; i < truth.task_count; i++) {
        const char *is = hub_task_state(truth.tasks[i].id);
        if (is && truth.tasks[i].state >= TRUTH_COMPLETED && strcmp(is, state_names[truth.tasks[i].state]) != 0)
            return false;
    }
    return true;
}

void truth_check_engine(bool settled) {
    for (size_t i = 0; i < truth.task_count; i++) {
        const truth_task *task = &truth.tasks[i];
        const char *is = hub_task_state(task->id);
        if (!is && task->state <= TRUTH_RUNNING)
            sim_broken("lost task: %s is %s on the disk and unknown to the engine", task->id, state_names[task->state]);
        else if (is && strcmp(is, state_names[task->state]) != 0)
            sim_broken("wrong state: %s is %s on the disk and %s to the engine", task->id, state_names[task->state], is);
    }
    for (size_t i = 0; settled && i < truth.session_count; i++) {
        const truth_session *session = &truth.sessions[i];
        const char *mode = hub_session_mode(session->id);
        if (session->deleted != !mode)
            sim_broken("wrong state: %s is %s on the disk, and the engine says otherwise", session->id,
                       session->deleted ? "deleted" : "there");
        else if (mode && (strcmp(mode, session->mode) != 0 || hub_session_closed(session->id) != session->closed))
            sim_broken("wrong state: %s has the mode %s on the disk and %s to the engine", session->id, session->mode, mode);
    }
    for (size_t i = 0; i < truth.question_count; i++) {
        const truth_question *question = &truth.questions[i];
        bool is_open = hub_is_open(question->id), open_on_disk = !*question->end;
        if (open_on_disk ? !is_open : is_open && settled)
            sim_broken("wrong state: %s is %s on the disk, and the engine says otherwise", question->id,
                       *question->end ? question->end : "open");
    }
}

bool truth_is_kept(const char *id) {
    const truth_task *task = find_task(id);
    const truth_session *session = task ? find_session(task->session) : NULL;
    return task && task->queued <= hub_told() && !truth.trimmed && !(session && session->deleted);
}

void truth_check_past(void) {
    for (size_t i = 0; i < truth.task_count; i++)
        if (truth_is_kept(truth.tasks[i].id) && !hub_task_state(truth.tasks[i].id))
            sim_broken("lost task: %s is on the disk and unknown to the engine", truth.tasks[i].id);
}

/* ---- life ---- */

void truth_open(const char *epoch) {
    snprintf(truth.epoch, sizeof truth.epoch, "%s", epoch);
}

void truth_close(void) {
    for (size_t i = 0; i < truth.count; i++) {
        free((char *) (uintptr_t) truth.events[i].stream);
        free((char *) (uintptr_t) truth.events[i].type);
        free((char *) (uintptr_t) truth.events[i].data);
    }
    free(truth.events);
    free(truth.tasks);
    free(truth.questions);
    free(truth.sessions);
    free(truth.requests);
    memset(&truth, 0, sizeof truth);
}
