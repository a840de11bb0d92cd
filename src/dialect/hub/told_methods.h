/* What the hub tells its clients as rows of methods, for rpc.discover (x-notifications): each with an example, "event" with
 * one for each type of event. */
#ifndef WEFT_TOLD_METHODS_H
#define WEFT_TOLD_METHODS_H

#include <weft/method.h>

typedef struct weft_told_methods weft_told_methods;

/* NULL: out of memory. */
weft_told_methods *weft__told_methods_new(void);
weft_told_methods *weft__told_methods_free(weft_told_methods *told);
/* Borrowed; ends with a NULL name. */
const weft_method *weft__told_methods_rows(const weft_told_methods *told);

#endif
