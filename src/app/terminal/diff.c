/* The longest common subsequence of the lines that differ. What both begin and end with is left out first, which for most
 * edits leaves little. */
#include "diff.h"

#include <string.h>

#include "alloc.h"
#include "terminal_status.h"

/* Of lines on each side that are compared with each other; beyond it, all that differs is replaced by all there is. */
#define MAX_COMPARED 1000
#define AROUND 2

typedef struct line {
    const char *text;
    size_t len; /* without its end */
} line;

typedef struct text {
    line *lines;
    size_t count;
} text;

typedef struct showing {
    const weft_screen *screen;
    size_t left; /* lines that may still be shown */
    size_t skipped;
} showing;

static int split(const char *from, text *ret) {
    size_t count = 0, room = 1;
    for (const char *p = from; *p; p++)
        room += *p == '\n';
    ret->lines = weft__zalloc(NULL, room * sizeof *ret->lines);
    if (!ret->lines)
        return -1;
    while (*from) {
        size_t len = strcspn(from, "\n");
        ret->lines[count++] = (line){from, len};
        from += len + (from[len] == '\n');
    }
    ret->count = count;
    return 0;
}

static bool same(const line *a, const line *b) {
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static void put(showing *self, char mark, const line *one) {
    const char *ink = mark == '-' ? WEFT_INK_BAD : mark == '+' ? WEFT_INK_STRING : WEFT_INK_DIM;
    if (self->left == 0) {
        self->skipped++;
        return;
    }
    self->left--;
    weft__ink(self->screen, ink);
    fprintf(self->screen->file, "    %c ", mark);
    weft__put_prose(self->screen, one->text, one->len);
    weft__plain(self->screen);
    fputc('\n', self->screen->file);
}

/* lengths[i][j]: how many lines the rests from i and j have in common. NULL: too many to compare. */
static unsigned short *measure(const text *a, const text *b) {
    size_t width = b->count + 1;
    if (a->count > MAX_COMPARED || b->count > MAX_COMPARED)
        return NULL;
    unsigned short *lengths = weft__zalloc(NULL, (a->count + 1) * width * sizeof *lengths);
    for (size_t i = a->count; lengths && i-- > 0;)
        for (size_t j = b->count; j-- > 0;) {
            unsigned short down = lengths[(i + 1) * width + j], right = lengths[i * width + j + 1];
            lengths[i * width + j] = same(&a->lines[i], &b->lines[j])
                                         ? (unsigned short) (lengths[(i + 1) * width + j + 1] + 1)
                                         : (down >= right ? down : right);
        }
    return lengths;
}

static void put_changes(showing *self, const text *a, const text *b) {
    size_t i = 0, j = 0, width = b->count + 1;
    unsigned short *lengths = measure(a, b);
    while (lengths && i < a->count && j < b->count) {
        if (same(&a->lines[i], &b->lines[j])) {
            put(self, ' ', &a->lines[i++]);
            j++;
        } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) {
            put(self, '-', &a->lines[i++]);
        } else {
            put(self, '+', &b->lines[j++]);
        }
    }
    while (i < a->count)
        put(self, '-', &a->lines[i++]);
    while (j < b->count)
        put(self, '+', &b->lines[j++]);
    weft__free(NULL, lengths);
}

static void put_around(showing *self, const text *a, size_t from, size_t to) {
    for (size_t i = from; i < to && i < a->count; i++)
        put(self, ' ', &a->lines[i]);
}

void weft__diff_put(const weft_screen *screen, const char *before, const char *after, size_t max_lines) {
    showing self = {screen, max_lines, 0};
    text a = {0}, b = {0};
    size_t head = 0, tail = 0;
    if (split(before, &a) == 0 && split(after, &b) == 0) {
        size_t least = a.count < b.count ? a.count : b.count;
        while (head < least && same(&a.lines[head], &b.lines[head]))
            head++;
        while (tail < least - head && same(&a.lines[a.count - 1 - tail], &b.lines[b.count - 1 - tail]))
            tail++;
        put_around(&self, &a, head > AROUND ? head - AROUND : 0, head);
        put_changes(&self, &(text){a.lines + head, a.count - head - tail}, &(text){b.lines + head, b.count - head - tail});
        put_around(&self, &a, a.count - tail, a.count - tail + AROUND);
    }
    if (self.skipped)
        fprintf(screen->file, "    … %zu more lines; --json has all of them\n", self.skipped);
    weft__free(NULL, a.lines);
    weft__free(NULL, b.lines);
}
