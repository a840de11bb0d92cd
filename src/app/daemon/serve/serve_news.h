/* What a person in front of the hub, or of its log, wants to know without asking: a task starts, ends, fails, tries again,
 * or waits for an answer. One line each: on standard error in the foreground, with the local time and what was said, and in
 * the log if there is one, without. */
#ifndef WEFT_SERVE_NEWS_H
#define WEFT_SERVE_NEWS_H

#include "daemon.h"
#include "engine.h"

typedef struct weft_serve_news {
    weft_daemon *daemon;
    const weft_engine *engine;
    weft_event_listener listener;
    int64_t second; /* what when says: many tasks start and end in one */
    char when[12];
} weft_serve_news;

void weft__serve_news_start(weft_serve_news *news, weft_daemon *daemon, weft_engine *engine);
void weft__serve_news_end(weft_serve_news *news);

#endif
