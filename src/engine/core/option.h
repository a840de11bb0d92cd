/* Which option of a question is meant by what a person said. One place for all who answer: the hub's methods, the command
 * line and the configuration. It never widens what was said: "allow" means once, and what was said to deny is never taken
 * for anything else. */
#ifndef WEFT_OPTION_H
#define WEFT_OPTION_H

#include <weft/json.h>

/* In place of an option's id: denied, without choosing an option. No option has an empty id. */
#define WEFT_OPTION_DENIED ""

/* options is an array of {"id", "name", "kind"}. In said,
 *
 *     allow, yes, y            the option that allows it once
 *     deny, no, n, reject      the option that rejects it once; WEFT_OPTION_DENIED where there is none
 *     allow_once, ...          the option of this kind
 *
 * whatever the options' ids are; anything else is an id. 1: *ret is the id, borrowed from options; 0: none of them is meant;
 * -EPERM: it can be allowed only for good, which must be said so; -ENOTUNIQ: several options would be meant. */
int weft__option_meant(const weft_json *options, const char *said, size_t len, const char **ret);

/* Does the option with this id allow what was asked, by its kind? */
bool weft__option_allows(const weft_json *options, const char *id);
/* Does the option with this id reject what was asked? */
bool weft__option_rejects(const weft_json *options, const char *id);

/* For people, of a failure of weft__option_meant(): a sentence without its subject, "can only be ...". */
const char *weft__option_why(int r);

#endif
