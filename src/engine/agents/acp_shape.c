/* What answers of ACP agents must be, as far as anything is done with them. Agents leave out what the specification asks
 * for, and add to it, so only members that are used have a rule, and what is only shown to people (modes, options, lists)
 * has none beyond its kind. An answer that does not fit is not used, and whoever waits for it is told the place in it. */
#include <stdio.h>
#include <string.h>

#include "acp_private.h"
#include "answer_shape.h"

/* clang-format off */
static const char *const shapes[WEFT_ACP_ANSWERS] = {
    /* initialize */
    "{\"type\":\"object\",\"required\":[\"protocolVersion\"],\"properties\":{\"protocolVersion\":{\"type\":\"integer\"}}}",
    /* session/new */
    "{\"type\":\"object\",\"required\":[\"sessionId\"],\"properties\":{"
        "\"sessionId\":{\"type\":\"string\",\"minLength\":1}}}",
    /* session/prompt: a turn that ended without a reason has ended all the same */
    "{\"type\":[\"object\",\"null\"],\"properties\":{"
        "\"stopReason\":{\"type\":[\"string\",\"null\"]},"
        "\"usage\":{\"type\":[\"object\",\"null\"]}}}",
    /* session/list */
    "{\"type\":\"object\",\"required\":[\"sessions\"],\"properties\":{"
        "\"sessions\":{\"type\":\"array\"},"
        "\"nextCursor\":{\"type\":[\"string\",\"null\"]}}}",
    /* session/set_config_option: some answer nothing */
    "{\"type\":[\"object\",\"null\"],\"properties\":{\"configOptions\":{\"type\":[\"array\",\"null\"]}}}",
};
/* clang-format on */

/* Of the rest nothing is used. */
static const char *const methods[WEFT_ACP_ANSWERS] = {"initialize", "session/new", "session/prompt", "session/list",
                                                      "session/set_config_option"};

int weft__acp_fits(weft_driver_process *process, const char *method, const weft_json *result, char why[WEFT_SHAPE_WHY]) {
    size_t i = 0;
    while (i < WEFT_ACP_ANSWERS && strcmp(methods[i], method) != 0)
        i++;
    if (i == WEFT_ACP_ANSWERS)
        return 0;
    int r = process->shapes[i] ? 0 : weft__shape_new(shapes[i], process->alloc, &process->shapes[i]);
    if (r < 0) {
        snprintf(why, WEFT_SHAPE_WHY, "out of memory");
        return r;
    }
    return weft__shape_check(process->shapes[i], result, why);
}

void weft__acp_shapes_free(weft_driver_process *process) {
    for (size_t i = 0; i < WEFT_ACP_ANSWERS; i++)
        process->shapes[i] = weft_schema_free(process->shapes[i]);
}
