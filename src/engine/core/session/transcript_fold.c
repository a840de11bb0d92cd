/* From a session's events to the items of its transcript. Every item is counted, those in the window are kept. */
#include "transcript_fold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ITEM_BYTES 512 /* what an item costs besides its texts, about */

/* ---- the items ---- */

static kept_item *free_kept(const weft_alloc *alloc, kept_item *item) {
    if (!item)
        return NULL;
    weft__buf_done(&item->text, alloc);
    for (size_t i = 0; i < WEFT_TOOL_MEMBERS; i++)
        weft__free(alloc, item->members[i]);
    return weft__free(alloc, item);
}

void weft__transcript_fold_init(transcript_fold *fold, const weft_alloc *alloc) {
    *fold = (transcript_fold){.alloc = alloc};
}

void weft__transcript_fold_reset(transcript_fold *fold) {
    for (size_t i = 0; i < fold->kept; i++)
        free_kept(fold->alloc, fold->items[i]);
    weft__free(fold->alloc, (void *) fold->items);
    weft__transcript_fold_init(fold, fold->alloc);
}

static int make_room_for_kept(transcript_fold *fold) {
    if (fold->kept < fold->cap)
        return 0;
    size_t cap = fold->cap ? fold->cap * 2 : 16;
    kept_item **items = weft__resize(fold->alloc, (void *) fold->items, cap * sizeof *items);
    if (!items)
        return -ENOMEM;
    fold->items = items;
    fold->cap = cap;
    return 0;
}

static void drop_first(transcript_fold *fold) {
    kept_item *gone = fold->items[0];
    fold->bytes -= ITEM_BYTES + weft__buf_len(&gone->text);
    for (size_t i = 0; i < WEFT_TOOL_MEMBERS; i++)
        fold->bytes -= gone->pub.members[i].len;
    fold->plan = fold->plan == gone ? NULL : fold->plan;
    memmove((void *) fold->items, (void *) (fold->items + 1), --fold->kept * sizeof *fold->items);
    fold->first++;
    free_kept(fold->alloc, gone);
}

/* So much was added. Never all of it goes: the last item stays, however large it is. */
static void count_bytes(transcript_fold *fold, size_t more) {
    fold->bytes += more;
    while (fold->keep_last && fold->bytes > WEFT_TRANSCRIPT_BYTES && fold->kept > 1)
        drop_first(fold);
    fold->full |= !fold->keep_last && fold->bytes > WEFT_TRANSCRIPT_BYTES;
}

static int keep_new_item(transcript_fold *fold, const weft_transcript_item *like, const char *task) {
    kept_item *item = make_room_for_kept(fold) < 0 ? NULL : weft__zalloc(fold->alloc, sizeof *item);
    if (!item)
        return -ENOMEM;
    item->pub = *like;
    snprintf(item->task, sizeof item->task, "%s", task);
    item->pub.task = item->task;
    if (!fold->kept)
        fold->first = fold->count;
    fold->items[fold->kept++] = item;
    fold->open = item;
    count_bytes(fold, ITEM_BYTES);
    return 0;
}

/* Another item begins; fold->open is where it is kept, NULL if it is not. */
static int begin_item(transcript_fold *fold, const weft_transcript_item *like, const char *task) {
    bool wanted = fold->count >= fold->from && fold->count < fold->to && !fold->full;
    fold->open = NULL;
    int r = wanted ? keep_new_item(fold, like, task) : 0;
    if (r < 0)
        return r;
    if (fold->seek && strcmp(fold->seek, like->id) == 0) {
        fold->found = true;
        fold->found_at = fold->count;
    }
    fold->count++;
    fold->opened = true;
    fold->said = like->said;
    fold->length = 0;
    return 0;
}

/* ---- texts ---- */

/* Not within a character. */
static size_t whole_characters(const char *text, size_t len) {
    while (len && ((unsigned char) text[len] & 0xC0) == 0x80)
        len--;
    return len;
}

static int add_item_text(transcript_fold *fold, weft_bytes text, size_t max, uint64_t gseq) {
    kept_item *item = fold->open;
    fold->length += text.len;
    if (!item)
        return 0;
    size_t room = max - weft__buf_len(&item->text), len = text.len > room ? whole_characters(text.data, room) : text.len;
    int r = weft__buf_put(&item->text, fold->alloc, text.data, len);
    if (r < 0)
        return r;
    item->pub.cut |= len < text.len;
    item->pub.gseq = gseq;
    item->pub.text = (weft_bytes){weft__buf_len(&item->text) ? weft__buf_head(&item->text) : "", weft__buf_len(&item->text)};
    count_bytes(fold, len);
    return 0;
}

static void name_item(weft_transcript_item *item, const weft_event *event) {
    item->time_ms = event->time_ms;
    item->gseq = event->gseq;
    snprintf(item->id, sizeof item->id, "%" PRIu64, event->gseq);
}

static int fold_text(transcript_fold *fold, const weft_event *event, weft_said said, const weft_json *value) {
    weft_transcript_item like = {.said = said};
    weft_bytes text;
    int r = weft_bytes_of(value, &text);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    bool goes_on = fold->opened && fold->said == said && fold->length + text.len <= WEFT_TRANSCRIPT_PIECE;
    name_item(&like, event);
    if (!goes_on)
        r = begin_item(fold, &like, fold->task);
    return r < 0 ? r : add_item_text(fold, text, WEFT_TRANSCRIPT_TEXT, event->gseq);
}

/* A task that was queued before this start has no gseq: its id is the name that stays. */
int weft__transcript_fold_prompt(transcript_fold *fold, const weft_task *task) {
    weft_transcript_item like = {.said = WEFT_SAID_PROMPT, .time_ms = task->created_ms, .gseq = task->gseq};
    weft_bytes text = {task->prompt, strlen(task->prompt)};
    snprintf(like.id, sizeof like.id, "%s", task->id);
    int r = begin_item(fold, &like, task->id);
    return r < 0 ? r : add_item_text(fold, text, SIZE_MAX, task->gseq);
}

/* ---- tools and plans ---- */

static const char *const member_names[WEFT_TOOL_MEMBERS] = {
    [WEFT_TOOL_CALL_ID] = "toolCallId", [WEFT_TOOL_TITLE] = "title",         [WEFT_TOOL_KIND] = "kind",
    [WEFT_TOOL_STATUS] = "status",      [WEFT_TOOL_INPUT] = "rawInput",      [WEFT_TOOL_OUTPUT] = "rawOutput",
    [WEFT_TOOL_CONTENT] = "content",    [WEFT_TOOL_LOCATIONS] = "locations", [WEFT_PLAN_ENTRIES] = "entries",
};

/* JSON cannot be cut: what is too long is not kept at all. */
static int set_member(transcript_fold *fold, kept_item *item, size_t which, const weft_json *value) {
    weft_bytes *shown = &item->pub.members[which];
    if (value->len > WEFT_TRANSCRIPT_TEXT) {
        item->pub.cut = true;
        return 0;
    }
    char *copy = weft__strndup(fold->alloc, value->text, value->len);
    if (!copy)
        return -ENOMEM;
    weft__free(fold->alloc, item->members[which]);
    fold->bytes -= shown->len;
    item->members[which] = copy;
    *shown = (weft_bytes){copy, value->len};
    fold->bytes += value->len;
    return 0;
}

static int set_members(transcript_fold *fold, kept_item *item, const weft_event *event, const weft_json *update) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < WEFT_TOOL_MEMBERS; i++) {
        weft_json value = weft_get(update, member_names[i]);
        if (value.text && weft_typeof(&value) != WEFT_NULL)
            r = set_member(fold, item, i, &value);
    }
    item->pub.gseq = event->gseq;
    count_bytes(fold, 0); /* the item itself may have to go */
    return r;
}

/* The latest call with this id. An agent may use one again in a later turn. */
static kept_item *find_call(const transcript_fold *fold, const weft_json *id) {
    for (size_t i = fold->kept; id->text && i-- > 0;) {
        const weft_bytes *known = &fold->items[i]->pub.members[WEFT_TOOL_CALL_ID];
        if (known->data && known->len == id->len && memcmp(known->data, id->text, id->len) == 0)
            return fold->items[i];
    }
    return NULL;
}

static int begin_members(transcript_fold *fold, const weft_event *event, weft_said said, const weft_json *update) {
    weft_transcript_item like = {.said = said};
    name_item(&like, event);
    int r = begin_item(fold, &like, fold->task);
    fold->opened = false;
    return r < 0 || !fold->open ? r : set_members(fold, fold->open, event, update);
}

/* What an update says of a call that is not in the window is nobody's business. */
static int fold_call_update(transcript_fold *fold, const weft_event *event, const weft_json *update) {
    weft_json id = weft_get(update, "toolCallId");
    kept_item *item = find_call(fold, &id);
    return item ? set_members(fold, item, event, update) : 0;
}

/* Each plan replaces the one before it, within a task. */
static int fold_plan(transcript_fold *fold, const weft_event *event, const weft_json *update) {
    if (fold->planned)
        return fold->plan ? set_members(fold, fold->plan, event, update) : 0;
    int r = begin_members(fold, event, WEFT_SAID_PLAN, update);
    fold->planned = true;
    fold->plan = fold->open;
    return r;
}

/* ---- events ---- */

/* Compared where it lies: for want of memory nothing may be left out. */
static int fold_update(transcript_fold *fold, const weft_event *event, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    if (weft__field_is(update, "sessionUpdate", "agent_message_chunk"))
        return fold_text(fold, event, WEFT_SAID_TEXT, &text);
    if (weft__field_is(update, "sessionUpdate", "agent_thought_chunk"))
        return fold_text(fold, event, WEFT_SAID_THOUGHT, &text);
    if (weft__field_is(update, "sessionUpdate", "tool_call"))
        return begin_members(fold, event, WEFT_SAID_TOOL, update);
    if (weft__field_is(update, "sessionUpdate", "tool_call_update"))
        return fold_call_update(fold, event, update);
    return weft__field_is(update, "sessionUpdate", "plan") ? fold_plan(fold, event, update) : 0;
}

static void enter_task(transcript_fold *fold, const weft_json *data) {
    char id[ENGINE_ID];
    if (!weft__id(data, "taskId", id) || strcmp(id, fold->task) == 0)
        return;
    snprintf(fold->task, sizeof fold->task, "%s", id);
    fold->opened = fold->planned = false;
    fold->plan = NULL;
}

int weft__transcript_fold_event(transcript_fold *fold, const weft_event *event, const weft_json *data) {
    weft_json text = weft_get(data, "text"), update = weft_get(data, "update");
    enter_task(fold, data);
    if (strcmp(event->type, "session.update") == 0)
        return fold_update(fold, event, &update);
    if (strcmp(event->type, "session.output") != 0)
        return 0;
    return fold_text(fold, event, weft__field_is(data, "stream", "stderr") ? WEFT_SAID_ERRORS : WEFT_SAID_OUTPUT, &text);
}
