/* Taking lines of compilers apart. */
#include "check_lines.h"

#include <ctype.h>
#include <string.h>

bool weft__line_next(weft_bytes *text, weft_bytes *ret) {
    if (!text->len)
        return false;
    const char *end = memchr(text->data, '\n', text->len);
    size_t len = end ? (size_t) (end - text->data) : text->len;
    *ret = (weft_bytes){text->data, len};
    text->data += len + (end != NULL);
    text->len -= len + (end != NULL);
    if (ret->len && ret->data[ret->len - 1] == '\r')
        ret->len--;
    return true;
}

void weft__line_skip(weft_bytes *text, size_t n) {
    n = n < text->len ? n : text->len;
    text->data += n;
    text->len -= n;
}

bool weft__line_word(weft_bytes *text, const char *word) {
    size_t len = strlen(word);
    if (text->len < len || memcmp(text->data, word, len) != 0)
        return false;
    weft__line_skip(text, len);
    return true;
}

bool weft__line_number(weft_bytes *text, int64_t *ret) {
    int64_t number = 0;
    size_t n = 0;
    for (; n < text->len && isdigit((unsigned char) text->data[n]); n++)
        if (number < WEFT_LINE_PLACES)
            number = 10 * number + (text->data[n] - '0');
    weft__line_skip(text, n);
    if (n)
        *ret = number;
    return n > 0;
}

void weft__line_blanks(weft_bytes *text) {
    while (text->len && (*text->data == ' ' || *text->data == '\t'))
        weft__line_skip(text, 1);
}

bool weft__line_severity(weft_bytes *rest, weft_severity *ret) {
    static const struct {
        const char *word;
        weft_severity severity;
    } words[] = {
        {"fatal error: ", WEFT_SEVERITY_ERROR}, {"error: ", WEFT_SEVERITY_ERROR},      {"[error] ", WEFT_SEVERITY_ERROR},
        {"warning: ", WEFT_SEVERITY_WARNING},   {"[warning] ", WEFT_SEVERITY_WARNING}, {"note: ", WEFT_SEVERITY_INFO},
        {"info: ", WEFT_SEVERITY_INFO},         {"style: ", WEFT_SEVERITY_INFO},       {"Error: ", WEFT_SEVERITY_ERROR},
        {"Warning: ", WEFT_SEVERITY_WARNING},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (weft__line_word(rest, words[i].word)) {
            *ret = words[i].severity;
            return true;
        }
    return false;
}

bool weft__line_rule(weft_bytes *message, weft_bytes *ret) {
    if (message->len < 3)
        return false;
    char close = message->data[message->len - 1], open = close == ']' ? '[' : close == ')' ? '(' : 0;
    const char *at = open ? memrchr(message->data, open, message->len) : NULL;
    if (!at || (at > message->data && at[-1] != ' '))
        return false;
    weft_bytes name = {at + 1, message->len - (size_t) (at - message->data) - 2};
    if (!weft__line_word(&name, "-Werror="))
        weft__line_word(&name, "-W");
    if (!name.len || memchr(name.data, ' ', name.len))
        return false;
    *ret = name;
    message->len = (size_t) (at - message->data);
    while (message->len && message->data[message->len - 1] == ' ')
        message->len--;
    return true;
}
