/* NDJSON, Content-Length, detection, server-sent events and plain bodies: bytes and what must come out of them. */
#include "suites/framing.h"

/* A frame is written as its body in angle brackets, "<too large>", or the name of an error; the end of the input is '|' with
 * what finish() says behind it. */
typedef struct scene {
    const char *name;
    const char *in;
    const char *want;
    size_t max_body; /* 0: 64 */
} scene;

static const char *error_name(int r) {
    return r == -EPROTO ? "!EPROTO" : r == -ENOTSUP ? "!ENOTSUP" : r == -ENOMEM ? "!ENOMEM" : "!other";
}

static void describe(char *text, size_t size, const framing_reader *reader) {
    size_t pos = 0, at = 0;
    text[0] = '\0';
    while (pos < weft__buf_len(&reader->log)) {
        const char *entry = weft__buf_head(&reader->log) + pos;
        size_t len;
        memcpy(&len, entry + 1, sizeof len);
        if (entry[0] == WEFT_FRAME_TOO_LARGE)
            at += (size_t) snprintf(text + at, size - at, "<too large>");
        else if (entry[0] == WEFT_FRAME_UNREADABLE)
            at += (size_t) snprintf(text + at, size - at, "<unreadable>");
        else
            at += (size_t) snprintf(text + at, size - at, "<%.*s>", (int) len, entry + 1 + sizeof len);
        pos += 1 + sizeof len + len;
    }
}

/* What comes out of these bytes and then the end of the input. */
static void run_row(const framing_pair *pair, const scene *row, size_t split, size_t step, char *text, size_t size) {
    framing_reader reader;
    size_t len = strlen(row->in);
    CHECK_INT(framing_reader_init(&reader, pair, NULL, row->max_body ? row->max_body : 64), 0);
    reader.moving = true;
    if (split < len) {
        framing_feed(&reader, row->in, split);
        if (reader.r >= 0)
            framing_feed(&reader, row->in + split, len - split);
    } else
        for (size_t pos = 0; pos < len && reader.r >= 0; pos += step)
            framing_feed(&reader, row->in + pos, step > len - pos ? len - pos : step);
    size_t used = 0;
    weft_frame frame = {0};
    int r = reader.r;
    if (r >= 0 && pair->in->finish) {
        r = pair->in->finish(reader.state, reader.left, reader.left_len, reader.max_body, &used, &frame);
        if (r > 0)
            framing_keep(&reader, &frame);
    }
    describe(text, size, &reader);
    if (r < 0)
        strncat(text, error_name(r), size - strlen(text) - 1);
    framing_reader_done(&reader);
}

/* Each row whole, cut in two at every place, and byte by byte. */
static void run_rows(const framing_pair *pair, const scene *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char text[512];
        size_t len = strlen(rows[i].in);
        test_row(rows[i].name);
        run_row(pair, &rows[i], len, len, text, sizeof text);
        CHECK_TEXT(text, strlen(text), rows[i].want);
        run_row(pair, &rows[i], len, 1, text, sizeof text);
        CHECK_TEXT(text, strlen(text), rows[i].want);
        for (size_t split = 0; split < len; split++) {
            run_row(pair, &rows[i], split, len, text, sizeof text);
            CHECK_TEXT(text, strlen(text), rows[i].want);
        }
    }
}
#define RUN(framing, rows) run_rows(&(framing_pair){.in = &(framing)}, rows, sizeof(rows) / sizeof(rows)[0])

TEST(ndjson_rows) {
    static const scene rows[] = {
        {"nothing", "", "", 0},
        {"one line", "{}\n", "<{}>", 0},
        {"two lines", "{}\n[1]\n", "<{}><[1]>", 0},
        {"CRLF", "{}\r\n[]\r\n", "<{}><[]>", 0},
        {"blank lines", "\n\r\n \t\n{}\n\n\n1\n\n", "<{}><1>", 0},
        {"only blanks", " \t\r\n", "", 0},
        {"blanks before a text", "  {}\n", "<{}>", 0},
        {"blanks behind a text stay", "{} \t\r\n", "<{} \t>", 0},
        {"not JSON is a body too", "hello\n{}\n", "<hello><{}>", 0},
        {"a CR inside a line", "a\rb\n", "<a\rb>", 0},
        {"two CRs at the end", "a\r\r\n", "<a\r>", 0},
        {"a last line without a newline", "{}\n[2]", "<{}><[2]>", 0},
        {"a last line that ends in CR", "[2]\r", "<[2]>", 0},
        {"just as long as allowed", "12345678\n1\n", "<12345678><1>", 8},
        {"just as long as allowed, CRLF", "12345678\r\n1\n", "<12345678><1>", 8},
        {"as long as allowed at the end", "12345678", "<12345678>", 8},
        {"one byte over", "123456789\n1\n", "<too large><1>", 8},
        {"one byte over, CRLF", "123456789\r\n1\r\n", "<too large><1>", 8},
        {"a CR that was no end of line", "12345678\r9\n1\n", "<too large><1>", 8},
        {"a CR too many", "12345678\r\r\n1\n", "<too large><1>", 8},
        {"much too long", "1234567890123456789012345678901234567890\n1\n", "<too large><1>", 8},
        {"too long at the end", "1234567890123456789012345678901234567890", "<too large>", 8},
        {"two too long", "123456789\n123456789\n1\n", "<too large><too large><1>", 8},
        {"blanks do not count", "            1234567\n", "<1234567>", 8},
    };
    RUN(weft_ndjson, rows);
}

/* A search goes on in vectors of 16 up to 256 bytes and then with memchr: every length around those borders. */
TEST(ndjson_every_length) {
    static char line[700];
    for (size_t len = 1; len < 600; len++) {
        framing_reader reader;
        CHECK_INT(framing_reader_init(&reader, &(framing_pair){.in = &weft_ndjson}, NULL, 1000), 0);
        reader.moving = true;
        memset(line, 'x', len);
        line[len] = '\n';
        framing_feed(&reader, line, len);
        CHECK_INT(reader.bodies, 0);
        framing_feed(&reader, line + len, 1);
        framing_feed(&reader, line, len + 1);
        CHECK_INT(reader.bodies, 2);
        CHECK_INT(weft__buf_len(&reader.log), 2 * (len + 1 + sizeof len));
        framing_reader_done(&reader);
    }
}

/* However long the line, a search never looks at a byte twice; the peer counts on that when bytes drip in. */
TEST(ndjson_resumes) {
    char in[40 + WEFT_SLACK] = "0123456789";
    weft_frame frame;
    size_t used;
    void *state = calloc(1, weft_ndjson.state_size);
    CHECK_INT(weft_ndjson.decode(state, in, 10, 1000, &used, &frame), 0);
    in[3] = '\n';
    in[12] = '\n';
    CHECK_INT(weft_ndjson.decode(state, in, 13, 1000, &used, &frame), 1);
    CHECK_INT(frame.len, 12);
    free(state);
}

/* The newline may also be put there by the caller. */
TEST(ndjson_newline_appended) {
    char in[8 + WEFT_SLACK] = "[1]";
    weft_frame frame;
    size_t used;
    void *state = calloc(1, weft_ndjson.state_size);
    CHECK_INT(weft_ndjson.decode(state, in, 3, 1000, &used, &frame), 0);
    CHECK_INT(used, 0);
    in[3] = '\n';
    CHECK_INT(weft_ndjson.decode(state, in, 4, 1000, &used, &frame), 1);
    CHECK_INT(used, 4);
    CHECK_TEXT(frame.body, frame.len, "[1]");
    free(state);
}

/* A NUL is a byte like any other here. */
TEST(ndjson_nul) {
    framing_reader reader;
    weft_buf want = {0};
    CHECK_INT(framing_reader_init(&reader, &(framing_pair){.in = &weft_ndjson}, NULL, 1000), 0);
    framing_log(&want, WEFT_FRAME_BODY, "a\0b", 3);
    framing_feed(&reader, "a\0b\n", 4);
    framing_check_log(&reader, &want);
    weft__buf_done(&want, NULL);
    framing_reader_done(&reader);
}

TEST(content_length_rows) {
    static const scene rows[] = {
        {"nothing", "", "", 0},
        {"one", "Content-Length: 2\r\n\r\n{}", "<{}>", 0},
        {"two", "Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", "<{}><[1]>", 0},
        {"bare LF", "Content-Length: 2\n\n{}", "<{}>", 0},
        {"names have no case", "cOnTeNt-LENGTH: 2\r\n\r\n{}", "<{}>", 0},
        {"no blank behind the colon", "Content-Length:2\r\n\r\n{}", "<{}>", 0},
        {"blanks around the value", "Content-Length: \t 2 \t\r\n\r\n{}", "<{}>", 0},
        {"leading zeros", "Content-Length: 0002\r\n\r\n{}", "<{}>", 0},
        {"Content-Type", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", "<{}>",
         0},
        {"Content-Type behind", "Content-Length: 2\r\nContent-Type: x\r\n\r\n{}", "<{}>", 0},
        {"other headers", "X: 1\r\nContent-Length: 2\r\nY:\r\n\r\n{}", "<{}>", 0},
        {"identity", "Content-Encoding: Identity\r\nContent-Length: 2\r\n\r\n{}", "<{}>", 0},
        {"an empty body", "Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", "<><1>", 0},
        {"the same length twice", "Content-Length: 2\r\nContent-Length: 02\r\n\r\n{}", "<{}>", 0},
        {"newlines in the body", "Content-Length: 4\r\n\r\n\r\n\r\n", "<\r\n\r\n>", 0},
        {"a header in the body", "Content-Length: 17\r\n\r\nContent-Length: 9", "<Content-Length: 9>", 0},
        {"just as long as allowed", "Content-Length: 8\r\n\r\n12345678", "<12345678>", 8},
        {"one byte over", "Content-Length: 9\r\n\r\n123456789Content-Length: 1\r\n\r\n1", "<too large><1>", 8},
        {"skips exactly", "Content-Length: 23\r\n\r\nContent-Length: 1\r\n\r\n2\nContent-Length: 1\r\n\r\n1",
         "<too large><1>", 8},
        {"the largest length", "Content-Length: 9223372036854775807\r\n\r\n1", "<too large>!EPROTO", 0},
        {"two different lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n[1]", "!EPROTO", 0},
        {"a list of lengths", "Content-Length: 2, 2\r\n\r\n{}", "!EPROTO", 0},
        {"negative", "Content-Length: -1\r\n\r\n", "!EPROTO", 0},
        {"with a sign", "Content-Length: +2\r\n\r\n{}", "!EPROTO", 0},
        {"hexadecimal", "Content-Length: 0x2\r\n\r\n{}", "!EPROTO", 0},
        {"a fraction", "Content-Length: 2.0\r\n\r\n{}", "!EPROTO", 0},
        {"garbage behind", "Content-Length: 2a\r\n\r\n{}", "!EPROTO", 0},
        {"a blank inside", "Content-Length: 2 2\r\n\r\n{}", "!EPROTO", 0},
        {"empty", "Content-Length:\r\n\r\n{}", "!EPROTO", 0},
        {"one over the largest", "Content-Length: 9223372036854775808\r\n\r\n1", "!EPROTO", 0},
        {"far over", "Content-Length: 184467440737095516160000000000000\r\n\r\n1", "!EPROTO", 0},
        {"no length", "Content-Type: x\r\n\r\n{}", "!EPROTO", 0},
        {"no header", "\r\n", "!EPROTO", 0},
        {"no colon", "Content-Length 2\r\n\r\n", "!EPROTO", 0},
        {"no name", ": 2\r\n\r\n", "!EPROTO", 0},
        {"a blank before the colon", "Content-Length : 2\r\n\r\n{}", "!EPROTO", 0},
        {"a folded line", "Content-Type: x\r\n y: z\r\nContent-Length: 2\r\n\r\n{}", "!EPROTO", 0},
        {"a line of NDJSON", "{\"a\": 1}\n", "!EPROTO", 0},
        {"compressed, where nobody unpacks",
         "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}Content-Length: 1\r\n\r\n1", "<unreadable><1>", 0},
        {"another coding", "Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}Content-Length: 1\r\n\r\n1",
         "<unreadable><1>", 0},
        {"codings on top of each other", "Content-Encoding: identity, gzip\r\nContent-Length: 2\r\n\r\n{}", "<unreadable>",
         0},
        {"a coding twice", "Content-Encoding: identity\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}",
         "<unreadable>", 0},
        {"a coding of something too large", "Content-Encoding: br\r\nContent-Length: 100\r\n\r\n", "<too large>!EPROTO", 0},
        {"what the other side reads", "Content-Length: 2\r\nAccept-Encoding: br, gzip;q=0.5\r\n\r\n{}", "<{}>", 0},
        {"ends in a line", "Content-Le", "!EPROTO", 0},
        {"ends between lines", "Content-Length: 2\r\n", "!EPROTO", 0},
        {"ends before the body", "Content-Length: 2\r\n\r\n", "!EPROTO", 0},
        {"ends in the body", "Content-Length: 2\r\n\r\n{", "!EPROTO", 0},
        {"good, then broken", "Content-Length: 2\r\n\r\n{}oops\n", "<{}>!EPROTO", 0},
    };
    RUN(weft_content_length, rows);
}

/* A block of headers of exactly 8 KiB is read, one of a byte more is not, however it comes. */
TEST(content_length_head_border) {
    static const char tail[] = "Content-Length: 1\r\n\r\n";
    for (size_t over = 0; over < 2; over++)
        for (size_t step = 0; step < 3; step++) {
            char in[8192 + 16];
            size_t len = 8192 + over;
            memset(in, 'x', len);
            in[1] = ':';
            memcpy(in + len - sizeof tail + 1, tail, sizeof tail - 1);
            memcpy(in + len - sizeof tail - 1, "\r\n", 2);
            in[len] = '1';
            framing_reader reader;
            CHECK_INT(framing_reader_init(&reader, &(framing_pair){.in = &weft_content_length}, NULL, 1000), 0);
            framing_feed_pieces(&reader, in, len + 1, step);
            CHECK_INT(reader.r, over ? -EPROTO : 0);
            CHECK_INT(reader.bodies, over ? 0 : 1);
            framing_reader_done(&reader);
        }
}

/* Once the headers are there, the peer is told how much room the rest will need. */
TEST(content_length_says_what_it_needs) {
    char in[64 + WEFT_SLACK] = "Content-Length: 300\r\n\r\n{";
    void *state = calloc(1, weft_content_length.state_size);
    weft_frame frame = {0};
    size_t used;
    CHECK_INT(weft_content_length.init(state, &(weft_framing_opts){0}), 0);
    CHECK_INT(weft_content_length.decode(state, in, 10, 1000, &used, &frame), 0);
    CHECK_INT(used, 0);
    CHECK_INT(frame.len, 0);
    CHECK_INT(weft_content_length.decode(state, in, 24, 1000, &used, &frame), 0);
    CHECK_INT(used, 23);
    CHECK_INT(frame.len, 300);
    free(state);
}

TEST(detect_rows) {
    static const scene rows[] = {
        {"nothing", "", "", 0},
        {"blanks", " \n\r\n", "", 0},
        {"an object", "{}\n", "<{}>", 0},
        {"an array", " \n[1]\n", "<[1]>", 0},
        {"headers", "Content-Length: 2\r\n\r\n{}", "<{}>", 0},
        {"headers behind blanks", "\r\n Content-Length: 2\r\n\r\n{}", "<{}>", 0},
        {"headers in capitals", "CONTENT-TYPE: x\r\ncontent-length: 2\r\n\r\n{}", "<{}>", 0},
        {"another header first", "Accept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "<{}>", 0},
        {"a line that only begins like a header", "Con\n{}\n", "<Con><{}>", 0},
        {"a line that only begins like another", "Accept\n{}\n", "<Accept><{}>", 0},
        {"almost a header", "content_length: 2\n", "<content_length: 2>", 0},
        {"a CR is not a dash", "Content\rx\n", "<Content\rx>", 0},
        {"a letter", "C\n", "<C>", 0},
        {"a letter at the end", "c", "<c>", 0},
        {"part of the word at the end", "Content", "<Content>", 0},
        {"a number", "1\n", "<1>", 0},
        {"stays with lines", "{}\nContent-Length: 2\n", "<{}><Content-Length: 2>", 0},
        {"stays with headers", "Content-Length: 2\r\n\r\n{}{}\n", "<{}>!EPROTO", 0},
        {"ends in a header", "Content-", "!EPROTO", 0},
        {"ends in another header", "accept-", "!EPROTO", 0},
        {"ends in a body", "Content-Length: 2\r\n\r\n{", "!EPROTO", 0},
    };
    RUN(weft_detect, rows);
}

/* Answers are written as the questions came; before the first bytes, as lines. */
TEST(detect_answers_in_kind) {
    static const struct {
        const char *name, *in, *want, *in_use;
    } rows[] = {
        {"before the first byte", "", "[]\n", "ndjson"},
        {"undecided", "Cont", "[]\n", "ndjson"},
        {"lines", "{}\n", "[]\n", "ndjson"},
        {"headers", "Content-Length: 2\r\n\r\n{}", "Content-Length: 2\r\n\r\n[]", "content-length"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        framing_reader reader;
        test_row(rows[i].name);
        CHECK_INT(framing_reader_init(&reader, &(framing_pair){.in = &weft_detect}, NULL, 1000), 0);
        framing_feed(&reader, rows[i].in, strlen(rows[i].in));
        framing_writer writer = {.framing = &weft_detect, .state = reader.state};
        CHECK_INT(framing_write(&writer, "[]", 2, 2), 0);
        CHECK_TEXT(weft__buf_head(&writer.out), weft__buf_len(&writer.out), rows[i].want);
        CHECK_STR(weft__framing_in_use(&weft_detect, reader.state)->name, rows[i].in_use);
        weft__buf_done(&writer.out, NULL);
        framing_reader_done(&reader);
    }
    test_row(NULL);
    CHECK(weft__framing_in_use(&weft_ndjson, NULL) == &weft_ndjson);
}

/* The bytes of a frame, written after a byte that was there and half taken before. */
TEST(written) {
    static const struct {
        const char *name;
        const weft_framing *framing;
        const char *body;
        size_t hint;
        const char *want;
    } rows[] = {
        {"a line", &weft_ndjson, "{}", 2, "{}\n"},
        {"headers", &weft_content_length, "{}", 2, "Content-Length: 2\r\n\r\n{}"},
        {"an empty body", &weft_content_length, "", 0, "Content-Length: 0\r\n\r\n"},
        {"a hint too small", &weft_content_length, "123456789012", 0, "Content-Length: 12\r\n\r\n123456789012"},
        {"a hint too large", &weft_content_length, "12", 100000, "Content-Length: 2\r\n\r\n12"},
        {"a body", &weft__body, "{\n}", 3, "{\n}"},
        {"an event", &weft__sse, "{}", 2, "data: {}\n\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        framing_writer writer;
        test_row(rows[i].name);
        CHECK_INT(framing_writer_init(&writer, &(framing_pair){.out = rows[i].framing}, NULL), 0);
        CHECK_INT(weft__buf_put(&writer.out, NULL, "\nx", 2), 0);
        weft__buf_take(&writer.out, NULL, 1);
        CHECK_INT(framing_write(&writer, rows[i].body, strlen(rows[i].body), rows[i].hint), 0);
        CHECK_TEXT(weft__buf_head(&writer.out) + 1, weft__buf_len(&writer.out) - 1, rows[i].want);
        CHECK_INT(weft__buf_head(&writer.out)[0], 'x');
        framing_writer_done(&writer);
    }
}

TEST(hint_beyond_memory) {
    static const weft_framing *const framings[] = {&weft_ndjson, &weft_content_length, &weft__sse};
    for (size_t i = 0; i < sizeof framings / sizeof framings[0]; i++) {
        framing_writer writer;
        size_t mark;
        CHECK_INT(framing_writer_init(&writer, &(framing_pair){.out = framings[i]}, NULL), 0);
        CHECK_INT(framings[i]->begin(writer.state, &writer.out, SIZE_MAX - 1, &mark), -ENOMEM);
        CHECK_INT(weft__buf_len(&writer.out), 0);
        framing_writer_done(&writer);
    }
}

TEST(sse_comment) {
    framing_writer writer;
    CHECK_INT(framing_writer_init(&writer, &(framing_pair){.out = &weft__sse}, NULL), 0);
    CHECK_INT(weft__sse.control(writer.state, &writer.out, WEFT_FRAME_PING, 0, NULL, 0), 0);
    CHECK_INT(weft__sse.control(writer.state, &writer.out, WEFT_FRAME_CLOSE, 0, NULL, 0), 0);
    CHECK_TEXT(weft__buf_head(&writer.out), weft__buf_len(&writer.out), ":\n\n");
    framing_writer_done(&writer);
}

TEST(sse_reads_nothing) {
    char in[WEFT_SLACK] = "x";
    size_t used;
    weft_frame frame;
    CHECK_INT(weft__sse.decode(NULL, in, 1, 1, &used, &frame), -ENOTSUP);
}

TEST(body_takes_what_is_there) {
    char in[8 + WEFT_SLACK] = "12345678";
    size_t used;
    weft_frame frame;
    CHECK_INT(weft__body.decode(NULL, in, 0, 8, &used, &frame), 0);
    CHECK_INT(weft__body.decode(NULL, in, 8, 8, &used, &frame), 1);
    CHECK_INT(used, 8);
    CHECK_TEXT(frame.body, frame.len, "12345678");
    CHECK_INT(weft__body.decode(NULL, in, 8, 7, &used, &frame), 1);
    CHECK_INT(frame.kind, WEFT_FRAME_TOO_LARGE);
}

TEST_MAIN(CASE(ndjson_rows) CASE(ndjson_every_length) CASE(ndjson_resumes) CASE(ndjson_newline_appended) CASE(ndjson_nul)
              CASE(content_length_rows) CASE(content_length_head_border) CASE(content_length_says_what_it_needs)
                  CASE(detect_rows) CASE(detect_answers_in_kind) CASE(written) CASE(hint_beyond_memory) CASE(sse_comment)
                      CASE(sse_reads_nothing) CASE(body_takes_what_is_there))
