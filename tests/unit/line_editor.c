/* The line editor: keys go in, a text with a cursor comes out. */
#include "line_editor.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "text_width.h"
#include "utf8.h"

/* Type keys; the last result. */
static weft_edit type_keys(weft_line_editor *editor, const char *keys) {
    weft_edit result = WEFT_EDIT_MORE;
    for (; *keys; keys++)
        result = weft__line_editor_byte(editor, (unsigned char) *keys);
    return result;
}

TEST(keys_and_what_they_leave) {
    static const struct {
        const char *name, *keys, *text;
    } rows[] = {
        {"letters", "hello", "hello"},
        {"backspace", "hellp\x7fo", "hello"},
        {"an accent is one character", "h\xc3\xa4\x7f\xc3\xb6", "h\xc3\xb6"},
        {"arrows go over characters",
         "a\xe4\xb8\xad"
         "b\x1b[D\x1b[Dx",
         "ax\xe4\xb8\xad"
         "b"},
        {"home and end",
         "bc\x01"
         "a\x05"
         "d",
         "abcd"},
        {"home and end of other terminals", "bc\x1b[1~a\x1b[4~d\x1bOH.\x1bOF.", ".abcd."},
        {"delete", "abc\x01\x1b[3~\x04", "c"},
        {"a word back and forth",
         "one two\x1b"
         "bx\x1b"
         "f.",
         "one xtwo."},
        {"with Ctrl and arrows", "one two\x1b[1;5Dx", "one xtwo"},
        {"a word is cut up to a blank", "run a-b\x17", "run "},
        {"what was cut is put back", "one two\x17\x15\x19", "one "},
        {"the end is cut", "onetwo\x02\x02\x02\x0b", "one"},
        {"a word behind the cursor",
         "one two\x01\x1b"
         "d",
         " two"},
        {"Alt-Enter", "a\x1b\nb\x1b\rc", "a\nb\nc"},
        {"pasted lines", "\x1b[200~a\rb\r\nc\nd\x1b[201~e", "a\nb\nc\nde"},
        {"pasted keys are no keys", "\x1b[200~a\x01\x1b[Db\x7f\x1b[201~", "ab"},
        {"what is no UTF-8",
         "a\xff\xc3(\xe4\xb8"
         "b",
         "a(b"},
        {"an unknown key", "a\x1b[27;5;9~b\x1b[99999999999999999999999~c", "abc"},
        {"arrows at the ends", "\x1b[D\x1b[Ca\x1b[C\x1b[C\x1b[A\x1b[Bb", "ab"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_line_editor editor = {0};
        type_keys(&editor, rows[i].keys);
        CHECK_STR(weft__line_editor_text(&editor), rows[i].text);
        weft__line_editor_done(&editor);
    }
}

TEST(what_ends_a_message) {
    weft_line_editor editor = {0};
    CHECK(type_keys(&editor, "a\n") == WEFT_EDIT_LINE);
    CHECK_STR(weft__line_editor_text(&editor), "a");
    weft__line_editor_next(&editor);
    CHECK(weft__line_editor_empty(&editor));
    CHECK(type_keys(&editor, "\x04") == WEFT_EDIT_END);
    CHECK(type_keys(&editor, "b\x04") == WEFT_EDIT_MORE);
    CHECK(type_keys(&editor, "\x0c") == WEFT_EDIT_CLEAR);
    /* Line ends at the end of what was pasted are not meant. */
    type_keys(&editor, "\x1b[200~c\n\n\x1b[201~");
    CHECK_STR(weft__line_editor_text(&editor), "bc");
    weft__line_editor_done(&editor);
}

static void enter(weft_line_editor *editor, const char *keys) {
    type_keys(editor, keys);
    weft__line_editor_next(editor);
}

TEST(what_was_entered_before) {
    weft_line_editor editor = {0};
    enter(&editor, "first");
    enter(&editor, "second");
    enter(&editor, "second"); /* once is enough */
    type_keys(&editor, "draft\x1b[A");
    CHECK_STR(weft__line_editor_text(&editor), "second");
    type_keys(&editor, "\x1b[A");
    CHECK_STR(weft__line_editor_text(&editor), "first");
    type_keys(&editor, "\x1b[A");
    CHECK_STR(weft__line_editor_text(&editor), "first");
    type_keys(&editor, "\x1b[B\x1b[B");
    CHECK_STR(weft__line_editor_text(&editor), "draft");
    type_keys(&editor, "\x12"
                       "fir");
    CHECK(editor.searching);
    CHECK_STR(weft__line_editor_text(&editor), "first");
    type_keys(&editor, "\x07");
    CHECK_STR(weft__line_editor_text(&editor), "draft");
    type_keys(&editor, "\x12s\x12");
    CHECK_STR(weft__line_editor_text(&editor), "first");
    CHECK(type_keys(&editor, "\n") == WEFT_EDIT_LINE);
    CHECK(!editor.searching);
    weft__line_editor_done(&editor);
}

TEST(limits) {
    weft_line_editor editor = {0};
    for (int i = 0; i < WEFT_EDITOR_HISTORY + 10; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %d", i);
        weft__line_editor_remember(&editor, text);
    }
    CHECK(editor.history_count == WEFT_EDITOR_HISTORY);
    CHECK_STR(editor.history[0], "message 10");
    for (size_t i = 0; i < WEFT_EDITOR_TEXT + 10; i++)
        weft__line_editor_byte(&editor, 'x');
    CHECK(strlen(weft__line_editor_text(&editor)) == WEFT_EDITOR_TEXT);
    type_keys(&editor, "\x12");
    for (size_t i = 0; i < 2 * WEFT_EDITOR_PATTERN; i++)
        weft__line_editor_byte(&editor, 'y');
    CHECK(strlen(editor.pattern) == WEFT_EDITOR_PATTERN - 1);
    weft__line_editor_done(&editor);
}

TEST(the_row_has_the_cursor) {
    static const struct {
        const char *keys;
        size_t columns;
        const char *row;
        size_t cursor;
    } rows[] = {
        {"hello", 20, "hello", 5},
        {"hello\x01", 20, "hello", 0},
        {"abcdefghij", 5, "ghij", 4},
        {"abcdefghij\x01", 5, "abcde", 0},
        {"\xe4\xb8\xad\xe6\x96\x87x", 10, "\xe4\xb8\xad\xe6\x96\x87x", 5},
        {"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad", 4, "\xe4\xb8\xad", 2},
        {"a\x1b\nb\tc", 20,
         "a\xe2\x86\xb5"
         "b c",
         5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_line_editor editor = {0};
        weft_buf row = {0};
        size_t cursor = 0;
        type_keys(&editor, rows[i].keys);
        CHECK(weft__line_editor_row(&editor, rows[i].columns, &row, &cursor) >= 0);
        CHECK(weft__buf_put(&row, NULL, "", 1) >= 0);
        CHECK_STR(weft__buf_head(&row), rows[i].row);
        CHECK(cursor == rows[i].cursor);
        weft__buf_done(&row, NULL);
        weft__line_editor_done(&editor);
    }
}

/* Keys by chance, by seeds: the cursor stays between characters, the text stays UTF-8, a row fits. */
TEST(keys_by_chance) {
    static const char *const keys[] = {"a",
                                       "\xc3\xa4",
                                       "\xe4\xb8\xad",
                                       "\xcc\x81",
                                       " ",
                                       "\x7f",
                                       "\x01",
                                       "\x05",
                                       "\x15",
                                       "\x17",
                                       "\x19",
                                       "\x1b[A",
                                       "\x1b[B",
                                       "\x1b[C",
                                       "\x1b[D",
                                       "\x1b[3~",
                                       "\x1b"
                                       "b",
                                       "\x1b"
                                       "d",
                                       "\x12",
                                       "\x1b\n",
                                       "\x1b[200~",
                                       "\x1b[201~",
                                       "\xff",
                                       "\x1b",
                                       "\x0b"};
    unsigned seed = 1;
    for (int round = 0; round < 200; round++) {
        weft_line_editor editor = {0};
        for (int i = 0; i < 200; i++) {
            seed = seed * 1103515245u + 12345u;
            type_keys(&editor, keys[seed / 65536 % (sizeof keys / sizeof keys[0])]);
            if (seed / 7 % 29 == 0)
                weft__line_editor_next(&editor);
            weft_buf row = {0};
            size_t cursor = 0, columns = 1 + seed % 40;
            CHECK(weft__line_editor_row(&editor, columns, &row, &cursor) >= 0);
            CHECK(cursor < columns || columns == 1);
            CHECK(weft__buf_put(&row, NULL, "", 1) >= 0 && weft__text_width(weft__buf_head(&row)) <= columns);
            CHECK(editor.cursor <= weft__buf_len(&editor.text));
            weft__buf_done(&row, NULL);
        }
        weft__line_editor_done(&editor);
    }
}

static bool is_utf8(const char *text, size_t len) {
    for (size_t n; len; text += n, len -= n)
        if (!(n = (unsigned char) *text < 0x80 ? 1 : weft__utf8_len(text, len)))
            return false;
    return true;
}

/* A session of keys in which one allocation after the other fails: what fits is there, nothing is left over, and what was
 * typed is never lost by looking at something else. */
TEST(failing_allocations) {
    static const char keys[] = "one \xc3\xa4\n"          /* a message */
                               "two words\x17\x19\n"     /* cut and put back */
                               "draft\x1b[A\x1b[A\x1b[B" /* looks at earlier ones */
                               "\x12one\x1b[B\x1b[B"     /* searches */
                               "\x1b[200~a\rb\x1b[201~\x15\x19\n";
    test_memory memory;
    long fail_at = 1;
    do {
        weft_line_editor editor = {.alloc = &memory.alloc};
        test_memory_init(&memory, fail_at);
        for (const char *key = keys; *key; key++) {
            if (weft__line_editor_byte(&editor, (unsigned char) *key) == WEFT_EDIT_LINE)
                weft__line_editor_next(&editor);
            size_t len = weft__buf_len(&editor.text);
            CHECK(editor.cursor <= len && editor.history_count <= 3 && editor.place <= editor.history_count);
            CHECK(len == 0 || is_utf8(weft__buf_head(&editor.text), len));
        }
        weft__line_editor_done(&editor);
        CHECK_INT(memory.live, 0);
    } while (memory.count >= fail_at++);
    CHECK(fail_at > 10);
}

TEST(without_memory_what_was_typed_stays) {
    test_memory memory;
    weft_line_editor editor = {.alloc = &memory.alloc};
    test_memory_init(&memory, 0);
    enter(&editor, "earlier");
    type_keys(&editor, "hello");
    memory.fail_at = memory.count + 1;
    type_keys(&editor, "\x1b[A"); /* there is no memory to keep it in meanwhile */
    CHECK_STR(weft__line_editor_text(&editor), "hello");
    type_keys(&editor, "\x1b[A");
    CHECK_STR(weft__line_editor_text(&editor), "earlier");
    type_keys(&editor, "\x1b[B");
    memory.fail_at = memory.count + 1;
    CHECK_STR(weft__line_editor_text(&editor), "hello"); /* Enter needs no memory */
    CHECK_INT(memory.count, memory.fail_at - 1);
    weft__line_editor_done(&editor);
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(CASE(failing_allocations) CASE(without_memory_what_was_typed_stays) CASE(keys_and_what_they_leave)
              CASE(what_ends_a_message) CASE(what_was_entered_before) CASE(limits) CASE(the_row_has_the_cursor)
                  CASE(keys_by_chance))
