/* What the program is wired with, beside its verbs (app.h). */
#ifndef WEFT_WIRING_H
#define WEFT_WIRING_H

#include "app.h"
#include "driver.h"
#include "hub.h"

/* NULL-terminated. */
extern const weft_driver *const weft__drivers[];
extern const weft_dialect *const weft__dialect_list[];

#endif
