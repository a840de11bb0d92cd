/* Who is on the other side: one block of memory with its strings behind it. */
#include <string.h>

#include "peer_private.h"

static const weft_identity nobody = {"", "", "", "", "", -1, -1, false, .local = true, .endpoint = ""};

static const char *text_or(const char *text) {
    return text ? text : "";
}

static char *copy_behind(char *at, const char *text, const char **ret) {
    size_t len = strlen(text) + 1;
    memcpy(at, text, len);
    *ret = at;
    return at + len;
}

weft_identity *weft__identity_copy(const weft_identity *from, const weft_alloc *alloc) {
    if (!from)
        from = &nobody;
    const char *const texts[] = {text_or(from->transport), text_or(from->dialect), text_or(from->name),
                                 text_or(from->scopes),    text_or(from->address), text_or(from->endpoint)};
    size_t size = sizeof *from;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        size += strlen(texts[i]) + 1;
    weft_identity *copy = weft__alloc(alloc, size);
    if (!copy)
        return NULL;
    *copy = *from;
    char *at = (char *) (copy + 1);
    at = copy_behind(at, texts[0], &copy->transport);
    at = copy_behind(at, texts[1], &copy->dialect);
    at = copy_behind(at, texts[2], &copy->name);
    at = copy_behind(at, texts[3], &copy->scopes);
    at = copy_behind(at, texts[4], &copy->address);
    copy_behind(at, texts[5], &copy->endpoint);
    return copy;
}
