/* JSON in and out, without a tree.
 *
 * Coming in, a weft_json is a place in a text that has already been validated (RFC 8259, UTF-8): looking something up
 * walks the text, nothing is copied until a string is asked for as a C string. Numbers keep their text.
 *
 * Going out, a weft_val is a description of a value, built on the stack and written once:
 *
 *     weft_notify(peer, "progress", WEFT_OBJ({ "done", weft_int(3) }, { "of", weft_int(10) }));
 *
 * It borrows what it points to, so it must not outlive the block that built it. */
#ifndef WEFT_JSON_H
#define WEFT_JSON_H

#include <string.h>

#include <weft/base.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

/* ---- reading ---- */

typedef enum weft_type {
    WEFT_ABSENT, /* no such member or item */
    WEFT_NULL,
    WEFT_BOOL,
    WEFT_NUMBER,
    WEFT_STRING,
    WEFT_ARRAY,
    WEFT_OBJECT,
} weft_type;

/* One value in a validated text. Small, copied freely, borrowed from its document. All zero means absent. */
typedef struct weft_json {
    const char *text; /* its first byte; NULL when absent */
    size_t len;
    struct weft_doc *doc; /* where decoded strings go; may be NULL, then weft_str_of() has nowhere to put one */
} weft_json;

/* A text of its own, with the memory for what is read from it. */
typedef struct weft_doc weft_doc;

/* Check a whole text and keep a copy of it. -EBADMSG: not JSON, or nested deeper than 128. */
WEFT_API int weft_doc_parse(const char *text, size_t len, const weft_alloc *alloc, weft_doc **ret);
/* Keep a copy of one value beyond the callback it came in. */
WEFT_API int weft_doc_keep(const weft_json *value, const weft_alloc *alloc, weft_doc **ret);
WEFT_API const weft_json *weft_doc_root(const weft_doc *doc);
WEFT_API weft_doc *weft_doc_free(weft_doc *doc);
WEFT_API void weft_doc_freep(weft_doc **doc);

WEFT_API weft_type weft_typeof(const weft_json *value);

/* A member by name (the last one when the name is there twice) or an item by index; absent if there is none or if the
 * value is of another type. */
WEFT_API weft_json weft_get(const weft_json *object, const char *name);
WEFT_API weft_json weft_at(const weft_json *array, size_t index);
/* RFC 6901, for example "/params/0/name". */
WEFT_API weft_json weft_pointer(const weft_json *value, const char *pointer);

/* The value itself, or the fallback when it is absent or of another type. A string is NUL-terminated, lives as long as its
 * document, and is the fallback too when it contains a NUL (ask weft_bytes_of() then) or memory is short. An integer also
 * reads 1.0 and 1e3; outside int64 is the fallback, and for weft_num_of() so is a number beyond the largest double. */
WEFT_API const char *weft_str_of(const weft_json *value, const char *fallback);
WEFT_API int64_t weft_int_of(const weft_json *value, int64_t fallback);
WEFT_API double weft_num_of(const weft_json *value, double fallback);
WEFT_API bool weft_bool_of(const weft_json *value, bool fallback);
/* The same for a member of an object. */
WEFT_API const char *weft_get_str(const weft_json *object, const char *name, const char *fallback);
WEFT_API int64_t weft_get_int(const weft_json *object, const char *name, int64_t fallback);
WEFT_API double weft_get_num(const weft_json *object, const char *name, double fallback);
WEFT_API bool weft_get_bool(const weft_json *object, const char *name, bool fallback);
/* The decoded bytes of a string, NULs included. -EINVAL: not a string; -ENOMEM. */
WEFT_API int weft_bytes_of(const weft_json *value, weft_bytes *ret);

/* Walk an array or object, in the order of the text, duplicates included:
 *     for (weft_iter it = weft_iterate(params); weft_next(&it);)  use(&it.name, &it.value);
 * name is the raw string of the member (absent in an array); weft_name_is() compares it, decoding escapes. */
typedef struct weft_iter {
    weft_json name;
    weft_json value;
    const char *next_; /* ours */
} weft_iter;
WEFT_API weft_iter weft_iterate(const weft_json *container);
WEFT_API bool weft_next(weft_iter *it);
WEFT_API bool weft_name_is(const weft_iter *it, const char *name);
WEFT_API size_t weft_count(const weft_json *container);

/* ---- writing ---- */

typedef struct weft_val weft_val;
typedef struct weft_member weft_member;

enum weft_val_kind {
    WEFT_VAL_NONE, /* a member of this kind is left out; elsewhere it writes null */
    WEFT_VAL_NULL,
    WEFT_VAL_BOOL,
    WEFT_VAL_INT,
    WEFT_VAL_UINT,
    WEFT_VAL_NUM,
    WEFT_VAL_STR,
    WEFT_VAL_RAW,
    WEFT_VAL_ARR,
    WEFT_VAL_OBJ,
};
/* Two words, so that it travels in registers; a text or list of over 4 GiB is no value. */
struct weft_val {
    enum weft_val_kind kind;
    uint32_t len;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        const char *s;
        const weft_val *items;
        const weft_member *members;
    } as;
};
struct weft_member {
    const char *name;
    weft_val value;
};

/* Inline, because a value is then built where it is used. */
static inline weft_val weft_none(void) {
    weft_val value;
    value.kind = WEFT_VAL_NONE;
    value.len = 0;
    value.as.u = 0;
    return value;
}
static inline weft_val weft_null(void) {
    weft_val value = weft_none();
    value.kind = WEFT_VAL_NULL;
    return value;
}
static inline weft_val weft_bool(bool b) {
    weft_val value = weft_none();
    value.kind = WEFT_VAL_BOOL;
    value.as.b = b;
    return value;
}
static inline weft_val weft_int(int64_t i) {
    weft_val value = weft_none();
    value.kind = WEFT_VAL_INT;
    value.as.i = i;
    return value;
}
static inline weft_val weft_uint(uint64_t u) {
    weft_val value = weft_none();
    value.kind = WEFT_VAL_UINT;
    value.as.u = u;
    return value;
}
/* Shortest text that reads back the same (as ECMAScript prints it); NaN and infinities become null. */
static inline weft_val weft_num(double d) {
    weft_val value = weft_none();
    value.kind = WEFT_VAL_NUM;
    value.as.d = d;
    return value;
}
static inline weft_val weft_strn(const char *s, size_t len) {
    weft_val value;
    value.kind = s ? WEFT_VAL_STR : WEFT_VAL_NULL;
    value.len = (uint32_t) len;
    value.as.s = s;
    return value;
}
/* A C string; NULL becomes null. Invalid UTF-8 is written as U+FFFD, so what goes out is always valid. */
static inline weft_val weft_str(const char *s) {
    return weft_strn(s, s ? strlen(s) : 0);
}
/* The same, but with NULL the member is left out. */
static inline weft_val weft_str_or_none(const char *s) {
    return s ? weft_str(s) : weft_none();
}
/* A JSON text that the caller vouches for; NULL becomes null, and an empty one is -EINVAL when it is written. */
static inline weft_val weft_raw(const char *json, size_t len) {
    weft_val value;
    value.kind = json ? WEFT_VAL_RAW : WEFT_VAL_NULL;
    value.len = (uint32_t) len;
    value.as.s = json;
    return value;
}
/* A value that came in, byte for byte but for line ends, which are written as blanks; absent becomes null. */
static inline weft_val weft_copy(const weft_json *json) {
    return json && json->text ? weft_raw(json->text, json->len) : weft_null();
}
static inline weft_val weft_arr(const weft_val *items, size_t count) {
    weft_val value;
    value.kind = WEFT_VAL_ARR;
    value.len = (uint32_t) count;
    value.as.items = items;
    return value;
}
static inline weft_val weft_obj(const weft_member *members, size_t count) {
    weft_val value;
    value.kind = WEFT_VAL_OBJ;
    value.len = (uint32_t) count;
    value.as.members = members;
    return value;
}

/* Built in place. In C it lives as long as the block around it, in C++ (which has no compound literals) as long as the
 * expression around it: write it where it is used. */
#ifdef __cplusplus
extern "C++" {
static inline weft_val weft_obj(std::initializer_list<weft_member> members) {
    return weft_obj(members.begin(), members.size());
}
static inline weft_val weft_arr(std::initializer_list<weft_val> items) {
    return weft_arr(items.begin(), items.size());
}
}
#define WEFT_OBJ(...) weft_obj(std::initializer_list<weft_member>{__VA_ARGS__})
#define WEFT_ARR(...) weft_arr(std::initializer_list<weft_val>{__VA_ARGS__})
#else
#define WEFT_OBJ(...)                                                                                                       \
    weft_obj((const weft_member[]){__VA_ARGS__}, sizeof((const weft_member[]){__VA_ARGS__}) / sizeof(weft_member))
#define WEFT_ARR(...) weft_arr((const weft_val[]){__VA_ARGS__}, sizeof((const weft_val[]){__VA_ARGS__}) / sizeof(weft_val))
#endif

/* A value as text, for programs that write JSON themselves. Owned: free it with weft_text_free(). Here and below the text
 * ends in NUL, and ret_len may be NULL. -EINVAL, here and wherever a value is written: a name or a list is NULL, a raw text
 * is empty, or the value is nested deeper than 128. */
WEFT_API int weft_to_text(weft_val value, const weft_alloc *alloc, char **ret, size_t *ret_len);
/* RFC 8785 canonical form: members sorted by UTF-16 code units, numbers as ECMAScript prints them, the last of duplicate
 * members. -EBADMSG when the text has a lone surrogate or a number beyond double, which the form cannot express. */
WEFT_API int weft_to_canonical(const weft_json *value, const weft_alloc *alloc, char **ret, size_t *ret_len);
WEFT_API char *weft_text_free(char *text, const weft_alloc *alloc);

/* A value whose size is only known while it is made:
 *
 *     weft_builder_array(b, NULL);
 *     for (...)
 *         weft_builder_add(b, NULL, WEFT_OBJ({"id", weft_int(row->id)}));
 *     weft_builder_end(b);
 *     r = weft_builder_val(b, &list);
 *
 * What goes wrong on the way is told once, at the end. In an object everything has a name, elsewhere it is NULL. */
typedef struct weft_builder weft_builder;
WEFT_API int weft_builder_new(const weft_alloc *alloc, weft_builder **ret);
WEFT_API weft_builder *weft_builder_free(weft_builder *builder);
WEFT_API void weft_builder_freep(weft_builder **builder);
WEFT_API void weft_builder_object(weft_builder *builder, const char *name);
WEFT_API void weft_builder_array(weft_builder *builder, const char *name);
/* End the object or array that was begun last. */
WEFT_API void weft_builder_end(weft_builder *builder);
/* One value, copied; weft_none() is left out. */
WEFT_API void weft_builder_add(weft_builder *builder, const char *name, weft_val value);
/* The value, borrowed until the builder is used again. -EINVAL: it is not whole, or a name is missing or too many;
 * -EMSGSIZE: over 64 MiB, which no message can carry; -ENOMEM. */
WEFT_API int weft_builder_val(weft_builder *builder, weft_val *ret);
/* Forget what was built and what went wrong, for the next value. */
WEFT_API void weft_builder_reset(weft_builder *builder);

#ifdef __cplusplus
}
#endif
#endif
