/* Sessions over a restart, as text: one line each of the session's digest, the token's digest, and when it ends by the wall
 * clock. Whoever reads it can do nothing with it; whoever can write it could as well add a token. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "login.h"

#define HEX_DIGEST (2 * (size_t) WEFT_DIGEST)
/* Two digests, a number, two blanks and the end of the line. */
#define MAX_KEPT_LINE (2 * HEX_DIGEST + 32)

static void put_hex(const unsigned char digest[WEFT_DIGEST], char *ret) {
    for (size_t i = 0; i < WEFT_DIGEST; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static int kept_hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind it; NULL: it is none. */
static const char *take_hex(const char *text, unsigned char ret[WEFT_DIGEST]) {
    for (size_t i = 0; i < WEFT_DIGEST; i++, text += 2) {
        int high = kept_hex_value(text[0]), low = high < 0 ? -1 : kept_hex_value(text[1]);
        if (low < 0)
            return NULL;
        ret[i] = (unsigned char) (high * 16 + low);
    }
    return text;
}

static int put_kept(weft_buf *out, const weft_server *server, const weft_session_row *row, int64_t now) {
    char line[MAX_KEPT_LINE], digest[HEX_DIGEST + 1], token[HEX_DIGEST + 1];
    put_hex(row->digest, digest);
    put_hex(row->token, token);
    int n = snprintf(line, sizeof line, "%s %s %lld\n", digest, token,
                     (long long) (weft__wall_now() + (row->until - now) / 1000));
    return weft__buf_put(out, server->alloc, line, (size_t) n);
}

/* Without memory the file stays as it is: somebody logs in once more. */
void weft__logins_keep(weft_server *server) {
    const struct weft_logins *logins = server->logins;
    int64_t now = weft_loop_now(server->loop);
    weft_buf text = {0};
    int r = 0;
    if (!logins->on_keep)
        return;
    for (size_t i = 0; r >= 0 && i < logins->max; i++)
        if (logins->rows[i].id && now < logins->rows[i].until)
            r = put_kept(&text, server, &logins->rows[i], now);
    if (r >= 0)
        r = weft__buf_put(&text, server->alloc, "", 1);
    if (r >= 0)
        logins->on_keep(logins->ctx, weft__buf_head(&text));
    weft__buf_done(&text, server->alloc);
}

/* A clock that was wrong then or is now must not make a session longer than they are made. */
static int64_t kept_until(const weft_server *server, long long until) {
    int64_t left = until - weft__wall_now();
    if (left <= 0)
        return 0;
    left = left < WEFT_SESSION_MOST_S ? left : WEFT_SESSION_MOST_S;
    return weft__after(weft_loop_now(server->loop), left * 1000);
}

static bool restore_line(const weft_server *server, const char *line, weft_session_row *ret) {
    const char *at = take_hex(line, ret->digest);
    if (!at || *at++ != ' ' || !(at = take_hex(at, ret->token)) || *at++ != ' ')
        return false;
    errno = 0;
    char *end;
    long long until = strtoll(at, &end, 10);
    if (end == at || *end != '\n' || errno || until < 0)
        return false;
    ret->until = kept_until(server, until);
    return ret->until > 0;
}

void weft__logins_restore(weft_server *server, const char *kept) {
    struct weft_logins *logins = server->logins;
    size_t count = 0;
    for (const char *line = kept, *end; count < logins->max && (end = strchr(line, '\n')); line = end + 1) {
        weft_session_row row = {0};
        if (!restore_line(server, line, &row))
            continue;
        row.id = ++logins->last_id;
        logins->rows[count++] = row;
    }
}
