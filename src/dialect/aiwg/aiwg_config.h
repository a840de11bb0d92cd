/* AIWG's configuration, .aiwg/daemon.json, in Weft's words: for a daemon that takes the place of AIWG's own.
 *
 * What it says is taken as AIWG takes it: a value that makes no sense counts as not given, and what is not known is ignored
 * in silence, for that file belongs to another program. Nothing is written to it. What it asks for and cannot have is for
 * the caller to refuse: more paths than can be watched. */
#ifndef WEFT_AIWG_CONFIG_H
#define WEFT_AIWG_CONFIG_H

#include <weft/json.h>

/* What a project's file of Weft's own would say instead. file is absent when there is none. Owned. -ENOMEM. */
int weft__aiwg_config(const weft_json *file, const weft_alloc *alloc, weft_doc **ret);

/* More paths than this cannot be watched; how many the file names, 0 if it does not have them watched. */
#define WEFT_AIWG_PATHS 32
size_t weft__aiwg_paths(const weft_json *file);

/* What AIWG writes into that file when there is none. */
extern const char weft__aiwg_default_config[];

#endif
