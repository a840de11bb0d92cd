/* Values that are made of parts: agents, rules, jobs. What a part must be is a row of a table; checking it and its JSON
 * Schema both come from there. A member that no row has is a warning, as an unknown key is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "write.h"

/* Names of members and of agents; what is longer is cut in what is said about it. */
#define MAX_PATH 192

/* ---- checking ---- */

typedef struct part {
    const weft_checking *checking;
    char path[MAX_PATH]; /* for people: automation.rules[0].trigger */
} part;

static int check_members(const part *self, const weft_shape *members, const weft_json *value);

static int refuse_part(const part *self, const weft_json *at, const char *wants) {
    weft__config_say(self->checking, at, true, "%s must be %s", self->path, wants);
    return -EBADMSG;
}

/* A string that C can hold. */
static int read_part_text(const part *self, const weft_json *value, const char **ret) {
    weft_bytes bytes;
    if (weft_typeof(value) != WEFT_STRING)
        return refuse_part(self, value, "a string");
    int r = weft_bytes_of(value, &bytes);
    if (r < 0)
        return r;
    if (memchr(bytes.data, '\0', bytes.len)) {
        weft__config_say(self->checking, value, true, "a NUL in %s", self->path);
        return -EBADMSG;
    }
    *ret = weft_str_of(value, NULL);
    return *ret ? 0 : -ENOMEM;
}

static int check_part_text(const part *self, const weft_shape *shape, const weft_json *value) {
    const char *text;
    char wants[WEFT_KEY_TEXT];
    bool chosen = weft__choice(&shape->choices, 0).len;
    if (chosen)
        weft__choices_text(&shape->choices, wants);
    if (chosen && weft_typeof(value) != WEFT_STRING)
        return refuse_part(self, value, wants);
    int r = read_part_text(self, value, &text);
    if (r < 0)
        return r;
    if (chosen && !weft__is_choice(&shape->choices, text))
        return refuse_part(self, value, wants);
    if (*text)
        return 0;
    weft__config_say(self->checking, value, true, "an empty string in %s", self->path);
    return -EBADMSG;
}

static int check_number(const part *self, const weft_shape *shape, const weft_json *value) {
    char wants[WEFT_KEY_TEXT];
    int64_t number = weft_int_of(value, INT64_MIN);
    if (weft_typeof(value) == WEFT_NUMBER && number >= shape->min && number <= shape->max)
        return 0;
    snprintf(wants, sizeof wants, "a whole number from %lld to %lld", (long long) shape->min, (long long) shape->max);
    return refuse_part(self, value, wants);
}

static int check_variable(const part *self, const weft_json *name) {
    const char *text;
    int r = read_part_text(self, name, &text);
    if (r < 0 || (*text && !strchr(text, '=')))
        return r;
    weft__config_say(self->checking, name, true, "\"%s\" is not a valid name for a variable in %s", text, self->path);
    return -EBADMSG;
}

/* Strings in an array, or as the members of an object. An empty one is fine: arguments and variables can be. */
static int check_strings(const part *self, const weft_shape *shape, const weft_json *value) {
    size_t count = 0;
    int result = 0;
    bool object = shape->kind == WEFT_SHAPE_env;
    if (weft_typeof(value) != (object ? WEFT_OBJECT : WEFT_ARRAY))
        return refuse_part(self, value, object ? "an object of strings" : "an array of strings");
    for (weft_iter it = weft_iterate(value); weft_next(&it); count++) {
        const char *text;
        int r = read_part_text(self, &it.value, &text);
        if (r >= 0 && object)
            r = check_variable(self, &it.name);
        if (r == -ENOMEM)
            return r;
        result = r < 0 ? r : result;
    }
    if (count < (size_t) shape->min)
        return refuse_part(self, value, "an array with at least one string");
    if (count <= WEFT_MAX_TEXTS)
        return result;
    weft__config_say(self->checking, value, true, "%s has more than %d items", self->path, WEFT_MAX_TEXTS);
    return -EBADMSG;
}

static int check_objects(const part *self, const weft_shape *shape, const weft_json *value) {
    size_t count = 0;
    int result = 0;
    if (weft_typeof(value) != WEFT_ARRAY)
        return refuse_part(self, value, "an array of objects");
    for (weft_iter it = weft_iterate(value); weft_next(&it); count++) {
        part item = {.checking = self->checking};
        snprintf(item.path, sizeof item.path, "%.*s[%zu]", MAX_PATH - 24, self->path, count);
        int r = check_members(&item, shape->members, &it.value);
        if (r == -ENOMEM)
            return r;
        result = r < 0 ? r : result;
    }
    return result;
}

static int check_part(const part *self, const weft_shape *shape, const weft_json *value) {
    switch (shape->kind) {
    case WEFT_SHAPE_text:
        return check_part_text(self, shape, value);
    case WEFT_SHAPE_flag:
        return weft_typeof(value) == WEFT_BOOL ? 0 : refuse_part(self, value, "true or false");
    case WEFT_SHAPE_number:
        return check_number(self, shape, value);
    case WEFT_SHAPE_texts:
    case WEFT_SHAPE_env:
        return check_strings(self, shape, value);
    case WEFT_SHAPE_object:
        return check_members(self, shape->members, value);
    case WEFT_SHAPE_list:
        return check_objects(self, shape, value);
    default:
        return 0;
    }
}

static void warn_unknown_member(const part *self, const weft_shape *members, const weft_json *name) {
    weft_suggestion suggestion = {.typed = weft_str_of(name, "")};
    for (const weft_shape *shape = members; shape->name; shape++)
        weft__suggest(&suggestion, shape->name);
    const char *best = suggestion.best;
    weft__config_say(self->checking, name, false, "unknown member \"%s\" in %s%s%s%s", suggestion.typed, self->path,
                     best ? "; did you mean \"" : "", best ? best : "", best ? "\"?" : "");
}

static const weft_shape *find_shape(const weft_shape *members, const weft_iter *it) {
    for (const weft_shape *shape = members; shape->name; shape++)
        if (weft_name_is(it, shape->name))
            return shape;
    return NULL;
}

static int check_member(const part *self, const weft_shape *members, const weft_iter *it) {
    const weft_shape *shape = find_shape(members, it);
    part member = {.checking = self->checking};
    if (!shape) {
        warn_unknown_member(self, members, &it->name);
        return 0;
    }
    snprintf(member.path, sizeof member.path, "%.*s.%s", MAX_PATH - 24, self->path, shape->name);
    return check_part(&member, shape, &it->value);
}

static int check_members(const part *self, const weft_shape *members, const weft_json *value) {
    int result = 0;
    if (weft_typeof(value) != WEFT_OBJECT)
        return refuse_part(self, value, "an object");
    for (weft_iter it = weft_iterate(value); weft_next(&it);) {
        int r = check_member(self, members, &it);
        if (r == -ENOMEM)
            return r;
        result = r < 0 ? r : result;
    }
    for (const weft_shape *shape = members; shape->name; shape++) {
        if (!shape->must || weft_get(value, shape->name).text)
            continue;
        weft__config_say(self->checking, value, true, "%s has no \"%s\"", self->path, shape->name);
        result = -EBADMSG;
    }
    return result;
}

static int check_item(const weft_checking *checking, const weft_key *key, const weft_iter *it, size_t index) {
    part item = {.checking = checking};
    const char *name = NULL;
    if (key->kind == WEFT_KEY_named && !(name = weft_str_of(&it->name, NULL)))
        return -ENOMEM;
    if (name)
        snprintf(item.path, sizeof item.path, "%s.%s", key->path, name);
    else
        snprintf(item.path, sizeof item.path, "%s[%zu]", key->path, index);
    int r = check_members(&item, key->shape, &it->value);
    return r < 0 || !key->check ? r : key->check(checking, item.path, name, &it->name, &it->value);
}

int weft__config_check_shape(const weft_checking *checking, const weft_key *key, const weft_json *value) {
    size_t count = 0;
    int result = 0;
    char wants[WEFT_KEY_TEXT];
    weft__key_wants(key, wants);
    if (weft_typeof(value) != (key->kind == WEFT_KEY_named ? WEFT_OBJECT : WEFT_ARRAY)) {
        weft__config_say(checking, value, true, "%s must be %s", key->path, wants);
        return -EBADMSG;
    }
    for (weft_iter it = weft_iterate(value); weft_next(&it); count++) {
        int r = check_item(checking, key, &it, count);
        if (r == -ENOMEM)
            return r;
        result = r < 0 ? r : result;
    }
    if (count <= WEFT_MAX_ITEMS)
        return result;
    weft__config_say(checking, value, true, "%s has more than %d items", key->path, WEFT_MAX_ITEMS);
    return -EBADMSG;
}

/* ---- command lines by name ---- */

static int check_argv(const weft_checking *checking, const weft_key *key, const weft_iter *it) {
    static const weft_shape argv = {.kind = WEFT_SHAPE_texts, .min = 1};
    part item = {.checking = checking};
    const char *name = weft_str_of(&it->name, NULL), *program;
    weft_json first = weft_at(&it->value, 0);
    if (!name)
        return -ENOMEM;
    snprintf(item.path, sizeof item.path, "%s.%.100s", key->path, name);
    int r = check_part(&item, &argv, &it->value);
    if (r >= 0)
        r = read_part_text(&item, &first, &program);
    return r < 0 || *program ? r : refuse_part(&item, &first, "an array that begins with the name of a program");
}

int weft__config_check_argvs(const weft_checking *checking, const weft_key *key, const weft_json *value) {
    part whole = {.checking = checking};
    size_t count = 0;
    int result = 0;
    snprintf(whole.path, sizeof whole.path, "%s", key->path);
    if (weft_typeof(value) != WEFT_OBJECT)
        return refuse_part(&whole, value, "an object of arrays of strings");
    for (weft_iter it = weft_iterate(value); weft_next(&it); count++) {
        int r = check_argv(checking, key, &it);
        if (r == -ENOMEM)
            return r;
        result = r < 0 ? r : result;
    }
    if (count <= WEFT_MAX_ITEMS)
        return result;
    weft__config_say(checking, value, true, "%s has more than %d items", key->path, WEFT_MAX_ITEMS);
    return -EBADMSG;
}

/* ---- the JSON Schema ---- */

static int put_shape_text(weft_buf *out, const weft_alloc *alloc, const char *text) {
    return weft__write_raw(out, alloc, text, strlen(text));
}

/* All but what lies deeper. */
static int put_simple(weft_buf *out, const weft_alloc *alloc, const weft_shape *shape) {
    static const char *const types[] = {
        [WEFT_SHAPE_text] = "string", [WEFT_SHAPE_flag] = "boolean", [WEFT_SHAPE_number] = "integer",
        [WEFT_SHAPE_texts] = "array", [WEFT_SHAPE_env] = "object",   [WEFT_SHAPE_object] = "object",
        [WEFT_SHAPE_list] = "array",  [WEFT_SHAPE_any] = NULL,
    };
    weft_val choices[WEFT_MAX_CHOICES];
    size_t count = weft__choices_values(&shape->choices, choices);
    bool number = shape->kind == WEFT_SHAPE_number, texts = shape->kind == WEFT_SHAPE_texts;
    bool env = shape->kind == WEFT_SHAPE_env;
    weft_val string = WEFT_OBJ({"type", weft_str("string")});
    const char *type = types[shape->kind];
    weft_val schema = WEFT_OBJ(
        {"description", weft_str(shape->help)}, {"type", weft_str_or_none(type)},
        {"enum", count ? weft_arr(choices, count) : weft_none()},
        {"minLength", shape->kind == WEFT_SHAPE_text && !count ? weft_int(1) : weft_none()},
        {"minimum", number ? weft_int(shape->min) : weft_none()}, {"maximum", number ? weft_int(shape->max) : weft_none()},
        {"items", texts ? string : weft_none()}, {"minItems", texts && shape->min ? weft_int(shape->min) : weft_none()},
        {"maxItems", texts ? weft_int(WEFT_MAX_TEXTS) : weft_none()}, {"additionalProperties", env ? string : weft_none()},
        {"maxProperties", env ? weft_int(WEFT_MAX_TEXTS) : weft_none()});
    return weft__write_val(out, alloc, &schema);
}

/* An object or an array of them: the description, then the members. */
static int put_deep(weft_buf *out, const weft_alloc *alloc, const weft_shape *shape) {
    bool list = shape->kind == WEFT_SHAPE_list;
    int r = put_shape_text(out, alloc, "{\"description\":");
    if (r >= 0)
        r = weft__write_str(out, alloc, shape->help, strlen(shape->help));
    if (r >= 0)
        r = put_shape_text(out, alloc, list ? ",\"type\":\"array\",\"items\":{" : ",");
    if (r >= 0)
        r = weft__config_put_shape(out, alloc, shape->members);
    return r < 0 ? r : put_shape_text(out, alloc, list ? "}}" : "}");
}

static int put_required(weft_buf *out, const weft_alloc *alloc, const weft_shape *members) {
    weft_val names[16];
    size_t count = 0;
    for (const weft_shape *shape = members; shape->name && count < 16; shape++)
        if (shape->must)
            names[count++] = weft_str(shape->name);
    if (count == 0)
        return 0;
    weft_val list = weft_arr(names, count);
    int r = put_shape_text(out, alloc, ",\"required\":");
    return r < 0 ? r : weft__write_val(out, alloc, &list);
}

int weft__config_put_shape(weft_buf *out, const weft_alloc *alloc, const weft_shape *members) {
    int r = put_shape_text(out, alloc, "\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (const weft_shape *shape = members; r >= 0 && shape->name; shape++) {
        bool deep = shape->kind == WEFT_SHAPE_object || shape->kind == WEFT_SHAPE_list;
        if (shape != members)
            r = put_shape_text(out, alloc, ",");
        if (r >= 0)
            r = weft__write_str(out, alloc, shape->name, strlen(shape->name));
        if (r >= 0)
            r = put_shape_text(out, alloc, ":");
        if (r >= 0)
            r = deep ? put_deep(out, alloc, shape) : put_simple(out, alloc, shape);
    }
    if (r >= 0)
        r = put_shape_text(out, alloc, "}");
    return r < 0 ? r : put_required(out, alloc, members);
}
