/* What agents may ask of their client besides permission: a row for each method, as driver.h has it. What has a row is
 * announced to agents. The handlers have the weft_hub as their ctx. */
#ifndef WEFT_PASSAGES_H
#define WEFT_PASSAGES_H

#include "hub.h"

/* Ends with a zero row. */
extern const weft_passage weft__passages[];

/* ---- passage_files.c ---- */

/* fs/read_text_file and fs/write_text_file: beneath the session's folder, through the editor that follows the session if it
 * offers files, otherwise by the hub's own files. */
int weft__passage_read_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_write_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);

/* Requests about files that are under way, of all agents, and bytes of what they write. */
#define WEFT_PASSAGE_FILES 256
#define WEFT_PASSAGE_BYTES ((size_t) 64 << 20)
/* What an editor gets to answer: it has the file in memory, or on its disk. */
#define WEFT_EDITOR_MS 10000

/* ---- passage_terminals.c ---- */

/* terminal/create and the others: the hub runs them itself, in the turn that asked. */
int weft__passage_terminal_create(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_output(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_wait(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_kill(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);
int weft__passage_terminal_release(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params);

#endif
