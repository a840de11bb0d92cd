/* Opening a file of the daemon's folder: what is a regular file of ours, and nothing else. */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

static char folder[] = "/tmp/weft-private-XXXXXX";

static void put_file(const char *path, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    REQUIRE(fd >= 0 && write(fd, "text", 4) == 4 && fchmod(fd, mode) == 0);
    close(fd);
}

static mode_t mode_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? info.st_mode & 0777 : 0;
}

static void enter(void) {
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0 && mkdir("home", 0700) == 0 && mkdir("other", 0700) == 0);
    put_file("other/victim", 0644);
}

static void leave(void) {
    REQUIRE(chdir("/") == 0);
    static const char *const names[] = {"home/file", "home", "other/victim", "other/made", "other", "link", NULL};
    for (const char *const *name = names; *name; name++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, *name);
        if (unlink(path) < 0)
            rmdir(path);
    }
    CHECK_INT(rmdir(folder), 0);
}

/* What open gives for reading and for writing, and that the victim stays as it is. */
static void both_give(const char *path, int r) {
    CHECK_INT(weft__private_open(path, O_RDONLY), r);
    CHECK_INT(weft__private_open(path, O_RDWR | O_CREAT), r);
    CHECK_INT(weft__private_open(path, O_WRONLY | O_CREAT | O_APPEND), r);
    CHECK_INT(mode_of("other/victim"), 0644);
    CHECK(access("other/made", F_OK) < 0);
}

TEST(what_is_not_ours_is_not_opened) {
    enter();
    test_row("a link");
    REQUIRE(symlink("../other/victim", "home/file") == 0);
    both_give("home/file", -ELOOP);
    unlink("home/file");
    test_row("a link to nothing");
    REQUIRE(symlink("../other/made", "home/file") == 0);
    both_give("home/file", -ELOOP);
    unlink("home/file");
    test_row("a hard link");
    REQUIRE(link("other/victim", "home/file") == 0);
    both_give("home/file", -EMLINK);
    unlink("home/file");
    test_row("a pipe");
    REQUIRE(mkfifo("home/file", 0600) == 0);
    both_give("home/file", -EISDIR);
    unlink("home/file");
    test_row("a folder");
    REQUIRE(mkdir("home/file", 0700) == 0);
    both_give("home/file", -EISDIR);
    rmdir("home/file");
    test_row("the folder is a link");
    REQUIRE(symlink("other", "link") == 0);
    both_give("link/victim", -ELOOP);
    test_row("so is that of a whole path");
    char path[256];
    snprintf(path, sizeof path, "%s/link/victim", folder);
    both_give(path, -ELOOP);
    leave();
}

TEST(another_users_file) {
    if (geteuid() != 0) {
        test_skip("only root can give a file away");
        return;
    }
    enter();
    put_file("home/file", 0666);
    REQUIRE(chown("home/file", 12345, (gid_t) -1) == 0);
    both_give("home/file", -EPERM);
    CHECK_INT(mode_of("home/file"), 0666);
    leave();
}

TEST(what_is_ours_is_private) {
    char room[8], path[256], *text = room;
    enter();
    put_file("home/file", 0644);
    CHECK_INT(weft__private_read("home/file", text, sizeof room), 4);
    CHECK_STR(text, "text");
    CHECK_INT(mode_of("home/file"), 0644); /* reading changes nothing */
    CHECK_INT(weft__private_read("home/file", text, 4), -EFBIG);
    int fd = weft__private_open("home/file", O_RDWR);
    CHECK(fd >= 0);
    close(fd);
    CHECK_INT(mode_of("home/file"), 0600);
    snprintf(path, sizeof path, "%s/home/file", folder);
    CHECK_INT(weft__private_read(path, text, sizeof room), 4);
    unlink("home/file");
    CHECK_INT(weft__private_open("home/file", O_RDONLY), -ENOENT);
    mode_t before = umask(0);
    fd = weft__private_open("home/file", O_RDWR | O_CREAT);
    umask(before);
    CHECK(fd >= 0);
    close(fd);
    CHECK_INT(mode_of("home/file"), 0600);
    leave();
}

TEST_MAIN(CASE(what_is_not_ours_is_not_opened) CASE(another_users_file) CASE(what_is_ours_is_private))
