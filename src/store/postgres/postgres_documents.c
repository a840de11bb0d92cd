/* The documents of a transaction: what remains of all that its appends say about them, in a few statements. */
#include <errno.h>
#include <string.h>

#include "postgres_store.h"

/* One document. In the list they are in the order in which they come into being. */
typedef struct change {
    weft_link link;
    weft_node node;
    const weft_document *last; /* what is said last; its data is NULL when it is deleted */
    bool anew;                 /* it was deleted before, and gets another place */
} change;

typedef struct changes {
    const weft_alloc *alloc;
    weft_link list;
    weft_map keys;
} changes;

static int note_change(changes *all, const weft_document *document) {
    weft_node *found = weft__map_find(&all->keys, document->key);
    change *one = found ? WEFT_CONTAINER(found, change, node) : weft__zalloc(all->alloc, sizeof *one);
    if (!one)
        return -ENOMEM;
    if (!found) {
        weft__list_push(&all->list, &one->link);
        weft__map_put(&all->keys, &one->node, document->key);
    }
    if (found && !one->last->data.data && document->data.data) {
        weft__list_remove(&one->link);
        weft__list_push(&all->list, &one->link);
    }
    one->last = document;
    one->anew |= !document->data.data;
    return 0;
}

static int note_changes(changes *all, const weft_link *jobs) {
    int r = 0;
    for (const weft_link *link = jobs->next; link != jobs; link = link->next) {
        const weft_append_job *job = (const weft_append_job *) (void *) WEFT_CONTAINER(link, weft_job, link);
        for (size_t i = 0; r >= 0 && job->job.r >= 0 && !job->repeat && i < job->document_count; i++)
            r = note_change(all, &job->documents[i]);
    }
    return r;
}

static void forget_changes(changes *all) {
    while (!weft__list_empty(&all->list)) {
        change *one = WEFT_CONTAINER(all->list.next, change, link);
        weft__list_remove(&one->link);
        weft__map_remove(&all->keys, &one->node);
        weft__free(all->alloc, one);
    }
    weft__map_done(&all->keys);
}

/* Array 0: keys to delete; 1 and 2: keys and data of what is there afterwards. */
static int list_changes(weft_pg *pg, const changes *all) {
    const weft_alloc *alloc = pg->base.alloc;
    int r = 0;
    for (int i = 0; r >= 0 && i < 3; i++)
        r = weft__pg_array_begin(&pg->arrays[i], alloc, true);
    for (const weft_link *link = all->list.next; r >= 0 && link != &all->list; link = link->next) {
        const change *one = WEFT_CONTAINER(link, change, link);
        const weft_document *last = one->last;
        if (one->anew)
            r = weft__pg_array_bytes(&pg->arrays[0], alloc, last->key, strlen(last->key));
        if (r >= 0 && last->data.data)
            r = weft__pg_array_bytes(&pg->arrays[1], alloc, last->key, strlen(last->key));
        if (r >= 0 && last->data.data)
            r = weft__pg_array_bytes(&pg->arrays[2], alloc, last->data.data, last->data.len);
    }
    return r;
}

static void send_changes(weft_pg *pg) {
    weft_pg_params gone = {0}, kept = {0};
    weft__pg_array(&gone, &pg->arrays[0]);
    weft__pg_array(&kept, &pg->arrays[1]);
    weft__pg_array(&kept, &pg->arrays[2]);
    if (pg->arrays[0].count)
        weft__pg_send_named(&pg->write, "drop_documents", &gone);
    if (!pg->arrays[1].count)
        return;
    weft__pg_send_named(&pg->write, "set_documents", &kept);
    weft__pg_send_named(&pg->write, "new_documents", &kept);
}

int weft__pg_put_documents(weft_pg *pg, const weft_link *jobs) {
    changes all = {.alloc = pg->base.alloc, .keys = {.alloc = pg->base.alloc}};
    weft__list_init(&all.list);
    int r = note_changes(&all, jobs);
    if (r >= 0 && !weft__list_empty(&all.list)) {
        r = list_changes(pg, &all);
        if (r >= 0)
            send_changes(pg);
    }
    forget_changes(&all);
    return r;
}
