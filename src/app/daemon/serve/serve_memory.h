/* Memory that the hub no longer uses goes back to the system while it works, and not only when it ends. */
#ifndef WEFT_SERVE_MEMORY_H
#define WEFT_SERVE_MEMORY_H

#include "engine.h"
#include "loop.h"

typedef struct weft_serve_memory {
    weft_loop *loop; /* NULL: not started */
    weft_event_listener listener;
    weft_later later;
    unsigned ends;
} weft_serve_memory;

void weft__serve_memory_start(weft_serve_memory *memory, weft_loop *loop, weft_engine *engine);
void weft__serve_memory_end(weft_serve_memory *memory);

#endif
