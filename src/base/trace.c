/* Checking trace contexts. Sections 3.2 (traceparent) and 3.3 (tracestate) of the recommendation. */
#include "trace.h"

#include <string.h>

#define PARENT_LEN (WEFT_TRACEPARENT - 1)
#define MAX_MEMBERS 32
#define MAX_KEY 256
#define MAX_VALUE 256

/* ---- traceparent: 00-32 digits-16 digits-2 digits ---- */

static bool is_hex(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static bool is_zero(const char *text, size_t len) {
    while (len && *text == '0')
        text++, len--;
    return !len;
}

/* A later version may go on behind another dash. */
static bool has_length(weft_bytes text) {
    bool later = text.len >= 2 && memcmp(text.data, "00", 2) != 0;
    return text.len == PARENT_LEN || (later && text.len > PARENT_LEN && text.data[PARENT_LEN] == '-');
}

bool weft__trace_parent(weft_bytes text, char ret[WEFT_TRACEPARENT]) {
    const char *t = text.data;
    if (!has_length(text) || t[2] != '-' || t[35] != '-' || t[52] != '-')
        return false;
    if (!is_hex(t, 2) || !is_hex(t + 3, 32) || !is_hex(t + 36, 16) || !is_hex(t + 53, 2))
        return false;
    if (memcmp(t, "ff", 2) == 0 || is_zero(t + 3, 32) || is_zero(t + 36, 16))
        return false;
    memcpy(ret, t, PARENT_LEN);
    ret[0] = ret[1] = '0';
    ret[PARENT_LEN] = '\0';
    return true;
}

void weft__trace_id(const char *traceparent, char ret[33]) {
    memcpy(ret, traceparent + 3, 32);
    ret[32] = '\0';
}

/* ---- tracestate: key=value, separated by commas and white space ---- */

static bool is_key_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c != '\0' && strchr("_-*/@", c));
}

static bool is_value_letter(char c) {
    return c >= ' ' && c <= '~' && c != ',' && c != '=';
}

/* 1 a member, 0 nothing but white space, -1 wrong. */
static int check_member(const char *text, size_t len) {
    size_t at = 0, value = 0;
    while (len && (*text == ' ' || *text == '\t'))
        text++, len--;
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    if (!len)
        return 0;
    while (at < len && is_key_letter(text[at]))
        at++;
    if (!at || at > MAX_KEY || at == len || text[at] != '=' ||
        !((*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9')))
        return -1;
    for (at++; at < len && is_value_letter(text[at]); at++)
        value++;
    return at == len && value && value <= MAX_VALUE ? 1 : -1;
}

bool weft__trace_state(weft_bytes text, char ret[WEFT_TRACESTATE]) {
    int members = 0;
    if (!text.len || text.len >= WEFT_TRACESTATE || memchr(text.data, '\0', text.len))
        return false;
    for (size_t at = 0; at <= text.len;) {
        const char *comma = at < text.len ? memchr(text.data + at, ',', text.len - at) : NULL;
        size_t end = comma ? (size_t) (comma - text.data) : text.len;
        int r = check_member(text.data + at, end - at);
        members += r;
        if (r < 0 || members > MAX_MEMBERS)
            return false;
        at = end + 1;
    }
    if (!members)
        return false;
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return true;
}
