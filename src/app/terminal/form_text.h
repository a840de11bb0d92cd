/* Forms of agents at a terminal: shown, and filled in field by field by what a person types. What an agent wrote is shown
 * exactly, with escapes for what cannot be seen. */
#ifndef WEFT_FORM_TEXT_H
#define WEFT_FORM_TEXT_H

#include "app.h"
#include "buf.h"
#include "form.h"

/* The form of a question as question.list has it; absent: it has none. */
weft_json weft__form_of(const weft_json *question);
/* All fields: name, title, what it is for, choices, default. */
void weft__form_put(const weft_screen *screen, const weft_json *schema);

/* What was typed for a field, as JSON, appended to out: a text as it is ("" for an empty one), the number, value or title of
 * a choice, several of them with commas between, yes or no, a number. -EINVAL: why is a sentence without its subject;
 * -ENOMEM. */
int weft__form_typed(const weft_json *field, const char *typed, weft_buf *out, char why[WEFT_FORM_WHY]);

/* Filling one in, line by line. schema is borrowed while that goes on. */
typedef struct weft_form_filling {
    weft_json schema, fields;
    weft_iter at;     /* the field that is asked for */
    weft_buf content; /* JSON; whole when there are no more fields */
    bool any;
} weft_form_filling;

/* 1: there is a field to be asked for, 0: there is none, and it can be closed; -ENOMEM. End with weft__form_done() in any
 * case. */
int weft__form_begin(weft_form_filling *filling, const weft_json *schema);
/* Ask for the field of the moment. */
void weft__form_prompt(const weft_form_filling *filling, const weft_screen *screen);
/* What was typed. 1: there is another field, 0: that was the last, content is whole; -EINVAL: why says what is wrong with
 * it, ask again; -ENOMEM. */
int weft__form_line(weft_form_filling *filling, const char *line, char why[WEFT_FORM_WHY]);
/* The same for a field by its name, in any order: NAME=VALUE. -ENOENT: there is no such field. */
int weft__form_put_named(weft_form_filling *filling, const char *pair, char why[WEFT_FORM_WHY]);
/* No more will be named, or there are no fields: content is whole. -ENOMEM. */
int weft__form_close(weft_form_filling *filling);
void weft__form_done(weft_form_filling *filling);

#endif
