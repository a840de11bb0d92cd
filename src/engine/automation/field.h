/* A field of an event by its dotted name: "payload.path", "payload.files.0.name". What is not found from the top is looked
 * for in the payload, so that "path" is "payload.path". */
#ifndef WEFT_FIELD_H
#define WEFT_FIELD_H

#include <weft/json.h>

/* Absent: there is none. */
weft_json weft__field(const weft_json *event, weft_bytes path);
/* The same without looking into the payload: only "payload.path" is found. */
weft_json weft__field_exact(const weft_json *event, weft_bytes path);
/* The text of a string as C has it; NULL when it is no string or has a NUL in it. -ENOMEM, which weft_str_of() does not tell
 * from that. */
int weft__field_text(const weft_json *value, const char **ret);

#endif
