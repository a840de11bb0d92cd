/* May this caller call this method now? Asked before a handler runs; the answers are data, so that every gate refuses in the
 * same form: a code, a sentence, data.reason. */
#include <errno.h>
#include <string.h>

#include "gate.h"

static bool has_scope(const char *scopes, const char *scope) {
    size_t len = strlen(scope);
    if (strcmp(scopes, "*") == 0)
        return true;
    for (const char *at = scopes; (at = strstr(at, scope)); at += len)
        if ((at == scopes || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
            return true;
    return false;
}

static int default_authorize(const weft_identity *who, const weft_method *row) {
    if (!row->scope || has_scope(who->scopes, row->scope))
        return 0;
    return who->authenticated ? -EACCES : -EPERM;
}

static int unauthorized(weft_outcome *ret) {
    static const weft_member data[] = {{"reason", {.kind = WEFT_VAL_STR, .len = 12, .as = {.s = "unauthorized"}}}};
    static const weft_val value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = data}};
    *ret = (weft_outcome){401, "Not authenticated", &value};
    return -EACCES;
}

static int forbidden(weft_outcome *ret) {
    static const weft_member data[] = {{"reason", {.kind = WEFT_VAL_STR, .len = 9, .as = {.s = "forbidden"}}}};
    static const weft_val value = {.kind = WEFT_VAL_OBJ, .len = 1, .as = {.members = data}};
    *ret = (weft_outcome){403, "Not permitted", &value};
    return -EACCES;
}

int weft__gate_ask(weft_peer *peer, const weft_method *row, weft_outcome *ret) {
    weft_service *service = peer->service;
    if (peer->locked && !peer->identity->authenticated && !(row->flags & WEFT_OPEN))
        return unauthorized(ret);
    int r =
        service->authorize ? service->authorize(service->ctx, peer->identity, row) : default_authorize(peer->identity, row);
    if (r >= 0)
        return 0;
    return r == -EPERM ? unauthorized(ret) : forbidden(ret);
}
