/* The table of what cannot be seen is that of the "Trojan Source" paper (bidirectional controls), with the other format
 * characters and fillers of Unicode that have no width. */
#include "visible.h"

#include <stdio.h>

size_t weft__code_point(const char *text, size_t len, unsigned *ret) {
    const unsigned char *p = (const unsigned char *) text;
    size_t n = *p < 0x80 ? 1 : (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : (*p & 0xf8) == 0xf0 ? 4 : 0;
    *ret = 0xfffd;
    if (n == 0 || n > len)
        return 1;
    unsigned code = n == 1 ? *p : *p & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 1;
        code = code << 6 | (p[i] & 0x3f);
    }
    *ret = code;
    return n;
}

bool weft__is_unseen(unsigned code) {
    static const struct {
        unsigned first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160},
        {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
        {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && code >= ranges[i].first; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

bool weft__looks_escaped(const char *text, size_t len) {
    return len >= 2 && text[0] == '\\' && text[1] == 'u';
}

int weft__put_escape(unsigned code, char ret[WEFT_ESCAPE_FORM]) {
    if (code > 0xffff)
        return snprintf(ret, WEFT_ESCAPE_FORM, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    return snprintf(ret, WEFT_ESCAPE_FORM, "\\u%04x", code);
}

/* The next character's visible form; *ret_len is the form's, the result how much of the text it stands for. */
static size_t visible_form(const char *text, size_t len, char form[WEFT_ESCAPE_FORM], size_t *ret_len) {
    unsigned code;
    size_t n = weft__code_point(text, len, &code);
    int m;
    if (weft__is_unseen(code) || weft__looks_escaped(text, len))
        m = weft__put_escape(code, form);
    else if (code == 0xfffd && n == 1)
        m = snprintf(form, WEFT_ESCAPE_FORM, "\xef\xbf\xbd");
    else
        m = snprintf(form, WEFT_ESCAPE_FORM, "%.*s", (int) n, text);
    *ret_len = (size_t) m;
    return n;
}

int weft__visible_put(weft_buf *out, const weft_alloc *alloc, weft_bytes text, size_t most) {
    char form[WEFT_ESCAPE_FORM], mark[64];
    size_t at = 0, used = 0, form_len;
    int r = 0;
    while (r >= 0 && at < text.len) {
        size_t n = visible_form(text.data + at, text.len - at, form, &form_len);
        if (used + form_len > most)
            break;
        r = weft__buf_put(out, alloc, form, form_len);
        at += n;
        used += form_len;
    }
    if (r < 0 || at == text.len)
        return r;
    int len = snprintf(mark, sizeof mark, "… (cut: %zu more bytes)", text.len - at);
    return weft__buf_put(out, alloc, mark, (size_t) len);
}
