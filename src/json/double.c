/* A double as the shortest text that reads back the same, in the form of ECMAScript's Number::toString.
 *
 * The digits come from Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles", 2020): the decimals that round
 * to a double lie in an interval around it, and one table of powers of ten scales that interval so that it contains at most
 * a few integers; the shortest, and of those the closest, is the answer. All arithmetic is in integers and exact, so the
 * result does not depend on the locale, the rounding mode or the C library. */
#include <stdbool.h>
#include <string.h>

#include "pow10.h"
#include "write.h"

#define MANTISSA_BITS 52
#define SIGN_BIT (UINT64_C(1) << 63)
#define HIDDEN_BIT (UINT64_C(1) << MANTISSA_BITS)
#define EXPONENT_MASK 0x7FF
#define EXPONENT_BIAS (1023 + MANTISSA_BITS)

#define MAX_DIGITS 20 /* of a uint64_t; the shortest text of a double has at most 17 */
#define MAX_PLAIN 21  /* integers up to 10^21 are written without an exponent */
#define MAX_ZEROS 6   /* and fractions down to 10^-6 */

struct decimal {
    uint64_t digits;
    int exponent; /* the value is digits * 10^exponent */
};

/* floor(log10(2^e)), and floor(log10(3/4 * 2^e)); exact for every exponent of a double. */
static int floor_log10_pow2(int e, bool three_quarters) {
    return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

/* floor(log2(10^e)) */
static int floor_log2_pow10(int e) {
    return (e * 1741647) >> 19;
}

/* The upper half of a 128-bit product; *ret_low gets the lower one. */
static uint64_t multiply_wide(uint64_t a, uint64_t b, uint64_t *ret_low) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide) a * b;
    *ret_low = (uint64_t) product;
    return (uint64_t) (product >> 64);
#else
    uint64_t a0 = (uint32_t) a, a1 = a >> 32, b0 = (uint32_t) b, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t) middle;
    *ret_low = other << 32 | (uint32_t) low;
    return a1 * b1 + (middle >> 32) + (other >> 32);
#endif
}

/* power * factor / 2^128. A remainder, as far as it is not the table's own rounding, is kept in the lowest bit, so that
 * "below", "equal" and "above" a quarter can still be told apart. */
static uint64_t round_to_odd(weft_pow10 power, uint64_t factor) {
    uint64_t low, middle, carry = multiply_wide(power.low, factor, &low);
    uint64_t high = multiply_wide(power.high, factor, &middle);
    middle += carry;
    high += middle < carry;
    return high | (middle > 1);
}

/* Whether the decimal below or the one above (both in quarters, apart by step) is the only one inside the interval; then
 * that one, else 0. Zero is never inside. */
static uint64_t only_inside(uint64_t below, uint64_t step, uint64_t lower, uint64_t upper) {
    bool below_fits = lower <= below, above_fits = below + step <= upper;
    if (below_fits == above_fits)
        return 0;
    return below_fits ? below : below + step;
}

/* value is mantissa * 2^exponent; uneven says that the double below is only half as far away as the one above. */
static struct decimal shortest_decimal(uint64_t mantissa, int exponent, bool uneven) {
    int k = floor_log10_pow2(exponent, uneven);
    int shift = exponent + floor_log2_pow10(-k) + 1;
    weft_pow10 power = weft__pow10[-k - WEFT_POW10_MIN];

    /* The value and its neighbours' midpoints, in quarters of 10^k. A midpoint itself rounds to the even mantissa. */
    uint64_t odd = mantissa & 1;
    uint64_t lower = round_to_odd(power, (4 * mantissa - 2 + uneven) << shift) + odd;
    uint64_t value = round_to_odd(power, (4 * mantissa) << shift);
    uint64_t upper = round_to_odd(power, (4 * mantissa + 2) << shift) - odd;

    uint64_t digits = value / 4, found = 0;
    if (digits >= 10)
        found = only_inside(digits / 10 * 40, 40, lower, upper);
    if (found)
        return (struct decimal){found / 40, k + 1};
    found = only_inside(digits * 4, 4, lower, upper);
    if (found)
        return (struct decimal){found / 4, k};
    /* Both or neither lie inside: the closer one, and the even one when the value is in the middle. */
    uint64_t middle = 4 * digits + 2;
    return (struct decimal){digits + (value > middle || (value == middle && (digits & 1))), k};
}

static struct decimal decimal_of_bits(uint64_t bits) {
    uint64_t fraction = bits & (HIDDEN_BIT - 1);
    int exponent = (int) (bits >> MANTISSA_BITS & EXPONENT_MASK);
    if (exponent == 0)
        return shortest_decimal(fraction, 1 - EXPONENT_BIAS, false);
    uint64_t mantissa = fraction | HIDDEN_BIT;
    int shift = EXPONENT_BIAS - exponent;
    /* An integer below 2^53 is its own shortest text. */
    if (shift >= 0 && shift <= MANTISSA_BITS && (mantissa & ((UINT64_C(1) << shift) - 1)) == 0)
        return (struct decimal){mantissa >> shift, 0};
    return shortest_decimal(mantissa, -shift, fraction == 0 && exponent > 1);
}

/* The digits, without zeros at either end, so that they end at end; the first one. */
static char *print_digits(struct decimal *decimal, char *end) {
    while (decimal->digits % 10 == 0) {
        decimal->digits /= 10;
        decimal->exponent++;
    }
    uint64_t rest = decimal->digits;
    do {
        *--end = (char) ('0' + rest % 10);
        rest /= 10;
    } while (rest);
    return end;
}

static char *put_chars(char *out, const char *text, int len) {
    memcpy(out, text, (size_t) len);
    return out + len;
}

static char *put_zeros(char *out, int count) {
    memset(out, '0', (size_t) count);
    return out + count;
}

static char *put_exponent(char *out, int exponent) {
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    unsigned rest = (unsigned) (exponent < 0 ? -exponent : exponent);
    if (rest >= 100)
        *out++ = (char) ('0' + rest / 100);
    if (rest >= 10)
        *out++ = (char) ('0' + rest / 10 % 10);
    *out++ = (char) ('0' + rest % 10);
    return out;
}

/* ECMA-262, Number::toString, steps 6 to 10; point is its n: where the decimal point stands, counted from the first digit.
 */
static char *put_decimal(char *out, const char *digits, int count, int point) {
    if (count <= point && point <= MAX_PLAIN)
        return put_zeros(put_chars(out, digits, count), point - count);
    if (0 < point && point <= MAX_PLAIN) {
        out = put_chars(out, digits, point);
        *out++ = '.';
        return put_chars(out, digits + point, count - point);
    }
    if (-MAX_ZEROS < point && point <= 0)
        return put_chars(put_zeros(put_chars(out, "0.", 2), -point), digits, count);
    *out++ = digits[0];
    if (count > 1) {
        *out++ = '.';
        out = put_chars(out, digits + 1, count - 1);
    }
    return put_exponent(out, point - 1);
}

size_t weft__print_double(double d, char *ret) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    char *out = ret, digits[MAX_DIGITS], *end = digits + sizeof digits;
    if (bits << 1 == 0) { /* both zeros print alike */
        *out = '0';
        return 1;
    }
    if (bits >> 63)
        *out++ = '-';
    struct decimal decimal = decimal_of_bits(bits & ~SIGN_BIT);
    char *first = print_digits(&decimal, end);
    int count = (int) (end - first);
    out = put_decimal(out, first, count, count + decimal.exponent);
    return (size_t) (out - ret);
}
