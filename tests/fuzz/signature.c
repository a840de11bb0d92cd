/* Messages that claim to be signed: whatever they say, nobody without the key gets through, every request is answered once,
 * and what is answered is JSON. The first byte is the time, which the others may try to meet. */
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#include "fuzz_memory.h"

static size_t ran;

static int count_run(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    ran++;
    return weft_reply(req, weft_null());
}
static const weft_method methods[] = {{"run", count_run}, {0}};

static bool always(void *ctx, const weft_gate_request *request) {
    (void) ctx, (void) request;
    return true;
}

static int64_t now_ms(void *ctx) {
    return (int64_t) 1700000000000 + *(unsigned char *) ctx * (int64_t) 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const weft_sign_key keys[] = {{"ci", "a secret that no input has", 26, NULL, NULL, true}, {0}};
    weft_signatures *signatures = NULL;
    weft_service *service = NULL;
    weft_peer *peer = NULL;
    weft_doc *doc = NULL;
    if (size < 1)
        return 0;
    unsigned char now = data[0];
    weft_signatures_opts opts = {
        .keys = keys, .alloc = &counting, .required = always, .wall_ms = now_ms, .steady_ms = now_ms, .ctx = &now};
    require(weft_signatures_new(&opts, &signatures) == 0);
    const weft_gate *const gates[] = {weft_signatures_gate(signatures), NULL};
    require(weft_service_new(&(weft_service_opts){.methods = methods, .gates = gates, .alloc = &counting}, &service) == 0);
    require(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
    weft_peer_feed(peer, data + 1, size - 1, 1);
    weft_peer_feed(peer, "\n", 1, 1);
    require(ran == 0);
    weft_bytes out = weft_peer_output(peer);
    for (const char *line = out.data, *end = line + out.len, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t) (end - line));
        require(stop && weft_doc_parse(line, (size_t) (stop - line), NULL, &doc) == 0);
        weft_doc_free(doc);
    }
    weft_peer_free(peer);
    weft_service_unref(service);
    weft_signatures_free(signatures);
    return 0;
}
