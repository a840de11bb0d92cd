/* A doubly linked list whose links lie inside its members. The head is a link too and points to itself when empty. */
#ifndef WEFT_LIST_H
#define WEFT_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Writing through a link may change the head that lies inside another structure. gcc 12 does not see it everywhere: in a
 * loop that moved members from one list to another it read the heads once, before the loop, which then never ended. */
typedef struct __attribute__((may_alias)) weft_link {
    struct weft_link *prev, *next;
} weft_link;

/* clang-format takes the minus for a sign. */
/* clang-format off */
#define WEFT_CONTAINER(link, type, field) ((type *) (void *) ((char *) (link) - offsetof(type, field)))
/* clang-format on */

static inline void weft__list_init(weft_link *head) {
    head->prev = head->next = head;
}
static inline bool weft__list_empty(const weft_link *head) {
    return head->next == head;
}
static inline void weft__list_push(weft_link *head, weft_link *link) {
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}
/* Harmless on a link that is in no list, when it was initialised or removed before. */
static inline void weft__list_remove(weft_link *link) {
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = link;
}

#endif
