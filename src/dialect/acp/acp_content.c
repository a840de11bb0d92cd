/* The blocks of a prompt, as text: an agent of any driver reads that, and it is what the journal keeps. A link stays a link,
 * and a text that came with the prompt stands in it with its name. Pictures and sound have no text, and are not announced.
 */
#include <errno.h>
#include <string.h>

#include "acp.h"

static int put_value_text(weft_buf *out, const weft_alloc *alloc, const weft_json *value) {
    weft_bytes text;
    int r = weft_bytes_of(value, &text);
    return r < 0 ? r : weft__buf_put(out, alloc, text.data, text.len);
}

static int put_words(weft_buf *out, const weft_alloc *alloc, const char *text) {
    return weft__buf_put(out, alloc, text, strlen(text));
}

/* [name](uri) */
static int put_link(weft_buf *out, const weft_alloc *alloc, const weft_json *block) {
    weft_json name = weft_get(block, "name"), uri = weft_get(block, "uri");
    int r = put_words(out, alloc, "[");
    if (r >= 0)
        r = put_value_text(out, alloc, &name);
    if (r >= 0)
        r = put_words(out, alloc, "](");
    if (r >= 0)
        r = put_value_text(out, alloc, &uri);
    return r < 0 ? r : put_words(out, alloc, ")");
}

static int put_resource(weft_buf *out, const weft_alloc *alloc, const weft_json *block) {
    weft_json resource = weft_get(block, "resource");
    weft_json uri = weft_get(&resource, "uri"), text = weft_get(&resource, "text");
    int r = put_words(out, alloc, "\n<context ref=\"");
    if (r >= 0)
        r = put_value_text(out, alloc, &uri);
    if (r >= 0)
        r = put_words(out, alloc, "\">\n");
    if (r >= 0)
        r = put_value_text(out, alloc, &text);
    return r < 0 ? r : put_words(out, alloc, "\n</context>\n");
}

static int put_plain(weft_buf *out, const weft_alloc *alloc, const weft_json *block) {
    weft_json text = weft_get(block, "text");
    return put_value_text(out, alloc, &text);
}

static const struct {
    const char *type;
    int (*put)(weft_buf *out, const weft_alloc *alloc, const weft_json *block);
    const char *wrong;
} kinds[] = {
    {"text", put_plain, "a text block needs a text"},
    {"resource_link", put_link, "a resource_link needs a name and a uri"},
    {"resource", put_resource, "a resource needs a uri and a text; one that has a blob cannot be passed on"},
};

static int put_block(weft_buf *out, const weft_alloc *alloc, const weft_json *block, const char **ret_why) {
    const char *type = weft_get_str(block, "type", "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].type, type) == 0) {
            int r = kinds[i].put(out, alloc, block);
            *ret_why = kinds[i].wrong;
            return r;
        }
    *ret_why = "blocks of this type cannot be passed on: only text, resource_link and resource";
    return -EINVAL;
}

int weft__acp_content(const weft_json *blocks, const weft_alloc *alloc, weft_buf *ret, size_t *ret_bad,
                      const char **ret_why) {
    int r = 0;
    *ret_bad = 0;
    for (weft_iter it = weft_iterate(blocks); r >= 0 && weft_next(&it);) {
        r = put_block(ret, alloc, &it.value, ret_why);
        *ret_bad += r >= 0;
    }
    return r < 0 ? r : weft__buf_put(ret, alloc, "", 1);
}
