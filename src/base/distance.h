/* How far two words are from each other, for "did you mean". */
#ifndef WEFT_DISTANCE_H
#define WEFT_DISTANCE_H

#include <weft/base.h>

/* Insertions, deletions, replacements and swapped neighbours each count one. SIZE_MAX: a word is too long to be a typing
 * mistake. */
size_t weft__word_distance(const char *a, const char *b);

/* How many mistakes still make the other word the one that was meant: a third of the typed word, and at least one letter. */
size_t weft__word_mistakes(const char *typed);

#endif
