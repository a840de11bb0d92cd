/* The terminals of one turn. See terminals.h.
 *
 *     starting ──it runs──▶ running ──its process ends──▶ ended ──released──▶ released, forgotten with the set
 *              ──it does not──▶ forgotten          running ──released──▶ released
 *
 * A terminal that was released keeps the end of what it printed, for updates of its tool call that come later. */
#include "terminals.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "list.h"

/* Released ones whose text is kept. */
#define MOST_RELEASED 64
/* Requests that wait for the end of one terminal. */
#define MOST_WAITS 16
/* Tool calls that show terminals, and bytes of what one shows: more are not told of the end. */
#define MOST_SHOWS 128
#define SHOW_BYTES ((size_t) 64 << 10)

/* As ACP has it: resource not found. */
#define NOT_FOUND (-32002)

typedef struct entry {
    weft_link link; /* oldest first */
    weft_terminals *set;
    weft_terminal *terminal; /* NULL: it was released */
    weft_req *create;        /* is answered when it runs; NULL: it was */
    weft_link waits;
    size_t wait_count;
    char *last; /* of one that was released: the end of what it printed */
    weft_terminal_print print;
    char id[WEFT_TERMINAL_ID];
    char command[WEFT_TERMINAL_COMMAND];
} entry;

typedef struct wait {
    weft_link link;
    entry *of;
    weft_req *req;
} wait;

/* A tool call that shows terminals. */
typedef struct show {
    weft_link link;   /* oldest first */
    const char *call; /* its id, as JSON */
    size_t call_len;
    const char *content; /* what it shows, as JSON */
    size_t content_len;
    char text[];
} show;

struct weft_terminals {
    weft_terminals_opts opts;
    bool stopped;
    weft_link entries, shows;
    size_t live, released, show_count;
    char root[];
};

#define EACH_ENTRY(at, set)                                                                                                 \
    for (weft_link *at = (set)->entries.next, *at##_next = at->next; at != &(set)->entries;                                 \
         at = at##_next, at##_next = at->next)

/* ---- finding ---- */

static entry *find_terminal(const weft_terminals *set, const char *id) {
    EACH_ENTRY(at, set) {
        entry *one = WEFT_CONTAINER(at, entry, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

/* Of one that has ended or was released. */
static bool find_print(void *ctx, const char *id, weft_terminal_print *ret) {
    const entry *one = find_terminal(ctx, id);
    const weft_process_end *end = one && one->terminal ? weft__terminal_end(one->terminal) : NULL;
    if (!one || (one->terminal && !end))
        return false;
    *ret = one->print;
    if (end) {
        ret->text = weft__terminal_text(one->terminal, WEFT_TERMINALS_SHOWN, &ret->truncated);
        ret->exit_code = end->exit_code;
        ret->signal = end->signal;
    }
    return true;
}

/* ---- tool calls ---- */

static void forget_show(weft_terminals *set, show *old) {
    weft__list_remove(&old->link);
    set->show_count--;
    weft__free(set->opts.alloc, old);
}

static void forget_shows_of(weft_terminals *set, const weft_json *call) {
    for (weft_link *at = set->shows.next, *next; at != &set->shows; at = next) {
        show *one = WEFT_CONTAINER(at, show, link);
        next = at->next;
        if (one->call_len == call->len && memcmp(one->call, call->text, call->len) == 0)
            forget_show(set, one);
    }
}

static int remember_show(weft_terminals *set, const weft_json *call, const weft_json *content) {
    if (content->len > SHOW_BYTES || call->len > SHOW_BYTES)
        return 0;
    show *made = weft__alloc(set->opts.alloc, sizeof *made + call->len + content->len);
    if (!made)
        return -ENOMEM;
    made->call = memcpy(made->text, call->text, call->len);
    made->call_len = call->len;
    made->content = memcpy(made->text + call->len, content->text, content->len);
    made->content_len = content->len;
    if (set->show_count >= MOST_SHOWS)
        forget_show(set, WEFT_CONTAINER(set->shows.next, show, link));
    weft__list_push(&set->shows, &made->link);
    set->show_count++;
    return 0;
}

static int write_show(weft_terminals *set, const show *one, const weft_json *content, weft_buf *out) {
    static const char head[] = "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":", middle[] = ",\"content\":";
    const weft_alloc *alloc = set->opts.alloc;
    int r = weft__buf_put(out, alloc, head, sizeof head - 1);
    if (r >= 0)
        r = weft__buf_put(out, alloc, one->call, one->call_len);
    if (r >= 0)
        r = weft__buf_put(out, alloc, middle, sizeof middle - 1);
    if (r >= 0)
        r = weft__content_write(content, find_print, set, alloc, out);
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

/* 1: it shows this terminal, and out has its update. */
static int update_show(weft_terminals *set, const show *one, const char *id, weft_buf *out) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(one->content, one->content_len, set->opts.alloc, &doc);
    if (r < 0)
        return r;
    const weft_json *content = weft_doc_root(doc);
    bool shows = weft__content_shows(content, id);
    r = shows ? write_show(set, one, content, out) : 0;
    weft_doc_free(doc);
    return r < 0 ? r : shows;
}

/* This one is over. */
static void tell_shows(weft_terminals *set, const char *id) {
    for (weft_link *at = set->shows.next; at != &set->shows; at = at->next) {
        weft_buf out = {0};
        int r = update_show(set, WEFT_CONTAINER(at, show, link), id, &out);
        if (r != 0)
            set->opts.on_update(set->opts.ctx, r, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
        weft__buf_done(&out, set->opts.alloc);
    }
}

static bool is_tool_call(const weft_json *update) {
    const char *kind = weft_get_str(update, "sessionUpdate", "");
    return strcmp(kind, "tool_call") == 0 || strcmp(kind, "tool_call_update") == 0;
}

/* How many of ours it shows, and how many of these are over. */
static size_t count_shown(const weft_terminals *set, const weft_json *content, size_t *ret_over) {
    size_t count = 0;
    *ret_over = 0;
    EACH_ENTRY(at, set) {
        const entry *one = WEFT_CONTAINER(at, entry, link);
        if (!weft__content_shows(content, one->id))
            continue;
        count++;
        *ret_over += !one->terminal || weft__terminal_end(one->terminal);
    }
    return count;
}

/* The same update with another content. */
static int write_shown(weft_terminals *set, const weft_json *update, weft_buf *out) {
    const weft_alloc *alloc = set->opts.alloc;
    int r = weft__buf_put(out, alloc, "{", 1), count = 0;
    for (weft_iter it = weft_iterate(update); r >= 0 && weft_next(&it);) {
        if (count++)
            r = weft__buf_put(out, alloc, ",", 1);
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put(out, alloc, ":", 1);
        if (r >= 0 && weft_name_is(&it, "content"))
            r = weft__content_write(&it.value, find_print, set, alloc, out);
        else if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

int weft__terminals_show(weft_terminals *set, const weft_json *update, weft_buf *ret) {
    weft_json call = weft_get(update, "toolCallId"), content = weft_get(update, "content");
    size_t over = 0;
    weft_buf out = {0};
    if (weft_typeof(&content) != WEFT_ARRAY || weft_typeof(&call) != WEFT_STRING || !is_tool_call(update))
        return 0;
    forget_shows_of(set, &call);
    if (!count_shown(set, &content, &over))
        return 0;
    int r = remember_show(set, &call, &content);
    if (r >= 0 && over)
        r = write_shown(set, update, &out);
    if (r < 0)
        weft__buf_done(&out, set->opts.alloc);
    else if (over)
        *ret = out;
    return r < 0 ? r : over > 0;
}

/* ---- requests that wait ---- */

static weft_val exit_code_of(int code) {
    return code >= 0 ? weft_int(code) : weft_null();
}

static weft_val signal_of(int signal, char room[16]) {
    return signal ? weft_str(weft__signal_name(signal, room)) : weft_null();
}

static void forget_wait(wait *old) {
    weft__list_remove(&old->link);
    old->of->wait_count--;
    weft__free(old->of->set->opts.alloc, old);
}

static void answer_waits(entry *one, int exit_code, int signal) {
    char room[16];
    while (!weft__list_empty(&one->waits)) {
        wait *first = WEFT_CONTAINER(one->waits.next, wait, link);
        weft_req *req = first->req;
        weft_req_on_cancel(req, NULL, NULL);
        forget_wait(first);
        weft_reply(req, WEFT_OBJ({"exitCode", exit_code_of(exit_code)}, {"signal", signal_of(signal, room)}));
    }
}

static void on_wait_cancel(weft_req *req, int why, void *ctx) {
    (void) why;
    forget_wait(ctx);
    weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
}

/* ---- the life of a terminal ---- */

static void forget_terminal(entry *old) {
    weft_terminals *set = old->set;
    weft__list_remove(&old->link);
    if (old->terminal)
        set->live--;
    else
        set->released--;
    weft__terminal_free(old->terminal);
    weft__free(set->opts.alloc, old->last);
    weft__free(set->opts.alloc, old);
}

static void forget_oldest_released(weft_terminals *set) {
    EACH_ENTRY(at, set) {
        entry *one = WEFT_CONTAINER(at, entry, link);
        if (!one->terminal) {
            forget_terminal(one);
            return;
        }
    }
}

/* Without memory the text is lost, and that it was cut is said. */
static void keep_print(entry *one) {
    const weft_process_end *end = weft__terminal_end(one->terminal);
    weft_terminal_print *print = &one->print;
    weft_bytes text = weft__terminal_text(one->terminal, WEFT_TERMINALS_SHOWN, &print->truncated);
    one->last = weft__strndup(one->set->opts.alloc, text.data, text.len);
    print->text = one->last ? (weft_bytes){one->last, text.len} : (weft_bytes){"", 0};
    print->truncated |= !one->last;
    print->running = !end;
    print->exit_code = end ? end->exit_code : -1;
    print->signal = end ? end->signal : 0;
}

/* Who waits for its end hears what happens to it: it is killed. */
static void release_terminal(entry *one) {
    weft_terminals *set = one->set;
    bool ran = !weft__terminal_end(one->terminal);
    keep_print(one);
    one->terminal = weft__terminal_free(one->terminal);
    set->live--;
    set->released++;
    answer_waits(one, -1, SIGKILL);
    if (ran)
        tell_shows(set, one->id);
    if (set->released > MOST_RELEASED)
        forget_oldest_released(set);
}

static void on_create_cancel(weft_req *req, int why, void *ctx) {
    (void) why;
    forget_terminal(ctx);
    weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
}

static weft_req *take_create(entry *one) {
    weft_req *req = one->create;
    one->create = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    return req;
}

static int refuse_program(weft_req *req, int error, bool folder) {
    char why[200];
    snprintf(why, sizeof why, "The %s: %s", folder ? "folder cannot be entered" : "program cannot be started",
             weft_strerror(error));
    return weft_refuse(req, WEFT_INTERNAL_ERROR, why, "spawnFailed");
}

static void refuse_start(entry *one, const weft_process_end *end) {
    weft_req *req = take_create(one);
    weft_process_end how = *end; /* it goes with the terminal */
    forget_terminal(one);
    refuse_program(req, how.error, how.folder);
}

static void on_entry_start(void *ctx) {
    entry *one = ctx;
    const weft_process_end *end = weft__terminal_end(one->terminal);
    if (end && end->error < 0) {
        refuse_start(one, end);
        return;
    }
    weft_reply(take_create(one), WEFT_OBJ({"terminalId", weft_str(one->id)}));
    if (end)
        tell_shows(one->set, one->id);
}

static void on_entry_end(void *ctx) {
    entry *one = ctx;
    const weft_process_end *end = weft__terminal_end(one->terminal);
    answer_waits(one, end->exit_code, end->signal);
    tell_shows(one->set, one->id);
}

/* ---- what the agent asks ---- */

/* No other daemon, turn or session has had it, so that a transcript never shows another's. */
static int name_entry(entry *one) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return -errno;
    snprintf(one->id, sizeof one->id, WEFT_TERMINAL_PREFIX "%016" PRIx64, number);
    return 0;
}

static int start_entry(weft_terminals *set, entry *one, const weft_json *params, char why[200]) {
    const weft_terminals_opts *with = &set->opts;
    weft_terminal_opts opts = {.loop = with->loop,
                               .alloc = with->alloc,
                               .guard = with->guard,
                               .grace_ms = with->grace_ms,
                               .ctx = one,
                               .on_start = on_entry_start,
                               .on_end = on_entry_end};
    weft_terminal_order order;
    int r = weft__terminal_order(with, params, &order, &opts);
    memcpy(why, order.why, sizeof order.why);
    memcpy(one->command, order.command, sizeof one->command);
    if (r >= 0)
        r = name_entry(one);
    if (r >= 0)
        r = weft__terminal_start(&opts, &one->terminal);
    weft__terminal_order_done(&order, with->alloc);
    return r;
}

static int create_terminal(weft_terminals *set, weft_req *req, const weft_json *params) {
    char why[200] = "";
    if (set->stopped)
        return weft_refuse(req, WEFT_INTERNAL_ERROR, "The turn is being cancelled", "cancelled");
    if (set->live >= WEFT_TERMINALS_MOST)
        return weft_refuse(req, WEFT_INTERNAL_ERROR, "Too many terminals are open: release those that are done with",
                           "tooManyTerminals");
    entry *made = weft__zalloc(set->opts.alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->set = set;
    weft__list_init(&made->waits);
    int r = start_entry(set, made, params, why);
    if (r < 0) {
        weft__free(set->opts.alloc, made);
        return *why           ? weft_refuse(req, WEFT_INVALID_PARAMS, why, "invalidParams")
               : r == -ENOMEM ? r
                              : refuse_program(req, r, false);
    }
    weft__list_push(&set->entries, &made->link);
    set->live++;
    made->create = req;
    weft_req_on_cancel(req, on_create_cancel, made);
    return 0;
}

static int tell_terminal_output(entry *one, weft_req *req) {
    const weft_process_end *end = weft__terminal_end(one->terminal);
    bool truncated;
    char room[16];
    weft_bytes text = weft__terminal_text(one->terminal, SIZE_MAX, &truncated);
    weft_val status =
        end ? WEFT_OBJ({"exitCode", exit_code_of(end->exit_code)}, {"signal", signal_of(end->signal, room)}) : weft_none();
    return weft_reply(req, WEFT_OBJ({"output", weft_strn(text.data, text.len)}, {"truncated", weft_bool(truncated)},
                                    {"exitStatus", status}));
}

static int wait_for_terminal(entry *one, weft_req *req) {
    const weft_process_end *end = weft__terminal_end(one->terminal);
    char room[16];
    if (end)
        return weft_reply(req,
                          WEFT_OBJ({"exitCode", exit_code_of(end->exit_code)}, {"signal", signal_of(end->signal, room)}));
    if (one->wait_count >= MOST_WAITS)
        return weft_refuse(req, WEFT_INTERNAL_ERROR, "Too many requests wait for this terminal", "tooManyWaits");
    wait *made = weft__zalloc(one->set->opts.alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->of = one;
    made->req = req;
    weft__list_push(&one->waits, &made->link);
    one->wait_count++;
    weft_req_on_cancel(req, on_wait_cancel, made);
    return 0;
}

static int kill_terminal(entry *one, weft_req *req) {
    weft__terminal_kill(one->terminal, false);
    return weft_reply(req, weft_obj(NULL, 0));
}

static int release_for(entry *one, weft_req *req) {
    release_terminal(one);
    return weft_reply(req, weft_obj(NULL, 0));
}

int weft__terminals_take(weft_terminals *set, weft_terminals_call call, weft_req *req, const weft_json *params) {
    static int (*const takes[])(entry *, weft_req *) = {[WEFT_TERMINALS_OUTPUT] = tell_terminal_output,
                                                        [WEFT_TERMINALS_WAIT] = wait_for_terminal,
                                                        [WEFT_TERMINALS_KILL] = kill_terminal,
                                                        [WEFT_TERMINALS_RELEASE] = release_for};
    if (weft_req_is_notification(req)) /* it cannot be answered, and is gone when we return */
        return 0;
    if (call == WEFT_TERMINALS_CREATE)
        return create_terminal(set, req, params);
    const char *id = weft_get_str(params, "terminalId", NULL);
    entry *one = id ? find_terminal(set, id) : NULL;
    if (!id)
        return weft_refuse(req, WEFT_INVALID_PARAMS, "\"terminalId\" must be a string", "invalidParams");
    if (!one || !one->terminal || one->create)
        return weft_refuse(req, NOT_FOUND,
                           one && !one->terminal ? "This terminal was released" : "There is no such terminal in this turn",
                           "terminalNotFound");
    return takes[call](one, req);
}

/* ---- all of them ---- */

int weft__terminals_new(const weft_terminals_opts *opts, weft_terminals **ret) {
    size_t size = strlen(opts->root) + 1;
    weft_terminals *made = weft__zalloc(opts->alloc, sizeof *made + size);
    if (!made)
        return -ENOMEM;
    made->opts = *opts;
    made->opts.root = memcpy(made->root, opts->root, size);
    weft__list_init(&made->entries);
    weft__list_init(&made->shows);
    *ret = made;
    return 0;
}

bool weft__terminals_nth(const weft_terminals *set, size_t n, weft_open_terminal *ret) {
    EACH_ENTRY(at, set) {
        const entry *one = WEFT_CONTAINER(at, entry, link);
        if (!one->terminal || one->create || n-- > 0)
            continue;
        *ret = (weft_open_terminal){.id = one->id, .command = one->command, .terminal = one->terminal};
        return true;
    }
    return false;
}

void weft__terminals_stop(weft_terminals *set) {
    set->stopped = true;
    EACH_ENTRY(at, set) {
        const entry *one = WEFT_CONTAINER(at, entry, link);
        if (one->terminal)
            weft__terminal_kill(one->terminal, false);
    }
}

static void refuse_pending_create(entry *one) {
    weft_req *req = take_create(one);
    forget_terminal(one);
    weft_refuse(req, WEFT_INTERNAL_ERROR, "The turn is over", "turnEnded");
}

void weft__terminals_finish(weft_terminals *set) {
    set->stopped = true;
    EACH_ENTRY(at, set) {
        entry *one = WEFT_CONTAINER(at, entry, link);
        if (one->create)
            refuse_pending_create(one);
    }
    while (set->live) {
        entry *one = NULL;
        EACH_ENTRY(at, set)
        if (!one && WEFT_CONTAINER(at, entry, link)->terminal)
            one = WEFT_CONTAINER(at, entry, link);
        release_terminal(one);
    }
}

weft_terminals *weft__terminals_free(weft_terminals *set) {
    if (!set)
        return NULL;
    while (!weft__list_empty(&set->shows))
        forget_show(set, WEFT_CONTAINER(set->shows.next, show, link));
    weft__terminals_finish(set);
    while (!weft__list_empty(&set->entries))
        forget_terminal(WEFT_CONTAINER(set->entries.next, entry, link));
    return weft__free(set->opts.alloc, set);
}
