/* A mistyped name on the command line is noticed here: AIWG's and cdev's methods ignore params they do not know, because
 * their own clients send such, but a person who typed agnet=claude did not mean the default agent. */
#include <string.h>

#include "failure.h"
#include "hub.h"
#include "params.h"
#include "relay.h"
#include "wiring.h"

static const weft_method *find_dialect_row(const weft_dialect *dialect, const char *method) {
    for (const weft_method *row = dialect->methods; row && row->name; row++)
        if (strcmp(row->name, method) == 0)
            return row;
    return NULL;
}

static bool has_param(const weft_param *table, const char *name) {
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return true;
    return strcmp(name, "_meta") == 0;
}

/* One of those that have a method of this name may mean it. *ret_table: the last that does not. */
static bool somebody_knows(const char *method, const char *name, const weft_param **ret_table) {
    bool known = false, found = false;
    for (const weft_dialect *const *dialect = weft__dialect_list; *dialect; dialect++) {
        const weft_method *row = find_dialect_row(*dialect, method);
        found = found || row;
        known = known || (row && (!row->params || has_param(row->params, name)));
        if (row && row->params)
            *ret_table = row->params;
    }
    return known || !found;
}

weft_exit weft__params_check(const weft_app *app, const char *method, const weft_doc *params, bool *ret_for_relay) {
    bool for_relay = false;
    if (!params || weft_typeof(weft_doc_root(params)) != WEFT_OBJECT)
        return WEFT_DONE;
    for (weft_iter it = weft_iterate(weft_doc_root(params)); weft_next(&it);) {
        const weft_param *table = NULL;
        const char *name = weft_str_of(&it.name, "");
        if (somebody_knows(method, name, &table))
            continue;
        if (strcmp(name, "hub") == 0 && weft__relay_forwards(method)) {
            for_relay = true;
            continue;
        }
        weft_suggestion suggestion = {.typed = name};
        for (; table && table->name; table++)
            weft__suggest(&suggestion, table->name);
        return weft__fail(app, WEFT_USAGE, "\"weft describe METHOD\" lists them. Params as '{...}' are sent as they are.",
                          "%s has no param \"%s\"%s%s%s", method, name, suggestion.best ? "; did you mean \"" : "",
                          suggestion.best ? suggestion.best : "", suggestion.best ? "\"?" : "");
    }
    *ret_for_relay = for_relay;
    return WEFT_DONE;
}
