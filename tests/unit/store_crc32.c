/* The sum is zlib's, of every length and from every place, and of pieces as of the whole. */
#include "crc32.h"

#include <zlib.h>

#include "harness.h"

#define MAX 700

static unsigned char bytes[MAX + 32];

static void fill_bytes(void) {
    uint32_t n = 12345;
    for (size_t i = 0; i < sizeof bytes; i++) {
        n = n * 1664525 + 1013904223;
        bytes[i] = (unsigned char) (n >> 24);
    }
}

TEST(every_length_has_the_sum_of_zlib) {
    fill_bytes();
    for (size_t len = 0; len <= MAX; len++)
        CHECK_INT(weft__crc32(0, bytes + len % 17, len), (uint32_t) crc32_z(0, bytes + len % 17, len));
}

TEST(a_sum_goes_on_where_it_was) {
    fill_bytes();
    uint32_t whole = (uint32_t) crc32_z(0, bytes, MAX);
    for (size_t at = 0; at <= MAX; at++)
        CHECK_INT(weft__crc32(weft__crc32(0, bytes, at), bytes + at, MAX - at), whole);
}

TEST(a_known_sum) {
    CHECK_INT(weft__crc32(0, "123456789", 9), 0xcbf43926);
    CHECK_INT(weft__crc32(0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
}

TEST_MAIN(CASE(every_length_has_the_sum_of_zlib) CASE(a_sum_goes_on_where_it_was) CASE(a_known_sum))
