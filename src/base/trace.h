/* W3C trace context (https://www.w3.org/TR/trace-context/): is what somebody sent one? What is not is as if it were not
 * there. */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include <weft/method.h>

/* Take a traceparent: version 00, or what this version can read of a later one, which is kept as version 00. */
bool weft__trace_parent(weft_bytes text, char ret[WEFT_TRACEPARENT]);
/* Take a tracestate: a list of key=value, at most 32 of them and WEFT_TRACESTATE - 1 bytes. */
bool weft__trace_state(weft_bytes text, char ret[WEFT_TRACESTATE]);
/* The 32 digits of a traceparent that was taken. */
void weft__trace_id(const char *traceparent, char ret[33]);

#endif
