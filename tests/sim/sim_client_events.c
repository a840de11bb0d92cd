/* What clients are told: events, values of streams, values in pieces and the words of their dialect, each checked against
 * the disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_client.h"

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
void client_check_missed(const client *c, const subscription *sub, uint64_t until) {
    uint64_t from = sub->last > sub->floor ? sub->last : sub->floor;
    for (uint64_t gseq = from + 1; gseq < until; gseq++) {
        const truth_event *event = truth_at(gseq);
        if (lets_through(sub, event) && !(sub->oldest && event->trimmed) && !event->removed && !may_be_unknown(sub, event))
            sim_broken("lost event: %s did not hear %llu %s", c->name, (unsigned long long) gseq, event->type);
    }
}

void client_hear_event(client *c, size_t which, const weft_json *params) {
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
        client_check_missed(c, sub, gseq);
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

void client_hear_data(client *c, const weft_json *params) {
    weft_json value = weft_get(params, "value");
    for (size_t i = 0; i < VIEWS; i++)
        if (strcmp(weft_get_str(params, "subId", ""), client_views[i]) == 0) {
            hear_view(c, &c->views[i], params, &value);
            return;
        }
    if (weft_get_int(params, "seq", 0) != weft_get_int(&value, "gseq", -1))
        sim_broken("wrong event: %s heard one with another position than its own", c->name);
    else
        client_hear_event(c, STREAM, &value);
}

/* ---- values in pieces ---- */

void client_forget_pieces(client *c) {
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
    client_forget_pieces(c);
    if (weft_doc_parse(text, (size_t) n, NULL, &doc) < 0)
        sim_broken("wrong pieces: %s has %.200s", c->name, text);
    else
        client_hear_data(c, weft_doc_root(doc));
    weft_doc_free(doc);
    free(text);
}

/* From 1 to total, without a gap; another transition gives up the one before. */
void client_hear_piece(client *c, const weft_json *params) {
    pieces *had = &c->pieces;
    const char *transition = weft_get_str(params, "transitionId", "");
    weft_json chunk = weft_get(params, "chunk");
    weft_bytes text = {"", 0};
    int64_t part = weft_get_int(params, "part", 0);
    sim_say("%-7s < part %lld of %lld of %s", c->name, (long long) part, (long long) weft_get_int(params, "total", 0),
            transition);
    if (had->text && strcmp(had->transition, transition) != 0) {
        sim_saw(SAW_SUPERSEDED);
        client_forget_pieces(c);
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
    client_append(&had->text, &had->len, text.data, text.len);
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
    client_append(&text, &len, "", 0);
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
            client_append(&text, &len, bytes.data, bytes.len);
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
void client_check_thread(const client *c) {
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
    client_append(&told, &len, "", 0);
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); there && weft_next(&it);) {
        weft_json text = weft_get(&it.value, "text");
        weft_bytes bytes;
        if (strcmp(weft_get_str(&it.value, "kind", ""), "output") == 0 && weft_bytes_of(&text, &bytes) >= 0)
            client_append(&told, &len, bytes.data, bytes.len);
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
void client_check_view(const client *c) {
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

/* That something is missing is said only where something is. */
static void hear_missing(const client *c, const char *task) {
    const truth_event *event;
    sim_say("%-7s < something of %s is missing", c->name, task);
    for (uint64_t at = 1; (event = truth_at(at)); at++)
        if (event->trimmed && strncmp(event->type, "session.", 8) == 0)
            return;
    sim_broken("false alarm: %s heard that something of %s is missing, and all is kept", c->name, task);
}

void client_hear_word(client *c, const char *method, const weft_json *params) {
    const truth_event *event;
    const char *task = weft_get_str(params, "taskId", "");
    if (weft_get_bool(params, "missing", false)) {
        hear_missing(c, task);
        return;
    }
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

void client_check_words(client *c) {
    const truth_event *event;
    while ((event = next_word(c)) && need_not_be_said(event))
        c->words++;
    if (event)
        sim_broken("lost event: %s was not told of %llu %s", c->name, (unsigned long long) event->gseq, event->type);
}
