/* Clients: each has a connection or none, speaks JSON-RPC in bytes that may arrive in any pieces, and checks what it is told
 * against the disk. It outlives its connections: after one was lost it comes back and resumes from its last position. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_client.h"

static struct {
    client list[MAX_CLIENTS];
    size_t count;
} clients;

/* ---- bytes ---- */

void client_append(char **buffer, size_t *len, const char *data, size_t more) {
    *buffer = realloc(*buffer, *len + more + 1);
    if (!*buffer)
        abort();
    if (more)
        memcpy(*buffer + *len, data, more);
    *len += more;
    (*buffer)[*len] = '\0';
}

static void hear_line(client *c, const char *line, size_t len) {
    weft_doc *doc;
    sim_digest(line, len);
    if (weft_doc_parse(line, len, NULL, &doc) < 0) {
        sim_broken("not JSON: %s heard %.*s", c->name, (int) (len < 200 ? len : 200), line);
        return;
    }
    const weft_json *message = weft_doc_root(doc);
    const char *method = weft_get_str(message, "method", NULL);
    weft_json params = weft_get(message, "params");
    if (!method)
        client_hear_answer(c, message);
    else if (strcmp(method, "event") == 0)
        client_hear_event(c, weft_get_str(&params, "subscription", NULL) ? 1 : 0, &params);
    else if (strcmp(method, "tinyvex/data") == 0)
        client_hear_data(c, &params);
    else if (strcmp(method, "tinyvex/transitionChunk") == 0)
        client_hear_piece(c, &params);
    else if (strcmp(method, "tinyvex/error") == 0)
        sim_saw(SAW_SKIPPED);
    else
        client_hear_word(c, method, &params);
    weft_doc_free(doc);
}

void client_hear(void *ctx, const char *data, size_t len) {
    client *c = ctx;
    client_append(&c->in, &c->in_len, data, len);
    char *end;
    size_t from = 0;
    while (!sim_is_broken() && (end = memchr(c->in + from, '\n', c->in_len - from))) {
        hear_line(c, c->in + from, (size_t) (end - (c->in + from)));
        from = (size_t) (end + 1 - c->in);
    }
    memmove(c->in, c->in + from, c->in_len - from);
    c->in_len -= from;
}

/* It has no connection any more. What it asked for may have happened or not. */
static void forget_connection(client *c) {
    for (size_t i = 0; i < c->pending_count; i++)
        if (c->pending[i].want == WANT_SUBMIT && *c->pending[i].subject)
            snprintf(c->unsure, sizeof c->unsure, "%s", c->pending[i].subject);
    c->conn = NULL;
    c->pending_count = 0;
    c->in_len = c->out_len = 0;
    client_forget_pieces(c);
    for (size_t i = 0; i < VIEWS; i++)
        c->views[i].on = false;
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        subscription *sub = &c->follows[i].sub;
        sub->on = false;
        /* Who subscribed from now on and has heard nothing yet resumes from there. */
        sub->last = sub->last > sub->floor ? sub->last : sub->floor;
    }
}

void client_lost(void *ctx) {
    client *c = ctx;
    sim_say("%-7s is disconnected", c->name);
    forget_connection(c);
}

static size_t piece(bool fair) {
    return fair ? 1 << 20 : sim_below(sim_chance(30) ? 8 : MAX_PIECE) + 1;
}

static bool send_bytes(client *c, size_t max) {
    size_t n = c->out_len < max ? c->out_len : max;
    if (!n)
        return false;
    char *data = c->out;
    size_t rest = c->out_len - n;
    /* The hub may end the connection while it is fed. */
    c->out = NULL;
    c->out_len = 0;
    if (hub_feed(c->conn, data, n))
        client_append(&c->out, &c->out_len, data + n, rest);
    free(data);
    return true;
}

static bool receive_bytes(client *c, size_t max) {
    static char bytes[1 << 20];
    size_t n = c->conn ? hub_take(c->conn, bytes, max) : 0;
    /* Where the hub ended the connection meanwhile, that is already known and these bytes came too late. */
    if (n && c->conn)
        client_hear(c, bytes, n);
    return n > 0;
}

bool clients_wire(bool fair) {
    bool moved = false;
    if (!fair) {
        client *c = &clients.list[sim_below((uint32_t) clients.count)];
        if (!c->conn || (c->slow && !sim_chance(10)))
            return false;
        return sim_chance(40) ? send_bytes(c, piece(false)) : receive_bytes(c, piece(false));
    }
    for (size_t i = 0; i < clients.count; i++) {
        client *c = &clients.list[i];
        moved |= c->conn && send_bytes(c, piece(true));
        moved |= c->conn && receive_bytes(c, piece(true));
    }
    return moved;
}

void clients_drop(void) {
    client *c = &clients.list[sim_below((uint32_t) clients.count)];
    if (!c->conn)
        return;
    sim_say("%-7s disconnects", c->name);
    hub_disconnect(c->conn);
    forget_connection(c);
}

void clients_cut(void) {
    for (size_t i = 0; i < clients.count; i++)
        forget_connection(&clients.list[i]);
}

/* ---- the fair end ---- */

static bool wants_events(const client *c) {
    for (size_t i = 0; i < SUBSCRIPTIONS; i++)
        if (c->follows[i].wanted)
            return true;
    return c->views[TASKS].wanted || c->views[THREAD].wanted;
}

static bool mend_client(client *c) {
    bool done = false;
    c->fair = true;
    if (!c->conn && wants_events(c)) {
        client_connect(c);
        done = c->conn != NULL;
    }
    for (size_t i = 0; i < SUBSCRIPTIONS; i++)
        if (c->conn && c->follows[i].wanted && !c->follows[i].sub.on && !c->pending_count) {
            client_resume(c, i);
            done = true;
        }
    for (size_t i = 0; i < VIEWS; i++)
        if (c->conn && c->views[i].wanted && !c->views[i].on && !c->pending_count) {
            client_send_view(c, i);
            done = true;
        }
    return done;
}

bool clients_mend(void) {
    bool done = false;
    for (size_t i = 0; i < clients.count && hub_is_ready(); i++) {
        done |= mend_client(&clients.list[i]);
    }
    return done;
}

void clients_check(void) {
    for (size_t i = 0; i < clients.count; i++) {
        client *c = &clients.list[i];
        if (!c->conn)
            continue;
        if (c->pending_count)
            sim_broken("no answer: %s waits for the answer to %llu", c->name, (unsigned long long) c->pending[0].id);
        for (size_t k = 0; k < SUBSCRIPTIONS; k++)
            if (c->follows[k].sub.on)
                client_check_missed(c, &c->follows[k].sub, truth_head() + 1);
        if (c->views[TASKS].wanted)
            client_check_view(c);
        if (c->views[THREAD].wanted)
            client_check_thread(c);
        if (c->aiwg)
            client_check_words(c);
    }
}

void clients_open(size_t count) {
    memset(&clients, 0, sizeof clients);
    clients.count = count < MAX_CLIENTS ? count : MAX_CLIENTS;
    for (size_t i = 0; i < clients.count; i++) {
        client *c = &clients.list[i];
        snprintf(c->name, sizeof c->name, "client%zu", i);
        c->slow = sim_chance(30);
    }
}

void clients_close(void) {
    for (size_t i = 0; i < clients.count; i++) {
        free(clients.list[i].out);
        free(clients.list[i].in);
        for (size_t k = 0; k < VIEWS; k++)
            free(clients.list[i].views[k].value);
        client_forget_pieces(&clients.list[i]);
    }
    memset(&clients, 0, sizeof clients);
}

void clients_act(void) {
    client *c = &clients.list[sim_below((uint32_t) clients.count)];
    client_act(c);
    /* Two at once, where that matters: the same question, answered by two. */
    if (sim_chance(20))
        client_act(&clients.list[sim_below((uint32_t) clients.count)]);
}
