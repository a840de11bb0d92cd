/* The waiting times between attempts, as a table: no clock is involved. */
#include "backoff.h"
#include "harness.h"

#define LOW 0u
#define MIDDLE 0x80000000u
#define HIGH 0xffffffffu

TEST(doubles_up_to_the_longest) {
    static const int64_t want[] = {100, 200, 400, 800, 1600, 3200, 6400, 12800, 16000, 16000, 16000};
    weft_backoff backoff = {0};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        CHECK_INT(weft__backoff_next(&backoff, MIDDLE), want[i]);
}

TEST(stays_within_half_of_it) {
    weft_backoff low = {0}, high = {0};
    for (int i = 0; i < 100; i++) {
        weft_backoff middle = low;
        int64_t base = weft__backoff_next(&middle, MIDDLE);
        CHECK_INT(weft__backoff_next(&low, LOW), base / 2);
        CHECK_INT(weft__backoff_next(&high, HIGH), base / 2 + base - 1);
    }
}

TEST(starts_again_after_success) {
    weft_backoff backoff = {0};
    for (int i = 0; i < 5; i++)
        weft__backoff_next(&backoff, MIDDLE);
    weft__backoff_reset(&backoff);
    CHECK_INT(weft__backoff_next(&backoff, MIDDLE), 100);
}

TEST_MAIN(CASE(doubles_up_to_the_longest) CASE(stays_within_half_of_it) CASE(starts_again_after_success))
