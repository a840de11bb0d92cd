/* Asking the runner that has the files of a task (runners.h): what it changed, the difference, and to put it back. */
#ifndef WEFT_HUB_METHODS_THERE_H
#define WEFT_HUB_METHODS_THERE_H

#include "hub.h"

/* As weft_on_answer. It does not run once the hub's clients have gone. */
typedef void weft__there_done(void *ctx, int r, const weft_answer *answer);

/* Did this task, or the last one of this session, work on a runner? */
bool weft__hub_is_there(const weft_hub *hub, const char *id, bool session);
/* Ask for this method of the hub's own, there; params without the ids. 0: done will run. -ENODATA: it is here; -ENOTCONN:
 * the runner is away; others of weft_call_start(). */
int weft__hub_ask_there(const weft_hub *hub, const char *id, bool session, const char *method, weft_val params,
                        weft__there_done *done, void *ctx);
/* Why it cannot be asked. */
int weft__hub_refuse_there(weft_req *req, const weft_hub *hub, const char *id, bool session, int r);
/* Answer with what it said. */
int weft__hub_pass_there(weft_req *req, const weft_hub *hub, const char *id, bool session, int r, const weft_answer *answer);

#endif
