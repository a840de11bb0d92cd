/* What happens in sessions, for a connection that speaks tinyvex: ACP's words, and those of the ACP that tinyvex was written
 * for. An agent's update in that older form is stored as it came, and told as it came; ACP's clients of today are not told
 * it, because they could not read it. */
#include <string.h>

#include "acp.h"
#include "tinyvex.h"

/* Where the older form has a member that the present one does not: its name, and what it must be inside of. */
static const struct {
    const char *kind, *member, *inner;
} forms[] = {
    {"user_message_chunk", "content", "content"},
    {"agent_message_chunk", "content", "content"},
    {"agent_thought_chunk", "content", "content"},
    {"plan", "plan", "entries"},
    {"tool_call", "tool_call", "call_id"},
    {"tool_call_update", "tool_call_update", "call_id"},
    {"available_commands_update", "available_commands", NULL},
    {"current_mode_update", "current_mode_id", NULL},
};

bool weft__tinyvex_is_older(const weft_json *update) {
    weft_json kind = weft_get(update, "sessionUpdate");
    weft_iter name = {.name = kind};
    if (weft_typeof(&kind) != WEFT_STRING)
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (!weft_name_is(&name, forms[i].kind))
            continue;
        weft_json member = weft_get(update, forms[i].member);
        return member.text && (!forms[i].inner || weft_get(&member, forms[i].inner).text);
    }
    return false;
}

void weft__tinyvex_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    weft_json update = strcmp(event->type, "session.update") == 0 ? weft_get(data, "update") : (weft_json){0};
    const char *session = update.text ? weft__render_text(rendering, data, "sessionId", NULL) : NULL;
    if (!session || !weft__tinyvex_is_older(&update)) {
        weft__acp_render(hub, rendering, event, data);
        return;
    }
    weft__render_notify(
        rendering, session, "session/update",
        WEFT_OBJ({"session_id", weft_str(session)}, {"sessionId", weft_str(session)}, {"update", weft_copy(&update)}));
}
