/* Every type of event, as a row: the stream it lies in, what happened, the members of its data and an example. The protocol
 * reference (docs/protocol.md) is written from these rows, and a test compares them with what the source appends. */
#ifndef WEFT_EVENT_ROWS_H
#define WEFT_EVENT_ROWS_H

typedef struct weft_event_row {
    const char *stream; /* "session/ID": one for each session */
    const char *type;   /* NULL ends the table */
    const char *data;   /* an example, JSON */
    const char *may;    /* members that are not always there, separated by blanks; NULL: all are */
    const char *help;   /* what happened, and what the members mean that do not say it themselves */
} weft_event_row;

extern const weft_event_row weft__event_rows[];

#endif
