/* Relaxed JSON to strict JSON of the same length. It decides only what is a comment, a string and a comma too many; whether
 * the rest is JSON is for the scanner to say. */
#include "relaxed.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "buf.h"

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

static void blank_out(char *p, const char *end) {
    for (; p < end; p++)
        if (!is_line_end(*p))
            *p = ' ';
}

/* Behind the string that begins at p; its faults are not ours. */
static char *skip_string(char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end ? p + 1 : p;
}

/* Behind the comment at p, or NULL: it does not end. */
static char *comment_end(char *p, char *end) {
    bool line = p[1] == '/';
    for (p += 2; p < end; p++) {
        if (line && is_line_end(*p))
            return p;
        if (!line && *p == '*' && p + 1 < end && p[1] == '/')
            return p + 2;
    }
    return line ? end : NULL;
}

static bool is_comment(const char *p, const char *end) {
    return *p == '/' && p + 1 < end && (p[1] == '/' || p[1] == '*');
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || is_line_end(c);
}

/* A comma is too many if it stands behind a value and before a bracket that closes. Behind anything else it is a mistake,
 * which stays for the scanner to find. */
static bool may_trail(char before) {
    return before && !strchr("[{,:", before);
}

size_t weft__relaxed_blank(char *text, size_t len) {
    char *p = text, *end = text + len, *comma = NULL;
    char before = '\0'; /* the last byte that counts */
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        blank_out(text, text + 3);
    while (p < end) {
        if (is_space(*p)) {
            p++;
        } else if (is_comment(p, end)) {
            char *after = comment_end(p, end);
            blank_out(p, after ? after : end);
            if (!after)
                return (size_t) (p - text);
            p = after;
        } else {
            if (comma && (*p == '}' || *p == ']'))
                *comma = ' ';
            comma = *p == ',' && may_trail(before) ? p : NULL;
            before = *p;
            p = *p == '"' ? skip_string(p, end) : p + 1;
        }
    }
    return len;
}

int weft__relaxed_parse(const char *text, size_t len, const weft_alloc *alloc, weft_doc **ret, weft_fault *ret_fault) {
    if (len > SIZE_MAX - 1 - WEFT_SLACK)
        return -ENOMEM;
    char *copy = weft__alloc(alloc, len + 1 + WEFT_SLACK);
    if (!copy)
        return -ENOMEM;
    if (len)
        memcpy(copy, text, len);
    memset(copy + len, 0, 1 + WEFT_SLACK);
    size_t open = weft__relaxed_blank(copy, len);
    int r = open < len ? -EBADMSG : weft_doc_parse(copy, len, alloc, ret);
    if (r == -EBADMSG) {
        weft_fault found = weft__fault_find(copy, len);
        /* What was left out because a comment did not end is not what is wrong. */
        bool ended = open == len || (found.why && found.at < open);
        *ret_fault = ended ? found : (weft_fault){open, "this comment does not end"};
    }
    weft__free(alloc, copy);
    return r;
}
