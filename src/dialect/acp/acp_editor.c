/* Which client is the editor of a session: whom the hub asks for what an editor does for its agent. */
#include <errno.h>
#include <string.h>

#include "acp.h"

/* Markers are true, or an object. */
static bool is_offered(const weft_json *capabilities, const char *pointer) {
    weft_json found = weft_pointer(capabilities, pointer);
    return weft_typeof(&found) == WEFT_OBJECT || weft_bool_of(&found, false);
}

unsigned weft__acp_offers(const weft_json *capabilities) {
    static const struct {
        const char *pointer;
        unsigned flag;
    } rows[] = {
        {"/fs/readTextFile", ACP_EDITOR_READS},
        {"/fs/writeTextFile", ACP_EDITOR_WRITES},
        {"/elicitation/form", ACP_EDITOR_FORMS},
        {"/elicitation/url", ACP_EDITOR_URLS},
        {"/session/configOptions/boolean", ACP_EDITOR_FLAGS},
    };
    unsigned offers = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        offers |= is_offered(capabilities, rows[i].pointer) ? rows[i].flag : 0;
    return offers;
}

bool weft__acp_may_answer(const weft_hub *hub, const weft_identity *who) {
    const weft_hub_host *host = hub->host;
    bool agent = host && host->is_agent && host->is_agent(host->ctx, who);
    return !agent && weft_has_scope(who, WEFT_WORK);
}

int weft__acp_origin(const weft_hub *hub, const char *metadata, uint64_t *ret) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(metadata, strlen(metadata), hub->alloc, &doc);
    *ret = 0;
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    const weft_json *root = weft_doc_root(doc);
    weft_json source = weft_get(root, "source"), started = weft_get(root, "hub"), name = weft_get(root, "name");
    bool ours =
        strcmp(weft_str_of(&source, ""), "acp") == 0 && strcmp(weft_str_of(&started, ""), hub->host->started_at) == 0;
    const weft_hub_client *named = name.text ? weft__hub_clients_named(hub->clients, weft_str_of(&name, "")) : NULL;
    int64_t number = named ? (int64_t) weft__hub_client_number(named) : ours ? weft_get_int(root, "client", 0) : 0;
    *ret = number > 0 ? (uint64_t) number : 0;
    weft_doc_free(doc);
    return 0;
}

/* Metadata is the caller's: who is named there must follow the session too. */
static bool can_do(const weft_hub *hub, const weft_hub_client *client, const char *session, unsigned does) {
    const weft_identity *who = weft_peer_identity(weft__hub_client_peer(client));
    return strcmp(who->dialect, "acp") == 0 && (weft__hub_client_flags(client) & does) == does &&
           weft__acp_follows(client, session) && weft__acp_may_answer(hub, who);
}

weft_hub_client *weft__acp_editor(const weft_hub *hub, const char *session, const char *task, unsigned does) {
    const weft_task *known = weft__task_find(hub->engine, task);
    uint64_t number = 0;
    if (known)
        (void) weft__acp_origin(hub, known->metadata, &number); /* without memory it is one of those that follow */
    weft_hub_client *client = number ? weft__hub_clients_find(hub->clients, number) : NULL;
    if (client && can_do(hub, client, session, does))
        return client;
    for (client = weft__hub_clients_next(hub->clients, NULL); client; client = weft__hub_clients_next(hub->clients, client))
        if (can_do(hub, client, session, does))
            return client;
    return NULL;
}
