/* What can happen lies in streams as events. Stored events are read again by later versions, so a member is added, never
 * renamed or given another meaning. Times are the store's (time_ms), ids are strings, absent means unknown.
 *
 * Every type of event is a row in event_rows.c: its stream, an example of its data, the members that may be absent, and what
 * they mean. Older journals also have: alone:true in task.queued, which was the group "agent/run"; no sessionId in events of
 * a task's or a question's later life, nor a taskId in a question's. What a session.update holds is one update of ACP v1 as
 * it came; a tool call that shows terminals of ours has what they printed behind each, and there is one more when they end.
 */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#define WEFT_STREAM_HUB "hub"
#define WEFT_STREAM_SESSION "session/"
#define WEFT_STREAM_FILES "files"
#define WEFT_STREAM_CRON "cron"
#define WEFT_STREAM_PLANS "plans"
#define WEFT_STREAM_GATED "gated"
#define WEFT_STREAM_BUILD "build"
#define WEFT_STREAM_PREVIEW "preview"
#define WEFT_STREAM_MCP "mcp"
#define WEFT_STREAM_RUNNERS "runners"

/* How much of the end of a task's output the read model keeps and its last event holds. */
#define WEFT_TASK_TAIL (16 * 1024)

#endif
