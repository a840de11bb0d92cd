/* Translating AIWG's configuration, for the files that do it: a JSON text that grows. Nothing here is called after the first
 * failure, which stays in r. */
#ifndef WEFT_AIWG_TRANSLATE_H
#define WEFT_AIWG_TRANSLATE_H

#include <weft/json.h>

#include "buf.h"

typedef struct weft_translation {
    weft_buf out;
    const weft_alloc *alloc;
    int r; /* the first failure */
} weft_translation;

void weft__translate_raw(weft_translation *self, const char *text);
void weft__translate_val(weft_translation *self, weft_val value);
/* A comma, unless it is the first. */
void weft__translate_separator(weft_translation *self);
void weft__translate_name(weft_translation *self, const weft_json *name);
/* As JavaScript's "value || fallback" for a number or a text that is one, within bounds. */
double weft__translate_number(const weft_json *file, const char *pointer, double fallback, double max);

/* ---- aiwg_config_rules.c ---- */
void weft__translate_rules(weft_translation *self, const weft_json *rules);

/* ---- aiwg_config_watch.c: members of "automation" ---- */
void weft__translate_watch(weft_translation *self, const weft_json *watch);

#endif
