/* What the WebSocket framings do to single bytes: masks, the masks' source, and UTF-8. Each against a slower and simpler
 * way. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "harness.h"
#include "mask.h"
#include "utf8_stream.h"

/* ---- masks ---- */

static void fill(unsigned char *data, size_t n, bool high) {
    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char) ((i * 131 + 7) & (high ? 0xFF : 0x7F));
}

TEST(every_length_at_every_address) {
    enum { MOST = 300, ROOM = MOST + 80 };
    unsigned char is[ROOM], want[ROOM], key[4] = {0x81, 0x02, 0xF3, 0x44};
    uint32_t mask;
    memcpy(&mask, key, 4);
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t at = 0; at < 17; at++) {
            bool high = false;
            fill(is, ROOM, true);
            fill(want, ROOM, true);
            for (size_t i = 0; i < n; i++) {
                want[at + i] ^= key[i % 4];
                high |= want[at + i] > 127;
            }
            CHECK_INT(weft__mask((char *) is + at, n, mask), high);
            CHECK(memcmp(is, want, ROOM) == 0);
        }
    }
}

TEST(one_high_byte_is_seen_wherever_it_is) {
    for (size_t n = 1; n <= 200; n++) {
        for (size_t at = 0; at < n; at++) {
            char data[200];
            memset(data, 'x', sizeof data);
            CHECK(!weft__mask(data, n, 0));
            data[at] = (char) 0x80;
            CHECK(weft__mask(data, n, 0));
        }
    }
}

TEST(a_mask_continues) {
    enum { LEN = 64 };
    unsigned char whole[LEN], parts[LEN];
    uint32_t mask = 0x12F45678;
    for (size_t cut = 0; cut <= LEN; cut++) {
        fill(whole, LEN, true);
        fill(parts, LEN, true);
        weft__mask((char *) whole, LEN, mask);
        weft__mask((char *) parts, cut, mask);
        weft__mask((char *) parts + cut, LEN - cut, weft__mask_turn(mask, cut));
        CHECK(memcmp(whole, parts, LEN) == 0);
    }
}

/* The masks are SipHash-2-4 of a counter: ask OpenSSL. */
TEST(masks_are_siphash) {
    weft_masks masks = {.key = 0x0123456789abcdef};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    if (!ctx) {
        EVP_MAC_free(mac);
        test_skip("this OpenSSL has no SipHash");
        return;
    }
    for (uint64_t count = 0; count < 100; count++) {
        unsigned char key[16], text[8], out[8];
        size_t len = 0, size = sizeof out;
        OSSL_PARAM params[] = {OSSL_PARAM_size_t(OSSL_MAC_PARAM_SIZE, &size), OSSL_PARAM_END};
        for (int i = 0; i < 8; i++) {
            key[i] = (unsigned char) (masks.key >> (8 * i));
            key[i + 8] = (unsigned char) ~key[i];
            text[i] = (unsigned char) (count >> (8 * i));
        }
        CHECK(EVP_MAC_init(ctx, key, sizeof key, params) && EVP_MAC_update(ctx, text, sizeof text) &&
              EVP_MAC_final(ctx, out, &len, sizeof out));
        uint32_t want = out[0] | (uint32_t) out[1] << 8 | (uint32_t) out[2] << 16 | (uint32_t) out[3] << 24;
        CHECK_INT(weft__mask_next(&masks), want);
    }
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
}

/* ---- UTF-8 ---- */

/* Decode by the definition: a bit pattern, then a range check. How many bytes the first code point takes; 0: invalid. */
static size_t decode(const unsigned char *p, size_t n) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (len == 0 || len > n)
        return 0;
    uint32_t code = len == 1 ? p[0] : p[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        code = code << 6 | (p[i] & 63);
    }
    return code < least[len] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0 : len;
}

static bool valid(const unsigned char *p, size_t n) {
    for (size_t len; n; p += len, n -= len) {
        len = decode(p, n);
        if (!len)
            return false;
    }
    return true;
}

/* With something behind it and not: the two ways through the validator. */
static bool agree(const unsigned char *p, size_t n) {
    char longer[24] = "0123456789abcdefghijklm";
    bool want = valid(p, n);
    memcpy(longer + 2, p, n);
    return weft__utf8_valid((const char *) p, n) == want && weft__utf8_valid(longer, sizeof longer) == want;
}

TEST(every_sequence_of_three_bytes) {
    long wrong = 0;
    for (unsigned i = 0; i < 1u << 24; i++) {
        unsigned char p[3] = {(unsigned char) (i >> 16), (unsigned char) (i >> 8), (unsigned char) i};
        if (p[0] < 0x80 && p[1] < 0x80)
            continue; /* nothing there that a shorter one does not have */
        wrong += !agree(p, 3);
    }
    for (unsigned i = 0; i < 1u << 16; i++)
        wrong += !agree((unsigned char[]){(unsigned char) (i >> 8), (unsigned char) i}, 2);
    CHECK_INT(wrong, 0);
}

TEST(every_sequence_of_four_bytes_at_the_edges) {
    static const unsigned char edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xFF};
    long wrong = 0;
    for (unsigned lead = 0x80; lead < 256; lead++)
        for (unsigned second = 0; second < 256; second++)
            for (size_t i = 0; i < sizeof edges; i++)
                for (size_t j = 0; j < sizeof edges; j++)
                    wrong += !agree((unsigned char[]){(unsigned char) lead, (unsigned char) second, edges[i], edges[j]}, 4);
    CHECK_INT(wrong, 0);
}

TEST(every_code_point_in_two_pieces) {
    long wrong = 0;
    for (uint32_t code = 0x80; code <= 0x10FFFF; code++) {
        char p[4];
        size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        for (size_t i = n; i-- > 1;)
            p[i] = (char) (0x80 | (code >> (6 * (n - 1 - i)) & 63));
        p[0] = (char) (0xF00u >> n | code >> (6 * (n - 1)));
        for (size_t cut = 1; cut < n; cut++) {
            weft_utf8 state = {0};
            wrong += !weft__utf8_feed(&state, p, cut) || weft__utf8_whole(&state);
            wrong += !weft__utf8_feed(&state, p + cut, n - cut) || !weft__utf8_whole(&state);
        }
    }
    CHECK_INT(wrong, 0);
}

/* A prefix is refused at the byte after which no text is valid any more, and not before. */
TEST(refused_at_the_first_byte_that_spoils_it) {
    static const struct {
        const char *text;
        size_t good; /* bytes that may still become something */
    } rows[] = {
        {"abc\x80", 3},
        {"\xC0\x80", 0},
        {"\xC1\xBF", 0},
        {"\xC2\x20", 1},
        {"\xE0\x9F\xBF", 1},
        {"\xE0\xA0\x20", 2},
        {"\xED\xA0\x80", 1},
        {"\xED\x9F\xC0", 2},
        {"\xF0\x8F\xBF\xBF", 1},
        {"\xF4\x90\x80\x80", 1},
        {"\xF4\x8F\xBF\xC0", 3},
        {"\xF5\x80\x80\x80", 0},
        {"\xFF", 0},
        {"0123456789abcdef\xE2\x82\x28", 18},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = strlen(rows[i].text);
        test_row(rows[i].text);
        for (size_t cut = 0; cut <= n; cut++) {
            weft_utf8 state = {0};
            bool first = weft__utf8_feed(&state, rows[i].text, cut);
            CHECK_INT(first, cut <= rows[i].good);
            if (first)
                CHECK(!weft__utf8_feed(&state, rows[i].text + cut, n - cut));
        }
    }
    test_row(NULL);
}

TEST(a_bad_byte_anywhere_in_ascii) {
    char text[100];
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'x', sizeof text);
        CHECK(weft__utf8_valid(text, n));
        for (size_t at = 0; at < n; at++) {
            text[at] = (char) 0xFF;
            CHECK(!weft__utf8_valid(text, n));
            text[at] = 'x';
        }
    }
}

TEST_MAIN(CASE(every_length_at_every_address) CASE(one_high_byte_is_seen_wherever_it_is) CASE(a_mask_continues)
              CASE(masks_are_siphash) CASE(every_sequence_of_three_bytes) CASE(every_sequence_of_four_bytes_at_the_edges)
                  CASE(every_code_point_in_two_pieces) CASE(refused_at_the_first_byte_that_spoils_it)
                      CASE(a_bad_byte_anywhere_in_ascii))
