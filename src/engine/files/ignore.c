/* Lists of patterns. Most lines of a .gitignore are plain names, so that those are compared and not matched. */
#include "ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "glob.h"

typedef struct pattern {
    char *text;
    bool negated;
    bool folders; /* only */
    bool name;    /* for the name, in any folder beneath */
    bool plain;   /* nothing in it stands for anything else */
} pattern;

struct weft_ignore {
    const weft_alloc *alloc;
    pattern *patterns;
    size_t count, room;
};

int weft__ignore_new(const weft_alloc *alloc, weft_ignore **ret) {
    weft_ignore *ignore = weft__zalloc(alloc, sizeof *ignore);
    if (!ignore)
        return -ENOMEM;
    ignore->alloc = alloc;
    *ret = ignore;
    return 0;
}

weft_ignore *weft__ignore_free(weft_ignore *ignore) {
    if (!ignore)
        return NULL;
    for (size_t i = 0; i < ignore->count; i++)
        weft__free(ignore->alloc, ignore->patterns[i].text);
    weft__free(ignore->alloc, ignore->patterns);
    return weft__free(ignore->alloc, ignore);
}

static int make_room(weft_ignore *ignore) {
    if (ignore->count < ignore->room)
        return 0;
    size_t room = ignore->room ? ignore->room * 2 : 16;
    pattern *patterns = weft__resize(ignore->alloc, ignore->patterns, room * sizeof *patterns);
    if (!patterns)
        return -ENOMEM;
    ignore->patterns = patterns;
    ignore->room = room;
    return 0;
}

/* Blanks at the end do not count, unless a backslash says so. */
static size_t without_blanks(weft_bytes line) {
    size_t len = line.len;
    while (len && (line.data[len - 1] == '\r' || line.data[len - 1] == '\n'))
        len--;
    while (len && (line.data[len - 1] == ' ' || line.data[len - 1] == '\t') && !(len > 1 && line.data[len - 2] == '\\'))
        len--;
    return len;
}

int weft__ignore_add(weft_ignore *ignore, weft_bytes line) {
    size_t len = without_blanks(line);
    pattern p = {0};
    if (!len || line.data[0] == '#' || ignore->count == WEFT_IGNORE_PATTERNS)
        return 0;
    const char *text = line.data;
    if (*text == '!') {
        p.negated = true;
        text++, len--;
    }
    if (len && text[len - 1] == '/') {
        p.folders = true;
        len--;
    }
    p.name = !memchr(text, '/', len);
    if (len && *text == '/')
        text++, len--;
    if (!len)
        return 0;
    int r = make_room(ignore);
    if (r < 0)
        return r;
    p.text = weft__strndup(ignore->alloc, text, len);
    if (!p.text)
        return -ENOMEM;
    p.plain = !p.text[strcspn(p.text, "*?[\\")];
    ignore->patterns[ignore->count++] = p;
    return 0;
}

int weft__ignore_add_text(weft_ignore *ignore, weft_bytes text) {
    const char *at = text.data, *end = at + text.len;
    if (text.len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t) (end - at));
        size_t len = line_end ? (size_t) (line_end - at) : (size_t) (end - at);
        int r = weft__ignore_add(ignore, (weft_bytes){at, len});
        if (r < 0)
            return r;
        at += len + 1;
    }
    return 0;
}

static bool ignore_pattern_matches(const pattern *p, const char *path, const char *name, bool folder) {
    if (p->folders && !folder)
        return false;
    const char *subject = p->name ? name : path;
    return p->plain ? strcmp(p->text, subject) == 0 : weft__glob_path(p->text, subject);
}

weft_ignore *weft__ignore_read(int folder, const weft_alloc *alloc) {
    weft_ignore *ignore = NULL;
    int fd = openat(folder, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct stat st;
    char *text = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? weft__alloc(alloc, WEFT_IGNORE_FILE) : NULL;
    ssize_t n = text ? read(fd, text, WEFT_IGNORE_FILE) : -1;
    close(fd);
    if (n > 0 && weft__ignore_new(alloc, &ignore) == 0 && weft__ignore_add_text(ignore, (weft_bytes){text, (size_t) n}) < 0)
        ignore = weft__ignore_free(ignore);
    weft__free(alloc, text);
    return ignore;
}

weft_ignored weft__ignore_says(const weft_ignore *ignore, const char *path, bool folder) {
    const char *slash = strrchr(path, '/');
    for (size_t i = ignore ? ignore->count : 0; i-- > 0;)
        if (ignore_pattern_matches(&ignore->patterns[i], path, slash ? slash + 1 : path, folder))
            return ignore->patterns[i].negated ? WEFT_IGNORE_NO : WEFT_IGNORE_YES;
    return WEFT_IGNORE_NO_WORD;
}
