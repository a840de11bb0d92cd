/* The message log, without secrets (redact.h). */
#include "debug.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "clock.h"
#include "redact.h"

bool weft__debug_wanted(void) {
    const char *ours = getenv("WEFT_DEBUG"), *theirs = getenv("AIWG_IPC_DEBUG");
    return (ours && strcmp(ours, "1") == 0) || (theirs && strcmp(theirs, "1") == 0);
}

static void put_debug_line(weft_peer *peer, bool outgoing, weft_val message) {
    char now[WEFT_STAMP];
    weft_screen screen = weft__screen(stderr);
    const weft_identity *who = weft_peer_identity(peer);
    screen.colour = false;
    screen.terminal = true; /* it may be read at one later */
    weft__put_line(&screen, WEFT_OBJ({"time", weft_str(weft__clock_text(now))}, {"way", weft_str(outgoing ? "out" : "in")},
                                     {"transport", weft_str(who->transport)}, {"address", weft_str(who->address)},
                                     {"message", message}));
}

void weft__debug_message(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    weft_doc *doc;
    weft_buf out = {0};
    (void) ctx;
    if (weft_doc_parse(text.data, text.len, NULL, &doc) < 0) {
        char note[64];
        snprintf(note, sizeof note, "(%zu bytes that are not JSON)", text.len);
        put_debug_line(peer, outgoing, weft_str(note));
        return;
    }
    if (weft__redact(&out, NULL, weft_doc_root(doc)) >= 0)
        put_debug_line(peer, outgoing, weft_raw(weft__buf_head(&out), weft__buf_len(&out)));
    weft__buf_done(&out, NULL);
    weft_doc_free(doc);
}

int weft__debug_service(weft_service **ret) {
    if (!weft__debug_wanted()) {
        *ret = NULL;
        return 0;
    }
    return weft_service_new(&(weft_service_opts){.on_message = weft__debug_message}, ret);
}
