/* cdev's vocabulary, for its files. The table is in cdev.c. */
#ifndef WEFT_CDEV_H
#define WEFT_CDEV_H

#include "hub_clients.h"

/* Its errors. */
#define CDEV_BUSY (-32001)
#define CDEV_IDLE (-32002)
#define CDEV_FAILED (-32003)
#define CDEV_NO_AGENT (-32004)
#define CDEV_NO_SESSION (-32012)

/* ---- cdev_run.c ---- */
weft_handler weft__cdev_run, weft__cdev_stop;
extern const weft_param weft__cdev_run_params[], weft__cdev_stop_params[];

/* ---- cdev_status.c ---- */
weft_handler weft__cdev_status;
/* The session that a request without one is about: what this connection started, else what it watches, else the only one, as
 * far as it has something to do. NULL: none. Borrowed. */
const weft_session *weft__cdev_session(const weft_hub *hub, weft_peer *peer);

/* ---- cdev_events.c ---- */
extern const char *const weft__cdev_variants[];
void weft__cdev_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);

#endif
