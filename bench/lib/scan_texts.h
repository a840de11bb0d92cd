/* Texts of about 64 KiB that scanners are measured with: one string of plain ASCII; records as a tool or an editor would
 * send them; prose that is mostly not ASCII; an array of numbers. */
#ifndef BENCH_SCAN_TEXTS_H
#define BENCH_SCAN_TEXTS_H

#include <stddef.h>
#include <string.h>

#define TEXT_SIZE ((size_t) 64 * 1024)

typedef struct scan_text {
    const char *name, *head, *item, *tail;
} scan_text;

static const scan_text scan_texts[] = {
    {"64 KiB, one string", "\"", "The quick brown fox jumps over the lazy dog; ", "\""},
    {"64 KiB, records", "[",
     "{\"id\":1234,\"name\":\"src/json/scan.c\",\"kind\":\"file\",\"open\":true,\"range\":{\"start\":{\"line\":12,"
     "\"character\":4},\"end\":{\"line\":14,\"character\":0}},\"text\":\"static int f(void) {\\n    return 0;\\n}\\n\","
     "\"score\":0.8125,\"tags\":[\"c\",\"parser\",null]},",
     "]"},
    {"64 KiB, Chinese", "\"", "\xE7\xBB\x87\xE5\xB8\x83\xE6\x9C\xBA \xE7\xBB\x8F\xE7\xBA\xAC ", "\""},
    {"64 KiB, numbers", "[", "0.123456,-17,1024,3.14159e-5,", "]"},
};
#define SCAN_TEXTS (sizeof scan_texts / sizeof scan_texts[0])

static inline char *put_text(char *to, const char *text) {
    size_t len = strlen(text);
    memcpy(to, text, len + 1);
    return to + len;
}

/* The text, NUL-terminated, into TEXT_SIZE + 1 bytes; its length. */
static inline size_t fill_text(char *text, const scan_text *kind) {
    char *p = put_text(text, kind->head);
    while ((size_t) (p - text) + strlen(kind->item) + strlen(kind->tail) < TEXT_SIZE)
        p = put_text(p, kind->item);
    p[-1] = ' '; /* the comma behind the last item, or the last letter */
    return (size_t) (put_text(p, kind->tail) - text);
}

#endif
