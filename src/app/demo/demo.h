/* The demo agent: a real ACP v1 agent in this binary ("weft __demo"), for the first try and for tests. It is a program of
 * its own that speaks over stdio like any other agent, so that what works with it works with them. There is no model behind
 * it: the first words of a prompt say what it does (demo_words.c), and it is done in a second or two.
 *
 * It touches two things: a scratch file in the session's folder, after it was allowed to and only if it made that file
 * itself (demo_file.c), and the history of its sessions in the user's state folder (demo_history.c). */
#ifndef WEFT_DEMO_H
#define WEFT_DEMO_H

#include <weft/weft.h>

#include "buf.h"
#include "loop.h"

/* "demo-" and 16 hexadecimal digits. */
#define WEFT_DEMO_ID 32
/* A tool's or a file's name with its folder. */
#define WEFT_DEMO_PATH 4096
/* What a turn says is kept for the history up to here; an echo of megabytes is not history. */
#define WEFT_DEMO_SAID (64 * 1024)

/* ---- what the prompt asks for: demo_words.c ---- */

typedef enum weft_demo_kind {
    WEFT_DEMO_PLAIN,
    WEFT_DEMO_EDIT,
    WEFT_DEMO_ASK,
    WEFT_DEMO_PLANNER,
    WEFT_DEMO_PLANNED,
    WEFT_DEMO_ECHO,
    WEFT_DEMO_LINES,
    WEFT_DEMO_FAIL,
    WEFT_DEMO_REFUSE,
    WEFT_DEMO_CRASH,
    WEFT_DEMO_EXIT,
    WEFT_DEMO_HANG,
    WEFT_DEMO_KINDS,
} weft_demo_kind;

typedef struct weft_demo_order {
    weft_demo_kind kind;
    int64_t slow_ms;  /* how long the turn is to take; 0: as it comes */
    int64_t number;   /* lines N, exit N */
    const char *text; /* echo, plan, step: what; otherwise all of the prompt. Points into the prompt */
} weft_demo_order;

/* What this prompt asks for. */
weft_demo_order weft__demo_read(const char *prompt);
/* The words, for people: the help and the first reply. */
extern const char weft__demo_words[];

/* ---- the scratch file: demo_file.c ---- */

typedef struct weft_demo_edit {
    char path[WEFT_DEMO_PATH];
    char *before; /* NULL: there is no such file yet. Owned */
    char *after;  /* owned */
} weft_demo_edit;

/* Choose the file and what it is to hold. -EEXIST: every name is taken by somebody else's file. */
int weft__demo_edit_plan(weft_demo_edit *edit, const char *folder, const char *prompt);
/* Write it. -ESTALE: it is not what it was when the edit was planned. */
int weft__demo_edit_do(const weft_demo_edit *edit);
void weft__demo_edit_done(weft_demo_edit *edit);

/* ---- the history: demo_history.c ---- */

typedef struct weft_demo_turn weft_demo_turn;

typedef struct weft_demo_session {
    char id[WEFT_DEMO_ID];
    char *folder;         /* absolute; owned */
    const char *always;   /* the answer that was given for good: allow_always, reject_always; NULL: none */
    const char *mode;     /* "ask", "allow" or "plan": how it answers itself what it would ask */
    int64_t turns;        /* that were begun, also in earlier processes */
    weft_demo_turn *turn; /* the one that runs; NULL: none */
    struct weft_demo_session *next;
} weft_demo_session;

/* Is there a place to keep histories? */
bool weft__demo_history_works(void);
/* A session has begun: it can be gone on with, also if nothing is ever said in it. */
void weft__demo_history_begin(const weft_demo_session *session);
/* Write down one turn, or an answer that was given for good. Best effort: a conversation is not lost with its history. */
void weft__demo_history_turn(const weft_demo_session *session, const char *prompt, weft_bytes said);
void weft__demo_history_always(const weft_demo_session *session, const char *always);
/* Read a session's history: counts its turns, finds what was answered for good, and hands over every update. -ENOENT: there
 * is no such session. */
int weft__demo_history_read(weft_demo_session *session, void (*on_update)(void *ctx, const weft_json *update), void *ctx);
/* Every session that has a history, in any order. folder "": not known, title "": nothing was said in it yet. */
typedef void weft_demo_each(void *ctx, const char *id, const char *folder, const char *title, int64_t changed_s);
void weft__demo_history_each(weft_demo_each *each, void *ctx);
/* -ENOENT: there is none. */
int weft__demo_history_delete(const char *id);

/* ---- a turn: demo_turn.c ---- */

/* Begin one; req is answered at its end. prompt is taken, also on failure. <0: req is the caller's to answer. */
int weft__demo_turn_start(weft_loop *loop, weft_demo_session *session, char *prompt, weft_req *req);
/* End it with "cancelled". */
void weft__demo_turn_cancel(weft_demo_turn *turn);
/* The client reads again. */
void weft__demo_turn_resume(weft_demo_turn *turn);

/* One session/update. */
void weft__demo_update(weft_peer *peer, const char *session, weft_val update);

#endif
