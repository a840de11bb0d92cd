/* What the result of execute_task must look like, from a child or a peer: what it must have is there, and what it may have
 * is of the right type. Members that are not known are fine. */
#include <string.h>

#include "planner_private.h"

static bool is_string_without_nul(const weft_json *value) {
    weft_bytes text;
    return weft_typeof(value) == WEFT_STRING && weft_text(value, &text) >= 0 && !memchr(text.data, '\0', text.len);
}

static bool is_list_of_strings(const weft_json *value) {
    if (weft_typeof(value) != WEFT_ARRAY)
        return false;
    for (weft_iter it = weft_iterate(value); weft_next(&it);)
        if (!is_string_without_nul(&it.value))
            return false;
    return true;
}

static bool is_status(const weft_json *value) {
    static const char *const known[] = {"success", "failure", "partial", "timeout"};
    weft_bytes text;
    if (weft_typeof(value) != WEFT_STRING || weft_text(value, &text) < 0)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text.len == strlen(known[i]) && memcmp(text.data, known[i], text.len) == 0)
            return true;
    return false;
}

static const char *wrong_output(const weft_json *output) {
    weft_json code = weft_get(output, "code"), explanation = weft_get(output, "explanation");
    static const char *const lists[] = {"files_modified", "files_created", "files_deleted", "warnings"};
    static const char *const why[] = {"output.files_modified is no list of strings",
                                      "output.files_created is no list of strings",
                                      "output.files_deleted is no list of strings", "output.warnings is no list of strings"};
    if (!is_string_without_nul(&code))
        return "output.code is no string";
    if (explanation.text && !is_string_without_nul(&explanation))
        return "output.explanation is no string";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        weft_json list = weft_get(output, lists[i]);
        if (list.text && !is_list_of_strings(&list))
            return why[i];
    }
    return NULL;
}

const char *weft__planner_wrong(const weft_json *result) {
    weft_json status = weft_get(result, "status"), output = weft_get(result, "output"),
              metadata = weft_get(result, "metadata");
    if (weft_typeof(result) != WEFT_OBJECT)
        return "it is no object";
    if (!is_status(&status))
        return "status is none of success, failure, partial, timeout";
    if (weft_typeof(&output) != WEFT_OBJECT)
        return "output is no object";
    if (metadata.text && weft_typeof(&metadata) != WEFT_OBJECT)
        return "metadata is no object";
    return wrong_output(&output);
}
