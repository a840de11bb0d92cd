/* The Autobahn testsuite's case list, sections 1 to 7 and 10, against both framings: framing, pings, reserved bits and
 * opcodes, fragmentation, UTF-8, closing. Numbers are the suite's own. Where it allows several outcomes, the strict one is
 * wanted. */
#include "websocket_kit.h"

#define HELLO "Hello, world!"
#define NOT_UTF8 "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
#define KOSME "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"

/* 125 bytes that are no UTF-8, as the suite has them. */
#define FE5 "\xfe\xfe\xfe\xfe\xfe"
#define FE25 FE5 FE5 FE5 FE5 FE5
#define FE125 FE25 FE25 FE25 FE25 FE25
#define STARS_41 "*****************************************"
#define STARS_123 STARS_41 STARS_41 STARS_41

static void run_cases(const kit_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        kit_run_all(&cases[i]);
}
#define RUN(cases) run_cases(cases, sizeof(cases) / sizeof(cases)[0])

TEST(section_1_framing) {
    static const size_t sizes[] = {0, 125, 126, 127, 128, 65535, 65536, 65536};
    char *payload = malloc(65536);
    REQUIRE(payload);
    for (size_t i = 0; i < 16; i++) {
        bool binary = i >= 8;
        char name[32];
        snprintf(name, sizeof name, "1.%d.%zu", binary ? 2 : 1, i % 8 + 1);
        memset(payload, binary ? 0xfe : '*', 65536);
        kit_frame frame = {binary ? 0x82 : 0x81, payload, sizes[i % 8]};
        kit_run_all(&(kit_case){.name = name, .in = {frame}, .out = {frame}});
    }
    free(payload);
}

TEST(section_2_pings) {
    static const kit_case cases[] = {
        {"2.1", {PING("")}, {PONG("")}},
        {"2.2", {PING(HELLO)}, {PONG(HELLO)}},
        {"2.3", {PING(NOT_UTF8)}, {PONG(NOT_UTF8)}},
        {"2.4", {PING(FE125)}, {PONG(FE125)}},
        {"2.5", {PING(FE125 "\xfe")}, {CLOSE_1002}},
        {"2.6", {PING(FE125)}, {PONG(FE125)}},
        {"2.7", {PONG("")}, {{0}}},
        {"2.8", {PONG("unsolicited pong payload")}, {{0}}},
        {"2.9", {PONG("unsolicited pong payload"), PING("ping payload")}, {PONG("ping payload")}},
        {"2.10",
         {PING("payload-0"), PING("payload-1"), PING("payload-2"), PING("payload-3"), PING("payload-4"), PING("payload-5"),
          PING("payload-6"), PING("payload-7"), PING("payload-8"), PING("payload-9")},
         {PONG("payload-0"), PONG("payload-1"), PONG("payload-2"), PONG("payload-3"), PONG("payload-4"), PONG("payload-5"),
          PONG("payload-6"), PONG("payload-7"), PONG("payload-8"), PONG("payload-9")}},
        {"2.11",
         {PING("payload-0"), PING("payload-1"), PING("payload-2"), PING("payload-3"), PING("payload-4"), PING("payload-5"),
          PING("payload-6"), PING("payload-7"), PING("payload-8"), PING("payload-9")},
         {PONG("payload-0"), PONG("payload-1"), PONG("payload-2"), PONG("payload-3"), PONG("payload-4"), PONG("payload-5"),
          PONG("payload-6"), PONG("payload-7"), PONG("payload-8"), PONG("payload-9")}},
    };
    RUN(cases);
}

#define RSV(n, opcode, text) FRAME(0x80 | (n) << 4 | (opcode), text)

TEST(section_3_reserved_bits) {
    static const kit_case cases[] = {
        {"3.1", {RSV(1, 1, HELLO)}, {CLOSE_1002}},
        {"3.2", {TEXT(HELLO), RSV(2, 1, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"3.3", {TEXT(HELLO), RSV(3, 1, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"3.4", {TEXT(HELLO), RSV(4, 1, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"3.5", {RSV(5, 2, NOT_UTF8)}, {CLOSE_1002}},
        {"3.6", {RSV(6, 9, HELLO)}, {CLOSE_1002}},
        {"3.6 as the suite sends it", {RSV(6, 2, HELLO)}, {CLOSE_1002}},
        {"3.7", {RSV(7, 8, "")}, {CLOSE_1002}},
    };
    RUN(cases);
}

TEST(section_4_opcodes) {
    static const kit_case cases[] = {
        {"4.1.1", {FRAME(0x83, "")}, {CLOSE_1002}},
        {"4.1.2", {FRAME(0x84, "reserved opcode payload")}, {CLOSE_1002}},
        {"4.1.3", {TEXT(HELLO), FRAME(0x85, ""), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"4.1.4", {TEXT(HELLO), FRAME(0x86, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"4.1.5", {TEXT(HELLO), FRAME(0x87, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"4.2.1", {FRAME(0x8B, "")}, {CLOSE_1002}},
        {"4.2.2", {FRAME(0x8C, "reserved opcode payload")}, {CLOSE_1002}},
        {"4.2.3", {TEXT(HELLO), FRAME(0x8D, ""), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"4.2.4", {TEXT(HELLO), FRAME(0x8E, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
        {"4.2.5", {TEXT(HELLO), FRAME(0x8F, HELLO), PING("")}, {TEXT(HELLO), CLOSE_1002}},
    };
    RUN(cases);
}

#define ONE_TWO "fragment1fragment2"
#define TWICE_5_16(first)                                                                                                   \
    first, BEGIN_TEXT("fragment2"), LAST("fragment3"), first, BEGIN_TEXT("fragment2"), LAST("fragment3")
#define ALL_5_19                                                                                                            \
    {BEGIN_TEXT("fragment1"), MORE("fragment2"), PING("pongme 1!"), MORE("fragment3"),                                      \
     MORE("fragment4"),       PING("pongme 2!"), LAST("fragment5")},                                                        \
    {                                                                                                                       \
        PONG("pongme 1!"), PONG("pongme 2!"), TEXT("fragment1fragment2fragment3fragment4fragment5")                         \
    }

TEST(section_5_fragmentation) {
    static const kit_case cases[] = {
        {"5.1", {FRAME(0x09, "fragment1"), LAST("fragment2")}, {CLOSE_1002}},
        {"5.2", {FRAME(0x0A, "fragment1"), LAST("fragment2")}, {CLOSE_1002}},
        {"5.3", {BEGIN_TEXT("fragment1"), LAST("fragment2")}, {TEXT(ONE_TWO)}},
        {"5.4", {BEGIN_TEXT("fragment1"), LAST("fragment2")}, {TEXT(ONE_TWO)}},
        {"5.5", {BEGIN_TEXT("fragment1"), LAST("fragment2")}, {TEXT(ONE_TWO)}},
        {"5.6", {BEGIN_TEXT("fragment1"), PING("ping payload"), LAST("fragment2")}, {PONG("ping payload"), TEXT(ONE_TWO)}},
        {"5.7", {BEGIN_TEXT("fragment1"), PING("ping payload"), LAST("fragment2")}, {PONG("ping payload"), TEXT(ONE_TWO)}},
        {"5.8", {BEGIN_TEXT("fragment1"), PING("ping payload"), LAST("fragment2")}, {PONG("ping payload"), TEXT(ONE_TWO)}},
        {"5.9", {LAST("non-continuation payload"), TEXT(HELLO)}, {CLOSE_1002}},
        {"5.10", {LAST("non-continuation payload"), TEXT(HELLO)}, {CLOSE_1002}},
        {"5.11", {LAST("non-continuation payload"), TEXT(HELLO)}, {CLOSE_1002}},
        {"5.12", {MORE("non-continuation payload"), TEXT(HELLO)}, {CLOSE_1002}},
        {"5.13", {MORE("non-continuation payload"), TEXT(HELLO)}, {CLOSE_1002}},
        {"5.14", {MORE("non-continuation payload"), TEXT(HELLO)}, {CLOSE_1002}},
        {"5.15",
         {BEGIN_TEXT("fragment1"), LAST("fragment2"), MORE("fragment3"), TEXT("fragment4")},
         {TEXT(ONE_TWO), CLOSE_1002}},
        {"5.16", {TWICE_5_16(MORE("fragment1"))}, {CLOSE_1002}},
        {"5.17", {TWICE_5_16(LAST("fragment1"))}, {CLOSE_1002}},
        {"5.18", {BEGIN_TEXT("fragment1"), TEXT("fragment2")}, {CLOSE_1002}},
        {"5.19", ALL_5_19},
        {"5.20", ALL_5_19},
        {"5.18 with binary in the middle", {BEGIN_TEXT("fragment1"), BINARY("fragment2")}, {CLOSE_1002}},
        {"binary in fragments", {FRAME(0x02, "\xff"), MORE("\xfe"), LAST("\x80")}, {BINARY("\xff\xfe\x80")}},
    };
    RUN(cases);
}

#define UTF8_1 "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4"
#define UTF8_2 "\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!"

TEST(section_6_utf8_in_fragments) {
    static const kit_case cases[] = {
        {"6.1.1", {TEXT("")}, {TEXT("")}},
        {"6.1.2", {BEGIN_TEXT(""), MORE(""), LAST("")}, {TEXT("")}},
        {"6.1.3", {BEGIN_TEXT(""), MORE("middle frame payload"), LAST("")}, {TEXT("middle frame payload")}},
        {"6.2.1", {TEXT(UTF8_1 UTF8_2)}, {TEXT(UTF8_1 UTF8_2)}},
        {"6.2.2", {BEGIN_TEXT(UTF8_1), LAST(UTF8_2)}, {TEXT(UTF8_1 UTF8_2)}},
        {"6.3.1",
         {TEXT(KOSME "\xed\xa0\x80"
                     "edited")},
         {CLOSE_1007}},
        {"6.4.1 at once", {BEGIN_TEXT(KOSME), MORE("\xf4\x90\x80\x80"), LAST("edited")}, {CLOSE_1007}},
        {"6.4.2 at once",
         {BEGIN_TEXT(KOSME "\xf4"), MORE("\x90"),
          LAST("\x80\x80"
               "edited")},
         {CLOSE_1007}},
        {"a character cut off by the end", {BEGIN_TEXT(KOSME), LAST("\xf4\x8f")}, {CLOSE_1007}},
        {"a character over three frames with pings in it",
         {BEGIN_TEXT("\xf4"), PING("\xff"), MORE("\x8f\xbf"), PING("\x80"), LAST("\xbf")},
         {PONG("\xff"), PONG("\x80"), TEXT("\xf4\x8f\xbf\xbf")}},
        {"a good message after a good one",
         {TEXT("\xe2\x82\xac"), TEXT("\xe2\x82\xac")},
         {TEXT("\xe2\x82\xac"), TEXT("\xe2\x82\xac")}},
    };
    RUN(cases);
}

/* One frame for each byte. */
static void run_bytewise(const char *name, const char *text, size_t len, bool valid) {
    for (int client = 0; client < 2; client++) {
        kit k;
        kit_wire wire = {.random = 3, .masked = !client};
        kit_frame want[] = {{0x81, text, len}, CLOSE_1007};
        test_row(name);
        kit_init(&k, client, &(weft_framing_opts){.seed = 1});
        for (size_t i = 0; i < len; i++)
            kit_put(&wire, &(kit_frame){(i == 0) | (i + 1 == len ? 0x80u : 0), text + i, 1});
        kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), 5);
        kit_expect(&k, valid ? &want[0] : &want[1], 1);
        kit_done(&k);
        weft__buf_done(&wire.bytes, NULL);
    }
    test_row(NULL);
}

TEST(section_6_utf8_in_frames_of_one_byte) {
    run_bytewise("6.2.3", UTF8_1 UTF8_2, sizeof(UTF8_1 UTF8_2) - 1, true);
    run_bytewise("6.2.4", KOSME, sizeof KOSME - 1, true);
    run_bytewise("6.3.2",
                 KOSME "\xed\xa0\x80"
                       "edited",
                 sizeof(KOSME "\xed\xa0\x80"
                              "edited") -
                     1,
                 false);
}

/* Invalid text is refused when the byte that spoils it has come, not when the message is complete. parts are frames of their
 * own or pieces of one frame; it is the second that spoils the text. */
static void run_fail_fast(const char *name, const kit_frame parts[3], bool one_frame, bool client) {
    static const kit_frame refused = CLOSE_1007;
    char whole[64] = "";
    kit k;
    kit_wire wire = {.random = 11, .masked = !client};
    size_t ends[3], len = 0;

    test_row(name);
    kit_init(&k, client, &(weft_framing_opts){.seed = 1});
    for (size_t i = 0; i < 3; i++) {
        memcpy(whole + len, parts[i].data, parts[i].len);
        len += parts[i].len;
        if (!one_frame)
            kit_put(&wire, &parts[i]);
        ends[i] = one_frame ? len + (client ? 2 : 6) : weft__buf_len(&wire.bytes);
    }
    if (one_frame)
        kit_put(&wire, &(kit_frame){0x81, whole, len});
    kit_feed(&k, wire.bytes.data, ends[0]);
    CHECK(!k.over);
    kit_expect(&k, NULL, 0);
    kit_feed(&k, wire.bytes.data + ends[0], ends[1] - ends[0]);
    CHECK(k.over);
    CHECK_INT(k.broken, -EILSEQ);
    kit_expect(&k, &refused, 1);
    kit_done(&k);
    weft__buf_done(&wire.bytes, NULL);
    test_row(NULL);
}

TEST(section_6_4_fails_fast) {
    static const kit_frame after[] = {BEGIN_TEXT(KOSME), MORE("\xf4\x90\x80\x80"), LAST("edited")};
    static const kit_frame at[] = {BEGIN_TEXT(KOSME "\xf4"), MORE("\x90"),
                                   LAST("\x80\x80"
                                        "edited")};
    for (int client = 0; client < 2; client++) {
        run_fail_fast("6.4.1", after, false, client);
        run_fail_fast("6.4.2", at, false, client);
        run_fail_fast("6.4.3", after, true, client);
        run_fail_fast("6.4.4", at, true, client);
    }
}

static const struct {
    const char *name;
    bool valid;
    kit_frame frame;
} utf8_rows[] = {
    {"6.5.1", true,
     TEXT("hello"
          "\x24"
          "world")},
    {"6.5.2", true,
     TEXT("hello"
          "\xc2\xa2"
          "world")},
    {"6.5.3", true,
     TEXT("hello"
          "\xe2\x82\xac"
          "world")},
    {"6.5.4", true,
     TEXT("hello"
          "\xf0\xa4\xad\xa2"
          "world")},
    {"6.5.5", true, TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5")},
    {"6.6.1", false, TEXT("\xce")},
    {"6.6.2", true, TEXT("\xce\xba")},
    {"6.6.3", false, TEXT("\xce\xba\xe1")},
    {"6.6.4", false, TEXT("\xce\xba\xe1\xbd")},
    {"6.6.5", true, TEXT("\xce\xba\xe1\xbd\xb9")},
    {"6.6.6", false, TEXT("\xce\xba\xe1\xbd\xb9\xcf")},
    {"6.6.7", true, TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83")},
    {"6.6.8", false, TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce")},
    {"6.6.9", true, TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc")},
    {"6.6.10", false, TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce")},
    {"6.6.11", true, TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5")},
    {"6.7.1", true, TEXT("\x00")},
    {"6.7.2", true, TEXT("\xc2\x80")},
    {"6.7.3", true, TEXT("\xe0\xa0\x80")},
    {"6.7.4", true, TEXT("\xf0\x90\x80\x80")},
    {"6.8.1", false, TEXT("\xf8\x88\x80\x80\x80")},
    {"6.8.2", false, TEXT("\xfc\x84\x80\x80\x80\x80")},
    {"6.9.1", true, TEXT("\x7f")},
    {"6.9.2", true, TEXT("\xdf\xbf")},
    {"6.9.3", true, TEXT("\xef\xbf\xbf")},
    {"6.9.4", true, TEXT("\xf4\x8f\xbf\xbf")},
    {"6.10.1", false, TEXT("\xf7\xbf\xbf\xbf")},
    {"6.10.2", false, TEXT("\xfb\xbf\xbf\xbf\xbf")},
    {"6.10.3", false, TEXT("\xfd\xbf\xbf\xbf\xbf\xbf")},
    {"6.11.1", true, TEXT("\xed\x9f\xbf")},
    {"6.11.2", true, TEXT("\xee\x80\x80")},
    {"6.11.3", true, TEXT("\xef\xbf\xbd")},
    {"6.11.4", true, TEXT("\xf4\x8f\xbf\xbf")},
    {"6.11.5", false, TEXT("\xf4\x90\x80\x80")},
    {"6.12.1", false, TEXT("\x80")},
    {"6.12.2", false, TEXT("\xbf")},
    {"6.12.3", false, TEXT("\x80\xbf")},
    {"6.12.4", false, TEXT("\x80\xbf\x80")},
    {"6.12.5", false, TEXT("\x80\xbf\x80\xbf")},
    {"6.12.6", false, TEXT("\x80\xbf\x80\xbf\x80")},
    {"6.12.7", false, TEXT("\x80\xbf\x80\xbf\x80\xbf")},
    {"6.12.8", false,
     TEXT("\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b"
          "\x9c\x9d\x9e\x9f\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7"
          "\xb8\xb9\xba\xbb\xbc\xbd\xbe")},
    {"6.13.1", false,
     TEXT("\xc0\x20\xc1\x20\xc2\x20\xc3\x20\xc4\x20\xc5\x20\xc6\x20\xc7\x20\xc8\x20\xc9\x20\xca\x20\xcb\x20\xcc\x20\xcd\x20"
          "\xce\x20\xcf\x20\xd0\x20\xd1\x20\xd2\x20\xd3\x20\xd4\x20\xd5\x20\xd6\x20\xd7\x20\xd8\x20\xd9\x20\xda\x20\xdb\x20"
          "\xdc\x20\xdd\x20\xde\x20")},
    {"6.13.2", false,
     TEXT("\xe0\x20\xe1\x20\xe2\x20\xe3\x20\xe4\x20\xe5\x20\xe6\x20\xe7\x20\xe8\x20\xe9\x20\xea\x20\xeb\x20\xec\x20\xed\x20"
          "\xee\x20")},
    {"6.13.3", false, TEXT("\xf0\x20\xf1\x20\xf2\x20\xf3\x20\xf4\x20\xf5\x20\xf6\x20")},
    {"6.13.4", false, TEXT("\xf8\x20\xf9\x20\xfa\x20")},
    {"6.13.5", false, TEXT("\xfc\x20")},
    {"6.14.1", false, TEXT("\xc0")},
    {"6.14.2", false, TEXT("\xe0\x80")},
    {"6.14.3", false, TEXT("\xf0\x80\x80")},
    {"6.14.4", false, TEXT("\xf8\x80\x80\x80")},
    {"6.14.5", false, TEXT("\xfc\x80\x80\x80\x80")},
    {"6.14.6", false, TEXT("\xdf")},
    {"6.14.7", false, TEXT("\xef\xbf")},
    {"6.14.8", false, TEXT("\xf7\xbf\xbf")},
    {"6.14.9", false, TEXT("\xfb\xbf\xbf\xbf")},
    {"6.14.10", false, TEXT("\xfd\xbf\xbf\xbf\xbf")},
    {"6.15.1", false,
     TEXT("\xc0\xe0\x80\xf0\x80\x80\xf8\x80\x80\x80\xfc\x80\x80\x80\x80\xdf\xef\xbf\xf7\xbf\xbf\xfb\xbf\xbf\xbf\xfd\xbf\xbf"
          "\xbf\xbf")},
    {"6.16.1", false, TEXT("\xfe")},
    {"6.16.2", false, TEXT("\xff")},
    {"6.16.3", false, TEXT("\xfe\xfe\xff\xff")},
    {"6.17.1", false, TEXT("\xc0\xaf")},
    {"6.17.2", false, TEXT("\xe0\x80\xaf")},
    {"6.17.3", false, TEXT("\xf0\x80\x80\xaf")},
    {"6.17.4", false, TEXT("\xf8\x80\x80\x80\xaf")},
    {"6.17.5", false, TEXT("\xfc\x80\x80\x80\x80\xaf")},
    {"6.18.1", false, TEXT("\xc1\xbf")},
    {"6.18.2", false, TEXT("\xe0\x9f\xbf")},
    {"6.18.3", false, TEXT("\xf0\x8f\xbf\xbf")},
    {"6.18.4", false, TEXT("\xf8\x87\xbf\xbf\xbf")},
    {"6.18.5", false, TEXT("\xfc\x83\xbf\xbf\xbf\xbf")},
    {"6.19.1", false, TEXT("\xc0\x80")},
    {"6.19.2", false, TEXT("\xe0\x80\x80")},
    {"6.19.3", false, TEXT("\xf0\x80\x80\x80")},
    {"6.19.4", false, TEXT("\xf8\x80\x80\x80\x80")},
    {"6.19.5", false, TEXT("\xfc\x80\x80\x80\x80\x80")},
    {"6.20.1", false, TEXT("\xed\xa0\x80")},
    {"6.20.2", false, TEXT("\xed\xad\xbf")},
    {"6.20.3", false, TEXT("\xed\xae\x80")},
    {"6.20.4", false, TEXT("\xed\xaf\xbf")},
    {"6.20.5", false, TEXT("\xed\xb0\x80")},
    {"6.20.6", false, TEXT("\xed\xbe\x80")},
    {"6.20.7", false, TEXT("\xed\xbf\xbf")},
    {"6.21.1", false, TEXT("\xed\xa0\x80\xed\xb0\x80")},
    {"6.21.2", false, TEXT("\xed\xa0\x80\xed\xbf\xbf")},
    {"6.21.3", false, TEXT("\xed\xad\xbf\xed\xb0\x80")},
    {"6.21.4", false, TEXT("\xed\xad\xbf\xed\xbf\xbf")},
    {"6.21.5", false, TEXT("\xed\xae\x80\xed\xb0\x80")},
    {"6.21.6", false, TEXT("\xed\xae\x80\xed\xbf\xbf")},
    {"6.21.7", false, TEXT("\xed\xaf\xbf\xed\xb0\x80")},
    {"6.21.8", false, TEXT("\xed\xaf\xbf\xed\xbf\xbf")},
    {"6.22.1", true, TEXT("\xef\xbf\xbe")},
    {"6.22.2", true, TEXT("\xef\xbf\xbf")},
    {"6.22.3", true, TEXT("\xf0\x9f\xbf\xbe")},
    {"6.22.4", true, TEXT("\xf0\x9f\xbf\xbf")},
    {"6.22.5", true, TEXT("\xf0\xaf\xbf\xbe")},
    {"6.22.6", true, TEXT("\xf0\xaf\xbf\xbf")},
    {"6.22.7", true, TEXT("\xf0\xbf\xbf\xbe")},
    {"6.22.8", true, TEXT("\xf0\xbf\xbf\xbf")},
    {"6.22.9", true, TEXT("\xf1\x8f\xbf\xbe")},
    {"6.22.10", true, TEXT("\xf1\x8f\xbf\xbf")},
    {"6.22.11", true, TEXT("\xf1\x9f\xbf\xbe")},
    {"6.22.12", true, TEXT("\xf1\x9f\xbf\xbf")},
    {"6.22.13", true, TEXT("\xf1\xaf\xbf\xbe")},
    {"6.22.14", true, TEXT("\xf1\xaf\xbf\xbf")},
    {"6.22.15", true, TEXT("\xf1\xbf\xbf\xbe")},
    {"6.22.16", true, TEXT("\xf1\xbf\xbf\xbf")},
    {"6.22.17", true, TEXT("\xf2\x8f\xbf\xbe")},
    {"6.22.18", true, TEXT("\xf2\x8f\xbf\xbf")},
    {"6.22.19", true, TEXT("\xf2\x9f\xbf\xbe")},
    {"6.22.20", true, TEXT("\xf2\x9f\xbf\xbf")},
    {"6.22.21", true, TEXT("\xf2\xaf\xbf\xbe")},
    {"6.22.22", true, TEXT("\xf2\xaf\xbf\xbf")},
    {"6.22.23", true, TEXT("\xf2\xbf\xbf\xbe")},
    {"6.22.24", true, TEXT("\xf2\xbf\xbf\xbf")},
    {"6.22.25", true, TEXT("\xf3\x8f\xbf\xbe")},
    {"6.22.26", true, TEXT("\xf3\x8f\xbf\xbf")},
    {"6.22.27", true, TEXT("\xf3\x9f\xbf\xbe")},
    {"6.22.28", true, TEXT("\xf3\x9f\xbf\xbf")},
    {"6.22.29", true, TEXT("\xf3\xaf\xbf\xbe")},
    {"6.22.30", true, TEXT("\xf3\xaf\xbf\xbf")},
    {"6.22.31", true, TEXT("\xf3\xbf\xbf\xbe")},
    {"6.22.32", true, TEXT("\xf3\xbf\xbf\xbf")},
    {"6.22.33", true, TEXT("\xf4\x8f\xbf\xbe")},
    {"6.22.34", true, TEXT("\xf4\x8f\xbf\xbf")},
    {"6.23.1", true, TEXT("\xef\xbf\xb9")},
    {"6.23.2", true, TEXT("\xef\xbf\xba")},
    {"6.23.3", true, TEXT("\xef\xbf\xbb")},
    {"6.23.4", true, TEXT("\xef\xbf\xbc")},
    {"6.23.5", true, TEXT("\xef\xbf\xbd")},
    {"6.23.6", true, TEXT("\xef\xbf\xbe")},
    {"6.23.7", true, TEXT("\xef\xbf\xbf")},
};

TEST(section_6_utf8_sequences) {
    static const kit_frame refused = CLOSE_1007;
    for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++) {
        kit_frame frame = utf8_rows[i].frame;
        kit_run_all(&(kit_case){.name = utf8_rows[i].name, .in = {frame}, .out = {utf8_rows[i].valid ? frame : refused}});
        run_bytewise(utf8_rows[i].name, frame.data, frame.len, utf8_rows[i].valid);
    }
}

TEST(section_7_closing) {
    static const kit_case cases[] = {
        {"7.1.1", {TEXT(HELLO)}, {TEXT(HELLO)}},
        {"7.1.2", {CLOSE_1000, CLOSE("")}, {CLOSE_1000}},
        {"7.1.3", {CLOSE_1000, PING("")}, {CLOSE_1000}},
        {"7.1.4", {CLOSE_1000, TEXT(HELLO)}, {CLOSE_1000}},
        {"7.1.5", {BEGIN_TEXT("fragment1"), CLOSE_1000, LAST("fragment2")}, {CLOSE_1000}},
        {"7.1.5 with rubbish behind", {CLOSE_1000, FRAME(0xff, HELLO), FRAME(0x83, "")}, {CLOSE_1000}},
        {"7.3.1", {CLOSE("")}, {CLOSE("")}},
        {"7.3.2", {CLOSE("a")}, {CLOSE_1002}},
        {"7.3.3", {CLOSE_1000}, {CLOSE_1000}},
        {"7.3.4",
         {CLOSE("\x03\xe8"
                "Hello World!")},
         {CLOSE_1000}},
        {"7.3.5", {CLOSE("\x03\xe8" STARS_123)}, {CLOSE_1000}},
        {"7.3.6", {CLOSE("\x03\xe8" STARS_123 "*")}, {CLOSE_1002}},
        {"7.5.1",
         {CLOSE("\x03\xe8" KOSME "\xed\xa0\x80"
                "edited")},
         {CLOSE_1007}},
        {"7.7.1 close code 1000", {CLOSE("\x03\xe8")}, {CLOSE("\x03\xe8")}},
        {"7.7.2 close code 1001", {CLOSE("\x03\xe9")}, {CLOSE("\x03\xe9")}},
        {"7.7.3 close code 1002", {CLOSE("\x03\xea")}, {CLOSE("\x03\xea")}},
        {"7.7.4 close code 1003", {CLOSE("\x03\xeb")}, {CLOSE("\x03\xeb")}},
        {"7.7.5 close code 1007", {CLOSE("\x03\xef")}, {CLOSE("\x03\xef")}},
        {"7.7.6 close code 1008", {CLOSE("\x03\xf0")}, {CLOSE("\x03\xf0")}},
        {"7.7.7 close code 1009", {CLOSE("\x03\xf1")}, {CLOSE("\x03\xf1")}},
        {"7.7.8 close code 1010", {CLOSE("\x03\xf2")}, {CLOSE("\x03\xf2")}},
        {"7.7.9 close code 1011", {CLOSE("\x03\xf3")}, {CLOSE("\x03\xf3")}},
        {"7.7.10 close code 3000", {CLOSE("\x0b\xb8")}, {CLOSE("\x0b\xb8")}},
        {"7.7.11 close code 3999", {CLOSE("\x0f\x9f")}, {CLOSE("\x0f\x9f")}},
        {"7.7.12 close code 4000", {CLOSE("\x0f\xa0")}, {CLOSE("\x0f\xa0")}},
        {"7.7.13 close code 4999", {CLOSE("\x13\x87")}, {CLOSE("\x13\x87")}},
        {"7.9.1 close code 0", {CLOSE("\x00\x00")}, {CLOSE_1002}},
        {"7.9.2 close code 999", {CLOSE("\x03\xe7")}, {CLOSE_1002}},
        {"7.9.3 close code 1004", {CLOSE("\x03\xec")}, {CLOSE_1002}},
        {"7.9.4 close code 1005", {CLOSE("\x03\xed")}, {CLOSE_1002}},
        {"7.9.5 close code 1006", {CLOSE("\x03\xee")}, {CLOSE_1002}},
        {"7.9.6 close code 1016", {CLOSE("\x03\xf8")}, {CLOSE_1002}},
        {"7.9.7 close code 1100", {CLOSE("\x04\x4c")}, {CLOSE_1002}},
        {"7.9.8 close code 2000", {CLOSE("\x07\xd0")}, {CLOSE_1002}},
        {"7.9.9 close code 2999", {CLOSE("\x0b\xb7")}, {CLOSE_1002}},
        {"7.13.1 close code 5000", {CLOSE("\x13\x88")}, {CLOSE_1002}},
        {"7.13.2 close code 65535", {CLOSE("\xff\xff")}, {CLOSE_1002}},
        {"close code 1012, registered later", {CLOSE("\x03\xf4")}, {CLOSE("\x03\xf4")}},
        {"close code 1014, registered later", {CLOSE("\x03\xf6")}, {CLOSE("\x03\xf6")}},
        {"close code 1015, never on the wire", {CLOSE("\x03\xf7")}, {CLOSE_1002}},
    };
    RUN(cases);
}

/* The same text over and over, up to len. */
static void fill(char *data, size_t len, const char *text) {
    for (size_t i = 0, n = strlen(text); i < len; i++)
        data[i] = text[i % n];
}

TEST(section_7_1_6_large_message_then_close) {
    size_t len = 256 * 1024;
    char *payload = malloc(len);
    REQUIRE(payload);
    fill(payload, len, "BAsd7&jh23");
    kit_run_all(&(kit_case){.name = "7.1.6",
                            .in = {{0x81, payload, len}, TEXT(HELLO), CLOSE_1000, PING("")},
                            .out = {{0x81, payload, len}, TEXT(HELLO), CLOSE_1000}});
    free(payload);
}

TEST(section_10_fragments_of_1300) {
    size_t len = 65536, step = 1300;
    char *payload = malloc(len);
    REQUIRE(payload);
    memset(payload, '*', len);
    for (int i = 0; i < 8; i++) {
        static const size_t chops[] = {KIT_WHOLE, 1, 7, 1000};
        bool client = i % 2;
        kit k;
        kit_wire wire = {.random = 3, .masked = !client};
        test_row("10.1.1");
        kit_init(&k, client, &(weft_framing_opts){.seed = 1});
        for (size_t at = 0; at < len; at += step)
            kit_put(&wire, &(kit_frame){(at == 0) | (at + step >= len ? 0x80u : 0), payload + at,
                                        len - at < step ? len - at : step});
        kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), chops[i / 2]);
        kit_expect(&k, &(kit_frame){0x81, payload, len}, 1);
        kit_done(&k);
        weft__buf_done(&wire.bytes, NULL);
    }
    test_row(NULL);
    free(payload);
}

TEST_MAIN(CASE(section_1_framing) CASE(section_2_pings) CASE(section_3_reserved_bits) CASE(section_4_opcodes)
              CASE(section_5_fragmentation) CASE(section_6_utf8_in_fragments) CASE(section_6_utf8_in_frames_of_one_byte)
                  CASE(section_6_4_fails_fast) CASE(section_6_utf8_sequences) CASE(section_7_closing)
                      CASE(section_7_1_6_large_message_then_close) CASE(section_10_fragments_of_1300))
