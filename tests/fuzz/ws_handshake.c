/* Any bytes as a key, as offers and as an answer: nothing is read beyond them, and what our server answers, our client
 * takes. */
#include <string.h>

#include "fuzz_memory.h"
#include "ws_handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_bytes text = {(const char *) data, size};
    char answer[WEFT_WS_DEFLATE_ANSWER_SIZE], accept[29];

    if (weft__ws_key_valid(text)) {
        weft__ws_accept(text, accept);
        require(strlen(accept) == 28);
    }
    unsigned window = weft__ws_deflate_offer(text, answer, sizeof answer);
    require(window == 0 || (window >= 9 && window <= 15));
    if (window)
        require(weft__ws_deflate_answer((weft_bytes){answer, strlen(answer)}) == 15);
    int ours = weft__ws_deflate_answer(text);
    require(ours <= 0 || (ours >= 9 && ours <= 15));
    return 0;
}
