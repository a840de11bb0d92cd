/* HTTP/1.1 heads, in one pass over bytes that lie in memory (RFC 9112, RFC 9110).
 *
 * Strict where the RFC leaves a choice, because two parties that read one message differently are how requests are smuggled:
 * no bare CR or LF, no folded lines, no blank before a colon, one Content-Length or one "chunked" and never both, one Host.
 * Nothing is decoded, copied or allocated, and nothing outside the given bytes is read. Bodies are in http1_chunked.c. */
#include "http1.h"

#include <errno.h>

#include "http1_bytes.h"
#include "lines.h"

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
#define SSE2 1
#endif

/* Seen among the headers; what may be there once only is counted. */
struct head_facts {
    unsigned hosts, lengths, codings;
    weft_bytes host;
    bool close, keep_alive;
    bool unknown_coding;
};

/* What is left to read. A function that runs out of bytes returns 0, which the outermost one turns into "incomplete". */
typedef struct cursor {
    const char *p, *end;
} cursor;

/* Move over the bytes of a class. */
static inline void skip_class(cursor *in, unsigned char class) {
    while (in->p < in->end && weft__http_bytes[(unsigned char) *in->p] & class)
        in->p++;
}

/* Move over a header's value: everything but controls, HTAB excepted. */
static inline void skip_header_value(cursor *in) {
#ifdef SSE2
    const __m128i last_control = _mm_set1_epi8(0x1f), del = _mm_set1_epi8(0x7f), tab = _mm_set1_epi8('\t');
    for (; in->end - in->p >= 16; in->p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *) (const void *) in->p);
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, last_control), v);
        __m128i bad = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(v, tab), low), _mm_cmpeq_epi8(v, del));
        int mask = _mm_movemask_epi8(bad);
        if (mask) {
            in->p += __builtin_ctz((unsigned) mask);
            return;
        }
    }
#endif
    skip_class(in, HTTP_VALUE);
}

/* 1 CRLF was there, 0 out of bytes, -EBADMSG something else was. */
static inline int read_crlf(cursor *in) {
    if (in->end - in->p >= 2) {
        if (in->p[0] != '\r' || in->p[1] != '\n')
            return -EBADMSG;
        in->p += 2;
        return 1;
    }
    return in->p < in->end && *in->p != '\r' ? -EBADMSG : 0;
}

/* One particular byte. */
static inline int expect_byte(cursor *in, char c) {
    if (in->p == in->end)
        return 0;
    return *in->p++ == c ? 1 : -EBADMSG;
}

/* At least one byte of a class, and then something else. */
static inline int read_word(cursor *in, unsigned char class, weft_bytes *ret) {
    const char *start = in->p;
    skip_class(in, class);
    *ret = (weft_bytes){start, (size_t) (in->p - start)};
    if (in->p == in->end)
        return 0;
    return ret->len ? 1 : -EBADMSG;
}

/* "HTTP/1.0" or "HTTP/1.1". Other versions are told from garbage, so that they get another answer. */
static int read_version(cursor *in, int *ret_minor) {
    static const char name[] = "HTTP/";
    size_t here = (size_t) (in->end - in->p);
    if (memcmp(in->p, name, here < 5 ? here : 5) != 0)
        return -EBADMSG;
    if (here < 8)
        return 0;
    const char *v = in->p + 5;
    bool shaped = v[0] >= '0' && v[0] <= '9' && v[1] == '.' && v[2] >= '0' && v[2] <= '9';
    if (!shaped)
        return -EBADMSG;
    if (v[0] != '1' || v[2] > '1')
        return -ENOTSUP;
    *ret_minor = v[2] - '0';
    in->p += 8;
    return 1;
}

/* ---- headers that mean something to the parser ---- */

static int see_length(struct head_facts *facts, weft_bytes value, weft_http_head *head) {
    /* Even the same length twice is refused: somebody on the way took two for one. */
    if (facts->lengths++ || weft__parse_length(value.data, value.len, &head->content_length) < 0)
        return -EBADMSG;
    return 1;
}

static int see_coding(struct head_facts *facts, weft_bytes value) {
    if (value.len == 0)
        return -EBADMSG;
    if (!weft__same_text(value.data, value.len, "chunked"))
        facts->unknown_coding = true;
    facts->codings++;
    return 1;
}

static int see_connection(struct head_facts *facts, weft_bytes value, weft_http_head *head) {
    facts->close |= weft__http_has_token(value, "close");
    facts->keep_alive |= weft__http_has_token(value, "keep-alive");
    head->upgrade |= weft__http_has_token(value, "upgrade");
    return 1;
}

static int see_host(struct head_facts *facts, weft_bytes value) {
    for (size_t i = 0; i < value.len; i++)
        if (!(weft__http_bytes[(unsigned char) value.data[i]] & HTTP_HOST))
            return -EBADMSG;
    facts->hosts++;
    facts->host = value;
    return 1;
}

static inline int see_header(struct head_facts *facts, const weft_http_header_row *row, weft_http_head *head) {
    weft_bytes name = row->name, value = row->value;
    switch (name.len) {
    case sizeof "host" - 1:
        return weft__same_text(name.data, name.len, "host") ? see_host(facts, value) : 1;
    case sizeof "connection" - 1:
        return weft__same_text(name.data, name.len, "connection") ? see_connection(facts, value, head) : 1;
    case sizeof "content-length" - 1:
        return weft__same_text(name.data, name.len, "content-length") ? see_length(facts, value, head) : 1;
    case sizeof "transfer-encoding" - 1:
        return weft__same_text(name.data, name.len, "transfer-encoding") ? see_coding(facts, value) : 1;
    default:
        return 1;
    }
}

/* ---- the lines ---- */

static inline int read_header_row(cursor *in, weft_http_header_row *row) {
    /* A folded line begins with a blank and a blank may stand before the colon; neither is in a name. */
    int r = read_word(in, HTTP_TOKEN, &row->name);
    if (r > 0)
        r = expect_byte(in, ':');
    if (r <= 0)
        return r;
    while (in->p < in->end && (*in->p == ' ' || *in->p == '\t'))
        in->p++;
    const char *start = in->p;
    skip_header_value(in);
    const char *end = in->p;
    r = read_crlf(in);
    if (r <= 0)
        return r;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    row->value = (weft_bytes){start, (size_t) (end - start)};
    return 1;
}

static int read_headers(cursor *in, struct head_facts *facts, weft_http_head *head) {
    for (size_t count = 0;; count++) {
        if (in->p < in->end && *in->p == '\r') {
            head->header_count = count;
            return read_crlf(in);
        }
        /* cppcheck-suppress uninitvar; read_header_row() fills it */
        weft_http_header_row spare, *row = count < WEFT_HTTP_MAX_HEADERS ? &head->headers[count] : &spare;
        int r = read_header_row(in, row);
        if (r <= 0)
            return r;
        if (row == &spare)
            return -EMSGSIZE;
        r = see_header(facts, row, head);
        if (r < 0)
            return r;
    }
}

/* How the body is delimited, if it can be told (RFC 9112 section 6.3). */
static int settle_body(const struct head_facts *facts, weft_http_head *head) {
    if (facts->codings == 0)
        return 0;
    if (facts->lengths || head->minor == 0)
        return -EBADMSG;
    if (facts->unknown_coding)
        return -ENOSYS;
    if (facts->codings > 1)
        return -EBADMSG;
    head->chunked = true;
    return 0;
}

static void settle_keep_alive(const struct head_facts *facts, weft_http_head *head) {
    head->keep_alive = !facts->close && (head->minor == 1 || facts->keep_alive);
}

/* ---- requests ---- */

/* "http://host/path" becomes "/path"; its host must be the Host header's, for the RFC says that the header is to be ignored,
 * and not everybody does. */
static int settle_absolute(const struct head_facts *facts, weft_bytes *target) {
    size_t scheme = target->len > 7 && weft__same_text(target->data, 7, "http://")    ? 7
                    : target->len > 8 && weft__same_text(target->data, 8, "https://") ? 8
                                                                                      : 0;
    if (!scheme)
        return -EBADMSG;
    const char *authority = target->data + scheme, *end = target->data + target->len;
    const char *path = memchr(authority, '/', (size_t) (end - authority));
    size_t len = (size_t) ((path ? path : end) - authority);
    if (len == 0 || len != facts->host.len)
        return -EBADMSG;
    for (size_t i = 0; i < len; i++)
        if (weft__lower(authority[i]) != weft__lower(facts->host.data[i]))
            return -EBADMSG;
    /* Without a path it is "/", and the last slash of the scheme's two will do. */
    *target = path ? (weft_bytes){path, (size_t) (end - path)} : (weft_bytes){authority - 1, 1};
    return 0;
}

static int settle_target(const struct head_facts *facts, weft_http_head *head) {
    weft_bytes *target = &head->target;
    if (target->data[0] == '/')
        return 0;
    if (target->len == 1 && target->data[0] == '*')
        return head->method.len == 7 && memcmp(head->method.data, "OPTIONS", 7) == 0 ? 0 : -EBADMSG;
    return settle_absolute(facts, target);
}

static int read_request_line(cursor *in, weft_http_head *head) {
    /* One empty line may stand before a request: old clients end a body with one (RFC 9112 section 2.2). */
    if (in->p < in->end && *in->p == '\r') {
        int r = read_crlf(in);
        if (r <= 0)
            return r;
    }
    int r = read_word(in, HTTP_TOKEN, &head->method);
    if (r > 0)
        r = expect_byte(in, ' ');
    if (r > 0)
        r = read_word(in, HTTP_TARGET, &head->target);
    if (r > 0)
        r = expect_byte(in, ' ');
    if (r > 0)
        r = read_version(in, &head->minor);
    return r > 0 ? read_crlf(in) : r;
}

static int settle_request(const struct head_facts *facts, weft_http_head *head) {
    if (facts->hosts > 1 || (facts->hosts == 0 && head->minor == 1))
        return -EBADMSG;
    int r = settle_target(facts, head);
    if (r >= 0)
        r = settle_body(facts, head);
    settle_keep_alive(facts, head);
    return r;
}

/* ---- responses ---- */

static int read_status_line(cursor *in, weft_http_head *head) {
    int r = read_version(in, &head->minor);
    if (r > 0)
        r = expect_byte(in, ' ');
    if (r <= 0)
        return r;
    for (int i = 0; i < 3; i++) {
        if (in->p == in->end)
            return 0;
        int digit = *in->p++ - '0';
        if (digit < 0 || digit > 9)
            return -EBADMSG;
        head->status = head->status * 10 + digit;
    }
    if (head->status < 100 || head->status > 599)
        return -EBADMSG;
    /* The blank should be there even when no reason follows, but some servers leave it out. */
    if (in->p < in->end && *in->p == ' ')
        skip_header_value(in);
    return read_crlf(in);
}

static int settle_response(const struct head_facts *facts, weft_http_head *head) {
    int r = settle_body(facts, head);
    settle_keep_alive(facts, head);
    bool no_body = head->status < 200 || head->status == 204 || head->status == 304;
    /* A body that nothing delimits ends with the connection. */
    if (!no_body && !head->chunked && head->content_length < 0)
        head->keep_alive = false;
    return r;
}

/* ---- both ---- */

static int read_http_head(const char *data, size_t len, weft_http_head *ret, int (*read_first)(cursor *, weft_http_head *),
                          int (*settle)(const struct head_facts *, weft_http_head *)) {
    struct head_facts facts = {0};
    cursor in = {data, data + (len < WEFT_HTTP_MAX_HEAD ? len : WEFT_HTTP_MAX_HEAD)};
    ret->method = ret->target = (weft_bytes){0};
    ret->status = ret->minor = 0;
    ret->chunked = ret->upgrade = false;
    ret->content_length = -1;
    int r = read_first(&in, ret);
    if (r > 0)
        r = read_headers(&in, &facts, ret);
    if (r == 0)
        return len < WEFT_HTTP_MAX_HEAD ? 0 : -EMSGSIZE;
    if (r > 0)
        r = settle(&facts, ret);
    return r < 0 ? r : (int) (in.p - data);
}

int weft__http_request(const char *data, size_t len, weft_http_head *ret) {
    return read_http_head(data, len, ret, read_request_line, settle_request);
}

int weft__http_response(const char *data, size_t len, weft_http_head *ret) {
    return read_http_head(data, len, ret, read_status_line, settle_response);
}

weft_bytes weft__http_find(const weft_http_head *head, const char *name, size_t *ret_count) {
    weft_bytes found = {0};
    size_t count = 0, len = strlen(name);
    for (size_t i = 0; i < head->header_count; i++) {
        const weft_http_header_row *row = &head->headers[i];
        if (row->name.len != len || !weft__same_text(row->name.data, row->name.len, name))
            continue;
        if (count++ == 0)
            found = row->value;
    }
    if (ret_count)
        *ret_count = count;
    return found;
}

bool weft__http_has_token(weft_bytes list, const char *token) {
    const char *p = list.data, *end = list.len ? p + list.len : p;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t) (end - p));
        const char *next = comma ? comma : end, *last = next;
        while (p < last && (*p == ' ' || *p == '\t'))
            p++;
        while (last > p && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (weft__same_text(p, (size_t) (last - p), token))
            return true;
        p = next + 1;
    }
    return false;
}
