/* status/get, and which session and state it is about. */
#include <string.h>

#include "cdev.h"
#include "reply.h"

static const char *state_of(const weft_task *task) {
    if (!task || task->state > WEFT_TASK_RUNNING)
        return "idle";
    if (task->stopping)
        return "stopping";
    return task->state == WEFT_TASK_RUNNING && task->pid ? "running" : "starting";
}

static const weft_session *busy(const weft_hub *hub, const char *id) {
    const weft_session *session = id ? weft__session_find(hub->engine, id) : NULL;
    return session && session->busy ? session : NULL;
}

const weft_session *weft__cdev_session(const weft_hub *hub, weft_peer *peer) {
    const weft_hub_client *client = weft__hub_client_of(hub->clients, peer);
    const weft_session *found = client ? busy(hub, weft__hub_client_session(client)) : NULL, *only = NULL;
    size_t count = 0;
    for (const weft_session *session = weft__session_newest(hub->engine); session && !found;
         session = weft__session_older(hub->engine, session)) {
        if (!session->busy)
            continue;
        if (client && weft__hub_client_watches(client, session->id))
            found = session;
        only = count++ ? NULL : session;
    }
    return found ? found : only;
}

static const char *name_of(const char *folder) {
    const char *slash = strrchr(folder, '/');
    return slash && slash[1] ? slash + 1 : folder;
}

/* Unknown members are left out, never null. */
int weft__cdev_status(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const weft_hub_host *host = hub->host;
    const weft_session *session = weft__cdev_session(hub, weft_req_peer(req));
    const char *id = !session ? NULL : session->turn ? session->turn : session->task;
    const weft_task *task = id ? weft__task_find(hub->engine, id) : NULL;
    const weft_agent *agent = weft__agent_default(hub->engine);
    const char *folder = weft__engine_folder(hub->engine), *state = state_of(task);
    bool watching = hub->automation && weft__automation_health(hub->automation).watching;
    (void) params;
    return weft_reply(req,
                      WEFT_OBJ({"session_id", weft_str_or_none(session ? session->id : NULL)},
                               {"agent_session_id", weft_str_or_none(session ? session->agent_session : NULL)},
                               {"agent_state", weft_str(state)}, {"claude_state", weft_str(state)},
                               {"agent_type", weft_str_or_none(session ? session->agent
                                                               : agent ? agent->name
                                                                       : NULL)},
                               {"connected_clients", weft_uint(hub->server ? weft_server_clients(hub->server) : 0)},
                               {"repo_path", weft_str(folder)}, {"repo_name", weft_str(name_of(folder))},
                               {"uptime_seconds", weft_int(host->uptime_s(host->ctx))}, {"version", weft_str(host->version)},
                               {"watcher_enabled", weft_bool(watching)}, {"git_enabled", weft_bool(false)}));
}
