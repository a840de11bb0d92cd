/* Pieces of JSON Schemas, for the rows of methods. */
#ifndef WEFT_SCHEMAS_H
#define WEFT_SCHEMAS_H

#define S_STRING "{\"type\":\"string\"}"
#define S_TEXT_OR_NULL "{\"type\":[\"string\",\"null\"]}"
#define S_INTEGER "{\"type\":\"integer\"}"
#define S_COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define S_COUNT_OR_NULL "{\"type\":[\"integer\",\"null\"],\"minimum\":0}"
#define S_BOOL "{\"type\":\"boolean\"}"
#define S_TRUE "{\"const\":true}"
#define S_OBJECT "{\"type\":\"object\"}"
#define S_TIME "{\"type\":\"string\",\"format\":\"date-time\"}"
#define S_TIME_OR_NULL "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"
#define S_PID_OR_NULL "{\"type\":[\"integer\",\"null\"],\"minimum\":1}"

#define S_IS(name, schema) "\"" name "\":" schema
#define S_OF(properties, required) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define S_EITHER(one, other) "{\"anyOf\":[" one "," other "]}"
#define S_LIST(schema) "{\"type\":\"array\",\"items\":" schema "}"

#endif
