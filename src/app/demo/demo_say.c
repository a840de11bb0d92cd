/* What the demo agent says and asks: the steps of its scripts, in the words of ACP v1. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo_turn.h"
#include "utf8.h"

/* Of a prompt that is repeated to whoever wrote it. */
#define QUOTED 200

void weft__demo_update(weft_peer *peer, const char *session, weft_val update) {
    if (peer)
        weft_notify(peer, "session/update", WEFT_OBJ({"sessionId", weft_str(session)}, {"update", update}));
}

static void send_update(weft_demo_turn *turn, weft_val value) {
    weft__demo_update(weft_req_peer(turn->req), turn->session->id, value);
}

/* ---- text ---- */

static void send_chunk(weft_demo_turn *turn, const char *kind, const char *text, size_t len) {
    send_update(turn, WEFT_OBJ({"sessionUpdate", weft_str(kind)},
                               {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_strn(text, len)})}));
}

void weft__demo_say(weft_demo_turn *turn, const char *text, size_t len) {
    send_chunk(turn, "agent_message_chunk", text, len);
    if (weft__buf_len(&turn->said) + len <= WEFT_DEMO_SAID)
        weft__buf_put(&turn->said, NULL, text, len);
}

static void say_formatted(weft_demo_turn *turn, const char *format, ...) WEFT_PRINTF(2, 3);
static void say_formatted(weft_demo_turn *turn, const char *format, ...) {
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return;
    weft__demo_say(turn, text, (size_t) n);
    free(text);
}

weft_demo_next weft__demo_think(weft_demo_turn *turn) {
    static const char thought[] = "I have no model to think with, so this is quickly decided.";
    send_chunk(turn, "agent_thought_chunk", thought, strlen(thought));
    return WEFT_DEMO_NEXT;
}

static int quoted_len(const char *text) {
    return (int) weft__utf8_fit(text, strcspn(text, "\r\n"), QUOTED);
}

weft_demo_next weft__demo_greet(weft_demo_turn *turn) {
    say_formatted(turn, "You said: \"%.*s\"%s\n\n", quoted_len(turn->prompt), turn->prompt,
                  turn->prompt[quoted_len(turn->prompt)] ? " ..." : "");
    return WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_introduce(weft_demo_turn *turn) {
    if (turn->session->turns > 1)
        say_formatted(turn, "This is turn %lld of our conversation. ", (long long) turn->session->turns);
    else
        say_formatted(turn,
                      "I am Weft's demo agent: a real program that speaks ACP, with no model behind it.\nI cost nothing. ");
    return WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_advise(weft_demo_turn *turn) {
    if (turn->session->turns > 1)
        say_formatted(turn, "Say \"edit\" and I ask before I change a file.\n");
    else
        say_formatted(turn, "\nThe first words of a prompt say what I do:\n\n%s", weft__demo_words);
    return WEFT_DEMO_NEXT;
}

/* ---- the plan ---- */

static const char *const plain_plan[] = {"Introduce myself", "Look at the folder", "Say what I can do"};
static const char *const edit_plan[] = {"Propose a change", "Ask whether I may", "Say what became of it"};

weft_demo_next weft__demo_plan(weft_demo_turn *turn) {
    const char *const *plan = turn->order.kind == WEFT_DEMO_EDIT ? edit_plan : plain_plan;
    weft_member members[3][3];
    weft_val entries[3];
    for (int i = 0; i < 3; i++) {
        const char *status = i < turn->planned ? "completed" : i == turn->planned ? "in_progress" : "pending";
        members[i][0] = (weft_member){"content", weft_str(plan[i])};
        members[i][1] = (weft_member){"priority", weft_str(i == 1 ? "high" : "medium")};
        members[i][2] = (weft_member){"status", weft_str(status)};
        entries[i] = weft_obj(members[i], 3);
    }
    send_update(turn, WEFT_OBJ({"sessionUpdate", weft_str("plan")}, {"entries", weft_arr(entries, 3)}));
    turn->planned++;
    return WEFT_DEMO_NEXT;
}

/* ---- a tool that needs no permission ---- */

static void tool_id(const weft_demo_turn *turn, const char *name, char ret[64]) {
    snprintf(ret, 64, "%s-%lld", name, (long long) turn->session->turns);
}

weft_demo_next weft__demo_look(weft_demo_turn *turn) {
    char id[64];
    tool_id(turn, "look", id);
    send_update(turn, WEFT_OBJ({"sessionUpdate", weft_str("tool_call")}, {"toolCallId", weft_str(id)},
                               {"title", weft_str("Look at the folder")}, {"kind", weft_str("read")},
                               {"status", weft_str("in_progress")},
                               {"locations", WEFT_ARR(WEFT_OBJ({"path", weft_str(turn->session->folder)}))}));
    return WEFT_DEMO_NEXT;
}

static int count_entries(const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return count;
}

static void end_tool(weft_demo_turn *turn, const char *id, bool ok, const char *text) {
    weft_val content = WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(text)});
    send_update(turn, WEFT_OBJ({"sessionUpdate", weft_str("tool_call_update")}, {"toolCallId", weft_str(id)},
                               {"status", weft_str(ok ? "completed" : "failed")},
                               {"content", text ? WEFT_ARR(WEFT_OBJ({"type", weft_str("content")}, {"content", content}))
                                                : weft_none()}));
}

weft_demo_next weft__demo_looked(weft_demo_turn *turn) {
    char id[64], text[128];
    int count = count_entries(turn->session->folder);
    tool_id(turn, "look", id);
    if (count < 0)
        snprintf(text, sizeof text, "It cannot be read: %s", strerror(-count));
    else
        snprintf(text, sizeof text, "%d entr%s", count, count == 1 ? "y" : "ies");
    end_tool(turn, id, count >= 0, text);
    if (count >= 0)
        say_formatted(turn, "There %s %s in %s.\n", count == 1 ? "is" : "are", text, turn->session->folder);
    return WEFT_DEMO_NEXT;
}

/* ---- a question ---- */

static weft_val permission_options(void) {
    static const weft_member rows[4][3] = {
#define OPTION(id, name_)                                                                                                   \
    {                                                                                                                       \
        {"optionId", {.kind = WEFT_VAL_STR, .len = sizeof(id) - 1, .as = {.s = (id)}}},                                     \
            {"name", {.kind = WEFT_VAL_STR, .len = sizeof(name_) - 1, .as = {.s = (name_)}}}, {                             \
            "kind", {                                                                                                       \
                .kind = WEFT_VAL_STR, .len = sizeof(id) - 1, .as = {.s = (id) }                                             \
            }                                                                                                               \
        }                                                                                                                   \
    }
        OPTION("allow_once", "Allow once"),
        OPTION("allow_always", "Allow for this session"),
        OPTION("reject_once", "Reject"),
        OPTION("reject_always", "Reject for this session"),
#undef OPTION
    };
    static const weft_val options[4] = {
        {.kind = WEFT_VAL_OBJ, .len = 3, .as = {.members = rows[0]}},
        {.kind = WEFT_VAL_OBJ, .len = 3, .as = {.members = rows[1]}},
        {.kind = WEFT_VAL_OBJ, .len = 3, .as = {.members = rows[2]}},
        {.kind = WEFT_VAL_OBJ, .len = 3, .as = {.members = rows[3]}},
    };
    return weft_arr(options, 4);
}

/* The answer is one of our options, or that none was chosen, or no answer at all; whatever is not a yes is a no. */
static void take_permission(weft_demo_turn *turn, const weft_answer *answer) {
    weft_json outcome = answer && answer->result ? weft_get(answer->result, "outcome") : (weft_json){0};
    const char *option = weft_get_str(&outcome, "optionId", "");
    turn->outcome = "nothing";
    static const char *const options[] = {"allow_once", "allow_always", "reject_once", "reject_always"};
    for (size_t i = 0; i < 4; i++)
        if (strcmp(option, options[i]) == 0)
            turn->outcome = options[i];
    turn->allowed = strncmp(turn->outcome, "allow", 5) == 0;
    if (strstr(turn->outcome, "_always")) {
        turn->session->always = turn->outcome;
        weft__demo_history_always(turn->session, turn->outcome);
    }
}

static void on_permission_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_demo_turn *turn = ctx;
    (void) peer;
    if (r == -ECANCELED) /* by us: the turn is ending */
        return;
    turn->question = -1;
    if (r < 0)
        return; /* the connection is gone, and the turn is told so by its request */
    take_permission(turn, answer);
    weft__demo_turn_go_on(turn);
}

/* A tool call in its two forms: in an update it has a sessionUpdate, in a question it has none. */
static weft_val tool_call(const weft_member *members, size_t count, bool in_update) {
    return in_update ? weft_obj(members, count) : weft_obj(members + 1, count - 1);
}

static void with_tool_call(weft_demo_turn *turn, bool in_update, void (*use)(weft_demo_turn *turn, weft_val tool_call)) {
    char id[64], title[WEFT_DEMO_PATH + 16];
    const weft_demo_edit *edit = &turn->edit;
    bool edits = turn->order.kind == WEFT_DEMO_EDIT;
    const char *name = edits ? strrchr(edit->path, '/') + 1 : "";
    tool_id(turn, edits ? "edit" : "ask", id);
    snprintf(title, sizeof title, edits ? "Edit %s" : "Do nothing, with your permission", name);
    weft_val diff = WEFT_OBJ({"type", weft_str("diff")}, {"path", weft_str(edit->path)}, {"oldText", weft_str(edit->before)},
                             {"newText", weft_str(edit->after ? edit->after : "")});
    weft_val place = WEFT_OBJ({"path", weft_str(edit->path)});
    const weft_member members[] = {
        {"sessionUpdate", weft_str("tool_call")},
        {"toolCallId", weft_str(id)},
        {"title", weft_str(title)},
        {"kind", weft_str(edits ? "edit" : "other")},
        {"status", weft_str("pending")},
        {"content", edits ? weft_arr(&diff, 1) : weft_none()},
        {"locations", edits ? weft_arr(&place, 1) : weft_none()},
    };
    use(turn, tool_call(members, sizeof members / sizeof members[0], in_update));
}

static void request_permission(weft_demo_turn *turn, weft_val call) {
    weft_call_opts opts = {.on_answer = on_permission_answer, .ctx = turn, .timeout_ms = -1}; /* a person may be at lunch */
    int r = weft_call_start(
        weft_req_peer(turn->req), "session/request_permission",
        WEFT_OBJ({"sessionId", weft_str(turn->session->id)}, {"toolCall", call}, {"options", permission_options()}), &opts,
        &turn->question);
    if (r < 0)
        turn->outcome = "nothing";
}

weft_demo_next weft__demo_wonder(weft_demo_turn *turn) {
    with_tool_call(turn, true, send_update);
    return WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_ask(weft_demo_turn *turn) {
    if (!turn->edit.after && turn->order.kind == WEFT_DEMO_EDIT)
        return WEFT_DEMO_NEXT; /* there is nothing to ask for */
    const char *mode = turn->session->mode;
    const char *decided = strcmp(mode, "allow") == 0  ? "allow_once"
                          : strcmp(mode, "plan") == 0 ? "reject_once"
                                                      : turn->session->always;
    if (decided) {
        turn->outcome = decided;
        turn->allowed = strncmp(decided, "allow", 5) == 0;
        return WEFT_DEMO_NEXT;
    }
    with_tool_call(turn, false, request_permission);
    return turn->question >= 0 ? WEFT_DEMO_WAIT : WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_hear(weft_demo_turn *turn) {
    char id[64];
    tool_id(turn, "ask", id);
    end_tool(turn, id, turn->allowed, NULL);
    say_formatted(turn, "You chose %s.\n", turn->outcome);
    return WEFT_DEMO_NEXT;
}

/* ---- an edit ---- */

weft_demo_next weft__demo_propose(weft_demo_turn *turn) {
    int r = weft__demo_edit_plan(&turn->edit, turn->session->folder, turn->prompt);
    if (r < 0) {
        say_formatted(turn, "There is no file here that I may edit: %s.\n",
                      r == -EEXIST ? "all names that I would use are taken" : strerror(-r));
        return WEFT_DEMO_NEXT;
    }
    say_formatted(turn, "I have no model. Whatever you want changed, I write a line into\n%s.\n",
                  strrchr(turn->edit.path, '/') + 1);
    with_tool_call(turn, true, send_update);
    return WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_edit(weft_demo_turn *turn) {
    char id[64];
    if (!turn->edit.after)
        return WEFT_DEMO_NEXT;
    tool_id(turn, "edit", id);
    if (!turn->allowed) {
        end_tool(turn, id, false, "It was not allowed.");
        turn->outcome = "I did not change anything, because it was not allowed.";
        return WEFT_DEMO_NEXT;
    }
    send_update(turn, WEFT_OBJ({"sessionUpdate", weft_str("tool_call_update")}, {"toolCallId", weft_str(id)},
                               {"status", weft_str("in_progress")}));
    int r = weft__demo_edit_do(&turn->edit);
    end_tool(turn, id, r == 0, r == 0 ? NULL : r == -ESTALE ? "The file changed meanwhile." : strerror(-r));
    turn->outcome = r == 0 ? NULL : "I could not change the file.";
    return WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_conclude(weft_demo_turn *turn) {
    if (!turn->edit.after)
        say_formatted(turn, "I did not change anything.\n");
    else if (turn->outcome)
        say_formatted(turn, "%s\n", turn->outcome);
    else
        say_formatted(turn, "Done: %s has one more line.\n", turn->edit.path);
    return WEFT_DEMO_NEXT;
}
