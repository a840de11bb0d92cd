/* Standing answers: what a person allowed for good, for one agent, in one session or in the whole project. Each is a row of
 * its own, with who gave it, when, and to which question; it answers later questions of the same kind until it is revoked.
 * It is never wider than what it says. */
#ifndef WEFT_APPROVAL_H
#define WEFT_APPROVAL_H

#include "engine.h"

#define WEFT_APPROVALS 100 /* at a time; then one must be revoked first */

/* One of them. data is as approval.given says it (events.h). Borrowed. */
typedef void weft_approval_each(void *ctx, const char *id, int64_t time_ms, const weft_json *data);
/* The oldest first. -ENOMEM: not all were shown. */
int weft__approval_each(const weft_engine *engine, weft_approval_each *each, void *ctx);
/* by is for people. -ENOENT: there is no such one (any more). */
int weft__approval_revoke(weft_engine *engine, const char *id, const char *by, void (*done)(void *ctx, int r), void *ctx);

#endif
