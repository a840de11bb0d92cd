/* Rules: a line of JSON that is a rule, and one that is an event. A rule that is wrong has an error and never matches; what
 * a good one renders is JSON, whatever was in the event. A template is filled the same way twice, within its limit. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "rule.h"
#include "secret.h"
#include "template.h"

#define MAX_TEXT 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_template(const char *text, const weft_json *event, weft_template_use use) {
    char *once = NULL, *twice = NULL;
    int r = weft__template_fill(text, event, use, MAX_TEXT, NULL, &once);
    require(r == 0 || r == -EMSGSIZE);
    require(weft__template_fill(text, event, use, MAX_TEXT, NULL, &twice) == r);
    if (r == 0)
        require(strlen(once) <= MAX_TEXT && strcmp(once, twice) == 0);
    if (r == 0 && !weft__template_hole(text))
        require(strcmp(once, text) == 0);
    free(once);
    free(twice);
}

/* Where a text names no secret, none is put in, whatever the event says: guarded and completed it is what it is otherwise.
 */
static void try_secrets(const char *text, const weft_json *event) {
    char *plain = NULL, *guarded = NULL, *got = NULL, why[WEFT_SECRET_WHY];
    size_t len;
    if (weft__secret_find(text, &len) || weft__template_fill(text, event, WEFT_TEMPLATE_TEXT, MAX_TEXT, NULL, &plain) < 0)
        return;
    require(weft__template_fill_guarded(text, event, WEFT_TEMPLATE_TEXT, 2 * MAX_TEXT, NULL, &guarded) == 0);
    require(weft__secret_fill((weft_bytes){guarded, strlen(guarded)}, WEFT_SECRET_TEXT, MAX_TEXT, NULL, &got, &len, why) ==
            0);
    require(strcmp(got, plain) == 0 && len == strlen(plain));
    free(plain);
    free(guarded);
    free(got);
}

/* Whether it can ever fire is said with a reason and a place in it. */
static void try_sense(const weft_rule *rule) {
    char why[WEFT_RULE_WHY] = "", at[WEFT_RULE_AT] = "";
    if (*rule->error)
        return;
    int r = weft__rule_sense(rule, why, at);
    require(r == 1 || (r == 0 && *why && weft_pointer(weft_doc_root(rule->doc), at).text));
}

static void try_rule(const weft_rule *rule, const weft_json *json) {
    static const char *const types[] = {"file.modify", "cron.fired", "task.completed"};
    static const char *const sources[] = {"watcher", "scheduler", "queue"};
    try_sense(rule);
    for (size_t i = 0; i < 3; i++) {
        weft_rule_event event = {types[i], sources[i], json};
        bool listens = weft__rule_listens(rule, types[i], sources[i]);
        require(!listens || !*rule->error);
        int r = listens ? weft__rule_matches(rule, &event) : 0;
        require(r == 0 || r == 1 || r == -EOVERFLOW);
        if (r != 1)
            continue;
        char *text = NULL;
        size_t len;
        weft_doc *doc = NULL;
        r = weft__rule_render(rule, &event, &text, &len);
        require(r == 0 || r == -EMSGSIZE || r == -EINVAL);
        if (r < 0)
            continue;
        require(strlen(text) == len && weft_doc_parse(text, len, NULL, &doc) == 0);
        require(weft_typeof(weft_doc_root(doc)) == WEFT_OBJECT);
        weft_doc_free(doc);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *) data, *stop = memchr(at, '\n', size);
    weft_doc *value = NULL, *event = NULL;
    weft_rule *rule;
    if (!stop || weft_doc_parse(stop + 1, size - (size_t) (stop + 1 - at), NULL, &event) < 0)
        return 0;
    if (weft_doc_parse(at, (size_t) (stop - at), NULL, &value) == 0) {
        weft_json json = *weft_doc_root(value);
        require(weft__rule_new(&json, NULL, &rule) == 0);
        weft_doc_free(value); /* it has its own */
        try_rule(rule, weft_doc_root(event));
        weft__rule_free(rule);
    }
    size_t len = (size_t) (stop - at);
    char *text = calloc(1, len + 1); /* strndup() would look for a NUL behind it */
    require(text);
    memcpy(text, at, len);
    try_template(text, weft_doc_root(event), WEFT_TEMPLATE_TEXT);
    try_template(text, weft_doc_root(event), WEFT_TEMPLATE_URL);
    try_secrets(text, weft_doc_root(event));
    free(text);
    weft_doc_free(event);
    return 0;
}
