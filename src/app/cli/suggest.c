/* "Did you mean": the nearest word by the edits it takes to get there. */
#include <string.h>

#include "app.h"
#include "distance.h"

/* A word of which the typed one is the beginning is meant as well. */
void weft__suggest(weft_suggestion *suggestion, const char *candidate) {
    size_t len = strlen(suggestion->typed);
    size_t allowed = weft__word_mistakes(suggestion->typed);
    size_t d = weft__word_distance(suggestion->typed, candidate);
    if (len >= 3 && d > allowed && strncmp(candidate, suggestion->typed, len) == 0)
        d = allowed;
    if (d > allowed || (suggestion->best && d >= suggestion->distance))
        return;
    suggestion->best = candidate;
    suggestion->distance = d;
}
