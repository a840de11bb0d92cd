/* Trace contexts: whatever the bytes, what is taken is one, and is taken again as it is. */
#include <stdint.h>
#include <string.h>

#include "fuzz_memory.h"
#include "trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parent(const char *text) {
    char again[WEFT_TRACEPARENT], id[33];
    require(strlen(text) == WEFT_TRACEPARENT - 1 && memcmp(text, "00-", 3) == 0);
    require(strspn(text, "0123456789abcdef-") == strlen(text));
    require(weft__trace_parent((weft_bytes){text, strlen(text)}, again) && strcmp(text, again) == 0);
    weft__trace_id(text, id);
    require(strlen(id) == 32 && strspn(id, "0") < 32);
}

static void check_state(const char *text, size_t size) {
    char again[WEFT_TRACESTATE];
    require(strlen(text) == size && size < WEFT_TRACESTATE && strchr(text, '='));
    for (size_t i = 0; i < size; i++)
        require((text[i] >= ' ' && text[i] <= '~') || text[i] == '\t');
    require(weft__trace_state((weft_bytes){text, size}, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1), parent[WEFT_TRACEPARENT], state[WEFT_TRACESTATE]; /* nothing lies behind it */
    require(text);
    memcpy(text, data, size);
    if (weft__trace_parent((weft_bytes){text, size}, parent))
        check_parent(parent);
    if (weft__trace_state((weft_bytes){text, size}, state))
        check_state(state, size);
    free(text);
    return 0;
}
