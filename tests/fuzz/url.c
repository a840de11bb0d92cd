/* URLs: whatever the text, it is refused with a sentence or taken apart into pieces that are all there. What the scheme's
 * form does not have is empty, and nothing of a web address can end a line or a word of a head. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "fuzz_memory.h"
#include "transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_visible(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    return true;
}

static void check(const weft_url *url, const char *text) {
    weft_url_form form = url->scheme->form;
    bool network = form == WEFT_URL_HOST || form == WEFT_URL_WEB;
    require(weft__transport_of(NULL, text) == weft__transport(url));
    require(network ? *url->host && url->port >= 0 && url->port <= 65535 : !*url->host && url->port == -1);
    require(!network || (is_visible(url->host) && is_visible(url->path) && is_visible(url->query)));
    require(form == WEFT_URL_WEB ? *url->path == '/' : !*url->query);
    require(form != WEFT_URL_NAME || *url->path);
    require((form == WEFT_URL_PROGRAM) == (url->argv[0] != NULL));
    require(weft__url_shown(text, url->scheme) <= strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    weft_url url;
    const char *why = NULL;
    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    int r = weft__transport_parse(NULL, text, &counting, &url, &why);
    require(r == 0 || (r == -EINVAL && why && *why));
    if (r == 0) {
        check(&url, text);
        weft__url_done(&url, &counting);
    }
    require(live == 0);
    free(text);
    return 0;
}
