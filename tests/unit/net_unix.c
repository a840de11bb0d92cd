/* Unix sockets and the byte-stream side of a server: who may connect, what happens at the edges. */
#include <signal.h>
#include <sys/wait.h>

#include "net_world.h"
#include "unix_socket.h"

#define CALL(id, method) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"" method "\"}\n"

static int serve_unix(world *w, const weft_listen_opts *opts) {
    char url[200];
    snprintf(url, sizeof url, "unix:%s/s", w->folder);
    return weft_server_listen(w->server, url, opts);
}

static int connect_unix(world *w) {
    char path[100];
    snprintf(path, sizeof path, "%s/s", w->folder);
    return world_connect_unix(path);
}

TEST(answers_a_call) {
    world *w = world_new(NULL, NULL);
    CHECK_INT(serve_unix(w, NULL), 0);
    int fd = connect_unix(w);
    world_say(w, fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}\n");
    world_read_lines(w, fd, 1);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1]}\n");
    CHECK_INT(w->opened, 1);
    CHECK_INT(weft_server_clients(w->server), 1);
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    CHECK_INT(w->why, 0);
    CHECK_INT(weft_server_clients(w->server), 0);
    world_free(w);
}

TEST(identity_is_the_user) {
    char want[64];
    world *w = world_new(NULL, NULL);
    serve_unix(w, &(weft_listen_opts){.dialect = "aiwg"});
    int fd = connect_unix(w);
    world_say(w, fd, CALL(1, "who"));
    world_read_lines(w, fd, 1);
    snprintf(want, sizeof want, "\"uid\":%d,\"authenticated\":true", (int) geteuid());
    HAS(w, want);
    HAS(w, "\"transport\":\"unix\",\"dialect\":\"aiwg\"");
    HAS(w, "\"scopes\":\"*\"");
    close(fd);
    world_free(w);
}

TEST(content_length_is_answered_in_kind) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, "Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\"}");
    CHECK(world_read_until(w, fd, "}"));
    HAS(w, "Content-Length: ");
    HAS(w, "\"id\":7");
    close(fd);
    world_free(w);
}

TEST(mode_is_private_whatever_the_umask) {
    char path[100];
    struct stat info;
    mode_t before = umask(0);
    world *w = world_new(NULL, NULL);
    CHECK_INT(serve_unix(w, NULL), 0);
    umask(before);
    snprintf(path, sizeof path, "%s/s", w->folder);
    CHECK_INT(stat(path, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    world_free(w);
}

TEST(long_paths) {
    static const size_t lengths[] = {100, 107, 108, 200};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char path[300], url[320], row[32];
        world *w = world_new(NULL, NULL);
        snprintf(row, sizeof row, "%zu bytes", lengths[i]);
        test_row(row);
        size_t n = (size_t) snprintf(path, sizeof path, "%s/", w->folder);
        memset(path + n, 'd', lengths[i] - 40 - n);
        path[lengths[i] - 40] = '\0';
        CHECK_INT(mkdir(path, 0700), 0);
        memset(path + strlen(path), 'x', lengths[i] - strlen(path));
        path[lengths[i] - 40] = '/';
        path[lengths[i]] = '\0';
        snprintf(url, sizeof url, "unix:%s", path);
        CHECK_INT(weft_server_listen(w->server, url, NULL), 0);
        CHECK_INT(access(path, F_OK), 0);
        CHECK_STR(weft_server_url(w->server, 0), url);
        /* Connect the way a client with a long path does: through its folder. */
        path[lengths[i] - 40] = '\0';
        char shorter[100];
        int dir = open(path, O_PATH | O_DIRECTORY);
        snprintf(shorter, sizeof shorter, "/proc/self/fd/%d/%s", dir, path + lengths[i] - 39);
        int fd = world_connect_unix(shorter);
        CHECK(fd >= 0);
        world_say(w, fd, CALL(1, "echo"));
        world_read_lines(w, fd, 1);
        CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
        close(fd);
        close(dir);
        world_free(w);
    }
    test_row(NULL);
}

TEST(folder_must_exist) {
    char url[200];
    world *w = world_new(NULL, NULL);
    snprintf(url, sizeof url, "unix:%s/no/s", w->folder);
    CHECK_INT(weft_server_listen(w->server, url, NULL), -ENOENT);
    world_free(w);
}

/* What a killed server leaves behind: a socket file that nobody listens on. */
static void leave_stale(const world *w) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", w->folder);
    CHECK_INT(bind(fd, (struct sockaddr *) &address, sizeof address), 0);
    CHECK_INT(listen(fd, 1), 0);
    close(fd);
}

TEST(stale_socket_is_replaced) {
    world *w = world_new(NULL, NULL);
    leave_stale(w);
    CHECK_INT(serve_unix(w, NULL), 0);
    int fd = connect_unix(w);
    CHECK(fd >= 0);
    close(fd);
    world_free(w);
}

TEST(living_socket_is_left_alone) {
    world *w = world_new(NULL, NULL), *other = world_new(NULL, NULL);
    char url[200];
    CHECK_INT(serve_unix(w, NULL), 0);
    snprintf(url, sizeof url, "unix:%s/s", w->folder);
    CHECK_INT(weft_server_listen(other->server, url, NULL), -EADDRINUSE);
    int fd = connect_unix(w);
    CHECK(fd >= 0);
    close(fd);
    world_free(other);
    world_free(w);
}

/* Its backlog is full: connecting says EAGAIN, which means alive. */
TEST(full_backlog_is_alive) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    world *w = world_new(NULL, NULL);
    int fds[3], fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", w->folder);
    CHECK_INT(bind(fd, (struct sockaddr *) &address, sizeof address), 0);
    CHECK_INT(listen(fd, 0), 0);
    for (int i = 0; i < 3; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void) connect(fds[i], (struct sockaddr *) &address, sizeof address);
    }
    CHECK_INT(serve_unix(w, NULL), -EADDRINUSE);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    close(fd);
    world_free(w);
}

TEST(a_file_is_not_a_stale_socket) {
    char path[100];
    world *w = world_new(NULL, NULL);
    snprintf(path, sizeof path, "%s/s", w->folder);
    FILE *file = fopen(path, "w");
    fclose(file);
    CHECK_INT(serve_unix(w, NULL), -ENOTSOCK);
    CHECK_INT(access(path, F_OK), 0);
    world_free(w);
}

#define STARTERS 32

/* A child: wait for the start, try, report, and stay until the parent has heard everybody. */
static void try_to_listen(const char *path, int start, int report) {
    weft_unix_socket self = {0};
    char go;
    int fd;
    (void) !read(start, &go, 1); /* the end of the pipe is the signal for all at once */
    char result = (char) -weft__unix_listen(&self, path, NULL, &fd);
    (void) !write(report, &result, 1);
    pause();
}

/* Many start at once where a dead one has left its socket: one serves, the others learn that it does. */
TEST(one_of_many_wins) {
    world *w = world_new(NULL, NULL);
    char path[100], result;
    int start[2], report[2], won = 0, lost = 0;
    pid_t children[STARTERS];
    leave_stale(w);
    snprintf(path, sizeof path, "%s/s", w->folder);
    REQUIRE(pipe(start) == 0 && pipe(report) == 0);
    for (int i = 0; i < STARTERS; i++)
        if ((children[i] = fork()) == 0) {
            close(start[1]);
            try_to_listen(path, start[0], report[1]);
            _exit(0);
        }
    close(start[1]);
    for (int i = 0; i < STARTERS && read(report[0], &result, 1) == 1; i++) {
        won += result == 0;
        lost += result == EADDRINUSE;
    }
    CHECK_INT(won, 1);
    CHECK_INT(lost, STARTERS - 1);
    int fd = world_connect_unix(path);
    CHECK(fd >= 0);
    close(fd);
    for (int i = 0; i < STARTERS; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    close(start[0]);
    close(report[0]);
    close(report[1]);
    world_free(w);
}

static void count_stop(weft_server *server, void *ctx) {
    (void) server;
    ++*(int *) ctx;
}

TEST(stop_removes_only_its_own_socket) {
    char path[100];
    for (int replaced = 0; replaced < 2; replaced++) {
        int stopped = 0;
        world *w = world_new(NULL, NULL);
        test_row(replaced ? "replaced by another" : "its own");
        serve_unix(w, NULL);
        snprintf(path, sizeof path, "%s/s", w->folder);
        if (replaced) {
            CHECK_INT(unlink(path), 0);
            leave_stale(w);
        }
        weft_server_stop(w->server, count_stop, &stopped);
        WORLD_UNTIL(w, stopped == 1);
        CHECK_INT(access(path, F_OK), replaced ? 0 : -1);
        world_free(w);
    }
    test_row(NULL);
}

TEST(other_users_are_refused) {
    if (geteuid() != 0) {
        test_skip("needs root to become another user");
        return;
    }
    for (int any = 0; any < 2; any++) {
        world *w = world_new(NULL, NULL);
        test_row(any ? "any_uid" : "own uid only");
        serve_unix(w, &(weft_listen_opts){.any_uid = any});
        char path[100];
        snprintf(path, sizeof path, "%s/s", w->folder);
        CHECK_INT(chmod(path, 0666), 0);
        CHECK_INT(chmod(w->folder, 0755), 0);
        CHECK_INT(seteuid(65534), 0);
        int fd = world_connect_unix(path);
        CHECK_INT(seteuid(0), 0);
        world_say(w, fd, CALL(1, "who"));
        world_read_lines(w, fd, 1);
        if (any)
            HAS(w, "\"uid\":65534,\"authenticated\":false");
        else
            HAS(w, "\"code\":403");
        CHECK_INT(w->notes, !any);
        close(fd);
        world_free(w);
    }
    test_row(NULL);
}

TEST(connection_limits) {
    static const struct {
        const char *name;
        weft_server_opts opts;
        const char *code;
    } rows[] = {
        {"in all", {.max_connections = 2}, "\"code\":503"},
        {"per uid", {.max_connections_per_uid = 2}, "\"code\":429"},
    };
    for (size_t i = 0; i < 2; i++) {
        world *w = world_new(&rows[i].opts, NULL);
        int fds[3];
        test_row(rows[i].name);
        serve_unix(w, NULL);
        for (int k = 0; k < 2; k++) {
            fds[k] = connect_unix(w);
            world_say(w, fds[k], CALL(1, "echo"));
            world_read_lines(w, fds[k], 1);
            CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
        }
        fds[2] = connect_unix(w);
        CHECK_INT(world_read_all(w, fds[2]), 0);
        HAS(w, rows[i].code);
        HAS(w, "\"reason\":\"tooManyConnections\"");
        close(fds[0]); /* one goes, one may come */
        close(fds[2]);
        WORLD_UNTIL(w, w->closed == 1);
        world_wait(w, -1, 0);
        fds[2] = connect_unix(w);
        world_say(w, fds[2], CALL(2, "echo"));
        world_read_lines(w, fds[2], 1);
        CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}\n");
        close(fds[1]);
        close(fds[2]);
        world_free(w);
    }
    test_row(NULL);
}

/* The client says everything, ends its half, and still gets every answer, late ones too. */
TEST(half_closed_clients_get_their_answers) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, CALL(1, "keep") CALL(2, "echo"));
    shutdown(fd, SHUT_WR);
    world_read_lines(w, fd, 1);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}\n");
    for (int i = 0; i < 5; i++)
        world_wait(w, -1, 0);
    REQUIRE(w->kept);
    weft_reply(w->kept, weft_str("late"));
    w->kept = NULL;
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"late\"}\n");
    close(fd);
    world_free(w);
}

TEST(a_last_line_without_newline_counts) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"echo\"}");
    shutdown(fd, SHUT_WR);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null}\n");
    close(fd);
    world_free(w);
}

/* It asked and hung up altogether: its request is told, nothing is raised, nothing leaks. */
TEST(a_client_that_vanishes_is_noticed) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, CALL(1, "keep"));
    WORLD_UNTIL(w, w->kept != NULL);
    close(fd);
    WORLD_UNTIL(w, w->cancelled == -EPIPE);
    WORLD_UNTIL(w, w->closed == 1);
    world_free(w);
}

/* Answers to somebody who has gone must not end the process by SIGPIPE. */
TEST(epipe_is_harmless) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":[900000]}\n");
    close(fd);
    WORLD_UNTIL(w, w->closed == 1);
    world_free(w);
}

TEST(bytes_one_at_a_time) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    for (const char *at = CALL(1, "echo"); *at; at++) {
        world_send(w, fd, at, 1);
        world_wait(w, -1, 0);
    }
    world_read_lines(w, fd, 1);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
    close(fd);
    world_free(w);
}

TEST(garbage_is_answered_and_survived) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, "{\"jsonrpc\": \x01\xff nonsense\n" CALL(2, "echo"));
    world_read_lines(w, fd, 2);
    HAS(w, "\"code\":-32700");
    HAS(w, "\"id\":2,\"result\"");
    close(fd);
    world_free(w);
}

TEST(messages_over_the_limit_are_skipped) {
    weft_limits limits = {.max_body = 1000, .max_body_stranger = 1000};
    world *w = world_new(NULL, &limits);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    char big[1200];
    memset(big, ' ', sizeof big);
    big[0] = '{';
    big[1199] = '\n';
    world_send(w, fd, big, sizeof big);
    world_say(w, fd, CALL(2, "echo"));
    world_read_lines(w, fd, 2);
    HAS(w, "tooLarge");
    HAS(w, "\"id\":2,\"result\"");
    close(fd);
    world_free(w);
}

/* A client that asks for much and does not read: the server stops reading from it, memory stays bounded, and everything
 * comes once it reads again. */
TEST(slow_readers_are_waited_for) {
    weft_limits limits = {.out_soft = 64 * 1024};
    world *w = world_new(NULL, &limits);
    serve_unix(w, NULL);
    int fd = connect_unix(w), lines = 0, sent = 0;
    static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":[20000]}\n";
    for (; sent < 20000; sent++) {
        if (send(fd, ask, sizeof ask - 1, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof ask - 1)
            break;
        if (sent % 50 == 0)
            world_wait(w, -1, 0);
    }
    CHECK(sent > 10 && sent < 20000); /* it was stopped */
    while (lines < sent && world_wait(w, fd, POLLIN)) {
        ssize_t n = recv(fd, w->text, sizeof w->text, MSG_DONTWAIT);
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            lines += w->text[i] == '\n';
    }
    CHECK_INT(lines, sent);
    close(fd);
    world_free(w);
}

TEST(a_handler_may_end_its_connection) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, CALL(1, "bye") CALL(2, "echo"));
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"bye\"}\n");
    CHECK_INT(w->closed, 1);
    close(fd);
    world_free(w);
}

TEST(a_handler_may_end_the_server) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w), other = connect_unix(w);
    world_say(w, fd, CALL(1, "end"));
    world_read_all(w, fd);
    CHECK_INT(world_read_all(w, other), 0);
    CHECK(w->server == NULL);
    close(fd);
    close(other);
    world_free(w);
}

TEST(stop_lets_open_requests_finish) {
    int stopped = 0;
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int busy = connect_unix(w), idle = connect_unix(w);
    world_say(w, busy, CALL(1, "keep"));
    world_say(w, idle, CALL(1, "echo"));
    world_read_lines(w, idle, 1);
    WORLD_UNTIL(w, w->kept != NULL);
    weft_server_stop(w->server, count_stop, &stopped);
    CHECK_INT(world_read_all(w, idle), 0);
    CHECK_INT(connect_unix(w), -ENOENT);
    CHECK_INT(stopped, 0);
    weft_reply(w->kept, weft_str("done"));
    w->kept = NULL;
    CHECK_INT(world_read_all(w, busy), 0);
    CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"done\"}\n");
    close(busy);
    close(idle);
    WORLD_UNTIL(w, stopped == 1);
    world_free(w);
}

TEST(stop_does_not_wait_for_ever) {
    int stopped = 0;
    world *w = world_new(&(weft_server_opts){.grace_ms = 20}, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, CALL(1, "keep"));
    WORLD_UNTIL(w, w->kept != NULL);
    weft_server_stop(w->server, count_stop, &stopped);
    CHECK_INT(world_read_all(w, fd), 0);
    close(fd);
    WORLD_UNTIL(w, stopped == 1);
    CHECK_INT(w->cancelled, -EPIPE);
    world_free(w);
}

TEST(broadcast_reaches_those_chosen) {
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = connect_unix(w);
    WORLD_UNTIL(w, w->opened == 3);
    CHECK_INT(weft_server_broadcast(w->server, "news", weft_arr(NULL, 0), NULL, NULL), 3);
    for (int i = 0; i < 3; i++) {
        world_read_lines(w, fds[i], 1);
        CHECK_STR(w->text, "{\"jsonrpc\":\"2.0\",\"method\":\"news\",\"params\":[]}\n");
        close(fds[i]);
    }
    world_free(w);
}

TEST(methods_come_and_go) {
    static const weft_method extra = {.name = "extra", .handler = world_echo};
    world *w = world_new(NULL, NULL);
    serve_unix(w, NULL);
    int fd = connect_unix(w);
    world_say(w, fd, CALL(1, "extra"));
    world_read_lines(w, fd, 1);
    HAS(w, "-32601");
    CHECK_INT(weft_service_add(w->service, &extra), 0);
    world_say(w, fd, CALL(2, "extra"));
    world_read_lines(w, fd, 1);
    HAS(w, "\"id\":2,\"result\"");
    CHECK_INT(weft_service_remove(w->service, "extra"), 0);
    world_say(w, fd, CALL(3, "extra"));
    world_read_lines(w, fd, 1);
    HAS(w, "-32601");
    close(fd);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(answers_a_call)
    CASE(identity_is_the_user)
    CASE(content_length_is_answered_in_kind)
    CASE(mode_is_private_whatever_the_umask)
    CASE(long_paths)
    CASE(folder_must_exist)
    CASE(stale_socket_is_replaced)
    CASE(living_socket_is_left_alone)
    CASE(full_backlog_is_alive)
    CASE(a_file_is_not_a_stale_socket)
    CASE(one_of_many_wins)
    CASE(stop_removes_only_its_own_socket)
    CASE(other_users_are_refused)
    CASE(connection_limits)
    CASE(half_closed_clients_get_their_answers)
    CASE(a_last_line_without_newline_counts)
    CASE(a_client_that_vanishes_is_noticed)
    CASE(epipe_is_harmless)
    CASE(bytes_one_at_a_time)
    CASE(garbage_is_answered_and_survived)
    CASE(messages_over_the_limit_are_skipped)
    CASE(slow_readers_are_waited_for)
    CASE(a_handler_may_end_its_connection)
    CASE(a_handler_may_end_the_server)
    CASE(stop_lets_open_requests_finish)
    CASE(stop_does_not_wait_for_ever)
    CASE(broadcast_reaches_those_chosen)
    CASE(methods_come_and_go)
)
