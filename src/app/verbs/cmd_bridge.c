/* weft bridge: two transports joined. Messages pass as they are, each in the framing of the side it goes to; whoever reads
 * slower sets the pace. One connection to B for every client of A. What a message says matters in one respect only: a side
 * that has ended its half is still owed the answers to what it asked. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "buf.h"
#include "daemon_folder.h"
#include "debug.h"
#include "endpoint.h"
#include "failure.h"
#include "link.h"
#include "list.h"
#include "message.h"
#include "serve.h"
#include "signals.h"

/* A bridge is no place to judge how large a message may be: the largest that anybody takes. */
#define MAX_BODY (64 * 1024 * 1024)
/* One such message, and what is queued before it. */
#define MAX_QUEUED (2 * (size_t) MAX_BODY)
#define MAX_DEPTH 128

typedef struct settings {
    weft_serve_settings serve; /* for --listen */
    const char *listen;
    bool content_length_a;
} settings;

typedef struct bridge bridge;
typedef struct pair pair;

typedef struct side {
    pair *pair;
    weft_peer *peer; /* NULL: gone, or not there yet */
    size_t asked;    /* messages of this side that are owed an answer */
    bool ended;      /* it will say no more */
    bool ready;      /* may be sent to */
    bool showing;    /* our token is being looked at: the answer is ours */
} side;

/* A client of A and its own connection to B. */
struct pair {
    weft_link link;
    bridge *bridge;
    side a, b;
};

struct bridge {
    /* What a server's peers belong to until they are let in; its pair is NULL. First: it is the server's data. */
    side nobody;
    weft_app *app;
    const settings *how;
    weft_target from, to;   /* from is empty when listening, but for the token that clients must show */
    const char *token_path; /* of this folder, if it is that one; NULL: it was named, or there is none */
    weft_loop *loop;
    weft_service *service;
    weft_server *server; /* NULL: two connections of ours */
    weft_signals signals;
    weft_link pairs;
    bool debug;           /* log what passes; the library does not look at it */
    uint64_t messages[2]; /* from A, from B */
    weft_exit status;
};

static side *other_of(side *self) {
    return self == &self->pair->a ? &self->pair->b : &self->pair->a;
}

/* ---- the end ---- */

/* Both sides get what is queued for them. */
static void let_go_of_side(side *self) {
    weft_peer *peer = self->peer;
    self->peer = NULL;
    self->ready = false;
    weft_peer_free(peer);
}

static void end_pair(pair *self, weft_exit status) {
    bridge *all = self->bridge;
    weft__list_remove(&self->link);
    let_go_of_side(&self->a);
    let_go_of_side(&self->b);
    weft__free(NULL, self);
    if (all->server)
        return;
    all->status = status;
    weft__signals_close(&all->signals); /* nothing else is on the loop but what is still being sent */
}

/* ---- what messages are, as far as it matters ---- */

static bool is_owed(const weft_msg *msg) {
    return msg->kind == WEFT_MSG_REQUEST || msg->kind == WEFT_MSG_INVALID;
}

typedef struct meaning {
    size_t asks, answers; /* messages in it that are owed an answer, or are one */
    bool one_text;
} meaning;

static void add_batch(const char *text, meaning *ret) {
    bool asks = false, answers = false;
    weft_msg item;
    for (const char *at = text; weft__batch_next(&at, true, &item) > 0;) {
        asks |= is_owed(&item);
        answers |= item.kind == WEFT_MSG_ANSWER;
    }
    ret->asks += asks || !answers; /* an empty one is answered with an error */
    ret->answers += answers;
}

/* text ends in NUL. What is not JSON is owed an error. */
static meaning meaning_of(const char *text, size_t len) {
    meaning found = {0};
    const char *end = text + len;
    for (size_t texts = 1; text < end; texts++) {
        weft_msg msg;
        const char *rest;
        if (weft__msg_parse(text, MAX_DEPTH, true, &msg, &rest) < 0) {
            found.asks++;
            return found;
        }
        if (msg.kind == WEFT_MSG_BATCH)
            add_batch(text, &found);
        else if (msg.kind == WEFT_MSG_ANSWER)
            found.answers++;
        else
            found.asks += is_owed(&msg);
        found.one_text = texts == 1;
        text = rest;
    }
    return found;
}

/* ---- passing on ---- */

/* Lines cannot have line ends in them; between the tokens of a JSON text, which is the only place where they can be, a blank
 * is as good. */
static void flatten_lines(char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n' || text[i] == '\r')
            text[i] = ' ';
}

static int pass_message(side *from, side *to, weft_bytes body, bool binary) {
    weft_buf copy = {0};
    int r = weft__buf_reserve(&copy, NULL, body.len + 1);
    if (r < 0)
        return r;
    weft__buf_put(&copy, NULL, body.data, body.len);
    char *text = weft__buf_head(&copy);
    text[body.len] = '\0';
    meaning what = meaning_of(text, body.len);
    if (what.one_text && strcmp(weft__peer_framing_name(to->peer), "ndjson") == 0)
        flatten_lines(text, body.len);
    r = weft_peer_send_raw(to->peer, (weft_bytes){text, body.len}, binary);
    weft__buf_done(&copy, NULL);
    if (r < 0)
        return r;
    from->asked += what.asks;
    to->asked -= what.answers < to->asked ? what.answers : to->asked;
    from->pair->bridge->messages[from == &from->pair->b]++;
    return 0;
}

static bool is_side_over(const side *self) {
    return self->ended && self->asked == 0;
}

static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    side *from = data;
    if (!from->pair || from->showing)
        return false; /* the token's business */
    side *to = other_of(from);
    if (from->pair->bridge->debug)
        weft__debug_message(NULL, peer, false, body);
    int r = to->ready ? pass_message(from, to, body, binary) : -ENOTCONN;
    if (r < 0) {
        weft__warn(from->pair->bridge->app, "weft %s: a message could not be passed on: %s",
                   from->pair->bridge->app->verb->name, weft_strerror(r));
        end_pair(from->pair, WEFT_FAILED);
    } else if (is_side_over(to))
        end_pair(from->pair, WEFT_DONE);
    else if (weft_peer_full(to->peer))
        weft_peer_pause(peer, true);
    return true;
}

static void on_side_drain(weft_peer *peer, void *data) {
    side *self = data, *other = self->pair ? other_of(self) : NULL;
    (void) peer;
    if (other && other->peer && other->ready)
        weft_peer_pause(other->peer, false);
}

static bool on_side_eof(weft_peer *peer, void *data) {
    side *self = data;
    (void) peer;
    if (!self->pair)
        return false;
    self->ended = true;
    if (!is_side_over(self))
        return true;
    end_pair(self->pair, WEFT_DONE);
    return false;
}

/* ---- connecting ---- */

static void on_side_state(weft_peer *peer, weft_peer_state state, int why, void *data);

static int reach_side(side *self, weft_target *target, bool is_a) {
    bridge *all = self->pair->bridge;
    weft_connect_opts opts = weft__target_opts(all->app, target, all->service);
    bool sized = is_a ? all->how->content_length_a : all->app->reach.content_length;
    /* Whoever started us speaks first, and we answer in kind. */
    opts.framing = sized ? &weft_content_length : target->scheme->flags & WEFT_OUR_STDIO ? &weft_detect : &weft_ndjson;
    opts.data = self;
    opts.on_state = on_side_state;
    opts.on_raw = on_raw;
    opts.on_eof = on_side_eof;
    opts.on_drain = on_side_drain;
    return weft_connect_on(all->loop, target->url, &opts, &self->peer, &target->trouble);
}

static weft_target *target_of(const side *self) {
    return self == &self->pair->a ? &self->pair->bridge->from : &self->pair->bridge->to;
}

static weft_exit explain_side(const side *self, int why) {
    const weft_target *target = target_of(self);
    return weft__fail_at(self->pair->bridge->app, target->shown, why,
                         self->peer ? weft_peer_trouble(self->peer) : target->trouble.text);
}

static void make_side_ready(side *self) {
    side *other = other_of(self);
    bridge *all = self->pair->bridge;
    self->ready = true;
    weft__remark(all->app, "connected to %s", target_of(self)->url ? target_of(self)->url : all->how->listen);
    /* B first: who is not there should be known before anybody is asked to speak. */
    if (!other->peer) {
        weft_peer_pause(self->peer, true);
        int r = reach_side(other, target_of(other), other == &self->pair->a);
        if (r < 0)
            end_pair(self->pair, explain_side(other, r));
    } else if (other->ready)
        weft_peer_pause(other->peer, false);
    else
        weft_peer_pause(self->peer, true);
}

/* An answer to what we said before anything passes. false: there is none, because the connection ends. */
static bool take_own_answer(side *self, int r) {
    if (!self->peer)
        return false; /* being let go */
    self->showing = false;
    return r >= 0; /* otherwise on_side_state() says why */
}

static void on_side_token_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    side *self = ctx;
    (void) peer;
    if (!take_own_answer(self, r))
        return;
    if (answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        end_pair(self->pair,
                 weft__fail_refused(self->pair->bridge->app, "weft.auth", answer->error, "The server refused the token."));
    else
        make_side_ready(self);
}

static void on_side_connected(side *self) {
    const weft_target *target = target_of(self);
    self->showing = weft__target_shows_by_call(target);
    if (!self->showing)
        make_side_ready(self);
    else if (weft__target_show(self->peer, target, on_side_token_answer, self) < 0)
        end_pair(self->pair, weft__fail(self->pair->bridge->app, WEFT_FAILED, NULL, "out of memory"));
}

/* The end of a connection is the end of the pair: a clean one if it had begun, and nothing worse than its end happened. */
static void on_side_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    side *self = data;
    self->peer = peer;
    if (state == WEFT_PEER_CONNECTED)
        on_side_connected(self);
    else if (state == WEFT_PEER_CLOSED || state == WEFT_PEER_DISCONNECTED) {
        bool clean = self->ready && (why == 0 || why == -ECONNRESET || why == -EPIPE);
        weft_exit status = clean ? WEFT_DONE : explain_side(self, why);
        end_pair(self->pair, status);
    }
}

/* ---- clients of A ---- */

static pair *new_pair(bridge *self) {
    pair *made = weft__zalloc(NULL, sizeof *made);
    if (!made)
        return NULL;
    made->bridge = self;
    made->a.pair = made->b.pair = made;
    weft__list_push(&self->pairs, &made->link);
    return made;
}

static void on_bridge_open(weft_server *server, weft_peer *peer, void *data) {
    bridge *self = data;
    pair *made = new_pair(self);
    (void) server;
    if (!made) {
        weft_peer_free(peer);
        return;
    }
    made->a.peer = peer;
    made->a.ready = true;
    weft_peer_set_data(peer, &made->a);
    weft_peer_pause(peer, true); /* until B is there */
    int r = reach_side(&made->b, &self->to, false);
    if (r < 0) {
        explain_side(&made->b, r);
        end_pair(made, WEFT_FAILED);
    }
}

static void on_bridge_close(weft_server *server, weft_peer *peer, int why, void *data) {
    side *self = weft_peer_data(peer);
    (void) server, (void) why, (void) data;
    if (!self->pair || !self->peer)
        return;        /* it was never a client, or we are letting it go */
    self->peer = NULL; /* the server frees it */
    end_pair(self->pair, WEFT_DONE);
}

static void on_server_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server, (void) data;
    on_side_drain(peer, weft_peer_data(peer));
}

static void on_bridge_note(weft_server *server, const char *line, void *data) {
    (void) server;
    weft__warn(((bridge *) data)->app, "weft bridge: %s", line);
}

static int listen_for_clients(bridge *self) {
    const weft_serve_settings *serve = &self->how->serve;
    weft_server_opts opts = {
        .service = self->service,
        .data = self,
        .on_open = on_bridge_open,
        .on_close = on_bridge_close,
        .on_raw = on_raw,
        .on_eof = on_side_eof,
        .on_drain = on_server_drain,
        .on_note = on_bridge_note,
    };
    const weft_token tokens[] = {{.token = self->from.token, .name = "token"}, {0}};
    weft_listen_opts listen = {
        .tls = {.cert = serve->tls_cert, .key = serve->tls_key, .ca = serve->tls_ca},
        .tokens = self->from.token ? tokens : NULL,
        .hosts = serve->hosts.count ? serve->hosts.items : NULL,
        .origins = serve->origins.count ? serve->origins.items : NULL,
    };
    int r = weft_server_new(self->loop, &opts, &self->server);
    return r < 0 ? r : weft_server_listen(self->server, self->how->listen, &listen);
}

/* ---- running ---- */

static void on_bridge_signal(void *ctx) {
    weft_loop_stop(((bridge *) ctx)->loop);
}

static int open_bridge(bridge *self) {
    weft_service_opts opts = {
        .limits = {.max_body = MAX_BODY, .max_body_stranger = MAX_BODY, .out_hard = MAX_QUEUED, .max_answer = MAX_BODY},
    };
    self->debug = weft__debug_wanted();
    weft__list_init(&self->pairs);
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft_service_new(&opts, &self->service);
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_bridge_signal, self);
    return r;
}

/* Where the token is that clients must show; NULL: they need none. */
static const char *listen_token_path(const bridge *self) {
    return self->token_path ? self->token_path : self->from.token ? self->how->serve.token_file : NULL;
}

static weft_exit start_listening(bridge *self) {
    int r = listen_for_clients(self);
    if (r < 0)
        return weft__fail(self->app, r == -EADDRINUSE ? WEFT_BUSY : WEFT_FAILED, NULL, "%s: %s", self->how->listen,
                          weft_strerror(r));
    const char *url = weft_server_url(self->server, 0);
    if (self->app->common.json)
        weft__put_line(&self->app->out, WEFT_OBJ({"listening", weft_str(url)}, {"to", weft_str(self->to.shown)},
                                                 {"tokenFile", weft_str_or_none(listen_token_path(self))}));
    fprintf(self->app->err.file, "listening on %s\n", url);
    if (listen_token_path(self))
        fprintf(self->app->err.file,
                "Clients must show the token that is in %s, for example:\n    %s call --token-file %s %s METHOD\n",
                listen_token_path(self), program_invocation_name, listen_token_path(self), url);
    fflush(self->app->err.file);
    return WEFT_DONE;
}

static weft_exit start_pair(bridge *self) {
    pair *only = new_pair(self);
    int r = only ? reach_side(&only->b, &self->to, false) : -ENOMEM;
    return r < 0 ? weft__fail_at(self->app, self->to.shown, r, self->to.trouble.text) : WEFT_DONE;
}

static void close_bridge(bridge *self) {
    while (!weft__list_empty(&self->pairs))
        end_pair(WEFT_CONTAINER(self->pairs.next, pair, link), self->status);
    weft__signals_close(&self->signals);
    weft_server_free(self->server);
    if (self->loop)
        weft_loop_run(self->loop); /* what is still being sent */
    weft_loop_free(self->loop);
    weft_service_unref(self->service);
}

static weft_exit join_sides(bridge *self) {
    signal(SIGPIPE, SIG_IGN); /* standard output may be a side, and leave */
    int r = open_bridge(self);
    weft_exit status = r < 0               ? weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r))
                       : self->how->listen ? start_listening(self)
                                           : start_pair(self);
    if (status == WEFT_DONE) {
        weft_loop_run(self->loop);
        status = self->status;
    }
    close_bridge(self);
    weft__remark(self->app, "%llu messages one way, %llu the other", (unsigned long long) self->messages[0],
                 (unsigned long long) self->messages[1]);
    return status;
}

/* ---- the command line ---- */

static bool is_auth_none(const settings *how) {
    return how->serve.auth && strcmp(how->serve.auth, "none") == 0;
}

/* A certificate that was signed by --tls-ca is proof enough, where there are certificates. */
static bool asks_for_certificates(const settings *how, const weft_url *url) {
    return how->serve.tls_ca && url->scheme->flags & WEFT_OVER_TLS;
}

/* As "weft serve" does: who comes by the network shows the token of a file, or else of this folder, which is made if there
 * is none; unless it was said in words that nobody needs one. */
static weft_exit get_listen_token(bridge *self, const weft_url *url) {
    const settings *how = self->how;
    if (how->serve.token_file && is_auth_none(how))
        return weft__misused(self->app, "--auth none and --listen-token-file say different things; leave one of them out");
    if (!weft__serve_is_network(url))
        return WEFT_DONE;
    if (how->serve.token_file)
        return weft__token_read(self->app, how->serve.token_file, &self->from.token);
    if (is_auth_none(how))
        weft__warn(self->app, "weft bridge: --auth none: every user and program of this machine may use this bridge");
    if (is_auth_none(how) || asks_for_certificates(how, url))
        return WEFT_DONE;
    self->token_path = self->app->layout->token;
    return weft__daemon_folder_token(self->app, &self->from.token);
}

static weft_exit check_listen(bridge *self) {
    weft_url url;
    weft_exit status = weft__url_check(self->app, self->how->listen, &url);
    if (status)
        return status;
    if (weft__is_http(url.scheme))
        status = weft__misused(self->app, "http has no lasting connection to bridge; listen with ws:// instead");
    else
        status = weft__serve_check(self->app, &self->how->serve, &url);
    if (status == WEFT_DONE)
        status = get_listen_token(self, &url);
    weft__url_done(&url, NULL);
    return status;
}

static weft_exit run_bridge(weft_app *app) {
    bridge self = {.app = app, .how = app->settings};
    bool listens = self.how->listen;
    if (app->arg_count != (listens ? 1 : 2))
        return weft__misused(app, listens ? "with --listen there is one endpoint to bridge to" : "two endpoints are needed");
    if (app->reach.key_file)
        return weft__misused(
            app, "a bridge passes messages on as they are: sign them where they are written, not with --key-file");
    weft_exit status = weft__target_of(app, app->args[app->arg_count - 1], &self.to);
    if (status == WEFT_DONE)
        status = listens ? check_listen(&self) : weft__target_of(app, app->args[0], &self.from);
    if (status == WEFT_DONE)
        status = join_sides(&self);
    weft__target_done(&self.from);
    weft__target_done(&self.to);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, listen, text, "listen", 'l', "URL", "be A: one connection to B for every client that comes"),
    WEFT_OPTION(settings, content_length_a, flag, "content-length-a", 0, NULL,
                "frame A with Content-Length (stdio: finds out)"),
    {.name = "auth",
     .kind = WEFT_OPTION_text,
     .value = "HOW",
     .offset = offsetof(settings, serve.auth),
     .help = "what network clients must show (default token); none is for this machine only",
     .choices = "token none"},
    WEFT_OPTION(settings, serve.token_file, text, "listen-token-file", 0, "FILE",
                "the token that clients must show (default: this folder's, made if there is none)"),
    WEFT_OPTION(settings, serve.tls_cert, text, "tls-cert", 0, "FILE", "certificate for listening on tls:// and wss://"),
    WEFT_OPTION(settings, serve.tls_key, text, "tls-key", 0, "FILE", "the key that belongs to it"),
    WEFT_OPTION(settings, serve.tls_ca, text, "tls-ca", 0, "FILE", "clients must have a certificate signed by this"),
    WEFT_OPTION(settings, serve.hosts, list, "allow-host", 0, "NAME", "a Host header to accept besides loopback's"),
    WEFT_OPTION(settings, serve.origins, list, "allow-origin", 0, "ORIGIN", "a web page's origin to accept besides our own"),
    WEFT_OPTION(settings, serve.insecure_listen, flag, "insecure-listen", 0, NULL, "listen beyond this machine without TLS"),
    {0},
};

static const char *const examples[] = {
    "weft bridge stdio: unix:/run/x.sock",
    "for an editor that starts a program and speaks through its stdio, by lines or with Content-Length",
    "weft bridge --listen ws://127.0.0.1:8080/ unix:/run/x.sock",
    "for browsers, with the token that is in .weft/token",
    "weft bridge --listen unix:/tmp/lsp.sock 'exec:clangd' --content-length",
    "a language server of its own for every client",
    NULL,
};

const weft_verb weft__bridge_verb = {
    .name = "bridge",
    .help = "connect any transport to any other",
    .usage = "A B | --listen URL B",
    .examples = examples,
    .about =
        "Messages pass as they are, in the framing of each side. It ends with status 0 when either side ends, after the\n"
        "answers that are still owed to it. --content-length, --token-file and the certificates are for B, and for A too\n"
        "unless that is listened on. Clients that come by the network show a token, as for weft serve; on a Unix socket\n"
        "they need none.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_bridge,
};
