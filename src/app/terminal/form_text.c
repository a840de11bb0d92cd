/* From a form to lines, and from lines to what the agent gets. What is right is for form.c to say, here and in the hub. */
#include "form_text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "write.h"

weft_json weft__form_of(const weft_json *question) {
    weft_json form = weft_pointer(question, "/detail/requestedSchema");
    return weft_typeof(&form) == WEFT_OBJECT ? form : (weft_json){0};
}

/* ---- showing ---- */

/* JSON has escapes of its own, and no colours where it is a part of a sentence. */
static void put_json(const weft_screen *screen, const weft_json *value) {
    const weft_screen plain = {.file = screen->file, .terminal = screen->terminal};
    weft_bytes text;
    if (weft_bytes_of(value, &text) >= 0)
        weft__put_text(screen, text.data, text.len);
    else if (value->text)
        weft__put_compact(&plain, value);
}

static bool put_part(const weft_screen *screen, const char *before, const weft_json *value) {
    if (!value->text || weft_typeof(value) == WEFT_NULL)
        return false;
    fputs(before, screen->file);
    put_json(screen, value);
    return true;
}

static void put_limits(const weft_screen *screen, const weft_json *field) {
    static const struct {
        const char *name, *before;
    } rows[] = {
        {"minimum", ", at least "},
        {"maximum", ", at most "},
        {"minLength", ", characters at least "},
        {"maxLength", ", characters at most "},
        {"minItems", ", choices at least "},
        {"maxItems", ", choices at most "},
        {"format", ", "},
        {"pattern", ", like "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_json value = weft_get(field, rows[i].name);
        put_part(screen, rows[i].before, &value);
    }
}

static void put_choices(const weft_screen *screen, const weft_json *field) {
    weft_json value, title;
    for (size_t i = 0; weft__form_choice(field, i, &value, &title); i++) {
        fprintf(screen->file, "      %zu) ", i + 1);
        put_json(screen, &value);
        put_part(screen, "  ", &title);
        fputc('\n', screen->file);
    }
}

static void put_field(const weft_screen *screen, const weft_json *schema, const weft_iter *at) {
    static const char *const kinds[] = {
        [WEFT_FORM_TEXT] = "text",         [WEFT_FORM_NUMBER] = "number", [WEFT_FORM_INTEGER] = "whole number",
        [WEFT_FORM_BOOLEAN] = "yes or no", [WEFT_FORM_CHOICE] = "one of", [WEFT_FORM_SEVERAL] = "some of",
        [WEFT_FORM_UNKNOWN] = "?"};
    weft_json title = weft_get(&at->value, "title"), about = weft_get(&at->value, "description"),
              usual = weft_get(&at->value, "default");
    fputs("  ", screen->file);
    weft__ink(screen, WEFT_INK_BOLD);
    put_json(screen, &at->name);
    weft__plain(screen);
    put_part(screen, ": ", &title);
    fprintf(screen->file, "  (%s%s", kinds[weft__form_type(&at->value)],
            weft__form_requires(schema, &at->name) ? ", needed" : "");
    put_limits(screen, &at->value);
    put_part(screen, ", else ", &usual);
    fputs(")\n", screen->file);
    if (put_part(screen, "      ", &about))
        fputc('\n', screen->file);
    put_choices(screen, &at->value);
}

void weft__form_put(const weft_screen *screen, const weft_json *schema) {
    weft_json fields = weft_get(schema, "properties");
    for (weft_iter it = weft_iterate(&fields); weft_typeof(&fields) == WEFT_OBJECT && weft_next(&it);)
        put_field(screen, schema, &it);
}

/* ---- what was typed ---- */

static bool is_typed(const weft_json *text, const char *typed, size_t len) {
    weft_bytes is;
    return weft_bytes_of(text, &is) >= 0 && is.len == len && strncasecmp(is.data, typed, len) == 0;
}

/* By its number, as shown, its value or its title. */
static bool find_choice(const weft_json *field, const char *typed, size_t len, weft_json *ret) {
    weft_json value, title;
    char digits[24];
    for (size_t i = 0; weft__form_choice(field, i, &value, &title); i++) {
        snprintf(digits, sizeof digits, "%zu", i + 1);
        bool number = strlen(digits) == len && memcmp(digits, typed, len) == 0;
        if (number || is_typed(&value, typed, len) || is_typed(&title, typed, len)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static int put_val(weft_buf *out, weft_val value) {
    return weft__write_val(out, NULL, &value);
}

static int typed_choice(const weft_json *field, const char *typed, size_t len, weft_buf *out, char why[WEFT_FORM_WHY]) {
    weft_json choice;
    if (find_choice(field, typed, len, &choice))
        return put_val(out, weft_copy(&choice));
    snprintf(why, WEFT_FORM_WHY, "must be one of the choices, by its number or as it is written");
    return -EINVAL;
}

static int typed_several(const weft_json *field, const char *typed, weft_buf *out, char why[WEFT_FORM_WHY]) {
    int r = weft__buf_put(out, NULL, "[", 1);
    for (bool first = true; r >= 0 && *typed; first = false) {
        size_t len = strcspn(typed, ","), kept = len;
        while (kept && isspace((unsigned char) typed[kept - 1]))
            kept--;
        r = first ? 0 : weft__buf_put(out, NULL, ",", 1);
        if (r >= 0)
            r = typed_choice(field, typed, kept, out, why);
        typed += len + (typed[len] == ',');
        typed += strspn(typed, " \t");
    }
    return r < 0 ? r : weft__buf_put(out, NULL, "]", 1);
}

static int typed_flag(const char *typed, weft_buf *out, char why[WEFT_FORM_WHY]) {
    static const char *const yes[] = {"yes", "y", "true", "1"}, *const no[] = {"no", "n", "false", "0"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        if (strcasecmp(typed, yes[i]) == 0 || strcasecmp(typed, no[i]) == 0)
            return put_val(out, weft_bool(strcasecmp(typed, yes[i]) == 0));
    snprintf(why, WEFT_FORM_WHY, "must be yes or no");
    return -EINVAL;
}

static int typed_number(const char *typed, weft_buf *out, char why[WEFT_FORM_WHY]) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(typed, strlen(typed), NULL, &doc);
    if (r == -ENOMEM)
        return r;
    bool number = r >= 0 && weft_typeof(weft_doc_root(doc)) == WEFT_NUMBER;
    snprintf(why, WEFT_FORM_WHY, "must be a number");
    r = number ? put_val(out, weft_copy(weft_doc_root(doc))) : -EINVAL;
    weft_doc_free(doc);
    return r;
}

static int typed_value(const weft_json *field, const char *typed, weft_buf *out, char why[WEFT_FORM_WHY]) {
    switch (weft__form_type(field)) {
    case WEFT_FORM_NUMBER:
    case WEFT_FORM_INTEGER:
        return typed_number(typed, out, why);
    case WEFT_FORM_BOOLEAN:
        return typed_flag(typed, out, why);
    case WEFT_FORM_CHOICE:
        return typed_choice(field, typed, strlen(typed), out, why);
    case WEFT_FORM_SEVERAL:
        return typed_several(field, typed, out, why);
    case WEFT_FORM_TEXT:
    case WEFT_FORM_UNKNOWN:
        break;
    }
    return put_val(out, weft_str(strcmp(typed, "\"\"") == 0 ? "" : typed));
}

int weft__form_typed(const weft_json *field, const char *typed, weft_buf *out, char why[WEFT_FORM_WHY]) {
    size_t before = weft__buf_len(out);
    weft_doc *doc = NULL;
    int r = typed_value(field, typed, out, why);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(out) + before, weft__buf_len(out) - before, NULL, &doc);
    if (r >= 0)
        r = weft__form_check_value(field, weft_doc_root(doc), why);
    weft_doc_free(doc);
    if (r < 0)
        out->end -= weft__buf_len(out) - before;
    return r < 0 ? r : 0;
}

/* ---- filling in ---- */

int weft__form_begin(weft_form_filling *filling, const weft_json *schema) {
    *filling = (weft_form_filling){.schema = *schema, .fields = weft_get(schema, "properties")};
    filling->at = weft_iterate(&filling->fields);
    int r = weft__buf_put(&filling->content, NULL, "{", 1);
    if (r < 0)
        return r;
    return weft_typeof(&filling->fields) == WEFT_OBJECT && weft_next(&filling->at);
}

void weft__form_prompt(const weft_form_filling *filling, const weft_screen *to) {
    const weft_screen screen = {.file = to->file, .terminal = true, .colour = to->colour, .exact = true};
    weft_json usual = weft_get(&filling->at.value, "default");
    bool has_usual = usual.text && weft_typeof(&usual) != WEFT_NULL;
    put_json(&screen, &filling->at.name);
    if (has_usual)
        put_part(&screen, " [", &usual);
    else if (!weft__form_requires(&filling->schema, &filling->at.name))
        fputs(" [leave out", screen.file);
    fputs(has_usual || !weft__form_requires(&filling->schema, &filling->at.name) ? "]: " : ": ", screen.file);
    fflush(screen.file);
}

static int put_filled(weft_form_filling *filling, const weft_iter *at, const char *typed, char why[WEFT_FORM_WHY]) {
    size_t before = weft__buf_len(&filling->content);
    int r = filling->any ? weft__buf_put(&filling->content, NULL, ",", 1) : 0;
    if (r >= 0)
        r = put_val(&filling->content, weft_copy(&at->name));
    if (r >= 0)
        r = weft__buf_put(&filling->content, NULL, ":", 1);
    if (r >= 0)
        r = weft__form_typed(&at->value, typed, &filling->content, why);
    if (r < 0)
        filling->content.end -= weft__buf_len(&filling->content) - before;
    else
        filling->any = true;
    return r;
}

/* An empty line leaves it to the default, or leaves it out. */
static int take_typed(weft_form_filling *filling, const char *typed, char why[WEFT_FORM_WHY]) {
    weft_json usual = weft_get(&filling->at.value, "default");
    bool may_be_empty =
        (usual.text && weft_typeof(&usual) != WEFT_NULL) || !weft__form_requires(&filling->schema, &filling->at.name);
    if (*typed)
        return put_filled(filling, &filling->at, typed, why);
    snprintf(why, WEFT_FORM_WHY, "is needed");
    return may_be_empty ? 0 : -EINVAL;
}

int weft__form_line(weft_form_filling *filling, const char *line, char why[WEFT_FORM_WHY]) {
    int r = take_typed(filling, line, why);
    if (r < 0)
        return r;
    return weft_next(&filling->at) ? 1 : weft__form_close(filling);
}

int weft__form_put_named(weft_form_filling *filling, const char *pair, char why[WEFT_FORM_WHY]) {
    const char *equals = strchr(pair, '=');
    size_t len = equals ? (size_t) (equals - pair) : strlen(pair);
    for (weft_iter it = weft_iterate(&filling->fields);
         equals && weft_typeof(&filling->fields) == WEFT_OBJECT && weft_next(&it);) {
        weft_bytes name;
        if (weft_bytes_of(&it.name, &name) >= 0 && name.len == len && memcmp(name.data, pair, len) == 0)
            return put_filled(filling, &it, equals + 1, why);
    }
    return -ENOENT;
}

int weft__form_close(weft_form_filling *filling) {
    return weft__buf_put(&filling->content, NULL, "}", 1);
}

void weft__form_done(weft_form_filling *filling) {
    weft__buf_done(&filling->content, NULL);
    *filling = (weft_form_filling){0};
}
