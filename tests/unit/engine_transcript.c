/* What was said in a session, read back: folded into items, in windows, up to an event, over restarts, within its limits. */
#include "engine/world.h"
#include "transcript.h"

#define MOST 64

typedef struct transcript_outcome {
    int times, r;
    size_t count;
    uint64_t first, total, until;
    struct {
        weft_said said;
        char id[WEFT_TRANSCRIPT_ID], text[64], status[32];
        size_t len;
        bool cut;
    } items[MOST];
} transcript_outcome;

static void note_item(transcript_outcome *o, size_t i, const weft_transcript_item *item) {
    weft_bytes status = item->members[WEFT_TOOL_STATUS];
    o->items[i].said = item->said;
    o->items[i].len = item->text.len;
    o->items[i].cut = item->cut;
    snprintf(o->items[i].id, sizeof o->items[i].id, "%s", item->id);
    snprintf(o->items[i].text, sizeof o->items[i].text, "%.*s", (int) (item->text.len < 60 ? item->text.len : 60),
             item->text.len ? item->text.data : "");
    snprintf(o->items[i].status, sizeof o->items[i].status, "%.*s", (int) status.len, status.data ? status.data : "");
}

static void transcript_done(void *ctx, int r, const weft_transcript *transcript) {
    transcript_outcome *o = ctx;
    o->times++;
    o->r = r;
    if (!transcript)
        return;
    o->count = transcript->count;
    o->first = transcript->first;
    o->total = transcript->total;
    o->until = transcript->until;
    for (size_t i = 0; i < transcript->count && i < MOST; i++)
        note_item(o, i, transcript->items[i]);
}

static int read_transcript(engine_world *w, const weft_transcript_spec *spec, transcript_outcome *ret) {
    memset(ret, 0, sizeof *ret);
    int r = weft__transcript_read(w->engine, spec, transcript_done, ret);
    CHECK_INT(ret->times, 0);
    return r < 0 ? r : engine_wait(w, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static void update(weft_run *run, const char *json) {
    weft_doc *doc = NULL;
    if (CHECK(weft_doc_parse(json, strlen(json), NULL, &doc) >= 0))
        run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

static void chunk(weft_run *run, const char *kind, const char *text) {
    char json[512];
    snprintf(json, sizeof json, "{\"sessionUpdate\":\"%s\",\"content\":{\"type\":\"text\",\"text\":\"%s\"}}", kind, text);
    update(run, json);
}

static void end_task(engine_world *w, const char *id) {
    play_end(play_of(id), true);
    ENGINE_UNTIL(w, state_of(w, id) == WEFT_TASK_COMPLETED);
}

/* Two turns, with everything an agent does in one. */
static void converse(engine_world *w, task_outcome *first, task_outcome *second) {
    CHECK_INT(submit(w, "one", first), 0);
    weft_run *run = play_of(first->id);
    chunk(run, "agent_thought_chunk", "think");
    chunk(run, "agent_message_chunk", "Hel");
    chunk(run, "agent_message_chunk", "lo");
    update(run, "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"t\",\"status\":\"pending\"}");
    update(run, "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c\",\"status\":\"completed\"}");
    update(run, "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"unknown\",\"status\":\"failed\"}");
    update(run, "{\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":[]}");
    update(run, "{\"sessionUpdate\":\"plan\",\"entries\":[1]}");
    update(run, "{\"sessionUpdate\":\"plan\",\"entries\":[2]}");
    end_task(w, first->id);
    CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = "two", .session = first->session}, second), 0);
    run = play_of(second->id);
    play_say(run, "out\n");
    run->host->on_output(run->ctx, WEFT_RUN_STDERR, (weft_bytes){"err\n", 4});
    end_task(w, second->id);
}

static void check_conversation(const transcript_outcome *o) {
    static const weft_said said[] = {WEFT_SAID_PROMPT, WEFT_SAID_THOUGHT, WEFT_SAID_TEXT,   WEFT_SAID_TOOL,
                                     WEFT_SAID_PLAN,   WEFT_SAID_PROMPT,  WEFT_SAID_OUTPUT, WEFT_SAID_ERRORS};
    static const char *const texts[] = {"one", "think", "Hello", "", "", "two", "out\n", "err\n"};
    CHECK_INT(o->count, 8);
    CHECK_INT(o->total, 8);
    for (size_t i = 0; i < 8 && i < o->count; i++) {
        CHECK_INT(o->items[i].said, said[i]);
        CHECK_STR(o->items[i].text, texts[i]);
    }
    CHECK_STR(o->items[3].status, "\"completed\"");
}

TEST(a_conversation_is_read_back) {
    engine_world w;
    task_outcome a, b;
    transcript_outcome o, again;
    engine_begin(&w, &weft__sqlite);
    converse(&w, &a, &b);
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = a.session}, &o), 0);
    check_conversation(&o);
    CHECK_STR(o.items[0].id, a.id);
    engine_restart(&w);
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = a.session}, &again), 0);
    check_conversation(&again);
    for (size_t i = 0; i < 8; i++)
        CHECK_STR(again.items[i].id, o.items[i].id);
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = "session-0077"}, &o), -ESRCH);
    engine_end(&w);
}

/* Every window of every size is a piece of the whole. */
TEST(windows_are_pieces_of_the_whole) {
    static const weft_window windows[] = {WEFT_WINDOW_FIRST, WEFT_WINDOW_LAST, WEFT_WINDOW_BEFORE, WEFT_WINDOW_AFTER};
    engine_world w;
    task_outcome a, b;
    transcript_outcome all, o;
    engine_begin(&w, &weft__memory);
    converse(&w, &a, &b);
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = a.session}, &all), 0);
    for (size_t k = 0; k < 4; k++)
        for (size_t at = 0; at < 8; at++)
            for (size_t limit = 1; limit <= 9; limit++) {
                bool named = k >= 2, back = windows[k] == WEFT_WINDOW_LAST || windows[k] == WEFT_WINDOW_BEFORE;
                size_t edge = !named ? (back ? 8 - at : at) : windows[k] == WEFT_WINDOW_AFTER ? at + 1 : at;
                size_t from = back ? (edge > limit ? edge - limit : 0) : edge;
                size_t to = back ? edge : edge + limit < 8 ? edge + limit : 8;
                weft_transcript_spec spec = {.session = a.session,
                                             .window = windows[k],
                                             .id = named ? all.items[at].id : NULL,
                                             .offset = named ? 0 : at,
                                             .limit = limit};
                CHECK_INT(read_transcript(&w, &spec, &o), 0);
                CHECK_INT(o.total, 8);
                CHECK_INT(o.count, to - from);
                if (o.count)
                    CHECK_INT(o.first, from);
                for (size_t i = 0; i < o.count && i < 8; i++) {
                    CHECK_STR(o.items[i].id, all.items[from + i].id);
                    CHECK_STR(o.items[i].text, all.items[from + i].text);
                }
            }
    weft_transcript_spec none = {.session = a.session, .window = WEFT_WINDOW_AFTER, .id = "nothing"};
    CHECK_INT(read_transcript(&w, &none, &o), -ENOENT);
    none.id = "a name that is longer than any that an item could ever have";
    CHECK_INT(read_transcript(&w, &none, &o), -EINVAL);
    engine_end(&w);
}

/* For each event: what was said up to it, and not more. */
TEST(it_ends_at_any_event) {
    engine_world w;
    task_outcome a, b;
    transcript_outcome o;
    size_t last = 0;
    engine_begin(&w, &weft__memory);
    converse(&w, &a, &b);
    for (uint64_t until = 1; until <= w.last_gseq; until++) {
        CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = a.session, .until = until}, &o), 0);
        CHECK_INT(o.until, until);
        CHECK(o.count == last || o.count == last + 1);
        last = o.count;
    }
    CHECK_INT(last, 8);
    engine_end(&w);
}

static void say_much(weft_run *run, size_t len, char with) {
    char *text = malloc(len);
    memset(text, with, len);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){text, len});
    free(text);
}

TEST(long_texts_are_several_items) {
    engine_world w;
    task_outcome t;
    transcript_outcome o;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    for (int i = 0; i < 10; i++) {
        say_much(play_of(t.id), WEFT_TRANSCRIPT_PIECE / 2, 'a');
        ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == (uint64_t) (i + 1) * WEFT_TRANSCRIPT_PIECE / 2);
    }
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = t.session}, &o), 0);
    CHECK_INT(o.total, 6);
    for (size_t i = 1; i < 6; i++)
        CHECK_INT(o.items[i].len, WEFT_TRANSCRIPT_PIECE);
    engine_end(&w);
}

/* One update of an agent that is longer than an item may be; its first characters have two bytes each. */
TEST(what_is_too_long_is_cut) {
    engine_world w;
    task_outcome t;
    transcript_outcome o;
    static const char head[] = "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"x";
    static const char call[] = "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"status\":\"failed\",\"rawInput\":\"";
    size_t len = WEFT_TRANSCRIPT_TEXT + 1000;
    char *json = malloc(sizeof call + len + 8);
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    memcpy(json, head, sizeof head);
    for (size_t i = 0; i < len; i += 2)
        memcpy(json + sizeof head - 1 + i, "\xc3\xa9", 2);
    memcpy(json + sizeof head - 1 + len, "\"}}", 4);
    update(play_of(t.id), json);
    memcpy(json, call, sizeof call);
    memset(json + sizeof call - 1, 'z', len);
    memcpy(json + sizeof call - 1 + len, "\"}", 3);
    update(play_of(t.id), json);
    free(json);
    engine_settle(&w);
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = t.session}, &o), 0);
    CHECK_INT(o.total, 3);
    CHECK_INT(o.items[1].len, WEFT_TRANSCRIPT_TEXT - 1);
    CHECK(o.items[1].cut);
    CHECK_STR(o.items[2].status, "\"failed\"");
    CHECK(o.items[2].cut);
    engine_end(&w);
}

/* A window has a size in bytes: from the beginning the first that fit, from the end the last. */
TEST(a_window_has_a_size) {
    engine_world w;
    task_outcome t;
    transcript_outcome o;
    size_t count = WEFT_TRANSCRIPT_BYTES / WEFT_TRANSCRIPT_PIECE + 20;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    for (size_t i = 0; i < count; i++) {
        say_much(play_of(t.id), WEFT_TRANSCRIPT_PIECE, (char) ('a' + i % 26));
        ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == (i + 1) * WEFT_TRANSCRIPT_PIECE);
    }
    CHECK_INT(read_transcript(&w, &(weft_transcript_spec){.session = t.session}, &o), 0);
    CHECK_INT(o.total, count + 1);
    CHECK(o.count > 100 && o.count < count);
    CHECK_INT(o.first, 0);
    weft_transcript_spec back = {.session = t.session, .window = WEFT_WINDOW_LAST};
    CHECK_INT(read_transcript(&w, &back, &o), 0);
    CHECK(o.count > 100 && o.count < count);
    CHECK_INT(o.first + o.count, o.total);
    engine_end(&w);
}

TEST(reads_wait_for_each_other) {
    engine_world w;
    task_outcome a, b;
    transcript_outcome o = {0};
    weft_transcript_spec spec;
    int most = WEFT_TRANSCRIPT_READS + WEFT_TRANSCRIPT_WAITING;
    engine_begin(&w, &weft__memory);
    converse(&w, &a, &b);
    spec = (weft_transcript_spec){.session = a.session, .window = WEFT_WINDOW_LAST};
    for (int i = 0; i < most; i++)
        CHECK_INT(weft__transcript_read(w.engine, &spec, transcript_done, &o), 0);
    CHECK_INT(weft__transcript_read(w.engine, &spec, transcript_done, &o), -EBUSY);
    engine_wait(&w, &o.times, most);
    check_conversation(&o);
    CHECK_INT(read_transcript(&w, &spec, &o), 0);
    engine_end(&w);
}

/* The engine goes: those that are read and those that wait are told, once. */
TEST(reads_end_with_the_engine) {
    for (int turns = 0; turns < 6; turns++) {
        engine_world w;
        task_outcome a, b;
        transcript_outcome o = {0};
        engine_begin(&w, &weft__sqlite);
        converse(&w, &a, &b);
        for (int i = 0; i < 10; i++)
            CHECK_INT(weft__transcript_read(w.engine, &(weft_transcript_spec){.session = a.session}, transcript_done, &o),
                      0);
        for (int i = 0; i < turns; i++)
            weft_loop_once(w.loop, false);
        w.engine = weft__engine_free(w.engine);
        CHECK_INT(o.times, 10);
        engine_end(&w);
    }
}

/* Each allocation fails once: the reader is told, or gets all of it. */
TEST(memory_fails) {
    static test_memory memory;
    bool reached = true;
    for (long n = 1; reached; n++) {
        engine_world w;
        task_outcome a, b;
        transcript_outcome o = {0};
        test_memory_init(&memory, 0);
        engine_open(&w, &weft__memory);
        w.opts.alloc = &memory.alloc;
        CHECK_INT(world_start(&w), 0);
        converse(&w, &a, &b);
        engine_settle(&w);
        long before = memory.count;
        memory.fail_at = before + n;
        weft_transcript_spec spec = {.session = a.session, .window = WEFT_WINDOW_LAST};
        int r = weft__transcript_read(w.engine, &spec, transcript_done, &o);
        if (r >= 0)
            engine_wait(&w, &o.times, 1);
        reached = memory.count >= before + n;
        memory.fail_at = 0;
        CHECK(r == -ENOMEM || (o.times == 1 && (o.r == -ENOMEM || o.r == 0)));
        if (r >= 0 && o.r == 0)
            check_conversation(&o);
        engine_end(&w);
        CHECK_INT(memory.live, 0);
    }
}

TEST_MAIN(CASE(a_conversation_is_read_back) CASE(windows_are_pieces_of_the_whole) CASE(it_ends_at_any_event)
              CASE(long_texts_are_several_items) CASE(what_is_too_long_is_cut) CASE(a_window_has_a_size)
                  CASE(reads_wait_for_each_other) CASE(reads_end_with_the_engine) CASE(memory_fails))
