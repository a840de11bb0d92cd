/* Compiling: what its files share.
 *
 * Every document (the schema, a metaschema, what find() gave) is copied into the arena and walked once: each schema in it
 * becomes a node, known by where its text begins; what has an "$id" becomes a resource; anchors are noted. References are
 * resolved when all that is known has been walked, which may bring further documents. */
#ifndef WEFT_COMPILER_H
#define WEFT_COMPILER_H

#include "map.h"
#include "report.h"

enum {
    VOCABULARY_CORE = 1 << 0,
    VOCABULARY_APPLICATOR = 1 << 1,
    VOCABULARY_UNEVALUATED = 1 << 2,
    VOCABULARY_VALIDATION = 1 << 3,
    VOCABULARY_META = 1 << 4,
    VOCABULARY_FORMAT = 1 << 5,
    VOCABULARY_CONTENT = 1 << 6,
    VOCABULARY_ALL = (1 << 7) - 1,
    VOCABULARY_FORMAT_ASSERTION = 1 << 7,
};

/* A "$ref" or "$dynamicRef" that waits for all documents to be walked. */
typedef struct pending_ref {
    struct pending_ref *next;
    schema_node *node;
    logic_rules *logic;
    weft_bytes reference;
    bool dynamic;
} pending_ref;

typedef struct node_slot {
    const char *text;
    schema_node *node;
} node_slot;

typedef struct compiler {
    weft_schema *schema;
    weft_arena *arena; /* the schema's */
    weft_schema_opts opts;
    weft_schema_report *report;
    weft_map resources; /* by URI */
    weft_map anchors;   /* by URI#name */
    node_slot *slots;   /* nodes by text; open addressing */
    size_t slot_cap, nodes, bytes;
    pending_ref *pending;
} compiler;

/* Say what is wrong with a keyword of a node, and return r. */
int weft__compiler_refuse(compiler *c, int r, const schema_node *node, const char *keyword, const char *message);

/* The schema at value, which is within resource and parent, as a node. */
int weft__compile_value(compiler *c, const weft_json *value, schema_resource *resource, const schema_node *parent,
                        const char *keyword, weft_bytes token, schema_node **ret);

/* ---- documents.c ---- */

/* The decoded string, NUL-terminated, in the arena. -ENOMEM. */
int weft__compiler_text(compiler *c, const weft_json *string, weft_bytes *ret);
/* Copy and walk a document; its root's node. */
int weft__documents_add(compiler *c, const char *uri, weft_bytes text, const char *shown, weft_draft draft,
                        schema_node **ret);
/* "$schema", "$id" and anchors of a schema whose node is new. Its resource is that around it, and may be its own then. */
int weft__documents_identify(compiler *c, const weft_json *value, schema_node *node);
schema_node *weft__documents_node(const compiler *c, const char *text);
int weft__documents_remember(compiler *c, const char *text, schema_node *node);
/* Resolve everything that is pending, until nothing is. */
int weft__documents_resolve(compiler *c);

#endif
