/* An agent that is not logged in says so when a session is opened (-32000). A person is asked how to log in, the agent is
 * told (authenticate), and the session is opened again.
 *
 *     refused ──asked──▶ a person ──a way──▶ authenticate ──answered──▶ opened again
 *                                 ──try again──▶ opened again          ──refused──▶ asked again
 *                                 ──give up, or nobody──▶ the turn fails: authRequired
 *
 * So often, and no more: an agent that does not get further ends its turn. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "acp_private.h"
#include "visible.h"

#define MOST_LOGINS 3
/* A person logs in with a browser meanwhile. */
#define AUTHENTICATE_MS 600000
/* As many ways as are named; an id goes back whole. */
#define MOST_METHODS 8
#define LONGEST_ID 1024
#define LONGEST_NAME 100

#define WAY_RETRY "weft:retry"
#define WAY_STOP "weft:stop"

/* ---- asking ---- */

typedef struct ways {
    size_t count;
    weft_val list[MOST_METHODS + 2];
    weft_member members[MOST_METHODS + 2][3];
    weft_buf names[MOST_METHODS];
} ways;

static void put_way(ways *to, weft_val id, weft_val name, const char *kind) {
    weft_member *members = to->members[to->count];
    members[0] = (weft_member){"id", id};
    members[1] = (weft_member){"name", name};
    members[2] = (weft_member){"kind", weft_str(kind)};
    to->list[to->count++] = weft_obj(members, 3);
}

/* Ways that run in a terminal or need another environment are not for authenticate: they are said, and then one tries again.
 */
static bool is_callable(const weft_json *method) {
    const char *id = weft_get_str(method, "id", ""), *type = weft_get_str(method, "type", "agent");
    return *id && strlen(id) <= LONGEST_ID && strcmp(type, "agent") == 0 && strcmp(id, WAY_RETRY) != 0 &&
           strcmp(id, WAY_STOP) != 0;
}

static int name_way(const weft_alloc *alloc, const weft_json *method, weft_buf *ret) {
    weft_json name = weft_get(method, "name"), about = weft_get(method, "description"), id = weft_get(method, "id");
    weft_bytes text;
    int r = 0;
    if (weft_bytes_of(&name, &text) >= 0 || weft_bytes_of(&id, &text) >= 0)
        r = weft__visible_put(ret, alloc, text, LONGEST_NAME);
    if (r >= 0 && weft_bytes_of(&about, &text) >= 0 && text.len) {
        r = weft__buf_put(ret, alloc, ": ", 2);
        if (r >= 0)
            r = weft__visible_put(ret, alloc, text, LONGEST_NAME);
    }
    return r;
}

static int read_ways(const weft_alloc *alloc, const weft_json *methods, ways *ret) {
    int r = 0;
    for (weft_iter it = weft_iterate(methods); r >= 0 && ret->count < MOST_METHODS && weft_next(&it);) {
        weft_buf *name = &ret->names[ret->count];
        weft_json id = weft_get(&it.value, "id");
        if (!is_callable(&it.value))
            continue;
        r = name_way(alloc, &it.value, name);
        if (r >= 0)
            put_way(ret, weft_copy(&id), weft_strn(weft__buf_head(name), weft__buf_len(name)), "allow_once");
    }
    put_way(ret, weft_str(WAY_RETRY), weft_str("Try again, because you have logged in"), "allow_once");
    put_way(ret, weft_str(WAY_STOP), weft_str("Give up"), "reject_once");
    return r;
}

static int ask_how(weft_driver_session *session, const weft_error *error) {
    const weft_alloc *alloc = session->process->alloc;
    const weft_buf *said = &session->process->methods;
    weft_doc *doc = NULL;
    ways found = {0};
    weft_json none = {0};
    int r = weft__buf_len(said) ? weft_doc_parse(weft__buf_head(said), weft__buf_len(said), alloc, &doc) : 0;
    if (r >= 0)
        r = read_ways(alloc, doc ? weft_doc_root(doc) : &none, &found);
    if (r >= 0)
        r = weft__acp_ask_host(
            session, &(weft_acp_asking){
                         .kind = WEFT_ACP_LOGIN,
                         .name = "login",
                         .title = {session->login, strlen(session->login)},
                         .fallback = "",
                         .options = weft_arr(found.list, found.count),
                         .detail = WEFT_OBJ({"error", weft_str(error->message)},
                                            {"authMethods", doc ? weft_copy(weft_doc_root(doc)) : weft_arr(NULL, 0)})});
    for (size_t i = 0; i < MOST_METHODS; i++)
        weft__buf_done(&found.names[i], alloc);
    weft_doc_free(doc);
    return r;
}

bool weft__acp_login_ask(weft_driver_session *session, const weft_error *error) {
    char sentence[WEFT_ACP_SENTENCE];
    if (error->code != WEFT_ACP_AUTH_REQUIRED || session->closed || session->turn != WEFT_ACP_WAITING ||
        session->only_open || session->cancelling || session->decided || session->process->state != WEFT_ACP_READY ||
        session->logins >= MOST_LOGINS)
        return false;
    weft__acp_say_login(session, error, sentence);
    char *copy = weft__strndup(session->process->alloc, sentence, strlen(sentence));
    if (!copy)
        return false;
    weft__free(session->process->alloc, session->login);
    session->login = copy;
    session->logins++;
    weft__acp_session_hold(session);
    bool asked = ask_how(session, error) >= 0;
    weft__acp_session_release(session);
    return asked;
}

/* ---- the answer ---- */

static void give_up(weft_driver_session *session) {
    weft__acp_decide(session, false, "authRequired", "%s", session->login ? session->login : "it is not logged in");
}

static void on_authenticated(weft_driver_session *session, int r, const weft_answer *answer) {
    const weft_driver_process *process = session->process;
    static const char late[] = "logging in took too long";
    weft_error silent = {.code = WEFT_ACP_AUTH_REQUIRED, .message = late};
    if (session->closed || process->state >= WEFT_ACP_LEAVING || r == -ECONNRESET || r == -ENOTCONN || r == -ECANCELED ||
        session->turn != WEFT_ACP_WAITING || session->decided)
        return;
    if (r >= 0 && answer->result) {
        weft__acp_session_open(session);
        return;
    }
    weft_error again = r >= 0 ? *answer->error : silent;
    again.code = WEFT_ACP_AUTH_REQUIRED; /* whatever it says: it is still not logged in */
    if (!weft__acp_login_ask(session, &again)) {
        give_up(session);
        weft__acp_tell_end(session);
    }
}

void weft__acp_login_answer(weft_driver_session *session, const char *option) {
    weft_driver_process *process = session->process;
    int r = 0;
    if (session->closed || session->turn != WEFT_ACP_WAITING || session->decided || process->state != WEFT_ACP_READY)
        return;
    if (option && strcmp(option, WAY_RETRY) == 0)
        r = weft__acp_session_open(session);
    else if (option && strcmp(option, WAY_STOP) != 0)
        r = weft__acp_call(session, "authenticate", WEFT_OBJ({"methodId", weft_str(option)}), on_authenticated,
                           AUTHENTICATE_MS);
    else {
        give_up(session);
        weft__later(process->loop, &session->later);
    }
    (void) r; /* what could not be sent has ended the process, and with it the turn */
}
