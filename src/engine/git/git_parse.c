/* Parsers over git's output; see git_parse.h. They do no I/O. */
#include "git_parse.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

typedef struct cursor {
    char *at, *end;
    bool cut;
} cursor;

static cursor cursor_at(weft_git_text text) {
    /* C does not define NULL + 0. */
    return (cursor){text.data, text.data ? text.data + text.len : NULL, text.cut};
}

/* The next text that ends with NUL. 1 there is one, 0 that was all. */
static int next_text(cursor *c, char **ret) {
    if (c->at == c->end)
        return 0;
    char *stop = memchr(c->at, '\0', (size_t) (c->end - c->at));
    if (!stop)
        return c->cut ? 0 : -EBADMSG;
    *ret = c->at;
    c->at = stop + 1;
    return 1;
}

/* A record of so many of them. Of one that was begun and is not whole, nothing is given. */
static int next_texts(cursor *c, char **ret, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int r = next_text(c, &ret[i]);
        if (r <= 0)
            return r < 0 || i == 0 || c->cut ? r : -EBADMSG;
    }
    return 1;
}

/* Room for one more in a list of *cap. */
static int grow_parsed(void **list, size_t count, size_t *cap, size_t size, const weft_alloc *alloc) {
    if (count < *cap)
        return 0;
    size_t more = *cap ? *cap * 2 : 32;
    void *grown = weft__resize(alloc, *list, more * size);
    if (!grown)
        return -ENOMEM;
    *list = grown;
    *cap = more;
    return 0;
}

static bool is_hash(const char *text) {
    size_t len = strspn(text, "0123456789abcdef");
    return !text[len] && (len == 40 || len == 64);
}

/* Times in commits are whatever somebody wrote there. */
static int64_t number_or_0(const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno || end == text || *end ? 0 : value;
}

/* ---- status ---- */

typedef struct status_parser {
    cursor cursor;
    const char *prefix;
    size_t max, cap;
    const weft_alloc *alloc;
    weft_git_status status;
} status_parser;

static bool take_word(const char *line, const char *word, const char **ret) {
    size_t len = strlen(word);
    if (strncmp(line, word, len) != 0)
        return false;
    *ret = line + len;
    return true;
}

static bool take_count(const char **at, char sign, uint64_t *ret) {
    char *end;
    if (**at != sign || !isdigit((unsigned char) (*at)[1]))
        return false;
    *ret = strtoull(*at + 1, &end, 10);
    *at = end;
    return true;
}

/* Lines that we do not know are of newer versions. */
static void take_header(weft_git_status *status, const char *line) {
    const char *value;
    uint64_t ahead, behind;
    if (take_word(line, "# branch.oid ", &value))
        status->head = is_hash(value) ? value : NULL;
    else if (take_word(line, "# branch.head ", &value))
        status->branch = strcmp(value, "(detached)") == 0 ? NULL : value;
    else if (take_word(line, "# branch.upstream ", &value))
        status->upstream = value;
    else if (take_word(line, "# branch.ab ", &value) && take_count(&value, '+', &ahead) && *value++ == ' ' &&
             take_count(&value, '-', &behind) && !*value) {
        status->ahead = ahead;
        status->behind = behind;
        status->compared = true;
    }
}

/* What follows so many fields and the blank behind each. NULL: there are fewer. */
static char *skip_fields(char *line, int count) {
    for (; count > 0; count--) {
        char *blank = strchr(line, ' ');
        if (!blank || blank == line)
            return NULL;
        line = blank + 1;
    }
    return *line ? line : NULL;
}

/* NULL: it is outside of the folder. The folder itself, if git knows nothing of it, is "./". */
static const char *below_prefix(const char *path, const char *prefix) {
    size_t len = strlen(prefix);
    if (strncmp(path, prefix, len) != 0)
        return NULL;
    return path[len] ? path + len : "./";
}

static void count_file(weft_git_status *status, const weft_git_file *file) {
    if (file->index == '?')
        status->untracked++;
    else if (file->conflicted)
        status->conflicted++;
    else {
        status->staged += file->index != '.';
        status->unstaged += file->worktree != '.';
    }
}

static int add_file(status_parser *p, const char *path, const char *orig_path, weft_git_file file) {
    file.path = below_prefix(path, p->prefix);
    file.orig_path = orig_path ? below_prefix(orig_path, p->prefix) : NULL;
    if (!file.path)
        return 0;
    if (p->status.count == p->max) {
        p->status.truncated = true;
        return 0;
    }
    int r = grow_parsed((void **) &p->status.files, p->status.count, &p->cap, sizeof file, p->alloc);
    if (r < 0)
        return r;
    p->status.files[p->status.count++] = file;
    count_file(&p->status, &file);
    return 0;
}

/* "1 XY SUB ...": the letters and whether it is a submodule. */
static bool take_letters(const char *line, weft_git_file *ret) {
    if (line[1] != ' ' || !isgraph((unsigned char) line[2]) || !isgraph((unsigned char) line[3]) || line[4] != ' ' ||
        (line[5] != 'N' && line[5] != 'S'))
        return false;
    ret->index = line[2];
    ret->worktree = line[3];
    ret->submodule = line[5] == 'S';
    ret->conflicted = *line == 'u';
    return true;
}

/* 1 go on, 0 the rest is not whole. */
static int take_changed(status_parser *p, char *line) {
    weft_git_file file = {0};
    char *orig_path = NULL;
    bool letters = take_letters(line, &file);
    char *path = letters ? skip_fields(line, *line == '1' ? 8 : *line == '2' ? 9 : 10) : NULL;
    if (!path)
        return -EBADMSG;
    if (*line == '2') {
        int r = next_text(&p->cursor, &orig_path);
        if (r <= 0)
            return r < 0 || p->cursor.cut ? r : -EBADMSG;
    }
    int r = add_file(p, path, orig_path, file);
    return r < 0 ? r : 1;
}

static int take_line(status_parser *p, char *line) {
    int r;
    switch (*line) {
    case '#':
        take_header(&p->status, line);
        return 1;
    case '1':
    case '2':
    case 'u':
        return take_changed(p, line);
    case '?':
        if (line[1] != ' ' || !line[2])
            return -EBADMSG;
        r = add_file(p, line + 2, NULL, (weft_git_file){.index = '?', .worktree = '?'});
        return r < 0 ? r : 1;
    case '!':
        return 1;
    default:
        return -EBADMSG;
    }
}

int weft__git_parse_status(weft_git_text text, const char *prefix, size_t max, const weft_alloc *alloc,
                           weft_git_status *ret) {
    status_parser p = {.cursor = cursor_at(text), .prefix = prefix, .max = max, .alloc = alloc};
    char *line = NULL;
    int r;
    p.status.truncated = text.cut;
    while ((r = next_text(&p.cursor, &line)) > 0 && (r = take_line(&p, line)) > 0)
        continue;
    if (r < 0) {
        weft__free(alloc, p.status.files);
        return r;
    }
    p.status.is_clean = p.status.count == 0 && !p.status.truncated;
    *ret = p.status;
    return 0;
}

/* ---- log ---- */

static int add_commit(weft_git_log *log, char **field, size_t *cap, const weft_alloc *alloc) {
    if (!is_hash(field[0]))
        return -EBADMSG;
    int r = grow_parsed((void **) &log->commits, log->count, cap, sizeof *log->commits, alloc);
    if (r < 0)
        return r;
    size_t len = strlen(field[8]);
    while (len && field[8][len - 1] == '\n')
        field[8][--len] = '\0';
    log->commits[log->count++] = (weft_git_commit){
        .hash = field[0],
        .parents = field[1],
        .author = field[2],
        .email = field[3],
        .author_time = number_or_0(field[4]),
        .commit_time = number_or_0(field[5]),
        .refs = field[6],
        .subject = field[7],
        .body = field[8],
    };
    return 0;
}

int weft__git_parse_log(weft_git_text text, size_t max, const weft_alloc *alloc, weft_git_log *ret) {
    cursor c = cursor_at(text);
    weft_git_log log = {.truncated = text.cut};
    char *field[9];
    size_t cap = 0;
    int r;
    while ((r = next_texts(&c, field, 9)) > 0) {
        log.truncated |= log.count == max;
        if (log.count == max)
            break;
        r = add_commit(&log, field, &cap, alloc);
        if (r < 0)
            break;
    }
    if (r < 0)
        weft__free(alloc, log.commits);
    else
        *ret = log;
    return r < 0 ? r : 0;
}

/* ---- branches ---- */

static int add_branch(weft_git_branches *list, char **field, size_t *cap, const weft_alloc *alloc) {
    if (*field[5]) /* refs/remotes/origin/HEAD and the like are other names of others */
        return 0;
    int r = grow_parsed((void **) &list->branches, list->count, cap, sizeof *list->branches, alloc);
    if (r < 0)
        return r;
    list->branches[list->count++] = (weft_git_branch){
        .name = field[1],
        .hash = field[2],
        .upstream = field[3],
        .commit_time = number_or_0(field[4]),
        .subject = field[6],
        .current = *field[0] == '*',
        .remote = strncmp(field[1], "refs/remotes/", 13) == 0,
    };
    return 0;
}

/* A newline ends each record, behind the last NUL. */
static int next_branch(cursor *c, char **field) {
    int r = next_texts(c, field, 7);
    if (r <= 0)
        return r;
    if (c->at == c->end)
        return c->cut ? 0 : -EBADMSG;
    bool good = *c->at++ == '\n' && strncmp(field[1], "refs/", 5) == 0 && is_hash(field[2]) && *field[0] && !field[0][1];
    return good ? 1 : -EBADMSG;
}

int weft__git_parse_branches(weft_git_text text, size_t max, const weft_alloc *alloc, weft_git_branches *ret) {
    cursor c = cursor_at(text);
    weft_git_branches list = {.truncated = text.cut};
    char *field[7];
    size_t cap = 0;
    int r;
    while ((r = next_branch(&c, field)) > 0) {
        list.truncated |= list.count == max;
        if (list.count == max)
            break;
        r = add_branch(&list, field, &cap, alloc);
        if (r < 0)
            break;
    }
    if (r < 0)
        weft__free(alloc, list.branches);
    else
        *ret = list;
    return r < 0 ? r : 0;
}

/* ---- diff ---- */

/* Lines of a hunk are counted, so that a line of a file that looks like a header is none. */
typedef struct diff_scanner {
    uint64_t old_left, new_left; /* of the hunk */
    bool combined;               /* of a conflict: "@@@", whose lines are not counted */
} diff_scanner;

static bool line_begins(weft_bytes line, const char *word) {
    size_t len = strlen(word);
    return line.len >= len && memcmp(line.data, word, len) == 0;
}

/* "12,3" or "12", which means one line. */
static uint64_t range_lines(const char **at, const char *end) {
    uint64_t lines = 0;
    while (*at < end && isdigit((unsigned char) **at))
        ++*at;
    if (*at == end || **at != ',')
        return 1;
    for (++*at; *at < end && isdigit((unsigned char) **at) && lines < UINT32_MAX; ++*at)
        lines = lines * 10 + (uint64_t) (**at - '0');
    return lines;
}

static void begin_hunk(diff_scanner *s, weft_bytes line) {
    const char *at = line.data + 4, *end = line.data + line.len;
    s->old_left = range_lines(&at, end);
    while (at < end && *at != '+')
        at++;
    at += at < end;
    s->new_left = range_lines(&at, end);
}

static void scan_hunk_line(diff_scanner *s, weft_bytes line, weft_git_diff *ret) {
    char first = line.len ? *line.data : ' ';
    bool added = first == '+', deleted = first == '-';
    if (first == '\\')
        return;
    ret->additions += added;
    ret->deletions += deleted;
    s->new_left -= !deleted && s->new_left;
    s->old_left -= !added && s->old_left;
}

static void scan_header_line(diff_scanner *s, weft_bytes line, weft_git_diff *ret) {
    if (line_begins(line, "diff --")) {
        ret->files++;
        s->combined = false;
    } else if (s->combined)
        return;
    else if (line_begins(line, "@@@"))
        s->combined = true;
    else if (line_begins(line, "@@ -"))
        begin_hunk(s, line);
    else if (line_begins(line, "new file mode "))
        ret->is_new = true;
    else if (line_begins(line, "Binary files ") || line_begins(line, "GIT binary patch"))
        ret->is_binary = true;
}

void weft__git_scan_diff(weft_bytes text, weft_git_diff *ret) {
    diff_scanner s = {0};
    for (size_t at = 0; at < text.len;) {
        const char *stop = memchr(text.data + at, '\n', text.len - at);
        weft_bytes line = {text.data + at, stop ? (size_t) (stop - text.data) - at : text.len - at};
        if (s.old_left || s.new_left)
            scan_hunk_line(&s, line, ret);
        else
            scan_header_line(&s, line, ret);
        at += line.len + 1;
    }
    ret->is_new &= ret->files == 1;
}

/* ---- settings ---- */

static int add_filter(weft_git_settings *settings, const char *name, size_t *cap, size_t max, const weft_alloc *alloc) {
    for (size_t i = 0; i < settings->filter_count; i++)
        if (strcmp(settings->filters[i], name) == 0)
            return 0;
    if (settings->filter_count == max)
        return -E2BIG;
    int r = grow_parsed((void **) &settings->filters, settings->filter_count, cap, sizeof *settings->filters, alloc);
    if (r == 0)
        settings->filters[settings->filter_count++] = name;
    return r;
}

int weft__git_parse_settings(weft_git_text text, size_t max, const weft_alloc *alloc, weft_git_settings *ret) {
    cursor c = cursor_at(text);
    weft_git_settings settings = {0};
    char *name = NULL;
    size_t cap = 0;
    int r;
    while ((r = next_text(&c, &name)) > 0) {
        char *last = strrchr(name, '.');
        settings.worktree |= strcmp(name, "core.worktree") == 0;
        if (strncmp(name, "filter.", 7) != 0 || last < name + 7)
            continue;
        *last = '\0';
        r = add_filter(&settings, name + 7, &cap, max, alloc);
        if (r < 0)
            break;
    }
    if (r < 0)
        weft__free(alloc, settings.filters);
    else
        *ret = settings;
    return r < 0 ? r : 0;
}

/* ---- arguments ---- */

/* The rules of git check-ref-format, and never an option or an expression. */
bool weft__git_is_ref(const char *name) {
    size_t len = strlen(name);
    if (!len || len > 1024 || *name == '-' || *name == '/' || name[len - 1] == '/' || name[len - 1] == '.' ||
        strcmp(name, "@") == 0 || strstr(name, "..") || strstr(name, "@{") || strstr(name, "//") || strstr(name, "/."))
        return false;
    if (*name == '.' || (len >= 5 && strcmp(name + len - 5, ".lock") == 0))
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) name[i] <= ' ' || name[i] == 0x7f || strchr("~^:?*[\\", name[i]))
            return false;
    return true;
}

bool weft__git_is_path(const char *path) {
    size_t len = strlen(path);
    if (!len || len >= PATH_MAX || *path == '/')
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (at[0] == '.' && at[1] == '.' && (!at[2] || at[2] == '/'))
            return false;
    }
    return true;
}
