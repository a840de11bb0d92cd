/* Keywords to nodes. The value of each keyword is looked at here, and one that does not make sense is refused with its
 * place: a check never meets one. Recursion is as deep as the text, which the scanner has held to WEFT_MAX_DEPTH. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "compiler.h"
#include "doc.h"
#include "format.h"
#include "normal.h"
#include "number.h"
#include "scan.h"

#define DEFAULT_NODES 20000
#define DEFAULT_BYTES ((size_t) 4 << 20)
#define DEFAULT_DEPTH 1000
#define DEFAULT_STEPS 10000000
#define DEFAULT_REGEX 2000000

/* ---- the keywords ---- */

enum keyword {
    K_REF,
    K_DYNAMIC_REF,
    K_DEFS,
    K_DEFINITIONS,
    K_PREFIX_ITEMS,
    K_ITEMS,
    K_ADDITIONAL_ITEMS,
    K_CONTAINS,
    K_PROPERTIES,
    K_PATTERN_PROPERTIES,
    K_ADDITIONAL_PROPERTIES,
    K_PROPERTY_NAMES,
    K_DEPENDENT_SCHEMAS,
    K_DEPENDENCIES,
    K_IF,
    K_THEN,
    K_ELSE,
    K_ALL_OF,
    K_ANY_OF,
    K_ONE_OF,
    K_NOT,
    K_UNEVALUATED_ITEMS,
    K_UNEVALUATED_PROPERTIES,
    K_TYPE,
    K_CONST,
    K_ENUM,
    K_MULTIPLE_OF,
    K_MAXIMUM,
    K_EXCLUSIVE_MAXIMUM,
    K_MINIMUM,
    K_EXCLUSIVE_MINIMUM,
    K_MAX_LENGTH,
    K_MIN_LENGTH,
    K_PATTERN,
    K_MAX_ITEMS,
    K_MIN_ITEMS,
    K_UNIQUE_ITEMS,
    K_MAX_CONTAINS,
    K_MIN_CONTAINS,
    K_MAX_PROPERTIES,
    K_MIN_PROPERTIES,
    K_REQUIRED,
    K_DEPENDENT_REQUIRED,
    K_FORMAT,
    KEYWORDS,
};

enum { NEW = 1 << WEFT_DRAFT_2020_12, OLD = 1 << WEFT_DRAFT_07, BOTH = NEW | OLD };
#define SCHEMA (TYPE_BIT(WEFT_OBJECT) | TYPE_BIT(WEFT_BOOL))

static const struct keyword_row {
    const char *name;
    unsigned vocabulary;
    unsigned drafts;
    unsigned types;      /* that its value may have */
    const char *must_be; /* what to say otherwise */
} keywords[KEYWORDS] = {
    [K_REF] = {"$ref", VOCABULARY_CORE, BOTH, TYPE_BIT(WEFT_STRING), "must be a string"},
    [K_DYNAMIC_REF] = {"$dynamicRef", VOCABULARY_CORE, NEW, TYPE_BIT(WEFT_STRING), "must be a string"},
    [K_DEFS] = {"$defs", VOCABULARY_CORE, NEW, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_DEFINITIONS] = {"definitions", VOCABULARY_CORE, BOTH, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_PREFIX_ITEMS] = {"prefixItems", VOCABULARY_APPLICATOR, NEW, TYPE_BIT(WEFT_ARRAY), "must be an array"},
    [K_ITEMS] = {"items", VOCABULARY_APPLICATOR, BOTH, SCHEMA | TYPE_BIT(WEFT_ARRAY), "must be a schema"},
    [K_ADDITIONAL_ITEMS] = {"additionalItems", VOCABULARY_APPLICATOR, OLD, SCHEMA, "must be a schema"},
    [K_CONTAINS] = {"contains", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_PROPERTIES] = {"properties", VOCABULARY_APPLICATOR, BOTH, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_PATTERN_PROPERTIES] = {"patternProperties", VOCABULARY_APPLICATOR, BOTH, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_ADDITIONAL_PROPERTIES] = {"additionalProperties", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_PROPERTY_NAMES] = {"propertyNames", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_DEPENDENT_SCHEMAS] = {"dependentSchemas", VOCABULARY_APPLICATOR, NEW, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_DEPENDENCIES] = {"dependencies", VOCABULARY_APPLICATOR, BOTH, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_IF] = {"if", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_THEN] = {"then", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_ELSE] = {"else", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_ALL_OF] = {"allOf", VOCABULARY_APPLICATOR, BOTH, TYPE_BIT(WEFT_ARRAY), "must be an array"},
    [K_ANY_OF] = {"anyOf", VOCABULARY_APPLICATOR, BOTH, TYPE_BIT(WEFT_ARRAY), "must be an array"},
    [K_ONE_OF] = {"oneOf", VOCABULARY_APPLICATOR, BOTH, TYPE_BIT(WEFT_ARRAY), "must be an array"},
    [K_NOT] = {"not", VOCABULARY_APPLICATOR, BOTH, SCHEMA, "must be a schema"},
    [K_UNEVALUATED_ITEMS] = {"unevaluatedItems", VOCABULARY_UNEVALUATED, NEW, SCHEMA, "must be a schema"},
    [K_UNEVALUATED_PROPERTIES] = {"unevaluatedProperties", VOCABULARY_UNEVALUATED, NEW, SCHEMA, "must be a schema"},
    [K_TYPE] = {"type", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_STRING) | TYPE_BIT(WEFT_ARRAY),
                "must be the name of a type or an array of them"},
    [K_CONST] = {"const", VOCABULARY_VALIDATION, BOTH, TYPE_ALL, ""},
    [K_ENUM] = {"enum", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_ARRAY), "must be an array"},
    [K_MULTIPLE_OF] = {"multipleOf", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a number"},
    [K_MAXIMUM] = {"maximum", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a number"},
    [K_EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a number"},
    [K_MINIMUM] = {"minimum", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a number"},
    [K_EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a number"},
    [K_MAX_LENGTH] = {"maxLength", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_MIN_LENGTH] = {"minLength", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_PATTERN] = {"pattern", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_STRING), "must be a string"},
    [K_MAX_ITEMS] = {"maxItems", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_MIN_ITEMS] = {"minItems", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_UNIQUE_ITEMS] = {"uniqueItems", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_BOOL), "must be true or false"},
    [K_MAX_CONTAINS] = {"maxContains", VOCABULARY_VALIDATION, NEW, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_MIN_CONTAINS] = {"minContains", VOCABULARY_VALIDATION, NEW, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_MAX_PROPERTIES] = {"maxProperties", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_MIN_PROPERTIES] = {"minProperties", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_NUMBER), "must be a count"},
    [K_REQUIRED] = {"required", VOCABULARY_VALIDATION, BOTH, TYPE_BIT(WEFT_ARRAY), "must be an array of strings"},
    [K_DEPENDENT_REQUIRED] = {"dependentRequired", VOCABULARY_VALIDATION, NEW, TYPE_BIT(WEFT_OBJECT), "must be an object"},
    [K_FORMAT] = {"format", VOCABULARY_FORMAT, BOTH, TYPE_BIT(WEFT_STRING), "must be a string"},
};

/* One schema that is being compiled: its keywords' values, absent where there is none. */
typedef struct source {
    compiler *c;
    schema_node *node;
    weft_json values[KEYWORDS];
} source;

int weft__compiler_refuse(compiler *c, int r, const schema_node *node, const char *keyword, const char *message) {
    int told = weft__report_add(c->report, NULL, node, keyword, message);
    return told < 0 ? told : r;
}

static int refuse(const source *s, enum keyword k, int r, const char *message) {
    return weft__compiler_refuse(s->c, r, s->node, keywords[k].name, message);
}

static bool has(const source *s, enum keyword k) {
    return s->values[k].text;
}

static bool has_any(const source *s, const enum keyword *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (has(s, list[i]))
            return true;
    return false;
}
#define HAS_ANY(s, ...)                                                                                                     \
    has_any(s, (const enum keyword[]){__VA_ARGS__}, sizeof((const enum keyword[]){__VA_ARGS__}) / sizeof(enum keyword))

static void *zeroed(const source *s, size_t size) {
    void *memory = weft__arena_alloc(s->c->arena, size ? size : 1);
    if (memory)
        memset(memory, 0, size);
    return memory;
}

/* ---- schemas within ---- */

static int compile_at(const source *s, const weft_json *value, const char *keyword, weft_bytes token,
                      const schema_node **ret) {
    schema_node *node;
    int r = weft__compile_value(s->c, value, s->node->resource, s->node, keyword, token, &node);
    if (r >= 0)
        *ret = node;
    return r;
}

static int compile_one(const source *s, enum keyword k, const schema_node **ret) {
    return has(s, k) ? compile_at(s, &s->values[k], keywords[k].name, (weft_bytes){0}, ret) : 0;
}

/* An index as a token. */
static int index_token(const source *s, size_t index, weft_bytes *ret) {
    char *text = weft__arena_alloc(s->c->arena, 24);
    if (!text)
        return -ENOMEM;
    *ret = (weft_bytes){text, (size_t) snprintf(text, 24, "%zu", index)};
    return 0;
}

static int compile_list(const source *s, enum keyword k, schema_list *ret) {
    size_t count = weft_count(&s->values[k]), i = 0;
    if (!has(s, k))
        return 0;
    ret->nodes = zeroed(s, count * sizeof *ret->nodes);
    if (!ret->nodes)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(&s->values[k]); weft_next(&it); i++) {
        weft_bytes token;
        int r = index_token(s, i, &token);
        if (r >= 0)
            r = compile_at(s, &it.value, keywords[k].name, token, &ret->nodes[i]);
        if (r < 0)
            return r;
    }
    ret->count = count;
    return count ? 0 : refuse(s, k, -EBADMSG, "must not be empty");
}

/* Schemas that only wait to be referred to. */
static int compile_definitions(const source *s, enum keyword k) {
    const schema_node *node;
    int r = 0;
    for (weft_iter it = weft_iterate(&s->values[k]); r >= 0 && weft_next(&it);) {
        weft_bytes token;
        r = weft__compiler_text(s->c, &it.name, &token);
        if (r >= 0)
            r = compile_at(s, &it.value, keywords[k].name, token, &node);
    }
    return r;
}

/* ---- scalars ---- */

static int read_decimal(const source *s, enum keyword k, const schema_decimal **ret) {
    schema_decimal *decimal;
    if (!has(s, k))
        return 0;
    decimal = weft__arena_alloc(s->c->arena, sizeof *decimal);
    if (!decimal)
        return -ENOMEM;
    weft__decimal_read(s->values[k].text, s->values[k].len, decimal);
    *ret = decimal;
    return 0;
}

/* A count that is beyond 64 bits is as good as the largest. */
static int read_limit(const source *s, enum keyword k, uint64_t *ret) {
    schema_decimal decimal;
    int64_t i;
    if (!has(s, k))
        return 0;
    weft__decimal_read(s->values[k].text, s->values[k].len, &decimal);
    if (!weft__decimal_is_integer(&decimal) || (decimal.count && decimal.negative))
        return refuse(s, k, -EBADMSG, "must be a count");
    *ret = weft__number_int(s->values[k].text, s->values[k].len, &i) < 0 ? UINT64_MAX : (uint64_t) i;
    return 0;
}

static int read_pattern(const source *s, weft_bytes text, enum keyword k, const schema_pattern **ret) {
    const char *why = "";
    int r = weft__pattern_compile(&s->c->schema->patterns, s->c->arena, text, ret, &why);
    return r == -EBADMSG || r == -ENOTSUP ? refuse(s, k, r, why) : r;
}

/* ---- types ---- */

static unsigned type_by_name(const weft_json *name) {
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {
        {"null", TYPE_BIT(WEFT_NULL)},     {"boolean", TYPE_BIT(WEFT_BOOL)}, {"number", TYPE_BIT(WEFT_NUMBER)},
        {"string", TYPE_BIT(WEFT_STRING)}, {"array", TYPE_BIT(WEFT_ARRAY)},  {"object", TYPE_BIT(WEFT_OBJECT)},
        {"integer", TYPE_INTEGER},
    };
    weft_iter it = {.name = *name};
    for (size_t i = 0; weft_typeof(name) == WEFT_STRING && i < sizeof names / sizeof names[0]; i++)
        if (weft_name_is(&it, names[i].name))
            return names[i].bits;
    return 0;
}

static int compile_type(const source *s) {
    const weft_json *value = &s->values[K_TYPE];
    unsigned types = 0;
    if (!has(s, K_TYPE))
        return 0;
    if (weft_typeof(value) == WEFT_STRING)
        types = type_by_name(value);
    for (weft_iter it = weft_iterate(value); weft_next(&it);) {
        unsigned one = type_by_name(&it.value);
        if (!one)
            return refuse(s, K_TYPE, -EBADMSG, "has a type that there is not");
        types |= one;
    }
    s->node->types = types;
    return types ? 0 : refuse(s, K_TYPE, -EBADMSG, "must be the name of a type");
}

/* ---- strings and numbers ---- */

static int compile_string(const source *s) {
    string_rules *rules;
    weft_bytes text;
    int r = 0;
    bool formats = s->c->opts.check_formats || (s->node->resource->vocabularies & VOCABULARY_FORMAT_ASSERTION);
    if (!HAS_ANY(s, K_MIN_LENGTH, K_MAX_LENGTH, K_PATTERN) && !(formats && has(s, K_FORMAT)))
        return 0;
    if (!(rules = zeroed(s, sizeof *rules)))
        return -ENOMEM;
    s->node->string = rules;
    rules->max = UINT64_MAX;
    r = read_limit(s, K_MIN_LENGTH, &rules->min);
    if (r >= 0)
        r = read_limit(s, K_MAX_LENGTH, &rules->max);
    if (r >= 0 && has(s, K_PATTERN)) {
        r = weft__compiler_text(s->c, &s->values[K_PATTERN], &text);
        if (r >= 0)
            r = read_pattern(s, text, K_PATTERN, &rules->pattern);
    }
    if (r >= 0 && formats && has(s, K_FORMAT)) {
        r = weft__compiler_text(s->c, &s->values[K_FORMAT], &text);
        if (r >= 0) {
            rules->format = weft__format_find(text.data);
            rules->format_name = text.data;
        }
    }
    return r;
}

static bool is_quick(const schema_decimal *limit) {
    return !limit || limit->quick;
}

static int compile_number(const source *s) {
    number_rules *rules;
    if (!HAS_ANY(s, K_MINIMUM, K_MAXIMUM, K_EXCLUSIVE_MINIMUM, K_EXCLUSIVE_MAXIMUM, K_MULTIPLE_OF))
        return 0;
    if (!(rules = zeroed(s, sizeof *rules)))
        return -ENOMEM;
    s->node->number = rules;
    int r = read_decimal(s, K_MINIMUM, &rules->min);
    if (r >= 0)
        r = read_decimal(s, K_MAXIMUM, &rules->max);
    if (r >= 0)
        r = read_decimal(s, K_EXCLUSIVE_MINIMUM, &rules->above);
    if (r >= 0)
        r = read_decimal(s, K_EXCLUSIVE_MAXIMUM, &rules->below);
    if (r >= 0)
        r = read_decimal(s, K_MULTIPLE_OF, &rules->multiple_of);
    rules->quick = is_quick(rules->min) && is_quick(rules->max) && is_quick(rules->above) && is_quick(rules->below) &&
                   is_quick(rules->multiple_of);
    if (r < 0 || !rules->multiple_of)
        return r;
    if (!rules->multiple_of->count || rules->multiple_of->negative)
        return refuse(s, K_MULTIPLE_OF, -EBADMSG, "must be above zero");
    if (rules->multiple_of->count > WEFT_DIVISOR_DIGITS)
        return refuse(s, K_MULTIPLE_OF, -ENOTSUP, "has too many digits");
    return 0;
}

/* ---- arrays ---- */

static int compile_items(const source *s, array_rules *rules) {
    bool list = weft_typeof(&s->values[K_ITEMS]) == WEFT_ARRAY;
    rules->old = s->node->resource->draft == WEFT_DRAFT_07;
    if (!rules->old) {
        int r = compile_list(s, K_PREFIX_ITEMS, &rules->first);
        if (r >= 0 && list)
            return refuse(s, K_ITEMS, -EBADMSG, "must be a schema");
        return r < 0 ? r : compile_one(s, K_ITEMS, &rules->rest);
    }
    if (!list)
        return compile_one(s, K_ITEMS, &rules->rest);
    int r = weft_count(&s->values[K_ITEMS]) ? compile_list(s, K_ITEMS, &rules->first) : 0;
    return r < 0 ? r : compile_one(s, K_ADDITIONAL_ITEMS, &rules->rest);
}

static int compile_array(const source *s) {
    array_rules *rules;
    if (!HAS_ANY(s, K_PREFIX_ITEMS, K_ITEMS, K_CONTAINS, K_MIN_ITEMS, K_MAX_ITEMS, K_UNIQUE_ITEMS, K_UNEVALUATED_ITEMS))
        return 0;
    if (!(rules = zeroed(s, sizeof *rules)))
        return -ENOMEM;
    s->node->array = rules;
    rules->max = rules->max_contains = UINT64_MAX;
    rules->min_contains = 1;
    rules->unique = weft_bool_of(&s->values[K_UNIQUE_ITEMS], false);
    int r = compile_items(s, rules);
    if (r >= 0)
        r = read_limit(s, K_MIN_ITEMS, &rules->min);
    if (r >= 0)
        r = read_limit(s, K_MAX_ITEMS, &rules->max);
    if (r >= 0)
        r = compile_one(s, K_CONTAINS, &rules->contains);
    if (r >= 0)
        r = read_limit(s, K_MIN_CONTAINS, &rules->min_contains);
    if (r >= 0)
        r = read_limit(s, K_MAX_CONTAINS, &rules->max_contains);
    return r < 0 ? r : compile_one(s, K_UNEVALUATED_ITEMS, &rules->unevaluated);
}

/* ---- objects ---- */

static int compile_properties(const source *s, object_rules *rules) {
    int r = 0;
    for (weft_iter it = weft_iterate(&s->values[K_PROPERTIES]); r >= 0 && weft_next(&it);) {
        const schema_node *node;
        weft_bytes name;
        r = weft__compiler_text(s->c, &it.name, &name);
        if (r >= 0)
            r = compile_at(s, &it.value, keywords[K_PROPERTIES].name, name, &node);
        if (r < 0)
            return r;
        schema_name *entry = weft__names_add(&rules->names, s->c->arena, name);
        if (!entry)
            return -ENOMEM;
        entry->node = node;
    }
    return r;
}

/* An array of strings. */
static int read_strings(const source *s, const weft_json *array, enum keyword k, weft_bytes **ret, size_t *ret_count) {
    size_t i = 0, count = weft_count(array);
    weft_bytes *names = zeroed(s, count * sizeof *names);
    if (!names)
        return -ENOMEM;
    if (weft_typeof(array) != WEFT_ARRAY)
        return refuse(s, k, -EBADMSG, "must be an array of strings");
    for (weft_iter it = weft_iterate(array); weft_next(&it); i++) {
        if (weft_typeof(&it.value) != WEFT_STRING)
            return refuse(s, k, -EBADMSG, "must be an array of strings");
        int r = weft__compiler_text(s->c, &it.value, &names[i]);
        if (r < 0)
            return r;
    }
    *ret = names;
    *ret_count = count;
    return 0;
}

static int compile_required(const source *s, object_rules *rules) {
    weft_bytes *names;
    size_t count;
    if (!has(s, K_REQUIRED))
        return 0;
    int r = read_strings(s, &s->values[K_REQUIRED], K_REQUIRED, &names, &count);
    if (r < 0)
        return r;
    rules->required_names = names;
    for (size_t i = 0; i < count; i++) {
        schema_name *entry = weft__names_add(&rules->names, s->c->arena, names[i]);
        if (!entry)
            return -ENOMEM;
        if (entry->required >= 0)
            continue;
        names[rules->required] = names[i];
        entry->required = (int64_t) rules->required++;
    }
    return 0;
}

static int compile_pattern_properties(const source *s, object_rules *rules) {
    const weft_json *object = &s->values[K_PATTERN_PROPERTIES];
    size_t i = 0, count = weft_count(object);
    if (!count)
        return 0;
    pattern_rule *patterns = zeroed(s, count * sizeof *patterns);
    if (!patterns)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(object); weft_next(&it); i++) {
        int r = weft__compiler_text(s->c, &it.name, &patterns[i].token);
        if (r >= 0)
            r = read_pattern(s, patterns[i].token, K_PATTERN_PROPERTIES, &patterns[i].pattern);
        if (r >= 0)
            r = compile_at(s, &it.value, keywords[K_PATTERN_PROPERTIES].name, patterns[i].token, &patterns[i].node);
        if (r < 0)
            return r;
    }
    rules->patterns = patterns;
    rules->pattern_count = count;
    return 0;
}

/* What applies if a member is there: names, or a schema. */
static int compile_dependent(const source *s, enum keyword k, const weft_iter *it, dependent_rule *ret) {
    int r = weft__compiler_text(s->c, &it->name, &ret->name);
    bool names = k == K_DEPENDENT_REQUIRED || (k == K_DEPENDENCIES && weft_typeof(&it->value) == WEFT_ARRAY);
    weft_bytes *required;
    ret->keyword = keywords[k].name;
    if (r < 0)
        return r;
    if (!names)
        return compile_at(s, &it->value, keywords[k].name, ret->name, &ret->node);
    r = read_strings(s, &it->value, k, &required, &ret->count);
    if (r >= 0)
        ret->required = required;
    return r;
}

static int compile_dependents(const source *s, object_rules *rules) {
    static const enum keyword all[] = {K_DEPENDENT_REQUIRED, K_DEPENDENT_SCHEMAS, K_DEPENDENCIES};
    size_t count = 0;
    for (size_t i = 0; i < 3; i++)
        count += weft_count(&s->values[all[i]]);
    if (!count)
        return 0;
    dependent_rule *dependents = zeroed(s, count * sizeof *dependents);
    if (!dependents)
        return -ENOMEM;
    rules->dependents = dependents;
    for (size_t i = 0; i < 3; i++)
        for (weft_iter it = weft_iterate(&s->values[all[i]]); weft_next(&it);) {
            int r = compile_dependent(s, all[i], &it, &dependents[rules->dependent_count++]);
            if (r < 0)
                return r;
        }
    return 0;
}

static int compile_object(const source *s) {
    object_rules *rules;
    if (!HAS_ANY(s, K_PROPERTIES, K_PATTERN_PROPERTIES, K_ADDITIONAL_PROPERTIES, K_PROPERTY_NAMES, K_DEPENDENT_SCHEMAS,
                 K_DEPENDENCIES, K_DEPENDENT_REQUIRED, K_UNEVALUATED_PROPERTIES, K_REQUIRED, K_MIN_PROPERTIES,
                 K_MAX_PROPERTIES))
        return 0;
    if (!(rules = zeroed(s, sizeof *rules)))
        return -ENOMEM;
    s->node->object = rules;
    rules->max = UINT64_MAX;
    int r = compile_properties(s, rules);
    if (r >= 0)
        r = compile_required(s, rules);
    if (r >= 0)
        r = compile_pattern_properties(s, rules);
    if (r >= 0)
        r = compile_one(s, K_ADDITIONAL_PROPERTIES, &rules->additional);
    if (r >= 0)
        r = compile_one(s, K_PROPERTY_NAMES, &rules->property_names);
    if (r >= 0)
        r = compile_dependents(s, rules);
    if (r >= 0)
        r = read_limit(s, K_MIN_PROPERTIES, &rules->min);
    if (r >= 0)
        r = read_limit(s, K_MAX_PROPERTIES, &rules->max);
    return r < 0 ? r : compile_one(s, K_UNEVALUATED_PROPERTIES, &rules->unevaluated);
}

/* ---- enum and const ---- */

static int add_form(const source *s, const weft_json *value, weft_bytes *ret) {
    weft_buf form = {0};
    const char *end;
    int r = weft__normal_write(&form, s->c->opts.alloc, value->text, &end);
    char *copy = r < 0 ? NULL : weft__arena_alloc(s->c->arena, weft__buf_len(&form));
    if (copy) {
        *ret = (weft_bytes){copy, weft__buf_len(&form)};
        memcpy(copy, weft__buf_head(&form), ret->len);
    }
    weft__buf_done(&form, s->c->opts.alloc);
    return copy ? 0 : -ENOMEM;
}

/* There is room in all of its lists. */
static int add_value(const source *s, const weft_json *value, enum_rules *rules, schema_decimal *numbers,
                     weft_bytes *forms) {
    weft_bytes text;
    int r;
    switch (weft_typeof(value)) {
    case WEFT_STRING:
        r = weft__compiler_text(s->c, value, &text);
        return r < 0 ? r : weft__names_add(&rules->strings, s->c->arena, text) ? 0 : -ENOMEM;
    case WEFT_NUMBER:
        weft__decimal_read(value->text, value->len, &numbers[rules->number_count++]);
        return 0;
    case WEFT_ARRAY:
    case WEFT_OBJECT:
        return add_form(s, value, &forms[rules->form_count++]);
    case WEFT_BOOL:
        rules->simple |= *value->text == 't' ? ENUM_TRUE : ENUM_FALSE;
        return 0;
    default:
        rules->simple |= ENUM_NULL;
        return 0;
    }
}

static int new_enum(const source *s, size_t count, enum_rules **ret, schema_decimal **ret_numbers, weft_bytes **ret_forms) {
    enum_rules *rules = zeroed(s, sizeof *rules);
    schema_decimal *numbers = zeroed(s, count * sizeof *numbers);
    weft_bytes *forms = zeroed(s, count * sizeof *forms);
    if (!rules || !numbers || !forms)
        return -ENOMEM;
    rules->numbers = numbers;
    rules->forms = forms;
    *ret = rules;
    *ret_numbers = numbers;
    *ret_forms = forms;
    return 0;
}

static int compile_values(const source *s, logic_rules *logic) {
    enum_rules *rules;
    schema_decimal *numbers;
    weft_bytes *forms;
    int r = 0;
    if (has(s, K_CONST)) {
        r = new_enum(s, 1, &rules, &numbers, &forms);
        if (r >= 0)
            r = add_value(s, &s->values[K_CONST], rules, numbers, forms);
        if (r >= 0)
            logic->value = rules;
    }
    if (r < 0 || !has(s, K_ENUM))
        return r;
    r = new_enum(s, weft_count(&s->values[K_ENUM]), &rules, &numbers, &forms);
    if (r < 0)
        return r;
    logic->one_of_values = rules;
    for (weft_iter it = weft_iterate(&s->values[K_ENUM]); r >= 0 && weft_next(&it);)
        r = add_value(s, &it.value, rules, numbers, forms);
    return r;
}

/* ---- logic ---- */

static int add_pending(const source *s, enum keyword k, logic_rules *logic) {
    weft_bytes text;
    if (!has(s, k))
        return 0;
    pending_ref *ref = zeroed(s, sizeof *ref);
    int r = ref ? weft__compiler_text(s->c, &s->values[k], &text) : -ENOMEM;
    if (r < 0)
        return r;
    if (memchr(text.data, '\0', text.len))
        return refuse(s, k, -EBADMSG, "must not contain a NUL");
    *ref = (pending_ref){s->c->pending, s->node, logic, text, k == K_DYNAMIC_REF};
    s->c->pending = ref;
    return 0;
}

static int compile_logic(const source *s) {
    logic_rules *logic;
    if (!HAS_ANY(s, K_REF, K_DYNAMIC_REF, K_ALL_OF, K_ANY_OF, K_ONE_OF, K_NOT, K_IF, K_THEN, K_ELSE, K_ENUM, K_CONST))
        return 0;
    if (!(logic = zeroed(s, sizeof *logic)))
        return -ENOMEM;
    s->node->logic = logic;
    int r = add_pending(s, K_REF, logic);
    if (r >= 0)
        r = add_pending(s, K_DYNAMIC_REF, logic);
    if (r >= 0)
        r = compile_list(s, K_ALL_OF, &logic->all_of);
    if (r >= 0)
        r = compile_list(s, K_ANY_OF, &logic->any_of);
    if (r >= 0)
        r = compile_list(s, K_ONE_OF, &logic->one_of);
    if (r >= 0)
        r = compile_one(s, K_NOT, &logic->not_);
    if (r >= 0)
        r = compile_one(s, K_IF, &logic->if_);
    if (r >= 0)
        r = compile_one(s, K_THEN, &logic->then_);
    if (r >= 0)
        r = compile_one(s, K_ELSE, &logic->else_);
    return r < 0 ? r : compile_values(s, logic);
}

/* ---- a schema ---- */

/* Which keyword it is, if it counts here; KEYWORDS: none. */
static enum keyword find_keyword(const source *s, const weft_iter *it) {
    const schema_resource *resource = s->node->resource;
    int k = 0;
    while (k < KEYWORDS && !weft_name_is(it, keywords[k].name))
        k++;
    if (k < KEYWORDS &&
        (!(keywords[k].vocabulary & resource->vocabularies) || !(keywords[k].drafts & 1u << resource->draft)))
        k = KEYWORDS;
    return (enum keyword) k;
}

static int collect_keywords(source *s, const weft_json *value) {
    for (weft_iter it = weft_iterate(value); weft_next(&it);) {
        enum keyword k = find_keyword(s, &it);
        if (k < KEYWORDS)
            s->values[k] = it.value;
    }
    /* Beside a "$ref", draft 07 knows nothing else; but what is defined there can be referred to. */
    bool alone = s->node->resource->draft == WEFT_DRAFT_07 && has(s, K_REF);
    for (int k = 0; k < KEYWORDS; k++) {
        if (alone && k != K_REF && k != K_DEFINITIONS)
            s->values[k] = (weft_json){0};
        if (has(s, (enum keyword) k) && !(keywords[k].types & TYPE_BIT(weft_typeof(&s->values[k]))))
            return refuse(s, (enum keyword) k, -EBADMSG, keywords[k].must_be);
    }
    return 0;
}

static int compile_keywords(source *s, const weft_json *value) {
    int r = collect_keywords(s, value);
    if (r >= 0)
        r = compile_definitions(s, K_DEFS);
    if (r >= 0)
        r = compile_definitions(s, K_DEFINITIONS);
    if (r >= 0)
        r = compile_type(s);
    if (r >= 0)
        r = compile_string(s);
    if (r >= 0)
        r = compile_number(s);
    if (r >= 0)
        r = compile_array(s);
    if (r >= 0)
        r = compile_object(s);
    return r < 0 ? r : compile_logic(s);
}

/* The keywords take more room than a deep recursion should have on the stack. */
static int compile_members(compiler *c, const weft_json *value, schema_node *node) {
    source *s = weft__zalloc(c->opts.alloc, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->c = c;
    s->node = node;
    int r = compile_keywords(s, value);
    weft__free(c->opts.alloc, s);
    return r;
}

int weft__compile_value(compiler *c, const weft_json *value, schema_resource *resource, const schema_node *parent,
                        const char *keyword, weft_bytes token, schema_node **ret) {
    schema_node *node = weft__arena_alloc(c->arena, sizeof *node);
    weft_type type = weft_typeof(value);
    if (!node)
        return -ENOMEM;
    *node = (schema_node){.types = TYPE_ALL, .resource = resource, .parent = parent, .token = token};
    if (keyword)
        node->keyword = (weft_bytes){keyword, strlen(keyword)};
    if (type != WEFT_OBJECT && type != WEFT_BOOL)
        return weft__compiler_refuse(c, -EBADMSG, node, NULL, "must be a schema: an object, true or false");
    int r = weft__documents_remember(c, value->text, node);
    if (r < 0)
        return r;
    node->never = type == WEFT_BOOL && *value->text == 'f';
    if (type == WEFT_OBJECT) {
        r = weft__documents_identify(c, value, node);
        if (r >= 0)
            r = compile_members(c, value, node);
    }
    node->simple = !node->never && !node->string && !node->number && !node->array && !node->object && !node->logic;
    *ret = node;
    return r;
}

/* ---- the whole ---- */

static size_t or_default(size_t limit, size_t fallback) {
    return limit ? limit : fallback;
}

static int compile_all(compiler *c, weft_bytes text) {
    schema_node *root = NULL;
    size_t size = strlen(c->opts.uri) + 1;
    char *uri = weft__arena_alloc(c->arena, size);
    if (!uri)
        return -ENOMEM;
    memcpy(uri, c->opts.uri, size);
    uri[strcspn(uri, "#")] = '\0';
    int r = weft__documents_add(c, uri, text, "", c->opts.draft, &root);
    if (r >= 0)
        r = weft__documents_resolve(c);
    c->schema->root = root;
    return r;
}

int weft_schema_compile(const char *text, size_t len, const weft_schema_opts *opts, weft_schema **ret,
                        weft_schema_report *report) {
    compiler c = {.report = report};
    if (opts)
        c.opts = *opts;
    const weft_alloc *alloc = c.opts.alloc;
    c.opts.uri = c.opts.uri ? c.opts.uri : "";
    c.opts.max_nodes = or_default(c.opts.max_nodes, DEFAULT_NODES);
    c.opts.max_bytes = or_default(c.opts.max_bytes, DEFAULT_BYTES);
    weft__report_begin(report, alloc);
    if (!text)
        return -EINVAL;
    weft_schema *schema = weft__zalloc(alloc, sizeof *schema);
    if (!schema)
        return -ENOMEM;
    schema->alloc = schema->arena.alloc = schema->patterns.alloc = alloc;
    schema->max_depth = or_default(c.opts.max_depth, DEFAULT_DEPTH);
    schema->max_steps = or_default(c.opts.max_steps, DEFAULT_STEPS);
    schema->max_regex = or_default(c.opts.max_regex, DEFAULT_REGEX);
    c.schema = schema;
    c.arena = &schema->arena;
    c.resources.alloc = c.anchors.alloc = alloc;
    int r = compile_all(&c, (weft_bytes){text ? text : "", len});
    weft__map_done(&c.resources);
    weft__map_done(&c.anchors);
    weft__free(alloc, c.slots);
    if (r < 0) {
        weft_schema_free(schema);
        return r;
    }
    *ret = schema;
    return 0;
}

weft_schema *weft_schema_free(weft_schema *schema) {
    if (!schema)
        return NULL;
    weft__patterns_done(&schema->patterns);
    weft__arena_done(&schema->arena);
    return weft__free(schema->alloc, schema);
}

void weft_schema_freep(weft_schema **schema) {
    *schema = weft_schema_free(*schema);
}
