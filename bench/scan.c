/* How fast the scanner is: an 80-byte request in nanoseconds, 64 KiB texts in GB/s with memcpy of the same bytes beside
 * them. It prints and asserts nothing. Each figure is the best of many repeats, because everything that disturbs a run makes
 * it slower and never faster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "message.h"
#include "scan.h"
#include "scan_texts.h"

#define REPEATS 400 /* short ones: on a busy machine a quiet moment is short too */

static const char request[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[\"hello weft, this is a text\"],\"id\":1}";

typedef void work(const char *text, size_t len);

static char copied[TEXT_SIZE + WEFT_SLACK];

static double now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

/* Nanoseconds for one round of work: the best of REPEATS runs of so many rounds. */
static double best(work *once, const char *text, size_t len, int rounds) {
    double least = 1e18;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_ns();
        for (int j = 0; j < rounds; j++)
            once(text, len);
        double took = (now_ns() - start) / rounds;
        if (took < least)
            least = took;
    }
    return least;
}

static void validate(const char *text, size_t len) {
    if (weft__scan_value(text, WEFT_MAX_DEPTH) != text + len)
        abort();
}

/* What the peer does with a request: taken apart into its members, the text validated in the same pass. */
static void envelope(const char *text, size_t len) {
    weft_msg msg;
    const char *rest;
    if (weft__msg_parse(text, WEFT_MAX_DEPTH, false, &msg, &rest) < 0 || rest != text + len || msg.kind != WEFT_MSG_REQUEST)
        abort();
}

static void copy(const char *text, size_t len) {
    memcpy(copied, text, len);
    __asm__ volatile("" : : "r"(copied) : "memory");
}

static void large(const scan_text *kind, char *text) {
    size_t len = fill_text(text, kind);
    double scan = best(validate, text, len, 10), memory = best(copy, text, len, 10);
    printf("%-28s %6.2f GB/s   memcpy %6.2f GB/s   (%zu bytes)\n", kind->name, (double) len / scan, (double) len / memory,
           len);
}

int main(void) {
    static char text[TEXT_SIZE + 1 + WEFT_SLACK];
    size_t len = strlen(request);
    memcpy(text, request, len);
    printf("%zu-byte request, validated   %6.1f ns\n", len, best(validate, text, len, 1000));
    printf("%zu-byte request, taken apart   %6.1f ns\n", len, best(envelope, text, len, 1000));

    for (size_t i = 0; i < SCAN_TEXTS; i++)
        large(&scan_texts[i], text);
    return 0;
}
