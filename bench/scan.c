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

#define REPEATS 400 /* short ones: on a busy machine a quiet moment is short too */
#define LARGE (64 * 1024)

static const char request[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[\"hello weft, this is a text\"],\"id\":1}";

typedef void work(const char *text, size_t len);

static char copied[LARGE + WEFT_SLACK];

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

/* Texts of about LARGE bytes: one string of plain ASCII; records as a tool or an editor would send them; prose that is
 * mostly not ASCII; an array of numbers. */
static void fill(char *text, const char *head, const char *item, const char *tail) {
    char *p = stpcpy(text, head);
    while ((size_t) (p - text) + strlen(item) + strlen(tail) < LARGE)
        p = stpcpy(p, item);
    p[-1] = ' '; /* the comma behind the last item, or the last letter */
    stpcpy(p, tail);
}

static void large(const char *name, char *text) {
    size_t len = strlen(text);
    double scan = best(validate, text, len, 10), memory = best(copy, text, len, 10);
    printf("%-28s %6.2f GB/s   memcpy %6.2f GB/s   (%zu bytes)\n", name, (double) len / scan, (double) len / memory, len);
}

int main(void) {
    static char text[LARGE + 1 + WEFT_SLACK];
    size_t len = strlen(request);
    memcpy(text, request, len);
    printf("%zu-byte request, validated   %6.1f ns\n", len, best(validate, text, len, 1000));
    printf("%zu-byte request, taken apart   %6.1f ns\n", len, best(envelope, text, len, 1000));

    fill(text, "\"", "The quick brown fox jumps over the lazy dog; ", "\"");
    large("64 KiB, one string", text);
    fill(text, "[",
         "{\"id\":1234,\"name\":\"src/json/scan.c\",\"kind\":\"file\",\"open\":true,\"range\":{\"start\":{\"line\":12,"
         "\"character\":4},\"end\":{\"line\":14,\"character\":0}},\"text\":\"static int f(void) {\\n    return 0;\\n}\\n\","
         "\"score\":0.8125,\"tags\":[\"c\",\"parser\",null]},",
         "]");
    large("64 KiB, records", text);
    fill(text, "\"", "\xE7\xBB\x87\xE5\xB8\x83\xE6\x9C\xBA \xE7\xBB\x8F\xE7\xBA\xAC ", "\"");
    large("64 KiB, Chinese", text);
    fill(text, "[", "0.123456,-17,1024,3.14159e-5,", "]");
    large("64 KiB, numbers", text);
    return 0;
}
