/* The inside of a turn, for demo_turn.c, which runs its script, and demo_say.c, which has the words. */
#ifndef WEFT_DEMO_TURN_H
#define WEFT_DEMO_TURN_H

#include "demo.h"

#define WEFT_DEMO_STEPS 12

struct weft_demo_turn {
    weft_loop *loop;
    weft_demo_session *session;
    weft_req *req;
    char *prompt; /* owned */
    weft_demo_order order;
    size_t step;     /* of the script */
    int64_t pace_ms; /* between two steps */
    weft_timer timer;
    size_t done;      /* bytes of an echo */
    int64_t line;     /* lines said */
    int planned;      /* entries of the plan that are completed */
    int64_t question; /* the call that asks it; -1: none is open */
    bool allowed;
    const char *outcome; /* of the question or the edit, for the summary */
    weft_demo_edit edit;
    weft_buf said;
};

typedef enum weft_demo_next {
    WEFT_DEMO_NEXT,  /* the next step after a pause */
    WEFT_DEMO_AGAIN, /* this one again after a pause */
    WEFT_DEMO_WAIT,  /* for somebody who goes on */
    WEFT_DEMO_OVER,  /* the turn has ended and is freed */
} weft_demo_next;

typedef weft_demo_next weft_demo_step(weft_demo_turn *turn);

/* What it waited for has come. */
void weft__demo_turn_go_on(weft_demo_turn *turn);

/* Say something, and remember it for the history. */
void weft__demo_say(weft_demo_turn *turn, const char *text, size_t len);
weft_demo_step weft__demo_think, weft__demo_greet, weft__demo_plan, weft__demo_introduce, weft__demo_look, weft__demo_looked,
    weft__demo_advise, weft__demo_propose, weft__demo_ask, weft__demo_edit, weft__demo_conclude, weft__demo_wonder,
    weft__demo_hear, weft__demo_make_plan, weft__demo_done;

#endif
