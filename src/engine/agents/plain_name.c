/* What is allowed is listed for words; for text, what is not. */
#include "plain_name.h"

#include <string.h>

#include "utf8.h"
#include "visible.h"

#define MAX_WORD 128
#define MAX_FILE_NAME 255

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

/* ---- text ---- */

/* Is it UTF-8 without what a terminal would obey? lines: line ends and tabs are fine, and so is what only hides. */
static const char *text_wrong(weft_bytes text, bool lines) {
    for (size_t at = 0, n; at < text.len; at += n) {
        unsigned char c = (unsigned char) text.data[at];
        unsigned code;
        n = c < 0x80 ? 1 : weft__utf8_len(text.data + at, text.len - at);
        if (!n)
            return "is not valid UTF-8";
        weft__code_point(text.data + at, n, &code);
        bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
        if (lines ? control && code != '\n' && code != '\t' && code != '\r' : weft__is_unseen(code))
            return control ? "has a control character" : "has a character that cannot be seen";
    }
    return NULL;
}

static const char *file_wrong(weft_bytes text) {
    if (!text.len)
        return "is empty";
    if (text.len > MAX_FILE_NAME)
        return "is longer than 255 bytes";
    if (text.data[0] == '-')
        return "begins with a dash";
    if (text.data[0] == '@')
        return "begins with an @, which some programs take for a file of arguments";
    if (text.data[0] == ' ' || text.data[text.len - 1] == ' ')
        return "begins or ends with a blank";
    if (memchr(text.data, '/', text.len) || memchr(text.data, '\\', text.len))
        return "has a slash: it is a path";
    if ((text.len == 1 || (text.len == 2 && text.data[1] == '.')) && text.data[0] == '.')
        return "is a folder";
    return text_wrong(text, false);
}

const char *weft__name_wrong(weft_bytes text, weft_name_kind kind) {
    switch (kind) {
    case WEFT_NAME_WORD:
        return word_wrong(text);
    case WEFT_NAME_RULE:
        return rule_wrong(text);
    case WEFT_NAME_FILE:
        return file_wrong(text);
    case WEFT_NAME_ARGUMENT:
        break;
    }
    return text_wrong(text, true);
}
