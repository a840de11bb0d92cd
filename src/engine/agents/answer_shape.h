/* What answers of children and of peers that registered must look like: JSON Schemas, and what is wrong with an answer in a
 * sentence that names the place in the answer and the keyword of the schema. */
#ifndef WEFT_ANSWER_SHAPE_H
#define WEFT_ANSWER_SHAPE_H

#include <weft/schema.h>

/* The sentence; longer ones are cut. */
#define WEFT_SHAPE_WHY 320

/* The result of execute_task and the one of validate_code: what must be there is, and what may be there is of the right
 * type. Members that are not known are fine. */
extern const char weft__executed_shape[], weft__validated_shape[];

/* Owned. -ENOMEM. */
int weft__shape_new(const char *text, const weft_alloc *alloc, weft_schema **ret);
/* 0: it fits. Else it must not be used, and why says where it does not: "/output/code must be a string (/properties/...)".
 */
int weft__shape_check(const weft_schema *shape, const weft_json *answer, char why[WEFT_SHAPE_WHY]);

#endif
