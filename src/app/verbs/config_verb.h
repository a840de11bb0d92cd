/* What the files of "weft config" share. */
#ifndef WEFT_CONFIG_VERB_H
#define WEFT_CONFIG_VERB_H

#include "config.h"

typedef struct weft_config_settings {
    bool origin;
    bool user;
} weft_config_settings;

/* A configuration and what was said while it was read. */
typedef struct weft_config_view {
    weft_app *app;
    weft_config config;
    weft_serve_settings typed;
    char user[WEFT_PATH_SIZE], project[WEFT_PATH_SIZE];
    weft_doc *agents, *servers, *rules; /* as they may be shown */
    size_t errors;
    bool as_data; /* what is said is what was asked for */
} weft_config_view;

/* ---- cmd_config.c ---- */

/* A remark, as this run of the verb shows them; ctx is the view. */
void weft__config_show_remark(void *ctx, const weft_remark *remark);
/* Explain why a configuration could not be loaded. */
weft_exit weft__config_fail(const weft_config_view *view, int r);
/* Load what "weft serve" would use here. Mistakes are explained. */
weft_exit weft__config_load_shown(weft_config_view *view);
/* Afterwards: what is secret in it is not shown. */
weft_exit weft__config_hide_secrets(weft_config_view *view);
/* What is shown of a key's value. */
const weft_json *weft__config_shown(const weft_config_view *view, size_t index);

/* ---- config_change.c: the words that change a file, and "get" ---- */

weft_exit weft__config_get(weft_config_view *view, char **args);
weft_exit weft__config_set(weft_config_view *view, char **args);
weft_exit weft__config_unset(weft_config_view *view, char **args);
weft_exit weft__config_edit(weft_config_view *view, char **args);
weft_exit weft__config_init(weft_config_view *view, char **args);

#endif
