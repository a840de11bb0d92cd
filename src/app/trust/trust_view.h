/* What is there to be trusted in the project we stand in: found, shown, asked about, recorded. */
#ifndef WEFT_TRUST_VIEW_H
#define WEFT_TRUST_VIEW_H

#include "config.h"
#include "peek.h"
#include "trust.h"

typedef struct weft_trust_view {
    weft_app *app;
    weft_trust trust;
    weft_config config; /* as if the project's file were on record */
    weft_serve_settings settings;
    int config_r;      /* < 0: it has a mistake */
    const char *store; /* the journal's path */
    bool keeps;        /* there is a journal, or would be */
    bool strange_journal, strange_token, strange_config;
    bool peeked;
    int peek_r;
    weft_peek peek;
} weft_trust_view;

/* Look at everything. The layout is the app's; flags are those of "weft serve". End with weft__trust_view_done(). */
void weft__trust_view(weft_app *app, const weft_serve_settings *flags, weft_trust_view *ret);
void weft__trust_view_done(weft_trust_view *view);
/* Is there nothing that waits for the user's word? */
bool weft__trust_view_is_fine(const weft_trust_view *view);
/* Why it is not on record, in one sentence. */
void weft__trust_view_reason(const weft_trust_view *view, char ret[WEFT_TRUST_WHY]);
/* What the journal holds. Takes a moment; needed for the two below. */
void weft__trust_view_peek(weft_trust_view *view);
/* What it would allow, for people; only_strange: without what is on record. */
void weft__trust_view_put(const weft_trust_view *view, const weft_screen *screen, bool only_strange);
void weft__trust_view_put_json(const weft_trust_view *view, const char *state);
/* Put it on record. Failures are explained. */
weft_exit weft__trust_view_record(const weft_trust_view *view);
/* The answer of the person at the terminal. */
bool weft__trust_view_ask(const weft_app *app);

/* Before a daemon is started: what is not on record is shown, and asked about where somebody is there to answer, or refused
 * with what to do. The layout is the app's, and we stand in the project. projects: it will be the daemon of the folder in
 * any case; else one that keeps nothing and listens elsewhere has only its configuration looked at. */
weft_exit weft__trust_gate(weft_app *app, const weft_serve_settings *flags, bool projects);

#endif
