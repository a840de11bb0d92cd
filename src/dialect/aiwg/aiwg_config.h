/* AIWG's configuration, .aiwg/daemon.json, in Weft's words: for a daemon that takes the place of AIWG's own.
 *
 * What it says is taken as AIWG takes it: a value that makes no sense counts as not given, and what is not known is ignored
 * in silence, for that file belongs to another program. Nothing is written to it. */
#ifndef WEFT_AIWG_CONFIG_H
#define WEFT_AIWG_CONFIG_H

#include <weft/json.h>

/* What a project's file of Weft's own would say instead. file is absent when there is none. Owned. -ENOMEM. */
int weft__aiwg_config(const weft_json *file, const weft_alloc *alloc, weft_doc **ret);

/* What AIWG writes into that file when there is none. */
extern const char weft__aiwg_default_config[];

#endif
