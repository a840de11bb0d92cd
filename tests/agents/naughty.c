/* An agent that does not behave. Tests start it under a guard and see that nothing of it stays.
 *
 *     agent_naughty MODE...     modes are done in turn; what a mode prints says that it has been done */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(9);
}

static _Noreturn void linger(void) {
    for (;;)
        pause();
}

static void ignore_term(void) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

/* A child that stays, after doing something to be hard to find. */
static void child(void (*hide)(void)) {
    int ready[2];
    char byte;
    if (pipe(ready) < 0)
        _exit(9);
    if (fork() == 0) {
        close(ready[0]);
        if (hide)
            hide();
        (void) !write(ready[1], "r", 1);
        close(ready[1]);
        linger();
    }
    close(ready[1]);
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
        ;
    close(ready[0]);
}

static void new_session(void) {
    setsid();
}

/* As daemons do: the parent of what stays has gone, it leads no session, and holds none of our descriptors. */
static void daemonise(void) {
    setsid();
    if (fork() != 0)
        _exit(0);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    if (chdir("/") < 0)
        _exit(9);
}

static void grandchild(void) {
    child(new_session);
    child(NULL);
}

static void stop_self(void) {
    raise(SIGSTOP);
}

static void family(void) {
    signal(SIGCHLD, SIG_IGN); /* no zombie says whose child a lost one was */
    child(NULL);
    child(grandchild);
    child(new_session);
    child(daemonise);
    say("family\n");
}

/* Every process of it forks as long as there are fewer than so many, and again when one of them dies. */
static void bomb(int most) {
    int *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED)
        _exit(9);
    ignore_term();
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        if (__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) > most * 5) {
            say("bomb\n");
            linger();
        }
        pid_t pid = fork();
        if (pid == 0 && *count % 7 == 0)
            setsid();
        if (pid < 0 || *count > most)
            sched_yield();
    }
}

/* Never the same process for long, and each in a session of its own: who looks for it finds where it was. */
static void hop(void) {
    if (fork() != 0) {
        say("hop\n");
        linger();
    }
    for (;;) {
        if (fork() != 0)
            _exit(0);
        setsid();
    }
}

static void flood(long long bytes) {
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    while (bytes > 0) {
        ssize_t n = write(STDOUT_FILENO, block, bytes < (long long) sizeof block ? (size_t) bytes : sizeof block);
        if (n < 0 && errno != EINTR)
            _exit(9);
        bytes -= n > 0 ? n : 0;
    }
}

/* What it was given: umask, the limit of descriptors, whether it leads its group, how many descriptors, blocked and ignored
 * signals. */
static void inherit(void) {
    struct rlimit files;
    sigset_t blocked;
    char text[256], path[64];
    int open_fds = 0, held = 0;
    mode_t mask = umask(0);
    getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        open_fds += access(path, F_OK) == 0;
    }
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        held += sigismember(&blocked, i) == 1;
        if (i != SIGKILL && i != SIGSTOP && sigaction(i, NULL, &action) == 0)
            held += action.sa_handler == SIG_IGN;
    }
    char folder[128];
    snprintf(text, sizeof text, "umask %03o files %llu leader %d fds %d signals %d folder %s env %s\n", mask,
             (unsigned long long) files.rlim_cur, getpgrp() == getpid(), open_fds, held, getcwd(folder, sizeof folder),
             getenv("NAUGHTY") ? getenv("NAUGHTY") : "-");
    say(text);
}

static void echo_stdin(void) {
    char block[1 << 16];
    ssize_t n;
    while ((n = read(STDIN_FILENO, block, sizeof block)) > 0)
        if (write(STDOUT_FILENO, block, (size_t) n) != n)
            _exit(9);
}

static pid_t parent_of(pid_t pid) {
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        _exit(9);
    close(fd);
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest, ") %*c %d", &parent) != 1)
        _exit(9);
    return parent;
}

/* A guard is two processes: our parent, and the keeper above it. */
static void kill_both(void) {
    pid_t guard = getppid(), keeper = parent_of(guard);
    kill(keeper, SIGKILL);
    kill(guard, SIGKILL);
}

static void stop_both(void) {
    pid_t guard = getppid(), keeper = parent_of(guard);
    kill(keeper, SIGSTOP);
    kill(guard, SIGSTOP);
}

static void leave_behind(void) {
    child(ignore_term);
    say("left\n");
}

static void do_mode(const char *mode, const char *value) {
    if (strcmp(mode, "ignore") == 0)
        ignore_term(), say("ignore\n");
    else if (strcmp(mode, "family") == 0)
        family();
    else if (strcmp(mode, "left") == 0)
        leave_behind();
    else if (strcmp(mode, "stopped") == 0)
        (void) (fork() == 0 && (stop_self(), linger(), 0)), say("stopped\n");
    else if (strcmp(mode, "stop") == 0)
        say("stop\n"), raise(SIGSTOP);
    else if (strcmp(mode, "bomb") == 0)
        bomb(atoi(value));
    else if (strcmp(mode, "hop") == 0)
        hop();
    else if (strcmp(mode, "joinguard") == 0)
        (void) setpgid(0, getppid()), say(getpgrp() == getppid() ? "joined\n" : "alone\n");
    else if (strcmp(mode, "flood") == 0)
        flood(atoll(value));
    else if (strcmp(mode, "inherit") == 0)
        inherit();
    else if (strcmp(mode, "stdin") == 0)
        echo_stdin();
    else if (strcmp(mode, "say") == 0)
        say(value);
    else if (strcmp(mode, "warn") == 0)
        (void) !write(STDERR_FILENO, value, strlen(value));
    else if (strcmp(mode, "silent") == 0)
        close(STDOUT_FILENO), close(STDERR_FILENO);
    else if (strcmp(mode, "mute") == 0)
        close(STDOUT_FILENO);
    else if (strcmp(mode, "bytes") == 0)
        (void) !write(STDOUT_FILENO, "a\0b\xff\xc3(\xe2\x82\xac\xed\xa0\x80\n\xf0\x9f", 15);
    else if (strcmp(mode, "crash") == 0)
        signal(SIGSEGV, SIG_DFL), raise(SIGSEGV); /* a sanitizer has a handler for it */
    else if (strcmp(mode, "killguard") == 0)
        kill(getppid(), SIGKILL);
    else if (strcmp(mode, "killkeeper") == 0)
        kill(parent_of(getppid()), SIGKILL);
    else if (strcmp(mode, "killboth") == 0)
        kill_both();
    else if (strcmp(mode, "stopboth") == 0)
        stop_both(), say("stopboth\n");
    else if (strcmp(mode, "stopguard") == 0)
        kill(getppid(), SIGSTOP), say("stopguard\n");
    else if (strcmp(mode, "linger") == 0)
        linger();
    else if (strcmp(mode, "exit") == 0)
        _exit(atoi(value));
}

/* MODE or MODE=VALUE. */
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value)
            *value++ = '\0';
        do_mode(argv[i], value ? value : "");
    }
    return 0;
}
