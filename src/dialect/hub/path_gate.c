/* Refusing a path, with the words and reasons of a call. */
#include "path_gate.h"

#include <errno.h>
#include <stdio.h>

#define SENTENCE 320

bool weft__path_may(const weft_hub *hub, weft_http *http, const char *method) {
    const weft_hub_host *host = hub->host;
    int64_t wait_ms = 0;
    char body[SENTENCE], seconds[24];
    const weft_identity *who = weft_http_identity(http);
    int r = host && host->path ? host->path(host->ctx, who, method, &wait_ms) : 0;
    if (r == 0)
        return true;
    weft_header headers[] = {{"Retry-After", seconds}, {0}};
    snprintf(seconds, sizeof seconds, "%lld", (long long) (wait_ms + 999) / 1000);
    if (r == -EBUSY)
        snprintf(body, sizeof body, "{\"error\":\"rateLimited\",\"message\":\"Too many requests\",\"retryAfterMs\":%lld}\n",
                 (long long) wait_ms);
    else if (r == -ENOKEY)
        snprintf(body, sizeof body, "{\"error\":\"signatureMissing\",\"message\":\"Only a signed call of %s gives this\"}\n",
                 method);
    else
        snprintf(
            body, sizeof body,
            "{\"error\":\"methodNotAllowed\",\"message\":\"The gates of the configuration keep %s from this caller\"}\n",
            method);
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = r == -EBUSY ? 429 : 403,
                                                         .type = "application/json",
                                                         .headers = r == -EBUSY ? headers : NULL,
                                                         .cache = "no-store",
                                                         .body = {body, strlen(body)}});
    return false;
}
