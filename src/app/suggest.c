/* "Did you mean": the nearest word by the edits it takes to get there. */
#include <string.h>

#include "app.h"

/* Longer words are nobody's typing mistake. */
#define MAX_WORD 64

static size_t least(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Insertions, deletions, replacements and swapped neighbours each count one. */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][MAX_WORD + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_WORD || m > MAX_WORD)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(row[j - 1] + 1, above[j] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

/* A third of the word may be wrong; of a short one, one letter. A word of which it is the beginning is meant as well. */
void weft__suggest(weft_suggestion *suggestion, const char *candidate) {
    size_t len = strlen(suggestion->typed);
    size_t allowed = len / 3 > 1 ? len / 3 : 1;
    size_t d = distance(suggestion->typed, candidate);
    if (len >= 3 && d > allowed && strncmp(candidate, suggestion->typed, len) == 0)
        d = allowed;
    if (d > allowed || (suggestion->best && d >= suggestion->distance))
        return;
    suggestion->best = candidate;
    suggestion->distance = d;
}
