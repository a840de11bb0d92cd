/* The one file that the demo agent edits: weft-demo.txt in the session's folder, or weft-demo-2.txt and so on when that name
 * is somebody else's. A file is its own if its first line says so; it never touches another, nor what a symbolic link points
 * to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"
#include "utf8.h"

#define MARKER "This file was written by Weft's demo agent. It may be deleted.\n"
/* Grown beyond this it is begun anew, so that a demo that runs for ever does not fill a disk. */
#define LARGEST (16 * 1024)
#define NAMES 9
/* Of a prompt, in the file. */
#define QUOTED 80

/* Read all of an open file of at most LARGEST bytes; owned. */
static int read_open(int fd, char **ret) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size > 2 * LARGEST)
        return -EEXIST;
    size_t size = (size_t) st.st_size;
    char *text = malloc(size + 1);
    if (!text)
        return -ENOMEM;
    ssize_t n = pread(fd, text, size, 0);
    if (n != (ssize_t) size || memchr(text, '\0', size)) { /* we never wrote a NUL, and a diff could not show it */
        free(text);
        return n != (ssize_t) size ? -EIO : -EEXIST;
    }
    text[size] = '\0';
    *ret = text;
    return 0;
}

/* 1 it is ours, and this is in it; 0 there is none; -EEXIST it is somebody else's. */
static int read_demo_file(const char *path, char **ret) {
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -EEXIST;
    char *text = NULL;
    int r = read_open(fd, &text);
    close(fd);
    if (r < 0)
        return r;
    if (strncmp(text, MARKER, strlen(MARKER)) != 0) {
        free(text);
        return -EEXIST;
    }
    *ret = text;
    return 1;
}

static int choose_path(weft_demo_edit *edit, const char *folder) {
    for (int i = 1; i <= NAMES; i++) {
        char number[16] = "";
        if (i > 1)
            snprintf(number, sizeof number, "-%d", i);
        int n = snprintf(edit->path, sizeof edit->path, "%s/weft-demo%s.txt", strcmp(folder, "/") ? folder : "", number);
        if (n < 0 || (size_t) n >= sizeof edit->path)
            return -ENAMETOOLONG;
        int r = read_demo_file(edit->path, &edit->before);
        if (r != -EEXIST)
            return r < 0 ? r : 0;
    }
    return -EEXIST;
}

/* The beginning of the prompt's first line, cut between two characters. */
static int first_line_len(const char *prompt) {
    return (int) weft__utf8_fit(prompt, strcspn(prompt, "\r\n"), QUOTED);
}

int weft__demo_edit_plan(weft_demo_edit *edit, const char *folder, const char *prompt) {
    int r = choose_path(edit, folder);
    if (r < 0)
        return r;
    const char *keep = edit->before && strlen(edit->before) < LARGEST ? edit->before : MARKER;
    if (asprintf(&edit->after, "%s- %.*s\n", keep, first_line_len(prompt), prompt) < 0) {
        edit->after = NULL;
        return -ENOMEM;
    }
    return 0;
}

static int write_text(int fd, const char *text) {
    for (size_t len = strlen(text); len > 0;) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t) n : 0;
    }
    return 0;
}

static int open_for_writing(const weft_demo_edit *edit) {
    if (!edit->before)
        return open(edit->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return open(edit->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* What a person allowed is the change that was shown, from that text to this. */
static int check_unchanged(int fd, const weft_demo_edit *edit) {
    char *now = NULL;
    if (!edit->before)
        return 0;
    int r = read_open(fd, &now);
    if (r == 0 && strcmp(now, edit->before) != 0)
        r = -ESTALE;
    free(now);
    if (r == 0 && ftruncate(fd, 0) < 0)
        r = -errno;
    return r;
}

int weft__demo_edit_do(const weft_demo_edit *edit) {
    int fd = open_for_writing(edit);
    if (fd < 0)
        return errno == EEXIST || errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
    int r = check_unchanged(fd, edit);
    if (r == 0)
        r = write_text(fd, edit->after);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

void weft__demo_edit_done(weft_demo_edit *edit) {
    free(edit->before);
    free(edit->after);
    edit->before = edit->after = NULL;
}
