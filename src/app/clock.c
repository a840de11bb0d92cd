/* Clocks. */
#include "clock.h"

#include <stdio.h>
#include <time.h>

const char *weft__clock_text_at(int64_t ms, char text[WEFT_CLOCK_TEXT]) {
    struct tm utc;
    char whole[64];
    time_t seconds = (time_t) (ms / 1000);
    gmtime_r(&seconds, &utc);
    size_t n = strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(whole + n, sizeof whole - n, ".%03dZ", (int) (ms % 1000));
    snprintf(text, WEFT_CLOCK_TEXT, "%.24s", whole);
    return text;
}

const char *weft__clock_text(char text[WEFT_CLOCK_TEXT]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return weft__clock_text_at((int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000, text);
}

int64_t weft__clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}
