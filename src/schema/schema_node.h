/* A compiled schema: nodes in one arena, one for each schema within it. They do not change once compiled, so any number of
 * checks can read them at once.
 *
 * A node has what each kind of value must be, in a struct for that kind that is only there if something is asked of it, and
 * the schemas that apply to the same value whatever it is (logic). */
#ifndef WEFT_SCHEMA_NODE_H
#define WEFT_SCHEMA_NODE_H

#include <weft/schema.h>

#include "arena.h"
#include "decimal.h"
#include "names.h"
#include "pattern.h"

typedef struct schema_node schema_node;

/* Types of values as bits; WEFT_NUMBER's is any number. */
#define TYPE_BIT(type) (1u << (type))
#define TYPE_INTEGER 0x80u
#define TYPE_ALL 0x7Eu

/* What is known by one URI: a document, or a part of one that has an "$id". */
typedef struct schema_resource {
    const char *uri;       /* without fragment; "" if it has none */
    const char *shown;     /* before the pointers of its keywords; "" for the schema that was compiled */
    weft_json root;        /* the text of its schema */
    unsigned vocabularies; /* those of its keywords that count */
    weft_draft draft;
    struct schema_anchor *dynamic; /* its dynamic anchors */
} schema_resource;

typedef struct schema_anchor {
    struct schema_anchor *next;
    const char *name;
    schema_node *node;
} schema_anchor;

typedef struct schema_list {
    const schema_node **nodes;
    size_t count;
} schema_list;

typedef struct string_rules {
    uint64_t min, max; /* characters */
    const schema_pattern *pattern;
    bool (*format)(const char *text, size_t len); /* NULL: not checked */
    const char *format_name;
} string_rules;

typedef struct number_rules {
    const schema_decimal *min, *max, *above, *below, *multiple_of; /* NULL: no such limit */
    bool quick;                                                    /* all of them are */
} number_rules;

typedef struct array_rules {
    uint64_t min, max;
    schema_list first;       /* prefixItems */
    const schema_node *rest; /* items behind those; NULL: any */
    const schema_node *contains;
    uint64_t min_contains, max_contains;
    const schema_node *unevaluated;
    bool unique;
    bool old; /* draft 07 names: items, additionalItems */
} array_rules;

typedef struct pattern_rule {
    const schema_pattern *pattern;
    const schema_node *node;
    weft_bytes token; /* as it stands in the schema, decoded */
} pattern_rule;

/* If the member is there, others must be, or another schema applies. */
typedef struct dependent_rule {
    weft_bytes name;
    const weft_bytes *required;
    size_t count;
    const schema_node *node;
    const char *keyword; /* where it was */
} dependent_rule;

typedef struct object_rules {
    uint64_t min, max;
    schema_names names;               /* of properties and required: the value is a property_rule */
    size_t required;                  /* how many of the names */
    const weft_bytes *required_names; /* in the order of the schema */
    const pattern_rule *patterns;
    size_t pattern_count;
    const schema_node *additional;     /* NULL: any */
    const schema_node *property_names; /* NULL: any */
    const dependent_rule *dependents;
    size_t dependent_count;
    const schema_node *unevaluated;
} object_rules;

/* "enum" and "const": values by kind. */
typedef struct enum_rules {
    unsigned simple; /* ENUM_NULL, ENUM_TRUE, ENUM_FALSE */
    schema_names strings;
    const schema_decimal *numbers;
    size_t number_count;
    const weft_bytes *forms; /* arrays and objects in their normal form */
    size_t form_count;
} enum_rules;
#define ENUM_NULL 1u
#define ENUM_TRUE 2u
#define ENUM_FALSE 4u

typedef struct logic_rules {
    const schema_node *ref;
    const schema_node *dynamic; /* what "$dynamicRef" means where no outer schema says otherwise */
    const char *dynamic_name;   /* the anchor that an outer one may have; NULL: it is as good as "$ref" */
    schema_list all_of, any_of, one_of;
    const schema_node *not_, *if_, *then_, *else_;
    const enum_rules *one_of_values; /* "enum" */
    const enum_rules *value;         /* "const" */
} logic_rules;

struct schema_node {
    unsigned types;
    bool never;  /* the schema false */
    bool simple; /* nothing but types */
    schema_resource *resource;
    const string_rules *string;
    const number_rules *number;
    const array_rules *array;
    const object_rules *object;
    const logic_rules *logic;
    /* Where it stands, for people. */
    const schema_node *parent;
    weft_bytes keyword; /* of the parent, that it is in */
    weft_bytes token;   /* the name or index behind that; data NULL: none */
};

struct weft_schema {
    const weft_alloc *alloc;
    weft_arena arena;
    const schema_node *root;
    struct schema_patterns patterns;
    size_t max_depth, max_steps, max_regex;
};

#endif
