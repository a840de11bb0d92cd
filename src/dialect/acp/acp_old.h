/* The older form of ACP, which tinyvex's clients speak: names in snake_case, contents and tool calls in a wrapping of their
 * own. Only updates of an agent that speaks it are stored in it, as they came. What is said is made in the current form and
 * written in this one for those who began with it; what they say is read by the same tables, which know both spellings. */
#ifndef WEFT_ACP_OLD_H
#define WEFT_ACP_OLD_H

#include <weft/json.h>

#include "buf.h"

/* The version that its clients know. */
#define ACP_OLD_PROTOCOL "0.7.0"
/* How a turn ends, said to who was told {ok:true} when its prompt was accepted: {session_id, task_id, stop_reason or error}.
 */
#define ACP_OLD_TURN_ENDED "_weft/turn_ended"

/* Any value but an update: its members' names, and those within, in the older spelling. What belongs to others (_meta, what
 * a tool was given and gave back) stays as it is. -ENOMEM. */
int weft__acp_old_value(weft_buf *out, const weft_alloc *alloc, const weft_json *value);
/* A tool call as it stands in session/request_permission. */
int weft__acp_old_tool_call(weft_buf *out, const weft_alloc *alloc, const weft_json *call);
/* The "update" of session/update, from the current form. */
int weft__acp_old_update(weft_buf *out, const weft_alloc *alloc, const weft_json *update);
/* A value in the older form, by one of these: made in the current one, and written again. */
typedef int weft_acp_write_old(weft_buf *out, const weft_alloc *alloc, const weft_json *value);
int weft__acp_put_old(const weft_alloc *alloc, weft_acp_write_old *write, weft_val value, weft_buf *ret);
/* And back: an update in either form, written in the current one. */
int weft__acp_current_update(weft_buf *out, const weft_alloc *alloc, const weft_json *update);
/* Is it in the older form? What is the same in both is not. */
bool weft__acp_is_old_update(const weft_json *update);

#endif
