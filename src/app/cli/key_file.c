/* Reading the file of a key. */
#include "key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "failure.h"
#include "private_file.h"
#include "read_all.h"

static weft_exit refuse_key(const weft_app *app, const char *path, const char *why) {
    return weft__fail(app, WEFT_USAGE, "A new one: (umask 077; openssl rand -hex 32 > FILE)", "%s, the file of a key: %s",
                      path, why);
}

/* Its length, or <0; *ret_open: others may read it. */
static int read_key_file(const char *path, char *text, size_t size, bool *ret_open) {
    struct stat info;
    size_t len = 0;
    int fd = weft__private_open(path, O_RDONLY);
    if (fd < 0)
        return fd;
    int r = fstat(fd, &info) < 0 ? -errno : 0;
    *ret_open = r >= 0 && (info.st_mode & 077);
    if (r >= 0 && !*ret_open)
        r = weft__read_all(fd, text, size, &len);
    close(fd);
    return r < 0 ? r : (int) len;
}

static const char *judge_secret(const char *secret, size_t rest) {
    size_t len = strlen(secret);
    for (const char *c = secret; *c; c++)
        if ((unsigned char) *c < ' ' || *c == 0x7f)
            return "it has a control character";
    if (rest > len + 2)
        return "it has more than one line";
    if (len < WEFT_SECRET_MIN)
        return "its secret is shorter than 16 characters";
    return len > WEFT_SECRET_MAX ? "its secret is longer than 1024 characters" : NULL;
}

static weft_exit take_secret(const weft_app *app, const char *path, char *text, size_t len, char **ret) {
    text[len] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    const char *wrong = judge_secret(text, len);
    if (wrong)
        return refuse_key(app, path, wrong);
    *ret = weft__strndup(NULL, text, strlen(text));
    return *ret ? WEFT_DONE : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
}

weft_exit weft__key_read(const weft_app *app, const char *path, char **ret) {
    char text[WEFT_SECRET_MAX + 4];
    bool open = false;
    int r = read_key_file(path, text, sizeof text - 1, &open);
    weft_exit status;
    if (r < 0)
        status = refuse_key(app, path, weft__private_why(r));
    else if (open)
        status = weft__fail(app, WEFT_USAGE, "chmod 600 FILE, and think about who may have read it.",
                            "the key file %s can be read by others", path);
    else
        status = take_secret(app, path, text, (size_t) r, ret);
    OPENSSL_cleanse(text, sizeof text);
    return status;
}

char *weft__key_free(char *secret) {
    if (secret)
        OPENSSL_cleanse(secret, strlen(secret));
    return weft__free(NULL, secret);
}
