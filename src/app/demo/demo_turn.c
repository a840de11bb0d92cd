/* A turn of the demo agent: a script of steps, one after the other with a pause in between, until it ends by itself, is
 * cancelled, or its client goes away. Whatever happens, the prompt is answered once and nothing is said afterwards. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "demo_turn.h"

/* Between two steps: slow enough to be seen, and a whole turn takes about a second. */
#define PACE_MS 90
/* A client that reads slowly makes us wait; between two looks at it we say at most this many lines. */
#define LINES_AT_ONCE 256

/* ---- ending ---- */

static void leave_session(weft_demo_turn *turn) {
    weft_demo_session *session = turn->session;
    weft__timer_stop(turn->loop, &turn->timer);
    session->turn = NULL;
    weft__demo_history_turn(session, turn->prompt, (weft_bytes){weft__buf_head(&turn->said), weft__buf_len(&turn->said)});
}

/* Nobody waits for this answer any more. Its completion runs inside weft_cancel() and finds no question open. */
static void drop_question(weft_demo_turn *turn) {
    weft_peer *peer = weft_req_peer(turn->req);
    int64_t question = turn->question;
    turn->question = -1;
    if (question >= 0 && peer)
        weft_cancel(peer, question);
}

static void free_turn(weft_demo_turn *turn) {
    weft__demo_edit_done(&turn->edit);
    weft__buf_done(&turn->said, NULL);
    free(turn->prompt);
    free(turn);
}

static void end_turn(weft_demo_turn *turn, const char *stop_reason) {
    leave_session(turn);
    drop_question(turn);
    weft_req_on_cancel(turn->req, NULL, NULL);
    if (stop_reason)
        weft_reply(turn->req, WEFT_OBJ({"stopReason", weft_str(stop_reason)}));
    else
        weft_fail(turn->req, WEFT_INTERNAL_ERROR, "The demo agent was asked to fail", weft_none());
    free_turn(turn);
}

/* Deaf to everything but SIGKILL: what an agent does that is stuck in a system call. */
static void become_deaf(void) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], SIG_IGN);
}

static weft_demo_next step_hang(weft_demo_turn *turn) {
    (void) turn;
    while (true)
        pause();
    return WEFT_DEMO_WAIT;
}

void weft__demo_turn_cancel(weft_demo_turn *turn) {
    if (turn->order.kind == WEFT_DEMO_HANG)
        step_hang(turn); /* somebody is faster than its next step */
    end_turn(turn, "cancelled");
}

/* $/cancel_request, or the client is gone. */
static void on_cancel(weft_req *req, int why, void *ctx) {
    (void) req, (void) why;
    weft__demo_turn_cancel(ctx);
}

/* ---- the steps that only say something ---- */

static weft_demo_next step_echo(weft_demo_turn *turn) {
    const char *text = turn->order.text + turn->done;
    size_t len = strlen(text);
    if (turn->order.slow_ms) /* a word at a time, with the blanks behind it */
        len = strcspn(text, " \n") + strspn(text + strcspn(text, " \n"), " \n");
    if (len)
        weft__demo_say(turn, text, len);
    turn->done += len;
    return turn->order.text[turn->done] ? WEFT_DEMO_AGAIN : WEFT_DEMO_NEXT;
}

static weft_demo_next step_lines(weft_demo_turn *turn) {
    int64_t most = turn->order.slow_ms ? 1 : LINES_AT_ONCE;
    for (int64_t i = 0; i < most && turn->line < turn->order.number; i++) {
        char text[64];
        if (weft_peer_full(weft_req_peer(turn->req)))
            return WEFT_DEMO_WAIT;
        int n = snprintf(text, sizeof text, "line %lld\n", (long long) ++turn->line);
        weft__demo_say(turn, text, (size_t) n);
    }
    return turn->line < turn->order.number ? WEFT_DEMO_AGAIN : WEFT_DEMO_NEXT;
}

static weft_demo_next step_announce(weft_demo_turn *turn) {
    static const char *const words[WEFT_DEMO_KINDS] = {
        [WEFT_DEMO_FAIL] = "This turn will end with an error, as asked.\n",
        [WEFT_DEMO_REFUSE] = "I refuse, as asked.\n",
        [WEFT_DEMO_CRASH] = "I am about to crash, as asked.\n",
        [WEFT_DEMO_EXIT] = "I am about to exit, as asked.\n",
        [WEFT_DEMO_HANG] = "I will not answer any more, as asked.\n",
    };
    weft__demo_say(turn, words[turn->order.kind], strlen(words[turn->order.kind]));
    return WEFT_DEMO_NEXT;
}

/* ---- the steps that end badly ---- */

static weft_demo_next step_fail(weft_demo_turn *turn) {
    end_turn(turn, NULL);
    return WEFT_DEMO_OVER;
}

static weft_demo_next step_refuse(weft_demo_turn *turn) {
    end_turn(turn, "refusal");
    return WEFT_DEMO_OVER;
}

/* As after a bug, but without leaving a core file in somebody's project. */
static weft_demo_next step_crash(weft_demo_turn *turn) {
    (void) turn;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    fputs("weft __demo: crashing, as asked\n", stderr);
    abort();
}

static weft_demo_next step_exit(weft_demo_turn *turn) {
    fputs("weft __demo: exiting, as asked\n", stderr);
    _exit((int) turn->order.number);
}

/* ---- the scripts ---- */

static weft_demo_step *const scripts[WEFT_DEMO_KINDS][WEFT_DEMO_STEPS] = {
    [WEFT_DEMO_PLAIN] = {weft__demo_think, weft__demo_greet, weft__demo_plan, weft__demo_introduce, weft__demo_plan,
                         weft__demo_look, weft__demo_looked, weft__demo_plan, weft__demo_advise, weft__demo_plan},
    [WEFT_DEMO_EDIT] = {weft__demo_think, weft__demo_greet, weft__demo_plan, weft__demo_propose, weft__demo_plan,
                        weft__demo_ask, weft__demo_edit, weft__demo_plan, weft__demo_conclude, weft__demo_plan},
    [WEFT_DEMO_ASK] = {weft__demo_greet, weft__demo_wonder, weft__demo_ask, weft__demo_hear},
    [WEFT_DEMO_PLANNER] = {weft__demo_think, weft__demo_make_plan},
    [WEFT_DEMO_PLANNED] = {weft__demo_think, weft__demo_look, weft__demo_looked, weft__demo_done},
    [WEFT_DEMO_ECHO] = {step_echo},
    [WEFT_DEMO_LINES] = {step_lines},
    [WEFT_DEMO_FAIL] = {step_announce, step_fail},
    [WEFT_DEMO_REFUSE] = {step_announce, step_refuse},
    [WEFT_DEMO_CRASH] = {step_announce, step_crash},
    [WEFT_DEMO_EXIT] = {step_announce, step_exit},
    [WEFT_DEMO_HANG] = {step_announce, step_hang},
};

static int64_t count_words(const char *text) {
    int64_t count = 0;
    for (bool inside = false; *text; text++) {
        bool blank = *text == ' ' || *text == '\n';
        count += !blank && !inside;
        inside = !blank;
    }
    return count;
}

/* How many pauses it has. */
static int64_t count_steps(const weft_demo_turn *turn) {
    int64_t count = 0;
    if (turn->order.kind == WEFT_DEMO_ECHO)
        return count_words(turn->order.text);
    if (turn->order.kind == WEFT_DEMO_LINES)
        return turn->order.number;
    while (count < WEFT_DEMO_STEPS && scripts[turn->order.kind][count])
        count++;
    return count;
}

static int64_t choose_pace(const weft_demo_turn *turn) {
    int64_t steps = count_steps(turn);
    bool shows =
        turn->order.kind == WEFT_DEMO_PLAIN || turn->order.kind == WEFT_DEMO_EDIT || turn->order.kind == WEFT_DEMO_PLANNED;
    if (turn->order.slow_ms)
        return turn->order.slow_ms / (steps > 0 ? steps : 1);
    return shows ? PACE_MS : 0;
}

/* ---- running ---- */

static void go_on_after(weft_demo_turn *turn, int64_t ms) {
    weft__timer_set(turn->loop, &turn->timer, weft_loop_now(turn->loop) + ms);
}

void weft__demo_turn_go_on(weft_demo_turn *turn) {
    turn->step++;
    go_on_after(turn, turn->pace_ms);
}

void weft__demo_turn_resume(weft_demo_turn *turn) {
    if (turn->order.kind == WEFT_DEMO_LINES)
        go_on_after(turn, 0);
}

static void on_step_due(weft_timer *timer) {
    weft_demo_turn *turn = WEFT_CONTAINER(timer, weft_demo_turn, timer);
    weft_demo_step *step = turn->step < WEFT_DEMO_STEPS ? scripts[turn->order.kind][turn->step] : NULL;
    if (!step) {
        end_turn(turn, "end_turn");
        return;
    }
    switch (step(turn)) {
    case WEFT_DEMO_NEXT:
        weft__demo_turn_go_on(turn);
        break;
    case WEFT_DEMO_AGAIN:
        go_on_after(turn, turn->pace_ms);
        break;
    case WEFT_DEMO_WAIT:
    case WEFT_DEMO_OVER:
        break;
    }
}

int weft__demo_turn_start(weft_loop *loop, weft_demo_session *session, char *prompt, weft_req *req) {
    weft_demo_turn *turn = calloc(1, sizeof *turn);
    if (!turn) {
        free(prompt);
        return -ENOMEM;
    }
    turn->loop = loop;
    turn->session = session;
    turn->req = req;
    turn->prompt = prompt;
    turn->question = -1;
    turn->order = weft__demo_read(prompt);
    turn->pace_ms = choose_pace(turn);
    session->turn = turn;
    session->turns++;
    if (turn->order.kind == WEFT_DEMO_HANG)
        become_deaf(); /* from the beginning, so that nobody is faster */
    weft_req_on_cancel(req, on_cancel, turn);
    weft__timer_init(&turn->timer, on_step_due);
    go_on_after(turn, turn->order.slow_ms ? turn->pace_ms : 0);
    return 0;
}
