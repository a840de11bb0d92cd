/* Collections: values by key, each a document of the store, and the changes that are under way.
 *
 * A change is an event, "doc.put" or "doc.deleted", and the document in one append. What it puts waits in the change until
 * the event is delivered: then it becomes the value, which needs no memory. At a start the documents are read, and events
 * that are older than them change nothing. */
#include "collections.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "once.h"
#include "write.h"

#define FULL_NAME (WEFT_COLLECTION_NAME + WEFT_ITEM_KEY + 2)
#define DOCUMENT_KEY (sizeof WEFT_SAVED_ITEM + FULL_NAME)
#define VERSIONS ((uint64_t) 1 << 53) /* every reader of JSON can hold it */

typedef struct known_item known_item;

typedef struct known_collection {
    weft_link link;     /* in the order of names */
    known_item **items; /* those that are stored, in the order of keys */
    size_t count, cap;
    size_t users; /* items that point to it, stored or not */
    char name[WEFT_COLLECTION_NAME + 1];
} known_collection;

struct known_item {
    weft_item pub;
    weft_node node; /* by "collection/key" */
    known_collection *in;
    bool stored;
    bool held; /* it stays although nobody needs it: somebody is working with it */
    char *value;
    weft_link changes; /* that are under way, in their order */
    char name[FULL_NAME];
};

typedef struct item_change {
    weft_link link;
    weft_engine *engine;
    known_item *item;
    bool put;    /* else it is deleted */
    char *value; /* until it is the item's */
    size_t len;
    int64_t expect;
    bool sent;
    uint64_t version; /* 0: none yet, or there is nothing to delete */
    weft_request *request;
    weft_item_done *done;
    void *ctx;
} item_change;

/* ---- names ---- */

bool weft__collection_is_name(const char *name) {
    size_t len = strnlen(name, WEFT_COLLECTION_NAME + 1);
    if (!len || len > WEFT_COLLECTION_NAME || !isalpha((unsigned char) name[0]))
        return false;
    for (size_t i = 1; i < len; i++)
        if (!isalnum((unsigned char) name[i]) && !strchr("_-.", name[i]))
            return false;
    return true;
}

bool weft__item_is_key(const char *key) {
    size_t len = strnlen(key, WEFT_ITEM_KEY + 1);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) key[i] < ' ' || key[i] == 0x7f)
            return false;
    return len && len <= WEFT_ITEM_KEY;
}

/* Both are names: they fit. */
static void join_name(char ret[FULL_NAME], const char *collection, const char *key) {
    size_t len = strlen(collection);
    memcpy(ret, collection, len);
    ret[len] = '/';
    memcpy(ret + len + 1, key, strlen(key) + 1);
}

static void document_key(const known_item *item, char ret[DOCUMENT_KEY]) {
    memcpy(ret, WEFT_SAVED_ITEM, sizeof WEFT_SAVED_ITEM - 1);
    memcpy(ret + sizeof WEFT_SAVED_ITEM - 1, item->name, strlen(item->name) + 1);
}

/* ---- collections ---- */

static known_collection *find_collection(const weft_engine *engine, const char *name) {
    for (weft_link *link = engine->collections.next; link != &engine->collections; link = link->next) {
        known_collection *one = WEFT_CONTAINER(link, known_collection, link);
        if (strcmp(one->name, name) == 0)
            return one;
    }
    return NULL;
}

static known_collection *new_collection(weft_engine *engine, const char *name) {
    weft_link *before = engine->collections.next;
    known_collection *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    snprintf(made->name, sizeof made->name, "%s", name);
    while (before != &engine->collections && strcmp(WEFT_CONTAINER(before, known_collection, link)->name, name) < 0)
        before = before->next;
    weft__list_push(before, &made->link);
    engine->collection_count++;
    return made;
}

static void leave_collection(weft_engine *engine, known_collection *in) {
    if (--in->users)
        return;
    weft__list_remove(&in->link);
    engine->collection_count--;
    weft__free(engine->alloc, in->items);
    weft__free(engine->alloc, in);
}

/* Where this key is or would be. */
static size_t find_place(const known_collection *in, const char *key, bool *ret_found) {
    size_t low = 0, high = in->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(in->items[middle]->pub.key, key);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

static int reserve_place(weft_engine *engine, known_collection *in) {
    if (in->count < in->cap)
        return 0;
    size_t cap = in->cap ? 2 * in->cap : 8;
    known_item **items = weft__resize(engine->alloc, in->items, cap * sizeof *items);
    if (!items)
        return -ENOMEM;
    in->items = items;
    in->cap = cap;
    return 0;
}

/* ---- items ---- */

/* Both are names. */
static known_item *find_item(const weft_engine *engine, const char *collection, const char *key) {
    char name[FULL_NAME];
    join_name(name, collection, key);
    weft_node *node = weft__map_find(&engine->items, name);
    return node ? WEFT_CONTAINER(node, known_item, node) : NULL;
}

static known_item *new_item(weft_engine *engine, const char *name, const char *key) {
    known_collection *in = find_collection(engine, name);
    known_item *made = weft__zalloc(engine->alloc, sizeof *made);
    if (made && !in)
        in = new_collection(engine, name);
    if (!made || !in)
        return weft__free(engine->alloc, made);
    in->users++;
    made->in = in;
    join_name(made->name, name, key);
    made->pub.collection = in->name;
    made->pub.key = made->name + strlen(name) + 1;
    weft__list_init(&made->changes);
    weft__map_put(&engine->items, &made->node, made->name);
    return made;
}

/* Nothing is known of it, and nothing under way. */
static void drop_unused(weft_engine *engine, known_item *item) {
    if (item->stored || item->held || !weft__list_empty(&item->changes))
        return;
    weft__map_remove(&engine->items, &item->node);
    leave_collection(engine, item->in);
    weft__free(engine->alloc, item->value);
    weft__free(engine->alloc, item);
}

/* It is shown from now on. Its collection has room for it. */
static void show_item(weft_engine *engine, known_item *item) {
    known_collection *in = item->in;
    bool found;
    size_t at = find_place(in, item->pub.key, &found);
    memmove(in->items + at + 1, in->items + at, (in->count - at) * sizeof *in->items);
    in->items[at] = item;
    in->count++;
    item->stored = true;
    engine->item_count++;
}

static void hide_item(weft_engine *engine, known_item *item) {
    known_collection *in = item->in;
    bool found;
    size_t at = find_place(in, item->pub.key, &found);
    in->count--;
    memmove(in->items + at, in->items + at + 1, (in->count - at) * sizeof *in->items);
    item->stored = false;
    engine->item_count--;
    engine->item_bytes -= item->pub.value.len;
    item->value = weft__free(engine->alloc, item->value);
    item->pub.value = (weft_bytes){0};
}

/* value is taken. */
static void set_value(weft_engine *engine, known_item *item, char *value, size_t len, uint64_t version, int64_t time_ms) {
    engine->item_bytes += len - item->pub.value.len;
    weft__free(engine->alloc, item->value);
    item->value = value;
    item->pub.value = (weft_bytes){value, len};
    item->pub.version = version;
    item->pub.updated_ms = time_ms;
}

static void note_version(weft_engine *engine, uint64_t version) {
    if (version >= engine->next_version)
        engine->next_version = version + 1;
}

/* ---- reading ---- */

const weft_item *weft__item_find(const weft_engine *engine, const char *collection, const char *key) {
    bool names = weft__collection_is_name(collection) && weft__item_is_key(key);
    const known_item *item = names ? find_item(engine, collection, key) : NULL;
    return item && item->stored ? &item->pub : NULL;
}

const weft_item *weft__item_first(const weft_engine *engine, const char *name) {
    const known_collection *in = find_collection(engine, name);
    return in && in->count ? &in->items[0]->pub : NULL;
}

const weft_item *weft__item_next(const weft_engine *engine, const weft_item *item) {
    const known_collection *in = WEFT_CONTAINER(item, known_item, pub)->in;
    bool found;
    (void) engine;
    size_t at = find_place(in, item->key, &found);
    at += found;
    return at < in->count ? &in->items[at]->pub : NULL;
}

size_t weft__collection_count(const weft_engine *engine, const char *name) {
    const known_collection *in = find_collection(engine, name);
    return in ? in->count : 0;
}

const char *weft__collection_after(const weft_engine *engine, const char *name) {
    for (weft_link *link = engine->collections.next; link != &engine->collections; link = link->next) {
        const known_collection *one = WEFT_CONTAINER(link, known_collection, link);
        if (one->count && (!name || strcmp(one->name, name) > 0))
            return one->name;
    }
    return NULL;
}

/* ---- changes ---- */

static void start_changes(weft_engine *engine, known_item *item);

/* It is over, one way or another. Those behind it may go on. */
static void finish_change(item_change *change, int r, uint64_t version) {
    weft_engine *engine = change->engine;
    known_item *item = change->item;
    weft_item_done *done = change->done;
    void *ctx = change->ctx;
    bool held = item->held;
    weft__list_remove(&change->link);
    engine->item_changes--;
    engine->item_pending -= change->len;
    weft__free(engine->alloc, change->value);
    weft__free(engine->alloc, change);
    item->held = true;
    if (done)
        done(ctx, r, version);
    start_changes(engine, item);
    item->held = held;
    drop_unused(engine, item);
}

static void change_stored(void *ctx, int r) {
    item_change *change = ctx;
    finish_change(change, r > 0 ? -EEXIST : r, change->version);
}

static weft_val change_data(const item_change *change, weft_member members[8], weft_val request) {
    const known_item *item = change->item;
    const weft_member all[] = {
        {"collection", weft_str(item->pub.collection)},
        {"key", weft_str(item->pub.key)},
        {"version", weft_uint(change->version)},
        {"bytes", change->put ? weft_uint(change->len) : weft_none()},
        {"request", request},
    };
    memcpy(members, all, sizeof all);
    return weft_obj(members, sizeof all / sizeof all[0]);
}

static weft_val change_result(const item_change *change, bool deleted, weft_member members[4]) {
    const known_item *item = change->item;
    const weft_member all[4] = {
        {"collection", weft_str(item->pub.collection)},
        {"key", weft_str(item->pub.key)},
        {"version", change->version ? weft_uint(change->version) : weft_none()},
        {"deleted", change->put ? weft_none() : weft_bool(deleted)},
    };
    memcpy(members, all, sizeof all);
    return weft_obj(members, 4);
}

static int write_document(const item_change *change, int64_t now, weft_buf *out) {
    const known_item *item = change->item;
    weft_val document = WEFT_OBJ({"collection", weft_str(item->pub.collection)}, {"key", weft_str(item->pub.key)},
                                 {"version", weft_uint(change->version)}, {"time", weft_int(now)},
                                 {"value", weft_raw(change->value, change->len)});
    return weft__write_val(out, change->engine->alloc, &document);
}

static int send_change(item_change *change) {
    weft_engine *engine = change->engine;
    weft_member members[8], result[4], request[7];
    char key[DOCUMENT_KEY];
    weft_buf text = {0};
    if (engine->next_version >= VERSIONS)
        return -EOVERFLOW;
    change->version = engine->next_version++;
    int r = change->put ? write_document(change, weft__engine_now(engine), &text) : 0;
    document_key(change->item, key);
    weft_document document = {.key = key, .data = {change->put ? weft__buf_head(&text) : NULL, weft__buf_len(&text)}};
    struct draft draft = {.engine = engine, .document = &document, .r = r};
    weft_val asked = change->request
                         ? weft__request_data(change->request, change_result(change, true, result), weft_none(), request)
                         : weft_none();
    weft__draft_add(&draft, WEFT_STREAM_HUB, change->put ? "doc.put" : "doc.deleted", change_data(change, members, asked));
    r = weft__draft_send(&draft, weft__request_key(change->request), change_stored, change);
    weft__buf_done(&text, engine->alloc);
    if (r < 0)
        change->version = 0;
    return r;
}

/* There is nothing to delete. The request is to be answered the same for ever, so that is stored too. */
static int send_nothing(item_change *change) {
    weft_member result[4];
    struct draft draft = {.engine = change->engine};
    if (!change->request)
        return 0;
    weft__request_add(change->request, &draft, change_result(change, false, result));
    int r = weft__draft_send(&draft, weft__request_key(change->request), change_stored, change);
    return r < 0 ? r : 1;
}

static bool is_there(const known_item *item) {
    bool there = item->stored;
    for (weft_link *link = item->changes.next; link != &item->changes; link = link->next) {
        const item_change *change = WEFT_CONTAINER(link, item_change, link);
        if (change->version)
            there = change->put;
    }
    return there;
}

/* All of what is under way counts as if it were added, whatever it replaces: it is much only where much is kept. */
static bool has_room(const weft_engine *engine, const item_change *change) {
    return engine->item_bytes + engine->item_pending <= WEFT_ITEMS_BYTES &&
           (change->item->stored || engine->item_count + engine->item_changes <= engine->limits.max_items);
}

/* 1 it is under way, 0 there was nothing to do, <0. */
static int start_change(item_change *change, uint64_t *ret_version) {
    known_item *item = change->item;
    uint64_t has = item->stored ? item->pub.version : 0;
    *ret_version = 0;
    if (change->expect >= 0 && (uint64_t) change->expect != has) {
        *ret_version = has;
        return -ESTALE;
    }
    if (change->put && !has_room(change->engine, change))
        return -EDQUOT;
    if (!change->put && !is_there(item))
        return send_nothing(change);
    int r = send_change(change);
    return r < 0 ? r : 1;
}

/* One without an expectation need not know what became of those before it. Behind one that waits it waits too. */
static bool may_start(const known_item *item, const item_change *change) {
    if (change->link.prev == &item->changes)
        return true;
    const item_change *before = WEFT_CONTAINER(change->link.prev, item_change, link);
    return change->expect < 0 && before->sent;
}

static void start_changes(weft_engine *engine, known_item *item) {
    for (weft_link *link = item->changes.next; link != &item->changes; link = link->next) {
        item_change *change = WEFT_CONTAINER(link, item_change, link);
        uint64_t version;
        if (change->sent)
            continue;
        if (!may_start(item, change))
            return;
        int r = engine->phase == GONE ? -ECANCELED : start_change(change, &version);
        change->sent = r > 0;
        if (r <= 0) {
            finish_change(change, r, r < 0 && engine->phase != GONE ? version : 0);
            return; /* which went on with those behind it */
        }
    }
}

static item_change *new_change(weft_engine *engine, known_item *item, const weft_item_change *from) {
    item_change *made = weft__zalloc(engine->alloc, sizeof *made);
    if (made && from->value.text && !(made->value = weft__strndup(engine->alloc, from->value.text, from->value.len)))
        made = weft__free(engine->alloc, made);
    if (!made)
        return NULL;
    made->engine = engine;
    made->item = item;
    made->put = made->value != NULL;
    made->len = from->value.len;
    made->expect = from->expect;
    made->request = from->request;
    weft__list_push(&item->changes, &made->link);
    engine->item_changes++;
    engine->item_pending += made->len;
    return made;
}

static int check_change(const weft_engine *engine, const weft_item_change *change) {
    if (engine->phase != READY || engine->past_unread)
        return engine->phase <= READY ? -EAGAIN : -ESHUTDOWN;
    if (!weft__collection_is_name(change->collection) || !weft__item_is_key(change->key))
        return -EINVAL;
    if (change->value.len > WEFT_ITEM_BYTES)
        return -EMSGSIZE;
    if (engine->item_changes >= engine->limits.max_item_changes)
        return -EUSERS;
    bool new_one = change->value.text && !find_collection(engine, change->collection);
    return new_one && engine->collection_count >= WEFT_COLLECTIONS ? -EDQUOT : 0;
}

int weft__item_change(weft_engine *engine, const weft_item_change *from, weft_item_done *done, void *ctx) {
    uint64_t version;
    int r = check_change(engine, from);
    if (r < 0)
        return r;
    known_item *item = find_item(engine, from->collection, from->key);
    if (!item)
        item = new_item(engine, from->collection, from->key);
    if (!item)
        return -ENOMEM;
    item_change *change = new_change(engine, item, from);
    r = change ? 1 : -ENOMEM;
    if (change && may_start(item, change)) {
        r = start_change(change, &version);
        change->sent = r > 0;
    }
    if (r > 0) {
        change->done = done;
        change->ctx = ctx;
        return 0;
    }
    if (change)
        finish_change(change, r, 0); /* of which nobody hears: it is said here */
    else
        drop_unused(engine, item);
    return r < 0 ? r : 1;
}

/* ---- events ---- */

/* Which item an event is about, its version, and the request that it came with; -EBADMSG, -ENOMEM. */
static int read_item_event(const weft_json *data, weft_item *ret, weft_json *ret_request) {
    enum { COLLECTION, KEY, NUMBER, REQUEST };
    static const char *const names[] = {"collection", "key", "version", "request"};
    weft_json of[4];
    weft__get_all(data, names, 4, of);
    weft_item item = {.version = (uint64_t) weft__value_between(&of[NUMBER], 0, 0, (int64_t) VERSIONS - 1)};
    if (weft__value_string(&of[COLLECTION], &item.collection) < 0 || weft__value_string(&of[KEY], &item.key) < 0)
        return -ENOMEM;
    if (!item.collection || !item.key || !item.version || !weft__collection_is_name(item.collection) ||
        !weft__item_is_key(item.key))
        return -EBADMSG;
    *ret = item;
    *ret_request = of[REQUEST];
    return 0;
}

static int begin_applying(weft_engine *engine, const weft_event *event, const weft_json *data, weft_item *ret) {
    weft_json request;
    int r = read_item_event(data, ret, &request);
    if (r >= 0)
        r = weft__request_note(engine, event, &request);
    if (r >= 0)
        note_version(engine, ret->version);
    return r;
}

static item_change *find_change(const known_item *item, uint64_t version) {
    for (weft_link *link = item->changes.next; link != &item->changes; link = link->next) {
        item_change *change = WEFT_CONTAINER(link, item_change, link);
        if (change->version == version)
            return change;
    }
    return NULL;
}

/* At a start its document has been read. */
int weft__item_apply_put(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft_item said;
    int r = begin_applying(engine, event, data, &said);
    if (r < 0 || engine->phase == FOLDING)
        return r;
    known_item *item = find_item(engine, said.collection, said.key);
    item_change *change = item ? find_change(item, said.version) : NULL;
    if (!change)
        return -EBADMSG; /* somebody else wrote to our journal, and the value is not in the event */
    r = item->stored ? 0 : reserve_place(engine, item->in);
    if (r < 0)
        return r;
    set_value(engine, item, change->value, change->len, said.version, event->time_ms);
    change->value = NULL;
    if (!item->stored)
        show_item(engine, item);
    return 0;
}

int weft__item_apply_deleted(weft_engine *engine, const weft_event *event, const weft_json *data) {
    weft_item said;
    int r = begin_applying(engine, event, data, &said);
    if (r < 0 || engine->phase == FOLDING)
        return r;
    known_item *item = find_item(engine, said.collection, said.key);
    if (!item || !item->stored || item->pub.version >= said.version)
        return 0;
    hide_item(engine, item);
    drop_unused(engine, item);
    return 0;
}

int weft__item_restore(weft_engine *engine, const weft_json *data) {
    weft_item said;
    weft_json value = weft_get(data, "value"), request;
    int r = read_item_event(data, &said, &request);
    if (r < 0)
        return r;
    if (!value.text)
        return -EBADMSG;
    if (find_item(engine, said.collection, said.key))
        return 0; /* it was read before, with others for which there was no memory */
    char *copy = weft__strndup(engine->alloc, value.text, value.len);
    known_item *item = copy ? new_item(engine, said.collection, said.key) : NULL;
    if (!item || reserve_place(engine, item->in) < 0) {
        weft__free(engine->alloc, copy);
        if (item)
            drop_unused(engine, item);
        return -ENOMEM;
    }
    set_value(engine, item, copy, value.len, said.version, weft_get_int(data, "time", 0));
    show_item(engine, item);
    note_version(engine, said.version);
    return 0;
}

/* ---- life ---- */

void weft__items_init(weft_engine *engine) {
    weft__list_init(&engine->collections);
    engine->items.alloc = engine->alloc;
    engine->next_version = 1;
}

/* Nothing is under way any more. */
void weft__items_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->collections)) {
        known_collection *first = WEFT_CONTAINER(engine->collections.next, known_collection, link);
        known_item *item = first->items[first->count - 1];
        hide_item(engine, item);
        drop_unused(engine, item);
    }
    weft__map_done(&engine->items);
}
