/* What the demo agent does is said by the first words of a prompt. Only by the first: "please fix the crash" is a wish for
 * an edit, not for a crash. Words that wish for an edit count wherever they stand. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "demo.h"

/* "slow" alone. */
#define SLOW_MS 5000
/* A prompt that says "slow 9999h" is a mistake. */
#define SLOWEST_MS ((int64_t) 3600 * 1000)
/* As many as a test of back-pressure needs. */
#define MOST_LINES 10000000

/* Agents say Markdown, and four blanks are a block of code there: the columns stay. */
const char weft__demo_words[] = "    echo TEXT         I say TEXT and nothing else\n"
                                "    lines N           I say N lines\n"
                                "    ask               I ask something and change nothing\n"
                                "    plan TEXT         I answer with a plan for TEXT, as JSON\n"
                                "    step TEXT         I look at the folder and say that TEXT is done\n"
                                "    quiet ...         I ask nothing and change nothing\n"
                                "    slow [TIME] ...   the same, spread over TIME (5s)\n"
                                "    fail, refuse      the turn ends with an error, or with a refusal\n"
                                "    crash, exit N     I end in the middle\n"
                                "    hang              I never answer, whatever I am told\n"
                                "\n"
                                "With edit, write, fix, change, create, add, update or implement anywhere in\n"
                                "it, I ask whether I may edit a scratch file, unless it also says\n"
                                "\"no questions\". Any other prompt gets an answer like this one.\n";

/* ---- words ---- */

static const char *skip_blanks(const char *p) {
    while (isspace((unsigned char) *p))
        p++;
    return p;
}

static size_t word_length(const char *p) {
    size_t n = 0;
    while (isalnum((unsigned char) p[n]))
        n++;
    return n;
}

static bool word_is(const char *p, size_t len, const char *word) {
    return strlen(word) == len && strncasecmp(p, word, len) == 0;
}

/* Take this word off the front, if it is there and whole: "fail." and "fail" are one word, "failure" is another. */
static bool take_order_word(const char **p, const char *word) {
    const char *at = skip_blanks(*p);
    if (!word_is(at, word_length(at), word))
        return false;
    *p = at + strlen(word);
    return true;
}

static bool has_word(const char *text, const char *const *words) {
    while (*text) {
        size_t len = word_length(text);
        for (const char *const *word = words; len && *word; word++)
            if (word_is(text, len, *word))
                return true;
        text += len ? len : 1;
    }
    return false;
}

/* ---- numbers ---- */

static int64_t take_order_number(const char **p, int64_t fallback, int64_t most) {
    const char *at = skip_blanks(*p);
    char *end;
    if (!isdigit((unsigned char) *at))
        return fallback;
    long long number = strtoll(at, &end, 10);
    *p = end;
    return number < most ? number : most;
}

/* 500ms, 3s, 2m, or seconds. */
static int64_t take_time(const char **p) {
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}};
    const char *before = *p;
    int64_t number = take_order_number(p, -1, SLOWEST_MS);
    if (number < 0)
        return SLOW_MS;
    size_t len = word_length(*p);
    int64_t ms = len == 0 ? 1000 : 0;
    for (size_t i = 0; len && i < sizeof units / sizeof units[0]; i++)
        if (word_is(*p, len, units[i].unit))
            ms = units[i].ms;
    if (!ms) { /* "slow 3rd attempt": not a time */
        *p = before;
        return SLOW_MS;
    }
    *p += len;
    return number * ms < SLOWEST_MS ? number * ms : SLOWEST_MS;
}

/* ---- the order ---- */

static weft_demo_kind read_wish(const char *prompt) {
    static const char *const edits[] = {"edit", "write", "fix", "change", "create", "add", "update", "implement", NULL};
    return strcasestr(prompt, "no questions") || !has_word(prompt, edits) ? WEFT_DEMO_PLAIN : WEFT_DEMO_EDIT;
}

static weft_demo_kind read_first_word(const char **p, const char *prompt) {
    static const struct {
        const char *word;
        weft_demo_kind kind;
    } words[] = {{"echo", WEFT_DEMO_ECHO},     {"lines", WEFT_DEMO_LINES}, {"fail", WEFT_DEMO_FAIL},
                 {"refuse", WEFT_DEMO_REFUSE}, {"crash", WEFT_DEMO_CRASH}, {"exit", WEFT_DEMO_EXIT},
                 {"hang", WEFT_DEMO_HANG},     {"ask", WEFT_DEMO_ASK},     {"quiet", WEFT_DEMO_PLAIN},
                 {"plan", WEFT_DEMO_PLANNER},  {"step", WEFT_DEMO_PLANNED}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (take_order_word(p, words[i].word))
            return words[i].kind;
    return read_wish(prompt);
}

/* One blank belongs to the word "echo", the rest to what is echoed. */
static const char *echo_text(const char *p) {
    return *p && isspace((unsigned char) *p) ? p + 1 : p;
}

/* What is to be planned: a hub that wants a plan says how it must look, and the request comes last. */
static const char *plan_text(const char *p) {
    static const char mark[] = "\nRequest:\n";
    const char *request = strstr(p, mark);
    return skip_blanks(request ? request + sizeof mark - 1 : p);
}

weft_demo_order weft__demo_read(const char *prompt) {
    weft_demo_order order = {.text = prompt};
    const char *p = prompt;
    if (take_order_word(&p, "slow"))
        order.slow_ms = take_time(&p);
    order.kind = read_first_word(&p, prompt);
    if (order.kind == WEFT_DEMO_ECHO)
        order.text = echo_text(p);
    else if (order.kind == WEFT_DEMO_PLANNER)
        order.text = plan_text(p);
    else if (order.kind == WEFT_DEMO_PLANNED)
        order.text = skip_blanks(p);
    else if (order.kind == WEFT_DEMO_LINES)
        order.number = take_order_number(&p, 10, MOST_LINES);
    else if (order.kind == WEFT_DEMO_EXIT)
        order.number = take_order_number(&p, 1, 255);
    return order;
}
