/* Two clocks and a day of doubt. */
#include "trusted.h"

#define SLIP_MS ((int64_t) 10 * 60 * 1000) /* what clocks are corrected by without anybody's mistake */
#define DOUBT_MS ((int64_t) 24 * 3600 * 1000)

void weft__trusted_begin(weft_trusted *trusted, int64_t wall_ms, int64_t steady_ms, int64_t last_ms) {
    int64_t from = last_ms > 0 && last_ms < wall_ms ? last_ms : wall_ms;
    *trusted = (weft_trusted){.offset = from - steady_ms};
    weft__trusted_look(trusted, wall_ms, steady_ms);
}

bool weft__trusted_look(weft_trusted *trusted, int64_t wall_ms, int64_t steady_ms) {
    int64_t offset = wall_ms - steady_ms;
    bool began = false;
    if (offset - trusted->offset <= SLIP_MS) {
        trusted->offset = offset;
        trusted->doubting = false;
        return false;
    }
    if (!trusted->doubting) {
        began = trusted->doubting = true;
        trusted->since = steady_ms;
        trusted->doubted = offset;
    }
    /* Only what it was ahead all the time. */
    if (offset < trusted->doubted)
        trusted->doubted = offset;
    if (steady_ms - trusted->since >= DOUBT_MS) {
        trusted->offset = trusted->doubted;
        trusted->doubting = false;
    }
    return began;
}

int64_t weft__trusted_now(const weft_trusted *trusted, int64_t wall_ms, int64_t steady_ms) {
    int64_t believed = steady_ms + trusted->offset;
    return believed < wall_ms ? believed : wall_ms;
}
