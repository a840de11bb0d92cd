/* Numbers in both directions: the shortest text of a double, the nearest double of a text, integers without loss. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "number.h"
#include "pow10.h"
#include "write.h"

static double from_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t to_bits(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* A fixed sequence of random-looking words (xorshift64), the same in every run. */
static uint64_t next_word(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- printing ---- */

TEST(print) {
    static const struct {
        double d;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1, "-1"},
        {0.1, "0.1"},
        {0.5, "0.5"},
        {1.5, "1.5"},
        {123.456, "123.456"},
        {1e20, "100000000000000000000"},
        {123456789012345680000.0, "123456789012345680000"},
        {999999999999999900000.0, "999999999999999900000"},
        {1e21, "1e+21"},
        {1.5e21, "1.5e+21"},
        {1e-6, "0.000001"},
        {1.5e-6, "0.0000015"},
        {9.999e-7, "9.999e-7"},
        {1e-7, "1e-7"},
        {-1e-7, "-1e-7"},
        {1e100, "1e+100"},
        {1e-100, "1e-100"},
        {5e-324, "5e-324"},
        {-5e-324, "-5e-324"},
        {1e-323, "1e-323"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-1.7976931348623157e308, "-1.7976931348623157e+308"},
        {9007199254740991, "9007199254740991"},
        {9007199254740992, "9007199254740992"},
        {9007199254740994, "9007199254740994"},
        {-9007199254740992, "-9007199254740992"},
        {295147905179352830000.0, "295147905179352830000"},
        {0.30000000000000004, "0.30000000000000004"},
        {5.684341886080802e-14, "5.684341886080802e-14"}, /* 2^-44: the interval is uneven */
        {9.5367431640625e-7, "9.5367431640625e-7"},
        {2.98023223876953125e-8, "2.9802322387695312e-8"},
        {4.35, "4.35"},
        {333333333.33333329, "333333333.3333333"},
        {1e23, "1e+23"},
        {1.0000000000000001e23, "1.0000000000000001e+23"},
        {0.002, "0.002"},
        {4.5, "4.5"},
        {4294967296, "4294967296"},
        {1234567890123456, "1234567890123456"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        test_row(rows[i].text);
        size_t len = weft__print_double(rows[i].d, text);
        CHECK_TEXT(text, len, rows[i].text);
    }
}

TEST(print_powers_of_two) {
    long wrong = 0;
    for (uint64_t exponent = 0; exponent < 0x7FF; exponent++)
        for (int step = -1; step <= 1; step++) {
            uint64_t bits = (exponent << 52) + (uint64_t) step;
            if (!isfinite(from_bits(bits)) || bits >> 63)
                continue;
            char text[33];
            text[weft__print_double(from_bits(bits), text)] = '\0';
            wrong += to_bits(strtod(text, NULL)) != bits;
        }
    CHECK_INT(wrong, 0);
}

/* The significant digits of a text alone, without zeros at either end; how many. */
static int digits_of(const char *text, char *ret) {
    int count = 0, last = 0;
    for (const char *p = text; *p && *p != 'e'; p++) {
        if (*p < '0' || *p > '9' || (*p == '0' && count == 0))
            continue;
        ret[count++] = *p;
        if (*p != '0')
            last = count;
    }
    ret[last] = '\0';
    return last;
}

/* It reads back; no shorter text does; and if the correctly rounded text of the same length does, it is that one. */
static bool is_shortest(double d) {
    char text[33], rounded[64], digits[64], rounded_digits[64];
    text[weft__print_double(d, text)] = '\0';
    if (strtod(text, NULL) != d)
        return false;
    int count = digits_of(text, digits);
    snprintf(rounded, sizeof rounded, "%.*e", count - 1, d);
    digits_of(rounded, rounded_digits);
    if (strtod(rounded, NULL) == d && strcmp(digits, rounded_digits) != 0)
        return false;
    if (count == 1)
        return true;
    snprintf(rounded, sizeof rounded, "%.*e", count - 2, d);
    return strtod(rounded, NULL) != d;
}

TEST(print_random) {
    uint64_t state = 0x9E3779B97F4A7C15;
    long wrong = 0;
    for (int i = 0; i < 100000; i++) {
        double any = from_bits(next_word(&state)), usual = (double) (int64_t) (next_word(&state) % 2000000) / 1000 - 1000;
        if (isfinite(any) && any != 0)
            wrong += !is_shortest(any);
        if (usual != 0)
            wrong += !is_shortest(usual);
    }
    CHECK_INT(wrong, 0);
}

/* The 100,000 first numbers of RFC 8785 appendix B's generator. */
TEST(print_es6_vectors) {
    size_t len;
    char *data = test_data("jcs-rfc8785/es6numbers-100k.txt", &len);
    if (!data) {
        test_skip("es6numbers-100k.txt is not there");
        return;
    }
    long count = 0, wrong = 0;
    for (char *line = strtok(data, "\n"); line; line = strtok(NULL, "\n")) {
        char *comma = strchr(line, ','), text[33];
        if (!CHECK(comma))
            break;
        double d = from_bits(strtoull(line, NULL, 16)), back;
        text[weft__print_double(d, text)] = '\0';
        count++;
        if (strcmp(text, comma + 1) != 0 && wrong++ < 5)
            printf("  %s: is %s\n", line, text);
        /* And read back. Both zeros print as 0. */
        wrong += weft__number_double(text, strlen(text), &back) < 0 || back != d;
    }
    CHECK_INT(count, 100000);
    CHECK_INT(wrong, 0);
    free(data);
}

/* ---- the table ---- */

/* Just enough arithmetic to derive it again: a number of up to 1600 bits, the lowest word first. */
struct big {
    uint32_t words[50];
};

static void big_multiply(struct big *big, uint32_t factor) {
    uint64_t carry = 0;
    for (size_t i = 0; i < 50; i++) {
        carry += (uint64_t) big->words[i] * factor;
        big->words[i] = (uint32_t) carry;
        carry >>= 32;
    }
}

static void big_scale(struct big *big, uint32_t base, int exponent) {
    for (int i = 0; i < exponent; i++)
        big_multiply(big, base);
}

static int big_compare(const struct big *a, const struct big *b) {
    for (size_t i = 50; i-- > 0;)
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

static int at_least(int n, int least) {
    return n > least ? n : least;
}

/* row * 2^e against 10^k, both multiplied until they are integers. */
static int compare_row(uint64_t high, uint64_t low, int k, int e) {
    struct big row = {{(uint32_t) low, (uint32_t) (low >> 32), (uint32_t) high, (uint32_t) (high >> 32)}}, power = {{1}};
    big_scale(&row, 2, at_least(e, 0));
    big_scale(&row, 10, at_least(-k, 0));
    big_scale(&power, 10, at_least(k, 0));
    big_scale(&power, 2, at_least(-e, 0));
    return big_compare(&row, &power);
}

TEST(powers_of_ten) {
    for (int k = WEFT_POW10_MIN; k <= WEFT_POW10_MAX; k++) {
        weft_pow10 row = weft__pow10[k - WEFT_POW10_MIN];
        int e = (k * 1741647 >> 19) - 127;
        CHECK(row.high >> 63);
        CHECK(compare_row(row.high, row.low, k, e) >= 0);
        CHECK(compare_row(row.low ? row.high : row.high - 1, row.low - 1, k, e) < 0);
    }
}

/* ---- reading ---- */

TEST(read_int) {
    static const struct {
        const char *text;
        int r;
        int64_t i;
    } rows[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"7", 0, 7},
        {"-7", 0, -7},
        {"123456789012345678", 0, 123456789012345678},
        {"1234567890123456789", 0, 1234567890123456789},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -ERANGE, 0},
        {"-9223372036854775809", -ERANGE, 0},
        {"9999999999999999999", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"100000000000000000000000000", -ERANGE, 0},
        {"1.0", 0, 1},
        {"-1.000", 0, -1},
        {"1e3", 0, 1000},
        {"1E+3", 0, 1000},
        {"1.5e1", 0, 15},
        {"1200e-2", 0, 12},
        {"0.00012e5", 0, 12},
        {"9.223372036854775807e18", 0, INT64_MAX},
        {"-9.223372036854775808e18", 0, INT64_MIN},
        {"9.223372036854775808e18", -ERANGE, 0},
        {"1e18", 0, 1000000000000000000},
        {"1e19", -ERANGE, 0},
        {"1e999999999999999999999", -ERANGE, 0},
        {"0e999999999999999999999", 0, 0},
        {"0.000e-999999999999999999999", 0, 0},
        {"1e-1", -ERANGE, 0},
        {"1.5", -ERANGE, 0},
        {"0.1", -ERANGE, 0},
        {"1.00000000000000000000000000000", 0, 1},
        {"1.00000000000000000000000000001", -ERANGE, 0},
        {"12345678901234567890e-1", 0, 1234567890123456789},
        {"10000000000000000000000000e-25", 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t is = 42;
        test_row(rows[i].text);
        CHECK_INT(weft__number_int(rows[i].text, strlen(rows[i].text), &is), rows[i].r);
        CHECK_INT(is, rows[i].r < 0 ? 42 : rows[i].i);
    }
}

TEST(read_double) {
    static const struct {
        const char *text;
        double d;
    } rows[] = {
        {"0", 0},
        {"-0", -0.0},
        {"0.0e5", 0},
        {"1", 1},
        {"-1.5", -1.5},
        {"0.1", 0.1},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"123456789e-30", 123456789e-30},
        {"9007199254740993", 9007199254740992},
        {"9007199254740993.0000000000000000000000000000000000001", 9007199254740994},
        {"9007199254740995", 9007199254740996},
        {"4.9406564584124654e-324", 5e-324},
        {"2.4703282292062327e-324", 0},      /* just below half of the smallest */
        {"2.4703282292062328e-324", 5e-324}, /* just above */
        {"1e-400", 0},
        {"1e-99999999999999999999", 0},
        {"0e99999999999999999999", 0},
        {"2.2250738585072011e-308", 2.2250738585072011e-308},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"1.7976931348623158e308", 1.7976931348623157e308},
        {"179769313486231570000e288", 1.7976931348623157e308},
        {"0.000000000000000000000000000000000000001e39", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double is = 42;
        test_row(rows[i].text);
        CHECK_INT(weft__number_double(rows[i].text, strlen(rows[i].text), &is), 0);
        CHECK_INT(to_bits(is), to_bits(rows[i].d));
    }
}

TEST(read_double_out_of_range) {
    static const char *const rows[] = {"1e309", "-1e309", "1.7976931348623159e308", "1e99999999999999999999",
                                       "99999999999999999999e300"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double is = 42;
        test_row(rows[i]);
        CHECK_INT(weft__number_double(rows[i], strlen(rows[i]), &is), -ERANGE);
        CHECK(is == 42);
    }
}

/* Digits behind any buffer still decide which way a halfway point rounds. */
TEST(read_many_digits) {
    enum { ZEROS = 5000 };
    char text[ZEROS + 64];
    char *p = stpcpy(text, "9007199254740993.");
    memset(p, '0', ZEROS);
    strcpy(p + ZEROS, "1");
    double d;
    CHECK_INT(weft__number_double(text, strlen(text), &d), 0);
    CHECK(d == 9007199254740994);
    p[ZEROS] = '0';
    CHECK_INT(weft__number_double(text, strlen(text), &d), 0);
    CHECK(d == 9007199254740992);

    /* 1 followed by zeros in front of the point, taken back by the exponent. */
    memset(text, '0', ZEROS);
    text[0] = '1';
    sprintf(text + ZEROS, "e-%d", ZEROS - 1);
    CHECK_INT(weft__number_double(text, strlen(text), &d), 0);
    CHECK(d == 1);
    int64_t i;
    CHECK_INT(weft__number_int(text, strlen(text), &i), 0);
    CHECK_INT(i, 1);
}

/* The halfway point with the most digits: between the two largest subnormals' neighbours, 2^-1074 apart. */
TEST(read_longest_halfway) {
    char text[1200];
    double below = from_bits(0x000FFFFFFFFFFFFF);
    snprintf(text, sizeof text, "%.1100f", below);
    double half = ldexp(1, -1074);
    char step[1200];
    snprintf(step, sizeof step, "%.1100f", half);
    /* text += step / 2, in decimal: both have a finite expansion of at most 1075 places. */
    int carry = 0;
    char halved[1200];
    int rest = 0;
    strcpy(halved, step);
    for (char *p = halved; *p; p++)
        if (*p != '.') {
            int digit = rest * 10 + (*p - '0');
            *p = (char) ('0' + digit / 2);
            rest = digit % 2;
        }
    for (size_t i = strlen(text); i-- > 0;)
        if (text[i] != '.') {
            int sum = text[i] - '0' + halved[i] - '0' + carry;
            text[i] = (char) ('0' + sum % 10);
            carry = sum / 10;
        }
    double d;
    CHECK_INT(weft__number_double(text, strlen(text), &d), 0);
    CHECK_INT(to_bits(d), 0x0010000000000000); /* the tie goes to the even one, above */
    text[strlen(text) - 1]++;
    CHECK_INT(weft__number_double(text, strlen(text), &d), 0);
    CHECK_INT(to_bits(d), 0x0010000000000000);
    /* One digit less somewhere behind is below the tie. */
    char *last = text + strlen(text) - 1;
    *last = '0';
    while (*last == '0')
        last--;
    (*last)--;
    CHECK_INT(weft__number_double(text, strlen(text), &d), 0);
    CHECK_INT(to_bits(d), 0x000FFFFFFFFFFFFF);
}

TEST(read_random) {
    uint64_t state = 0xD1B54A32D192ED03;
    long wrong = 0;
    for (int i = 0; i < 100000; i++) {
        char text[64];
        double d, want = from_bits(next_word(&state));
        if (!isfinite(want))
            continue;
        snprintf(text, sizeof text, "%.*g", (int) (next_word(&state) % 25) + 1, want);
        want = strtod(text, NULL);
        if (isfinite(want))
            wrong += weft__number_double(text, strlen(text), &d) < 0 || to_bits(d) != to_bits(want);
    }
    CHECK_INT(wrong, 0);
}

TEST(a_decimal_comma_changes_nothing) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "fr_FR"};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof names / sizeof names[0]; i++)
        found = setlocale(LC_ALL, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0;
    if (!found) {
        test_skip("no locale with a decimal comma is installed");
        return;
    }
    char text[32];
    double d = 0;
    CHECK_TEXT(text, weft__print_double(1.5, text), "1.5");
    CHECK_INT(weft__number_double("1.00000000000000000000001", 25, &d), 0);
    CHECK(d == 1);
    CHECK_INT(weft__number_double("0.12345678901234567", 19, &d), 0);
    CHECK_TEXT(text, weft__print_double(d, text), "0.12345678901234566");
    setlocale(LC_ALL, "C");
}

TEST_MAIN(CASE(print) CASE(print_powers_of_two) CASE(print_random) CASE(print_es6_vectors) CASE(powers_of_ten) CASE(read_int)
              CASE(read_double) CASE(read_double_out_of_range) CASE(read_many_digits) CASE(read_longest_halfway)
                  CASE(read_random) CASE(a_decimal_comma_changes_nothing))
