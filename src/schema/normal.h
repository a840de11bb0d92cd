/* The normal form of a value: two values are equal, as JSON Schema means it, if and only if their forms are the same bytes.
 * Numbers are exact, members are sorted, of duplicate members the last one counts. It is for comparing, not for reading. */
#ifndef WEFT_NORMAL_H
#define WEFT_NORMAL_H

#include <weft/json.h>

#include "buf.h"

/* Append the form of the value at p, which is valid JSON. -ENOMEM. */
int weft__normal_write(weft_buf *out, const weft_alloc *alloc, const char *p, const char **ret_end);

/* Forms one behind the other, and where each one begins. */
typedef struct schema_forms {
    weft_buf text;
    weft_buf ends; /* size_t each */
    const weft_alloc *alloc;
} schema_forms;

/* One more. -ENOMEM; -E2BIG: a million, or 64 MiB, are there already. */
int weft__forms_add(schema_forms *forms, const char *p, const char **ret_end);
/* How many different ones there are. Takes n log n comparisons, whatever they are. -ENOMEM. */
int weft__forms_distinct(schema_forms *forms, size_t *ret);
void weft__forms_done(schema_forms *forms);

#endif
