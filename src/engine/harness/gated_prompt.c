/* What an iteration is told. The first is the prompt as it was sent. A later one says the task again, because not every
 * agent remembers what it was told before, and behind it what the gates found, with the limits of the agent. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gated_private.h"
#include "utf8.h"

/* "src/a.c:3:5: error: message [code]", one in a line. */
static int put_diagnostics(weft_buf *out, const weft_alloc *alloc, const char *json) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(json, strlen(json), alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); r >= 0 && weft_next(&it);) {
        char place[64] = "";
        int64_t line = weft_get_int(&it.value, "line", 0), column = weft_get_int(&it.value, "column", 0);
        if (line && column)
            snprintf(place, sizeof place, ":%" PRId64 ":%" PRId64, line, column);
        else if (line)
            snprintf(place, sizeof place, ":%" PRId64, line);
        const char *const parts[] = {"- ",
                                     weft_get_str(&it.value, "file", ""),
                                     place,
                                     weft_get(&it.value, "file").text ? ": " : "",
                                     weft_get_str(&it.value, "severity", ""),
                                     ": ",
                                     weft_get_str(&it.value, "message", ""),
                                     "\n"};
        for (size_t i = 0; r >= 0 && i < sizeof parts / sizeof parts[0]; i++)
            r = weft__buf_put_text(out, alloc, parts[i]);
    }
    weft_doc_free(doc);
    return r;
}

/* The end of the output says more than its beginning: how many failed, and what came last. */
static int put_output(weft_buf *out, const weft_alloc *alloc, const char *text, size_t room) {
    size_t len = strlen(text), skip = len > room ? len - room : 0;
    while (skip && skip < len && weft__utf8_follows((unsigned char) text[skip]))
        skip++;
    if (skip == len)
        return 0;
    int r = weft__buf_put_text(out, alloc, skip ? "The end of its output:\n" : "Its output:\n");
    return r < 0 ? r : weft__buf_put(out, alloc, text + skip, len - skip);
}

static int put_gate(const gated_task *task, size_t i, size_t room, weft_buf *out) {
    const weft_alloc *alloc = task->of->alloc;
    const weft_gate_result *result = &task->results[i];
    weft_buf found = {0};
    char head[WEFT_GATE_NAME + WEFT_GATED_WHY + 80];
    if (*result->why)
        snprintf(head, sizeof head, "\n\n### %s: %s\n", task->gates[i], result->why);
    else if (result->exit_code < 0)
        snprintf(head, sizeof head, "\n\n### %s: ended by a signal\n", task->gates[i]);
    else
        snprintf(head, sizeof head, "\n\n### %s: exit status %d\n", task->gates[i], result->exit_code);
    int r = weft__buf_put_text(out, alloc, head);
    if (r >= 0)
        r = put_diagnostics(&found, alloc, result->diagnostics);
    size_t len = weft__buf_len(&found) ? weft__utf8_fit(weft__buf_head(&found), weft__buf_len(&found), room / 2) : 0;
    if (r >= 0 && len)
        r = weft__buf_put(out, alloc, weft__buf_head(&found), len);
    if (r >= 0)
        r = put_output(out, alloc, result->output, room - len);
    weft__buf_done(&found, alloc);
    return r;
}

static size_t count_failed(const gated_task *task) {
    size_t n = 0;
    for (size_t i = 0; i < task->pub.gate_count; i++)
        n += task->results[i].known && !task->results[i].passed;
    return n;
}

#define HEADINGS 512 /* room for the sentence, and for the headings of one gate */

static int put_findings(const gated_task *task, int64_t iteration, size_t room, weft_buf *out) {
    char words[200];
    size_t failed = count_failed(task), each = failed ? room / failed : room;
    snprintf(words, sizeof words,
             "\n\nThis is iteration %" PRId64 " of %" PRId64
             ". After the last one these checks did not pass. Make them pass:",
             iteration, task->pub.max_iterations);
    int r = weft__buf_put_text(out, task->of->alloc, words);
    for (size_t i = 0; r >= 0 && i < task->pub.gate_count; i++)
        if (task->results[i].known && !task->results[i].passed)
            r = put_gate(task, i, each > HEADINGS ? each - HEADINGS : 0, out);
    return r;
}

size_t weft__gated_limit(const gated_task *task) {
    const weft_engine *engine = task->of->engine;
    const weft_session *session = *task->now.session ? weft__session_find(engine, task->now.session) : NULL;
    const char *name = session ? session->agent : task->agent;
    const weft_agent *agent = name ? weft__agent_find(weft__engine_agents(engine), name) : weft__agent_default(engine);
    return agent ? agent->context_limit : 0;
}

int weft__gated_prompt(const gated_task *task, int64_t iteration, size_t limit, weft_buf *out) {
    size_t len = strlen(task->prompt), room = WEFT_GATED_FINDINGS;
    if (limit && len > limit)
        return -EOVERFLOW;
    if (limit && iteration > 1 && limit - len < room)
        room = limit - len;
    if (iteration > 1 && room < 2 * HEADINGS) /* an agent that is not told what is wrong would only do the same again */
        return -EOVERFLOW;
    int r = weft__buf_put(out, task->of->alloc, task->prompt, len);
    if (r >= 0 && iteration > 1)
        r = put_findings(task, iteration, room - HEADINGS, out);
    if (r >= 0 && limit && weft__buf_len(out) > limit)
        return -EOVERFLOW;
    return r < 0 ? r : weft__buf_put(out, task->of->alloc, "", 1);
}
