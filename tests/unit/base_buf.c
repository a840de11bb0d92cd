/* The byte queue: appending, taking, sliding, growing, and working in lent memory. */
#include "buf.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

static void check_content(const weft_buf *buf, const char *want) {
    CHECK_TEXT(weft__buf_head(buf), weft__buf_len(buf), want);
}

/* Everything behind the end up to the slack may be written. */
static void touch_slack(const weft_buf *buf) {
    if (buf->data)
        memset(weft__buf_tail(buf), 0x55, buf->cap - buf->end + WEFT_SLACK);
}

TEST(put_and_take) {
    test_memory memory;
    test_memory_init(&memory, 0);
    weft_buf buf = {0};
    CHECK_INT(weft__buf_len(&buf), 0);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, "hello", 5), 0);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, NULL, 0), 0);
    touch_slack(&buf);
    weft__buf_take(&buf, &memory.alloc, 2);
    check_content(&buf, "llo");
    weft__buf_take(&buf, &memory.alloc, 0);
    check_content(&buf, "llo");
    weft__buf_take(&buf, &memory.alloc, 3);
    CHECK(buf.data == NULL && buf.cap == 0);
    CHECK_INT(memory.live, 0);
}

TEST(empty_buffer_needs_no_memory) {
    test_memory memory;
    test_memory_init(&memory, 1);
    weft_buf buf = {0};
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, "", 0), 0);
    CHECK_INT(weft__buf_reserve(&buf, &memory.alloc, 0), 0);
    weft__buf_take(&buf, &memory.alloc, 0);
    weft__buf_done(&buf, &memory.alloc);
    CHECK_INT(memory.count, 0);
}

/* Room in front is used again while that costs no more than what was taken; otherwise the buffer grows. */
TEST(slides_or_grows) {
    test_memory memory;
    test_memory_init(&memory, 0);
    weft_buf buf = {0};
    char bytes[600];
    memset(bytes, 'x', sizeof bytes);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, bytes, 500), 0);
    size_t cap = buf.cap;
    weft__buf_take(&buf, &memory.alloc, 400);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, bytes, 300), 0);
    CHECK_INT(buf.start, 0);
    CHECK_INT(buf.cap, cap);
    CHECK_INT(weft__buf_len(&buf), 400);
    CHECK_INT(memory.count, 1);

    weft__buf_take(&buf, &memory.alloc, 100);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, bytes, 200), 0);
    CHECK_INT(memory.count, 2);
    CHECK_INT(buf.start, 0);
    CHECK_INT(weft__buf_len(&buf), 500);
    CHECK(buf.cap >= 2 * cap);
    touch_slack(&buf);
    weft__buf_done(&buf, &memory.alloc);
    CHECK_INT(memory.live, 0);
}

/* What comes out is what went in, whatever the pieces; compared with a plain array. */
TEST(behaves_like_a_queue) {
    static char model[200000];
    size_t head = 0, tail = 0;
    weft_buf buf = {0};
    uint32_t seed = 1;
    for (int i = 0; i < 5000; i++) {
        seed = seed * 1664525 + 1013904223;
        size_t n = (seed >> 8) % 60;
        if (seed >> 31 && tail + n <= sizeof model) {
            for (size_t j = 0; j < n; j++)
                model[tail + j] = (char) (seed >> (j % 24));
            CHECK_INT(weft__buf_put(&buf, NULL, model + tail, n), 0);
            tail += n;
        } else {
            n = n < tail - head ? n : tail - head;
            weft__buf_take(&buf, NULL, n);
            head += n;
        }
        touch_slack(&buf);
        REQUIRE(weft__buf_len(&buf) == tail - head);
        REQUIRE(tail == head || memcmp(weft__buf_head(&buf), model + head, tail - head) == 0);
    }
    weft__buf_done(&buf, NULL);
}

TEST(growing_doubles) {
    test_memory memory;
    test_memory_init(&memory, 0);
    weft_buf buf = {0};
    for (int i = 0; i < 1 << 20; i++)
        CHECK_INT(weft__buf_put(&buf, &memory.alloc, "x", 1), 0);
    CHECK(memory.count <= 12);
    weft__buf_done(&buf, &memory.alloc);
    CHECK_INT(memory.live, 0);
}

TEST(refuses_what_cannot_be) {
    weft_buf buf = {0};
    CHECK_INT(weft__buf_put(&buf, NULL, "abc", 3), 0);
    CHECK_INT(weft__buf_reserve(&buf, NULL, SIZE_MAX), -ENOMEM);
    CHECK_INT(weft__buf_reserve(&buf, NULL, SIZE_MAX / 2), -ENOMEM);
    check_content(&buf, "abc");
    weft__buf_done(&buf, NULL);
}

TEST(content_survives_a_failure) {
    char bytes[2000] = {0};
    for (size_t taken = 0; taken < 2; taken++) {
        test_memory memory;
        test_memory_init(&memory, 2);
        weft_buf buf = {0};
        CHECK_INT(weft__buf_put(&buf, &memory.alloc, "xabc", 4), 0);
        weft__buf_take(&buf, &memory.alloc, taken);
        CHECK_INT(weft__buf_put(&buf, &memory.alloc, bytes, sizeof bytes), -ENOMEM);
        check_content(&buf, taken ? "abc" : "xabc");
        weft__buf_done(&buf, &memory.alloc);
        CHECK_INT(memory.live, 0);
    }
}

/* ---- lent memory ---- */

TEST(loan_that_ends_empty) {
    test_memory memory;
    test_memory_init(&memory, 0);
    char lent[256 + WEFT_SLACK];
    weft_buf buf = {0};
    weft__buf_lend(&buf, &memory.alloc, lent, sizeof lent);
    CHECK(buf.lent);
    CHECK_INT(buf.cap, 256);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(weft__buf_put(&buf, &memory.alloc, lent, 200), 0);
        touch_slack(&buf);
        weft__buf_take(&buf, &memory.alloc, 200);
        CHECK(buf.lent);
    }
    CHECK_INT(weft__buf_return(&buf, &memory.alloc), 0);
    CHECK(!buf.lent && !buf.data);
    CHECK_INT(memory.count, 0);
}

TEST(loan_that_ends_with_a_rest) {
    test_memory memory;
    test_memory_init(&memory, 0);
    char *lent = malloc(256 + WEFT_SLACK);
    weft_buf buf = {0};
    weft__buf_lend(&buf, &memory.alloc, lent, 256 + WEFT_SLACK);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, "hello", 5), 0);
    weft__buf_take(&buf, &memory.alloc, 1);
    CHECK_INT(weft__buf_return(&buf, &memory.alloc), 0);
    free(lent);
    CHECK(!buf.lent);
    check_content(&buf, "ello");
    touch_slack(&buf);
    weft__buf_done(&buf, &memory.alloc);
    CHECK_INT(memory.live, 0);
}

TEST(loan_that_is_outgrown) {
    test_memory memory;
    test_memory_init(&memory, 0);
    char lent[16 + WEFT_SLACK];
    weft_buf buf = {0};
    weft__buf_lend(&buf, &memory.alloc, lent, sizeof lent);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, "0123456789", 10), 0);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, "0123456789", 10), 0);
    CHECK(!buf.lent && buf.data != lent);
    check_content(&buf, "01234567890123456789");
    CHECK_INT(weft__buf_return(&buf, &memory.alloc), 0);
    check_content(&buf, "01234567890123456789");
    weft__buf_done(&buf, &memory.alloc);
    CHECK_INT(memory.live, 0);
}

TEST(loan_that_slides) {
    char lent[16 + WEFT_SLACK];
    weft_buf buf = {0};
    weft__buf_lend(&buf, NULL, lent, sizeof lent);
    CHECK_INT(weft__buf_put(&buf, NULL, "0123456789abcd", 14), 0);
    weft__buf_take(&buf, NULL, 12);
    CHECK_INT(weft__buf_put(&buf, NULL, "efgh", 4), 0);
    CHECK(buf.lent && buf.start == 0);
    check_content(&buf, "cdefgh");
    weft__buf_done(&buf, NULL);
    CHECK(!buf.lent && !buf.data);
}

TEST(loan_not_taken) {
    char lent[WEFT_SLACK + 16], other[WEFT_SLACK + 16];
    weft_buf buf = {0};
    CHECK_INT(weft__buf_put(&buf, NULL, "x", 1), 0);
    weft__buf_lend(&buf, NULL, lent, sizeof lent);
    CHECK(!buf.lent);
    check_content(&buf, "x");
    weft__buf_done(&buf, NULL);

    weft__buf_lend(&buf, NULL, lent, WEFT_SLACK);
    CHECK(!buf.lent);
    weft__buf_lend(&buf, NULL, lent, sizeof lent);
    weft__buf_lend(&buf, NULL, other, sizeof other);
    CHECK(buf.data == lent);
    weft__buf_done(&buf, NULL);
}

/* A buffer that kept memory for later gives it back when it can work in lent memory instead. */
TEST(loan_frees_what_was_reserved) {
    test_memory memory;
    test_memory_init(&memory, 0);
    char lent[WEFT_SLACK + 16];
    weft_buf buf = {0};
    CHECK_INT(weft__buf_reserve(&buf, &memory.alloc, 100), 0);
    weft__buf_lend(&buf, &memory.alloc, lent, sizeof lent);
    CHECK_INT(memory.live, 0);
    CHECK(buf.lent);
    weft__buf_done(&buf, &memory.alloc);
}

TEST(loan_that_ends_without_memory) {
    test_memory memory;
    test_memory_init(&memory, 1);
    char lent[WEFT_SLACK + 16];
    weft_buf buf = {0};
    weft__buf_lend(&buf, &memory.alloc, lent, sizeof lent);
    CHECK_INT(weft__buf_put(&buf, &memory.alloc, "x", 1), 0);
    CHECK_INT(weft__buf_return(&buf, &memory.alloc), -ENOMEM);
    CHECK(!buf.lent && !buf.data && weft__buf_len(&buf) == 0);
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(CASE(put_and_take) CASE(empty_buffer_needs_no_memory) CASE(slides_or_grows) CASE(behaves_like_a_queue)
              CASE(growing_doubles) CASE(refuses_what_cannot_be) CASE(content_survives_a_failure) CASE(loan_that_ends_empty)
                  CASE(loan_that_ends_with_a_rest) CASE(loan_that_is_outgrown) CASE(loan_that_slides) CASE(loan_not_taken)
                      CASE(loan_frees_what_was_reserved) CASE(loan_that_ends_without_memory))
