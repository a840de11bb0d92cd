/* Examples of the protocol reference that are written by hand. Params, where those that are required do not show enough:
 * they must fit each other, or only a few values have a meaning. A test sends every example of the page to a hub. */
#include "sample.h"

#include <string.h>

static const struct {
    const char *method, *params;
} rows[] = {
    {"agent/respond", "{\"tool_use_id\":\"question-0001\",\"response\":\"allow\"}"},
    {"execute_task", "{\"task_type\":\"code_generation\",\"prompt\":\"fix the tests\"}"},
    {"git.discard", "{\"paths\":[\"src/main.c\"]}"},
    {"git.stage", "{\"paths\":[\"src/main.c\"]}"},
    {"git.unstage", "{\"paths\":[\"src/main.c\"]}"},
    {"mcp/complete", "{\"server\":\"files\",\"prompt\":\"summary\",\"argument\":\"path\",\"value\":\"src\"}"},
    {"role.register", "{\"role\":\"executor\"}"},
    {"role.unregister", "{\"role\":\"executor\"}"},
    {"run_plan", "{\"planId\":\"plan_00000001\"}"},
    {"runner.hello",
     "{\"name\":\"box\",\"instance\":\"0f0e0d0c0b0a0908\",\"agents\":[\"demo\"],\"folders\":[\"project\"],\"slots\":2}"},
    {"sendTask", "{\"prompt\":\"fix the tests\",\"gates\":[\"test\"]}"},
    {"session/elements", "{\"session_id\":\"session-0003\"}"},
    {"session/get", "{\"session_id\":\"session-0003\"}"},
    {"session/messages", "{\"session_id\":\"session-0003\"}"},
    {"session/watch", "{\"session_id\":\"session-0003\"}"},
    {"session/new", "{\"cwd\":\"/home/ann/project\",\"mcpServers\":[]}"},
    {"session/load", "{\"sessionId\":\"session-0003\",\"cwd\":\"/home/ann/project\",\"mcpServers\":[]}"},
    {"session/resume", "{\"sessionId\":\"session-0003\",\"cwd\":\"/home/ann/project\"}"},
    {"session/prompt", "{\"sessionId\":\"session-0003\",\"prompt\":[{\"type\":\"text\",\"text\":\"fix the tests\"}]}"},
    {"session/set_mode", "{\"sessionId\":\"session-0003\",\"modeId\":\"allow\"}"},
    {"session/set_config_option", "{\"sessionId\":\"session-0003\",\"configId\":\"effort\",\"value\":\"high\"}"},
    {"task.changes", "{\"taskId\":\"task-0003\"}"},
    {"task.diff", "{\"taskId\":\"task-0003\"}"},
    {"task.comment", "{\"taskId\":\"task-0003\",\"comments\":[{\"path\":\"src/main.c\",\"line\":12,\"text\":\"this should "
                     "be a constant\"}]}"},
    {"tinyvex/action",
     "{\"requestId\":\"1\",\"name\":\"agent.prompt\",\"args\":{\"threadId\":\"session-0003\",\"text\":\"fix the tests\"}}"},
    {"tinyvex/auth.setToken", "{\"token\":null}"},
    {"tinyvex/mutation", "{\"requestId\":\"1\",\"name\":\"thread.create\",\"args\":{\"title\":\"docs\"}}"},
    {"tinyvex/subscribe", "{\"subId\":\"t\",\"name\":\"tasks\"}"},
    {"update_context",
     "{\"action\":\"add\",\"context_type\":\"file\",\"data\":{\"path\":\"src/main.c\",\"content\":\"int main(void) {}\"}}"},
};

/* Results, where values of the right type would mislead: what options look like, which ids belong to which list. The test
 * checks them against the schemas. */
static const struct {
    const char *method, *result;
} results[] = {
    {"agent.list",
     "{\"default\":\"demo\",\"agents\":[{\"name\":\"demo\",\"driver\":\"demo\",\"command\":[],\"found\":true,\"isDefault\""
     ":true,\"preset\":true}]}"},
    {"automation.disable", "{\"enabled\":false,\"success\":true}"},
    {"automation.status",
     "{\"enabled\":true,\"ruleCount\":1,\"rules\":[{\"id\":\"lint\",\"trigger\":{\"type\":\"file.modify\",\"pattern\":\"s"
     "rc/**/*.c\"},\"action\":{\"type\":\"agent\",\"prompt\":\"Lint {{payload.path}}\"},\"enabled\":true,\"cooldownM"
     "s\":5000,\"requiresApproval\":false}],\"recentExecutions\":[{\"ruleId\":\"lint\",\"eventType\":\"file.modify"
     "\",\"status\":\"triggered\",\"timestamp\":\"2026-01-01T12:00:05.000Z\",\"taskId\":\"task-0003\"}]}"},
    {"daemon.status",
     "{\"pid\":4711,\"uptime_seconds\":60,\"started_at\":\"2026-01-01T12:00:00.000Z\",\"health\":\"healthy\",\"subs"
     "ystems\":{\"ipc\":{\"clients\":1},\"supervisor\":{\"running\":1,\"queued\":1,\"maxConcurrency\":4,\"tasks\":{\"r"
     "unning\":[{\"id\":\"task-0003\",\"prompt\":\"fix the tests\",\"agent\":null,\"startedAt\":\"2026-01-01T12:00:0"
     "1.000Z\",\"pid\":4712}],\"queued\":[{\"id\":\"task-0004\",\"prompt\":\"write the manual\",\"agent\":null,\"prior"
     "ity\":0}]}},\"automation\":{\"enabled\":true,\"ruleCount\":1,\"rules\":[{\"id\":\"lint\",\"trigger\":{\"type\":\"f"
     "ile.modify\",\"pattern\":\"src/**/*.c\"},\"action\":{\"type\":\"agent\",\"prompt\":\"Lint {{payload.path}}\"},\""
     "enabled\":true,\"cooldownMs\":5000,\"requiresApproval\":false}],\"recentExecutions\":[{\"ruleId\":\"lint\","
     "\"eventType\":\"file.modify\",\"status\":\"triggered\",\"timestamp\":\"2026-01-01T12:00:05.000Z\",\"taskId\":\""
     "task-0003\"}]},\"file_watcher\":{\"enabled\":true},\"scheduler\":{\"enabled\":false},\"messaging\":{\"enable"
     "d\":false}}}"},
    {"question.answer", "{\"answered\":true,\"questionId\":\"question-0001\",\"option\":\"allow_once\"}"},
    {"question.list",
     "{\"questions\":[{\"id\":\"question-0001\",\"taskId\":\"task-0003\",\"sessionId\":\"session-0003\",\"ruleId\":nul"
     "l,\"kind\":\"permission\",\"title\":\"Write notes.txt\",\"options\":[{\"id\":\"allow_once\",\"name\":\"Allow once"
     "\",\"kind\":\"allow_once\"},{\"id\":\"reject_once\",\"name\":\"Reject\",\"kind\":\"reject_once\"}],\"detail\":{\"too"
     "lCallId\":\"edit-1\",\"title\":\"Write notes.txt\",\"kind\":\"edit\",\"status\":\"pending\"},\"state\":\"open\",\"or"
     "phaned\":false,\"createdAt\":\"2026-01-01T12:00:01.000Z\",\"expiresAt\":null}]}"},
    {"session.create",
     "{\"session\":{\"id\":\"session-0003\",\"agent\":\"demo\",\"createdAt\":\"2026-01-01T12:00:00.000Z\",\"updatedAt"
     "\":\"2026-01-01T12:00:05.000Z\",\"taskId\":null,\"busy\":false,\"tasks\":0,\"folder\":\"\",\"closed\":false,\"tu"
     "rn\":null,\"turns\":0,\"agentSessionId\":null,\"settings\":{},\"mcpServers\":[]}}"},
    {"session.get",
     "{\"session\":{\"id\":\"session-0003\",\"agent\":\"demo\",\"createdAt\":\"2026-01-01T12:00:00.000Z\",\"updatedAt"
     "\":\"2026-01-01T12:00:05.000Z\",\"taskId\":\"task-0003\",\"busy\":false,\"tasks\":1,\"folder\":\"\",\"closed\":fa"
     "lse,\"turn\":null,\"turns\":1,\"agentSessionId\":\"demo-c1f7\",\"settings\":{},\"mcpServers\":[]}}"},
    {"session.list", "{\"sessions\":[{\"id\":\"session-0003\",\"agent\":\"demo\",\"createdAt\":\"2026-01-01T12:00:00.000Z\","
                     "\"updatedAt\":\"2026-01-01T12:00:05.000Z\",\"taskId\":\"task-0003\",\"busy\":false,\"tasks\":1,"
                     "\"prompt\":\"fix the tests\"}],\"total\":1}"},
    {"task.about",
     "{\"tasks\":[{\"id\":\"task-0003\",\"agent\":\"demo\",\"sessionId\":\"session-0003\",\"attempt\":1,\"retries\":0,\"t"
     "imeoutMs\":7200000,\"reason\":\"\",\"stopReason\":\"end_turn\"}]}"},
    {"task.changes",
     "{\"taskId\":\"task-0003\",\"files\":[{\"path\":\"src/main.c\",\"change\":\"modified\",\"additions\":14,\"deletion"
     "s\":3}],\"total\":1,\"added\":0,\"modified\":1,\"deleted\":0,\"renamed\":0,\"additions\":14,\"deletions\":3,\"tr"
     "uncated\":false,\"running\":false}"},
    {"task.diff", "{\"taskId\":\"task-0003\",\"diff\":\"diff --git a/src/main.c b/src/main.c\\n--- a/src/main.c\\n+++ b/src/"
                  "main.c\\n@@ -1 +1 @@\\n-old\\n+new\\n\",\"truncated\":false}"},
    {"task.get",
     "{\"id\":\"task-0003\",\"prompt\":\"fix the tests\",\"agent\":null,\"priority\":0,\"state\":\"completed\",\"create"
     "dAt\":\"2026-01-01T12:00:00.000Z\",\"startedAt\":\"2026-01-01T12:00:01.000Z\",\"completedAt\":\"2026-01-01"
     "T12:00:05.000Z\",\"pid\":null,\"result\":\"done\\n\",\"error\":null,\"output\":\"done\\n\",\"metadata\":{}}"},
    {"task.list",
     "[{\"id\":\"task-0003\",\"prompt\":\"fix the tests\",\"agent\":null,\"priority\":0,\"state\":\"completed\",\"creat"
     "edAt\":\"2026-01-01T12:00:00.000Z\",\"startedAt\":\"2026-01-01T12:00:01.000Z\",\"completedAt\":\"2026-01-0"
     "1T12:00:05.000Z\",\"pid\":null,\"result\":\"done\\n\",\"error\":null,\"output\":\"done\\n\",\"metadata\":{}}]"},
    {"task.merge",
     "{\"taskId\":\"task-0003\",\"ok\":true,\"branch\":\"weft/task-0003\",\"strategy\":\"merge\",\"files\":1,\"conflict"
     "s\":[],\"conflictCount\":0}"},
    {"task.stats", "{\"total\":4,\"queued\":0,\"running\":1,\"completed\":2,\"failed\":1,\"cancelled\":0}"},
    {"task.undo", "{\"taskId\":\"task-0003\",\"ok\":true,\"files\":1,\"conflicts\":[],\"conflictCount\":0}"},
    {"worktree.list",
     "{\"worktrees\":[{\"name\":\"task-0003\",\"path\":\"/home/ann/project/.weft/worktrees/task-0003\",\"branch\":"
     "\"weft/task-0003\",\"sessionId\":\"session-0003\",\"taskId\":\"task-0003\",\"state\":\"free\",\"changed\":0,\"unk"
     "nown\":0,\"commits\":0,\"bytes\":8192,\"files\":2}]}"},
};

const char *weft__sample_of_method(const char *method) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].params;
    return NULL;
}

const char *weft__sample_of_result(const char *method) {
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (strcmp(results[i].method, method) == 0)
            return results[i].result;
    return NULL;
}
