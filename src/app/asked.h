/* Questions of agents and rules, as people see them: what is asked, exactly what would be done, and what can be answered. */
#ifndef WEFT_ASKED_H
#define WEFT_ASKED_H

#include "app.h"

/* All of it: id, title, detail with what would change as a diff, options with their numbers. question as question.list has
 * it. */
void weft__asked_put(const weft_screen *screen, const weft_json *question);

/* Which option is meant by a number, an id, a kind, a name, or "allow", "deny", "yes", "no"; what stands behind a number or
 * a word is the reason. option is the id, ret_text the reason ("" for none), inside answer. NULL: none of them. */
const char *weft__asked_option(const weft_json *question, const char *answer, const char **ret_text);

#endif
