/* Strings read 32 bytes at a time say what strings read the ordinary way say: of every text, where it ends, whether it has
 * escapes, or that it is none. Texts are made at random from pieces that matter, and then broken. */
#include <stdlib.h>

#include "buf.h"
#include "harness.h"
#include "scan.h"
#include "scan_wide.h"

#ifdef WEFT_SCAN_WIDE
#define ROUNDS 300000
#define LONGEST 200

static uint64_t state = 88172645463325252u;

/* xorshift: the same texts on every run. */
static size_t below(size_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t) (state % n);
}

/* Sequences at the edges of each rule, right and wrong. */
static const char *const pieces[] = {
    "a",
    "bc def ",
    "0123456789abcdefghijklmnopqrstuvwxyz",
    "\\n",
    "\\\"",
    "\\\\",
    "\\u00e9",
    "\\ud800",
    "\\x",
    "\\u12g4",
    "\\",
    "\x7f",
    "\xC3\xA9",
    "\xC2\x80",
    "\xC1\xBF",
    "\xC0\x80",
    "\xE7\xBB\x87",
    "\xE0\xA0\x80",
    "\xE0\x9F\xBF",
    "\xED\x9F\xBF",
    "\xED\xA0\x80",
    "\xEF\xBF\xBF",
    "\xF0\x9F\x98\x80",
    "\xF0\x90\x80\x80",
    "\xF0\x8F\xBF\xBF",
    "\xF4\x8F\xBF\xBF",
    "\xF4\x90\x80\x80",
    "\xF5\x80\x80\x80",
    "\x80",
    "\xBF",
    "\xE7\xBB",
    "\xF0\x9F\x98",
    "\xC3",
    "\xFF",
    "\x1f",
    "\n",
    "\t",
    " ",
};

static size_t make_text(char *text, bool right) {
    size_t len = 0, most = 1 + below(LONGEST);
    for (;;) {
        const char *piece = pieces[below(right ? 8 : sizeof pieces / sizeof pieces[0])];
        if (below(3) == 0)
            piece = below(2) ? "\xE7\xBB\x87\xE5\xB8\x83" : "plain text of some length, ";
        size_t n = strlen(piece);
        if (len + n > most)
            break;
        memcpy(text + len, piece, n);
        len += n;
    }
    if (below(4))
        text[len++] = '"';
    if (!right && len && below(3) == 0)
        text[below(len)] = (char) below(256);
    return len;
}
#endif

TEST(says_the_same) {
#ifdef WEFT_SCAN_WIDE
    static char text[LONGEST + 64 + WEFT_SLACK];
    size_t ended = 0, refused = 0, wrong = 0;
    if (!weft__has_avx2()) {
        test_skip("this machine has no AVX2");
        return;
    }
    for (int i = 0; i < ROUNDS && wrong < 5; i++) {
        size_t len = make_text(text, i % 2);
        memset(text + len, (int) below(2) * '"', WEFT_SLACK); /* what lies behind the NUL does not matter */
        text[len] = '\0';
        bool base_escaped = false, wide_escaped = false;
        const char *base = weft__scan_string_rest_base(text, &base_escaped);
        const char *wide = weft__scan_string_rest_avx2(text, &wide_escaped);
        if (base != wide || (base && base_escaped != wide_escaped) || weft__scan_string_rest_avx2(text, NULL) != base) {
            wrong++;
            fprintf(stderr, "round %d: base %td, wide %td of %zu: %s\n", i, base ? base - text : -1, wide ? wide - text : -1,
                    len, text);
        }
        ended += base != NULL;
        refused += base == NULL;
    }
    CHECK_INT(wrong, 0);
    CHECK(ended > ROUNDS / 10 && refused > ROUNDS / 10);
#else
    test_skip("built without");
#endif
}

/* Every sequence of two, three and four bytes that begins like UTF-8, at each place of a vector's end. */
TEST(every_sequence) {
#ifdef WEFT_SCAN_WIDE
    size_t wrong = 0;
    if (!weft__has_avx2()) {
        test_skip("this machine has no AVX2");
        return;
    }
    for (unsigned lead = 0x80; lead < 0x100; lead++)
        for (unsigned second = 0x70; second < 0xD0; second++)
            for (unsigned place = 26; place < 34; place++) {
                char text[64 + WEFT_SLACK] = {0};
                static const unsigned char tails[][3] = {
                    {'"'}, {0x80, '"'}, {0xBF, 0x80, '"'}, {0x80, 0x7F, '"'}, {0xC0, '"'}};
                for (size_t tail = 0; tail < 5; tail++) {
                    memset(text, 'x', place);
                    memset(text + 3, 0xC3, 1), memset(text + 4, 0xA9, 1); /* so that UTF-8 is what is being read */
                    text[place] = (char) lead;
                    text[place + 1] = (char) second;
                    memcpy(text + place + 2, tails[tail], 3);
                    bool escaped = false;
                    wrong += weft__scan_string_rest_base(text, &escaped) != weft__scan_string_rest_avx2(text, &escaped);
                }
            }
    CHECK_INT(wrong, 0);
#else
    test_skip("built without");
#endif
}

TEST_MAIN(CASE(says_the_same) CASE(every_sequence))
