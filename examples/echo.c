/* A server. echo [URL] */
#include <stdio.h>
#include <weft/weft.h>

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params)); /* answer now, or keep req and answer later */
}

int main(int argc, char **argv) {
    static const weft_method methods[] = {{"echo", echo, .help = "answer the params as they came"}, {0}};

    int r = weft_serve(argc > 1 ? argv[1] : "unix:./echo.sock", methods, NULL); /* until SIGINT or SIGTERM */
    if (r < 0)
        fprintf(stderr, "echo: %s\n", weft_strerror(r));
    return r < 0;
}
