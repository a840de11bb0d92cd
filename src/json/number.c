/* The value of a number's text. Integers are read exactly and never by way of a double.
 *
 * Doubles: up to 2^53 and with a small power of ten, one multiplication or division of exact operands rounds once and is
 * right (Clinger's fast path). Everything else goes to strtod(), which is exact, but expects the locale's decimal point. So
 * it is given a text without one: "123.456e5" is handed over as "123456e2", which no locale reads differently. */
#include "number.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The point halfway between two doubles has fewer than 770 significant digits, so texts that go on behind this many round as
 * if only one more digit followed. */
#define MAX_DIGITS 800
/* With so many digits, exponents beyond this are zero or infinite; also far from any overflow. */
#define MAX_EXPONENT 9999
/* Digits that always fit into a uint64_t. */
#define WORD_DIGITS 19

/* The value is digits * 10^exponent; no zeros at either end; count is 0 for zero. */
struct decimal {
    int64_t exponent;
    int count;
    bool negative;
    char digits[MAX_DIGITS];
};

static bool is_digit(char c) {
    return (unsigned char) (c - '0') < 10;
}

/* One digit in front of the point or behind it. Zeros in front of the first other digit are nothing but scale. */
static void add_digit(struct decimal *decimal, char digit, bool fraction) {
    decimal->exponent -= fraction;
    if (digit == '0' && decimal->count == 0)
        return;
    if (decimal->count < MAX_DIGITS) {
        decimal->digits[decimal->count++] = digit;
        return;
    }
    decimal->exponent++;
    if (digit != '0')
        decimal->digits[MAX_DIGITS - 1] |= 1; /* a zero becomes a one; no other digit can be a halfway point's last */
}

static int64_t read_exponent(const char *p, const char *end) {
    bool negative = *p == '-';
    int64_t value = 0;
    for (p += *p == '-' || *p == '+'; p < end; p++)
        if (value < INT64_MAX / 100)
            value = value * 10 + (*p - '0');
    return negative ? -value : value;
}

static void split_digits(const char *p, size_t len, struct decimal *ret) {
    const char *end = p + len;
    ret->exponent = 0;
    ret->count = 0;
    ret->negative = *p == '-';
    p += ret->negative;
    for (; p < end && is_digit(*p); p++)
        add_digit(ret, *p, false);
    if (p < end && *p == '.')
        for (p++; p < end && is_digit(*p); p++)
            add_digit(ret, *p, true);
    if (p < end)
        ret->exponent += read_exponent(p + 1, end);
    for (; ret->count && ret->digits[ret->count - 1] == '0'; ret->count--)
        ret->exponent++;
}

static uint64_t to_word(const struct decimal *decimal) {
    uint64_t value = 0;
    for (int i = 0; i < decimal->count; i++)
        value = value * 10 + (uint64_t) (decimal->digits[i] - '0');
    return value;
}

static int to_int64(uint64_t magnitude, bool negative, int64_t *ret) {
    if (magnitude > (uint64_t) INT64_MAX + negative)
        return -ERANGE;
    *ret = negative ? (int64_t) -magnitude : (int64_t) magnitude;
    return 0;
}

/* A short run of digits and nothing else, as nearly every number in a message is. 1 when it was one. */
static int read_short_int(const char *text, size_t len, uint64_t *ret) {
    uint64_t value = 0;
    if (len >= WORD_DIGITS)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return 0;
        value = value * 10 + (uint64_t) (text[i] - '0');
    }
    *ret = value;
    return 1;
}

int weft__number_int(const char *text, size_t len, int64_t *ret) {
    bool negative = *text == '-';
    uint64_t value;
    if (read_short_int(text + negative, len - negative, &value))
        return to_int64(value, negative, ret);

    struct decimal decimal;
    split_digits(text, len, &decimal);
    if (decimal.count == 0)
        return to_int64(0, false, ret);
    /* Without zeros at its end, a negative exponent is a fraction. */
    if (decimal.exponent < 0 || decimal.count + decimal.exponent > WORD_DIGITS)
        return -ERANGE;
    value = to_word(&decimal);
    while (decimal.exponent-- > 0)
        value *= 10;
    return to_int64(value, negative, ret);
}

/* Exact operands, one rounding. Only where doubles are computed as doubles. 1 when it could be done. */
static int read_exact(const struct decimal *decimal, double *ret) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t word = decimal->count <= WORD_DIGITS ? to_word(decimal) : UINT64_MAX;
    if (FLT_EVAL_METHOD != 0 || word > UINT64_C(1) << DBL_MANT_DIG || decimal->exponent < -22 || decimal->exponent > 22)
        return 0;
    *ret = decimal->exponent < 0 ? (double) word / powers[-decimal->exponent] : (double) word * powers[decimal->exponent];
    return 1;
}

static double read_any(struct decimal *decimal) {
    char text[MAX_DIGITS + 16];
    int64_t exponent = decimal->exponent;
    if (exponent > MAX_EXPONENT)
        exponent = MAX_EXPONENT;
    if (exponent < -MAX_EXPONENT)
        exponent = -MAX_EXPONENT;
    snprintf(text, sizeof text, "%.*se%d", decimal->count, decimal->digits, (int) exponent);
    return strtod(text, NULL);
}

int weft__number_double(const char *text, size_t len, double *ret) {
    struct decimal decimal;
    double value = 0;
    split_digits(text, len, &decimal);
    if (decimal.count > 0 && !read_exact(&decimal, &value))
        value = read_any(&decimal);
    if (isinf(value))
        return -ERANGE;
    *ret = decimal.negative ? -value : value;
    return 0;
}
