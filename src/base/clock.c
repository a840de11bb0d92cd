/* Clocks. */
#include "clock.h"

#include <time.h>

const char *weft__clock_text(char text[WEFT_STAMP]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return weft__stamp((int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000, text);
}

int64_t weft__clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}
