/* Writing and reading the text of a review; see review_text.h.
 *
 * Both texts are read side by side: a line of the edited one must be the next of the diff, but at the first line of a file
 * or a hunk the diff may be ahead, because those can be left out. Their first lines are unlike any other in the diff (in the
 * file, for a hunk), so this cannot go wrong. */
#include "review_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "review.h"
#include "utf8_stream.h"

#define MARK '>'
#define HELP '#'

/* ---- writing ---- */

static const char how_to[] =
    "#\n"
    "# Write what you have to say below the line of the diff that it is about, on lines that begin with \">\":\n"
    "#\n"
    "#     > this should be a constant\n"
    "#\n"
    "# Below the name of a file it is about the file, above the first file about everything.\n"
    "# Leave the lines of the diff as they are; hunks and files may be taken out as a whole.\n"
    "# Without any comment nothing is sent.\n"
    "\n";

int weft__review_text_write(weft_buf *out, const weft_alloc *alloc, const char *task, weft_bytes diff) {
    weft_diff_reader reader = {.at = diff.data, .end = diff.data + diff.len};
    weft_diff_line line;
    char first[160];
    int n = snprintf(first, sizeof first, "# What %.100s changed.\n", task);
    int r = weft__buf_put(out, alloc, first, (size_t) n);
    if (r >= 0)
        r = weft__buf_put(out, alloc, how_to, sizeof how_to - 1);
    while (r >= 0 && diff.len && weft__diff_next(&reader, &line)) {
        r = weft__diff_show(out, alloc, line.text, SIZE_MAX);
        if (r >= 0)
            r = weft__buf_put(out, alloc, "\n", 1);
    }
    return r;
}

/* ---- reading ---- */

typedef struct review_reader {
    weft_review_text *ret;
    const weft_alloc *alloc;
    weft_diff_reader diff;
    weft_diff_line line; /* of the diff, the last one that was met */
    bool begun;          /* there was one */
    bool stripped;       /* blanks at the ends of lines are lost: then an empty line may be one of the diff */
    weft_buf shown;      /* the form of a line of the diff in the text */
    weft_buf saying;     /* the comment that is being read */
} review_reader;

static int refuse_text(review_reader *self, const char *why) {
    self->ret->why = why;
    return -EBADMSG;
}

static weft_bytes trim_end(weft_bytes text) {
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]) && text.data[text.len - 1])
        text.len--;
    return text;
}

static char *keep_text(review_reader *self, weft_bytes text) {
    char *copy = weft__arena_alloc(&self->ret->arena, text.len + 1);
    if (copy) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

/* Room for one more. */
static weft_said *add_said(review_reader *self) {
    weft_review_text *ret = self->ret;
    if (ret->count == ret->room) {
        size_t room = ret->room ? 2 * ret->room : 16;
        weft_said *more = weft__resize(self->alloc, ret->said, room * sizeof *more);
        if (!more)
            return NULL;
        ret->said = more;
        ret->room = room;
    }
    ret->said[ret->count] = (weft_said){0};
    return &ret->said[ret->count];
}

/* Below the first line of a hunk it is about the one that follows. */
static void take_place(const review_reader *self, weft_said *said) {
    weft_diff_reader ahead = self->diff;
    weft_diff_line line = self->line;
    if (line.kind == WEFT_DIFF_HUNK && !weft__diff_next(&ahead, &line))
        return;
    said->old = line.kind == WEFT_DIFF_REMOVED;
    said->line = said->old ? line.before : line.now;
}

/* The comment that was being read is over. */
static int end_saying(review_reader *self) {
    char path[WEFT_DIFF_PATH];
    weft_bytes text = trim_end((weft_bytes){weft__buf_head(&self->saying), weft__buf_len(&self->saying)});
    if (!text.len) {
        weft__buf_done(&self->saying, self->alloc);
        return 0;
    }
    char *copy = keep_text(self, text);
    weft__buf_done(&self->saying, self->alloc);
    if (!copy)
        return -ENOMEM;
    if (!self->begun) {
        self->ret->text = copy;
        return 0;
    }
    if (self->ret->count == WEFT_REVIEW_COMMENTS)
        return refuse_text(self, "there are too many comments: 200 can be sent at a time");
    if (!weft__diff_file(&self->diff, path))
        return refuse_text(self, "the name of this file is too long, or is none");
    weft_said *said = add_said(self);
    if (!said || !(said->path = keep_text(self, (weft_bytes){path, strlen(path)})))
        return -ENOMEM;
    said->text = copy;
    take_place(self, said);
    self->ret->count++;
    return 0;
}

static int add_saying(review_reader *self, weft_bytes line) {
    size_t skip = line.len > 1 && line.data[1] == ' ' ? 2 : 1;
    if (line.data[line.len - 1] == '\r' && line.len > skip)
        line.len--;
    int r = weft__buf_len(&self->saying) ? weft__buf_put(&self->saying, self->alloc, "\n", 1) : 0;
    if (r >= 0)
        r = weft__buf_put(&self->saying, self->alloc, line.data + skip, line.len - skip);
    if (r >= 0 && weft__buf_len(&self->saying) > WEFT_REVIEW_TEXT)
        return refuse_text(self, "this comment is too long");
    return r;
}

/* 1: the line of the diff is this one, as it was written; 0: it is another; -ENOMEM. Editors may take blanks away at the end
 * of a line. */
static int is_this_line(review_reader *self, const weft_diff_line *line, weft_bytes edited) {
    self->shown.start = self->shown.end = 0;
    int r = weft__diff_show(&self->shown, self->alloc, line->text, SIZE_MAX);
    if (r < 0)
        return r;
    weft_bytes shown = trim_end((weft_bytes){weft__buf_head(&self->shown), weft__buf_len(&self->shown)});
    bool empty = !edited.len || *edited.data == '\r';
    edited = trim_end(edited);
    if (!shown.len && !edited.len)
        return self->stripped || !empty;
    return shown.len == edited.len && memcmp(shown.data, edited.data, shown.len) == 0;
}

/* The first line of a file or a hunk further on. 1: found, and met; 0: there is none; -ENOMEM. */
static int skip_to(review_reader *self, weft_bytes edited) {
    weft_diff_reader at = self->diff;
    weft_diff_line line;
    bool hunk = *edited.data == '@';
    while (weft__diff_next(&at, &line)) {
        if (hunk && line.kind == WEFT_DIFF_FILE)
            return 0;
        int r = line.kind == (hunk ? WEFT_DIFF_HUNK : WEFT_DIFF_FILE) ? is_this_line(self, &line, edited) : 0;
        if (r > 0) {
            self->diff = at;
            self->line = line;
            self->begun = true;
        }
        if (r != 0)
            return r;
    }
    return 0;
}

static bool may_skip_to(weft_bytes edited) {
    return (edited.len > 3 && memcmp(edited.data, "@@ ", 3) == 0) ||
           (edited.len > 11 && memcmp(edited.data, "diff --git ", 11) == 0);
}

/* A line that is neither a comment nor help. */
static int meet_line(review_reader *self, weft_bytes edited) {
    weft_diff_reader at = self->diff;
    weft_diff_line line;
    int r = weft__diff_next(&at, &line) ? is_this_line(self, &line, edited) : 0;
    if (r < 0)
        return r;
    if (r > 0) {
        r = end_saying(self);
        self->diff = at;
        if (line.kind != WEFT_DIFF_NOTE) /* what is said below a note is about the line above it */
            self->line = line;
        self->begun = true;
        return r;
    }
    if (!trim_end(edited).len)
        return 0; /* somebody likes some air around what is said */
    r = end_saying(self);
    if (r >= 0)
        r = may_skip_to(edited) ? skip_to(self, edited) : 0;
    return r < 0 ? r : r > 0 ? 0 : refuse_text(self, "this is not the next line of the diff; a comment begins with \">\"");
}

static int read_edited_line(review_reader *self, weft_bytes line) {
    if (memchr(line.data, '\0', line.len) || !weft__utf8_valid(line.data, line.len))
        return refuse_text(self, "this is not UTF-8");
    if (line.len && *line.data == MARK)
        return add_saying(self, line);
    return line.len && *line.data == HELP ? 0 : meet_line(self, line);
}

/* Does any line consist of blanks alone? */
static bool has_blank_line(weft_bytes text) {
    const char *at = text.data, *end = at + text.len;
    while ((at = memmem(at, (size_t) (end - at), "\n ", 2))) {
        for (at++; at < end && (*at == ' ' || *at == '\t' || *at == '\r');)
            at++;
        if (at == end || *at == '\n')
            return true;
    }
    return false;
}

int weft__review_text_read(weft_bytes edited, weft_bytes diff, const weft_alloc *alloc, weft_review_text *ret) {
    review_reader self = {.ret = ret,
                          .alloc = alloc,
                          .diff = {.at = diff.data, .end = diff.data + diff.len},
                          .stripped = !has_blank_line(edited)};
    int r = 0;
    *ret = (weft_review_text){.arena.alloc = alloc};
    for (const char *at = edited.data, *end = at + edited.len; r >= 0 && at < end;) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        ret->bad_line++;
        r = read_edited_line(&self, (weft_bytes){at, (size_t) ((stop ? stop : end) - at)});
        at = stop ? stop + 1 : end;
    }
    if (r >= 0)
        r = end_saying(&self);
    weft__buf_done(&self.saying, alloc);
    weft__buf_done(&self.shown, alloc);
    return r;
}

void weft__review_text_done(weft_review_text *review) {
    review->said = weft__free(review->arena.alloc, review->said);
    review->count = review->room = 0;
    weft__arena_done(&review->arena);
}
