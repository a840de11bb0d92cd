/* What a build or a gate found, as people see it: one line for each, as compilers write them, so that editors find the
 * place.
 */
#ifndef WEFT_DIAGNOSTICS_TEXT_H
#define WEFT_DIAGNOSTICS_TEXT_H

#include "app.h"

/* list: [{file?, line?, column?, severity, message, code?}]. indent is put before each line. */
void weft__diagnostics_put(const weft_screen *screen, const weft_json *list, const char *indent);

#endif
