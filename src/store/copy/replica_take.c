/* Reading what a hub says of its journal. Everything may be there or not, and mean anything. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "change_log.h"
#include "replica.h"

/* Of an array in a change: as many as an append may have. */
#define MOST WEFT_STORE_EVENTS

static uint64_t number_of(const weft_json *object, const char *name) {
    int64_t n = weft_get_int(object, name, 0);
    return n > 0 ? (uint64_t) n : 0;
}

/* Data is a string; "" is data too, and what is none of both is not. */
static int read_data(const weft_json *object, weft_bytes *ret) {
    weft_json data = weft_get(object, "data");
    int r = weft_bytes_of(&data, ret);
    if (r >= 0 && !ret->data)
        ret->data = "";
    return r == -EINVAL ? -EPROTO : r;
}

static int read_event(const weft_json *row, weft_event *ret) {
    weft_json key = weft_get(row, "key");
    *ret = (weft_event){
        .gseq = number_of(row, "gseq"),
        .seq = number_of(row, "seq"),
        .stream = weft_get_str(row, "stream", ""),
        .type = weft_get_str(row, "type", ""),
        .time_ms = weft_get_int(row, "time", 0),
        .key = key.text ? weft_str_of(&key, "") : NULL,
    };
    return read_data(row, &ret->data);
}

/* ---- pages ---- */

static int take_row(weft_replica *replica, int part, uint64_t after, uint64_t trimmed, const weft_json *row,
                    uint64_t *ret_at) {
    weft_event event;
    weft_bytes data;
    int r;
    *ret_at = part == WEFT_COPY_EVENTS    ? number_of(row, "gseq")
              : part == WEFT_COPY_REMOVED ? (uint64_t) weft_int_of(row, 0)
                                          : number_of(row, "place");
    if (*ret_at <= after || *ret_at > INT64_MAX)
        return weft__replica_refuse(replica, "rows are not in their order after", after);
    switch (part) {
    case WEFT_COPY_EVENTS:
        r = read_event(row, &event);
        return r < 0 ? r : weft__replica_event(replica, &event, trimmed);
    case WEFT_COPY_STREAMS:
        return weft__replica_trimmed(replica, weft_get_str(row, "stream", ""), number_of(row, "trimmed"));
    case WEFT_COPY_REMOVED:
        return weft__replica_removed(replica, *ret_at);
    default:
        r = read_data(row, &data);
        return r < 0 ? r : weft__replica_document(replica, after, *ret_at, weft_get_str(row, "key", ""), data);
    }
}

static int end_part(weft_replica *replica, int part, uint64_t last, uint64_t trimmed) {
    return part == WEFT_COPY_EVENTS      ? weft__replica_events_end(replica, trimmed)
           : part == WEFT_COPY_DOCUMENTS ? weft__replica_documents_end(replica, last)
                                         : 0;
}

int weft__replica_take_page(weft_replica *replica, int part, uint64_t after, const weft_json *page, uint64_t *ret_last,
                            bool *ret_more) {
    weft_json rows = weft_get(page, "rows");
    uint64_t at = after, last = number_of(page, "last"), trimmed = number_of(page, "trimmed");
    bool more = weft_get_bool(page, "more", false);
    size_t n = 0;
    int r = weft_typeof(&rows) == WEFT_ARRAY ? 0 : -EPROTO;
    for (weft_iter it = weft_iterate(&rows); r >= 0 && weft_next(&it); n++) {
        uint64_t place = at;
        r = n < WEFT_STORE_PAGE ? take_row(replica, part, at, trimmed, &it.value, &place) : -EPROTO;
        at = place;
    }
    /* With nothing behind it, and nothing in it, it would be asked for again for ever. */
    if (r >= 0 && (last < at || last >= INT64_MAX || (more && last == after)))
        r = -EPROTO;
    if (r >= 0 && !more)
        r = end_part(replica, part, last, trimmed);
    if (r == -EPROTO && !*weft__replica_why(replica))
        weft__replica_refuse(replica, "this page makes no sense, after", after);
    if (r < 0)
        return r;
    *ret_last = last;
    *ret_more = more;
    return 0;
}

/* ---- changes ---- */

typedef struct reading {
    weft_event events[MOST];
    weft_document documents[MOST];
    uint64_t removals[MOST];
} reading;

static int read_events(reading *to, const weft_json *list, size_t *ret_count) {
    size_t n = 0;
    int r = 0;
    for (weft_iter it = weft_iterate(list); list->text && r >= 0 && weft_next(&it); n++)
        r = n < MOST ? read_event(&it.value, &to->events[n]) : -EPROTO;
    *ret_count = n;
    return r;
}

static int read_documents(reading *to, const weft_json *list, size_t *ret_count) {
    size_t n = 0;
    int r = 0;
    for (weft_iter it = weft_iterate(list); list->text && r >= 0 && weft_next(&it); n++) {
        weft_json data = weft_get(&it.value, "data");
        if (n == MOST)
            return -EPROTO;
        to->documents[n] = (weft_document){.key = weft_get_str(&it.value, "key", "")};
        if (weft_typeof(&data) != WEFT_NULL)
            r = read_data(&it.value, &to->documents[n].data);
    }
    *ret_count = n;
    return r;
}

static int read_removals(reading *to, const weft_json *list, size_t *ret_count) {
    size_t n = 0;
    for (weft_iter it = weft_iterate(list); list->text && weft_next(&it); n++) {
        int64_t gseq = weft_int_of(&it.value, 0);
        if (n == MOST || gseq <= 0)
            return -EPROTO;
        to->removals[n] = (uint64_t) gseq;
    }
    *ret_count = n;
    return 0;
}

static int take_change(weft_replica *replica, reading *room, const weft_json *said) {
    weft_replica_state *state = weft__replica_state(replica);
    weft_json events = weft_get(said, "events"), documents = weft_get(said, "documents"),
              removed = weft_get(said, "removed");
    weft_json trimmed = weft_get(said, "trimmed");
    weft_store_change change = {.events = room->events, .documents = room->documents, .removals = room->removals};
    if (number_of(said, "number") != state->change + 1)
        return weft__replica_refuse(replica, "changes are missing after number", state->change);
    int r = read_events(room, &events, &change.count);
    if (r >= 0)
        r = read_documents(room, &documents, &change.document_count);
    if (r >= 0)
        r = read_removals(room, &removed, &change.removal_count);
    if (r < 0)
        return r;
    if (change.count)
        change.key = change.events[0].key;
    if (trimmed.text) {
        change.trimmed = number_of(&trimmed, "upto");
        change.stream = weft_get(&trimmed, "stream").text ? weft_get_str(&trimmed, "stream", "") : NULL;
        if (!change.trimmed || change.count || change.document_count || change.removal_count)
            return -EPROTO;
    } else if (!change.count && !change.document_count && !change.removal_count)
        return -EPROTO;
    r = weft__replica_apply(replica, &change);
    if (r >= 0)
        state->change++;
    return r;
}

int weft__replica_take_changes(weft_replica *replica, const weft_json *changes) {
    int r = weft_typeof(changes) == WEFT_ARRAY ? 0 : -EPROTO;
    const weft_alloc *alloc = weft__replica_alloc(replica);
    reading *room = weft__alloc(alloc, sizeof *room);
    if (!room)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(changes); r >= 0 && weft_next(&it);)
        r = take_change(replica, room, &it.value);
    weft__free(alloc, room);
    if (r == -EPROTO && !*weft__replica_why(replica))
        weft__replica_refuse(replica, "this change makes no sense, after number", weft__replica_state(replica)->change);
    return r;
}
