/* The Autobahn testsuite's section 9, limits and performance, against both framings: messages of up to 16 MiB, whole, in
 * fragments and in chops, and a thousand small ones. Nothing is timed; what is quadratic would not finish. */
#include "websocket_kit.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

static char *payload; /* 16 MiB, shared by every case of a test */

/* The same text over and over. */
static bool fill_payload(const char *text, size_t n) {
    size_t len = 16 * MIB - 16 * MIB % n;
    if (!payload)
        payload = malloc(16 * MIB);
    if (!payload)
        return false;
    memset(payload, '*', 16 * MIB);
    memcpy(payload, text, n);
    for (size_t done = n, more; done < len; done += more) {
        more = done < len - done ? done : len - done;
        memcpy(payload + done, payload, more);
    }
    return true;
}

/* One message of len bytes in frames of step bytes, the bytes cut into chops. */
static void run_message(const char *name, bool client, bool binary, size_t len, size_t step, size_t chop) {
    kit k;
    kit_wire wire = {.random = 5, .masked = !client};
    unsigned opcode = binary ? 2 : 1;

    test_row(name);
    kit_init(&k, client, &(weft_framing_opts){.seed = 9});
    for (size_t at = 0; at < len; at += step)
        kit_put(&wire, &(kit_frame){(at ? 0 : opcode) | (at + step >= len ? 0x80u : 0), payload + at,
                                    len - at < step ? len - at : step});
    kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), chop);
    CHECK_INT(k.frames, 1);
    kit_expect(&k, &(kit_frame){0x80 | opcode, payload, len}, 1);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
    test_row(NULL);
}

static void run_whole(int section, bool binary) {
    static const size_t sizes[] = {64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB, 8 * MIB, 16 * MIB};
    for (size_t i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "9.%d.%zu", section, i / 2 + 1);
        run_message(name, i % 2, binary, sizes[i / 2], sizes[i / 2], KIT_WHOLE);
        run_message(name, i % 2, binary, sizes[i / 2], sizes[i / 2], 64 * KIB);
    }
}

TEST(section_9_1_large_text) {
    REQUIRE(fill_payload("BAsd7&jh23", 10));
    run_whole(1, false);
}

TEST(section_9_2_large_binary) {
    REQUIRE(fill_payload("\x00\xfe\x23\xfa\xf0", 5));
    run_whole(2, true);
}

static void run_fragmented(int section, bool binary) {
    static const size_t steps[] = {64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB};
    for (size_t i = 0; i < 18; i++) {
        char name[32];
        snprintf(name, sizeof name, "9.%d.%zu", section, i / 2 + 1);
        run_message(name, i % 2, binary, 4 * MIB, steps[i / 2], KIT_WHOLE);
        run_message(name, i % 2, binary, 4 * MIB, steps[i / 2], 1000);
    }
}

TEST(section_9_3_fragmented_text) {
    REQUIRE(fill_payload("*", 1));
    run_fragmented(3, false);
}

TEST(section_9_4_fragmented_binary) {
    REQUIRE(fill_payload("\xfe", 1));
    run_fragmented(4, true);
}

static void run_chopped(int section, bool binary) {
    for (size_t i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "9.%d.%zu", section, i / 2 + 1);
        run_message(name, i % 2, binary, MIB, MIB, 64u << i / 2);
    }
}

TEST(section_9_5_chopped_text) {
    REQUIRE(fill_payload("BAsd7&jh23", 10));
    run_chopped(5, false);
    run_message("9.5 a byte at a time", false, false, MIB, MIB, 1);
}

TEST(section_9_6_chopped_binary) {
    REQUIRE(fill_payload("\x00\xfe\x23\xfa\xf0", 5));
    run_chopped(6, true);
    run_message("9.6 a byte at a time", false, true, MIB, MIB, 1);
}

/* A thousand messages, one after the other, each echoed before the next. */
static void run_thousand(const char *name, bool client, bool binary, size_t len) {
    kit k;
    kit_wire wire = {.random = 5, .masked = !client};
    kit_frame frame = {binary ? 0x82 : 0x81, payload, len}, is = {0};

    test_row(name);
    kit_init(&k, client, &(weft_framing_opts){.seed = 9});
    for (int i = 0; i < 1000; i++) {
        kit_put(&wire, &frame);
        kit_feed(&k, kit_head(&wire.bytes), weft__buf_len(&wire.bytes));
        weft__buf_done(&wire.bytes, NULL);
        if (!CHECK(kit_read(&k.out, client, &is)) || !kit_same(&is, &frame))
            break;
        weft__buf_take(&k.out, NULL, 0);
    }
    CHECK_INT(k.frames, 1000);
    kit_done(&k);
    test_row(NULL);
}

TEST(sections_9_7_and_9_8_a_thousand_messages) {
    static const size_t sizes[] = {0, 16, 64, 256, KIB, 4 * KIB};
    for (size_t i = 0; i < 24; i++) {
        bool binary = i >= 12;
        char name[32];
        snprintf(name, sizeof name, "9.%d.%zu", binary ? 8 : 7, i % 12 / 2 + 1);
        if (i % 12 == 0)
            REQUIRE(fill_payload(binary ? "\xfe" : "*", 1));
        run_thousand(name, i % 2, binary, sizes[i % 12 / 2]);
    }
    free(payload);
    payload = NULL;
}

TEST_MAIN(CASE(section_9_1_large_text) CASE(section_9_2_large_binary) CASE(section_9_3_fragmented_text)
              CASE(section_9_4_fragmented_binary) CASE(section_9_5_chopped_text) CASE(section_9_6_chopped_binary)
                  CASE(sections_9_7_and_9_8_a_thousand_messages))
