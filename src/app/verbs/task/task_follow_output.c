/* What an agent says, for people: its answer is data; its thoughts, its tools and its plan are talk. Updates are those of
 * the Agent Client Protocol, version 1. */
#include <string.h>

#include "buf.h"
#include "task_follow.h"
#include "visible.h"

/* Bytes of a tool's title that are shown. */
#define MAX_TITLE 500

static void put_said_chunk(weft_task_follow *self, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    weft_bytes bytes;
    if (weft_bytes_of(&text, &bytes) >= 0)
        weft__terminal_data(&self->terminal, bytes.data, bytes.len);
}

static void put_thought(weft_task_follow *self, const weft_json *update) {
    const weft_screen *err = &self->app->err;
    weft_json text = weft_pointer(update, "/content/text");
    weft_bytes bytes;
    if (!self->app->common.verbose || weft_bytes_of(&text, &bytes) < 0)
        return;
    weft__terminal_clear(&self->terminal);
    if (self->app->out.terminal)
        weft__terminal_break(&self->terminal);
    weft__ink(err, WEFT_INK_DIM);
    weft__put_prose(err, bytes.data, bytes.len);
    weft__plain(err);
    if (bytes.len && bytes.data[bytes.len - 1] != '\n')
        fputc('\n', err->file);
}

/* Its title, or its id, as one line that can be seen, also where there is no terminal: it must not imitate a question. */
static int make_title(const weft_json *update, weft_buf *ret) {
    weft_json title = weft_get(update, "title"), id = weft_get(update, "toolCallId");
    weft_bytes text;
    if (weft_bytes_of(&title, &text) < 0 && weft_bytes_of(&id, &text) < 0)
        text = (weft_bytes){"a tool", 6};
    int r = weft__visible_put(ret, NULL, text, MAX_TITLE);
    return r < 0 ? r : weft__buf_put(ret, NULL, "", 1);
}

/* Once when it begins, once when it failed; in between the bottom line moves. */
static void put_tool(weft_task_follow *self, const weft_json *update, bool begins) {
    bool failed = strcmp(weft_get_str(update, "status", ""), "failed") == 0;
    weft_buf title = {0};
    if ((begins || failed) && make_title(update, &title) >= 0)
        weft__terminal_line(&self->terminal, begins ? WEFT_INK_DIM : WEFT_INK_WARN, "· %s%s", weft__buf_head(&title),
                            begins ? "" : " failed");
    weft__buf_done(&title, NULL);
}

static void take_plan(weft_task_follow *self, const weft_json *update) {
    weft_json entries = weft_get(update, "entries");
    const char *now = NULL;
    size_t done = 0, all = 0;
    for (weft_iter it = weft_iterate(&entries); weft_next(&it); all++) {
        const char *status = weft_get_str(&it.value, "status", "");
        done += strcmp(status, "completed") == 0;
        if (!now && strcmp(status, "completed") != 0)
            now = weft_get_str(&it.value, "content", "");
    }
    if (all)
        snprintf(self->plan, sizeof self->plan, ", plan %zu/%zu%s%s", now ? done + 1 : done, all, now ? ": " : "",
                 now ? now : "");
}

static void put_update(weft_task_follow *self, const weft_json *update) {
    const char *kind = weft_get_str(update, "sessionUpdate", "");
    if (strcmp(kind, "agent_message_chunk") == 0)
        put_said_chunk(self, update);
    else if (strcmp(kind, "agent_thought_chunk") == 0)
        put_thought(self, update);
    else if (strcmp(kind, "tool_call") == 0 || strcmp(kind, "tool_call_update") == 0)
        put_tool(self, update, strcmp(kind, "tool_call") == 0);
    else if (strcmp(kind, "plan") == 0)
        take_plan(self, update);
}

static void put_said_output(weft_task_follow *self, const weft_json *data) {
    weft_json text = weft_get(data, "text");
    weft_bytes bytes;
    if (weft_bytes_of(&text, &bytes) < 0)
        return;
    if (strcmp(weft_get_str(data, "stream", "stdout"), "stderr") != 0) {
        weft__terminal_data(&self->terminal, bytes.data, bytes.len);
        return;
    }
    weft__terminal_clear(&self->terminal);
    weft__put_prose(&self->app->err, bytes.data, bytes.len);
    fflush(self->app->err.file);
}

void weft__task_follow_output(weft_task_follow *self, const char *type, const weft_json *data) {
    weft_json update = weft_get(data, "update");
    if (self->terminal.silent)
        return;
    if (strcmp(type, "session.output") == 0)
        put_said_output(self, data);
    else if (strcmp(type, "session.update") == 0)
        put_update(self, &update);
}
