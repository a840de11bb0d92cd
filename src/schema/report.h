/* What is told about a misfit: where in the value, where in the schema, and why. */
#ifndef WEFT_SCHEMA_REPORT_H
#define WEFT_SCHEMA_REPORT_H

#include "schema_node.h"

/* A way into the value, from the inside out. */
typedef struct schema_place {
    const struct schema_place *outer; /* NULL: this is the whole value */
    const char *name;                 /* raw, behind its quote; NULL: an item */
    size_t len;
    size_t index;
} schema_place;

/* Forget what was told before. */
void weft__report_begin(weft_schema_report *report, const weft_alloc *alloc);
/* One more error; the first WEFT_SCHEMA_ERRORS are kept. keyword may be NULL: the schema itself. -ENOMEM. */
int weft__report_add(weft_schema_report *report, const schema_place *place, const schema_node *node, const char *keyword,
                     const char *message);

#endif
