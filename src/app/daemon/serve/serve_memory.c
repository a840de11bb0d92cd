/* Tasks leave small things behind, which are remembered, between large buffers, which are not: the allocator keeps those
 * holes. */
#include "serve_memory.h"

#include <malloc.h>
#include <string.h>

/* A look at all that is allocated took 2 ms, seldom 5, with 4,000 tasks remembered. So many ends share one. */
#define ENDS 64

static void give_back_holes(weft_later *later) {
    (void) later;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void on_task_end(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_serve_memory *self = WEFT_CONTAINER(listener, weft_serve_memory, listener);
    (void) data;
    if (strcmp(event->type, "task.completed") != 0 && strcmp(event->type, "task.failed") != 0 &&
        strcmp(event->type, "task.cancelled") != 0)
        return;
    if (++self->ends % ENDS == 0)
        weft__later(self->loop, &self->later);
}

void weft__serve_memory_start(weft_serve_memory *self, weft_loop *loop, weft_engine *engine) {
    *self = (weft_serve_memory){.loop = loop, .listener = {.on_event = on_task_end}};
    weft__later_init(&self->later, give_back_holes);
    weft__engine_listen(engine, &self->listener);
}

void weft__serve_memory_end(weft_serve_memory *self) {
    if (!self->loop)
        return;
    weft__engine_unlisten(&self->listener);
    weft__later_cancel(&self->later);
    self->loop = NULL;
}
