/* weft-methods(7): what a hub answers, from the rows its dispatcher works with. */
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "man.h"
#include "screen.h"
#include "wiring.h"

static const char *const types[] = {
    [WEFT_PARAM_any] = "any",      [WEFT_PARAM_str] = "string", [WEFT_PARAM_int] = "integer", [WEFT_PARAM_num] = "number",
    [WEFT_PARAM_bool] = "boolean", [WEFT_PARAM_obj] = "object", [WEFT_PARAM_arr] = "array",
};

static void put_param(FILE *to, const weft_param *param) {
    fputs(".TP\n.I ", to);
    weft__man_text(to, param->name);
    fprintf(to, "\n%s%s%s", types[param->type], param->flags & WEFT_REQUIRED ? ", required" : "",
            param->flags & WEFT_NULLABLE ? ", or null" : "");
    if (param->help) {
        fputs(": ", to);
        weft__man_text(to, param->help);
    }
    fputc('\n', to);
}

static void man_put_errors(FILE *to, const weft_error_row *error) {
    for (; error && error->code; error++) {
        fprintf(to, ".TP\n.B %s%d\n", error->code < 0 ? "\\-" : "", error->code < 0 ? -error->code : error->code);
        weft__man_text(to, error->message);
        if (error->reason)
            fprintf(to, " (%s)", error->reason);
        fputc('\n', to);
    }
}

static void put_params(FILE *to, const weft_param *table) {
    for (; table && table->name; table++)
        if (!(table->flags & WEFT_ALIAS))
            put_param(to, table);
}

/* What a table of params cannot say. Without memory it is left out. */
static void put_schema(FILE *to, const char *schema) {
    char *text = NULL;
    size_t size;
    FILE *memory = schema ? open_memstream(&text, &size) : NULL;
    if (!memory)
        return;
    weft__put_pretty(&(weft_screen){.file = memory}, &(weft_json){.text = schema, .len = strlen(schema)});
    if (fclose(memory) == 0) {
        fputs(".PP\nThe params must fit this JSON Schema:\n.PP\n.nf\n", to);
        weft__man_text(to, text);
        fputs("\n.fi\n.PP\n", to);
    }
    free(text);
}

static void man_put_method(FILE *to, const weft_method *method) {
    fputs(".SS ", to);
    weft__man_text(to, method->name);
    fputc('\n', to);
    if (method->help)
        weft__man_text(to, method->help);
    fputs(method->params || method->forms ? "\n" : "\n.br\nAny params.\n", to);
    if (method->scope)
        fprintf(to, ".br\nScope: %s.\n", method->scope);
    fputs(".RS 4\n", to);
    put_params(to, method->params);
    put_schema(to, method->params_schema);
    for (const weft_form *form = method->forms; form && form->name; form++) {
        fprintf(to, ".PP\nIn %s:\n", form->name);
        put_params(to, form->row->params);
        put_schema(to, form->row->params_schema);
    }
    man_put_errors(to, method->errors);
    fputs(".RE\n", to);
}

weft_exit weft__man_methods(const weft_app *app) {
    FILE *to = app->out.file;
    weft_hub nobody = {0}; /* the rows are looked at, not called */
    weft_dialects *dialects;
    int r = weft__dialects_new(weft__dialect_list, &nobody, NULL, &dialects);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft__man_title(to, "weft-methods", 7);
    fputs(".SH NAME\nweft\\-methods \\- what a hub answers\n.SH DESCRIPTION\n"
          "The methods of \\fBweft serve\\fR, by JSON\\-RPC 2.0, on every transport. \\fBweft methods\\fR lists those of a\n"
          "running one, \\fBweft describe\\fR \\fIMETHOD\\fR has the schemas, \\fBweft call\\fR calls them.\n"
          ".SH METHODS\n",
          to);
    for (const weft_method *method = weft__dialects_methods(dialects); method->name; method++)
        if (!(method->flags & WEFT_ROW_HIDDEN))
            man_put_method(to, method);
    fputs(".SH SEE ALSO\n.BR weft (1)\n", to);
    weft__dialects_free(dialects);
    return WEFT_DONE;
}
