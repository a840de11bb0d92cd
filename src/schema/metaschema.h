/* The schemas of schemas, built in. */
#ifndef WEFT_METASCHEMA_H
#define WEFT_METASCHEMA_H

#include <weft/base.h>

/* By URI without fragment. 1 found, 0 not. */
int weft__metaschema_find(const char *uri, weft_bytes *ret);

#endif
