/* See text_width.h. */
#include "text_width.h"

#include <stdbool.h>
#include <stdint.h>

#include "utf8.h"

typedef struct weft_code_range {
    uint32_t first, last;
} weft_code_range;

#include "text_width_table.h"

static bool is_in_ranges(uint32_t code, const weft_code_range *ranges, size_t count) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else if (code < ranges[middle].first)
            high = middle;
        else
            return true;
    }
    return false;
}

static size_t code_width(uint32_t code) {
    if (code < 0x300)
        return 1;
    if (is_in_ranges(code, zero_width, sizeof zero_width / sizeof zero_width[0]))
        return 0;
    return is_in_ranges(code, double_width, sizeof double_width / sizeof double_width[0]) ? 2 : 1;
}

/* The character at text, which is not at its end: its bytes and its columns. */
static size_t step_over(const char *text, size_t *ret_width) {
    const unsigned char *p = (const unsigned char *) text;
    size_t len = p[0] < 0x80 ? 1 : weft__utf8_len(text, WEFT_UTF8_MAX);
    uint32_t code = p[0];
    if (len > 1) {
        code &= 0xFFu >> (len + 1);
        for (size_t i = 1; i < len; i++)
            code = code << 6 | (p[i] & 0x3Fu);
    }
    *ret_width = len > 1 ? code_width(code) : 1;
    return len ? len : 1;
}

size_t weft__text_width(const char *text) {
    size_t columns = 0, width;
    while (*text) {
        text += step_over(text, &width);
        columns += width;
    }
    return columns;
}

size_t weft__text_fit(const char *text, size_t columns) {
    size_t used = 0, at = 0, width;
    while (text[at]) {
        size_t len = step_over(text + at, &width);
        if (used + width > columns)
            break;
        used += width;
        at += len;
    }
    return at;
}
