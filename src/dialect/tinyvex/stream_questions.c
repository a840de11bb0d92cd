/* The stream "questions": what waits for a person. */
#include "hub_methods.h"
#include "tinyvex_stream.h"

static const weft_param params[] = {{0}};

static weft_event_source *questions_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"question.", "session.deleted"};
    (void) of;
    return weft__source_new(&(weft_subscription_spec){.types = types, .type_count = sizeof types / sizeof types[0]}, alloc);
}

static void compute_questions(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    (void) of;
    weft__computing_done(computing, weft__hub_write_questions(weft__computing_out(computing), hub, false));
}

const weft_stream_kind weft__stream_questions = {.name = "questions",
                                                 .help = "the questions that are open, the oldest first",
                                                 .params = params,
                                                 .class = WEFT_CLASS_STATE,
                                                 .source = questions_source,
                                                 .compute = compute_questions};
