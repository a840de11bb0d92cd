/* One JSON-RPC 2.0 message taken apart in one pass. Knows the envelope and nothing of what is inside params or result. */
#include "message.h"

#include <errno.h>
#include <string.h>

#include "doc.h"
#include "scan.h"

typedef enum member {
    JSONRPC = 1 << 0,
    ID = 1 << 1,
    METHOD = 1 << 2,
    PARAMS = 1 << 3,
    RESULT = 1 << 4,
    ERROR = 1 << 5,
    OTHER = 0,
} member;

/* Which members were seen and fit; the last of duplicates decides, so a bit can also be cleared again. */
struct envelope {
    unsigned seen;
    unsigned good;
};

static const struct {
    const char *name;
    size_t len;
    member member;
} names[] = {
    {"jsonrpc", 7, JSONRPC}, {"id", 2, ID}, {"method", 6, METHOD}, {"params", 6, PARAMS}, {"result", 6, RESULT}, {"error", 5, ERROR},
};

/* The bytes of a short key and its closing quote as one number, to compare in one step. Slack makes the load safe. */
static inline uint64_t load8(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW(n) (~0ULL >> (64 - 8 * (n)))
#define WORD(a, b, c, d, e, f, g, h)                                                                                   \
    ((uint64_t) (a) | (uint64_t) (b) << 8 | (uint64_t) (c) << 16 | (uint64_t) (d) << 24 | (uint64_t) (e) << 32 |       \
     (uint64_t) (f) << 40 | (uint64_t) (g) << 48 | (uint64_t) (h) << 56)

/* p is behind the opening quote of a key. Its length with the closing quote, or 0: not one of ours as it stands here. */
static inline size_t quick_key(const char *p, member *ret) {
    uint64_t word = load8(p);
    if (word == WORD('j', 's', 'o', 'n', 'r', 'p', 'c', '"'))
        return *ret = JSONRPC, 8;
    if ((word & LOW(3)) == WORD('i', 'd', '"', 0, 0, 0, 0, 0))
        return *ret = ID, 3;
    word &= LOW(7);
    if (word == WORD('m', 'e', 't', 'h', 'o', 'd', '"', 0))
        return *ret = METHOD, 7;
    if (word == WORD('p', 'a', 'r', 'a', 'm', 's', '"', 0))
        return *ret = PARAMS, 7;
    if (word == WORD('r', 'e', 's', 'u', 'l', 't', '"', 0))
        return *ret = RESULT, 7;
    if ((word & LOW(6)) == WORD('e', 'r', 'r', 'o', 'r', '"', 0, 0))
        return *ret = ERROR, 6;
    return 0;
}
static inline bool is_version(const char *p) {
    return (load8(p) & LOW(5)) == WORD('"', '2', '.', '0', '"', 0, 0, 0);
}
#else
static inline size_t quick_key(const char *p, member *ret) {
    (void) p, (void) ret;
    return 0;
}
static inline bool is_version(const char *p) {
    return memcmp(p, "\"2.0\"", 5) == 0;
}
#endif

/* p is at the opening quote of a key. Behind the colon and white space, or NULL. */
static inline const char *take_key(const char *p, member *ret) {
    size_t n = quick_key(p + 1, ret);
    if (n) {
        p += 1 + n;
    } else {
        bool escaped;
        const char *end = weft__scan_string(p, &escaped);
        if (!end)
            return NULL;
        *ret = OTHER;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (weft__raw_is((weft_bytes){p, (size_t) (end - p)}, names[i].name, names[i].len))
                *ret = names[i].member;
        p = end;
    }
    if (*p != ':') {
        p = weft__scan_ws(p);
        if (*p != ':')
            return NULL;
    }
    p++;
    return (unsigned char) *p <= ' ' ? weft__scan_ws(p) : p;
}

static const char *take_version(const char *p, struct envelope *env) {
    if (is_version(p)) {
        env->good |= JSONRPC;
        return p + 5;
    }
    const char *end = weft__scan_value(p, WEFT_MAX_DEPTH);
    if (end && *p == '"' && weft__raw_is((weft_bytes){p, (size_t) (end - p)}, "2.0", 3))
        env->good |= JSONRPC;
    return end;
}

static const char *take_id(const char *p, int depth, struct envelope *env, weft_msg *msg) {
    const char *end = p;
    if (*p >= '1' && *p <= '9') { /* what almost every client sends */
        while (*end >= '0' && *end <= '9')
            end++;
        if (*end == '.' || *end == 'e' || *end == 'E')
            end = weft__scan_value(p, 0);
    } else {
        end = weft__scan_value(p, depth);
    }
    if (!end)
        return NULL;
    size_t len = (size_t) (end - p);
    bool scalar = *p == '"' || *p == '-' || *p == 'n' || (*p >= '0' && *p <= '9');
    if (scalar && len <= WEFT_MAX_ID)
        env->good |= ID;
    msg->id = env->good & ID ? (weft_bytes){p, len} : (weft_bytes){0};
    return end;
}

static const char *take_method(const char *p, int depth, struct envelope *env, weft_msg *msg) {
    if (*p != '"')
        return weft__scan_value(p, depth);
    const char *end = weft__scan_string(p, &msg->method_escaped);
    if (!end)
        return NULL;
    msg->method = (weft_bytes){p + 1, (size_t) (end - p) - 2};
    if (msg->method.len)
        env->good |= METHOD;
    return end;
}

static const char *take_params(const char *p, int depth, struct envelope *env, weft_msg *msg) {
    msg->meta = (weft_bytes){0};
    const char *end = *p == '{' ? weft__scan_params(p, depth, &msg->meta) : weft__scan_value(p, depth);
    if (!end)
        return NULL;
    if (*p == '{' || *p == '[')
        env->good |= PARAMS;
    msg->params = (weft_bytes){p, (size_t) (end - p)};
    return end;
}

static const char *take_plain(const char *p, int depth, weft_bytes *ret) {
    const char *end = weft__scan_value(p, depth);
    if (end)
        *ret = (weft_bytes){p, (size_t) (end - p)};
    return end;
}

static inline const char *take_member(const char *p, member which, int depth, struct envelope *env, weft_msg *msg) {
    env->seen |= which;
    env->good &= ~(unsigned) which;
    switch (which) {
    case JSONRPC:
        return take_version(p, env);
    case ID:
        return take_id(p, depth, env, msg);
    case METHOD:
        return take_method(p, depth, env, msg);
    case PARAMS:
        return take_params(p, depth, env, msg);
    case RESULT:
        return take_plain(p, depth, &msg->result);
    case ERROR:
        return take_plain(p, depth, &msg->error);
    case OTHER:
        break;
    }
    return weft__scan_value(p, depth);
}

static void invalid(weft_msg *msg, const char *why) {
    msg->kind = WEFT_MSG_INVALID;
    msg->why = why;
}

/* What it is, now that all members are known (JSON-RPC 2.0 sections 4 and 5). */
static void classify(const struct envelope *env, bool lenient, weft_msg *msg) {
    bool version = env->good & JSONRPC || (lenient && !(env->seen & JSONRPC));
    unsigned outcome = env->seen & (RESULT | ERROR);
    if (!(env->seen & METHOD) && outcome) {
        msg->kind = WEFT_MSG_ANSWER;
        msg->proper = version && outcome != (RESULT | ERROR);
    } else if (!version)
        invalid(msg, "\"jsonrpc\" must be \"2.0\"");
    else if ((env->seen & ID) && !(env->good & ID))
        invalid(msg, "\"id\" must be a string, a number or null of at most 256 bytes");
    else if (!(env->good & METHOD))
        invalid(msg, "\"method\" must be a string that is not empty");
    else if ((env->seen & PARAMS) && !(env->good & PARAMS))
        invalid(msg, "\"params\" must be an object or an array");
    else
        msg->kind = env->seen & ID ? WEFT_MSG_REQUEST : WEFT_MSG_NOTIFICATION;
}

/* p is at '{'. */
static const char *take_object(const char *p, int depth, bool lenient, weft_msg *msg) {
    struct envelope env = {0};
    if (depth < 1)
        return NULL;
    p = weft__scan_ws(p + 1);
    if (*p == '}') {
        classify(&env, lenient, msg);
        return p + 1;
    }
    for (;;) {
        member which;
        if (*p != '"' || !(p = take_key(p, &which)) || !(p = take_member(p, which, depth - 1, &env, msg)))
            return NULL;
        if ((unsigned char) *p <= ' ')
            p = weft__scan_ws(p);
        if (*p == '}')
            break;
        if (*p != ',')
            return NULL;
        p++;
        if (*p != '"')
            p = weft__scan_ws(p);
    }
    classify(&env, lenient, msg);
    return p + 1;
}

int weft__msg_parse(const char *text, int depth, bool lenient, weft_msg *ret, const char **ret_rest) {
    weft_msg msg = {0};
    const char *p = *text == '{' ? text : weft__scan_ws(text);
    if (*p == '{') {
        p = take_object(p, depth, lenient, &msg);
    } else {
        if (*p == '[')
            msg.kind = WEFT_MSG_BATCH;
        else
            invalid(&msg, "a message is an object or an array of objects");
        p = weft__scan_value(p, depth);
    }
    if (!p)
        return -EBADMSG;
    *ret = msg;
    *ret_rest = (unsigned char) *p <= ' ' ? weft__scan_ws(p) : p;
    return 0;
}

int weft__batch_next(const char **at, bool lenient, weft_msg *ret) {
    const char *p = weft__scan_ws(*at);
    if (*p != '[' && *p != ',')
        return 0;
    p = weft__scan_ws(p + 1);
    if (*p == ']')
        return 0;

    weft_msg msg = {0};
    if (*p == '{')
        p = take_object(p, WEFT_MAX_DEPTH, lenient, &msg);
    else {
        invalid(&msg, "an item of a batch is an object");
        p = weft__scan_value(p, WEFT_MAX_DEPTH);
    }
    if (!p) /* cannot be: the whole text has been validated */
        return 0;
    *at = p;
    *ret = msg;
    return 1;
}
