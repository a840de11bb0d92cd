/* Every stream of tinyvex. A new one is its own file and one line here. */
#include <string.h>

#include "tinyvex.h"

extern const weft_stream_kind weft__stream_threads, weft__stream_messages, weft__stream_tools, weft__stream_tasks,
    weft__stream_output, weft__stream_events, weft__stream_updates, weft__stream_questions, weft__stream_documents;

const weft_stream_kind *const weft__tinyvex_streams[] = {
    &weft__stream_threads, &weft__stream_messages, &weft__stream_tools,     &weft__stream_tasks,     &weft__stream_output,
    &weft__stream_events,  &weft__stream_updates,  &weft__stream_questions, &weft__stream_documents, NULL,
};

const weft_stream_kind *weft__tinyvex_stream(const char *name) {
    for (const weft_stream_kind *const *kind = weft__tinyvex_streams; *kind; kind++)
        if (strcmp((*kind)->name, name) == 0)
            return *kind;
    return NULL;
}
