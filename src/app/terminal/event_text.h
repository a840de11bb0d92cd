/* An event of the journal as one line for people: "task-0003 failed: the agent ended with status 1". */
#ifndef WEFT_EVENT_TEXT_H
#define WEFT_EVENT_TEXT_H

#include "screen.h"

typedef struct weft_event_words {
    char who[80];     /* whom it is about; "": nobody in particular */
    const char *what; /* what happened; NULL: there are no words for this type */
    char more[1024];  /* "": that is all. One line, cut */
    const char *ink;  /* its colour; NULL: none */
} weft_event_words;

void weft__event_words(const weft_json *event, weft_event_words *ret);
/* Them, without a line's end. room: columns; what is longer is cut. */
void weft__event_words_put(const weft_screen *screen, const weft_event_words *words, size_t room);

#endif
