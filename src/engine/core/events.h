/* What can happen: the types of events, the streams they lie in, and what their data holds. Stored events are read again by
 * later versions, so a member is added, never renamed or given another meaning. Times are the store's (time_ms), ids are
 * strings, absent means unknown.
 *
 * Stream "hub" (WEFT_STREAM_HUB): what the read models are folded from.
 *
 *   session.created      {sessionId, number?, agent, folder, beneath?, isolation?, title?, settings?{}, servers?[],
 *                        agentSessionId?}
 *                        beneath: where it works, beneath folder; servers: the names of its MCP servers, whose secrets are
 *                        in its document alone; number: of one that was made without a task
 *   session.agent        {sessionId, agentSessionId?}   the agent's own name for it; absent: it cannot be gone on with
 *   session.opened       {sessionId}                    at its agent, without a task
 *   session.state        {sessionId, name, value}       what holds for it, as its agent says: modes, mode, models, options,
 *                        commands, title; null: nothing any more
 *   session.set          {sessionId, name, option?, value, by?}   what was chosen: mode, model, option, title
 *   session.closed       {sessionId, by?}               it has no task and takes none, until
 *   session.resumed      {sessionId, by?}
 *   session.deleted      {sessionId, by?}               its stream was trimmed before, its tasks are forgotten, and what
 *                        other events of this stream said of it was taken out: they are "removed" {} then
 *   task.queued          {taskId, number, prompt, agent|null, runsOn, priority, sessionId, metadata{}, timeoutMs, retries,
 *                        depth, key?, group?, permission?, role?, taskType?, quietMs?, traceparent?, tracestate?}
 *                        older journals have alone:true, which was the group "agent/run"
 *   task.started         {taskId, sessionId?, attempt, agent?}   its state is running from here on; agent: which holder of
 *                        its role it runs on, from here on its session's agent. Older journals have no
 *                        sessionId in events of a task's or a question's later life, nor a taskId in a question's
 *   task.process         {taskId, sessionId?, pid}
 *   worktree.made        {taskId, sessionId, worktree, branch, base, path}   where the session works, before its first turn
 *   task.snapshot        {taskId, sessionId, before? | why?}   the project's files before its first turn, as a tree of git's
 *   task.changed         {taskId, sessionId, before, after?, files, added, modified, deleted, renamed, additions, deletions,
 *                        spans?[], others?[], late?, why?}   and behind its turn; why: nobody knows. spans: pairs of trees
 *                        between which others, tasks of which are named, worked in the same folder
 *   task.undone          {taskId, sessionId, by?, from, to, putBack, undone, left?}   what it changed was put back, or
 *                        with undone false was put there again; putBack: so many files. left: files that somebody else
 *                        had changed meanwhile
 *   task.retrying        {taskId, sessionId?, attempt, delayMs, error, reason, usage?, resumes?}   its state is queued
 *                        again; resumes: the next attempt goes on with what this one did
 *   task.completed       {taskId, sessionId?, stopReason?, exitCode?, usage?, output, outputBytes, outputFrom?,
 *                        outputTo?, outputTruncated?}
 *   task.failed          {taskId, sessionId?, error, reason, exitCode?, signal?, stopReason?, usage?, output, outputBytes,
 *                        outputFrom?, outputTo?, outputTruncated?}
 *   task.cancelled       {taskId, sessionId?, by?, stopReason?, exitCode?, usage?, output, outputBytes, outputFrom?,
 *                        outputTo?, outputTruncated?}
 *                        usage: as the agent says, {tokens?{}, context?{used, size}, sessionCost?{amount, currency},
 *                        cost?{amount, currency}}: of the turn, of the session's context behind it, of the session up to
 *                        then, and of the turn again: what the session's has grown by
 *                        output is its end, at most WEFT_TASK_TAIL bytes; the rest is in the session's stream, in the
 *                        events from outputFrom to outputTo (seq). outputTruncated: it said more, which is not kept
 *   question.asked       {questionId, number, taskId?, sessionId?, ruleId?, kind, title, options[], detail{}, digest,
 *                        timeoutMs?}
 *   question.answered    {questionId, taskId?, sessionId?, option, name?, by, text?, content?{}, approvalId?}
 *                        approvalId: the standing answer that answered it, or that was given with it. option: its id, "":
 *                        denied without one; name: the option's; text: what the person added, a reason for instance;
 *                        content: what was filled in
 *   approval.given       {approvalId, questionId, agent, sessionId, scope, toolKind, title?, command?[], path?, by}   what
 *                        this agent asks is allowed from now on, in this session (scope "session") or in the project, if it
 *                        is of this kind, with this title, a command that begins so, about files beneath path
 *   approval.revoked     {approvalId, by}
 *   question.expired     {questionId, taskId?, sessionId?}
 *   question.withdrawn   {questionId, taskId?, sessionId?, reason}   taskEnded, agentWithdrew
 *   question.orphaned    {questionId}                   its agent is gone with a daemon, the question stays open
 *   question.adopted     {questionId}                   its task runs again and asks the same: it is no longer orphaned
 *   doc.put              {collection, key, version, bytes, request?{}}   a value of a collection; it is in a document
 *   doc.deleted          {collection, key, version, request?{}}
 *   context.changed      {version, action, contextType, changes[{key, data?}]}   what planner and executor are to know of;
 *                        version: of the whole, with this change; action: add, modify, remove
 *   request.begun        {request, requestId, by, name, digest}   an action begins that is done at most once
 *   request.done         {request, requestId, by, name, digest, result? | error?}   what came of a request that is done
 *                        once; request is what it is known by. The member request of other events is the same
 *   agent.chosen         {agent|null}                   the default for tasks that name none; null: as configured
 *   automation.switched  {enabled, ruleId?}
 *   rule.fired           {ruleId, eventType, status, taskId?, questionId?, error?}
 *                        status: triggered, pendingApproval, approved, denied, failed, skipped
 *   notice               {message, ruleId?, level}      something to be shown to people; level: info, warning
 *   hub.started          {pid, version}
 *   hub.stopped          {observedMs}                   how long daemons have had this journal open, in all
 *   hub.recovered        {error, afterMs}               events can be stored again
 *   hub.counted          {tasks, questions, observedMs, totals{completed,failed,cancelled}}   the counters; and
 *   hub.kept             {type, time, data}             an event that still matters: in journals of earlier versions, read
 *                        and no longer written
 *
 * Stream "session/ID" (WEFT_STREAM_SESSION and the id): what an agent says.
 *
 *   session.output     {sessionId, taskId, attempt?, stream: "stdout"|"stderr", text}   attempt: absent in the first one
 *   session.update     {sessionId, taskId, attempt?, update{}}                one update of ACP v1, as it came; a tool call
 * that shows terminals of ours has what they printed behind each, and there is one more when they end session.elicited
 * {sessionId, taskId, elicitationId}           what a person was sent to a URL for is done session.usage      {sessionId,
 * taskId, usage{}}                 what a turn cost, as the agent says session.result     {sessionId, taskId, attempt,
 * result{}}       what a holder of a role answered that speaks the planner's protocol: its result, or {"error":{}}, as it
 * came
 *
 * Stream "files" (WEFT_STREAM_FILES): what the watcher saw.
 *
 *   file.create, file.modify, file.delete   {path, size?, depth?}   relative to the folder; depth: of causes
 *
 * Stream "cron":  cron.fired {job, schedule, action?}
 *
 * Stream "plans" (WEFT_STREAM_PLANS): what becomes of plans (engine/plans). A plan itself, and how far it is, are documents.
 *
 *   plan.created    {planId, request, tasks, by?}            tasks: how many
 *   plan.started    {planId, by?, timeLimitMs?}
 *   plan.task       {planId, id, state, taskId?, sessionId?, reason?, error?}   state: queued, running, completed, failed,
 *                   cancelled, skipped; taskId: the task of the queue; reason: of a task that failed, or
 *                   dependencyFailed, timeLimit, cancelled
 *   plan.stopping   {planId, reason, by?}                    what has not ended is cancelled or skipped: timeLimit,
 *                   cancelled
 *   plan.finished   {planId, state, reason?, completed, failed, cancelled, skipped}   state: completed, failed,
 *                   cancelled; reason: taskFailed, timeLimit, cancelled */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#define WEFT_STREAM_HUB "hub"
#define WEFT_STREAM_SESSION "session/"
#define WEFT_STREAM_FILES "files"
#define WEFT_STREAM_CRON "cron"
#define WEFT_STREAM_PLANS "plans"

/* How much of the end of a task's output the read model keeps and its last event holds. */
#define WEFT_TASK_TAIL (16 * 1024)

#endif
