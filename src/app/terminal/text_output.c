/* Keeping the text until it is complete. */
#include "text_output.h"

#include <stdlib.h>

#include "failure.h"

void weft__text_output_begin(weft_app *app, weft_text_output *output) {
    *output = (weft_text_output){0};
    FILE *memory = app->common.json ? open_memstream(&output->text, &output->len) : NULL;
    if (!memory)
        return;
    output->before = app->out.file;
    app->out.file = memory;
}

weft_exit weft__text_output_end(weft_app *app, weft_text_output *output, weft_exit status) {
    if (!output->before)
        return status;
    bool whole = fclose(app->out.file) == 0;
    app->out.file = output->before;
    if (status) /* what is there is an error, as JSON */
        fwrite(output->text, 1, whole ? output->len : 0, app->out.file);
    else if (whole)
        weft__put_line(&app->out, WEFT_OBJ({"text", weft_strn(output->text, output->len)}));
    else
        status = weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    free(output->text);
    return status;
}
