/* What a turn cost, as its agent says: kept with the run until the event of its end has it. What the agent does not say is
 * absent: nobody knows it, and 0 would be a claim. */
#include <errno.h>
#include <string.h>

#include "run.h"

#define USAGE_BYTES 4096 /* of numbers; more is none */
#define CURRENCY_BYTES 32

/* Without memory it is not known, which is no reason to end the run. */
static void keep_usage(struct run *run, char **at, weft_val value) {
    char *text = NULL;
    size_t len = 0;
    if (weft_to_text(value, run->engine->alloc, &text, &len) < 0)
        return;
    if (len <= USAGE_BYTES) {
        weft__free(run->engine->alloc, *at);
        *at = weft__strndup(run->engine->alloc, text, len);
    }
    weft_text_free(text, run->engine->alloc);
}

void weft__usage_of_turn(struct run *run, const weft_json *usage) {
    if (usage->len <= USAGE_BYTES)
        keep_usage(run, &run->tokens, weft_copy(usage));
}

/* usage_update {used, size, cost?{amount, currency}}: the cost is the session's, up to now. */
void weft__usage_of_update(struct run *run, const weft_json *update) {
    int64_t used = weft_get_int(update, "used", -1), size = weft_get_int(update, "size", -1);
    weft_json amount = weft_pointer(update, "/cost/amount"), currency = weft_pointer(update, "/cost/currency");
    if (!weft__field_is(update, "sessionUpdate", "usage_update"))
        return;
    if (used >= 0 && size >= 0)
        keep_usage(run, &run->context, WEFT_OBJ({"used", weft_int(used)}, {"size", weft_int(size)}));
    if (weft_typeof(&amount) == WEFT_NUMBER && weft_typeof(&currency) == WEFT_STRING && currency.len <= CURRENCY_BYTES)
        keep_usage(run, &run->cost, WEFT_OBJ({"amount", weft_copy(&amount)}, {"currency", weft_copy(&currency)}));
    weft_json told = weft_get(update, "cost");
    weft_money cost;
    if (weft__money_read(&told, &cost))
        run->cost_now = cost;
}

static weft_val raw_or_none(const char *json) {
    return json ? weft_raw(json, strlen(json)) : weft_none();
}

weft_val weft__usage_val(const struct run *run, usage_parts *parts) {
    weft_money cost;
    weft_val turn = weft_none();
    if (weft__usage_cost(run, &cost)) {
        weft__money_text(cost.nano, parts->amount);
        memcpy(parts->currency, cost.currency, sizeof parts->currency);
        parts->cost[0] = (weft_member){"amount", weft_raw(parts->amount, strlen(parts->amount))};
        parts->cost[1] = (weft_member){"currency", weft_str(parts->currency)};
        turn = weft_obj(parts->cost, 2);
    }
    parts->members[0] = (weft_member){"tokens", raw_or_none(run->tokens)};
    parts->members[1] = (weft_member){"context", raw_or_none(run->context)};
    parts->members[2] = (weft_member){"sessionCost", raw_or_none(run->cost)};
    parts->members[3] = (weft_member){"cost", turn};
    return run->tokens || run->context || run->cost ? weft_obj(parts->members, 4) : weft_none();
}

/* The turn's share is what the session's sum has grown by since its last turn. A session that its agent had to begin anew
 * has no sum yet. */
bool weft__usage_cost(const struct run *run, weft_money *ret) {
    static const weft_money none;
    const known_session *session = run->task->session;
    if (!*run->cost_now.currency)
        return false;
    *ret = weft__money_since(&run->cost_now, session ? &session->cost_told : &none);
    return true;
}

void weft__usage_done(struct run *run) {
    run->tokens = weft__free(run->engine->alloc, run->tokens);
    run->context = weft__free(run->engine->alloc, run->context);
    run->cost = weft__free(run->engine->alloc, run->cost);
}
