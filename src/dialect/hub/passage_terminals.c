/* Terminals that agents ask for: the engine has them, with the turn that asked. */
#include "passages.h"

#define PASSES(name, which)                                                                                                 \
    int name(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params) {                            \
        const weft_hub *hub = ctx;                                                                                          \
        return weft__task_terminal(hub->engine, call->task, which, req, params);                                            \
    }
PASSES(weft__passage_terminal_create, WEFT_TERMINALS_CREATE)
PASSES(weft__passage_terminal_output, WEFT_TERMINALS_OUTPUT)
PASSES(weft__passage_terminal_wait, WEFT_TERMINALS_WAIT)
PASSES(weft__passage_terminal_kill, WEFT_TERMINALS_KILL)
PASSES(weft__passage_terminal_release, WEFT_TERMINALS_RELEASE)
