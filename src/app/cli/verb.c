/* Finding a verb by its name. */
#include <string.h>

#include "app.h"

const weft_verb *weft__verb_find(const char *name) {
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
    return NULL;
}
