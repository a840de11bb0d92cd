/* The WebSocket handshake: keys, and what is agreed on about compression. */
#include "ws_handshake.h"

#include <errno.h>

#include "harness.h"

static weft_bytes bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

TEST(keys) {
    static const struct {
        const char *name, *key;
        bool valid;
    } rows[] = {
        {"the one of RFC 6455 section 1.3", "dGhlIHNhbXBsZSBub25jZQ==", true},
        {"every kind of character", "+/09AZaz+/09AZaz+/09AA==", true},
        {"empty", "", false},
        {"15 bytes", "dGhlIHNhbXBsZSBub25j", false},
        {"17 bytes", "dGhlIHNhbXBsZSBub25jZQA=", false},
        {"18 bytes", "dGhlIHNhbXBsZSBub25jZQAA", false},
        {"one short", "dGhlIHNhbXBsZSBub25jZQ=", false},
        {"one long", "dGhlIHNhbXBsZSBub25jZQ===", false},
        {"a blank inside", "dGhlIHNhbXBs ZSBub25jQ==", false},
        {"the URL alphabet", "dGhlIHNhbXBsZSBub2_-ZQ==", false},
        {"padding inside", "dGhlIHNhbXBsZSBub25=ZQ==", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_INT(weft__ws_key_valid(bytes(rows[i].key)), rows[i].valid);
    }
    test_row(NULL);
}

TEST(accept) {
    char answer[29];
    weft__ws_accept(bytes("dGhlIHNhbXBsZSBub25jZQ=="), answer);
    CHECK_TEXT(answer, strlen(answer), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    weft__ws_accept(bytes("x3JJHMbDL1EzLkh9GBhXDw=="), answer);
    CHECK_TEXT(answer, strlen(answer), "HSmrc0sMlYUkAGmm5OPpG2HaGWk=");
}

#define DEFLATE "permessage-deflate"
#define AGREED DEFLATE "; server_no_context_takeover; client_no_context_takeover"

#define AUTOBAHN DEFLATE "; client_no_context_takeover; client_max_window_bits"

TEST(offers) {
    static const struct {
        const char *name, *offers;
        unsigned window;
        const char *answer;
    } rows[] = {
        {"nothing", "", 0, ""},
        {"plain", DEFLATE, 15, AGREED},
        {"13.1 what Autobahn offers", AUTOBAHN, 15, AGREED},
        {"13.2 no context takeover", AUTOBAHN "; server_no_context_takeover", 15, AGREED},
        {"13.3 window of 9", AUTOBAHN "; server_max_window_bits=9", 9, AGREED "; server_max_window_bits=9"},
        {"13.4 window of 15", AUTOBAHN "; server_max_window_bits=15", 15, AGREED "; server_max_window_bits=15"},
        {"13.5 no context takeover, window of 9",
         DEFLATE
         "; client_no_context_takeover; client_max_window_bits; server_no_context_takeover; server_max_window_bits=9",
         9, AGREED "; server_max_window_bits=9"},
        {"13.6 no context takeover, window of 15",
         DEFLATE
         "; client_no_context_takeover; client_max_window_bits; server_no_context_takeover; server_max_window_bits=15",
         15, AGREED "; server_max_window_bits=15"},
        {"13.7 three offers",
         DEFLATE "; server_no_context_takeover; server_max_window_bits=9, " DEFLATE "; server_no_context_takeover, " DEFLATE,
         9, AGREED "; server_max_window_bits=9"},
        {"Chrome", DEFLATE "; client_max_window_bits", 15, AGREED},
        {"Safari of old", "x-webkit-deflate-frame", 0, ""},
        {"another extension before it", "permessage-bzip2; level=9, " DEFLATE, 15, AGREED},
        {"a value in quotes", DEFLATE "; server_max_window_bits=\"10\"", 10, AGREED "; server_max_window_bits=10"},
        {"a value in quotes with a backslash", DEFLATE "; server_max_window_bits=\"\\1\\0\"", 10,
         AGREED "; server_max_window_bits=10"},
        {"blanks everywhere", " \t" DEFLATE " ;\tserver_max_window_bits = 12 , ", 12, AGREED "; server_max_window_bits=12"},
        {"no blanks", DEFLATE ";server_max_window_bits=12;client_max_window_bits=8", 12,
         AGREED "; server_max_window_bits=12"},
        {"empty elements", ",, ," DEFLATE ",,", 15, AGREED},
        {"a window of 8 is more than zlib can do", DEFLATE "; server_max_window_bits=8", 0, ""},
        {"a window of 8, then a fallback", DEFLATE "; server_max_window_bits=8, " DEFLATE, 15, AGREED},
        {"a window without a value", DEFLATE "; server_max_window_bits", 0, ""},
        {"a window of 7", DEFLATE "; server_max_window_bits=7", 0, ""},
        {"a window of 16", DEFLATE "; server_max_window_bits=16", 0, ""},
        {"a window of 09", DEFLATE "; server_max_window_bits=09", 0, ""},
        {"a long window", DEFLATE "; server_max_window_bits=150000000000000", 0, ""},
        {"a window with a sign", DEFLATE "; server_max_window_bits=+9", 0, ""},
        {"the client's window of 7", DEFLATE "; client_max_window_bits=7", 0, ""},
        {"the client's window of 16", DEFLATE "; client_max_window_bits=16", 0, ""},
        {"a value where none belongs", DEFLATE "; server_no_context_takeover=1", 0, ""},
        {"the same, for the client", DEFLATE "; client_no_context_takeover=true, " DEFLATE, 15, AGREED},
        {"an unknown parameter", DEFLATE "; mystery", 0, ""},
        {"an unknown parameter, then a fallback", DEFLATE "; mystery=1, " DEFLATE "; server_max_window_bits=11", 11,
         AGREED "; server_max_window_bits=11"},
        {"a parameter twice", DEFLATE "; server_max_window_bits=10; server_max_window_bits=10", 0, ""},
        {"a flag twice", DEFLATE "; client_no_context_takeover; client_no_context_takeover", 0, ""},
        {"another case is another name", "Permessage-Deflate", 0, ""},
        {"malformed: an empty parameter", DEFLATE ";", 0, ""},
        {"malformed: an empty value", DEFLATE "; server_max_window_bits=", 0, ""},
        {"malformed: empty quotes", DEFLATE "; server_max_window_bits=\"\"", 0, ""},
        {"malformed: an open quote", DEFLATE "; server_max_window_bits=\"10", 0, ""},
        {"malformed: a backslash at the end", DEFLATE "; server_max_window_bits=\"1\\", 0, ""},
        {"malformed: a blank in quotes", DEFLATE "; server_max_window_bits=\"1 0\"", 0, ""},
        {"malformed: two words", DEFLATE " " DEFLATE, 0, ""},
        {"malformed: further on", DEFLATE ", @", 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char answer[WEFT_WS_DEFLATE_ANSWER_SIZE] = "";
        test_row(rows[i].name);
        CHECK_INT(weft__ws_deflate_offer(bytes(rows[i].offers), answer, sizeof answer), rows[i].window);
        CHECK_TEXT(answer, strlen(answer), rows[i].answer);
    }
    test_row(NULL);
}

TEST(answer_that_does_not_fit_its_buffer) {
    char answer[WEFT_WS_DEFLATE_ANSWER_SIZE];
    weft_bytes offer = bytes(DEFLATE "; server_max_window_bits=10");
    size_t needed = sizeof AGREED "; server_max_window_bits=10";
    for (size_t size = 0; size < needed; size++)
        CHECK_INT(weft__ws_deflate_offer(offer, answer, size), 0);
    CHECK_INT(weft__ws_deflate_offer(offer, answer, needed), 10);
}

TEST(answers) {
    static const struct {
        const char *name, *answer;
        int window;
    } rows[] = {
        {"none", "", 0},
        {"a window for us", AGREED "; client_max_window_bits=9", 9},
        {"the largest window for us", AGREED "; client_max_window_bits=15", 15},
        {"a window for us that zlib cannot do", AGREED "; client_max_window_bits=8", -EPROTO},
        {"a window for us without a value: that is an offer", WEFT_WS_DEFLATE_OFFER, -EPROTO},
        {"what our own server answers", AGREED, 15},
        {"only what we need", DEFLATE "; server_no_context_takeover", 15},
        {"a window for the server, which it may name unasked", AGREED "; server_max_window_bits=8", 15},
        {"the same in quotes", AGREED "; server_max_window_bits=\"15\"", 15},
        {"context takeover by the server", DEFLATE, -EPROTO},
        {"the same, and none by us", DEFLATE "; client_no_context_takeover", -EPROTO},
        {"a window without a value", AGREED "; server_max_window_bits", -EPROTO},
        {"a window of 16", AGREED "; server_max_window_bits=16", -EPROTO},
        {"an unknown parameter", AGREED "; mystery", -EPROTO},
        {"a parameter twice", AGREED "; server_no_context_takeover", -EPROTO},
        {"an extension that we did not offer", "permessage-bzip2", -EPROTO},
        {"one more than we offered", AGREED ", permessage-bzip2", -EPROTO},
        {"twice", AGREED ", " AGREED, -EPROTO},
        {"malformed", AGREED ";", -EPROTO},
        {"malformed behind it", AGREED ", ;", -EPROTO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_INT(weft__ws_deflate_answer(bytes(rows[i].answer)), rows[i].window);
    }
    test_row(NULL);
}

TEST_MAIN(CASE(keys) CASE(accept) CASE(offers) CASE(answer_that_does_not_fit_its_buffer) CASE(answers))
