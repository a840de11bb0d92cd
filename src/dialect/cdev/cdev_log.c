/* claude_log: what an agent says, line by line, for those who watch its session. */
#include <errno.h>
#include <string.h>

#include "cdev.h"

/* Notifications of one event. A notification of an empty line is 180 bytes, so 64 KiB of line ends would be more than a
 * connection may have in its queue: of so many lines several go into one. */
#define MOST_LINES 4096

struct log {
    const cdev_note *note;
    const char *stream;
};

static void tell_line(const struct log *log, weft_val line, weft_val parsed) {
    CDEV_TELL(log->note, "claude_log", {"line", line}, {"stream", weft_str(log->stream)}, {"parsed", parsed});
}

/* A line that is an object or an array is shown as what it is, too. */
static void log_line(const struct log *log, const char *line, size_t len) {
    weft_doc *doc = NULL;
    int r = len && (*line == '{' || *line == '[') ? weft_doc_parse(line, len, log->note->hub->alloc, &doc) : 0;
    if (r == -ENOMEM)
        weft__render_fail(log->note->rendering, r);
    tell_line(log, weft_strn(line, len), doc ? weft_copy(weft_doc_root(doc)) : weft_none());
    weft_doc_free(doc);
}

/* Where the n-th line from here ends, its line end not included. */
static const char *end_of_lines(const char *from, const char *end, size_t n) {
    const char *at = from;
    for (; (at = memchr(at, '\n', (size_t) (end - at))); at++)
        if (--n == 0)
            return at;
    return end;
}

static size_t count_lines(weft_bytes text) {
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

static void log_text(const struct log *log, const weft_json *value) {
    weft_bytes text;
    int r = weft_bytes_of(value, &text);
    if (r == -ENOMEM)
        weft__render_fail(log->note->rendering, r);
    if (r < 0)
        return;
    size_t at_once = 1 + count_lines(text) / MOST_LINES;
    for (const char *line = text.data, *end = text.data + text.len; line < end;) {
        const char *stop = end_of_lines(line, end, at_once);
        size_t len = (size_t) (stop - line);
        log_line(log, line, len && line[len - 1] == '\r' ? len - 1 : len);
        line = stop + 1;
    }
}

/* What an agent writes is lines; whatever else it does is said as the update itself. */
static void log_update(const struct log *log, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    if (strcmp(weft__render_text(log->note->rendering, update, "sessionUpdate", ""), "agent_message_chunk") == 0 &&
        weft_typeof(&text) == WEFT_STRING)
        log_text(log, &text);
    else if (update->text)
        tell_line(log, weft_strn(update->text, update->len), weft_copy(update));
}

void weft__cdev_tell_log(const cdev_note *note, const weft_event *event, const weft_json *data) {
    const char *session = weft__render_text(note->rendering, data, "sessionId", "");
    if (weft__render_variant(note->rendering) != CDEV_OLD && !weft__render_wanted(note->rendering, session))
        return;
    const weft_session *known = weft__session_find(note->hub->engine, session);
    weft_json text = weft_get(data, "text"), update = weft_get(data, "update");
    cdev_note own = *note;
    own.only = own.session = session;
    own.agent = known ? known->agent : NULL;
    struct log log = {.note = &own,
                      .stream = strcmp(weft__render_text(note->rendering, data, "stream", ""), "stderr") == 0 ? "stderr"
                                                                                                              : "stdout"};
    if (strcmp(event->type, "session.output") == 0)
        log_text(&log, &text);
    else
        log_update(&log, &update);
}
