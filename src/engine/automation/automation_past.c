/* What the journal remembers: what fired last, and approvals that were given but not yet acted upon when
 * the daemon ended. Read page by page beside everything else; until it is read, what happens is held. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "automation_private.h"

#define PAGE_EVENTS 2000
#define PAGE_BYTES (1 << 20)
#define MAX_OVER 1000 /* as many questions that are over as the engine remembers */

struct past {
    weft_automation *automation; /* NULL: gone; only the page under way keeps this */
    const weft_alloc *alloc;
    uint64_t after;
    size_t over_count;
    char over[MAX_OVER][32]; /* questions of rules that are over, and of which nothing came yet */
};

/* ---- questions ---- */

static void add_over(struct past *past, const char *id) {
    const weft_question *question = weft__question_find(past->automation->engine, id);
    if (!question || !question->rule || past->over_count == MAX_OVER || strlen(id) >= sizeof past->over[0])
        return;
    memcpy(past->over[past->over_count++], id, strlen(id) + 1);
}

static void drop_over(struct past *past, const char *id) {
    for (size_t i = 0; i < past->over_count; i++)
        if (strcmp(past->over[i], id) == 0) {
            memmove(past->over[i], past->over[i + 1], (past->over_count - i - 1) * sizeof past->over[0]);
            past->over_count--;
            return;
        }
}

/* ---- pages ---- */

static bool is_over(const char *type) {
    return strcmp(type, "question.answered") == 0 || strcmp(type, "question.expired") == 0 ||
           strcmp(type, "question.withdrawn") == 0;
}

static void fold(struct past *past, const weft_event *event) {
    weft_automation *automation = past->automation;
    bool fired = strcmp(event->type, "rule.fired") == 0, over = is_over(event->type);
    weft_doc *doc;
    if (!(fired || over) || weft_doc_parse(event->data.data, event->data.len, past->alloc, &doc) < 0)
        return;
    const weft_json *data = weft_doc_root(doc);
    char id[32], status[24];
    const char *question = weft__automation_text(data, "questionId", id, sizeof id),
               *is = weft__automation_text(data, "status", status, sizeof status);
    if (fired)
        weft__automation_executed(automation, event, data);
    if (over && question)
        add_over(past, question);
    if (fired && question && (!is || strcmp(is, "pendingApproval") != 0))
        drop_over(past, question);
    weft_doc_free(doc);
}

static int next_page(struct past *past);

static void finish(struct past *past) {
    weft_automation *automation = past->automation;
    automation->past = NULL;
    weft__automation_begin(automation);
    for (size_t i = 0; i < past->over_count; i++) {
        const weft_question *question = weft__question_find(automation->engine, past->over[i]);
        if (question)
            weft__automation_answered(automation, question);
    }
    weft__free(past->alloc, past);
    weft__automation_release(automation);
}

static void on_page(void *ctx, int r, const weft_page *page) {
    struct past *past = ctx;
    if (!past->automation) {
        weft__free(past->alloc, past);
        return;
    }
    for (size_t i = 0; r == 0 && i < page->count; i++)
        fold(past, &page->events[i]);
    bool more = r == 0 && page->more;
    if (more) {
        past->after = page->last;
        r = next_page(past);
    }
    if (r != 0)
        weft__automation_note(past->automation, "what rules did before cannot be read: %s", weft_strerror(r < 0 ? r : -EIO));
    if (r != 0 || !more)
        finish(past);
}

static int next_page(struct past *past) {
    weft_query query = {.stream = WEFT_STREAM_HUB,
                        .after = past->after,
                        .until = past->automation->past_until,
                        .oldest = true,
                        .max_events = PAGE_EVENTS,
                        .max_bytes = PAGE_BYTES};
    return weft__store_read(weft__engine_store(past->automation->engine), &query, on_page, past);
}

int weft__automation_remember(weft_automation *automation) {
    automation->past_until = weft__store_head(weft__engine_store(automation->engine));
    struct past *past = weft__zalloc(automation->alloc, sizeof *past);
    if (!past)
        return -ENOMEM;
    weft__automation_recall_switches(automation);
    past->automation = automation;
    past->alloc = automation->alloc;
    automation->past = past;
    if (!automation->past_until) {
        finish(past);
        return 0;
    }
    int r = next_page(past);
    if (r < 0) {
        automation->past = NULL;
        weft__free(past->alloc, past);
    }
    return r;
}

void weft__automation_forget(weft_automation *automation) {
    if (automation->past)
        automation->past->automation = NULL;
    automation->past = NULL;
}
