/* Which agent: by name, by default, by choice. */
#include "agent.h"

#include <errno.h>
#include <string.h>

#include "engine_private.h"

const weft_agent *weft__agent_find(const weft_agents *agents, const char *name) {
    for (size_t i = 0; agents && name && i < agents->count; i++)
        if (strcmp(agents->list[i].name, name) == 0)
            return &agents->list[i];
    return NULL;
}

const weft_agent *weft__agent_default(const weft_engine *engine) {
    const weft_agent *chosen = weft__agent_find(engine->agents, engine->chosen);
    return chosen || !engine->agents ? chosen : weft__agent_find(engine->agents, engine->agents->fallback);
}

bool weft__agent_is_chosen(const weft_engine *engine) {
    return weft__agent_find(engine->agents, engine->chosen) != NULL;
}

int weft__agent_apply_chosen(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *name;
    char *copy = NULL;
    (void) event;
    int r = weft__member(data, "agent", &name);
    if (r < 0 || (name && !(copy = weft__strndup(engine->alloc, name, strlen(name)))))
        return -ENOMEM;
    weft__free(engine->alloc, engine->chosen);
    engine->chosen = copy;
    return 0;
}

int weft__agent_choose(weft_engine *engine, const char *name, void (*done)(void *ctx, int r), void *ctx) {
    if (name && !weft__agent_find(engine->agents, name))
        return -ENOENT;
    return weft__engine_append(engine, WEFT_STREAM_HUB, "agent.chosen", WEFT_OBJ({"agent", weft_str(name)}), done, ctx);
}
