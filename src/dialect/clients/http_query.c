/* The query of a URL, pair by pair. */
#include "http_query.h"

#include <ctype.h>
#include <string.h>

static int hex_digit(char c) {
    return isdigit((unsigned char) c) ? c - '0' : isxdigit((unsigned char) c) ? tolower((unsigned char) c) - 'a' + 10 : -1;
}

static void decode_percent(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        int high = *at == '%' ? hex_digit(at[1]) : -1, low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low >= 0 && (high || low)) {
            *to++ = (char) (high * 16 + low);
            at += 2;
        } else
            *to++ = *at == '+' ? ' ' : *at;
    }
    *to = '\0';
}

bool weft__query_next(char **rest, const char **ret_name, char **ret_value) {
    char *pair, *value;
    do
        pair = strsep(rest, "&");
    while (pair && !strchr(pair, '='));
    if (!pair)
        return false;
    value = strchr(pair, '=');
    *value++ = '\0';
    decode_percent(pair);
    decode_percent(value);
    *ret_name = pair;
    *ret_value = value;
    return true;
}
