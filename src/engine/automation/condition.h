/* What must hold of an event besides its type: {field, operator, value}. Regular expressions are PCRE2's with limits on the
 * work and memory of one match, because the text comes from outside and the pattern from a hurried hand. */
#ifndef WEFT_CONDITION_H
#define WEFT_CONDITION_H

#include <weft/json.h>

#define WEFT_RULE_WHY 256 /* room for a sentence about what is wrong */

typedef struct weft_condition weft_condition;

/* value is borrowed and must live as long. -EINVAL with a sentence in why (WEFT_RULE_WHY bytes), -ENOMEM. */
int weft__condition_new(const weft_json *value, const weft_alloc *alloc, weft_condition **ret, char *why);
weft_condition *weft__condition_free(weft_condition *condition);
/* From now on as AIWG does it: a field has its whole name, "payload.path", and one that is not there is not null. */
void weft__condition_as_aiwg(weft_condition *condition);
/* 1 it holds, 0 it does not, -EOVERFLOW the expression was given up, -ENOMEM. */
int weft__condition_holds(const weft_condition *condition, const weft_json *event);
/* The same for a field's value; absent: the event has no such field. */
int weft__condition_says(const weft_condition *condition, const weft_json *field);
/* What it is about: a dotted name, without "payload." before it unless that makes a difference. Borrowed. */
weft_bytes weft__condition_field(const weft_condition *condition);
/* Its field can only be one that every event has, such as "type", or none at all. */
bool weft__condition_is_bare(const weft_condition *condition);
/* "eq", and what the field is compared with; absent: nothing. Borrowed. */
const char *weft__condition_operator(const weft_condition *condition);
const weft_json *weft__condition_value(const weft_condition *condition);

#endif
