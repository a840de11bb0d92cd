/* What came of reading the configuration again: for the log, and for whoever asked for it (the method daemon.reload). */
#ifndef WEFT_SERVE_RELOAD_H
#define WEFT_SERVE_RELOAD_H

#include "config.h"

/* A file with more mistakes than this is mended step by step. */
#define WEFT_RELOAD_PROBLEMS 16

typedef struct weft_reload_problem {
    char where[256], text[256];
    weft_place place; /* line 0: none */
    bool error;
} weft_reload_problem;

typedef struct weft_reload {
    bool done;       /* the new configuration is in force; else the old one stays */
    const char *why; /* why not; a literal */
    bool untrusted;  /* that is the reason */
    const char *changed[WEFT_MAX_KEYS], *restart[WEFT_MAX_KEYS]; /* keys that hold now, and that need a restart */
    size_t changed_count, restart_count;
    weft_reload_problem problems[WEFT_RELOAD_PROBLEMS];
    size_t problem_count;
} weft_reload;

void weft__reload_changed(weft_reload *reload, const weft_key *key);
void weft__reload_problem(weft_reload *reload, const weft_remark *remark);

/* Its row; without a handler, which is whoever has the configuration. */
extern const weft_method weft__reload_row;
int weft__reload_reply(weft_req *req, const weft_reload *reload);

#endif
