/* What is asked of an ACP agent besides turns: to set a mode, a model or an option of a session, to list the conversations
 * that it knows of, to delete one. And what the agent says that such settings are.
 *
 *     waiting ──process ready, session open──▶ sent ──answered, process gone──▶ told and freed
 *
 * A request is in the list of its process until it is told. Its call may outlive that: then the call frees it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "acp_private.h"

/* Agents read their files for it, or ask a server of their own. */
#define REQUEST_MS 60000
/* At a time in one process: nobody waits for more. */
#define MOST_REQUESTS 256
/* Bytes of what an agent says when it refuses. */
#define LONGEST_WHY 1024

typedef struct request {
    weft_link link;
    weft_driver_process *process;
    weft_driver_session *session; /* NULL: it is not about one that is open */
    const char *method;
    weft_driver_done *done; /* NULL: it belongs to the opening of the session */
    void *ctx;
    char *params; /* until it is sent */
    size_t len;
    char *settings; /* of the session, when this is set */
    weft_doc *mode; /* that is set with the opening; NULL: none */
    bool calling, over;
} request;

/* ---- memory ---- */

static void free_request(request *old) {
    weft_driver_process *process = old->process;
    if (old->calling || !old->over)
        return;
    weft__free(process->alloc, old->params);
    weft__free(process->alloc, old->settings);
    weft_doc_free(old->mode);
    if (old->session)
        weft__acp_session_release(old->session);
    weft__free(process->alloc, old);
    weft__acp_release(process);
}

static void end_request(request *old) {
    old->over = true;
    weft__list_remove(&old->link);
    if (old->session)
        old->session->sets--;
}

static size_t count_requests(const weft_driver_process *process) {
    size_t count = 0;
    for (weft_link *link = process->requests.next; link != &process->requests; link = link->next)
        count++;
    return count;
}

static int new_request(weft_driver_process *process, weft_driver_session *session, const char *method, weft_val params,
                       request **ret) {
    if (count_requests(process) >= MOST_REQUESTS)
        return -EBUSY;
    request *made = weft__zalloc(process->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    char *text;
    int r = weft_to_text(params, process->alloc, &text, &made->len);
    if (r < 0) {
        weft__free(process->alloc, made);
        return r;
    }
    made->params = text;
    made->process = process;
    made->session = session;
    made->method = method;
    weft__acp_hold(process);
    if (session) {
        weft__acp_session_hold(session);
        session->sets++;
    }
    weft__list_push(&process->requests, &made->link);
    *ret = made;
    return 0;
}

static void drop_request(request *old) {
    end_request(old);
    free_request(old);
}

/* ---- what the agent says of settings ---- */

static void tell_state(weft_driver_session *session, const char *name, const weft_json *value) {
    if (value->text && !session->closed && session->host->on_state)
        session->host->on_state(session->ctx, name, value);
}

static void read_options(weft_driver_session *session, const weft_json *options) {
    if (weft_typeof(options) != WEFT_ARRAY)
        return;
    session->has_options = true;
    *session->mode.option = *session->model.option = '\0';
    for (weft_iter it = weft_iterate(options); weft_next(&it);) {
        const char *category = weft_get_str(&it.value, "category", ""), *id = weft_get_str(&it.value, "id", "");
        weft_acp_knob *knob = strcmp(category, "mode") == 0    ? &session->mode
                              : strcmp(category, "model") == 0 ? &session->model
                                                               : NULL;
        if (knob && !*knob->option && strlen(id) < sizeof knob->option)
            memcpy(knob->option, id, strlen(id) + 1);
    }
}

void weft__acp_state_read(weft_driver_session *session, const weft_json *said) {
    weft_json modes = weft_get(said, "modes"), models = weft_get(said, "models"), options = weft_get(said, "configOptions");
    session->mode.known = weft_typeof(&modes) == WEFT_OBJECT;
    session->model.known = weft_typeof(&models) == WEFT_OBJECT;
    read_options(session, &options);
}

/* Every callback may close the session: the caller holds it, and nothing more is told then. */
void weft__acp_state_tell(weft_driver_session *session, const weft_json *said) {
    weft_json modes = weft_get(said, "modes"), models = weft_get(said, "models"), options = weft_get(said, "configOptions");
    if (session->mode.known)
        tell_state(session, "modes", &modes);
    if (session->model.known)
        tell_state(session, "models", &models);
    if (weft_typeof(&options) == WEFT_ARRAY)
        tell_state(session, "options", &options);
}

void weft__acp_state_update(weft_driver_session *session, const weft_json *update) {
    static const struct {
        const char *kind, *member, *name;
        weft_type type;
    } rows[] = {
        {"current_mode_update", "currentModeId", "mode", WEFT_STRING},
        {"config_option_update", "configOptions", "options", WEFT_ARRAY},
        {"available_commands_update", "availableCommands", "commands", WEFT_ARRAY},
        {"session_info_update", "title", "title", WEFT_STRING},
    };
    const char *kind = weft_get_str(update, "sessionUpdate", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_json value = weft_get(update, rows[i].member);
        weft_type type = weft_typeof(&value);
        bool cleared = type == WEFT_NULL && strcmp(rows[i].name, "title") == 0;
        if (strcmp(kind, rows[i].kind) != 0 || (type != rows[i].type && !cleared))
            continue;
        if (strcmp(rows[i].name, "options") == 0)
            read_options(session, &value);
        tell_state(session, rows[i].name, &value);
    }
}

/* ---- answers ---- */

/* A setting that belongs to the opening was not taken: a turn would run otherwise than was chosen. */
static void refuse_opening(weft_driver_session *session, const char *error) {
    if (session->turn != WEFT_ACP_WAITING || session->decided)
        return;
    weft__acp_decide(session, false, "settingRefused", "%s did not take a setting of this session: %s",
                     session->process->agent->name, error ? error : "out of memory");
    weft__acp_tell_end(session);
}

/* It is as it was asked to be: that is kept for the next opening, and told. */
static void note_set_done(request *old, const weft_json *result) {
    weft_driver_session *session = old->session;
    weft_json options = weft_get(result, "configOptions");
    if (old->settings) {
        weft__free(old->process->alloc, session->settings);
        session->settings = old->settings;
        old->settings = NULL;
    }
    if (weft_typeof(&options) == WEFT_ARRAY) {
        read_options(session, &options);
        tell_state(session, "options", &options);
    }
    /* When it was opened it said another one, and it need not say that it has changed it. */
    if (old->mode)
        tell_state(session, "mode", weft_doc_root(old->mode));
}

static void tell_request(request *old, int r, const weft_json *result, const char *error) {
    weft_driver_process *process = old->process;
    weft_driver_session *session = old->session;
    weft__acp_hold(process);
    if (session)
        weft__acp_session_hold(session);
    bool told = !process->freed && !(session && session->closed);
    end_request(old);
    if (session && told && r >= 0)
        note_set_done(old, result);
    if (old->done && told)
        old->done(old->ctx, r, result, error);
    else if (session && told && r < 0)
        refuse_opening(session, error);
    if (session && !session->closed && !process->freed)
        weft__acp_go_on(session);
    free_request(old);
    if (session)
        weft__acp_session_release(session);
    weft__acp_release(process);
}

static const char *why_refused(const weft_error *error, char ret[LONGEST_WHY]) {
    const char *detail = weft_str_of(&error->data, "");
    detail = weft_get_str(&error->data, "details", detail);
    snprintf(ret, LONGEST_WHY, "%s%s%s", error->message, *detail ? ": " : "", detail);
    return ret;
}

static void take_result(request *old, const weft_json *result) {
    char misfit[WEFT_SHAPE_WHY], why[WEFT_SHAPE_WHY + 48];
    int r = weft__acp_fits(old->process, old->method, result, misfit);
    snprintf(why, sizeof why, "its answer cannot be used: %s", r < 0 ? misfit : "");
    if (r < 0)
        tell_request(old, r == -ENOMEM ? r : -EREMOTEIO, NULL, why);
    else
        tell_request(old, 0, result, NULL);
}

/* A lost connection is not the end: the process is about to go, and then all requests are told. */
static void take_answer(request *old, int r, const weft_answer *answer) {
    char why[LONGEST_WHY];
    bool lost = r == -ECONNRESET || r == -ENOTCONN || r == -ECANCELED;
    if (old->over || lost)
        return;
    if (r >= 0 && answer->result)
        take_result(old, answer->result);
    else if (r >= 0)
        tell_request(old, answer->error->code == WEFT_METHOD_NOT_FOUND ? -EOPNOTSUPP : -EREMOTEIO, NULL,
                     why_refused(answer->error, why));
    else
        tell_request(old, r == -ETIMEDOUT || r == -ENOMEM ? r : -EREMOTEIO, NULL,
                     r == -ETIMEDOUT ? "it did not answer in time" : "its answer was not valid");
}

static void on_request_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    request *old = ctx;
    weft_driver_process *process = old->process;
    (void) peer;
    weft__acp_hold(process);
    /* The answer may be told, and then the request would be freed: it is ours until this returns. */
    take_answer(old, r, answer);
    old->calling = false;
    free_request(old);
    weft__acp_release(process);
}

/* ---- sending ---- */

static int send_request(request *one) {
    weft_call_opts opts = {.on_answer = on_request_answer, .ctx = one, .timeout_ms = REQUEST_MS};
    weft_driver_process *process = one->process;
    int r = weft_call_start(process->peer, one->method, weft_raw(one->params, one->len), &opts, NULL);
    if (r < 0 && r != -ENOTCONN)
        return r;
    one->calling = r >= 0; /* not connected: how the process ends says more */
    one->params = weft__free(process->alloc, one->params);
    return 0;
}

static bool is_request_due(const request *one) {
    return one->params && one->process->state == WEFT_ACP_READY && (!one->session || one->session->open);
}

/* Not from within the owner's call: what cannot be sent is told. */
static void send_due(weft_driver_process *process, const weft_driver_session *session) {
    weft_link *link = process->requests.next;
    while (!process->freed && link != &process->requests) {
        request *one = WEFT_CONTAINER(link, request, link);
        link = link->next;
        if (one->session != session || !is_request_due(one))
            continue;
        int r = send_request(one);
        if (r < 0) {
            tell_request(one, r, NULL, NULL);
            link = process->requests.next;
        }
    }
}

/* What the process cannot do is known when it is ready. */
static bool agent_offers(const weft_driver_process *process, const char *method) {
    return strcmp(method, "session/list") == 0     ? process->can_list
           : strcmp(method, "session/delete") == 0 ? process->can_delete
           : strcmp(method, "logout") == 0         ? process->can_logout
                                                   : true;
}

void weft__acp_requests_send(weft_driver_process *process) {
    weft__acp_hold(process);
    for (weft_link *link = process->requests.next; !process->freed && link != &process->requests;) {
        request *one = WEFT_CONTAINER(link, request, link);
        link = link->next;
        if (one->session || agent_offers(process, one->method))
            continue;
        tell_request(one, -EOPNOTSUPP, NULL, "it does not offer this");
        link = process->requests.next;
    }
    send_due(process, NULL);
    weft__acp_release(process);
}

void weft__acp_requests_finish(weft_driver_process *process) {
    const weft_process_end *end = &process->process_end;
    const char *why = end->error == -ENOENT ? "its program is not installed"
                      : end->error < 0      ? "it could not be started"
                                            : "it ended before it answered";
    while (!process->freed && !weft__list_empty(&process->requests))
        tell_request(WEFT_CONTAINER(process->requests.next, request, link), -EPIPE, NULL, why);
}

void weft__acp_requests_drop(weft_driver_process *process, const weft_driver_session *session) {
    for (weft_link *link = process->requests.next, *next; link != &process->requests; link = next) {
        request *one = WEFT_CONTAINER(link, request, link);
        next = link->next;
        if (!session || one->session == session)
            drop_request(one);
    }
}

/* ---- setting ---- */

/* How this agent is told; 0, or -EOPNOTSUPP: it has no such thing. */
static int ask_to_set(weft_driver_session *session, const weft_session_setting *setting, request **ret) {
    const weft_acp_knob *knob = strcmp(setting->name, "mode") == 0    ? &session->mode
                                : strcmp(setting->name, "model") == 0 ? &session->model
                                                                      : NULL;
    const char *option = knob && *knob->option ? knob->option : setting->option;
    bool is_bool = weft_typeof(&setting->value) == WEFT_BOOL, is_mode = strcmp(setting->name, "mode") == 0;
    if (knob && knob->known)
        return new_request(
            session->process, session, is_mode ? "session/set_mode" : "session/set_model",
            WEFT_OBJ({"sessionId", weft_str(session->id)}, {is_mode ? "modeId" : "modelId", weft_copy(&setting->value)}),
            ret);
    if (!option || !session->has_options)
        return -EOPNOTSUPP;
    return new_request(session->process, session, "session/set_config_option",
                       WEFT_OBJ({"sessionId", weft_str(session->id)}, {"configId", weft_str(option)},
                                {"type", is_bool ? weft_str("boolean") : weft_none()},
                                {"value", weft_copy(&setting->value)}),
                       ret);
}

static int apply_setting(void *ctx, const weft_session_setting *setting) {
    weft_driver_session *session = ctx;
    request *made;
    int r = ask_to_set(session, setting, &made);
    if (r >= 0 && strcmp(setting->name, "mode") == 0)
        r = weft_doc_keep(&setting->value, session->process->alloc, &made->mode);
    if (r == -EOPNOTSUPP)
        weft__acp_decide(session, false, "settingRefused", "%s has no %s%s%s that could be set, and this session has one",
                         session->process->agent->name, setting->name, setting->option ? " " : "",
                         setting->option ? setting->option : "");
    else if (r < 0)
        weft__acp_decide(session, true, "settingRefused", "memory was short for the settings of this session");
    return r;
}

int weft__acp_settings_apply(weft_driver_session *session) {
    weft_doc *doc = NULL;
    int r =
        session->settings ? weft_doc_parse(session->settings, strlen(session->settings), session->process->alloc, &doc) : 0;
    if (r >= 0 && doc)
        r = weft__settings_each(weft_doc_root(doc), apply_setting, session);
    weft_doc_free(doc);
    if (r < 0) {
        weft__acp_decide(session, true, "settingRefused", "the settings of this session could not be read");
        weft__acp_requests_drop(session->process, session);
    } else
        send_due(session->process, session);
    return r;
}

/* What the session will have once it is set. */
static int prepare_settings(weft_driver_session *session, const weft_session_setting *setting, request *made) {
    return weft__settings_put(session->settings, setting, session->process->alloc, &made->settings);
}

int weft__acp_set(weft_driver_session *session, const weft_session_setting *setting, weft_driver_done *done, void *ctx) {
    weft_driver_process *process = session->process;
    request *made;
    if (process->state >= WEFT_ACP_LEAVING || process->gone)
        return -EPIPE;
    if (!session->open)
        return session->opening || process->state == WEFT_ACP_INITIALIZING ? -EAGAIN : -ENOTCONN;
    int r = ask_to_set(session, setting, &made);
    if (r < 0)
        return r;
    made->done = done;
    made->ctx = ctx;
    r = prepare_settings(session, setting, made);
    if (r >= 0)
        r = send_request(made);
    if (r < 0)
        drop_request(made);
    return r;
}

/* ---- about conversations that are not open ---- */

static int ask_process(weft_driver_process *process, const char *method, weft_val params, weft_driver_done *done,
                       void *ctx) {
    request *made;
    if (process->state >= WEFT_ACP_LEAVING || process->gone)
        return -EPIPE;
    if (process->state == WEFT_ACP_READY && !agent_offers(process, method))
        return -EOPNOTSUPP;
    int r = new_request(process, NULL, method, params, &made);
    if (r < 0)
        return r;
    made->done = done;
    made->ctx = ctx;
    r = is_request_due(made) ? send_request(made) : 0;
    if (r < 0)
        drop_request(made);
    return r;
}

int weft__acp_list(weft_driver_process *process, const char *folder, const char *cursor, weft_driver_done *done, void *ctx) {
    return ask_process(process, "session/list",
                       WEFT_OBJ({"cwd", weft_str_or_none(folder)}, {"cursor", weft_str_or_none(cursor)}), done, ctx);
}

int weft__acp_remove(weft_driver_process *process, const char *agent_session, weft_driver_done *done, void *ctx) {
    return ask_process(process, "session/delete", WEFT_OBJ({"sessionId", weft_str(agent_session)}), done, ctx);
}

int weft__acp_logout(weft_driver_process *process, weft_driver_done *done, void *ctx) {
    return ask_process(process, "logout", weft_obj(NULL, 0), done, ctx);
}
