/* The line editor of "weft chat": whatever a keyboard, or a program that pretends to be one, sends, and whichever allocation
 * fails. The text is UTF-8, the cursor stands between its characters, a row fits, a message is what was shown, and nothing
 * is left over. The first byte says which allocation fails, the second how wide the terminal is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "line_editor.h"
#include "text_width.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long until_failure; /* allocations; 0: none fails */

static void *resize_or_fail(void *ctx, void *ptr, size_t size) {
    if (size && until_failure && --until_failure == 0)
        return NULL;
    return count_resize(ctx, ptr, size);
}

static bool is_utf8(const char *text, size_t len) {
    for (size_t n; len; text += n, len -= n)
        if (!(n = (unsigned char) *text < 0x80 ? 1 : weft__utf8_len(text, len)))
            return false;
    return true;
}

static void check_editor(const weft_line_editor *editor) {
    size_t len = weft__buf_len(&editor->text);
    const char *text = weft__buf_head(&editor->text);
    require(len <= WEFT_EDITOR_TEXT && editor->cursor <= len);
    require(editor->history_count <= WEFT_EDITOR_HISTORY && editor->place <= editor->history_count);
    require(editor->key_len <= WEFT_EDITOR_KEY && editor->partial_len <= sizeof editor->partial);
    require(editor->typed_len < WEFT_EDITOR_PATTERN && editor->pattern[editor->typed_len] == '\0');
    require(len == 0 || is_utf8(text, len));
    require(editor->cursor == len || !weft__utf8_follows((unsigned char) text[editor->cursor]));
}

static void check_row(weft_line_editor *editor, size_t columns) {
    weft_buf row = {0};
    size_t cursor = 0;
    require(weft__line_editor_row(editor, columns, &row, &cursor) >= 0);
    require(weft__buf_put(&row, NULL, "", 1) >= 0);
    require(weft__text_width(weft__buf_head(&row)) <= columns && (cursor < columns || columns == 1));
    weft__buf_done(&row, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const weft_alloc failing = {resize_or_fail, NULL};
    weft_line_editor editor = {.alloc = &failing};
    if (size < 2)
        return 0;
    until_failure = data[0];
    size_t columns = 1 + data[1] % 100;
    for (size_t i = 2; i < size; i++) {
        weft_edit now = weft__line_editor_byte(&editor, data[i]);
        check_editor(&editor);
        if (now == WEFT_EDIT_LINE) {
            const char *text = weft__line_editor_text(&editor);
            require(strlen(text) <= weft__buf_len(&editor.text));
            weft__line_editor_next(&editor);
            require(weft__line_editor_empty(&editor));
            check_editor(&editor);
        }
        if (i % 8 == 0)
            check_row(&editor, columns);
    }
    weft__line_editor_done(&editor);
    require(live == 0);
    return 0;
}
