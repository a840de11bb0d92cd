/* Wires over descriptors that are not connected to anywhere: a child's stdio, our own, and what somebody else opened. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

/* The end of a child's bytes and the end of its process are one event seen twice. This long we wait for the second, so that
 * the exit status can be told, and no longer, because a grandchild may keep the socket, or the child close it and live. */
#define BOTH_ENDS_MS 500

/* ---- exec ---- */

static void describe_exit(weft_client *client, int status) {
    const char *program = client->url.argv[0];
    if (status >= 0 && WIFEXITED(status))
        weft__client_trouble(client, "%s exited with status %d", program, WEXITSTATUS(status));
    else if (status >= 0)
        weft__client_trouble(client, "%s was killed by signal %d (%s)", program, WTERMSIG(status),
                             strsignal(WTERMSIG(status)));
    else
        weft__client_trouble(client, "%s exited", program);
}

static void only_one_end(weft_timer *timer) {
    weft_wire *wire = WEFT_CONTAINER(timer, weft_wire, timer);
    weft__client_lost(wire->client, wire, -ECONNRESET);
}

static void wait_for_other_end(weft_wire *wire) {
    weft_loop *loop = wire->client->loop;
    wire->timer.on_due = only_one_end;
    weft__timer_set(loop, &wire->timer, weft_loop_now(loop) + BOTH_ENDS_MS);
}

void weft__wait_for_exit(weft_wire *wire) {
    wait_for_other_end(wire);
}

static void on_exit_of_child(void *ctx, int status) {
    weft_wire *wire = ctx;
    describe_exit(wire->client, status);
    wire->exited = true;
    if (wire->ended)
        weft__client_lost(wire->client, wire, -ECONNRESET);
    else
        wait_for_other_end(wire);
}

int weft__begin_exec(weft_wire *wire) {
    weft_client *client = wire->client;
    int fd;
    int r = weft__child_new(&client->loop->uv, client->url.argv, client->opts.quiet_stderr, client->loop->alloc,
                            &wire->child, &fd);
    if (r < 0) {
        weft__client_trouble(client, "%s: %s", client->url.argv[0],
                             r == -ENOENT ? "there is no such program" : weft_strerror(r));
        return r;
    }
    wire->holds++;
    weft__child_on_exit(wire->child, on_exit_of_child, wire);
    return weft__wire_start(wire, fd, fd, false);
}

static void on_child_gone(void *ctx) {
    weft__wire_gone(ctx);
}

void weft__end_exec(weft_wire *wire) {
    if (wire->child)
        weft__child_end(wire->child, on_child_gone, wire);
    wire->child = NULL;
}

/* ---- stdio ---- */

int weft__begin_stdio(weft_wire *wire) {
    const weft_alloc *alloc = wire->client->loop->alloc;
    weft_stdio *io = weft__zalloc(alloc, sizeof *io);
    if (!io)
        return -ENOMEM;
    int r = weft__stdio_open(io, 0, 1);
    if (r < 0) {
        weft__free(alloc, io);
        return r;
    }
    wire->stdio = io;
    r = weft__wire_start(wire, io->in.fd, io->out.fd, false);
    if (r < 0 && !wire->has_stream)
        weft__stdio_done(io);
    return r;
}

/* ---- descriptors of somebody else ---- */

void weft__given_close(weft_given *given) {
    if (given->in >= 0)
        close(given->in);
    if (given->out >= 0 && given->out != given->in)
        close(given->out);
    *given = (weft_given){-1, -1};
}

static int begin_given(weft_wire *wire) {
    weft_given given = wire->client->given;
    if (given.in < 0)
        return -ENOTCONN;
    wire->client->given = (weft_given){-1, -1};
    return weft__wire_start(wire, given.in, given.out, false);
}

/* No URL leads here, so it is not in the table of transports. */
const weft_transport weft__given_transport = {.name = "stdio", .scheme = WEFT_STDIO, .begin = begin_given};
