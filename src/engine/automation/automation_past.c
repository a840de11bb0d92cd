/* What was before: what is switched, what fired last, and approvals that were given but not yet acted upon when the daemon
 * ended. The engine knows all of it, from its documents and the few events behind them; nothing is read here. */
#include "automation_private.h"

static void recall_firing(void *ctx, int64_t time_ms, const weft_json *data) {
    weft__automation_executed(ctx, time_ms, data);
}

int weft__automation_recall(weft_automation *automation) {
    weft__engine_each_switch(automation->engine, weft__automation_set_switch, automation);
    return weft__engine_each_firing(automation->engine, recall_firing, automation);
}

void weft__automation_catch_up(weft_automation *automation) {
    const weft_question *next;
    for (const weft_question *question = weft__question_first(automation->engine, true); question; question = next) {
        next = weft__question_next(automation->engine, question, true);
        if (question->rule && !question->acted)
            weft__automation_answered(automation, question);
    }
}
