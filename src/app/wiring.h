/* What the program is wired with, beside its verbs (app.h). Each kind of part is one table in wiring.c; whatever must know
 * something of a part asks its row. Transports are libweft's (net/transports.c), because its users have no wiring. */
#ifndef WEFT_WIRING_H
#define WEFT_WIRING_H

#include "app.h"
#include "driver.h"
#include "hub.h"
#include "store_kind.h"

/* NULL-terminated, and none is empty. Of the stores, some last and some do not. */
extern const weft_store_kind *const weft__stores[];
extern const weft_driver *const weft__drivers[];
extern const weft_dialect *const weft__dialect_list[];

/* By name; NULL: there is none. */
const weft_store_kind *weft__store_named(const char *name);
const weft_driver *weft__driver_named(const char *name);
/* The first that lasts, or that does not. */
const weft_store_kind *weft__store_first(bool lasts);
/* The name of a row, for choices; NULL past the end. */
const char *weft__store_name(size_t index);
const char *weft__driver_name(size_t index);

#endif
