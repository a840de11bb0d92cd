/* A field of an event by its dotted name: "payload.path", "payload.files.0.name". What is not found from the top is looked
 * for in the payload, so that "path" is "payload.path". */
#ifndef WEFT_FIELD_H
#define WEFT_FIELD_H

#include <weft/json.h>

/* Absent: there is none. */
weft_json weft__field(const weft_json *event, weft_bytes path);

#endif
