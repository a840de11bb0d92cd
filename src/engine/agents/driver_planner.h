/* Holders of a role that speak the planner's protocol: execute_task, create_plan and so on are calls to them, and
 * stream_start, stream_data and stream_end are what they say meanwhile.
 *
 * Such a holder is a child (the configuration has its program), or somebody connected: then the agent has a wire, which is
 * the connection as this driver sees it. A turn is one call. What is called is in the task's metadata,
 * {"method": ..., "params": {...}}; without one it is execute_task with the prompt. */
#ifndef WEFT_DRIVER_PLANNER_H
#define WEFT_DRIVER_PLANNER_H

#include "driver.h"
#include "list.h"

typedef struct weft_planner_wire {
    weft_peer *peer;     /* NULL: the connection is gone */
    weft_link processes; /* of the driver's, that use it */
    size_t pauses;       /* so many of them do not want to hear anything now */
} weft_planner_wire;

/* The owner of the connection keeps it until weft__planner_wire_lost(). */
void weft__planner_wire_init(weft_planner_wire *wire, weft_peer *peer);
/* The connection is gone, and the wire may go: nobody uses it any more. */
void weft__planner_wire_lost(weft_planner_wire *wire);
/* A notification stream_start, stream_data or stream_end came. False: it belongs to no turn. */
bool weft__planner_wire_hear(weft_planner_wire *wire, const char *method, const weft_json *params);

#endif
