/* Matching patterns. Words with one place to go back to, paths with another; nothing here recurses but the writing out of
 * braces, which is limited. */
#include "glob.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"

/* ---- words ---- */

/* The bytes of the character that begins here: UTF-8, or one byte of something else. */
static size_t char_len(weft_bytes text, size_t at) {
    size_t n = 1;
    if ((unsigned char) text.data[at] >= 0xc0)
        while (at + n < text.len && n < 4 && ((unsigned char) text.data[at + n] & 0xc0) == 0x80)
            n++;
    return n;
}

/* "[abc]", "[a-z]", "[!a]", "[^a]" at p[i]; only ASCII inside. *ret_len is 0 when it is not closed and so means itself. */
static bool in_class(weft_bytes p, size_t i, char c, size_t *ret_len) {
    size_t at = i + 1;
    bool found = false, negated = at < p.len && (p.data[at] == '!' || p.data[at] == '^');
    at += negated;
    for (size_t first = at; at < p.len && (p.data[at] != ']' || at == first); at++) {
        if (p.data[at] == '\\' && at + 1 < p.len)
            at++;
        unsigned char low = (unsigned char) p.data[at], high = low;
        if (at + 2 < p.len && p.data[at + 1] == '-' && p.data[at + 2] != ']') {
            high = (unsigned char) p.data[at + 2];
            at += 2;
        }
        found |= (unsigned char) c >= low && (unsigned char) c <= high;
    }
    *ret_len = at < p.len ? at + 1 - i : 0;
    return found != negated;
}

/* Does the part of the pattern at i, which is not a star, take the character at j? If so, move both behind it. */
static bool match_one_character(weft_bytes p, size_t *i, weft_bytes t, size_t *j) {
    char c = p.data[*i];
    size_t len;
    if (c == '?') {
        ++*i;
        *j += char_len(t, *j);
        return true;
    }
    if (c == '[') {
        bool in = in_class(p, *i, t.data[*j], &len);
        if (len) {
            *i += in ? len : 0;
            *j += in ? char_len(t, *j) : 0;
            return in;
        }
    }
    bool escaped = c == '\\' && *i + 1 < p.len;
    if (t.data[*j] != p.data[*i + escaped])
        return false;
    *i += 1 + escaped;
    ++*j;
    return true;
}

bool weft__glob_word(weft_bytes p, weft_bytes t) {
    size_t i = 0, j = 0, star = SIZE_MAX, mark = 0;
    while (j < t.len) {
        if (i < p.len && p.data[i] == '*') {
            star = ++i;
            mark = j;
        } else if (i < p.len && match_one_character(p, &i, t, &j))
            continue;
        else if (star == SIZE_MAX)
            return false;
        else {
            i = star;
            j = mark += char_len(t, mark);
        }
    }
    while (i < p.len && p.data[i] == '*')
        i++;
    return i == p.len;
}

/* ---- paths ---- */

static weft_bytes first_part(const char *path) {
    return (weft_bytes){path, strcspn(path, "/")};
}

/* NULL: it was the last. */
static const char *behind_slash(const char *path) {
    const char *slash = strchr(path, '/');
    return slash ? slash + 1 : NULL;
}

static bool is_any_depth(const char *pattern) {
    return pattern && pattern[0] == '*' && pattern[1] == '*' && (pattern[2] == '/' || !pattern[2]);
}

bool weft__glob_path(const char *pattern, const char *path) {
    const char *p = *pattern ? pattern : NULL, *t = *path ? path : NULL;
    const char *back_p = NULL, *back_t = NULL; /* behind the last "**", and how far it has taken the path */
    for (;;) {
        if (is_any_depth(p)) {
            p = behind_slash(p);
            if (!p || !t)
                return !p && t;
            back_p = p;
            back_t = t;
        } else if (!t)
            return !p;
        else if (p && weft__glob_word(first_part(p), first_part(t))) {
            p = behind_slash(p);
            t = behind_slash(t);
        } else {
            back_t = back_t ? behind_slash(back_t) : NULL;
            if (!back_t)
                return false;
            p = back_p;
            t = back_t;
        }
    }
}

/* ---- braces ---- */

struct weft_glob {
    const weft_alloc *alloc;
    size_t count;
    char *patterns[WEFT_GLOB_MAX];
};

/* The first character of set at the level of text, whose braces are skipped with what is in them; its end if there is none.
 * -1: a brace is not closed. */
static ptrdiff_t find_level(const char *text, const char *set) {
    int depth = 0;
    const char *at = text;
    for (; *at; at++) {
        if (!depth && strchr(set, *at))
            return at - text;
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == '}' && depth)
            depth--;
    }
    return depth ? -1 : at - text;
}

static int put_pattern(weft_glob *glob, const char *text, size_t len) {
    if (glob->count == WEFT_GLOB_MAX)
        return -E2BIG;
    char *copy = weft__strndup(glob->alloc, text, len);
    if (!copy)
        return -ENOMEM;
    glob->patterns[glob->count++] = copy;
    return 0;
}

static int write_choices(weft_glob *glob, const char *text);

/* head, one alternative, and what is behind the brace; then the next brace of that. */
static int write_choice(weft_glob *glob, weft_bytes head, weft_bytes choice, const char *tail) {
    size_t tail_len = strlen(tail);
    char *text = weft__alloc(glob->alloc, head.len + choice.len + tail_len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, head.data, head.len);
    memcpy(text + head.len, choice.data, choice.len);
    memcpy(text + head.len + choice.len, tail, tail_len + 1);
    int r = write_choices(glob, text);
    weft__free(glob->alloc, text);
    return r;
}

static int write_choices(weft_glob *glob, const char *text) {
    ptrdiff_t open = find_level(text, "{");
    if (open < 0 || !text[open])
        return open < 0 ? -EINVAL : put_pattern(glob, text, (size_t) open);
    const char *at = text + open + 1;
    ptrdiff_t close = find_level(at, "}");
    if (close < 0 || !at[close])
        return -EINVAL;
    const char *end = at + close;
    int r = 0;
    while (r == 0 && at <= end) {
        ptrdiff_t len = find_level(at, ",}");
        r = write_choice(glob, (weft_bytes){text, (size_t) open}, (weft_bytes){at, (size_t) len}, end + 1);
        at += len + 1;
    }
    return r;
}

int weft__glob_new(const char *pattern, const weft_alloc *alloc, weft_glob **ret) {
    weft_glob *glob = weft__zalloc(alloc, sizeof *glob);
    if (!glob)
        return -ENOMEM;
    glob->alloc = alloc;
    int r = write_choices(glob, pattern);
    if (r < 0) {
        weft__glob_free(glob);
        return r;
    }
    *ret = glob;
    return 0;
}

weft_glob *weft__glob_free(weft_glob *glob) {
    if (!glob)
        return NULL;
    for (size_t i = 0; i < glob->count; i++)
        weft__free(glob->alloc, glob->patterns[i]);
    return weft__free(glob->alloc, glob);
}

bool weft__glob_matches(const weft_glob *glob, const char *path) {
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < glob->count; i++) {
        const char *pattern = glob->patterns[i];
        bool name_only = !strchr(pattern, '/');
        if (weft__glob_path(pattern[0] == '/' ? pattern + 1 : pattern, name_only && slash ? slash + 1 : path))
            return true;
    }
    return false;
}

bool weft__glob_says(const weft_glob *glob, weft_bytes text) {
    for (size_t i = 0; i < glob->count; i++)
        if (weft__glob_word((weft_bytes){glob->patterns[i], strlen(glob->patterns[i])}, text))
            return true;
    return false;
}
