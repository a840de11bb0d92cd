/* Standing answers: given with an answer in one append, kept as their events say them, and compared with what is asked. */
#include "approval.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "form.h"
#include "tool_call.h"
#include "worktrees.h"
#include "write.h"

#define APPROVAL_BYTES 8192 /* of one: a command, a path */

struct known_approval {
    weft_link link;
    int64_t time_ms;
    char id[ENGINE_ID];
    size_t len;
    char text[]; /* the event's data */
};

/* ---- what is known ---- */

static struct known_approval *find_approval(const weft_engine *engine, const char *id) {
    for (weft_link *link = engine->approvals.next; id && link != &engine->approvals; link = link->next)
        if (strcmp(WEFT_CONTAINER(link, struct known_approval, link)->id, id) == 0)
            return WEFT_CONTAINER(link, struct known_approval, link);
    return NULL;
}

static void drop_approval(weft_engine *engine, struct known_approval *old) {
    weft__list_remove(&old->link);
    weft__free(engine->alloc, old);
    engine->approval_count--;
}

static int add_approval(weft_engine *engine, int64_t time_ms, const weft_json *data) {
    char id[ENGINE_ID];
    if (!weft__id(data, "approvalId", id) || !*id || data->len > APPROVAL_BYTES)
        return -EBADMSG;
    if (find_approval(engine, id) || engine->approval_count >= WEFT_APPROVALS)
        return 0;
    struct known_approval *made = weft__alloc(engine->alloc, sizeof *made + data->len);
    if (!made)
        return -ENOMEM;
    made->time_ms = time_ms;
    made->len = data->len;
    memcpy(made->id, id, sizeof made->id);
    memcpy(made->text, data->text, data->len);
    weft__list_push(&engine->approvals, &made->link);
    engine->approval_count++;
    return 0;
}

/* ---- events ---- */

int weft__approval_apply_given(weft_engine *engine, const weft_event *event, const weft_json *data) {
    return event->gseq <= engine->approvals_at ? 0 : add_approval(engine, event->time_ms, data);
}

int weft__approval_apply_revoked(weft_engine *engine, const weft_event *event, const weft_json *data) {
    char id[ENGINE_ID];
    struct known_approval *known = find_approval(engine, weft__id(data, "approvalId", id));
    (void) event;
    if (known)
        drop_approval(engine, known);
    return 0;
}

/* What was given for a session goes with it. */
void weft__approvals_forget_session(weft_engine *engine, const char *session) {
    for (weft_link *link = engine->approvals.next, *next; link != &engine->approvals; link = next) {
        struct known_approval *known = WEFT_CONTAINER(link, struct known_approval, link);
        weft_doc *doc = NULL;
        next = link->next;
        if (weft_doc_parse(known->text, known->len, engine->alloc, &doc) < 0)
            continue; /* it matches nothing any more, and can be revoked */
        bool its = weft__field_is(weft_doc_root(doc), "scope", "session") &&
                   weft__field_is(weft_doc_root(doc), "sessionId", session);
        weft_doc_free(doc);
        if (its)
            drop_approval(engine, known);
    }
}

/* ---- saved ---- */

int weft__approvals_write(const weft_engine *engine, weft_buf *out) {
    int r = weft__buf_put(out, engine->alloc, "[", 1);
    for (weft_link *link = engine->approvals.next; r >= 0 && link != &engine->approvals; link = link->next) {
        const struct known_approval *one = WEFT_CONTAINER(link, struct known_approval, link);
        weft_val value = WEFT_OBJ({"time", weft_int(one->time_ms)}, {"data", weft_raw(one->text, one->len)});
        if (link != engine->approvals.next)
            r = weft__buf_put(out, engine->alloc, ",", 1);
        if (r >= 0)
            r = weft__write_val(out, engine->alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, engine->alloc, "]", 1);
}

int weft__approvals_restore(weft_engine *engine, const weft_json *saved, uint64_t at) {
    engine->approvals_at = at;
    for (weft_iter it = weft_iterate(saved); weft_next(&it);) {
        weft_json data = weft_get(&it.value, "data");
        if (weft_typeof(&data) == WEFT_OBJECT && add_approval(engine, weft_get_int(&it.value, "time", 0), &data) == -ENOMEM)
            return -ENOMEM;
    }
    return 0;
}

void weft__approvals_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->approvals))
        drop_approval(engine, WEFT_CONTAINER(engine->approvals.next, struct known_approval, link));
}

/* ---- comparing ---- */

/* The files of a session: the project's or those of its worktree; and where its agent works in them. Both are absolute.
 * false: they are not there, or the path is too long. */
typedef struct session_place {
    char root[WEFT_TOOL_PATH], folder[WEFT_TOOL_PATH];
} session_place;

static bool find_place(const weft_engine *engine, const char *session, session_place *ret) {
    const known_session *known = weft__session_known(engine, session);
    const char *beneath = known ? known->pub.folder : "";
    char path[PATH_MAX];
    bool apart = known && known->pub.isolation;
    if (apart && (!known->pub.worktree || !engine->opts.snapshots ||
                  weft__worktree_path(engine->opts.snapshots, known->pub.worktree, path) < 0))
        return false;
    int n = snprintf(ret->root, sizeof ret->root, "%s", apart ? path : engine->folder);
    int m = snprintf(ret->folder, sizeof ret->folder, "%s%s%s", apart ? path : engine->folder, *beneath && !apart ? "/" : "",
                     apart ? "" : beneath);
    return n >= 0 && n < WEFT_TOOL_PATH && m >= 0 && m < WEFT_TOOL_PATH;
}

/* A link on the way may lead anywhere, and a clone brings links. */
static bool is_in_place(const session_place *place, const char *said, const char *top) {
    char path[WEFT_TOOL_PATH];
    return weft__tool_path(place->root, place->folder, said, path) && weft__tool_beneath(path, top) &&
           weft__tool_path_is_straight(place->root, path);
}

/* Every file that it is about, and at least one. */
static bool paths_are_beneath(const weft_engine *engine, const char *session, const weft_tool_call *call, const char *top) {
    session_place place;
    if (!call->path_count || !find_place(engine, session, &place))
        return false;
    for (size_t i = 0; i < call->path_count; i++)
        if (!is_in_place(&place, call->paths[i], top))
            return false;
    return true;
}

static bool runs_in_place(const weft_engine *engine, const char *session, const weft_tool_call *call) {
    session_place place;
    return !call->folder || (find_place(engine, session, &place) && is_in_place(&place, call->folder, ""));
}

/* The words of a command begin with these. A program that runs others is compared whole: its first words say nothing. */
static bool command_begins(const weft_tool_call *call, const weft_json *prefix) {
    size_t at = 0;
    for (weft_iter it = weft_iterate(prefix); weft_next(&it); at++) {
        const char *word = weft_str_of(&it.value, NULL);
        if (!word || at >= call->word_count || strcmp(word, call->words[at]) != 0)
            return false;
    }
    return at && (at == call->word_count || !weft__tool_runs_others(call->words[0]));
}

/* Does what a person allowed cover this? */
static bool covers(const weft_engine *engine, const weft_json *given, const weft_question *question, const char *agent,
                   const weft_tool_call *call) {
    weft_json title = weft_get(given, "title"), command = weft_get(given, "command"), path = weft_get(given, "path");
    if (!weft__field_is(given, "agent", agent) || !call->kind || !weft__field_is(given, "toolKind", call->kind))
        return false;
    if (!weft__field_is(given, "scope", "project") && !weft__field_is(given, "sessionId", question->session))
        return false;
    if (title.text && (!call->title || !weft__value_says(&title, call->title)))
        return false;
    if (command.text && (!command_begins(call, &command) || !runs_in_place(engine, question->session, call)))
        return false;
    const char *top = path.text ? weft_str_of(&path, NULL) : NULL;
    return !path.text || (top && paths_are_beneath(engine, question->session, call, top));
}

/* The call that a question asks about; NULL: none that could be compared. Free *ret_doc. */
static const weft_tool_call *call_of(const weft_engine *engine, const weft_question *question, weft_tool_call *room,
                                     weft_doc **ret_doc) {
    *ret_doc = NULL;
    if (strcmp(question->kind, "permission") != 0 || !question->session ||
        weft_doc_parse(question->detail, strlen(question->detail), engine->alloc, ret_doc) < 0)
        return NULL;
    weft__tool_call_read(weft_doc_root(*ret_doc), room);
    return room;
}

/* Without memory to look, a person is asked. */
static bool one_covers(const weft_engine *engine, const struct known_approval *one, const weft_question *question,
                       const char *agent, const weft_tool_call *call, char *ret_by, size_t size) {
    weft_doc *doc = NULL;
    if (weft_doc_parse(one->text, one->len, engine->alloc, &doc) < 0)
        return false;
    bool yes = covers(engine, weft_doc_root(doc), question, agent, call);
    if (yes)
        snprintf(ret_by, size, "%s", weft_get_str(weft_doc_root(doc), "by", ""));
    weft_doc_free(doc);
    return yes;
}

const char *weft__approval_for(const weft_engine *engine, const weft_question *question, const char *agent, char *ret_by,
                               size_t size) {
    weft_tool_call room;
    weft_doc *doc;
    const char *found = NULL;
    if (weft__list_empty(&engine->approvals))
        return NULL;
    const weft_tool_call *call = call_of(engine, question, &room, &doc);
    for (weft_link *link = engine->approvals.next; call && !found && link != &engine->approvals; link = link->next) {
        const struct known_approval *one = WEFT_CONTAINER(link, struct known_approval, link);
        if (one_covers(engine, one, question, agent, call, ret_by, size))
            found = one->id;
    }
    weft_doc_free(doc);
    return found;
}

/* ---- a task's own policy ---- */

const char *const weft__task_permissions[] = {NULL, "ask", "read", "edit", "all", NULL};

static bool is_one_of(const char *kind, const char *const *kinds) {
    for (; kind && *kinds; kinds++)
        if (strcmp(kind, *kinds) == 0)
            return true;
    return false;
}

/* Reading changes nothing; what edits must say which files, in the project. Deleting, running and fetching is asked for. */
bool weft__policy_allows(const weft_engine *engine, const weft_question *question, weft_task_permission permission) {
    static const char *const reads[] = {"read", "search", "think", NULL}, *const edits[] = {"edit", "move", NULL};
    weft_tool_call room;
    weft_doc *doc;
    if (strcmp(question->kind, "permission") != 0 || permission <= WEFT_TASK_ASKS)
        return false;
    if (permission == WEFT_TASK_MAY_ALL)
        return true;
    const weft_tool_call *call = call_of(engine, question, &room, &doc);
    bool inside = call && paths_are_beneath(engine, question->session, call, "");
    bool may = call && ((is_one_of(call->kind, reads) && (inside || !call->path_count)) ||
                        (permission == WEFT_TASK_MAY_EDIT && is_one_of(call->kind, edits) && inside));
    weft_doc_free(doc);
    return may;
}

/* ---- giving one ---- */

static int refuse_always(char *why, const char *text) {
    snprintf(why, WEFT_FORM_WHY, "%s", text);
    return -EDOM;
}

static bool is_list_of_words(const weft_json *command) {
    for (weft_iter it = weft_iterate(command); weft_next(&it);)
        if (!weft_str_of(&it.value, NULL))
            return false;
    return weft_typeof(command) == WEFT_ARRAY && weft_count(command);
}

/* What is asked now must itself be covered: nobody allows for good what nobody asked for. */
static int check_always(const weft_engine *engine, const weft_question *question, const weft_tool_call *call,
                        const weft_json *always, const char *top, char *why) {
    weft_json command = weft_get(always, "command"), path = weft_get(always, "path");
    if (!weft__field_is(always, "scope", "session") && !weft__field_is(always, "scope", "project"))
        return refuse_always(why, "scope must be \"session\" or \"project\"");
    if (!call || !call->kind)
        return refuse_always(why, "the agent does not say what kind of tool it wants to use");
    if (command.text && !is_list_of_words(&command))
        return refuse_always(why, "command must be a list of words");
    if (command.text && !command_begins(call, &command))
        return refuse_always(why, call->word_count ? "command must be how the command in question begins; one that runs "
                                                     "other programs must be given whole"
                                                   : "the question has no command that is only a program with arguments");
    if (command.text && !runs_in_place(engine, question->session, call))
        return refuse_always(why, "the command would run outside of the project");
    if (path.text && !top)
        return refuse_always(why, "path must be a file or folder in the project, without ..");
    if (path.text && !paths_are_beneath(engine, question->session, call, top))
        return refuse_always(why, "the question is not about files beneath path only");
    return 0;
}

/* As people write it: "./src/" for "src". */
static const char *top_of(const weft_engine *engine, const char *session, const weft_json *always,
                          char ret[WEFT_TOOL_PATH]) {
    const char *path = weft_get_str(always, "path", NULL);
    char clean[WEFT_TOOL_PATH];
    session_place place;
    if (!path || !session || !find_place(engine, session, &place))
        return NULL;
    path += strncmp(path, "./", 2) == 0 ? 2 : 0;
    int n = snprintf(clean, sizeof clean, "%s", path);
    if (n < 0 || (size_t) n >= sizeof clean)
        return NULL;
    while (n > 1 && clean[n - 1] == '/')
        clean[--n] = '\0';
    if (strcmp(clean, ".") == 0 || !*clean)
        return memcpy(ret, "", 1);
    return weft__tool_path(place.root, place.root, clean, ret);
}

/* "other" is everything that has no kind of its own: there the title says what it is. */
static bool says_little(const char *kind) {
    return strcmp(kind, "other") == 0;
}

int weft__approval_make(const weft_engine *engine, const known_question *question, const weft_json *always, const char *by,
                        weft_buf *out, char *why) {
    const known_task *task = weft__task_known(engine, question->pub.task);
    weft_tool_call room;
    weft_doc *doc;
    char id[ENGINE_ID], top[WEFT_TOOL_PATH];
    if (engine->approval_count >= WEFT_APPROVALS)
        return refuse_always(why, "there are as many standing answers as there may be; revoke one first");
    if (!task)
        return refuse_always(why, "only a question of a task's agent can have a permanent answer");
    const weft_tool_call *call = call_of(engine, &question->pub, &room, &doc);
    const char *path = top_of(engine, question->pub.session, always, top);
    int r = check_always(engine, &question->pub, call, always, path, why);
    if (r >= 0) {
        weft_json command = weft_get(always, "command");
        weft__name_numbered(id, "approval-", question->number);
        weft_val data =
            WEFT_OBJ({"approvalId", weft_str(id)}, {"questionId", weft_str(question->id)},
                     {"agent", weft_str(task->pub.runs_on)}, {"sessionId", weft_str(task->pub.session)},
                     {"scope", weft_str(weft_get_str(always, "scope", "session"))}, {"toolKind", weft_str(call->kind)},
                     {"title", says_little(call->kind) ? weft_str_or_none(call->title) : weft_none()},
                     {"command", command.text ? weft_copy(&command) : weft_none()},
                     {"path", path ? weft_str(path) : weft_none()}, {"by", weft_str(by ? by : "")});
        r = weft__write_val(out, engine->alloc, &data);
    }
    if (r >= 0 && weft__buf_len(out) > APPROVAL_BYTES)
        r = refuse_always(why, "it is too long");
    weft_doc_free(doc);
    return r;
}

/* ---- for everybody ---- */

int weft__approval_each(const weft_engine *engine, weft_approval_each *each, void *ctx) {
    for (weft_link *link = engine->approvals.next; link != &engine->approvals; link = link->next) {
        const struct known_approval *one = WEFT_CONTAINER(link, struct known_approval, link);
        weft_doc *doc = NULL;
        int r = weft_doc_parse(one->text, one->len, engine->alloc, &doc);
        if (r < 0)
            return r;
        each(ctx, one->id, one->time_ms, weft_doc_root(doc));
        weft_doc_free(doc);
    }
    return 0;
}

int weft__approval_revoke(weft_engine *engine, const char *id, const char *by, void (*done)(void *ctx, int r), void *ctx) {
    if (!find_approval(engine, id))
        return -ENOENT;
    return weft__engine_append(engine, WEFT_STREAM_HUB, "approval.revoked",
                               WEFT_OBJ({"approvalId", weft_str(id)}, {"by", weft_str(by ? by : "")}), done, ctx);
}
