/* The rows of told_rows.c and event_rows.c in another form. */
#include "told_methods.h"

#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "event_rows.h"
#include "told_rows.h"

/* More than either table has; what is beyond is left out, and the test that counts them fails. */
#define MOST_TOLD 128
#define MOST_EVENTS 192
#define DIALECT_TEXT 64

struct weft_told_methods {
    weft_method rows[MOST_TOLD + 1];
    weft_example examples[MOST_TOLD][2];
    char dialects[MOST_TOLD][DIALECT_TEXT];
    weft_example events[MOST_EVENTS + 1]; /* params are owned */
};

static char *event_params(const weft_event_row *row) {
    static const char format[] = "{\"gseq\":17,\"stream\":\"%s\",\"seq\":12,\"type\":\"%s\","
                                 "\"time\":\"2026-01-01T12:00:00.000Z\",\"data\":%s}";
    size_t size = sizeof format + strlen(row->stream) + strlen(row->type) + strlen(row->data);
    char *text = weft__alloc(NULL, size);
    if (text)
        snprintf(text, size, format, row->stream, row->type, row->data);
    return text;
}

static bool add_event_examples(weft_told_methods *told) {
    size_t count = 0;
    for (const weft_event_row *row = weft__event_rows; row->type && count < MOST_EVENTS; row++) {
        char *params = event_params(row);
        if (!params)
            return false;
        told->events[count++] = (weft_example){.name = row->type, .help = row->help, .params = params};
    }
    return true;
}

static void add_told_row(weft_told_methods *told, size_t at, const weft_told_row *row) {
    bool is_event = strcmp(row->dialect, "weft") == 0 && strcmp(row->name, "event") == 0;
    told->examples[at][0] = (weft_example){.name = "an example", .params = row->params};
    snprintf(told->dialects[at], DIALECT_TEXT, "Told in the dialect `%s`.", row->dialect);
    told->rows[at] = (weft_method){.name = row->name,
                                   .help = row->help,
                                   .description = told->dialects[at],
                                   .examples = is_event ? told->events : told->examples[at]};
}

weft_told_methods *weft__told_methods_new(void) {
    weft_told_methods *told = weft__zalloc(NULL, sizeof *told);
    size_t count = 0;
    if (!told || !add_event_examples(told))
        return weft__told_methods_free(told);
    for (const weft_told_row *row = weft__told_rows; row->name && count < MOST_TOLD; row++)
        if (!row->request)
            add_told_row(told, count++, row);
    return told;
}

weft_told_methods *weft__told_methods_free(weft_told_methods *told) {
    for (weft_example *each = told ? told->events : NULL; each && each->name; each++)
        weft__free(NULL, (char *) (uintptr_t) each->params);
    weft__free(NULL, told);
    return NULL;
}

const weft_method *weft__told_methods_rows(const weft_told_methods *told) {
    return told->rows;
}
