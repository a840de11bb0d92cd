/* Reports. All texts lie in one arena, which goes with the report. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "doc.h"

struct report_memory {
    weft_arena arena;
    const weft_alloc *alloc;
    weft_schema_error errors[WEFT_SCHEMA_ERRORS];
};

/* RFC 6901 section 3. */
static int put_token(weft_buf *out, const weft_alloc *alloc, const char *text, size_t len) {
    int r = weft__buf_put(out, alloc, "/", 1);
    for (size_t i = 0; r >= 0 && i < len; i++) {
        if (text[i] == '~')
            r = weft__buf_put(out, alloc, "~0", 2);
        else if (text[i] == '/')
            r = weft__buf_put(out, alloc, "~1", 2);
        else if (text[i] == '\0') /* no C string could hold it */
            r = weft__buf_put(out, alloc, "\xEF\xBF\xBD", 3);
        else
            r = weft__buf_put(out, alloc, text + i, 1);
    }
    return r;
}

static int put_name(weft_buf *out, const weft_alloc *alloc, const char *raw, size_t len) {
    char *decoded = weft__alloc(alloc, len + 1);
    if (!decoded)
        return -ENOMEM;
    int r = put_token(out, alloc, decoded, weft__unescape(raw, len, decoded));
    weft__free(alloc, decoded);
    return r;
}

/* As deep as the value. */
static int put_place(weft_buf *out, const weft_alloc *alloc, const schema_place *place) {
    char number[24];
    int r = place && place->outer ? put_place(out, alloc, place->outer) : 0;
    if (r < 0 || !place)
        return r;
    if (place->name)
        return put_name(out, alloc, place->name, place->len);
    int n = snprintf(number, sizeof number, "%zu", place->index);
    return put_token(out, alloc, number, (size_t) n);
}

/* As deep as the text of the schema. */
static int put_node(weft_buf *out, const weft_alloc *alloc, const schema_node *node) {
    if (!node->parent) {
        const char *shown = node->resource->shown;
        int r = weft__buf_put(out, alloc, shown, strlen(shown));
        return r < 0 || !*shown ? r : weft__buf_put(out, alloc, "#", 1);
    }
    int r = put_node(out, alloc, node->parent);
    if (r >= 0 && node->keyword.data)
        r = put_token(out, alloc, node->keyword.data, node->keyword.len);
    return r < 0 || !node->token.data ? r : put_token(out, alloc, node->token.data, node->token.len);
}

/* What is in the buffer, as a C string in the arena; the buffer is empty then. */
static int keep_text(struct report_memory *memory, weft_buf *text, const char **ret) {
    size_t len = weft__buf_len(text);
    char *copy = weft__arena_alloc(&memory->arena, len + 1);
    if (!copy)
        return -ENOMEM;
    if (len)
        memcpy(copy, weft__buf_head(text), len);
    copy[len] = '\0';
    text->end = text->start;
    *ret = copy;
    return 0;
}

static int describe(struct report_memory *memory, weft_buf *text, const schema_place *place, const schema_node *node,
                    const char *keyword, weft_schema_error *ret) {
    const weft_alloc *alloc = memory->alloc;
    int r = put_place(text, alloc, place);
    if (r >= 0)
        r = keep_text(memory, text, &ret->instance);
    if (r >= 0 && node)
        r = put_node(text, alloc, node);
    if (r >= 0 && keyword)
        r = put_token(text, alloc, keyword, strlen(keyword));
    return r < 0 ? r : keep_text(memory, text, &ret->keyword);
}

void weft__report_begin(weft_schema_report *report, const weft_alloc *alloc) {
    if (!report)
        return;
    weft_schema_report_done(report);
    struct report_memory *memory = weft__zalloc(alloc, sizeof *memory);
    if (!memory)
        return;
    memory->alloc = memory->arena.alloc = alloc;
    report->ours_ = memory;
    report->errors = memory->errors;
}

int weft__report_add(weft_schema_report *report, const schema_place *place, const schema_node *node, const char *keyword,
                     const char *message) {
    struct report_memory *memory = report ? report->ours_ : NULL;
    weft_schema_error error = {"", "", ""};
    weft_buf text = {0};
    if (!report)
        return 0;
    if (!memory)
        return -ENOMEM;
    if (report->count == WEFT_SCHEMA_ERRORS) {
        report->more = true;
        return 0;
    }
    int r = describe(memory, &text, place, node, keyword, &error);
    if (r >= 0)
        r = weft__buf_put(&text, memory->alloc, message, strlen(message));
    if (r >= 0)
        r = keep_text(memory, &text, &error.message);
    weft__buf_done(&text, memory->alloc);
    if (r >= 0)
        memory->errors[report->count++] = error;
    return r;
}

void weft_schema_report_done(weft_schema_report *report) {
    if (!report)
        return;
    struct report_memory *memory = report->ours_;
    if (memory) {
        weft__arena_done(&memory->arena);
        weft__free(memory->alloc, memory);
    }
    *report = (weft_schema_report){0};
}
