/* weft version: what is running. */
#include <openssl/crypto.h>
#include <uv.h>
#include <zlib.h>

#include "app.h"
#include "failure.h"

static weft_exit run_version(weft_app *app) {
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"weft", weft_str(weft_version())}, {"libuv", weft_str(uv_version_string())},
                                           {"openssl", weft_str(OpenSSL_version(OPENSSL_VERSION_STRING))},
                                           {"zlib", weft_str(zlibVersion())}));
    else
        fprintf(app->out.file, "weft %s\n", weft_version());
    weft__remark(app, "libuv %s, OpenSSL %s, zlib %s", uv_version_string(), OpenSSL_version(OPENSSL_VERSION_STRING),
                 zlibVersion());
    return WEFT_DONE;
}

static const char *const examples[] = {"weft version", "the version, in one line", NULL};

const weft_verb weft__version_verb = {
    .name = "version",
    .help = "print the version",
    .usage = "",
    .examples = examples,
    .run = run_version,
};
