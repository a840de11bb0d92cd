/* A document: a text of its own and the memory for what is decoded from it. */
#include "doc.h"

#include <errno.h>
#include <string.h>

#include "buf.h"
#include "scan.h"

/* A document around a copy of this text, with the NUL and the slack that the scanner needs; its root is still absent. */
static int new_doc(const char *text, size_t len, const weft_alloc *alloc, weft_doc **ret) {
    if (len > SIZE_MAX - 1 - WEFT_SLACK - sizeof **ret)
        return -ENOMEM;
    weft_doc *doc = weft__alloc(alloc, sizeof *doc + len + 1 + WEFT_SLACK);
    if (!doc)
        return -ENOMEM;
    *doc = (weft_doc){.alloc = alloc, .arena = {.alloc = alloc}, .text = (char *) (doc + 1)};
    if (len)
        memcpy(doc->text, text, len);
    memset(doc->text + len, 0, 1 + WEFT_SLACK);
    *ret = doc;
    return 0;
}

int weft_doc_parse(const char *text, size_t len, const weft_alloc *alloc, weft_doc **ret) {
    weft_doc *doc;
    if (!text)
        return -EINVAL;
    int r = new_doc(text, len, alloc, &doc);
    if (r < 0)
        return r;
    const char *value = weft__scan_ws(doc->text), *end = weft__scan_value(value, WEFT_MAX_DEPTH);
    if (!end || weft__scan_ws(end) != doc->text + len) {
        weft_doc_free(doc);
        return -EBADMSG;
    }
    doc->root = (weft_json){value, (size_t) (end - value), doc};
    *ret = doc;
    return 0;
}

int weft_doc_keep(const weft_json *value, const weft_alloc *alloc, weft_doc **ret) {
    if (!value || !value->text)
        return -EINVAL;
    weft_doc *doc;
    int r = new_doc(value->text, value->len, alloc, &doc);
    if (r < 0)
        return r;
    doc->root = (weft_json){doc->text, value->len, doc};
    *ret = doc;
    return 0;
}

const weft_json *weft_doc_root(const weft_doc *doc) {
    return doc ? &doc->root : NULL;
}

weft_doc *weft_doc_free(weft_doc *doc) {
    if (!doc)
        return NULL;
    weft__arena_done(&doc->arena);
    return weft__free(doc->alloc, doc);
}

void weft_doc_freep(weft_doc **doc) {
    *doc = weft_doc_free(*doc);
}
