/* Finding the names of secrets in a text, and putting in what they name. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "buf.h"
#include "write.h"

#define ENV "${env:"
#define FILE_NAME "${file:"
#define MAX_NAME 1024

static int WEFT_PRINTF(2, 3) explain_secret(char *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, WEFT_SECRET_WHY, format, args);
    va_end(args);
    return -ENOKEY;
}

/* ---- names ---- */

static size_t prefix_at(const char *at) {
    if (strncmp(at, ENV, sizeof ENV - 1) == 0)
        return sizeof ENV - 1;
    return strncmp(at, FILE_NAME, sizeof FILE_NAME - 1) == 0 ? sizeof FILE_NAME - 1 : 0;
}

bool weft__secret_at(const char *text, size_t *ret_len) {
    size_t prefix = prefix_at(text), name = prefix ? strcspn(text + prefix, "}") : 0;
    *ret_len = prefix + name + 1;
    return prefix && text[prefix + name] == '}';
}

const char *weft__secret_find(const char *text, size_t *ret_len) {
    for (const char *at = text; (at = strchr(at, '$')); at++)
        if (weft__secret_at(at, ret_len))
            return at;
    return NULL;
}

static bool is_variable(const char *name, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!((name[i] >= 'A' && name[i] <= 'Z') || (name[i] >= 'a' && name[i] <= 'z') || name[i] == '_' ||
              (i > 0 && name[i] >= '0' && name[i] <= '9')))
            return false;
    return len > 0;
}

/* From the root or from the home. Quotes and the like would be other characters in a JSON text. */
static bool is_secret_path(const char *name, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) name[i] <= ' ' || name[i] == 0x7f || strchr("\"\\$", name[i]))
            return false;
    return (len > 1 && *name == '/') || (len > 2 && strncmp(name, "~/", 2) == 0);
}

static int check_name(const char *at, char *why) {
    size_t prefix = prefix_at(at), len = strcspn(at + prefix, "}");
    bool env = prefix == sizeof ENV - 1, closed = at[prefix + len] == '}';
    int shown = len < 60 ? (int) len : 60;
    if (!closed || len >= MAX_NAME)
        explain_secret(why, "\"%.*s\" is not closed: it needs a \"}\"", (int) prefix + shown, at);
    else if (env && !is_variable(at + prefix, len))
        explain_secret(why, "\"%.*s\" is not the name of a variable", shown, at + prefix);
    else if (!env && !is_secret_path(at + prefix, len))
        explain_secret(why, "\"%.*s\" is not a path that begins with / or ~/ and has no blanks or quotes", shown,
                       at + prefix);
    else
        return 0;
    return -EINVAL;
}

int weft__secret_check(const char *text, char why[WEFT_SECRET_WHY]) {
    for (const char *at = text; (at = strchr(at, '$')); at++)
        if (prefix_at(at) && check_name(at, why) < 0)
            return -EINVAL;
    return 0;
}

/* ---- values ---- */

/* A file ends with a line feed, a secret does not. */
static size_t without_end(const char *text, size_t len) {
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    return len;
}

static int read_secret_file(const char *path, char *ret, size_t *ret_len, char *why) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return explain_secret(why, "%.200s cannot be read: %s", path, weft_strerror(-errno));
    size_t len = 0;
    ssize_t n = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? 1 : -1;
    while (n > 0 && len <= WEFT_SECRET_VALUE && (n = read(fd, ret + len, WEFT_SECRET_VALUE + 1 - len)) > 0)
        len += (size_t) n;
    close(fd);
    if (n < 0 || len > WEFT_SECRET_VALUE)
        return explain_secret(why, n < 0 ? "%.200s is not a file that can be read" : "%.200s is too long for a secret",
                              path);
    *ret_len = without_end(ret, len);
    return 0;
}

static int read_home_file(const char *name, char *ret, size_t *ret_len, char *why) {
    char path[MAX_NAME + 1024];
    const char *home = *name == '~' ? getenv("HOME") : "";
    if (!home)
        return explain_secret(why, "%.200s is below the home, and HOME is not set", name);
    if ((size_t) snprintf(path, sizeof path, "%s%s", home, *name == '~' ? name + 1 : name) >= sizeof path)
        return explain_secret(why, "%.100s... is too long for a path", name);
    return read_secret_file(path, ret, ret_len, why);
}

/* ret has room for WEFT_SECRET_VALUE + 1 bytes. */
static int read_secret(const char *at, size_t len, char *ret, size_t *ret_len, char *why) {
    char name[MAX_NAME];
    size_t prefix = prefix_at(at);
    snprintf(name, sizeof name, "%.*s", (int) (len - prefix - 1), at + prefix);
    if (prefix != sizeof ENV - 1)
        return read_home_file(name, ret, ret_len, why);
    const char *value = getenv(name);
    if (!value || !*value)
        return explain_secret(why, "the variable %.200s is not set", name);
    *ret_len = strlen(value);
    if (*ret_len > WEFT_SECRET_VALUE)
        return explain_secret(why, "the variable %.200s is too long for a secret", name);
    memcpy(ret, value, *ret_len);
    return 0;
}

static bool is_one_line(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) text[i] <= ' ' || text[i] == 0x7f)
            return false;
    return len > 0;
}

/* ---- filling in ---- */

typedef struct secret_filling {
    weft_buf out;
    const weft_alloc *alloc;
    weft_secret_use use;
    size_t max;
    char *why, *room;
} secret_filling;

static int put_secret(secret_filling *fill, const char *at, size_t len) {
    size_t got = 0;
    int r = read_secret(at, len, fill->room, &got, fill->why);
    if (r < 0)
        return r;
    if (fill->use == WEFT_SECRET_LINE && !is_one_line(fill->room, got))
        return explain_secret(fill->why, "what %.*s stands for is empty, or is not one word", (int) (len < 100 ? len : 100),
                              at);
    if (fill->use != WEFT_SECRET_JSON)
        return weft__buf_put(&fill->out, fill->alloc, fill->room, got);
    weft_buf text = {0};
    r = weft__write_str(&text, fill->alloc, fill->room, got);
    if (r >= 0) /* the quotes are there already */
        r = weft__buf_put(&fill->out, fill->alloc, weft__buf_head(&text) + 1, weft__buf_len(&text) - 2);
    weft__buf_done(&text, fill->alloc);
    return r;
}

static int fill_secrets(secret_filling *fill, const char *text, size_t len) {
    const char *end = text + len;
    int r = 0;
    while (text < end && r >= 0) {
        size_t name = 0, plain;
        const char *dollar = memchr(text, '$', (size_t) (end - text));
        plain = dollar ? (size_t) (dollar - text) : (size_t) (end - text);
        r = weft__buf_put(&fill->out, fill->alloc, text, plain);
        text += plain;
        if (r < 0 || !dollar)
            break;
        bool is_name = weft__secret_at(text, &name);
        if (is_name)
            r = put_secret(fill, text, name);
        else
            r = weft__buf_put(&fill->out, fill->alloc, "$", 1);
        text += is_name ? name : text + 1 < end && text[1] == '$' ? 2 : 1;
    }
    return r >= 0 && weft__buf_len(&fill->out) > fill->max ? -EMSGSIZE : r;
}

int weft__secret_fill(weft_bytes text, weft_secret_use use, size_t max, const weft_alloc *alloc, char **ret, size_t *ret_len,
                      char why[WEFT_SECRET_WHY]) {
    secret_filling fill = {.alloc = alloc, .use = use, .max = max, .why = why};
    char *copy = weft__strndup(alloc, text.len ? text.data : "", text.len); /* with a NUL behind it */
    int r = copy && (fill.room = weft__alloc(alloc, WEFT_SECRET_VALUE + 1)) ? fill_secrets(&fill, copy, text.len) : -ENOMEM;
    if (r >= 0)
        r = weft__buf_put(&fill.out, alloc, "", 1);
    if (r >= 0) {
        *ret_len = weft__buf_len(&fill.out) - 1;
        *ret = weft__strndup(alloc, weft__buf_head(&fill.out), *ret_len);
        r = *ret ? 0 : -ENOMEM;
    }
    if (fill.room)
        explicit_bzero(fill.room, WEFT_SECRET_VALUE + 1);
    if (fill.out.data)
        explicit_bzero(weft__buf_head(&fill.out), weft__buf_len(&fill.out));
    weft__free(alloc, fill.room);
    weft__free(alloc, copy);
    weft__buf_done(&fill.out, alloc);
    return r;
}

void weft__secret_free(char *text, size_t len, const weft_alloc *alloc) {
    if (text)
        explicit_bzero(text, len);
    weft__free(alloc, text);
}
