/* Filling templates. */
#include "template.h"

#include <errno.h>
#include <string.h>

#include "buf.h"
#include "field.h"
#include "secret.h"

typedef struct filling {
    weft_buf out;
    const weft_alloc *alloc;
    weft_template_use use;
    size_t max;
    bool guarded;
} filling;

static int put_filled(filling *fill, const char *data, size_t len) {
    if (len > fill->max - weft__buf_len(&fill->out))
        return -EMSGSIZE;
    return weft__buf_put(&fill->out, fill->alloc, data, len);
}

/* RFC 3986, section 2.3, and the slash. */
static bool stays_in_url(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~/", c));
}

static int put_char(filling *fill, char c) {
    static const char hex[] = "0123456789ABCDEF";
    if (!c)
        return 0;
    if (fill->guarded && c == '$' && fill->use != WEFT_TEMPLATE_URL)
        return put_filled(fill, "$$", 2);
    if (fill->use != WEFT_TEMPLATE_URL || stays_in_url(c))
        return put_filled(fill, &c, 1);
    char encoded[3] = {'%', hex[(unsigned char) c >> 4], hex[(unsigned char) c & 15]};
    return put_filled(fill, encoded, sizeof encoded);
}

static int put_filled_value(filling *fill, const weft_json *value) {
    weft_bytes text = {value->text, value->len};
    weft_type type = weft_typeof(value);
    if (type == WEFT_ABSENT || (type == WEFT_NULL && fill->use != WEFT_TEMPLATE_AIWG))
        return 0;
    int r = type == WEFT_STRING ? weft_bytes_of(value, &text) : 0;
    for (size_t i = 0; i < text.len && r == 0; i++)
        r = put_char(fill, text.data[i]);
    return r;
}

/* A hole's name; behind is what follows the hole. false: it is none. */
static bool hole_at(const char *at, weft_bytes *ret_name, const char **ret_behind) {
    const char *end = strncmp(at, "{{", 2) == 0 ? strstr(at, "}}") : NULL;
    if (!end)
        return false;
    const char *from = at + 2, *to = end;
    while (from < to && strchr(" \t", *from))
        from++;
    while (to > from && strchr(" \t", to[-1]))
        to--;
    *ret_name = (weft_bytes){from, (size_t) (to - from)};
    *ret_behind = end + 2;
    return true;
}

const char *weft__template_hole(const char *text) {
    weft_bytes name;
    const char *behind;
    for (const char *at = text; (at = strstr(at, "{{")); at++)
        if (hole_at(at, &name, &behind))
            return at;
    return NULL;
}

/* hole is all of it, with its braces. false: it stays as it is. */
static bool find_value(const filling *fill, const weft_json *event, weft_bytes hole, weft_bytes name, weft_json *ret) {
    if (fill->use != WEFT_TEMPLATE_AIWG) {
        *ret = weft__field(event, name);
        return true;
    }
    if (name.len + 4 != hole.len) /* there are blanks around it */
        return false;
    *ret = weft__field_exact(event, name);
    return ret->text != NULL;
}

/* What a guarded text has at a "$": the name of a secret as it is, or the "$" twice. Returns how much of text that was. */
static size_t put_dollar(filling *fill, const char *text, int *r) {
    size_t len = 0;
    bool is_name = weft__secret_at(text, &len);
    *r = is_name ? put_filled(fill, text, len) : put_filled(fill, "$$", 2);
    return is_name ? len : 1;
}

static int fill_holes(filling *fill, const char *text, const weft_json *event) {
    int r = 0;
    while (*text && r == 0) {
        weft_bytes name;
        const char *behind;
        if (fill->guarded && *text == '$')
            text += put_dollar(fill, text, &r);
        else if (hole_at(text, &name, &behind)) {
            weft_json value = {0};
            weft_bytes hole = {text, (size_t) (behind - text)};
            bool known = find_value(fill, event, hole, name, &value);
            r = known ? put_filled_value(fill, &value) : put_filled(fill, hole.data, hole.len);
            text = behind;
        } else
            r = put_filled(fill, text++, 1);
    }
    return r;
}

static int fill_text(filling *fill, const char *text, const weft_json *event, char **ret) {
    int r = fill_holes(fill, text, event);
    char *copy = NULL;
    if (r == 0) {
        copy = weft__strndup(fill->alloc, weft__buf_len(&fill->out) ? weft__buf_head(&fill->out) : "",
                             weft__buf_len(&fill->out));
        r = copy ? 0 : -ENOMEM;
    }
    weft__buf_done(&fill->out, fill->alloc);
    if (r == 0)
        *ret = copy;
    return r;
}

int weft__template_fill(const char *text, const weft_json *event, weft_template_use use, size_t max, const weft_alloc *alloc,
                        char **ret) {
    return fill_text(&(filling){.alloc = alloc, .use = use, .max = max}, text, event, ret);
}

int weft__template_fill_guarded(const char *text, const weft_json *event, weft_template_use use, size_t max,
                                const weft_alloc *alloc, char **ret) {
    return fill_text(&(filling){.alloc = alloc, .use = use, .max = max, .guarded = true}, text, event, ret);
}
