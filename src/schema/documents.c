/* Documents, resources, anchors and references: which node a URI means. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "compiler.h"
#include "doc.h"
#include "metaschema.h"
#include "scan.h"
#include "uri.h"

#define MAX_DIALECTS 8 /* metaschemas whose metaschema is looked for */
#define FIRST_SLOTS 64

#define DRAFT_2020_12 "https://json-schema.org/draft/2020-12/"

struct resource_name {
    weft_node node;
    schema_resource *resource;
};

struct anchor_name {
    weft_node node;
    schema_node *target;
};

/* ---- texts ---- */

int weft__compiler_text(compiler *c, const weft_json *string, weft_bytes *ret) {
    char *text = weft__arena_alloc(c->arena, string->len);
    if (!text)
        return -ENOMEM;
    *ret = (weft_bytes){text, weft__unescape(string->text + 1, string->len - 2, text)};
    return 0;
}

/* A URI or a name in a keyword: a string without NUL. */
static int read_name(compiler *c, const weft_json *value, const schema_node *node, const char *keyword, weft_bytes *ret) {
    if (weft_typeof(value) != WEFT_STRING)
        return weft__compiler_refuse(c, -EBADMSG, node, keyword, "must be a string");
    int r = weft__compiler_text(c, value, ret);
    if (r >= 0 && memchr(ret->data, '\0', ret->len))
        return weft__compiler_refuse(c, -EBADMSG, node, keyword, "must not contain a NUL");
    return r;
}

/* The text with what the scanner needs behind it. */
static int copy_document(compiler *c, weft_bytes text, weft_json *ret) {
    if (text.len > c->opts.max_bytes - c->bytes)
        return weft__compiler_refuse(c, -E2BIG, NULL, NULL, "is too large");
    c->bytes += text.len;
    char *copy = weft__arena_alloc(c->arena, text.len + 1 + WEFT_SLACK);
    if (!copy)
        return -ENOMEM;
    if (text.len)
        memcpy(copy, text.data, text.len);
    memset(copy + text.len, 0, 1 + WEFT_SLACK);
    const char *value = weft__scan_ws(copy), *end = weft__scan_value(value, WEFT_MAX_DEPTH);
    if (!end || weft__scan_ws(end) != copy + text.len)
        return weft__compiler_refuse(c, -EBADMSG, NULL, NULL, "is not JSON, or nested deeper than 128");
    *ret = (weft_json){value, (size_t) (end - value), NULL};
    return 0;
}

/* ---- nodes by their text ---- */

static size_t slot_of(const compiler *c, const char *text) {
    return (size_t) (((uintptr_t) text * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (c->slot_cap - 1);
}

schema_node *weft__documents_node(const compiler *c, const char *text) {
    if (!c->slot_cap)
        return NULL;
    size_t i = slot_of(c, text);
    while (c->slots[i].text && c->slots[i].text != text)
        i = (i + 1) & (c->slot_cap - 1);
    return c->slots[i].node;
}

static void put_slot(compiler *c, const char *text, schema_node *node) {
    size_t i = slot_of(c, text);
    while (c->slots[i].text)
        i = (i + 1) & (c->slot_cap - 1);
    c->slots[i] = (node_slot){text, node};
}

static int grow_slots(compiler *c) {
    size_t old_cap = c->slot_cap, cap = old_cap ? old_cap * 2 : FIRST_SLOTS;
    node_slot *old = c->slots, *slots = weft__zalloc(c->opts.alloc, cap * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    c->slots = slots;
    c->slot_cap = cap;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].text)
            put_slot(c, old[i].text, old[i].node);
    weft__free(c->opts.alloc, old);
    return 0;
}

int weft__documents_remember(compiler *c, const char *text, schema_node *node) {
    if (++c->nodes > c->opts.max_nodes)
        return weft__compiler_refuse(c, -E2BIG, node, NULL, "is one schema too many");
    int r = c->nodes * 2 > c->slot_cap ? grow_slots(c) : 0;
    if (r >= 0)
        put_slot(c, text, node);
    return r;
}

/* ---- resources and anchors ---- */

static schema_resource *find_resource(const compiler *c, const char *uri) {
    weft_node *found = weft__map_find(&c->resources, uri);
    return found ? ((struct resource_name *) (void *) found)->resource : NULL;
}

/* Under one more URI. One that is there already stays what it was. */
static int name_resource(compiler *c, schema_resource *resource, const char *uri) {
    if (weft__map_find(&c->resources, uri))
        return 0;
    struct resource_name *name = weft__arena_alloc(c->arena, sizeof *name);
    if (!name)
        return -ENOMEM;
    *name = (struct resource_name){.resource = resource};
    weft__map_put(&c->resources, &name->node, uri);
    return 0;
}

static char *anchor_key(compiler *c, const char *uri, const char *name) {
    size_t len = strlen(uri) + strlen(name) + 2;
    char *key = weft__arena_alloc(c->arena, len);
    if (key)
        snprintf(key, len, "%s#%s", uri, name);
    return key;
}

static int add_anchor(compiler *c, schema_node *node, const char *name, const char *keyword) {
    char *key = anchor_key(c, node->resource->uri, name);
    struct anchor_name *anchor = weft__arena_alloc(c->arena, sizeof *anchor);
    if (!key || !anchor)
        return -ENOMEM;
    weft_node *found = weft__map_find(&c->anchors, key);
    if (found && ((struct anchor_name *) (void *) found)->target != node)
        return weft__compiler_refuse(c, -EBADMSG, node, keyword, "is a name that is there twice");
    if (found)
        return 0;
    *anchor = (struct anchor_name){.target = node};
    weft__map_put(&c->anchors, &anchor->node, key);
    return 0;
}

static int add_dynamic_anchor(compiler *c, schema_node *node, const char *name) {
    schema_anchor *anchor = weft__arena_alloc(c->arena, sizeof *anchor);
    if (!anchor)
        return -ENOMEM;
    *anchor = (schema_anchor){.next = node->resource->dynamic, .name = name, .node = node};
    node->resource->dynamic = anchor;
    return add_anchor(c, node, name, "$dynamicAnchor");
}

/* ---- "$schema" ---- */

/* One that is built in: true. Its URI may end with an empty fragment. */
static bool known_dialect(const char *uri, schema_resource *ret) {
    static const struct {
        const char *uri;
        weft_draft draft;
    } known[] = {
        {DRAFT_2020_12 "schema", WEFT_DRAFT_2020_12},
        {"http://json-schema.org/draft-07/schema", WEFT_DRAFT_07},
        {"https://json-schema.org/draft-07/schema", WEFT_DRAFT_07},
    };
    size_t len = strlen(uri);
    len -= len && uri[len - 1] == '#';
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].uri) == len && memcmp(known[i].uri, uri, len) == 0) {
            ret->draft = known[i].draft;
            ret->vocabularies = VOCABULARY_ALL;
            return true;
        }
    return false;
}

static const struct {
    const char *uri;
    unsigned bit;
} vocabularies[] = {
    {DRAFT_2020_12 "vocab/core", VOCABULARY_CORE},
    {DRAFT_2020_12 "vocab/applicator", VOCABULARY_APPLICATOR},
    {DRAFT_2020_12 "vocab/unevaluated", VOCABULARY_UNEVALUATED},
    {DRAFT_2020_12 "vocab/validation", VOCABULARY_VALIDATION},
    {DRAFT_2020_12 "vocab/meta-data", VOCABULARY_META},
    {DRAFT_2020_12 "vocab/format-annotation", VOCABULARY_FORMAT},
    {DRAFT_2020_12 "vocab/format-assertion", VOCABULARY_FORMAT | VOCABULARY_FORMAT_ASSERTION},
    {DRAFT_2020_12 "vocab/content", VOCABULARY_CONTENT},
};

/* What "$vocabulary" of a metaschema switches on. A vocabulary that we do not know and that must be known: -ENOTSUP. */
static int read_vocabulary(const weft_json *object, unsigned *ret) {
    unsigned bits = VOCABULARY_CORE;
    for (weft_iter it = weft_iterate(object); weft_next(&it);) {
        size_t i = 0, count = sizeof vocabularies / sizeof vocabularies[0];
        while (i < count && !weft_name_is(&it, vocabularies[i].uri))
            i++;
        if (i < count)
            bits |= vocabularies[i].bit;
        else if (weft_bool_of(&it.value, true))
            return -ENOTSUP;
    }
    *ret = bits;
    return 0;
}

/* A metaschema of somebody's: its own "$schema" says the draft, its "$vocabulary" what counts. */
static int foreign_dialect(compiler *c, const char *uri, schema_resource *ret, int left) {
    weft_bytes text;
    weft_doc *doc = NULL;
    if (known_dialect(uri, ret))
        return 0;
    int r = left && c->opts.find ? c->opts.find(c->opts.ctx, uri, &text) : -ENOENT;
    if (r >= 0)
        r = text.len > c->opts.max_bytes ? -E2BIG : weft_doc_parse(text.data, text.len, c->opts.alloc, &doc);
    if (r < 0)
        return r == -ENOENT ? -ENOTSUP : r;
    weft_json vocabulary = weft_get(weft_doc_root(doc), "$vocabulary");
    const char *above = weft_get_str(weft_doc_root(doc), "$schema", "");
    r = *above ? foreign_dialect(c, above, ret, left - 1) : 0;
    if (r >= 0 && weft_typeof(&vocabulary) == WEFT_OBJECT)
        r = read_vocabulary(&vocabulary, &ret->vocabularies);
    weft_doc_free(doc);
    return r;
}

/* What "$schema" says, into *ret, which is left as it is without one. */
static int read_dialect(compiler *c, const weft_json *value, const schema_node *node, schema_resource *ret) {
    weft_json uri = weft_get(value, "$schema");
    weft_bytes text;
    if (!uri.text)
        return 0;
    int r = read_name(c, &uri, node, "$schema", &text);
    if (r < 0)
        return r;
    r = foreign_dialect(c, text.data, ret, MAX_DIALECTS);
    if (r == -ENOTSUP)
        return weft__compiler_refuse(c, r, node, "$schema", "names a draft or vocabulary that is not known");
    return r == -EBADMSG ? weft__compiler_refuse(c, r, node, "$schema", "names what is not JSON") : r;
}

/* ---- "$id" ---- */

static int new_resource(compiler *c, const weft_json *root, const schema_resource *outer, schema_resource **ret) {
    schema_resource *resource = weft__arena_alloc(c->arena, sizeof *resource);
    if (!resource)
        return -ENOMEM;
    *resource = *outer;
    resource->root = *root;
    resource->dynamic = NULL;
    *ret = resource;
    return 0;
}

/* The node is the root of a resource with this URI: its document's own, or one within. */
static int enter_resource(compiler *c, const weft_json *value, schema_node *node, const schema_resource *dialect,
                          const char *uri) {
    int r = 0;
    if (node->resource->root.text != value->text)
        r = new_resource(c, value, dialect, &node->resource);
    if (r < 0)
        return r;
    node->resource->uri = uri;
    schema_resource *other = find_resource(c, uri);
    if (other && other != node->resource)
        return weft__compiler_refuse(c, -EBADMSG, node, "$id", "is a URI that is there twice");
    return name_resource(c, node->resource, uri);
}

static int read_id(compiler *c, const weft_json *value, schema_node *node, const schema_resource *dialect) {
    weft_json id = weft_get(value, "$id");
    weft_bytes text;
    if (!id.text)
        return 0;
    int r = read_name(c, &id, node, "$id", &text);
    if (r < 0)
        return r;
    char *uri = weft__uri_resolve(c->arena, node->resource->uri, text);
    char *fragment = uri ? weft__uri_cut_fragment(uri) : NULL;
    if (!uri)
        return -ENOMEM;
    if (!fragment || (*fragment && dialect->draft != WEFT_DRAFT_07))
        return weft__compiler_refuse(c, -EBADMSG, node, "$id", "must not have a fragment");
    /* In draft 07 "#name" is an anchor. */
    if (text.data[0] != '#')
        r = enter_resource(c, value, node, dialect, uri);
    return r < 0 || !*fragment ? r : add_anchor(c, node, fragment, "$id");
}

static int read_anchors(compiler *c, const weft_json *value, schema_node *node) {
    weft_json anchor = weft_get(value, "$anchor"), dynamic = weft_get(value, "$dynamicAnchor");
    weft_bytes name;
    int r = 0;
    if (anchor.text) {
        r = read_name(c, &anchor, node, "$anchor", &name);
        if (r >= 0)
            r = add_anchor(c, node, name.data, "$anchor");
    }
    if (r >= 0 && dynamic.text) {
        r = read_name(c, &dynamic, node, "$dynamicAnchor", &name);
        if (r >= 0)
            r = add_dynamic_anchor(c, node, name.data);
    }
    return r;
}

int weft__documents_identify(compiler *c, const weft_json *value, schema_node *node) {
    bool root = node->resource->root.text == value->text;
    schema_resource dialect = *node->resource;
    int r = 0;
    if (root || weft_get(value, "$id").text)
        r = read_dialect(c, value, node, &dialect);
    if (r < 0)
        return r;
    if (root)
        *node->resource = dialect;
    /* Beside a "$ref", draft 07 knows nothing else. */
    if (dialect.draft == WEFT_DRAFT_07 && weft_get(value, "$ref").text)
        return 0;
    r = read_id(c, value, node, &dialect);
    if (r >= 0 && node->resource->draft != WEFT_DRAFT_07)
        r = read_anchors(c, value, node);
    return r;
}

/* ---- documents ---- */

int weft__documents_add(compiler *c, const char *uri, weft_bytes text, const char *shown, weft_draft draft,
                        schema_node **ret) {
    schema_resource *resource = weft__arena_alloc(c->arena, sizeof *resource);
    weft_json root;
    if (!resource)
        return -ENOMEM;
    int r = copy_document(c, text, &root);
    if (r < 0)
        return r;
    *resource = (schema_resource){.uri = uri, .shown = shown, .root = root, .draft = draft, .vocabularies = VOCABULARY_ALL};
    r = name_resource(c, resource, uri);
    if (r < 0)
        return r;
    return weft__compile_value(c, &root, resource, NULL, NULL, (weft_bytes){0}, ret);
}

/* A document that nobody has asked for yet. 1 it is there now, 0 nobody knows it. */
static int fetch_document(compiler *c, const char *uri, weft_draft draft) {
    weft_bytes text = {0};
    schema_node *root;
    int r = weft__metaschema_find(uri, &text);
    if (r == 0 && c->opts.find) {
        r = c->opts.find(c->opts.ctx, uri, &text);
        r = r == -ENOENT ? 0 : r < 0 ? r : 1;
    }
    if (r <= 0)
        return r;
    r = weft__documents_add(c, uri, text, uri, draft, &root);
    return r < 0 ? r : 1;
}

/* ---- references ---- */

/* The nearest schema around a place that no keyword made one: its resource is the one that counts there. */
static schema_node *nearest_node(compiler *c, const schema_resource *resource, char *pointer) {
    schema_node *found = weft__documents_node(c, resource->root.text);
    for (char *p = strchr(pointer, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        weft_json value = weft_pointer(&resource->root, pointer);
        *p = '/';
        schema_node *node = value.text ? weft__documents_node(c, value.text) : NULL;
        found = node ? node : found;
    }
    return found;
}

static int follow_pointer(compiler *c, const schema_resource *resource, char *pointer, schema_node **ret) {
    weft_json value = weft_pointer(&resource->root, pointer);
    if (!value.text)
        return -ENOENT;
    schema_node *node = weft__documents_node(c, value.text);
    if (node) {
        *ret = node;
        return 0;
    }
    schema_node *around = nearest_node(c, resource, pointer);
    if (!around)
        return -ENOENT;
    return weft__compile_value(c, &value, around->resource, around, NULL, (weft_bytes){0}, ret);
}

static int follow_fragment(compiler *c, const schema_resource *resource, char *fragment, schema_node **ret) {
    if (!*fragment || *fragment == '/')
        return follow_pointer(c, resource, fragment, ret);
    char *key = anchor_key(c, resource->uri, fragment);
    if (!key)
        return -ENOMEM;
    weft_node *found = weft__map_find(&c->anchors, key);
    if (!found)
        return -ENOENT;
    *ret = ((struct anchor_name *) (void *) found)->target;
    return 0;
}

static const schema_anchor *dynamic_anchor(const schema_node *node, const char *name) {
    for (const schema_anchor *anchor = node->resource->dynamic; anchor; anchor = anchor->next)
        if (anchor->node == node && strcmp(anchor->name, name) == 0)
            return anchor;
    return NULL;
}

static int resolve_ref(compiler *c, const pending_ref *ref) {
    char *uri = weft__uri_resolve(c->arena, ref->node->resource->uri, ref->reference);
    char *fragment = uri ? weft__uri_cut_fragment(uri) : NULL;
    schema_node *target;
    if (!uri)
        return -ENOMEM;
    if (!fragment)
        return -ENOENT;
    schema_resource *resource = find_resource(c, uri);
    if (!resource) {
        int r = fetch_document(c, uri, ref->node->resource->draft);
        if (r < 0)
            return r;
        resource = find_resource(c, uri);
    }
    int r = resource ? follow_fragment(c, resource, fragment, &target) : -ENOENT;
    if (r < 0)
        return r;
    if (!ref->dynamic) {
        ref->logic->ref = target;
        return 0;
    }
    const schema_anchor *anchor = dynamic_anchor(target, fragment);
    ref->logic->dynamic = target;
    ref->logic->dynamic_name = anchor ? anchor->name : NULL;
    return 0;
}

int weft__documents_resolve(compiler *c) {
    while (c->pending) {
        const pending_ref *ref = c->pending;
        c->pending = ref->next;
        int r = resolve_ref(c, ref);
        if (r == -ENOENT)
            return weft__compiler_refuse(c, r, ref->node, ref->dynamic ? "$dynamicRef" : "$ref",
                                         "refers to a schema that is not known");
        if (r < 0)
            return r;
    }
    return 0;
}
