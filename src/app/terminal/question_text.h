/* Questions of agents and rules, as people see them: what is asked, exactly what would be done, and what can be answered. */
#ifndef WEFT_QUESTION_TEXT_H
#define WEFT_QUESTION_TEXT_H

#include "app.h"

/* All of it: id, title, detail with what would change as a diff, options with their numbers. question as question.list has
 * it. What the agent wrote is shown exactly, with escapes for what cannot be seen, also where there is no terminal. */
void weft__question_put(const weft_screen *screen, const weft_json *question);

/* Which option is meant by a number, an id, a kind, a name, or "allow", "deny", "yes", "no"; what stands behind a number or
 * a word is the reason. 1: *ret is what question.answer understands, *ret_text the reason ("" for none), inside answer; else
 * as weft__option_meant(). */
int weft__question_option(const weft_json *question, const char *answer, const char **ret, const char **ret_text);

/* For people: why it is none of them. */
const char *weft__question_option_why(int r);

#endif
