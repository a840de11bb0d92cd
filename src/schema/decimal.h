/* Numbers as their text says them, of any length: compared and divided exactly, never by way of a double. */
#ifndef WEFT_DECIMAL_H
#define WEFT_DECIMAL_H

#include <weft/base.h>

/* The value is digits * 10^exponent, with no zeros at either end of the digits; they lie in the text, maybe with a point
 * among them. */
typedef struct schema_decimal {
    const char *first; /* digit */
    size_t count;      /* of digits; 0 for zero */
    int64_t exponent;
    bool negative;
    bool quick; /* it is an integer of at most 18 digits, written without point and exponent */
    int64_t i;  /* then */
} schema_decimal;

/* A number that the scanner has accepted. text must live as long as the decimal. */
void weft__decimal_read(const char *text, size_t len, schema_decimal *ret);

/* <0, 0 or >0. */
int weft__decimal_compare(const schema_decimal *a, const schema_decimal *b);

/* 1.0 and 1e3 are. */
static inline bool weft__decimal_is_integer(const schema_decimal *a) {
    return a->count == 0 || a->exponent >= 0;
}

/* A divisor can have this many digits, so that dividing takes time in proportion to the number that is divided. */
#define WEFT_DIVISOR_DIGITS 64

/* Is a a multiple of b, which is above zero and has at most WEFT_DIVISOR_DIGITS digits? */
bool weft__decimal_is_multiple(const schema_decimal *a, const schema_decimal *b);

/* A short integer at p, as nearly every number is: true, its value, and the byte behind it. */
static inline bool weft__quick_int(const char *p, int64_t *ret, const char **ret_end) {
    bool negative = *p == '-';
    p += negative;
    const char *digits = p;
    uint64_t value = 0;
    while ((unsigned char) (*p - '0') < 10 && p - digits < 18)
        value = value * 10 + (uint64_t) (*p++ - '0');
    if ((unsigned char) (*p - '0') < 10 || *p == '.' || (*p | 0x20) == 'e')
        return false;
    *ret = negative ? -(int64_t) value : (int64_t) value;
    *ret_end = p;
    return true;
}

#endif
