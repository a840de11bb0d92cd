/* The Autobahn testsuite's sections 12 and 13, compression: five kinds of data in 18 shapes each, and JSON in the same
 * shapes under seven agreements, against both framings. The other side compresses with zlib itself. The suite sends 1,000
 * messages in each case; here it is as many as make 64 KiB, and at least two. The suite's own files are replaced by data of
 * the same kinds. */
#include <zlib.h>

#include "websocket_kit.h"
#include "ws_handshake.h"

#define DATA_LEN (256 * 1024)
#define BYTES_PER_CASE (64 * 1024)

/* ---- data ---- */

static char data[DATA_LEN];

/* Text until the data is full. */
static void fill_text(size_t *at, const char *text) {
    size_t n = strlen(text);
    if (n > DATA_LEN - *at)
        n = DATA_LEN - *at;
    memcpy(data + *at, text, n);
    *at += n;
}

static void fill_json(void) {
    uint64_t random = 1;
    for (size_t at = 0; at < DATA_LEN;) {
        char row[160];
        snprintf(row, sizeof row, "{\"id\":%u,\"name\":\"agent %u\",\"score\":0.%u,\"tags\":[\"a\",\"b%u\"],\"ok\":true},\n",
                 kit_random(&random), kit_random(&random) % 50, kit_random(&random), kit_random(&random) % 9);
        fill_text(&at, row);
    }
}

static void fill_picture(void) {
    uint64_t random = 2;
    for (size_t i = 0; i < DATA_LEN; i++)
        data[i] = (char) ((i % 512) / 2 + (i / 512) / 4 + kit_random(&random) % 5);
}

static void fill_prose(void) {
    static const char *const words[] = {"Habe ",     "nun, ",      "ach! ",   "Philosophie, ",   "Juristerei ",
                                        "und ",      "Medizin, ",  "leider ", "auch ",           "Theologie ",
                                        "durchaus ", "studiert, ", "mit ",    "Bem\xc3\xbchn.\n"};
    uint64_t random = 3;
    for (size_t at = 0; at < DATA_LEN;)
        fill_text(&at, words[kit_random(&random) % 14]);
}

static void fill_html(void) {
    uint64_t random = 4;
    for (size_t at = 0; at < DATA_LEN;) {
        char row[160];
        snprintf(row, sizeof row, "<tr class=\"row-%u\"><td><a href=\"/item/%u\">item %u</a></td><td>&nbsp;</td></tr>\n",
                 kit_random(&random) % 2, kit_random(&random), kit_random(&random) % 1000);
        fill_text(&at, row);
    }
}

static void fill_noise(void) {
    uint64_t random = 5;
    for (size_t i = 0; i < DATA_LEN; i++)
        data[i] = (char) kit_random(&random);
}

/* The next len bytes of the data, in a circle. */
static void take_data(char *message, size_t len, size_t *at) {
    for (size_t i = 0; i < len; i++)
        message[i] = data[(*at + i) % DATA_LEN];
    *at = (*at + len) % DATA_LEN;
}

/* ---- the other side ---- */

typedef struct other {
    kit_wire wire;
    z_stream out, in;
    unsigned window;     /* what it may send with; ours is checked by the window that in has */
    unsigned compressed; /* messages of ours that came compressed */
} other;

static bool other_init(other *o, bool masked, unsigned its_window, unsigned our_window) {
    *o = (other){.wire = {.random = 6, .masked = masked}, .window = its_window};
    return deflateInit2(&o->out, 1, Z_DEFLATED, -(int) its_window, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
           inflateInit2(&o->in, -(int) our_window) == Z_OK;
}

static void other_done(other *o) {
    deflateEnd(&o->out);
    inflateEnd(&o->in);
    weft__buf_done(&o->wire.bytes, NULL);
}

/* Send a compressed message, in frames of step bytes; 0: in one. */
static void other_send(other *o, unsigned opcode, char *message, size_t len, size_t step) {
    size_t room = len + len / 4 + 256, size, at = 0;
    char *packed = malloc(room);
    deflateReset(&o->out);
    o->out.next_in = (Bytef *) message;
    o->out.avail_in = (unsigned) len;
    o->out.next_out = (Bytef *) packed;
    o->out.avail_out = (unsigned) room;
    deflate(&o->out, Z_SYNC_FLUSH);
    size = room - o->out.avail_out - 4;
    for (step = step ? step : size; at < size; at += step) {
        unsigned first = (at ? 0 : 0x40 | opcode) | (at + step >= size ? 0x80u : 0);
        kit_put(&o->wire, &(kit_frame){first, packed + at, size - at < step ? size - at : step});
    }
    free(packed);
}

/* Unpack a message of ours into memory of at least len bytes, and check that it is this one. */
static void other_expect(other *o, kit *k, unsigned opcode, const char *message, size_t len, char *plain) {
    kit_frame is = {0};
    if (!CHECK(kit_read(&k->out, k->client, &is)) || !CHECK_INT(is.first & ~0x40u, 0x80 | opcode))
        return;
    if (!(is.first & 0x40)) {
        kit_same(&is, &(kit_frame){0x80 | opcode, message, len});
        return;
    }
    o->compressed++;
    CHECK(is.len < len);
    inflateReset(&o->in);
    o->in.next_in = (Bytef *) (uintptr_t) is.data;
    o->in.avail_in = (unsigned) is.len;
    o->in.next_out = (Bytef *) plain;
    while (o->in.total_out < len) { /* in small pieces: what is still in the output would do instead of the window */
        o->in.avail_out = len - o->in.total_out < 100 ? (unsigned) (len - o->in.total_out) : 100;
        if (!CHECK_INT(inflate(&o->in, Z_SYNC_FLUSH), Z_OK))
            return;
    }
    CHECK(o->in.avail_in <= 1); /* the empty block at the end */
    CHECK(memcmp(plain, message, len) == 0);
}

/* ---- cases ---- */

static const struct {
    size_t len, step;
} shapes[] = {{16, 0},      {64, 0},      {256, 0},      {1024, 0},      {4096, 0},      {8192, 0},
              {16384, 0},   {32768, 0},   {65536, 0},    {131072, 0},    {8192, 256},    {16384, 256},
              {32768, 256}, {65536, 256}, {131072, 256}, {131072, 1024}, {131072, 4096}, {131072, 32768}};
#define SHAPES (sizeof shapes / sizeof shapes[0])

typedef struct agreement {
    unsigned server, client; /* the windows of what each side sends */
} agreement;

static weft_zip *zip;

static void run_shape(const char *name, bool client, unsigned opcode, size_t shape, agreement windows, size_t chop) {
    size_t len = shapes[shape].len, at = 0, count = BYTES_PER_CASE / len;
    char *message = malloc(len), *plain = malloc(len);
    unsigned ours = client ? windows.client : windows.server, its = client ? windows.server : windows.client;
    kit k;
    other o;

    test_row(name);
    kit_init(&k, client, &(weft_framing_opts){.seed = 1, .deflate = ours, .zip = zip});
    if (CHECK(message && plain) && CHECK(other_init(&o, !client, its, ours))) {
        for (size_t i = 0; i < count || i < 2; i++) {
            take_data(message, len, &at);
            other_send(&o, opcode, message, len, shapes[shape].step);
            kit_play(&k, kit_head(&o.wire.bytes), weft__buf_len(&o.wire.bytes), chop);
            o.wire.bytes.end = o.wire.bytes.start;
            other_expect(&o, &k, opcode, message, len, plain);
        }
        CHECK_INT(weft__buf_len(&k.out), 0);
        if (opcode == WEFT_WS_TEXT)
            CHECK_INT(o.compressed > 0, len > 1024); /* JSON and HTML always pay, and small messages never go packed */
        other_done(&o);
    }
    kit_done(&k);
    free(message);
    free(plain);
    test_row(NULL);
}

static void run_shapes(const char *section, unsigned opcode, agreement windows) {
    static const size_t chops[] = {KIT_WHOLE, 1000, 7, 2, 1};
    for (size_t i = 0; i < 2 * SHAPES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%zu as %s", section, i / 2 + 1, i % 2 ? "client" : "server");
        run_shape(name, i % 2, opcode, i / 2, windows, chops[i % 5]);
    }
}

static bool share_zip(void) {
    return zip || CHECK_INT(weft__zip_new(NULL, &zip), 0);
}

TEST(section_12_kinds_of_data) {
    static const struct {
        const char *name;
        void (*fill)(void);
        unsigned opcode;
    } kinds[] = {{"12.1", fill_json, WEFT_WS_TEXT},
                 {"12.2", fill_picture, WEFT_WS_BINARY},
                 {"12.3", fill_prose, WEFT_WS_BINARY},
                 {"12.4", fill_html, WEFT_WS_TEXT},
                 {"12.5", fill_noise, WEFT_WS_BINARY}};
    REQUIRE(share_zip());
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        kinds[i].fill();
        run_shapes(kinds[i].name, kinds[i].opcode, (agreement){15, 15});
    }
}

#define OFFER "permessage-deflate; client_no_context_takeover; client_max_window_bits"
#define BOTH "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

/* What the suite offers as a client, and what it answers to our client as a server. */
TEST(section_13_agreements) {
    static const struct {
        const char *name, *offers, *answer;
    } rows[] = {
        {"13.1", OFFER, "permessage-deflate; server_no_context_takeover"},
        {"13.2", OFFER "; server_no_context_takeover", BOTH},
        {"13.3", OFFER "; server_max_window_bits=9",
         "permessage-deflate; server_no_context_takeover; client_max_window_bits=9"},
        {"13.4", OFFER "; server_max_window_bits=15",
         "permessage-deflate; server_no_context_takeover; client_max_window_bits=15"},
        {"13.5", OFFER "; server_no_context_takeover; server_max_window_bits=9", BOTH "; client_max_window_bits=9"},
        {"13.6", OFFER "; server_no_context_takeover; server_max_window_bits=15", BOTH "; client_max_window_bits=15"},
        {"13.7",
         OFFER "; server_no_context_takeover; server_max_window_bits=9, " OFFER "; server_no_context_takeover, " OFFER,
         BOTH "; client_max_window_bits=9"},
    };
    REQUIRE(share_zip());
    fill_json();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char answer[WEFT_WS_DEFLATE_ANSWER_SIZE];
        unsigned server =
            weft__ws_deflate_offer((weft_bytes){rows[i].offers, strlen(rows[i].offers)}, answer, sizeof answer);
        int client = weft__ws_deflate_answer((weft_bytes){rows[i].answer, strlen(rows[i].answer)});
        if (CHECK(server > 0) && CHECK(client > 0))
            run_shapes(rows[i].name, WEFT_WS_TEXT, (agreement){server, (unsigned) client});
    }
    zip = weft__zip_free(zip);
}

/* ---- what the suite does not ask ---- */

#define PACKED_HELLO "\xf2\x48\xcd\xc9\xc9\x07\x00"

TEST(frames_with_compression) {
    static const struct {
        const char *name;
        kit_frame in[4], out[3];
        int broken;
    } rows[] = {
        {"a packed text", {FRAME(0xC1, PACKED_HELLO)}, {TEXT("Hello")}, 0},
        {"a packed binary", {FRAME(0xC2, PACKED_HELLO)}, {BINARY("Hello")}, 0},
        {"RFC 7692 7.2.3.1, in two frames", {FRAME(0x41, "\xf2\x48\xcd"), LAST("\xc9\xc9\x07\x00")}, {TEXT("Hello")}, 0},
        {"RFC 7692 7.2.3.6, empty", {FRAME(0xC1, "\x00")}, {TEXT("")}, 0},
        {"empty, in two frames", {FRAME(0x41, ""), LAST("\x00")}, {TEXT("")}, 0},
        {"plain between packed",
         {FRAME(0xC1, PACKED_HELLO), TEXT("plain"), FRAME(0xC1, PACKED_HELLO)},
         {TEXT("Hello"), TEXT("plain"), TEXT("Hello")},
         0},
        {"plain fragments", {BEGIN_TEXT("Hel"), LAST("lo")}, {TEXT("Hello")}, 0},
        {"packed fragments with a ping between",
         {FRAME(0x41, "\xf2\x48\xcd"), PING("\xff"), LAST("\xc9\xc9\x07\x00")},
         {PONG("\xff"), TEXT("Hello")},
         0},
        {"RSV1 on a continuation", {FRAME(0x41, "\xf2\x48\xcd"), FRAME(0xC0, "\xc9\xc9\x07\x00")}, {CLOSE_1002}, -EPROTO},
        {"RSV1 on a ping", {FRAME(0xC9, PACKED_HELLO)}, {CLOSE_1002}, -EPROTO},
        {"RSV1 on a close", {FRAME(0xC8, "")}, {CLOSE_1002}, -EPROTO},
        {"RSV2 beside RSV1", {FRAME(0xE1, PACKED_HELLO)}, {CLOSE_1002}, -EPROTO},
        {"RSV3 alone", {FRAME(0x91, PACKED_HELLO)}, {CLOSE_1002}, -EPROTO},
        {"not deflate", {FRAME(0xC1, "\xff\xff\xff")}, {CLOSE_1007}, -EPROTO},
        {"cut off", {FRAME(0xC1, "\xf2\x48\xcd")}, {CLOSE_1007}, -EPROTO},
        {"nothing at all", {FRAME(0xC1, "")}, {CLOSE_1007}, -EPROTO},
        {"packed, and no UTF-8", {FRAME(0xC1, "\x00\x02\x00\xfd\xff\xc3\x28\x00")}, {CLOSE_1007}, -EILSEQ},
        {"packed, no UTF-8, but binary", {FRAME(0xC2, "\x00\x02\x00\xfd\xff\xc3\x28\x00")}, {BINARY("\xc3\x28")}, 0},
        {"packed text that ends in a character", {FRAME(0xC1, "\x00\x01\x00\xfe\xff\xc3\x00")}, {CLOSE_1007}, -EILSEQ},
        {"a character in pieces, packed",
         {FRAME(0x41, "\x00\x02\x00\xfd\xff\xc3"), LAST("\xa9\x00")},
         {TEXT("\xc3\xa9")},
         0},
    };
    static const size_t chops[] = {KIT_WHOLE, 1, 2, 5};
    weft_zip *mine = NULL;
    REQUIRE(weft__zip_new(NULL, &mine) == 0);
    for (size_t i = 0; i < 8 * sizeof rows / sizeof rows[0]; i++) {
        bool client = i % 2;
        size_t row = i / 8, out = 0;
        kit k;
        kit_wire wire = {.random = 8, .masked = !client};
        test_row(rows[row].name);
        kit_init(&k, client, &(weft_framing_opts){.deflate = 15, .zip = mine});
        k.moving = true;
        for (size_t j = 0; j < 4 && rows[row].in[j].first; j++)
            kit_put(&wire, &rows[row].in[j]);
        kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), chops[i / 2 % 4]);
        while (out < 3 && rows[row].out[out].first)
            out++;
        kit_expect(&k, rows[row].out, out);
        CHECK_INT(k.broken, rows[row].broken);
        kit_done(&k);
        weft__buf_done(&wire.bytes, NULL);
    }
    test_row(NULL);
    weft__zip_free(mine);
}

/* 64 MiB of zeros in 64 KiB, whole and in fragments: refused as too large, at the cost of the limit and no more. */
TEST(bombs) {
    enum { LEN = 64 << 20 };
    weft_zip *mine = NULL;
    weft_buf packed = {0};
    char *zeros = calloc(1, LEN);
    REQUIRE(zeros && weft__zip_new(NULL, &mine) == 0);
    REQUIRE(weft__zip_deflate(mine, 15, zeros, LEN, &packed) == 0);
    free(zeros);
    for (size_t step = 1000; step <= packed.end; step = step == 1000 ? packed.end : step + 1) {
        static const kit_frame refused = CLOSE_1009;
        kit k;
        kit_wire wire = {.masked = true};
        kit_init(&k, false, &(weft_framing_opts){.deflate = 15, .zip = mine});
        k.max_body = 1 << 20;
        for (size_t at = 0; at < packed.end; at += step)
            kit_put(&wire, &(kit_frame){(at ? 0 : 0x42) | (at + step >= packed.end ? 0x80u : 0), packed.data + at,
                                        packed.end - at < step ? packed.end - at : step});
        kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), KIT_WHOLE);
        CHECK_INT(k.broken, -EMSGSIZE);
        CHECK(k.ws.message.cap <= 4u << 20);
        kit_expect(&k, &refused, 1);
        kit_done(&k);
        weft__buf_done(&wire.bytes, NULL);
    }
    weft__buf_done(&packed, NULL);
    weft__zip_free(mine);
}

/* A message at the limit passes in any form, one byte more in none. */
TEST(limits_count_what_is_inside) {
    enum { MAX = 4096 };
    weft_zip *mine = NULL;
    REQUIRE(weft__zip_new(NULL, &mine) == 0);
    for (int noise = 0; noise < 2; noise++) {
        for (size_t len = MAX - 1; len <= MAX + 1; len++) {
            weft_buf packed = {0};
            kit k;
            kit_wire wire = {.masked = true};
            noise ? fill_noise() : fill_json();
            weft__zip_deflate(mine, 15, data, len, &packed);
            kit_init(&k, false, &(weft_framing_opts){.deflate = 15, .zip = mine});
            k.max_body = MAX;
            kit_put(&wire, &(kit_frame){0xC2, packed.data, packed.end});
            kit_play(&k, wire.bytes.data, weft__buf_len(&wire.bytes), KIT_WHOLE);
            CHECK_INT(k.broken, len > MAX ? -EMSGSIZE : 0);
            kit_done(&k);
            weft__buf_done(&wire.bytes, NULL);
            weft__buf_done(&packed, NULL);
        }
    }
    weft__zip_free(mine);
}

TEST(noise_is_sent_as_it_is) {
    enum { LEN = 5000 };
    weft_zip *mine = NULL;
    kit k;
    REQUIRE(weft__zip_new(NULL, &mine) == 0);
    fill_noise();
    kit_init(&k, false, &(weft_framing_opts){.deflate = 15, .zip = mine});
    CHECK_INT(kit_say(&k, data, LEN, LEN, true), 0);
    kit_expect(&k, &(kit_frame){0x82, data, LEN}, 1);
    kit_done(&k);
    weft__zip_free(mine);
}

TEST(options_that_do_not_go_together) {
    weft_zip *mine = NULL;
    kit k;
    REQUIRE(weft__zip_new(NULL, &mine) == 0);
    CHECK_INT(kit_init(&k, false, &(weft_framing_opts){.deflate = 15}), -EINVAL);
    CHECK_INT(kit_init(&k, false, &(weft_framing_opts){.deflate = 8, .zip = mine}), -EINVAL);
    CHECK_INT(kit_init(&k, true, &(weft_framing_opts){.deflate = 16, .zip = mine}), -EINVAL);
    CHECK_INT(kit_init(&k, true, &(weft_framing_opts){.deflate = 9, .zip = mine}), 0);
    weft__zip_free(mine);
}

TEST_MAIN(CASE(section_12_kinds_of_data) CASE(section_13_agreements) CASE(frames_with_compression) CASE(bombs)
              CASE(limits_count_what_is_inside) CASE(noise_is_sent_as_it_is) CASE(options_that_do_not_go_together))
