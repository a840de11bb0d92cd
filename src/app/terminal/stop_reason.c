/* ACP's stop reasons. One that is not known here is no secret either, but has no words. */
#include "stop_reason.h"

#include <stddef.h>
#include <string.h>

const char *weft__stop_reason_text(const char *stop_reason) {
    static const char *const rows[][2] = {
        {"max_tokens", "the agent reached its limit of tokens"},
        {"max_turn_requests", "the agent reached its limit of requests in one turn"},
        {"refusal", "the agent refused"},
        {"cancelled", "the agent ended its turn as cancelled"},
    };
    if (!stop_reason || !*stop_reason || strcmp(stop_reason, "end_turn") == 0)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i][0], stop_reason) == 0)
            return rows[i][1];
    return "the agent gave a reason that is not known here";
}
