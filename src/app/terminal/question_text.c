/* Showing a question. The detail is what came from the agent: for a permission, the tool call of the Agent Client Protocol.
 */
#include "question_text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "diff.h"
#include "form_text.h"
#include "option.h"
#include "terminal_status.h"
#include "time_text.h"

/* Nobody reads more than this before saying yes; --json has all of it. */
#define MAX_LINES 200

/* ---- texts ---- */

/* The mark before each line keeps what an agent wrote apart from what is ours. */
static void put_lines(const weft_screen *screen, weft_bytes text) {
    const char *at = text.data, *end = text.data + text.len;
    for (size_t put = 0; at < end; put++) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        size_t len = (size_t) ((stop ? stop : end) - at);
        if (put == MAX_LINES) {
            fputs("    … and more; --json has all of it\n", screen->file);
            return;
        }
        fputs("    | ", screen->file);
        weft__put_text(screen, at, len);
        fputc('\n', screen->file);
        at += len + (stop != NULL);
    }
}

/* A text with a NUL in it cannot be compared as lines, and is shown as it is. */
static bool has_no_nul(const weft_json *text) {
    weft_bytes bytes;
    return weft_bytes_of(text, &bytes) < 0 || !memchr(bytes.data, '\0', bytes.len);
}

static void put_whole(const weft_screen *screen, const char *what, const weft_json *text) {
    weft_bytes bytes;
    if (weft_bytes_of(text, &bytes) < 0)
        return;
    fprintf(screen->file, "    %s:\n", what);
    put_lines(screen, bytes);
}

/* A string of the agent's, in one line. */
static void put_json_text(const weft_screen *screen, const weft_json *text) {
    weft_bytes bytes;
    if (weft_bytes_of(text, &bytes) >= 0)
        weft__put_text(screen, bytes.data, bytes.len);
}

static void put_diff(const weft_screen *screen, const weft_json *content) {
    weft_json path = weft_get(content, "path");
    weft_json before = weft_get(content, "oldText"), after = weft_get(content, "newText");
    fputs("  ", screen->file);
    weft__ink(screen, WEFT_INK_BOLD);
    put_json_text(screen, &path);
    weft__plain(screen);
    fputs(weft_typeof(&before) == WEFT_STRING ? "\n" : " (new)\n", screen->file);
    if (!has_no_nul(&before) || !has_no_nul(&after)) {
        put_whole(screen, "before", &before);
        put_whole(screen, "after", &after);
        return;
    }
    weft__diff_put(screen, weft_str_of(&before, ""), weft_str_of(&after, ""), MAX_LINES);
}

/* ---- the detail ---- */

/* Strings as they are, the rest as JSON: a command line is easier to read without its quotes escaped. Several lines begin
 * below the name. */
static void put_value(const weft_screen *screen, const char *name, size_t len, const weft_json *value) {
    weft_screen json = *screen;
    weft_bytes text;
    json.exact = false; /* JSON has escapes of its own */
    fputs("  ", screen->file);
    weft__put_text(screen, name, len);
    fputs(": ", screen->file);
    if (weft_bytes_of(value, &text) < 0)
        weft__put_compact(&json, value);
    else if (!memchr(text.data, '\n', text.len))
        weft__put_text(screen, text.data, text.len);
    fputc('\n', screen->file);
    if (weft_typeof(value) == WEFT_STRING && memchr(text.data, '\n', text.len))
        put_lines(screen, text);
}

static void put_detail_members(const weft_screen *screen, const weft_json *object) {
    for (weft_iter it = weft_iterate(object); weft_next(&it);) {
        weft_bytes name;
        if (weft_bytes_of(&it.name, &name) >= 0)
            put_value(screen, name.data, name.len, &it.value);
    }
}

static void put_detail_part(const weft_screen *screen, const weft_json *part) {
    const char *type = weft_get_str(part, "type", "");
    weft_json text = weft_pointer(part, "/content/text");
    weft_bytes bytes;
    if (strcmp(type, "diff") == 0)
        put_diff(screen, part);
    else if (weft_bytes_of(&text, &bytes) >= 0)
        put_lines(screen, bytes);
    else
        put_value(screen, type, strlen(type), part);
}

static void put_detail(const weft_screen *screen, const weft_json *detail) {
    weft_json call = weft_get(detail, "toolCall");
    if (weft_typeof(&call) != WEFT_OBJECT)
        call = *detail;
    weft_json content = weft_get(&call, "content"), input = weft_get(&call, "rawInput");
    weft_json form = weft_get(detail, "requestedSchema"), url = weft_get(detail, "url");
    if (weft_typeof(&form) == WEFT_OBJECT) {
        weft__form_put(screen, &form);
        return;
    }
    if (weft_typeof(&url) == WEFT_STRING && weft_get(detail, "elicitationId").text) {
        put_value(screen, "page", 4, &url);
        return;
    }
    if (weft_get(detail, "authMethods").text) /* said in the title, and its ways are the options */
        return;
    bool known = weft_typeof(&content) == WEFT_ARRAY || input.text;
    if (weft_typeof(&input) == WEFT_OBJECT)
        put_detail_members(screen, &input);
    else if (input.text)
        put_value(screen, "input", 5, &input);
    for (weft_iter it = weft_iterate(&content); weft_next(&it);)
        put_detail_part(screen, &it.value);
    if (!known)
        put_detail_members(screen, &call);
}

/* ---- the whole ---- */

static void put_question_about(const weft_screen *screen, const weft_json *question) {
    const char *task = weft_get_str(question, "taskId", weft_get_str(question, "ruleId", ""));
    int64_t asked = weft__time_get(question, "createdAt"), until = weft__time_get(question, "expiresAt");
    char text[WEFT_TIME_TEXT];
    weft__ink(screen, WEFT_INK_DIM);
    fputs("  ", screen->file);
    weft__put_text(screen, task, strlen(task));
    if (asked)
        fprintf(screen->file, "%s%s ago", *task ? ", " : "", weft__duration(text, weft__time_now() - asked));
    if (until)
        fprintf(screen->file, ", open for %s", weft__duration(text, until - weft__time_now()));
    if (weft_get_bool(question, "orphaned", false))
        fputs(", the agent that asked has ended; the answer is kept until it asks again", screen->file);
    weft__plain(screen);
    fputc('\n', screen->file);
}

static void put_answer_option(const weft_screen *screen, size_t number, const weft_json *option) {
    weft_json name = weft_get(option, "name"), id = weft_get(option, "id");
    const char *kind = weft_get_str(option, "kind", "");
    fprintf(screen->file, "  %zu) ", number);
    put_json_text(screen, &name);
    weft__ink(screen, WEFT_INK_DIM);
    fputs("  ", screen->file);
    put_json_text(screen, &id);
    /* Its name is the agent's word for it; what it gives is its kind. */
    if (strcmp(kind, weft_str_of(&id, "")) != 0 && *kind) {
        fputs("  ", screen->file);
        weft__put_text(screen, kind, strlen(kind));
    }
    weft__plain(screen);
    fputc('\n', screen->file);
}

static void put_answer_options(const weft_screen *screen, const weft_json *options) {
    size_t number = 0;
    bool can_reject = false;
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        put_answer_option(screen, ++number, &it.value);
        can_reject = can_reject || strcmp(weft_get_str(&it.value, "kind", ""), "reject_once") == 0;
    }
    if (!can_reject)
        fputs("  deny: none of these; the agent is told that nothing was chosen\n", screen->file);
}

void weft__question_put(const weft_screen *to, const weft_json *question) {
    const weft_screen exact = {.file = to->file, .terminal = true, .colour = to->colour, .exact = true}, *screen = &exact;
    weft_screen title_screen = exact;
    weft_json id = weft_get(question, "id"), title = weft_get(question, "title");
    weft_json detail = weft_get(question, "detail"), options = weft_get(question, "options");
    title_screen.exact = false; /* the hub has seen to that */
    weft__ink(screen, WEFT_INK_WARN);
    put_json_text(screen, &id);
    fputs(": ", screen->file);
    weft__plain(screen);
    weft__ink(screen, WEFT_INK_BOLD);
    put_json_text(&title_screen, &title);
    weft__plain(screen);
    fputc('\n', screen->file);
    put_question_about(screen, question);
    put_detail(screen, &detail);
    put_answer_options(screen, &options);
}

/* ---- answers ---- */

static bool is_word(const char *text, size_t len, const char *word) {
    return *word && strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* The option with this number, as they are shown. */
static const char *option_by_number(const weft_json *options, const char *answer, size_t len) {
    char digits[24];
    size_t number = 0;
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        snprintf(digits, sizeof digits, "%zu", ++number);
        if (is_word(answer, len, digits))
            return weft_get_str(&it.value, "id", NULL);
    }
    return NULL;
}

/* The only option whose name or id it is, but for upper and lower case. */
static int option_by_name(const weft_json *options, const char *answer, size_t len, const char **ret) {
    int count = 0;
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        const char *id = weft_get_str(&it.value, "id", "");
        if (!is_word(answer, len, id) && !is_word(answer, len, weft_get_str(&it.value, "name", "")))
            continue;
        *ret = id;
        count++;
    }
    return count > 1 ? -ENOTUNIQ : count;
}

/* A number is what people see, so it comes first; then the words that mean the same everywhere; then the agent's own. */
static int option_meant(const weft_json *options, const char *answer, size_t len, const char **ret) {
    const char *id = option_by_number(options, answer, len);
    int r = id ? 1 : weft__option_meant(options, answer, len, &id);
    if (r == 0)
        r = option_by_name(options, answer, len, &id);
    if (r > 0)
        *ret = *id ? id : "deny";
    return r;
}

int weft__question_option(const weft_json *question, const char *answer, const char **ret, const char **ret_text) {
    weft_json options = weft_get(question, "options");
    while (isspace((unsigned char) *answer))
        answer++;
    size_t whole = strlen(answer), first = strcspn(answer, " \t:,");
    while (whole && isspace((unsigned char) answer[whole - 1]))
        whole--;
    *ret_text = "";
    if (whole == 0)
        return 0;
    int r = option_meant(&options, answer, whole, ret);
    if (r != 0 || first >= whole)
        return r;
    *ret_text = answer + first + strspn(answer + first, " \t:,");
    return option_meant(&options, answer, first, ret);
}

const char *weft__question_option_why(int r) {
    return r == 0        ? "That is not one of the options."
           : r == -EPERM ? "It can only be allowed permanently: type that option's number."
                         : "Several of them could be meant: type a number.";
}
