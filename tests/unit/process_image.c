/* The guard that the program carries: that programs run below it as below any other, that nobody can change it, and that a
 * kernel which does not run it costs nothing but time. */
#include "guard_image.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "agents/kit.h"
#include "guard.h"
#include "guards.h"
#include "process.h"

typedef struct scene {
    weft_loop *loop;
    weft_process *process;
    int fds[3];
    const char *mark;
    pid_t pid;
    int ends;
    weft_process_end end;
} scene;

/* What posix_spawn() says when it is to run the image; 0: what the kernel says. And how often it was asked for which. */
static int image_error, images, others;

__attribute__((visibility("default"))) int posix_spawn(pid_t *pid, const char *path,
                                                       const posix_spawn_file_actions_t *actions,
                                                       const posix_spawnattr_t *attr, char *const argv[],
                                                       char *const env[]) {
    int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                char *const[]);
    void *found = dlsym(RTLD_NEXT, "posix_spawn");
    memcpy(&real, &found, sizeof real);
    bool image = strncmp(path, "/proc/self/fd/", 14) == 0;
    *(image ? &images : &others) += 1;
    return image && image_error ? image_error : real(pid, path, actions, attr, argv, env);
}

/* Where there is no image the guard is this program again, so this one is a guard too. */
__attribute__((constructor)) static void be_guard(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "__guard") == 0)
        _exit(weft__guard_main(argc - 1, argv + 1));
}

static void on_start(void *ctx, pid_t pid) {
    ((scene *) ctx)->pid = pid;
}

static void on_end(void *ctx, const weft_process_end *end) {
    scene *s = ctx;
    s->ends++;
    s->end = *end;
    CHECK_INT(kit_marked(s->mark), 0);
}

static bool has_image(void) {
    if (weft__guard_image(WEFT_GUARD_FDS) >= 0)
        return true;
    test_skip("this build carries no guard");
    return false;
}

static int try_start(scene *s, const char *const *argv) {
    *s = (scene){.fds = {-1, -1, -1}, .mark = kit_mark()};
    const char *env[] = {s->mark, NULL};
    weft_process_opts opts = {
        .argv = argv, .env = env, .folder = "/", .grace_ms = 20000, .ctx = s, .on_start = on_start, .on_end = on_end};
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    opts.loop = s->loop;
    images = others = 0;
    return weft__process_start(&opts, &s->process, s->fds);
}
#define START(s, ...) CHECK_INT(try_start((s), (const char *const[]){kit_naughty(), __VA_ARGS__, NULL}), 0)

static void close_scene(scene *s) {
    s->process = weft__process_free(s->process);
    for (int i = 0; i < 3; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    weft_loop_free(s->loop);
}

static void finish(scene *s) {
    KIT_UNTIL(s->loop, s->ends);
    close_scene(s);
    CHECK_INT(s->ends, 1);
    CHECK(kit_no_children());
}

/* ---- the file ---- */

TEST(nobody_can_change_it) {
    char path[64];
    if (!has_image())
        return;
    int fd = weft__guard_image(WEFT_GUARD_FDS);
    CHECK(fd >= WEFT_GUARD_FDS);
    CHECK_INT(weft__guard_image(WEFT_GUARD_FDS), fd);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC); /* as an agent would, by our number */
    CHECK_INT(write(again >= 0 ? again : fd, "x", 1), -1);
    CHECK_INT(ftruncate(again >= 0 ? again : fd, 0), -1);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again >= 0 ? again : fd, 0) == MAP_FAILED);
    CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    if (again >= 0)
        close(again);
}

/* ---- what runs below it ---- */

static pid_t parent_of(pid_t pid) {
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    const char *rest = n > 0 ? strrchr(text, ')') : NULL;
    return rest && sscanf(rest, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* The number of a process's descriptors, and whether one of them is the image. */
static int fds_of(pid_t pid, bool *ret_image) {
    char path[64], link[128];
    struct dirent *entry;
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int) pid);
    DIR *dir = opendir(path);
    *ret_image = false;
    while (dir && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        count += n > 0;
        *ret_image |= strstr(link, "weft-guard") != NULL;
    }
    if (dir)
        closedir(dir);
    return count;
}

TEST(it_holds_nothing) {
    scene s;
    bool image = false;
    if (!has_image())
        return;
    int careless[4] = {dup(2), dup(2), dup(2), dup(2)};
    REQUIRE(START(&s, "linger"));
    KIT_UNTIL(s.loop, s.pid);
    CHECK_INT(images, 1);
    CHECK_INT(others, 0);
    pid_t guard = parent_of(s.pid), keeper = parent_of(guard);
    CHECK(parent_of(keeper) == getpid());
    if (geteuid() == 0) { /* nobody else may look into a guard */
        KIT_UNTIL(s.loop, fds_of(guard, &image) == 5);
        CHECK(!image);
        KIT_UNTIL(s.loop, fds_of(keeper, &image) == 5);
        CHECK(!image);
    }
    KIT_UNTIL(s.loop, fds_of(s.pid, &image) == 3); /* while it is loaded, one is its library's */
    CHECK(!image);
    for (int i = 0; i < 4; i++)
        close(careless[i]);
    weft__process_stop(s.process, true);
    finish(&s);
    CHECK_INT(s.end.signal, SIGKILL);
}

/* F11, F12 and F17 once more: it is another program than the one that the other tests start. */
TEST(nothing_stays) {
    static const struct {
        const char *modes[6];
        int exit_code, signal;
    } rows[] = {
        {{"exit=7"}, 7, 0},
        {{"left", "family", "exit=3"}, 3, 0},
        {{"family", "left", "ignore", "killguard", "linger"}, -1, SIGKILL},
        {{"family", "left", "ignore", "killkeeper", "linger"}, -1, SIGKILL},
        {{"family", "left", "ignore", "killboth", "linger"}, -1, SIGKILL},
        {{"stopguard", "exit=4"}, 4, 0},
        {{"stopboth", "exit=4"}, 4, 0},
    };
    if (!has_image())
        return;
    CHECK(weft__guards_adopt("NAUGHTY_HUB=image-test") >= 0); /* a subreaper, as a daemon is */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        const char *argv[8] = {kit_naughty()};
        test_row(rows[i].modes[0]);
        memcpy(argv + 1, rows[i].modes, sizeof rows[i].modes);
        if (!CHECK_INT(try_start(&s, argv), 0))
            continue;
        finish(&s);
        CHECK_INT(images, 1);
        CHECK_INT(s.end.exit_code, rows[i].exit_code);
        CHECK_INT(s.end.signal, rows[i].signal);
    }
    test_row(NULL);
}

/* By this name the program below the guard is the guard's own, which must be ours. */
TEST(itself_runs_below_itself) {
    scene s;
    REQUIRE(CHECK_INT(try_start(&s, (const char *const[]){"/proc/self/exe", "__guard", NULL}), 0));
    CHECK_INT(images, 0);
    CHECK_INT(others, 1);
    finish(&s);
    CHECK_INT(s.end.exit_code, 1); /* a guard without an order */
}

/* ---- when it does not run ---- */

/* Something is short: that is an error like any other, and the image is tried again. */
TEST(it_is_not_given_up_for_a_shortage) {
    scene s;
    if (!has_image())
        return;
    image_error = EAGAIN;
    CHECK_INT(try_start(&s, (const char *const[]){kit_naughty(), "exit=0", NULL}), -EAGAIN);
    image_error = 0;
    CHECK_INT(others, 0);
    close_scene(&s);
    REQUIRE(START(&s, "exit=0"));
    CHECK_INT(images, 1);
    finish(&s);
}

TEST(a_kernel_may_refuse_it) {
    scene s;
    if (!has_image())
        return;
    int before = kit_open_fds();
    image_error = EACCES;
    for (int i = 0; i < 2; i++) {
        REQUIRE(START(&s, "family", "exit=5"));
        CHECK_INT(images, i == 0); /* asked for once */
        CHECK_INT(others, 1);
        finish(&s);
        CHECK_INT(s.end.exit_code, 5);
    }
    image_error = 0;
    CHECK_INT(weft__guard_image(WEFT_GUARD_FDS), -ENOENT);
    CHECK_INT(kit_open_fds(), before - 1);
}

TEST_MAIN(CASE(nobody_can_change_it) CASE(it_holds_nothing) CASE(itself_runs_below_itself)
              CASE(it_is_not_given_up_for_a_shortage) CASE(nothing_stays) CASE(a_kernel_may_refuse_it))
