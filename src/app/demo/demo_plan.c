/* The demo agent as a planner: whatever is wanted, there are four tasks, of which two may run at the same time. What people
 * read is the description; the prompt begins with the word by which this agent, or another of its kind, does the task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo_turn.h"
#include "utf8.h"

#define REQUEST 300 /* bytes of the request that are repeated */

typedef struct demo_task {
    const char *type, *what; /* what: with %s for the request */
    const char *needs[2];    /* ids; NULL: none */
    int priority;
} demo_task;

static const demo_task tasks[] = {
    {"analysis", "Look at what is there", {NULL}, 9},
    {"documentation", "Draft it: %s", {"task_001"}, 7},
    {"testing", "Say how to check it", {"task_001"}, 5},
    {"analysis", "Sum up what was done", {"task_002", "task_003"}, 5},
};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* One task, with the memory of what it points to. */
typedef struct shown_task {
    char id[16], what[REQUEST + 64], prompt[REQUEST + 80];
    weft_val needs[2];
    weft_member members[6];
} shown_task;

static weft_val show_task(size_t i, const char *request, shown_task *ret) {
    size_t count = 0;
    char format[64];
    snprintf(format, sizeof format, "%s", tasks[i].what);
    char *hole = strstr(format, "%s");
    if (hole)
        *hole = '\0';
    snprintf(ret->id, sizeof ret->id, "task_%03zu", i + 1);
    snprintf(ret->what, sizeof ret->what, "%s%s", format, hole ? request : "");
    snprintf(ret->prompt, sizeof ret->prompt, "step %s", ret->what);
    for (; count < 2 && tasks[i].needs[count]; count++)
        ret->needs[count] = weft_str(tasks[i].needs[count]);
    const weft_member members[6] = {
        {"id", weft_str(ret->id)},
        {"type", weft_str(tasks[i].type)},
        {"description", weft_str(ret->what)},
        {"prompt", weft_str(ret->prompt)},
        {"dependencies", weft_arr(ret->needs, count)},
        {"priority", weft_int(tasks[i].priority)},
    };
    memcpy(ret->members, members, sizeof members);
    return weft_obj(ret->members, 6);
}

weft_demo_next weft__demo_make_plan(weft_demo_turn *turn) {
    char request[REQUEST + 1], *text = NULL, *said = NULL;
    shown_task shown[TASKS];
    weft_val list[TASKS];
    size_t len, most = strcspn(turn->order.text, "\r\n");
    snprintf(request, sizeof request, "%.*s", (int) weft__utf8_fit(turn->order.text, most, REQUEST), turn->order.text);
    for (size_t i = 0; i < TASKS; i++)
        list[i] = show_task(i, request, &shown[i]);
    weft_val plan = WEFT_OBJ({"tasks", weft_arr(list, TASKS)}, {"estimated_time_seconds", weft_int(3)},
                             {"explanation", weft_str("The demo agent has no model: it plans every request like this.")});
    if (weft_to_text(plan, NULL, &text, &len) < 0)
        return WEFT_DEMO_NEXT;
    int n = asprintf(&said, "Here is a plan:\n\n```json\n%s\n```\n", text);
    if (n > 0)
        weft__demo_say(turn, said, (size_t) n);
    if (n > 0)
        free(said);
    weft_text_free(text, NULL);
    return WEFT_DEMO_NEXT;
}

weft_demo_next weft__demo_done(weft_demo_turn *turn) {
    char line[REQUEST + 16];
    size_t len = strcspn(turn->order.text, "\r\n");
    int n =
        snprintf(line, sizeof line, "Done: %.*s\n", (int) weft__utf8_fit(turn->order.text, len, REQUEST), turn->order.text);
    weft__demo_say(turn, line, (size_t) n);
    return WEFT_DEMO_NEXT;
}
