/* Bring your own loop: the peer without I/O, on poll(2), serving stdin and stdout.
 *
 *     printf '{"jsonrpc":"2.0","method":"echo","params":[1],"id":1}\n' | own_loop */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the peer is due, or for ever. */
static int poll_timeout(const weft_peer *peer) {
    int64_t due = weft_peer_deadline(peer), now = now_ms();
    if (due == INT64_MAX)
        return -1;
    return due <= now ? 0 : due - now > 60000 ? 60000 : (int) (due - now);
}

static int write_output(weft_peer *peer) {
    weft_bytes out = weft_peer_output(peer);
    ssize_t n = out.len ? write(1, out.data, out.len) : 0;
    if (n < 0)
        return -errno;
    weft_peer_sent(peer, (size_t) n);
    return 0;
}

/* 1 go on, 0 end of input, <0 broken. */
static int read_input(weft_peer *peer) {
    char bytes[4096];
    ssize_t n = read(0, bytes, sizeof bytes);
    if (n <= 0)
        return n < 0 ? -errno : weft_peer_eof(peer);
    int r = weft_peer_feed(peer, bytes, (size_t) n, now_ms());
    return r < 0 ? r : 1;
}

static int run(weft_peer *peer) {
    int r = 1;
    while (r > 0) {
        bool output = weft_peer_output(peer).len > 0;
        struct pollfd fds[] = {{.fd = weft_peer_full(peer) ? -1 : 0, .events = POLLIN},
                               {.fd = output ? 1 : -1, .events = POLLOUT}};
        if (poll(fds, 2, poll_timeout(peer)) < 0)
            return -errno;
        if (fds[1].revents && (r = write_output(peer)) < 0)
            return r;
        r = fds[0].revents ? read_input(peer) : 1;
        int due = r > 0 ? weft_peer_tick(peer, now_ms()) : 0; /* takes what was kept unread while the output was full, too */
        r = due < 0 ? due : r;
    }
    while (weft_peer_output(peer).len > 0 && write_output(peer) == 0)
        ;
    return r;
}

int main(void) {
    static const weft_method methods[] = {{"echo", echo, .help = "answer the params as they came"}, {0}};
    WEFT_AUTO(weft_peer) peer = NULL;
    weft_service *service = NULL;

    int r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    if (r >= 0)
        r = weft_peer_new(service, &(weft_peer_opts){.framing = &weft_detect}, &peer);
    weft_service_unref(service); /* the peer holds its own */
    if (r >= 0)
        r = run(peer);
    if (r < 0)
        fprintf(stderr, "own_loop: %s\n", weft_strerror(r));
    return r < 0;
}
