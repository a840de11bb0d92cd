/* Forgetting tasks that have ended: those whose events are gone, and those of a session that is deleted. */
#include <string.h>

#include "engine_private.h"

void weft__task_forget_trimmed(weft_engine *engine, uint64_t seq) {
    for (weft_link *link = engine->ended.next, *next; link != &engine->ended; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, place);
        next = link->next;
        if (task->end_seq > seq)
            continue;
        engine->ended_count--;
        engine->ended_bytes -= task->bytes;
        weft__task_drop(engine, task);
    }
}

/* One whose end is still being told stays. */
void weft__task_forget_session(weft_engine *engine, const char *session) {
    for (weft_link *link = engine->ended.next, *next; link != &engine->ended; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, place);
        next = link->next;
        if (strcmp(task->pub.session, session) != 0 || task->run || !weft__list_empty(&task->waiters) || task->submitted)
            continue;
        engine->ended_count--;
        engine->ended_bytes -= task->bytes;
        weft__task_drop(engine, task);
    }
}
