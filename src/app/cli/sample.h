/* Examples of values, made from names and schemas: for the protocol reference. The same name always has the same value, so
 * that the examples of the page fit each other. */
#ifndef WEFT_SAMPLE_H
#define WEFT_SAMPLE_H

#include <stdio.h>

#include <weft/method.h>

/* Params as an object: what is required. subject: of the method, the part before the point ("task"), for members called id.
 */
void weft__sample_params(FILE *to, const weft_param *table, const char *subject);
/* Params, and a result, that are written for this method; NULL: none are. */
const char *weft__sample_of_method(const char *method);
const char *weft__sample_of_result(const char *method);
/* A value that fits the schema. */
void weft__sample_schema(FILE *to, const weft_json *schema, const char *name, const char *subject);

#endif
