/* The end of what a task says, which is kept with it while it runs. */
#include <errno.h>
#include <string.h>

#include "engine_private.h"
#include "utf8.h"

weft_bytes weft__text_end(const char *text, size_t len, size_t max) {
    size_t from = len > max ? weft__utf8_from(text, len, len - max) : 0;
    return (weft_bytes){text + from, len - from};
}

int weft__output_text(const weft_event *event, const weft_json *data, weft_bytes *ret) {
    weft_json text, update = weft_get(data, "update"), content = weft_get(&update, "content");
    if (strcmp(event->type, "session.output") == 0) {
        if (!weft__field_is(data, "stream", "stdout"))
            return 0;
        text = weft_get(data, "text");
    } else {
        if (!weft__field_is(&update, "sessionUpdate", "agent_message_chunk") || !weft__field_is(&content, "type", "text"))
            return 0;
        text = weft_get(&content, "text");
    }
    int r = weft_bytes_of(&text, ret);
    return r == -EINVAL ? 0 : r < 0 ? r : 1;
}

/* Twice the tail, so that it is moved once in a while and not for every line. */
static int add_tail(weft_engine *engine, known_task *task, weft_bytes text) {
    size_t cap = 2 * WEFT_TASK_TAIL;
    if (!task->tail && !(task->tail = weft__alloc(engine->alloc, cap)))
        return -ENOMEM;
    task->tail_cap = cap;
    size_t total = text.len;
    text = weft__text_end(text.data, text.len, WEFT_TASK_TAIL);
    if (task->tail_len + text.len > cap) {
        weft_bytes rest = weft__text_end(task->tail, task->tail_len, WEFT_TASK_TAIL);
        memmove(task->tail, rest.data, rest.len);
        task->tail_len = rest.len;
    }
    memcpy(task->tail + task->tail_len, text.data, text.len);
    task->tail_len += text.len;
    task->pub.tail = weft__text_end(task->tail, task->tail_len, WEFT_TASK_TAIL);
    task->pub.output_bytes += total;
    return 0;
}

int weft__task_apply_output(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    weft_bytes text;
    if (!task || task->pub.state != WEFT_TASK_RUNNING)
        return 0;
    int r = weft__output_text(event, data, &text);
    if (r > 0 && text.len)
        r = add_tail(engine, task, text);
    if (r < 0)
        return r;
    if (!task->output_from)
        task->output_from = event->seq;
    task->output_to = event->seq;
    return 0;
}
