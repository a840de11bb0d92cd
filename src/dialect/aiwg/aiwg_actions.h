/* What AIWG 2026.5.1 has its agent do when a job with one of these actions is due. To the daemon before it, a job is an
 * event and no more. */
#ifndef WEFT_AIWG_ACTIONS_H
#define WEFT_AIWG_ACTIONS_H

#include <stddef.h>

/* NULL: AIWG has no such action. */
const char *weft__aiwg_action_prompt(const char *action);
/* Their names, from 0 on; NULL behind the last. */
const char *weft__aiwg_action_name(size_t i);

#endif
