/* Keys, as Emacs and shells have them, and what they do. */
#include "line_editor.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "text_width.h"
#include "utf8.h"

#define CTRL(letter) ((letter) &0x1f)
#define ESC 27
#define DEL 127

static char *head_of(const weft_line_editor *self) {
    return weft__buf_head(&self->text);
}

static size_t len_of(const weft_line_editor *self) {
    return weft__buf_len(&self->text);
}

/* ---- places ---- */

static size_t next_place(const weft_line_editor *self, size_t at) {
    return at < len_of(self) ? weft__utf8_from(head_of(self), len_of(self), at + 1) : at;
}

static size_t place_before(const weft_line_editor *self, size_t at) {
    while (at && weft__utf8_follows((unsigned char) head_of(self)[--at]))
        ;
    return at;
}

static bool is_word_byte(unsigned char byte) {
    return byte >= 0x80 || byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
}

static size_t word_before(const weft_line_editor *self, size_t at) {
    while (at && !is_word_byte((unsigned char) head_of(self)[at - 1]))
        at--;
    while (at && is_word_byte((unsigned char) head_of(self)[at - 1]))
        at--;
    return at;
}

static size_t word_behind(const weft_line_editor *self, size_t at) {
    while (at < len_of(self) && !is_word_byte((unsigned char) head_of(self)[at]))
        at++;
    while (at < len_of(self) && is_word_byte((unsigned char) head_of(self)[at]))
        at++;
    return at;
}

/* As Ctrl-W has it in shells: up to a blank. */
static size_t blank_before(const weft_line_editor *self, size_t at) {
    while (at && strchr(" \t\n", head_of(self)[at - 1]))
        at--;
    while (at && !strchr(" \t\n", head_of(self)[at - 1]))
        at--;
    return at;
}

/* ---- changes ---- */

static void insert_text(weft_line_editor *self, const char *text, size_t len) {
    size_t old = len_of(self);
    if (!len || old + len > WEFT_EDITOR_TEXT || weft__buf_reserve(&self->text, self->alloc, len + 1) < 0)
        return; /* with room for the NUL behind it: what was typed can be had without more memory */
    memmove(head_of(self) + self->cursor + len, head_of(self) + self->cursor, old - self->cursor);
    memcpy(head_of(self) + self->cursor, text, len);
    self->text.end += len;
    self->cursor += len;
}

static void remove_text(weft_line_editor *self, size_t from, size_t to) {
    if (from == to)
        return;
    memmove(head_of(self) + from, head_of(self) + to, len_of(self) - to);
    self->text.end -= to - from;
    self->cursor = from;
}

static void empty_buf(const weft_line_editor *self, weft_buf *buf) {
    weft__buf_take(buf, self->alloc, weft__buf_len(buf));
}

static void cut_text(weft_line_editor *self, size_t from, size_t to) {
    if (from == to)
        return;
    empty_buf(self, &self->killed);
    if (weft__buf_put(&self->killed, self->alloc, head_of(self) + from, to - from) >= 0)
        remove_text(self, from, to);
}

static void set_text(weft_line_editor *self, const char *text) {
    empty_buf(self, &self->text);
    self->cursor = 0;
    insert_text(self, text ? text : "", text ? strlen(text) : 0);
}

/* ---- what was entered before ---- */

/* Where the message that is being written stands behind the others. */
static void go_to_place(weft_line_editor *self, size_t place) {
    if (self->place == self->history_count && place != self->place) {
        char *draft = weft__strndup(self->alloc, len_of(self) ? head_of(self) : "", len_of(self));
        if (!draft)
            return; /* without memory for what is being written it stays where it is */
        weft__free(self->alloc, self->draft);
        self->draft = draft;
    }
    self->place = place;
    set_text(self, place < self->history_count ? self->history[place] : self->draft);
}

static void go_back(weft_line_editor *self) {
    if (self->place)
        go_to_place(self, self->place - 1);
}

static void go_forth(weft_line_editor *self) {
    if (self->place < self->history_count)
        go_to_place(self, self->place + 1);
}

/* The newest before this place that has the pattern; where there is none, nothing changes. */
static void search_before(weft_line_editor *self, size_t place) {
    while (place--)
        if (strstr(self->history[place], self->pattern)) {
            self->match = place;
            go_to_place(self, place);
            return;
        }
}

static void begin_search(weft_line_editor *self) {
    if (self->searching) {
        search_before(self, self->match);
        return;
    }
    self->searching = true;
    self->typed_len = 0;
    self->pattern[0] = '\0';
    self->match = self->history_count;
}

static void type_pattern(weft_line_editor *self, const char *text, size_t len) {
    if (self->typed_len + len >= sizeof self->pattern)
        return;
    memcpy(self->pattern + self->typed_len, text, len);
    self->typed_len += len;
    self->pattern[self->typed_len] = '\0';
    search_before(self, self->history_count);
}

static void shorten_pattern(weft_line_editor *self) {
    while (self->typed_len && weft__utf8_follows((unsigned char) self->pattern[--self->typed_len]))
        ;
    self->pattern[self->typed_len] = '\0';
    if (self->typed_len)
        search_before(self, self->history_count);
}

/* ---- characters ---- */

static void put_text(weft_line_editor *self, const char *text, size_t len) {
    if (self->searching)
        type_pattern(self, text, len);
    else
        insert_text(self, text, len);
}

/* A byte of a character that has several. What is not UTF-8 is dropped. */
static void take_high_byte(weft_line_editor *self, unsigned char byte) {
    if (!weft__utf8_follows(byte))
        self->partial_len = 0;
    self->partial[self->partial_len++] = (char) byte;
    unsigned char lead = (unsigned char) self->partial[0];
    size_t wanted = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (wanted && self->partial_len < wanted)
        return;
    if (wanted && weft__utf8_len(self->partial, self->partial_len) == self->partial_len)
        put_text(self, self->partial, self->partial_len);
    self->partial_len = 0;
}

/* ---- keys ---- */

static void press_arrow(weft_line_editor *self, char letter, bool words) {
    switch (letter) {
    case 'A':
        go_back(self);
        break;
    case 'B':
        go_forth(self);
        break;
    case 'C':
        self->cursor = words ? word_behind(self, self->cursor) : next_place(self, self->cursor);
        break;
    case 'D':
        self->cursor = words ? word_before(self, self->cursor) : place_before(self, self->cursor);
        break;
    case 'H':
        self->cursor = 0;
        break;
    case 'F':
        self->cursor = len_of(self);
        break;
    default:
        break;
    }
}

/* A key with a number, or the beginning or end of what was pasted. */
static void press_numbered(weft_line_editor *self) {
    const char *key = self->key;
    if (strcmp(key, "200~") == 0)
        self->pasting = true;
    else if (strcmp(key, "201~") == 0)
        self->pasting = false;
    else if (strcmp(key, "1~") == 0 || strcmp(key, "7~") == 0)
        self->cursor = 0;
    else if (strcmp(key, "4~") == 0 || strcmp(key, "8~") == 0)
        self->cursor = len_of(self);
    else if (strcmp(key, "3~") == 0)
        remove_text(self, self->cursor, next_place(self, self->cursor));
}

static void take_sequence_byte(weft_line_editor *self, unsigned char byte) {
    if (self->key_len < sizeof self->key - 1)
        self->key[self->key_len++] = (char) byte;
    self->key[self->key_len] = '\0';
    if (byte < 0x40 || byte > 0x7e)
        return;
    self->escape = 0;
    if (byte == '~')
        press_numbered(self);
    else if (!self->pasting)
        press_arrow(self, (char) byte, strstr(self->key, ";5") || strstr(self->key, ";3"));
}

/* Alt with a key; a control character there is the key itself. */
static void press_with_alt(weft_line_editor *self, unsigned char byte) {
    self->escape = byte == '[' ? 2 : byte == 'O' && !self->pasting ? 3 : 0;
    self->key_len = 0;
    if (self->escape || self->pasting)
        return;
    if (byte == 'b')
        self->cursor = word_before(self, self->cursor);
    else if (byte == 'f')
        self->cursor = word_behind(self, self->cursor);
    else if (byte == 'd')
        cut_text(self, self->cursor, word_behind(self, self->cursor));
    else if (byte == DEL || byte == '\b')
        cut_text(self, word_before(self, self->cursor), self->cursor);
    else if (byte == '\n' || byte == '\r')
        insert_text(self, "\n", 1);
}

static weft_edit press_control(weft_line_editor *self, unsigned char byte) {
    switch (byte) {
    case '\n':
    case '\r':
        return WEFT_EDIT_LINE;
    case CTRL('D'):
        if (len_of(self) == 0)
            return WEFT_EDIT_END;
        remove_text(self, self->cursor, next_place(self, self->cursor));
        break;
    case CTRL('L'):
        return WEFT_EDIT_CLEAR;
    case '\t':
        insert_text(self, "\t", 1);
        break;
    case '\b':
    case DEL:
        remove_text(self, place_before(self, self->cursor), self->cursor);
        break;
    case CTRL('A'):
        self->cursor = 0;
        break;
    case CTRL('E'):
        self->cursor = len_of(self);
        break;
    case CTRL('B'):
        self->cursor = place_before(self, self->cursor);
        break;
    case CTRL('F'):
        self->cursor = next_place(self, self->cursor);
        break;
    case CTRL('K'):
        cut_text(self, self->cursor, len_of(self));
        break;
    case CTRL('U'):
        cut_text(self, 0, self->cursor);
        break;
    case CTRL('W'):
        cut_text(self, blank_before(self, self->cursor), self->cursor);
        break;
    case CTRL('Y'):
        insert_text(self, weft__buf_head(&self->killed), weft__buf_len(&self->killed));
        break;
    case CTRL('P'):
        go_back(self);
        break;
    case CTRL('N'):
        go_forth(self);
        break;
    case CTRL('R'):
        begin_search(self);
        break;
    default:
        break;
    }
    return WEFT_EDIT_MORE;
}

/* In a search most keys end it, and are then what they always are. */
static bool press_in_search(weft_line_editor *self, unsigned char byte) {
    if (byte == CTRL('R'))
        return false;
    if (byte == '\b' || byte == DEL) {
        shorten_pattern(self);
        return true;
    }
    self->searching = false;
    if (byte == CTRL('G'))
        go_to_place(self, self->history_count);
    return byte == CTRL('G');
}

static void paste_byte(weft_line_editor *self, unsigned char byte) {
    bool ended = self->after_cr && byte == '\n';
    self->after_cr = byte == '\r';
    if (ended)
        return; /* both are one line end */
    if (byte == '\r' || byte == '\n')
        insert_text(self, "\n", 1);
    else if ((byte >= ' ' && byte != DEL) || byte == '\t')
        insert_text(self, &(char){(char) byte}, 1);
}

weft_edit weft__line_editor_byte(weft_line_editor *self, unsigned char byte) {
    if (self->escape >= 2)
        take_sequence_byte(self, byte);
    else if (self->escape == 1)
        press_with_alt(self, byte);
    else if (byte == ESC) {
        self->searching = false;
        self->escape = 1;
    } else if (byte >= 0x80)
        take_high_byte(self, byte);
    else if (self->pasting)
        paste_byte(self, byte);
    else if (byte >= ' ' && byte != DEL)
        put_text(self, &(char){(char) byte}, 1);
    else if (!self->searching || !press_in_search(self, byte))
        return press_control(self, byte);
    return WEFT_EDIT_MORE;
}

/* ---- the message ---- */

bool weft__line_editor_empty(const weft_line_editor *self) {
    return len_of(self) == 0;
}

const char *weft__line_editor_text(weft_line_editor *self) {
    while (len_of(self) && head_of(self)[len_of(self) - 1] == '\n')
        self->text.end--;
    if (self->cursor > len_of(self))
        self->cursor = len_of(self);
    if (weft__buf_reserve(&self->text, self->alloc, 1) < 0)
        return "";
    *weft__buf_tail(&self->text) = '\0';
    return head_of(self);
}

void weft__line_editor_drop(weft_line_editor *self) {
    weft__free(self->alloc, self->draft);
    self->draft = NULL;
    self->place = self->history_count;
    self->searching = false;
    set_text(self, NULL);
}

void weft__line_editor_remember(weft_line_editor *self, const char *text) {
    char *copy;
    bool at_end = self->place == self->history_count;
    if (!*text || (self->history_count && strcmp(self->history[self->history_count - 1], text) == 0) ||
        !(copy = weft__strndup(self->alloc, text, strlen(text))))
        return;
    if (self->history_count == WEFT_EDITOR_HISTORY) {
        weft__free(self->alloc, self->history[0]);
        memmove(self->history, self->history + 1, --self->history_count * sizeof *self->history);
    }
    self->history[self->history_count++] = copy;
    if (at_end || self->place > self->history_count)
        self->place = self->history_count;
}

void weft__line_editor_next(weft_line_editor *self) {
    weft__line_editor_remember(self, weft__line_editor_text(self));
    weft__line_editor_drop(self);
}

void weft__line_editor_done(weft_line_editor *self) {
    while (self->history_count)
        weft__free(self->alloc, self->history[--self->history_count]);
    weft__free(self->alloc, self->draft);
    weft__buf_done(&self->text, self->alloc);
    weft__buf_done(&self->killed, self->alloc);
    *self = (weft_line_editor){0};
}

/* ---- showing it ---- */

/* One character as it is shown. */
typedef struct glyph {
    char text[WEFT_UTF8_MAX + 1];
    size_t width;
} glyph;

static glyph glyph_at(const weft_line_editor *self, size_t at, size_t end) {
    unsigned char byte = (unsigned char) head_of(self)[at];
    if (byte == '\n')
        return (glyph){"\xe2\x86\xb5", 1}; /* an arrow: a line ends here */
    if (byte < ' ' || byte == DEL)
        return (glyph){" ", 1};
    glyph shown = {"", 1};
    memcpy(shown.text, head_of(self) + at, end - at < WEFT_UTF8_MAX ? end - at : WEFT_UTF8_MAX);
    shown.width = weft__text_width(shown.text);
    return shown;
}

/* Where the row begins: as much before the cursor as fits, with one column left for the cursor itself. */
static size_t first_shown(const weft_line_editor *self, size_t columns, size_t *ret_cursor) {
    size_t at = self->cursor, used = 0;
    while (at) {
        size_t before = place_before(self, at), width = glyph_at(self, before, at).width;
        if (used + width >= columns)
            break;
        used += width;
        at = before;
    }
    *ret_cursor = used;
    return at;
}

int weft__line_editor_row(weft_line_editor *self, size_t columns, weft_buf *ret, size_t *ret_cursor) {
    size_t cursor, at = first_shown(self, columns, &cursor), used = 0;
    int r = 0;
    while (at < len_of(self) && r >= 0) {
        size_t end = next_place(self, at);
        glyph shown = glyph_at(self, at, end);
        if (used + shown.width > columns)
            break;
        used += shown.width;
        at = end;
        r = weft__buf_put(ret, NULL, shown.text, strlen(shown.text));
    }
    if (r >= 0)
        *ret_cursor = cursor;
    return r;
}
