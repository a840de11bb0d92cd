/* An answer kept beyond its callback. */
#include <errno.h>
#include <string.h>

#include "doc.h"
#include "encode.h"
#include "link.h"

/* An error is kept as its own object, in the order code, message, data. */
static int keep_error(const weft_error *error, const weft_alloc *alloc, weft_answer *ret) {
    weft_doc *doc;
    char *text;
    size_t len;
    weft_val value =
        WEFT_OBJ({"message", weft_str(error->message)}, {"data", error->data.text ? weft_copy(&error->data) : weft_none()});
    int r = weft_to_text(value, alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, alloc, &doc);
    weft_text_free(text, alloc);
    if (r < 0)
        return r;
    weft_answer_done(ret);
    ret->doc_ = doc;
    const weft_json *root = weft_doc_root(doc);
    ret->error_ = (weft_error){
        .code = error->code,
        .message = weft_get_str(root, "message", ""),
        .data = weft_get(root, "data"),
    };
    ret->error = &ret->error_;
    return 0;
}

int weft__answer_keep(const weft_answer *answer, const weft_alloc *alloc, weft_answer *ret) {
    weft_doc *doc;
    if (answer->error)
        return keep_error(answer->error, alloc, ret);
    int r = weft_doc_keep(answer->result, alloc, &doc);
    if (r < 0)
        return r;
    weft_answer_done(ret); /* of the call before */
    ret->doc_ = doc;
    ret->result_ = *weft_doc_root(ret->doc_);
    ret->result = &ret->result_;
    return 0;
}

void weft_answer_done(weft_answer *answer) {
    if (!answer)
        return;
    weft_doc_free(answer->doc_);
    *answer = (weft_answer){0};
}
