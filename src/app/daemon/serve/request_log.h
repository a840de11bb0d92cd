/* log.requests: a line for every request and notification, when it is over: its method, id, duration and outcome. Nothing of
 * its params and of its answer, where secrets may be. */
#ifndef WEFT_REQUEST_LOG_H
#define WEFT_REQUEST_LOG_H

#include "daemon_log.h"

/* The log is borrowed and may be opened later. */
weft_gate weft__request_log(weft_log *log);

#endif
