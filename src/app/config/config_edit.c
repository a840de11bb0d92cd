/* The places of values are those that the relaxed reader finds: what JSON does not have is blank in its copy of the text,
 * and every byte keeps its place, so a place in the copy is one in the person's own text. */
#include "config_edit.h"

#include <errno.h>
#include <string.h>

#include "doc.h"
#include "relaxed.h"

#define INDENT "    "

typedef struct edit_path {
    const char *names[WEFT_CONFIG_DEPTH]; /* not NUL-terminated */
    size_t lens[WEFT_CONFIG_DEPTH];
    size_t count;
} edit_path;

/* A document, and the deepest object on the way that is there. */
typedef struct edit_place {
    weft_doc *doc;
    weft_json object;
    size_t depth; /* how many names were found on the way to it */
} edit_place;

static int split_edit_path(const char *path, edit_path *ret) {
    *ret = (edit_path){0};
    for (;;) {
        size_t len = strcspn(path, ".");
        if (ret->count == WEFT_CONFIG_DEPTH || !len)
            return -E2BIG;
        ret->names[ret->count] = path;
        ret->lens[ret->count++] = len;
        if (!path[len])
            return 0;
        path += len + 1;
    }
}

/* The last member of this name, as readers take it. */
static weft_iter find_member(const weft_json *object, const char *name, size_t len) {
    weft_iter found = {0};
    for (weft_iter it = weft_iterate(object); weft_next(&it);) {
        weft_bytes text;
        if (weft_bytes_of(&it.name, &text) >= 0 && text.len == len && memcmp(text.data, name, len) == 0)
            found = it;
    }
    return found;
}

static int find_edit_place(weft_bytes text, const edit_path *path, edit_place *ret) {
    weft_fault fault;
    *ret = (edit_place){0};
    int r = weft__relaxed_parse(text.data, text.len, NULL, &ret->doc, &fault);
    if (r < 0)
        return r;
    ret->object = *weft_doc_root(ret->doc);
    if (weft_typeof(&ret->object) != WEFT_OBJECT)
        return -EBADMSG;
    for (; ret->depth + 1 < path->count; ret->depth++) {
        weft_iter next = find_member(&ret->object, path->names[ret->depth], path->lens[ret->depth]);
        if (!next.value.text)
            return 0;
        if (weft_typeof(&next.value) != WEFT_OBJECT)
            return -ENOTDIR;
        ret->object = next.value;
    }
    return 0;
}

static size_t place_in(const edit_place *place, const char *at) {
    return (size_t) (at - place->doc->text);
}

/* ---- putting a text together ---- */

static int put_bytes(weft_buf *to, const char *data, size_t len) {
    return weft__buf_put(to, NULL, data, len);
}

static int put_word(weft_buf *to, const char *word) {
    return put_bytes(to, word, strlen(word));
}

/* "a": {"b": value} for the names from depth on. */
static int put_member(weft_buf *to, const edit_path *path, size_t depth, weft_bytes value) {
    int r = 0;
    for (size_t i = depth; r >= 0 && i < path->count; i++) {
        r = put_word(to, i > depth ? "{\"" : "\"");
        if (r >= 0)
            r = put_bytes(to, path->names[i], path->lens[i]);
        if (r >= 0)
            r = put_word(to, "\": ");
    }
    if (r >= 0)
        r = put_bytes(to, value.data, value.len);
    for (size_t i = depth + 1; r >= 0 && i < path->count; i++)
        r = put_word(to, "}");
    return r;
}

static int put_new_file(weft_buf *to, const edit_path *path, weft_bytes value) {
    int r = put_word(to, "{\n" INDENT);
    if (r >= 0)
        r = put_member(to, path, 0, value);
    return r < 0 ? r : put_word(to, "\n}\n");
}

/* ---- setting ---- */

static int replace_value(weft_bytes text, const edit_place *place, const weft_json *old, weft_bytes value, weft_buf *ret) {
    size_t at = place_in(place, old->text);
    int r = put_bytes(ret, text.data, at);
    if (r >= 0)
        r = put_bytes(ret, value.data, value.len);
    return r < 0 ? r : put_bytes(ret, text.data + at + old->len, text.len - at - old->len);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The white space before the object's first member, if that begins a line. Its length; 0: the members share a line. */
static size_t indent_of(weft_bytes text, const edit_place *place, const char **ret) {
    weft_iter first = weft_iterate(&place->object);
    size_t brace = place_in(place, place->object.text);
    if (!weft_next(&first))
        return 0;
    size_t at = place_in(place, first.name.text), begin = at;
    while (begin > brace + 1 && is_blank(text.data[begin - 1]))
        begin--;
    if (begin == brace + 1 || text.data[begin - 1] != '\n')
        return 0;
    *ret = text.data + begin;
    return at - begin;
}

/* Behind the brace: a member that comes first needs no look at the commas of the others. */
static int insert_member(weft_bytes text, const edit_place *place, const edit_path *path, weft_bytes value, weft_buf *ret) {
    const char *indent = NULL;
    size_t at = place_in(place, place->object.text) + 1, len = indent_of(text, place, &indent);
    bool empty = weft_count(&place->object) == 0;
    int r = put_bytes(ret, text.data, at);
    if (r >= 0 && indent)
        r = put_word(ret, "\n");
    if (r >= 0 && indent)
        r = put_bytes(ret, indent, len);
    if (r >= 0 && empty && place->depth == 0)
        r = put_word(ret, "\n" INDENT);
    if (r >= 0)
        r = put_member(ret, path, place->depth, value);
    if (r >= 0 && !empty)
        r = put_word(ret, indent ? "," : ", ");
    if (r >= 0 && empty && place->depth == 0 && at < text.len && text.data[at] == '}')
        r = put_word(ret, "\n");
    return r < 0 ? r : put_bytes(ret, text.data + at, text.len - at);
}

static int set_in_file(weft_bytes text, const edit_path *path, weft_bytes value, weft_buf *ret) {
    edit_place place;
    int r = find_edit_place(text, path, &place);
    if (r >= 0) {
        size_t last = path->count - 1;
        weft_iter old = {0};
        if (place.depth == last)
            old = find_member(&place.object, path->names[last], path->lens[last]);
        r = old.value.text ? replace_value(text, &place, &old.value, value, ret)
                           : insert_member(text, &place, path, value, ret);
    }
    weft_doc_free(place.doc);
    return r;
}

int weft__config_edit_set(weft_bytes text, const char *path, weft_bytes value, weft_buf *ret) {
    edit_path split;
    weft_buf made = {0};
    int r = split_edit_path(path, &split);
    if (r >= 0)
        r = text.len ? set_in_file(text, &split, value, &made) : put_new_file(&made, &split, value);
    if (r >= 0)
        *ret = made;
    else
        weft__buf_done(&made, NULL);
    return r < 0 ? r : 0;
}

/* ---- unsetting ---- */

/* Past white space and comments; the text was read before, so a comment that begins also ends. */
static size_t skip_remarks(weft_bytes text, size_t at) {
    while (at < text.len) {
        const char *rest = text.data + at;
        if (is_blank(*rest) || *rest == '\n' || *rest == '\r')
            at++;
        else if (text.len - at > 1 && rest[0] == '/' && rest[1] == '/')
            at += strcspn(rest, "\r\n");
        else if (text.len - at > 1 && rest[0] == '/' && rest[1] == '*')
            at += (size_t) (strstr(rest + 2, "*/") - rest) + 2;
        else
            break;
    }
    return at;
}

/* Where the member ends: behind its comma, if it has one. */
static size_t end_of_member(weft_bytes text, const edit_place *place, const weft_iter *member) {
    size_t value_end = place_in(place, member->value.text) + member->value.len, at = skip_remarks(text, value_end);
    return at < text.len && text.data[at] == ',' ? at + 1 : value_end;
}

/* The whole line goes with it if nothing else stands there. */
static void widen_to_line(weft_bytes text, size_t *begin, size_t *end) {
    size_t b = *begin, e = *end;
    while (b > 0 && is_blank(text.data[b - 1]))
        b--;
    while (e < text.len && is_blank(text.data[e]))
        e++;
    if (b > 0 && text.data[b - 1] == '\n' && e < text.len && text.data[e] == '\n') {
        *begin = b;
        *end = e + 1;
    } else
        *end = e;
}

int weft__config_edit_unset(weft_bytes text, const char *path, weft_buf *ret) {
    edit_path split;
    edit_place place = {0};
    weft_iter member = {0};
    weft_buf made = {0};
    int r = split_edit_path(path, &split);
    if (r >= 0)
        r = text.len ? find_edit_place(text, &split, &place) : 0;
    size_t last = split.count ? split.count - 1 : 0;
    if (r >= 0 && place.doc && place.depth == last)
        member = find_member(&place.object, split.names[last], split.lens[last]);
    if (r >= 0 && member.value.text) {
        size_t begin = place_in(&place, member.name.text), end = end_of_member(text, &place, &member);
        widen_to_line(text, &begin, &end);
        r = put_bytes(&made, text.data, begin);
        if (r >= 0)
            r = put_bytes(&made, text.data + end, text.len - end);
        r = r < 0 ? r : 1;
    }
    weft_doc_free(place.doc);
    if (r == 1)
        *ret = made;
    else
        weft__buf_done(&made, NULL);
    return r;
}
