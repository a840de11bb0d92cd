/* The library's loop inside another one: everything of Weft is one descriptor and one timeout for it.
 *
 *     printf 'one\ntwo\n' | inside_poll     upper-cases each line by a call */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

static int shout(weft_req *req, const weft_json *params, void *ctx) {
    weft_json first = weft_at(params, 0);
    char text[256];
    (void) ctx;
    snprintf(text, sizeof text, "%s", weft_str_of(&first, ""));
    for (char *c = text; *c; c++)
        *c = (char) toupper((unsigned char) *c);
    return weft_reply(req, weft_str(text));
}

static int open_calls;

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) ctx;
    open_calls--;
    printf("%s\n", r < 0 ? weft_strerror(r) : answer->error ? answer->error->message : weft_str_of(answer->result, ""));
}

static int call_for(weft_peer *peer, char *line) {
    line[strcspn(line, "\n")] = '\0';
    int r = weft_call_start(peer, "shout", WEFT_ARR(weft_str(line)), &(weft_call_opts){.on_answer = on_answer}, NULL);
    open_calls += r >= 0;
    return r;
}

/* The foreign loop. Before it waits, Weft has its turn; then it waits for whichever is first. */
static int run(weft_loop *loop, weft_peer *peer) {
    char line[256];
    bool more = true;
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() does not see what stdio has read ahead */
    for (;;) {
        weft_loop_once(loop, false);
        if (!more && !open_calls)
            return 0;
        struct pollfd fds[] = {{.fd = weft_loop_fd(loop), .events = POLLIN}, {.fd = more ? 0 : -1, .events = POLLIN}};
        if (poll(fds, 2, weft_loop_timeout_ms(loop)) < 0)
            return -errno;
        if (!fds[1].revents)
            continue;
        more = fgets(line, sizeof line, stdin) != NULL;
        int r = more ? call_for(peer, line) : 0;
        if (r < 0)
            return r;
    }
}

int main(void) {
    static const weft_method methods[] = {{.name = "shout", .handler = shout}, {0}};
    WEFT_AUTO(weft_loop) loop = NULL;
    WEFT_AUTO(weft_server) server = NULL;
    WEFT_AUTO(weft_peer) peer = NULL;
    weft_service *service = NULL;

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service}, &server);
    weft_service_unref(service);
    if (r >= 0)
        r = weft_server_listen(server, "mem:shout", NULL);
    if (r >= 0)
        r = weft_connect_on(loop, "mem:shout", NULL, &peer, NULL);
    if (r >= 0)
        r = run(loop, peer);
    if (r < 0)
        fprintf(stderr, "inside_poll: %s\n", weft_strerror(r));
    return r < 0;
}
