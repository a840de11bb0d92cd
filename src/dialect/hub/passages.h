/* What agents may ask of their client besides permission: a row for each method, as driver.h has it. What has a row is
 * announced to agents. The handlers have the weft_hub as their ctx. */
#ifndef WEFT_PASSAGES_H
#define WEFT_PASSAGES_H

#include "hub.h"

/* Ends with a zero row. */
extern const weft_passage weft__passages[];

/* ---- passage_terminals.c ---- */

/* terminal/create and the others: the hub runs them itself, in the turn that asked. */
int weft__passage_terminal_create(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_output(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_wait(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_kill(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_release(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);

#endif
