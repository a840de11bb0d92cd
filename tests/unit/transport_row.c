/* A transport that is not in libweft's table, added with one row: sockets with a name of Linux's abstract namespace. It
 * touches no other file, connects and listens, and does what every transport must. */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server.h"
#include "suites/link.h"
#include "transport.h"

/* ---- the transport ---- */

static int open_abstract(const char *name, struct sockaddr_un *ret, socklen_t *ret_len) {
    size_t len = strlen(name);
    if (len >= sizeof ret->sun_path)
        return -ENAMETOOLONG;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path + 1, name, len);
    *ret_len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

static int begin_abstract(weft_wire *wire) {
    struct sockaddr_un address;
    socklen_t len;
    int fd = open_abstract(wire->client->url.path, &address, &len);
    if (fd < 0 || connect(fd, (struct sockaddr *) &address, len) == 0)
        return fd < 0 ? fd : weft__wire_start(wire, fd, fd, false);
    int r = -errno;
    close(fd);
    return r;
}

static int listen_abstract(weft_listener *listener, const weft_url *url) {
    struct sockaddr_un address;
    socklen_t len;
    int fd = open_abstract(url->path, &address, &len);
    if (fd < 0 || (bind(fd, (struct sockaddr *) &address, len) == 0 && listen(fd, 16) == 0))
        return fd < 0 ? fd : weft__listener_accept_on(listener, fd);
    int r = -errno;
    close(fd);
    return r;
}

static const weft_transport abstract_transport = {
    .scheme = {"abstract", WEFT_URL_NAME, .flags = WEFT_KNOWS_USER, .wrong = "abstract: needs a name"},
    .begin = begin_abstract,
    .listen = listen_abstract};

/* ---- the wiring ---- */

static const weft_transport *const more[] = {&abstract_transport, NULL};

LINK_SUITE(abstract, .listen = "abstract:weft-links", .transports = more)

/* Its row answers for it wherever a scheme is asked about. */
TEST(is_known_by_its_row) {
    weft_url url;
    const char *why = "";
    CHECK_INT(weft__transport_parse(more, "Abstract://there", NULL, &url, &why), 0);
    CHECK(weft__transport(&url) == &abstract_transport);
    CHECK_STR(url.path, "there");
    weft__url_done(&url, NULL);
    CHECK_INT(weft__transport_parse(more, "abstract:", NULL, &url, &why), -EINVAL);
    CHECK_STR(why, "abstract: needs a name");
    CHECK(weft__transport_of(more, "/run/x") != &abstract_transport);
}

/* Loops that were not told of it refuse it, as a client and as a server. */
TEST(is_unknown_elsewhere) {
    static const link_kind kind = {.name = "mem", .listen = "mem:links"};
    weft_trouble trouble = {""};
    link_scene s;
    weft_peer *peer = NULL;
    link_begin(&s, &kind);
    CHECK_INT(weft_connect_on(s.loop, "abstract:weft-links", NULL, &peer, &trouble), -EINVAL);
    CHECK(strstr(trouble.text, "begins with"));
    CHECK_INT(weft_server_listen(s.server, "abstract:weft-links", NULL), -EINVAL);
    link_end(&s);
}

/* Who comes is the user that the kernel says, and is not from a network. */
static int tell_who(weft_req *req, const weft_json *params, void *ctx) {
    const weft_identity *who = weft_req_identity(req);
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_ARR(weft_bool(who->local && who->authenticated && who->uid == (int64_t) geteuid() &&
                                              strcmp(who->transport, "abstract") == 0)));
}

static void hear_who(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    weft_json first = r >= 0 && answer->result ? weft_at(answer->result, 0) : (weft_json){0};
    *(int *) ctx = weft_bool_of(&first, false) ? 1 : -1;
}

TEST(knows_who_comes) {
    static const link_kind kind = {.name = "abstract", .listen = "abstract:weft-links", .transports = more};
    static const weft_method method = {"who", tell_who, .help = ""};
    link_scene s;
    int known = 0;
    link_begin(&s, &kind);
    CHECK_INT(weft_service_add(s.service, &method), 0);
    CHECK_INT(link_connect(&s, false), 0);
    CHECK_INT(weft_call_start(s.peer, "who", weft_none(), &(weft_call_opts){.on_answer = hear_who, .ctx = &known}, NULL), 0);
    LINK_UNTIL(&s, known);
    CHECK_INT(known, 1);
    link_end(&s);
}

LINK_MAIN(CASE(link_abstract) CASE(is_known_by_its_row) CASE(is_unknown_elsewhere) CASE(knows_who_comes))
