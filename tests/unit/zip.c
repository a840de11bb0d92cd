/* The shared compressor and decompressor: what RFC 7692 shows, what zlib could be made to do to us, and failing memory. */
#include "zip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "harness.h"

#define BYTES(text) (text), sizeof(text) - 1

TEST(messages_of_the_rfc) {
    static const struct {
        const char *name;
        const char *packed;
        size_t len;
        const char *text;
    } rows[] = {
        {"7.2.3.1 one block", BYTES("\xf2\x48\xcd\xc9\xc9\x07\x00"), "Hello"},
        {"7.2.3.2 the second message, sharing the window, without it", BYTES("\xf2\x48\xcd\xc9\xc9\x07\x00"), "Hello"},
        {"7.2.3.3 a block with no compression", BYTES("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"), "Hello"},
        {"7.2.3.4 a final block", BYTES("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"), "Hello"},
        {"7.2.3.5 two blocks", BYTES("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"), "Hello"},
        {"7.2.3.6 an empty message", BYTES("\x00"), ""},
        {"an empty fixed block, then the empty one", BYTES("\x02\x00"), ""},
        {"a final block with nothing behind it", BYTES("\xf3\x48\xcd\xc9\xc9\x07\x00"), "Hello"},
        {"two final blocks", BYTES("\xf3\x48\xcd\xc9\xc9\x07\x00\xf3\x48\xcd\xc9\xc9\x07\x00\x00"), "HelloHello"},
    };
    weft_zip *zip = NULL;
    REQUIRE(weft__zip_new(NULL, &zip) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf out = {0};
        test_row(rows[i].name);
        if (CHECK_INT(weft__zip_inflate(zip, rows[i].packed, rows[i].len, 100, &out), 0))
            CHECK_TEXT(out.data ? out.data : "", out.end, rows[i].text);
        weft__buf_done(&out, NULL);
    }
    test_row(NULL);
    weft__zip_free(zip);
}

TEST(what_is_no_deflate_stream) {
    static const struct {
        const char *name;
        const char *packed;
        size_t len;
    } rows[] = {
        {"nothing at all", "", 0},
        {"a block type that does not exist", BYTES("\xff\xff")},
        {"a stored block whose lengths disagree", BYTES("\x00\x05\x00\x00\x00Hello")},
        {"cut off in a fixed block", BYTES("\xf2\x48\xcd")},
        {"cut off in a stored block", BYTES("\x00\x05\x00\xfa\xff\x48")},
        {"cut off in the lengths of one", BYTES("\x00\x05")},
        {"a distance before the beginning", BYTES("\x02\x0b\x00\x00")},
    };
    weft_zip *zip = NULL;
    REQUIRE(weft__zip_new(NULL, &zip) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_buf out = {0};
        weft__buf_put(&out, NULL, "keep", 4);
        test_row(rows[i].name);
        CHECK_INT(weft__zip_inflate(zip, rows[i].packed, rows[i].len, 1000, &out), -EBADMSG);
        CHECK_TEXT(out.data, out.end, "keep");
        /* And the next message of somebody else is none the worse for it. */
        CHECK_INT(weft__zip_inflate(zip, BYTES("\xf2\x48\xcd\xc9\xc9\x07\x00"), 1000, &out), 0);
        CHECK_TEXT(out.data, out.end, "keepHello");
        weft__buf_done(&out, NULL);
    }
    test_row(NULL);
    weft__zip_free(zip);
}

/* Text that compresses a little, noise, or one byte over and over. */
static void fill(char *data, size_t len, int kind) {
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < len; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        data[i] = kind == 0 ? "etaoin shrdlu{}\":,"[random % 18] : kind == 1 ? (char) random : 'x';
    }
}

TEST(there_and_back) {
    static const size_t sizes[] = {0, 1, 2, 255, 256, 1024, 1025, 5000, 65535, 65536, 70000, 1000000};
    weft_zip *zip = NULL;
    char *data = malloc(1000000);
    REQUIRE(data && weft__zip_new(NULL, &zip) == 0);
    for (int kind = 0; kind < 3; kind++) {
        fill(data, 1000000, kind);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            weft_buf packed = {0}, plain = {0};
            size_t len = sizes[i];
            char name[64];
            snprintf(name, sizeof name, "kind %d, %zu bytes", kind, len);
            test_row(name);
            CHECK_INT(weft__zip_deflate(zip, 9 + (unsigned) i % 7, data, len, &packed), 0);
            CHECK_INT(weft__zip_inflate(zip, packed.data, packed.end, len, &plain), 0);
            CHECK(plain.end == len && (len == 0 || memcmp(plain.data, data, len) == 0));
            weft__buf_done(&plain, NULL);
            if (len)
                CHECK_INT(weft__zip_inflate(zip, packed.data, packed.end, len - 1, &plain), -EMSGSIZE);
            weft__buf_done(&plain, NULL);
            weft__buf_done(&packed, NULL);
        }
    }
    test_row(NULL);
    free(data);
    weft__zip_free(zip);
}

/* What we send with a window can be read by somebody who has no larger one. */
TEST(windows_are_kept) {
    enum { LEN = 100000, BLOCK = 20000 };
    weft_zip *zip = NULL;
    char *data = malloc(LEN), *plain = malloc(LEN);
    REQUIRE(data && plain && weft__zip_new(NULL, &zip) == 0);
    fill(data, BLOCK, 1);
    for (size_t i = BLOCK; i < LEN; i++) /* repeats that only the larger windows can see */
        data[i] = data[i - (i / BLOCK % 2 ? 300 : BLOCK)];
    for (unsigned window = 15; window >= 9; window--) {
        weft_buf packed = {0};
        z_stream z = {0};
        CHECK_INT(weft__zip_deflate(zip, window, data, LEN, &packed), 0);
        REQUIRE(inflateInit2(&z, -(int) window) == Z_OK);
        z.next_in = (Bytef *) packed.data;
        z.avail_in = (unsigned) packed.end;
        z.next_out = (Bytef *) plain;
        while (z.total_out < LEN) { /* in small pieces: what is still in the output would do instead of the window */
            z.avail_out = LEN - z.total_out < 50 ? (unsigned) (LEN - z.total_out) : 50;
            if (!CHECK_INT(inflate(&z, Z_SYNC_FLUSH), Z_OK))
                break;
        }
        CHECK(memcmp(plain, data, LEN) == 0);
        inflateEnd(&z);
        weft__buf_done(&packed, NULL);
    }
    free(data);
    free(plain);
    weft__zip_free(zip);
}

TEST(a_bomb_stops_at_the_limit) {
    enum { LEN = 64 << 20, MAX = 1 << 20 };
    test_memory memory;
    weft_zip *zip = NULL;
    weft_buf packed = {0}, plain = {0};
    char *data = calloc(1, LEN);
    test_memory_init(&memory, 0);
    REQUIRE(data && weft__zip_new(&memory.alloc, &zip) == 0);
    CHECK_INT(weft__zip_deflate(zip, 15, data, LEN, &packed), 0);
    CHECK(packed.end < 400000);
    CHECK_INT(weft__zip_inflate(zip, packed.data, packed.end, MAX, &plain), -EMSGSIZE);
    CHECK(plain.cap <= 2 * MAX + 64);
    CHECK_INT(plain.end, 0);
    free(data);
    weft__buf_done(&packed, &memory.alloc);
    weft__buf_done(&plain, &memory.alloc);
    weft__zip_free(zip);
    CHECK_INT(memory.live, 0);
}

/* A message with half a million empty final blocks: each starts the inflater again, which must be cheap. */
TEST(many_final_blocks) {
    weft_zip *zip = NULL;
    weft_buf packed = {0}, plain = {0};
    REQUIRE(weft__zip_new(NULL, &zip) == 0);
    weft__buf_put(&packed, NULL, BYTES("\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff"));
    for (int i = 0; i < 500000; i++)
        weft__buf_put(&packed, NULL, BYTES("\x03\x00"));
    CHECK_INT(weft__zip_inflate(zip, packed.data, packed.end, 100, &plain), 0);
    CHECK_TEXT(plain.data, plain.end, "Hello");
    weft__buf_done(&packed, NULL);
    weft__buf_done(&plain, NULL);
    weft__zip_free(zip);
}

/* A block behind a final one may point back across it. */
TEST(the_window_outlives_a_final_block) {
    char text[] = "a text that is long enough to be worth pointing back to, twice: ";
    enum { LEN = sizeof text - 1 };
    weft_zip *zip = NULL;
    weft_buf packed = {0}, plain = {0};
    unsigned char out[256];
    z_stream z = {0};
    REQUIRE(weft__zip_new(NULL, &zip) == 0);

    for (int i = 0; i < 2; i++) {
        REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        if (i)
            deflateSetDictionary(&z, (Bytef *) text, LEN);
        z.next_in = (Bytef *) text;
        z.avail_in = LEN;
        z.next_out = out;
        z.avail_out = sizeof out;
        CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
        CHECK(i == 0 || sizeof out - z.avail_out < 10);
        weft__buf_put(&packed, NULL, out, sizeof out - z.avail_out);
        deflateEnd(&z);
    }
    weft__buf_put(&packed, NULL, "", 1);
    CHECK_INT(weft__zip_inflate(zip, packed.data, packed.end, 1000, &plain), 0);
    CHECK(plain.end == 2 * LEN && memcmp(plain.data, text, LEN) == 0 && memcmp(plain.data + LEN, text, LEN) == 0);
    weft__buf_done(&packed, NULL);
    weft__buf_done(&plain, NULL);
    weft__zip_free(zip);
}

static int there_and_back_with(test_memory *memory, const char *data, size_t len) {
    weft_zip *zip = NULL;
    weft_buf packed = {0}, plain = {0};
    int r = weft__zip_new(&memory->alloc, &zip);
    for (unsigned window = 9; r >= 0 && window < 12; window++)
        r = weft__zip_deflate(zip, window, data, len, &packed);
    packed.end = packed.start;
    if (r >= 0)
        r = weft__zip_deflate(zip, 12, data, len, &packed);
    if (r >= 0)
        r = weft__zip_inflate(zip, packed.data, packed.end, len, &plain);
    if (r >= 0)
        CHECK(plain.end == len && memcmp(plain.data, data, len) == 0);
    weft__buf_done(&packed, &memory->alloc);
    weft__buf_done(&plain, &memory->alloc);
    weft__zip_free(zip);
    CHECK_INT(memory->live, 0);
    return r;
}

TEST(failing_memory) {
    enum { LEN = 50000 };
    char *data = malloc(LEN);
    long fail_at = 0;
    int r;
    REQUIRE(data);
    fill(data, LEN, 0);
    do {
        test_memory memory;
        test_memory_init(&memory, ++fail_at);
        r = there_and_back_with(&memory, data, LEN);
        CHECK(r == 0 || r == -ENOMEM);
    } while (r < 0 && fail_at < 1000);
    CHECK(fail_at > 10 && fail_at < 1000);
    free(data);
}

TEST_MAIN(CASE(messages_of_the_rfc) CASE(what_is_no_deflate_stream) CASE(there_and_back) CASE(windows_are_kept)
              CASE(a_bomb_stops_at_the_limit) CASE(many_final_blocks) CASE(the_window_outlives_a_final_block)
                  CASE(failing_memory))
