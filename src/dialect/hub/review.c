/* Comments on a diff; see review.h. What is shown of the diff is indented and its lines are cut, so that no file can look
 * like what the person says. */
#include "review.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

#define INDENT "    "

/* ---- finding ---- */

/* One walk through a diff, for all comments. */
typedef struct search {
    weft_comment *comments;
    const weft_alloc *alloc;
    weft_diff_reader reader;
    weft_comment *here[WEFT_REVIEW_COMMENTS]; /* those about the file that is being read */
    size_t here_count;
    weft_bytes before[WEFT_REVIEW_AROUND]; /* the lines before this one, in its hunk, the last one last */
    size_t before_count;
} search;

/* A file that was renamed is known by its old name where it is about its old lines. */
static bool is_about(const weft_comment *comment, const char *old, const char *now) {
    return (now && strcmp(comment->path, now) == 0) || (old && (comment->old || !now) && strcmp(comment->path, old) == 0);
}

static void begin_file(search *s, size_t count) {
    char old[WEFT_DIFF_PATH], now[WEFT_DIFF_PATH];
    bool was = weft__diff_path(&s->reader, true, old), is = weft__diff_path(&s->reader, false, now);
    s->here_count = s->before_count = 0;
    for (size_t i = 0; i < count; i++) {
        weft_comment *comment = &s->comments[i];
        if (comment->found || !is_about(comment, was ? old : NULL, is ? now : NULL))
            continue;
        comment->found = !comment->line;
        if (comment->line && s->here_count < WEFT_REVIEW_COMMENTS)
            s->here[s->here_count++] = comment;
    }
}

static int put_excerpt_line(const search *s, weft_buf *out, weft_bytes line, bool meant) {
    int r = weft__buf_put(out, s->alloc, meant ? INDENT "> " : INDENT "  ", sizeof INDENT + 1);
    if (r >= 0)
        r = weft__diff_show(out, s->alloc, line, WEFT_REVIEW_LINE);
    return r < 0 ? r : weft__buf_put(out, s->alloc, "\n", 1);
}

static int put_excerpt(const search *s, weft_buf *out, const weft_diff_line *line) {
    weft_diff_reader ahead = s->reader;
    weft_diff_line next;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < s->before_count; i++)
        r = put_excerpt_line(s, out, s->before[i], false);
    if (r >= 0)
        r = put_excerpt_line(s, out, line->text, true);
    for (int i = 0; r >= 0 && i < WEFT_REVIEW_AROUND && weft__diff_next(&ahead, &next) && next.kind >= WEFT_DIFF_SAME; i++)
        r = put_excerpt_line(s, out, next.text, false);
    return r;
}

static void remember_line(search *s, weft_bytes line) {
    if (s->before_count == WEFT_REVIEW_AROUND)
        memmove(s->before, s->before + 1, --s->before_count * sizeof s->before[0]);
    s->before[s->before_count++] = line;
}

static int match_line(search *s, const weft_diff_line *line) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < s->here_count; i++) {
        weft_comment *comment = s->here[i];
        if (comment->found || comment->line != (comment->old ? line->before : line->now))
            continue;
        weft_buf excerpt = {0};
        r = put_excerpt(s, &excerpt, line);
        if (r < 0)
            weft__buf_done(&excerpt, s->alloc);
        else {
            comment->excerpt = excerpt;
            comment->found = true;
        }
    }
    remember_line(s, line->text);
    return r;
}

int weft__comments_find(weft_comment *comments, size_t count, weft_bytes diff, const weft_alloc *alloc) {
    search s = {.comments = comments, .alloc = alloc, .reader = {.at = diff.data, .end = diff.data + diff.len}};
    weft_diff_line line;
    int r = 0;
    while (r >= 0 && diff.len && weft__diff_next(&s.reader, &line)) {
        if (line.kind == WEFT_DIFF_FILE)
            begin_file(&s, count);
        else if (line.kind == WEFT_DIFF_HUNK)
            s.before_count = 0;
        else if (line.kind >= WEFT_DIFF_SAME && s.here_count)
            r = match_line(&s, &line);
    }
    return r;
}

void weft__comments_done(weft_comment *comments, size_t count, const weft_alloc *alloc) {
    for (size_t i = 0; i < count; i++)
        weft__buf_done(&comments[i].excerpt, alloc);
}

/* ---- the prompt ---- */

static int put_form(weft_buf *out, const weft_alloc *alloc, const char *format, ...) WEFT_PRINTF(3, 4);
static int put_form(weft_buf *out, const weft_alloc *alloc, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t) n < sizeof text ? (size_t) n : sizeof text - 1;
    return weft__buf_put(out, alloc, text, len);
}

/* With an empty line behind it. */
static int put_paragraph(weft_buf *out, const weft_alloc *alloc, const char *text, size_t len) {
    int r = weft__buf_put(out, alloc, text, len);
    return r < 0 ? r : weft__buf_put(out, alloc, "\n\n", 2);
}

static int put_about(weft_buf *out, const weft_alloc *alloc, const char *about) {
    size_t len = strlen(about), fit = weft__utf8_fit(about, len, WEFT_REVIEW_PROMPT);
    int r = put_form(out, alloc, "What was to be done there%s:\n\n", fit < len ? " (the beginning of it)" : "");
    if (r >= 0)
        r = put_paragraph(out, alloc, about, fit);
    return r < 0 ? r : put_form(out, alloc, "Its changes are in the project's files.\n\n");
}

static int put_comment(weft_buf *out, const weft_alloc *alloc, const weft_comment *comment, size_t number) {
    int r = put_form(out, alloc, "%zu. ", number);
    if (r >= 0)
        r = weft__diff_show(out, alloc, (weft_bytes){comment->path, strlen(comment->path)}, WEFT_DIFF_PATH);
    if (r >= 0 && comment->line)
        r = put_form(out, alloc, ", line %zu%s", comment->line, comment->old ? " of the file as it was before" : "");
    if (r >= 0)
        r = weft__buf_put(out, alloc, ":\n\n", 3);
    if (r >= 0 && weft__buf_len(&comment->excerpt))
        r = weft__buf_put(out, alloc, weft__buf_head(&comment->excerpt), weft__buf_len(&comment->excerpt));
    if (r >= 0 && weft__buf_len(&comment->excerpt))
        r = weft__buf_put(out, alloc, "\n", 1);
    return r < 0 ? r : put_paragraph(out, alloc, comment->text, strlen(comment->text));
}

int weft__review_write_prompt(weft_buf *out, const weft_alloc *alloc, const weft_review_prompt *review) {
    int r = put_form(out, alloc, "A person has reviewed what %s changed in the project's files", review->task);
    if (r >= 0)
        r = review->count
                ? put_form(out, alloc, " and has %zu comment%s on it.\n\n", review->count, review->count == 1 ? "" : "s")
                : put_form(out, alloc, ".\n\n");
    if (r >= 0 && review->about)
        r = put_about(out, alloc, review->about);
    if (r >= 0 && review->text)
        r = put_paragraph(out, alloc, review->text, strlen(review->text));
    for (size_t i = 0; r >= 0 && i < review->count; i++)
        r = put_comment(out, alloc, &review->list[i], i + 1);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}
