/* What would change in a text, line by line, for somebody who has to say yes or no. Small on purpose: it shows the changes
 * with a little of what stands around them, and does not produce patches. */
#ifndef WEFT_DIFF_H
#define WEFT_DIFF_H

#include "screen.h"

/* At most max_lines are shown, and how many were left out is said. */
void weft__diff_put(const weft_screen *screen, const char *before, const char *after, size_t max_lines);

#endif
