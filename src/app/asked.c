/* Showing a question. The detail is what came from the agent: for a permission, the tool call of the Agent Client Protocol.
 */
#include "asked.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "diff.h"
#include "talk.h"
#include "when.h"

/* Nobody reads more than this before saying yes; --json has all of it. */
#define MAX_LINES 200

/* ---- texts ---- */

static void put_lines(const weft_screen *screen, const char *text) {
    size_t put = 0;
    for (; *text && put < MAX_LINES; put++) {
        size_t len = strcspn(text, "\n");
        fputs("    ", screen->file);
        weft__put_prose(screen, text, len);
        fputc('\n', screen->file);
        text += len + (text[len] == '\n');
    }
    if (*text)
        fputs("    … and more; --json has all of it\n", screen->file);
}

static void put_diff(const weft_screen *screen, const weft_json *content) {
    const char *path = weft_get_str(content, "path", "");
    weft_json before = weft_get(content, "oldText");
    fputs("  ", screen->file);
    weft__ink(screen, WEFT_INK_BOLD);
    weft__put_text(screen, path, strlen(path));
    weft__plain(screen);
    fputs(weft_typeof(&before) == WEFT_STRING ? "\n" : " (new)\n", screen->file);
    weft__diff_put(screen, weft_str_of(&before, ""), weft_get_str(content, "newText", ""), MAX_LINES);
}

/* ---- the detail ---- */

static void put_part(const weft_screen *screen, const weft_json *part) {
    const char *type = weft_get_str(part, "type", "");
    weft_json text = weft_pointer(part, "/content/text");
    if (strcmp(type, "diff") == 0)
        put_diff(screen, part);
    else if (weft_typeof(&text) == WEFT_STRING)
        put_lines(screen, weft_str_of(&text, ""));
}

/* Strings as they are, the rest as JSON: a command line is easier to read without its quotes escaped. */
static void put_members(const weft_screen *screen, const weft_json *object) {
    for (weft_iter it = weft_iterate(object); weft_next(&it);) {
        const char *name = weft_str_of(&it.name, ""), *text = weft_str_of(&it.value, NULL);
        fputs("  ", screen->file);
        weft__put_text(screen, name, strlen(name));
        fputs(": ", screen->file);
        if (text)
            weft__put_text(screen, text, strlen(text));
        else
            weft__put_compact(screen, &it.value);
        fputc('\n', screen->file);
    }
}

static void put_detail(const weft_screen *screen, const weft_json *detail) {
    weft_json call = weft_get(detail, "toolCall");
    if (weft_typeof(&call) != WEFT_OBJECT)
        call = *detail;
    weft_json content = weft_get(&call, "content"), input = weft_get(&call, "rawInput");
    bool known = weft_typeof(&content) == WEFT_ARRAY || weft_typeof(&input) == WEFT_OBJECT;
    if (weft_typeof(&input) == WEFT_OBJECT)
        put_members(screen, &input);
    for (weft_iter it = weft_iterate(&content); weft_next(&it);)
        put_part(screen, &it.value);
    if (!known)
        put_members(screen, &call);
}

/* ---- the whole ---- */

static void put_about(const weft_screen *screen, const weft_json *question) {
    const char *task = weft_get_str(question, "taskId", weft_get_str(question, "ruleId", ""));
    int64_t asked = weft__when_get(question, "createdAt"), until = weft__when_get(question, "expiresAt");
    char text[WEFT_WHEN_TEXT];
    weft__ink(screen, WEFT_INK_DIM);
    fputs("  ", screen->file);
    weft__put_text(screen, task, strlen(task));
    if (asked)
        fprintf(screen->file, "%s%s ago", *task ? ", " : "", weft__duration(text, weft__when_now() - asked));
    if (until)
        fprintf(screen->file, ", open for %s", weft__duration(text, until - weft__when_now()));
    if (weft_get_bool(question, "orphaned", false))
        fputs(", whoever asked is gone; the answer is kept for when it asks again", screen->file);
    weft__plain(screen);
    fputc('\n', screen->file);
}

void weft__asked_put(const weft_screen *screen, const weft_json *question) {
    const char *id = weft_get_str(question, "id", ""), *title = weft_get_str(question, "title", "");
    weft_json detail = weft_get(question, "detail"), options = weft_get(question, "options");
    size_t number = 0;
    weft__ink(screen, WEFT_INK_WARN);
    weft__put_text(screen, id, strlen(id));
    fputs(": ", screen->file);
    weft__plain(screen);
    weft__ink(screen, WEFT_INK_BOLD);
    weft__put_text(screen, title, strlen(title));
    weft__plain(screen);
    fputc('\n', screen->file);
    put_about(screen, question);
    put_detail(screen, &detail);
    for (weft_iter it = weft_iterate(&options); weft_next(&it);) {
        const char *name = weft_get_str(&it.value, "name", ""), *option = weft_get_str(&it.value, "id", "");
        fprintf(screen->file, "  %zu) ", ++number);
        weft__put_text(screen, name, strlen(name));
        weft__ink(screen, WEFT_INK_DIM);
        fputs("  ", screen->file);
        weft__put_text(screen, option, strlen(option));
        weft__plain(screen);
        fputc('\n', screen->file);
    }
}

/* ---- answers ---- */

static bool is_word(const char *text, size_t len, const char *word) {
    return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* The word for a kind: what is given once is given before what is given for good. */
static bool means(const char *text, size_t len, const char *kind) {
    if (is_word(text, len, kind))
        return true;
    if (is_word(text, len, "allow") || is_word(text, len, "yes") || is_word(text, len, "y"))
        return strncmp(kind, "allow", 5) == 0;
    if (is_word(text, len, "deny") || is_word(text, len, "no") || is_word(text, len, "n") || is_word(text, len, "reject"))
        return strncmp(kind, "reject", 6) == 0 || strncmp(kind, "deny", 4) == 0;
    return false;
}

static bool fits(const weft_json *option, size_t number, const char *answer, size_t len) {
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", number);
    return is_word(answer, len, digits) || is_word(answer, len, weft_get_str(option, "id", "")) ||
           is_word(answer, len, weft_get_str(option, "name", ""));
}

/* The option the whole answer names, which comes before what its first word may mean. */
static const char *named(const weft_json *options, const char *answer, size_t len) {
    size_t number = 0;
    for (weft_iter it = weft_iterate(options); weft_next(&it);)
        if (fits(&it.value, ++number, answer, len))
            return weft_get_str(&it.value, "id", NULL);
    return NULL;
}

static const char *meant(const weft_json *options, const char *answer, size_t len) {
    const char *any = NULL;
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        const char *kind = weft_get_str(&it.value, "kind", "");
        if (!means(answer, len, kind))
            continue;
        if (strstr(kind, "once"))
            return weft_get_str(&it.value, "id", NULL);
        any = any ? any : weft_get_str(&it.value, "id", NULL);
    }
    return any;
}

const char *weft__asked_option(const weft_json *question, const char *answer, const char **ret_text) {
    weft_json options = weft_get(question, "options");
    while (isspace((unsigned char) *answer))
        answer++;
    size_t whole = strlen(answer), first = strcspn(answer, " \t:,");
    while (whole && isspace((unsigned char) answer[whole - 1]))
        whole--;
    *ret_text = "";
    if (whole == 0)
        return NULL;
    const char *option = named(&options, answer, whole);
    if (option)
        return option;
    *ret_text = answer + first + strspn(answer + first, " \t:,");
    option = named(&options, answer, first);
    return option ? option : meant(&options, answer, first);
}
