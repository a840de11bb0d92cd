/* What is allowed is listed for words; for lines, what is not. */
#include "plain_name.h"

#include <string.h>

#include "utf8.h"
#include "visible.h"

#define MAX_WORD 128

static bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_word_byte(char c) {
    return is_alnum(c) || (c && strchr("._-+#", c));
}

/* ---- words and rules ---- */

static const char *word_wrong(weft_bytes text) {
    if (!text.len)
        return "is empty";
    if (text.len > MAX_WORD)
        return "is longer than 128 bytes";
    if (text.data[0] == '-')
        return "begins with a dash";
    if (!is_alnum(text.data[0]))
        return "does not begin with a letter or digit";
    for (size_t i = 0; i < text.len; i++)
        if (!is_word_byte(text.data[i]))
            return "has a character other than letters, digits and . _ - + #";
    return NULL;
}

/* Each part is a word; so no part is "..", and none begins with a dash. */
static const char *rule_wrong(weft_bytes text) {
    const char *at = text.data, *end = at + text.len, *wrong = NULL;
    if (text.len > MAX_WORD)
        return "is longer than 128 bytes";
    if (text.len && *at == '@')
        at++;
    for (const char *stop = at; !wrong && stop <= end; stop++)
        if (stop == end || *stop == '/' || *stop == ':') {
            wrong = word_wrong((weft_bytes){at, (size_t) (stop - at)});
            at = stop + 1;
        }
    return wrong;
}

/* ---- lines ---- */

/* Control characters, ends of lines, and what changes the direction in which all that follows is read. */
static bool steers(unsigned code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

static const char *line_wrong(weft_bytes text) {
    if (!text.len)
        return "is empty";
    for (size_t at = 0, n; at < text.len; at += n) {
        unsigned code = (unsigned char) text.data[at];
        n = code < 0x80 ? 1 : weft__utf8_len(text.data + at, text.len - at);
        if (!n)
            return "is not valid UTF-8";
        weft__code_point(text.data + at, n, &code);
        if (steers(code))
            return "has a control character";
    }
    return NULL;
}

const char *weft__name_wrong(weft_bytes text, weft_name_kind kind) {
    switch (kind) {
    case WEFT_NAME_WORD:
        return word_wrong(text);
    case WEFT_NAME_RULE:
        return rule_wrong(text);
    case WEFT_NAME_LINE:
        break;
    }
    return line_wrong(text);
}
