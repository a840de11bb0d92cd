/* The allocator hook, the arena and the list. */
#include <stdlib.h>

#include "alloc.h"
#include "arena.h"
#include "harness.h"
#include "list.h"

/* ---- the hook ---- */

TEST(default_is_the_c_library) {
    static const weft_alloc empty = {0};
    const weft_alloc *const hooks[] = {NULL, &empty};
    for (size_t i = 0; i < 2; i++) {
        char *p = weft__alloc(hooks[i], 10);
        REQUIRE(p);
        memcpy(p, "123456789", 10);
        p = weft__resize(hooks[i], p, 1000);
        REQUIRE(p);
        CHECK_STR(p, "123456789");
        CHECK(weft__free(hooks[i], p) == NULL);
    }
}

TEST(hook_is_used) {
    test_memory memory;
    test_memory_init(&memory, 0);
    void *a = weft__alloc(&memory.alloc, 0), *b = weft__zalloc(&memory.alloc, 100);
    char *c = weft__strndup(&memory.alloc, "hello", 4);
    CHECK(a && b && c);
    CHECK_INT(memory.live, 3);
    static const char zeros[100];
    CHECK(b && memcmp(b, zeros, 100) == 0);
    CHECK_STR(c, "hell");
    weft__free(&memory.alloc, a);
    weft__free(&memory.alloc, b);
    weft__free(&memory.alloc, c);
    CHECK_INT(memory.live, 0);
}

TEST(empty_string) {
    char *text = weft__strndup(NULL, NULL, 0);
    CHECK_STR(text, "");
    weft__free(NULL, text);
}

TEST(free_of_nothing) {
    test_memory memory;
    test_memory_init(&memory, 0);
    CHECK(weft__free(&memory.alloc, NULL) == NULL);
    CHECK(weft__free(NULL, NULL) == NULL);
    CHECK_INT(memory.live, 0);
}

TEST(failure_is_null) {
    for (int i = 0; i < 3; i++) {
        test_memory memory;
        test_memory_init(&memory, 1);
        CHECK(i == 0   ? !weft__alloc(&memory.alloc, 1)
              : i == 1 ? !weft__zalloc(&memory.alloc, 1)
                       : !weft__strndup(&memory.alloc, "x", 1));
    }
}

/* ---- the arena ---- */

TEST(arena_many_sizes) {
    test_memory memory;
    test_memory_init(&memory, 0);
    weft_arena arena = {.alloc = &memory.alloc};
    unsigned char *pieces[300];
    for (size_t i = 0; i < 300; i++) {
        pieces[i] = weft__arena_alloc(&arena, i * 7);
        REQUIRE(pieces[i]);
        CHECK_INT((uintptr_t) pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int) i, i * 7);
    }
    for (size_t i = 1; i < 300; i++)
        CHECK(pieces[i][0] == (unsigned char) i && pieces[i][i * 7 - 1] == (unsigned char) i);
    /* 314 KiB in blocks that double from one. */
    CHECK(memory.count <= 12);
    weft__arena_done(&arena);
    CHECK_INT(memory.live, 0);
    weft__arena_done(&arena);
}

TEST(arena_large_piece) {
    weft_arena arena = {0};
    char *small = weft__arena_alloc(&arena, 10), *large = weft__arena_alloc(&arena, 1 << 20);
    REQUIRE(small && large);
    memset(large, 'x', 1 << 20);
    memset(small, 'y', 10);
    CHECK(large[0] == 'x');
    weft__arena_done(&arena);
}

TEST(arena_without_memory) {
    test_memory memory;
    test_memory_init(&memory, 2);
    weft_arena arena = {.alloc = &memory.alloc};
    CHECK(weft__arena_alloc(&arena, 1000));
    CHECK(!weft__arena_alloc(&arena, 1000));
    CHECK(!weft__arena_alloc(&arena, SIZE_MAX));
    CHECK(weft__arena_alloc(&arena, 8));
    weft__arena_done(&arena);
    CHECK_INT(memory.live, 0);
}

/* ---- the list ---- */

typedef struct item {
    int value;
    weft_link link;
} item;

static int read_list(const weft_link *head) {
    int digits = 0;
    for (const weft_link *link = head->next; link != head; link = link->next)
        digits = digits * 10 + WEFT_CONTAINER(link, const item, link)->value;
    return digits;
}

TEST(list) {
    weft_link head;
    item items[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
    weft__list_init(&head);
    CHECK(weft__list_empty(&head));
    for (size_t i = 0; i < 3; i++)
        weft__list_push(&head, &items[i].link);
    CHECK(!weft__list_empty(&head));
    CHECK_INT(read_list(&head), 123);
    weft__list_remove(&items[1].link);
    CHECK_INT(read_list(&head), 13);
    weft__list_remove(&items[1].link);
    CHECK_INT(read_list(&head), 13);
    weft__list_push(&head, &items[1].link);
    CHECK_INT(read_list(&head), 132);
    weft__list_remove(&items[0].link);
    weft__list_remove(&items[2].link);
    weft__list_remove(&items[1].link);
    CHECK(weft__list_empty(&head));
    weft__list_remove(&head);
    CHECK(weft__list_empty(&head));
}

TEST_MAIN(CASE(default_is_the_c_library) CASE(hook_is_used) CASE(empty_string) CASE(free_of_nothing) CASE(failure_is_null)
              CASE(arena_many_sizes) CASE(arena_large_piece) CASE(arena_without_memory) CASE(list))
