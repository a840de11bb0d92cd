/* Params for the examples of the protocol reference, where those that are required do not show enough: params that must fit
 * each other, or values that only a few names stand for. A test sends every example of the page to a hub. */
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

const char *weft__sample_of_method(const char *method) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].method, method) == 0)
            return rows[i].params;
    return NULL;
}
