/* Forms that agents ask people to fill in: the requestedSchema of ACP's elicitation, a flat object of texts, numbers, yes or
 * no, and choices. One place for all who show one or check what was filled in. */
#ifndef WEFT_FORM_H
#define WEFT_FORM_H

#include <weft/json.h>

#include "buf.h"

#define WEFT_FORM_FIELDS 64          /* more than that nobody fills in */
#define WEFT_FORM_CHOICES 256        /* of one field */
#define WEFT_FORM_BYTES (64u * 1024) /* of a form, and of what was filled in */
#define WEFT_FORM_WHY 300            /* room for a sentence */

typedef enum weft_form_type {
    WEFT_FORM_TEXT,
    WEFT_FORM_NUMBER,
    WEFT_FORM_INTEGER,
    WEFT_FORM_BOOLEAN,
    WEFT_FORM_CHOICE,  /* one of its choices: a text */
    WEFT_FORM_SEVERAL, /* some of its choices: an array of texts */
    WEFT_FORM_UNKNOWN,
} weft_form_type;

weft_form_type weft__form_type(const weft_json *field);
/* A choice by its number, from 0: its value, and its title where it has one (absent otherwise). false: there is none. */
bool weft__form_choice(const weft_json *field, size_t number, weft_json *ret_value, weft_json *ret_title);
/* Is a field of this name required? name is a JSON string. */
bool weft__form_requires(const weft_json *schema, const weft_json *name);

/* Can a person fill this in? -EINVAL: no, and why says so. */
int weft__form_check(const weft_json *schema, char why[WEFT_FORM_WHY]);
/* Is this a value for the field? -EINVAL: why is a sentence without its subject: "must be ...". */
int weft__form_check_value(const weft_json *field, const weft_json *value, char why[WEFT_FORM_WHY]);
/* What was filled in, as the agent gets it: every field checked, defaults where nothing was said, in the order of the form.
 * content may be absent. Appended to out as JSON. -EINVAL: why says which field; -ENOMEM. */
int weft__form_fill(const weft_json *schema, const weft_json *content, const weft_alloc *alloc, weft_buf *out,
                    char why[WEFT_FORM_WHY]);

#endif
