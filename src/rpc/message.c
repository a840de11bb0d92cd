/* One JSON-RPC 2.0 message taken apart in one pass. Knows the envelope and nothing of what is inside params or result. */
#include "message.h"

#include <errno.h>
#include <string.h>

#include "doc.h"
#include "hint.h"
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
    {"jsonrpc", 7, JSONRPC}, {"id", 2, ID},         {"method", 6, METHOD},
    {"params", 6, PARAMS},   {"result", 6, RESULT}, {"error", 5, ERROR},
};

/* The bytes of a short key and its closing quote as one number, to compare in one step. Slack makes the load safe. */
static inline uint64_t load_key_word(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define QUICK_KEYS 1
#define LOW(n) (~0ULL >> (64 - 8 * (n)))
#define WORD(a, b, c, d, e, f, g, h)                                                                                        \
    ((uint64_t) (a) | (uint64_t) (b) << 8 | (uint64_t) (c) << 16 | (uint64_t) (d) << 24 | (uint64_t) (e) << 32 |            \
     (uint64_t) (f) << 40 | (uint64_t) (g) << 48 | (uint64_t) (h) << 56)

/* p is behind the opening quote of a key. Its length with the closing quote, or 0: not one of ours as it stands here. */
static inline size_t quick_key(const char *p, member *ret) {
    uint64_t word = load_key_word(p);
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
    return (load_key_word(p) & LOW(5)) == WORD('"', '2', '.', '0', '"', 0, 0, 0);
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

/* A key that is not one of ours as it stands: another, or one of ours written with escapes. Its end, or NULL. */
static WEFT_COLD const char *slow_key(const char *p, member *ret) {
    bool escaped;
    const char *end = weft__scan_string(p, &escaped);
    *ret = OTHER;
    for (size_t i = 0; end && escaped && i < sizeof names / sizeof names[0]; i++)
        if (weft__raw_is((weft_bytes){p, (size_t) (end - p)}, names[i].name, names[i].len))
            *ret = names[i].member;
    return end;
}

/* p is at the opening quote of a key. Behind the colon and white space, or NULL. */
static inline const char *take_key(const char *p, member *ret) {
    size_t n = quick_key(p + 1, ret);
    p = n ? p + 1 + n : slow_key(p, ret);
    if (!p)
        return NULL;
    if (*p != ':') {
        p = weft__scan_ws(p);
        if (*p != ':')
            return NULL;
    }
    p++;
    return (unsigned char) *p <= ' ' ? weft__scan_ws(p) : p;
}

static inline const char *take_version(const char *p, struct envelope *env) {
    if (is_version(p)) {
        env->good |= JSONRPC;
        return p + 5;
    }
    const char *end = weft__scan_value(p, WEFT_MAX_DEPTH);
    if (end && *p == '"' && weft__raw_is((weft_bytes){p, (size_t) (end - p)}, "2.0", 3))
        env->good |= JSONRPC;
    return end;
}

static inline const char *take_id(const char *p, int depth, struct envelope *env, weft_msg *msg) {
    const char *end = p;
    bool scalar = true;
    if ((unsigned char) (*p - '1') < 9) { /* what almost every client sends */
        while ((unsigned char) (*++end - '0') < 10)
            ;
        if (*end == '.' || (*end | 0x20) == 'e')
            end = weft__scan_value(p, 0);
    } else {
        end = weft__scan_value(p, depth);
        scalar = *p == '"' || *p == '-' || *p == 'n' || *p == '0';
    }
    if (!end)
        return NULL;
    msg->id = (weft_bytes){0};
    if (scalar && end - p <= WEFT_MAX_ID) {
        env->good |= ID;
        msg->id = (weft_bytes){p, (size_t) (end - p)};
    }
    return end;
}

static inline const char *take_method(const char *p, int depth, struct envelope *env, weft_msg *msg) {
    if (*p != '"')
        return weft__scan_value(p, depth);
    const char *end = weft__scan_string(p, &msg->method_escaped);
    if (!end)
        return NULL;
    msg->method = (weft_bytes){p + 1, (size_t) (end - p) - 2};
    env->good |= msg->method.len ? METHOD : 0;
    return end;
}

static inline const char *take_params(const char *p, int depth, struct envelope *env, weft_msg *msg) {
    msg->meta = (weft_bytes){0};
    const char *end = *p == '{' ? weft__scan_params(p, depth, &msg->meta) : weft__scan_value(p, depth);
    if (!end)
        return NULL;
    env->good |= *p == '{' || *p == '[' ? PARAMS : 0;
    msg->params = (weft_bytes){p, (size_t) (end - p)};
    return end;
}

static const char *take_outcome(const char *p, int depth, weft_bytes *ret) {
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
        return take_outcome(p, depth, &msg->result);
    case ERROR:
        return take_outcome(p, depth, &msg->error);
    case OTHER:
        break;
    }
    return weft__scan_value(p, depth);
}

static void mark_invalid(weft_msg *msg, const char *why) {
    msg->kind = WEFT_MSG_INVALID;
    msg->why = why;
}

/* Everything but a plain request or notification. */
static WEFT_NOINLINE void classify_rest(struct envelope env, bool lenient, weft_msg *msg) {
    bool version = env.good & JSONRPC || (lenient && !(env.seen & JSONRPC));
    unsigned outcome = env.seen & (RESULT | ERROR);
    msg->no_method = !(env.seen & METHOD);
    if (!(env.seen & METHOD) && outcome) {
        msg->kind = WEFT_MSG_ANSWER;
        msg->proper = version && outcome != (RESULT | ERROR);
    } else if (!version)
        mark_invalid(msg, "\"jsonrpc\" must be \"2.0\"");
    else if ((env.seen & ID) && !(env.good & ID))
        mark_invalid(msg, "\"id\" must be a string, a number or null of at most 256 bytes");
    else if (!(env.good & METHOD))
        mark_invalid(msg, "\"method\" must be a string that is not empty");
    else if ((env.seen & PARAMS) && !(env.good & PARAMS))
        mark_invalid(msg, "\"params\" must be an object or an array");
    else
        msg->kind = env.seen & ID ? WEFT_MSG_REQUEST : WEFT_MSG_NOTIFICATION;
}

/* What it is, now that all members are known (JSON-RPC 2.0 sections 4 and 5). */
static inline void classify_msg(struct envelope env, bool lenient, weft_msg *msg) {
    if (env.seen == env.good && (env.good & (JSONRPC | METHOD)) == (JSONRPC | METHOD))
        msg->kind = env.seen & ID ? WEFT_MSG_REQUEST : WEFT_MSG_NOTIFICATION;
    else
        classify_rest(env, lenient, msg);
}

/* p is behind a value. The next key, *ret_end false; or behind the closing brace, *ret_end true; or NULL. */
static inline const char *next_key(const char *p, bool *ret_end) {
    if ((unsigned char) *p <= ' ')
        p = weft__scan_ws(p);
    *ret_end = *p == '}';
    if (*p == '}')
        return p + 1;
    if (*p != ',')
        return NULL;
    p++;
    return *p == '"' ? p : weft__scan_ws(p);
}

/* p is at '{'. Any message. */
static WEFT_NOINLINE const char *take_any_object(const char *p, int depth, bool lenient, weft_msg *msg) {
    struct envelope env = {0};
    bool end = false;
    if (depth < 1)
        return NULL;
    p = weft__scan_ws(p + 1);
    if (*p == '}')
        end = true, p++;
    while (p && !end) {
        member which;
        if (*p != '"' || !(p = take_key(p, &which)) || !(p = take_member(p, which, depth - 1, &env, msg)))
            return NULL;
        p = next_key(p, &end);
    }
    if (p)
        classify_msg(env, lenient, msg);
    return p;
}

/* ---- the usual request ---- */

#ifdef QUICK_KEYS
/* How nearly every message begins; sixteen bytes are compared at once. */
static const char usual_start[] = "{\"jsonrpc\":\"2.0\"";

/* How many of the eight bytes are digits before the first that is not. A digit less '0' is below ten, and only from ten on
 * does adding 0x76 reach the top bit; what carries over lies behind the first. */
static inline size_t leading_digits(uint64_t word) {
    uint64_t less = word ^ 0x3030303030303030;
    uint64_t others = ((less + 0x7676767676767676) | less) & 0x8080808080808080;
    return others ? (size_t) __builtin_ctzll(others) / 8 : 8;
}

/* p is at the digits of an id. */
static inline const char *quick_id(const char *p, weft_msg *msg) {
    const char *end = p;
    size_t n;
    do
        end += n = leading_digits(load_key_word(end));
    while (n == 8);
    size_t len = (size_t) (end - p);
    msg->id = (weft_bytes){p, len};
    return (*end == ',' || *end == '}') && *p != '0' && len - 1 < WEFT_MAX_ID ? end : NULL;
}

/* p is behind the opening quote of a method. */
static inline const char *quick_method(const char *p, weft_msg *msg) {
    size_t len = weft__plain_to_quote(p);
    msg->method = (weft_bytes){p, len};
    return len && len < WEFT_STEP ? p + len + 1 : NULL;
}

static inline const char *quick_params(const char *p, int depth, weft_msg *msg) {
    const char *end = NULL;
    if (*p == '[')
        end = weft__scan_container(p, depth);
    else if (*p == '{')
        end = weft__scan_params(p, depth, &msg->meta);
    msg->params = (weft_bytes){p, (size_t) (end - p)};
    return end;
}

/* A request or notification as programs write it: "jsonrpc" first, no white space between members, a whole number for an id,
 * a short method, each member once at most. Commas, names and colons are compared together. Behind the object, or NULL: it
 * is not one of these, look again with more care. */
static WEFT_ALWAYS_INLINE const char *take_usual_object(const char *p, int depth, weft_msg *msg) {
    if (memcmp(p, usual_start, sizeof usual_start - 1) != 0 || depth < 1)
        return NULL;
    p += sizeof usual_start - 1;
    while (p && *p == ',') {
        uint64_t word = load_key_word(p);
        if ((word & LOW(6)) == WORD(',', '"', 'i', 'd', '"', ':', 0, 0) && !msg->id.data)
            p = quick_id(p + 6, msg);
        else if (word == WORD(',', '"', 'm', 'e', 't', 'h', 'o', 'd') && memcmp(p + 8, "\":\"", 3) == 0 && !msg->method.data)
            p = quick_method(p + 11, msg);
        else if (word == WORD(',', '"', 'p', 'a', 'r', 'a', 'm', 's') && memcmp(p + 8, "\":", 2) == 0 && !msg->params.data)
            p = quick_params(p + 10, depth - 1, msg);
        else
            return NULL;
    }
    if (!p || *p != '}' || !msg->method.data)
        return NULL;
    msg->kind = msg->id.data ? WEFT_MSG_REQUEST : WEFT_MSG_NOTIFICATION;
    return p + 1;
}
#else
static inline const char *take_usual_object(const char *p, int depth, weft_msg *msg) {
    (void) p, (void) depth, (void) msg;
    return NULL;
}
#endif

/* Member by member: for a struct of this size the compiler would choose a string instruction that costs more than the parse.
 */
static inline void clear_msg(weft_msg *msg) {
    const weft_bytes absent = {0};
    msg->kind = WEFT_MSG_REQUEST;
    msg->id = absent;
    msg->method = absent;
    msg->params = absent;
    msg->meta = absent;
    msg->result = absent;
    msg->error = absent;
    msg->method_escaped = false;
    msg->proper = false;
    msg->no_method = false;
    msg->why = NULL;
}

/* p is at '{', msg is clear. */
static WEFT_ALWAYS_INLINE const char *take_object(const char *p, int depth, bool lenient, weft_msg *msg) {
    const char *end = take_usual_object(p, depth, msg);
    if (end)
        return end;
    clear_msg(msg);
    return take_any_object(p, depth, lenient, msg);
}

int weft__msg_parse(const char *text, int depth, bool lenient, weft_msg *ret, const char **ret_rest) {
    const char *p = *text == '{' ? text : weft__scan_ws(text), *start = p;
    clear_msg(ret);
    if (*p == '{') {
        p = take_object(p, depth, lenient, ret);
    } else {
        if (*p == '[')
            ret->kind = WEFT_MSG_BATCH;
        else
            mark_invalid(ret, "a message is an object or an array of objects");
        p = weft__scan_value(p, depth);
    }
    if (!p)
        return -EBADMSG;
    ret->text = (weft_bytes){start, (size_t) (p - start)};
    *ret_rest = (unsigned char) *p <= ' ' ? weft__scan_ws(p) : p;
    return 0;
}

bool weft__msg_begins_answer(const char *text, weft_bytes *ret_id) {
    member key = OTHER;
    *ret_id = (weft_bytes){0};
    const char *p = weft__scan_ws(text);
    if (*p != '{')
        return false;
    for (p = weft__scan_ws(p + 1); *p == '"'; p = weft__scan_ws(p + 1)) {
        const char *value = take_key(p, &key);
        if (!value || key == METHOD || key == PARAMS)
            return false;
        if (key == RESULT || key == ERROR)
            return true;
        p = weft__scan_value(value, WEFT_MAX_DEPTH);
        if (!p)
            return false;
        if (key == ID)
            *ret_id = (weft_bytes){value, (size_t) (p - value)};
        p = weft__scan_ws(p);
        if (*p != ',')
            return false;
    }
    return false;
}

int weft__batch_next(const char **at, bool lenient, weft_msg *ret) {
    const char *p = weft__scan_ws(*at);
    if (*p != '[' && *p != ',')
        return 0;
    p = weft__scan_ws(p + 1);
    if (*p == ']')
        return 0;

    weft_msg msg;
    const char *start = p;
    clear_msg(&msg);
    if (*p == '{')
        p = take_object(p, WEFT_MAX_DEPTH, lenient, &msg);
    else {
        mark_invalid(&msg, "an item of a batch is an object");
        p = weft__scan_value(p, WEFT_MAX_DEPTH);
    }
    if (!p) /* cannot be: the whole text has been validated */
        return 0;
    msg.text = (weft_bytes){start, (size_t) (p - start)};
    *at = p;
    *ret = msg;
    return 1;
}
