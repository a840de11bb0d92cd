/* One call; our failure and their refusal are different things. call [URL] */
#include <stdio.h>
#include <weft/weft.h>

int main(int argc, char **argv) {
    WEFT_AUTO(weft_peer) peer = NULL; /* freed at end of scope */
    WEFT_ANSWER a = {0};

    int r = weft_connect(argc > 1 ? argv[1] : "unix:./echo.sock", &peer);
    if (r >= 0)
        r = weft_call(peer, "echo", WEFT_OBJ({"text", weft_str("hi")}, {"n", weft_int(3)}), &a);
    if (r < 0)
        return fprintf(stderr, "call: %s\n", weft_strerror(r)), 1;
    if (a.error)
        return fprintf(stderr, "call: %s (%d)\n", a.error->message, a.error->code), 1;
    return puts(weft_get_str(a.result, "text", "")) < 0;
}
