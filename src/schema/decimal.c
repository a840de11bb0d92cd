/* Exact decimals. A text is read as digits and an exponent; two of them are compared by their sign, by the place of the
 * first digit, and digit by digit. */
#include "decimal.h"

#include <string.h>

static bool is_digit(char c) {
    return (unsigned char) (c - '0') < 10;
}

/* Beyond any exponent that could matter it stops growing, far from an overflow. */
static int64_t read_exponent(const char *p, const char *end) {
    bool negative = *p == '-';
    int64_t value = 0;
    for (p += *p == '-' || *p == '+'; p < end; p++)
        if (value < INT64_MAX / 100)
            value = value * 10 + (*p - '0');
    return negative ? -value : value;
}

static void read_quick(const char *text, size_t len, schema_decimal *ret) {
    uint64_t value = 0;
    size_t i = ret->negative;
    ret->quick = false;
    if (len - i > 18)
        return;
    for (; i < len; i++) {
        if (!is_digit(text[i]))
            return;
        value = value * 10 + (uint64_t) (text[i] - '0');
    }
    ret->quick = true;
    ret->i = ret->negative ? -(int64_t) value : (int64_t) value;
}

void weft__decimal_read(const char *text, size_t len, schema_decimal *ret) {
    const char *p = text, *end = text + len, *first = NULL;
    size_t count = 0, kept = 0; /* digits from the first that is no zero; up to the last that is none */
    int64_t exponent = 0;       /* of the last digit */
    bool fraction = false;
    ret->negative = *p == '-';
    read_quick(text, len, ret);
    for (p += ret->negative; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        exponent -= fraction;
        if (*p != '0' && !first)
            first = p;
        count += first != NULL;
        if (*p != '0')
            kept = count;
    }
    if (p < end)
        exponent += read_exponent(p + 1, end);
    ret->first = first;
    ret->count = kept;
    ret->exponent = exponent + (int64_t) (count - kept);
}

/* The digit at *p, which moves behind it and a point. */
static int take_digit(const char **p) {
    if (**p == '.')
        (*p)++;
    return *(*p)++ - '0';
}

static int compare_digits(const schema_decimal *a, const schema_decimal *b) {
    const char *p = a->first, *q = b->first;
    size_t most = a->count > b->count ? a->count : b->count;
    for (size_t i = 0; i < most; i++) {
        int x = i < a->count ? take_digit(&p) : 0, y = i < b->count ? take_digit(&q) : 0;
        if (x != y)
            return x - y;
    }
    return 0;
}

int weft__decimal_compare(const schema_decimal *a, const schema_decimal *b) {
    if (a->quick && b->quick)
        return (a->i > b->i) - (a->i < b->i);
    int a_sign = a->count == 0 ? 0 : a->negative ? -1 : 1, b_sign = b->count == 0 ? 0 : b->negative ? -1 : 1;
    if (a_sign != b_sign || a_sign == 0)
        return a_sign - b_sign;
    int64_t a_place = a->exponent + (int64_t) a->count, b_place = b->exponent + (int64_t) b->count;
    int order = a_place != b_place ? (a_place > b_place) - (a_place < b_place) : compare_digits(a, b);
    return a_sign * order;
}

/* ---- dividing ---- */

/* With at most this many digits a remainder times ten, and one more, fits into 64 bits. */
#define WORD_DIGITS 18

static bool word_divides(const schema_decimal *a, size_t zeros, const schema_decimal *b) {
    const char *p = b->first;
    uint64_t divisor = 0, rest = 0;
    for (size_t i = 0; i < b->count; i++)
        divisor = divisor * 10 + (uint64_t) take_digit(&p);
    p = a->first;
    for (size_t i = 0; i < a->count; i++)
        rest = (rest * 10 + (uint64_t) take_digit(&p)) % divisor;
    for (size_t i = 0; i < zeros && rest; i++)
        rest = rest * 10 % divisor;
    return rest == 0;
}

/* A remainder as digits, the highest first, one place wider than the divisor. */
struct wide {
    int digits[WEFT_DIVISOR_DIGITS + 1];
    size_t count;
};

static bool is_below(const struct wide *a, const struct wide *b) {
    for (size_t i = 0; i < a->count; i++)
        if (a->digits[i] != b->digits[i])
            return a->digits[i] < b->digits[i];
    return false;
}

static void subtract(struct wide *a, const struct wide *b) {
    int borrow = 0;
    for (size_t i = a->count; i-- > 0;) {
        int d = a->digits[i] - b->digits[i] - borrow;
        borrow = d < 0;
        a->digits[i] = d + 10 * borrow;
    }
}

static void append_digit(struct wide *rest, int digit, const struct wide *divisor) {
    memmove(rest->digits, rest->digits + 1, (rest->count - 1) * sizeof rest->digits[0]);
    rest->digits[rest->count - 1] = digit;
    while (!is_below(rest, divisor))
        subtract(rest, divisor);
}

static bool wide_divides(const schema_decimal *a, size_t zeros, const schema_decimal *b) {
    struct wide divisor = {.count = b->count + 1}, rest = {.count = b->count + 1};
    const char *p = b->first;
    for (size_t i = 1; i < divisor.count; i++)
        divisor.digits[i] = take_digit(&p);
    p = a->first;
    for (size_t i = 0; i < a->count; i++)
        append_digit(&rest, take_digit(&p), &divisor);
    for (size_t i = 0; i < zeros; i++)
        append_digit(&rest, 0, &divisor);
    for (size_t i = 0; i < rest.count; i++)
        if (rest.digits[i])
            return false;
    return true;
}

bool weft__decimal_is_multiple(const schema_decimal *a, const schema_decimal *b) {
    if (a->count == 0)
        return true;
    /* a's digits do not end in zero, so ten does not divide them. */
    if (a->exponent < b->exponent)
        return false;
    /* More zeros than the divisor can have factors 2 or 5 change nothing: at most log2(10) of them for each digit. */
    uint64_t zeros = (uint64_t) (a->exponent - b->exponent), most = 4 * (uint64_t) b->count;
    if (zeros > most)
        zeros = most;
    return b->count <= WORD_DIGITS ? word_divides(a, (size_t) zeros, b) : wide_divides(a, (size_t) zeros, b);
}
