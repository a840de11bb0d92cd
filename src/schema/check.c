/* Does a value fit a node: its type, what is asked of values of that type, and the schemas that apply to it as a whole. */
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hint.h"

#define MAX_MESSAGE 256

const uint8_t weft__type_bits[256] = {
    ['n'] = TYPE_BIT(WEFT_NULL),   ['t'] = TYPE_BIT(WEFT_BOOL),   ['f'] = TYPE_BIT(WEFT_BOOL),
    ['"'] = TYPE_BIT(WEFT_STRING), ['['] = TYPE_BIT(WEFT_ARRAY),  ['{'] = TYPE_BIT(WEFT_OBJECT),
    ['-'] = TYPE_BIT(WEFT_NUMBER), ['0'] = TYPE_BIT(WEFT_NUMBER), ['1'] = TYPE_BIT(WEFT_NUMBER),
    ['2'] = TYPE_BIT(WEFT_NUMBER), ['3'] = TYPE_BIT(WEFT_NUMBER), ['4'] = TYPE_BIT(WEFT_NUMBER),
    ['5'] = TYPE_BIT(WEFT_NUMBER), ['6'] = TYPE_BIT(WEFT_NUMBER), ['7'] = TYPE_BIT(WEFT_NUMBER),
    ['8'] = TYPE_BIT(WEFT_NUMBER), ['9'] = TYPE_BIT(WEFT_NUMBER),
};

/* ---- misfits ---- */

WEFT_COLD const char *weft__check_fails(schema_run *run, int r) {
    if (run->r >= 0)
        run->r = r;
    return NULL;
}

WEFT_COLD const char *weft__misfit(schema_run *run, const schema_node *node, const char *keyword, const char *format, ...) {
    char message[MAX_MESSAGE];
    if (!run->report || run->r < 0)
        return NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    int r = weft__report_add(run->report, run->place, node, keyword, message);
    return r < 0 ? weft__check_fails(run, r) : NULL;
}

/* ---- marks ---- */

int weft__marks_init(schema_marks *marks, const weft_alloc *alloc, size_t count) {
    *marks = (schema_marks){.words = (count + 63) / 64};
    if (marks->words <= FEW_MARKS)
        return 0;
    marks->many = weft__zalloc(alloc, marks->words * sizeof *marks->many);
    return marks->many ? 0 : -ENOMEM;
}

void weft__marks_done(schema_marks *marks, const weft_alloc *alloc) {
    weft__free(alloc, marks->many);
}

static void add_marks(schema_marks *to, schema_marks *from) {
    for (size_t i = 0; i < to->words; i++)
        weft__marks_words(to)[i] |= weft__marks_words(from)[i];
}

bool weft__check_quietly(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    weft_schema_report *report = run->report;
    schema_marks own;
    run->report = NULL;
    bool fits = false;
    if (!marks) {
        fits = weft__check_node(run, node, p, NULL);
    } else if (weft__marks_init(&own, run->alloc, marks->words * 64) < 0) {
        weft__check_fails(run, -ENOMEM);
    } else {
        fits = weft__check_node(run, node, p, &own);
        if (fits)
            add_marks(marks, &own);
        weft__marks_done(&own, run->alloc);
    }
    run->report = report;
    return fits;
}

/* ---- types ---- */

static bool is_integer(const char *p) {
    int64_t i;
    const char *end;
    if (weft__quick_int(p, &i, &end))
        return true;
    schema_decimal decimal;
    weft__decimal_read(p, (size_t) (weft__skip_value(p) - p), &decimal);
    return weft__decimal_is_integer(&decimal);
}

static bool fits_type(const schema_node *node, const char *p) {
    unsigned bit = weft__type_bits[(unsigned char) *p];
    return (node->types & bit) || (bit == TYPE_BIT(WEFT_NUMBER) && (node->types & TYPE_INTEGER) && is_integer(p));
}

static WEFT_COLD const char *misfit_type(schema_run *run, const schema_node *node) {
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {TYPE_BIT(WEFT_STRING), "a string"}, {TYPE_INTEGER, "an integer"},         {TYPE_BIT(WEFT_NUMBER), "a number"},
        {TYPE_BIT(WEFT_BOOL), "a boolean"},  {TYPE_BIT(WEFT_OBJECT), "an object"}, {TYPE_BIT(WEFT_ARRAY), "an array"},
        {TYPE_BIT(WEFT_NULL), "null"},
    };
    char text[128] = "must be ";
    size_t len = strlen(text), left = (size_t) __builtin_popcount(node->types);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (node->types & names[i].bit) {
            left--;
            const char *between = left > 1 ? ", " : left == 1 ? " or " : "";
            len += (size_t) snprintf(text + len, sizeof text - len, "%s%s", names[i].name, between);
        }
    return weft__misfit(run, node, "type", "%s", text);
}

/* ---- schemas for the same value ---- */

/* The outermost resource with the anchor decides what "$dynamicRef" means. */
static const schema_node *dynamic_target(schema_run *run, const logic_rules *logic) {
    const schema_node *found = logic->dynamic;
    if (!logic->dynamic_name)
        return found;
    for (const schema_scope *scope = run->scope; scope; scope = scope->outer)
        for (const schema_anchor *anchor = scope->resource->dynamic; anchor; anchor = anchor->next, run->steps++)
            if (strcmp(anchor->name, logic->dynamic_name) == 0)
                found = anchor->node;
    return found;
}

/* All must fit. *end becomes known if it was not. */
static bool check_all(schema_run *run, const schema_list *list, const char *p, schema_marks *marks, const char **end) {
    bool fits = true;
    for (size_t i = 0; i < list->count && (fits || run->report); i++) {
        const char *behind = weft__check_node(run, list->nodes[i], p, marks);
        fits = fits && behind;
        *end = *end ? *end : behind;
    }
    return fits;
}

/* How many fit. With marks every one must be asked, otherwise it is enough to know up to most. */
static size_t count_fitting(schema_run *run, const schema_list *list, const char *p, schema_marks *marks, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < list->count && run->r >= 0 && (marks || count < most); i++)
        count += weft__check_quietly(run, list->nodes[i], p, marks);
    return count;
}

/* If only one of the alternatives is for values of this type, say what is wrong with that. */
static void tell_nearest(schema_run *run, const schema_list *list, const char *p) {
    const schema_node *nearest = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const schema_node *node = list->nodes[i];
        if (!fits_type(node, p))
            continue;
        if (nearest)
            return;
        nearest = list->nodes[i];
    }
    if (nearest)
        weft__check_node(run, nearest, p, NULL);
}

static bool check_any(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    const schema_list *list = &node->logic->any_of;
    if (!list->count || count_fitting(run, list, p, marks, 1))
        return true;
    weft__misfit(run, node, "anyOf", "fits none of the %zu alternatives", list->count);
    if (run->report && run->r >= 0)
        tell_nearest(run, list, p);
    return false;
}

static bool check_one(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    const schema_list *list = &node->logic->one_of;
    if (!list->count)
        return true;
    size_t count = count_fitting(run, list, p, marks, 2);
    if (count == 1)
        return true;
    if (count > 1) {
        weft__misfit(run, node, "oneOf", "fits more than one of the %zu alternatives", list->count);
        return false;
    }
    weft__misfit(run, node, "oneOf", "fits none of the %zu alternatives", list->count);
    if (run->report && run->r >= 0)
        tell_nearest(run, list, p);
    return false;
}

static bool check_not(schema_run *run, const schema_node *node, const char *p) {
    if (!node->logic->not_ || (!weft__check_quietly(run, node->logic->not_, p, NULL) && run->r >= 0))
        return true;
    weft__misfit(run, node, "not", "must not fit");
    return false;
}

static bool check_if(schema_run *run, const logic_rules *logic, const char *p, schema_marks *marks) {
    if (!logic->if_)
        return true;
    bool holds = weft__check_quietly(run, logic->if_, p, marks);
    const schema_node *then = holds ? logic->then_ : logic->else_;
    return run->r >= 0 && (!then || weft__check_node(run, then, p, marks));
}

static bool check_values(schema_run *run, const schema_node *node, const char *p, const char *end) {
    const logic_rules *logic = node->logic;
    bool fits = true;
    if (logic->value) {
        int r = weft__check_enum(run, logic->value, p, end);
        if (r == 0)
            weft__misfit(run, node, "const", "must be the one value that is allowed");
        fits = r > 0;
    }
    if (logic->one_of_values && (fits || run->report)) {
        int r = weft__check_enum(run, logic->one_of_values, p, end);
        if (r == 0)
            weft__misfit(run, node, "enum", "must be one of the values that are allowed");
        fits = fits && r > 0;
    }
    return fits;
}

/* end is that of the value if it is known. */
static const char *check_logic(schema_run *run, const schema_node *node, const char *p, const char *end,
                               schema_marks *marks) {
    const logic_rules *logic = node->logic;
    bool fits = true;
    if (logic->value || logic->one_of_values) {
        end = end ? end : weft__skip_value(p);
        fits = check_values(run, node, p, end);
    }
    if (logic->ref && (fits || run->report)) {
        const char *behind = weft__check_node(run, logic->ref, p, marks);
        fits = fits && behind;
        end = end ? end : behind;
    }
    if (logic->dynamic && (fits || run->report))
        fits = weft__check_node(run, dynamic_target(run, logic), p, marks) && fits;
    if (logic->all_of.count && (fits || run->report))
        fits = check_all(run, &logic->all_of, p, marks, &end) && fits;
    if (fits || run->report)
        fits = check_any(run, node, p, marks) && fits;
    if (fits || run->report)
        fits = check_one(run, node, p, marks) && fits;
    if (fits || run->report)
        fits = check_not(run, node, p) && fits;
    if (fits || run->report)
        fits = check_if(run, logic, p, marks) && fits;
    if (!fits || run->r < 0)
        return NULL;
    return end ? end : weft__skip_value(p);
}

/* ---- a node ---- */

/* What is asked of values of its type. NULL with *fits: nothing, the end is not known. */
static const char *check_kind(schema_run *run, const schema_node *node, const char *p, schema_marks *marks, bool *fits) {
    const char *end = NULL;
    switch (*p) {
    case '"':
        if (!node->string)
            return NULL;
        end = weft__check_string(run, node, p);
        break;
    case '{':
        if (!node->object)
            return NULL;
        end = weft__check_object(run, node, p, marks);
        break;
    case '[':
        if (!node->array)
            return NULL;
        end = weft__check_array(run, node, p, marks);
        break;
    case 'n':
    case 't':
    case 'f':
        return NULL;
    default:
        if (!node->number)
            return NULL;
        end = weft__check_number(run, node, p);
        break;
    }
    *fits = end;
    return end;
}

static const char *check_rules(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    bool fits = true;
    if (!fits_type(node, p))
        return misfit_type(run, node);
    const char *end = check_kind(run, node, p, marks, &fits);
    if (!fits && !run->report)
        return NULL;
    if (node->logic) {
        const char *behind = check_logic(run, node, p, end, marks);
        end = fits ? behind : NULL;
        fits = fits && behind;
    }
    if (!fits)
        return NULL;
    return end ? end : weft__skip_value(p);
}

static size_t count_values(const char *p) {
    weft_json value = {p, 0, NULL};
    return weft_count(&value);
}

static void mark_all(schema_marks *marks) {
    memset(weft__marks_words(marks), 0xFF, marks->words * sizeof(uint64_t));
}

/* A node that asks for what no schema has looked at. What it sees is its own doing alone; what is around it sees all of it.
 */
static WEFT_NOINLINE const char *check_unevaluated(schema_run *run, const schema_node *node, const char *p,
                                                   schema_marks *marks) {
    schema_marks own;
    if (weft__marks_init(&own, run->alloc, count_values(p)) < 0)
        return weft__check_fails(run, -ENOMEM);
    const char *end = check_rules(run, node, p, &own);
    bool fits = end;
    if (fits)
        fits = *p == '{' ? weft__check_unevaluated_members(run, node, p, &own)
                         : weft__check_unevaluated_items(run, node, p, &own);
    weft__marks_done(&own, run->alloc);
    if (fits && marks)
        mark_all(marks);
    return fits ? end : NULL;
}

const char *weft__check_node(schema_run *run, const schema_node *node, const char *p, schema_marks *marks) {
    const schema_scope *outer = run->scope;
    schema_scope scope = {outer, node->resource};
    const char *end;
    if (run->r < 0)
        return NULL;
    if (run->depth == 0 || ++run->steps > run->schema->max_steps)
        return weft__check_fails(run, -E2BIG);
    if (node->never)
        return weft__misfit(run, node, NULL, "is not allowed");
    run->depth--;
    if (!outer || outer->resource != node->resource)
        run->scope = &scope;
    bool unevaluated =
        (*p == '{' && node->object && node->object->unevaluated) || (*p == '[' && node->array && node->array->unevaluated);
    end = unevaluated ? check_unevaluated(run, node, p, marks) : check_rules(run, node, p, marks);
    run->scope = outer;
    run->depth++;
    return run->r < 0 ? NULL : end;
}

/* ---- the whole ---- */

static int check_once(const weft_schema *schema, const char *p, weft_schema_report *report) {
    schema_run run = {.schema = schema,
                      .alloc = schema->alloc,
                      .report = report,
                      .depth = schema->max_depth,
                      .patterns.left = schema->max_regex};
    const char *end = weft__check_node(&run, schema->root, p, NULL);
    weft__pattern_run_done(&run.patterns);
    if (run.r < 0)
        return run.r;
    return end ? 0 : -EBADMSG;
}

int weft_schema_check(const weft_schema *schema, const weft_json *value, weft_schema_report *report) {
    if (weft_typeof(value) == WEFT_ABSENT)
        return -EINVAL;
    if (report)
        weft_schema_report_done(report);
    int r = check_once(schema, value->text, NULL);
    if (r != -EBADMSG || !report)
        return r;
    /* Once more, slower, to say why. */
    weft__report_begin(report, schema->alloc);
    r = check_once(schema, value->text, report);
    if (r != -E2BIG)
        return r;
    if (!report->count)
        r = weft__report_add(report, NULL, schema->root, NULL, "does not fit, and it would take too long to say why");
    return r == -ENOMEM ? r : -EBADMSG;
}
