/* The values of "format", where they are checked. */
#ifndef WEFT_FORMAT_H
#define WEFT_FORMAT_H

#include <weft/base.h>

typedef bool schema_format(const char *text, size_t len);

/* NULL: it is not known, and says nothing. */
schema_format *weft__format_find(const char *name);

#endif
