/* Reading and rendering rules, for the files that do it.
 *
 *   rule.c   the trigger, the conditions, agents and notices        rule_webhook.c   webhooks        rule_sense.c   can it
 * ever fire? */
#ifndef WEFT_RULE_PRIVATE_H
#define WEFT_RULE_PRIVATE_H

#include "rule.h"

/* Note what is wrong with it. -EINVAL. */
int weft__rule_wrong(weft_rule *rule, const char *format, ...) WEFT_PRINTF(2, 3);
/* What is read now, as a JSON pointer into the rule, so that an error can be found in the file. */
void weft__rule_place(weft_rule *rule, const char *at);
/* A member that is a text or not there: NULL. */
int weft__rule_text(weft_rule *rule, const weft_json *object, const char *name, const char **ret);

/* The action of a webhook: its url is in rule->text already. */
int weft__rule_read_webhook(weft_rule *rule);
int weft__rule_render_webhook(const weft_rule *rule, const weft_rule_event *event, char **ret, size_t *ret_len);

#endif
