/* The streams "messagesByThread" and "toolCallsByThread": the end of a session's transcript, what was said or which tools
 * were used. null: there is no such thread, or not any more. */
#include "reply.h"
#include "tinyvex_stream.h"
#include "transcript.h"

static const weft_param params[] = {
    {"threadId", WEFT_PARAM_str, 0, WEFT_REQUIRED, "which thread: the id of a session"},
    {0},
};

static weft_event_source *thread_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"session.output", "session.update", "session.created", "session.deleted",
                                        "task.queued"};
    const char *thread;
    if (weft__stream_param(of, "threadId", &thread) < 0)
        return NULL;
    return weft__source_new(
        &(weft_subscription_spec){.types = types, .type_count = sizeof types / sizeof types[0], .session = thread}, alloc);
}

/* A transcript that is being read. */
struct reading {
    const weft_alloc *alloc;
    weft_computing *computing;
    bool tools;
};

/* ---- an item ---- */

static int write_message(weft_buf *out, const weft_alloc *alloc, const weft_transcript_item *item, bool *first) {
    static const char *const kinds[] = {
        [WEFT_SAID_PROMPT] = "text",   [WEFT_SAID_TEXT] = "text",     [WEFT_SAID_THOUGHT] = "thought",
        [WEFT_SAID_OUTPUT] = "output", [WEFT_SAID_ERRORS] = "errors", [WEFT_SAID_PLAN] = "plan",
    };
    const weft_bytes *entries = &item->members[WEFT_PLAN_ENTRIES];
    char time[WEFT_STAMP];
    bool plan = item->said == WEFT_SAID_PLAN;
    return weft__stream_item(
        out, alloc, first,
        WEFT_OBJ({"id", weft_str(item->id)}, {"role", weft_str(item->said == WEFT_SAID_PROMPT ? "user" : "assistant")},
                 {"kind", weft_str(kinds[item->said])},
                 {"text", plan ? weft_none() : weft_strn(item->text.data ? item->text.data : "", item->text.len)},
                 {"entries", entries->data ? weft_raw(entries->data, entries->len) : weft_none()},
                 {"taskId", weft_str(item->task)}, {"ts", weft_str(weft__stamp(item->time_ms, time))},
                 {"truncated", item->cut ? weft_bool(true) : weft_none()}));
}

static weft_val member_of(const weft_transcript_item *item, weft_tool_member which) {
    const weft_bytes *member = &item->members[which];
    return member->data ? weft_raw(member->data, member->len) : weft_none();
}

static int write_tool(weft_buf *out, const weft_alloc *alloc, const weft_transcript_item *item, bool *first) {
    char time[WEFT_STAMP];
    return weft__stream_item(
        out, alloc, first,
        WEFT_OBJ({"id", weft_str(item->id)}, {"toolCallId", member_of(item, WEFT_TOOL_CALL_ID)},
                 {"title", member_of(item, WEFT_TOOL_TITLE)}, {"kind", member_of(item, WEFT_TOOL_KIND)},
                 {"status", member_of(item, WEFT_TOOL_STATUS)}, {"rawInput", member_of(item, WEFT_TOOL_INPUT)},
                 {"rawOutput", member_of(item, WEFT_TOOL_OUTPUT)}, {"content", member_of(item, WEFT_TOOL_CONTENT)},
                 {"locations", member_of(item, WEFT_TOOL_LOCATIONS)}, {"taskId", weft_str(item->task)},
                 {"ts", weft_str(weft__stamp(item->time_ms, time))},
                 {"truncated", item->cut ? weft_bool(true) : weft_none()}));
}

/* ---- the list ---- */

static int write_items(const struct reading *reading, const weft_transcript *transcript) {
    weft_buf *out = weft__computing_out(reading->computing);
    bool first = true;
    int r = weft__buf_put(out, reading->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < transcript->count; i++) {
        const weft_transcript_item *item = transcript->items[i];
        if ((item->said == WEFT_SAID_TOOL) != reading->tools)
            continue;
        r = reading->tools ? write_tool(out, reading->alloc, item, &first)
                           : write_message(out, reading->alloc, item, &first);
    }
    return r < 0 ? r : weft__buf_put(out, reading->alloc, "]", 1);
}

static void on_thread_read(void *ctx, int r, const weft_transcript *transcript) {
    struct reading *reading = ctx;
    weft_computing *computing = reading->computing;
    if (r >= 0)
        r = write_items(reading, transcript);
    weft__free(reading->alloc, reading);
    weft__computing_done(computing, r);
}

static int read_thread(const weft_hub *hub, const weft_json *of, weft_computing *computing, bool tools) {
    const char *thread;
    int r = weft__stream_param(of, "threadId", &thread);
    struct reading *reading = r < 0 ? NULL : weft__alloc(hub->alloc, sizeof *reading);
    if (!reading)
        return -ENOMEM;
    *reading = (struct reading){hub->alloc, computing, tools};
    weft_transcript_spec spec = {.session = thread, .window = WEFT_WINDOW_LAST};
    r = weft__transcript_read(hub->engine, &spec, on_thread_read, reading);
    if (r < 0)
        weft__free(hub->alloc, reading);
    return r;
}

static void compute_thread(const weft_hub *hub, const weft_json *of, weft_computing *computing, bool tools) {
    int r = read_thread(hub, of, computing, tools);
    if (r == -ESRCH)
        r = weft__buf_put(weft__computing_out(computing), hub->alloc, "null", 4);
    else if (r >= 0)
        return;
    weft__computing_done(computing, r);
}

static void compute_messages(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    compute_thread(hub, of, computing, false);
}

static void compute_tools(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    compute_thread(hub, of, computing, true);
}

const weft_stream_kind weft__stream_messages = {.name = "messagesByThread",
                                                .help = "what was said in a thread",
                                                .params = params,
                                                .class = WEFT_CLASS_STATE,
                                                .source = thread_source,
                                                .compute = compute_messages};
const weft_stream_kind weft__stream_tools = {.name = "toolCallsByThread",
                                             .help = "the tools that were used in a thread",
                                             .params = params,
                                             .class = WEFT_CLASS_STATE,
                                             .source = thread_source,
                                             .compute = compute_tools};
