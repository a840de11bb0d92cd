/* status/get, and what it is about: which session, which state, which project. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cdev.h"
#include "hash.h"
#include "reply.h"

const char *weft__cdev_state_of(const weft_task *task) {
    if (!task || task->state > WEFT_TASK_RUNNING)
        return "idle";
    if (task->stopping)
        return "stopping";
    return task->state == WEFT_TASK_RUNNING && task->pid ? "running" : "starting";
}

static const weft_task *task_of(const weft_hub *hub, const weft_session *session) {
    const char *id = !session ? NULL : session->turn ? session->turn : session->task;
    return id ? weft__task_find(hub->engine, id) : NULL;
}

static size_t count_open_tasks(const weft_hub *hub) {
    weft_task_counts counts = weft__task_counts(hub->engine);
    return (size_t) (counts.of[WEFT_TASK_QUEUED] + counts.of[WEFT_TASK_RUNNING]);
}

/* The next session with a task, the newest first; NULL: there is none. after NULL: the first. *left are the open tasks that
 * were not met yet: most sessions have none, and there may be thousands, so the search ends with the last of these. */
static const weft_session *next_busy(const weft_hub *hub, const weft_session *after, size_t *left) {
    const weft_session *session = after ? weft__session_older(hub->engine, after) : weft__session_newest(hub->engine);
    while (session && *left && !session->busy)
        session = weft__session_older(hub->engine, session);
    if (!session || !*left)
        return NULL;
    *left -= session->turns < *left ? session->turns : *left;
    return session;
}

/* One that runs says more than one that starts or stops. */
const char *weft__cdev_state(const weft_hub *hub) {
    const char *state = "idle";
    size_t left = count_open_tasks(hub);
    for (const weft_session *session = NULL; strcmp(state, "running") != 0 && (session = next_busy(hub, session, &left));)
        state = weft__cdev_state_of(task_of(hub, session));
    return state;
}

static const weft_session *find_busy(const weft_hub *hub, const char *id) {
    const weft_session *session = id ? weft__session_find(hub->engine, id) : NULL;
    return session && session->busy ? session : NULL;
}

const weft_session *weft__cdev_session(const weft_hub *hub, weft_peer *peer) {
    const weft_hub_client *client = peer ? weft__hub_client_of(hub->clients, peer) : NULL;
    const weft_session *found = client ? find_busy(hub, weft__hub_client_session(client)) : NULL, *only = NULL;
    size_t count = 0, left = count_open_tasks(hub);
    for (const weft_session *session = NULL; !found && (session = next_busy(hub, session, &left));) {
        if (client && weft__hub_client_watches(client, session->id))
            found = session;
        only = count++ ? NULL : session;
    }
    return found ? found : only;
}

const char *weft__cdev_repo_name(const weft_hub *hub) {
    const char *folder = weft__engine_folder(hub->engine), *slash = strrchr(folder, '/');
    return slash && slash[1] ? slash + 1 : folder;
}

/* From the folder's path, so that it stays the same over restarts (FNV-1a, 64 bits). It names, it does not hide. */
const char *weft__cdev_workspace(const weft_hub *hub, char ret[CDEV_WORKSPACE]) {
    const char *folder = weft__engine_folder(hub->engine);
    snprintf(ret, CDEV_WORKSPACE, "ws-%016" PRIx64, weft__hash64_more(WEFT_HASH64, folder, strlen(folder)));
    return ret;
}

/* Unknown members are left out, never null. Where several agents run, and none of them is this client's, the state is that
 * of all of them, as in the heartbeat. */
int weft__cdev_status(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const weft_hub_host *host = hub->host;
    const weft_session *session = weft__cdev_session(hub, weft_req_peer(req));
    const weft_agent *agent = weft__agent_default(hub->engine);
    const char *state = session ? weft__cdev_state_of(task_of(hub, session)) : weft__cdev_state(hub);
    bool watching = hub->watching || (hub->automation && weft__automation_health(hub->automation).watching);
    char workspace[CDEV_WORKSPACE];
    (void) params;
    return weft_reply(req,
                      WEFT_OBJ({"session_id", weft_str_or_none(session ? session->id : NULL)},
                               {"agent_session_id", weft_str_or_none(session ? session->agent_session : NULL)},
                               {"agent_state", weft_str(state)}, {"claude_state", weft_str(state)},
                               {"agent_type", weft_str_or_none(session ? session->agent
                                                               : agent ? agent->name
                                                                       : NULL)},
                               {"connected_clients", weft_uint(hub->server ? weft_server_clients(hub->server) : 0)},
                               {"repo_path", weft_str(weft__engine_folder(hub->engine))},
                               {"repo_name", weft_str(weft__cdev_repo_name(hub))},
                               {"uptime_seconds", weft_int(host->uptime_s(host->ctx))}, {"version", weft_str(host->version)},
                               {"agent_version", weft_str(host->version)}, {"watcher_enabled", weft_bool(watching)},
                               {"git_enabled", weft_bool(weft__cdev_git_enabled(hub))},
                               {"workspace_id", weft_str(weft__cdev_workspace(hub, workspace))}));
}
