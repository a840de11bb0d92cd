/* What a terminal printed, inside the tool call that shows it. ACP names a terminal there by its id, which is worth nothing
 * to whoever did not make it or comes later: behind it, the text is said as text, in a block of code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "terminals.h"
#include "write.h"

const char *weft__signal_name(int signal, char room[16]) {
    const char *name = sigabbrev_np(signal);
    if (name)
        snprintf(room, 16, "SIG%s", name);
    else
        snprintf(room, 16, "SIG%d", signal);
    return room;
}

static const char *shown_terminal(const weft_json *element) {
    const char *id = weft_get_str(element, "terminalId", NULL);
    return id && strcmp(weft_get_str(element, "type", ""), "terminal") == 0 ? id : NULL;
}

bool weft__content_shows(const weft_json *content, const char *id) {
    for (weft_iter it = weft_iterate(content); weft_typeof(content) == WEFT_ARRAY && weft_next(&it);) {
        const char *shown = shown_terminal(&it.value);
        if (shown && strcmp(shown, id) == 0)
            return true;
    }
    return false;
}

/* ---- the text ---- */

/* A block of code ends with as many backticks as it began with: one more than there are anywhere in it. */
static size_t fence_length(weft_bytes text) {
    size_t most = 2, run = 0;
    for (size_t i = 0; i < text.len; i++) {
        run = text.data[i] == '`' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    return most + 1;
}

static int put_shown_text(weft_buf *out, const weft_alloc *alloc, const char *text) {
    return weft__buf_put(out, alloc, text, strlen(text));
}

static int put_fence(weft_buf *out, const weft_alloc *alloc, size_t length) {
    int r = 0;
    while (r >= 0 && length-- > 0)
        r = weft__buf_put(out, alloc, "`", 1);
    return r;
}

static int put_code_block(weft_buf *out, const weft_alloc *alloc, weft_bytes text) {
    size_t fence = fence_length(text);
    int r = put_fence(out, alloc, fence);
    if (r >= 0)
        r = put_shown_text(out, alloc, "\n");
    if (r >= 0)
        r = weft__buf_put(out, alloc, text.data, text.len);
    if (r >= 0 && text.len && text.data[text.len - 1] != '\n')
        r = put_shown_text(out, alloc, "\n");
    return r < 0 ? r : put_fence(out, alloc, fence);
}

static int put_print(weft_buf *out, const weft_alloc *alloc, const weft_terminal_print *print) {
    char how[64] = "", room[16];
    if (print->running)
        snprintf(how, sizeof how, "\nended when it was released");
    else if (print->signal)
        snprintf(how, sizeof how, "\nended by %s", weft__signal_name(print->signal, room));
    else if (print->exit_code)
        snprintf(how, sizeof how, "\nexit code %d", print->exit_code);
    int r = print->truncated ? put_shown_text(out, alloc, "(the beginning is left out)\n") : 0;
    if (r >= 0)
        r = put_code_block(out, alloc, print->text);
    return r < 0 ? r : put_shown_text(out, alloc, how);
}

/* ---- the content ---- */

static int write_print(weft_buf *out, const weft_alloc *alloc, const weft_terminal_print *print) {
    weft_buf text = {0};
    int r = put_print(&text, alloc, print);
    weft_val shown = weft_strn(weft__buf_head(&text), weft__buf_len(&text));
    weft_val element =
        WEFT_OBJ({"type", weft_str("content")}, {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", shown})});
    if (r >= 0)
        r = weft__buf_put(out, alloc, ",", 1);
    if (r >= 0)
        r = weft__write_val(out, alloc, &element);
    weft__buf_done(&text, alloc);
    return r;
}

int weft__content_write(const weft_json *content, weft_terminal_find *find, void *ctx, const weft_alloc *alloc,
                        weft_buf *out) {
    int r = weft__buf_put(out, alloc, "[", 1), count = 0;
    for (weft_iter it = weft_iterate(content); r >= 0 && weft_next(&it);) {
        const char *id = shown_terminal(&it.value);
        weft_terminal_print print;
        if (count++)
            r = weft__buf_put(out, alloc, ",", 1);
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
        if (r >= 0 && id && find(ctx, id, &print))
            r = write_print(out, alloc, &print);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}
