/* Saying what is wrong with a configuration to people. */
#include "config.h"
#include "failure.h"

void weft__warn_about(const weft_app *app, const weft_remark *remark) {
    const char *kind = remark->error ? "" : "warning: ";
    if (remark->place.line)
        weft__warn(app, "%s:%zu:%zu: %s%s", remark->where, remark->place.line, remark->place.column, kind, remark->text);
    else
        weft__warn(app, "%s: %s%s", remark->where, kind, remark->text);
}
