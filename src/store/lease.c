/* What a store of any kind says about its lease. See lead.h. */
#include <errno.h>
#include <time.h>

#include "lead.h"
#include "store_kind.h"
#include "utf8.h"

int64_t weft__lease_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void weft__lead_clean(char *name) {
    for (char *at = name; *at;) {
        unsigned char c = (unsigned char) *at;
        size_t len = c < 0x80 ? c >= 0x20 && c != 0x7f : weft__utf8_len(at, WEFT_UTF8_MAX);
        if (!len)
            *at = '?';
        at += len ? len : 1;
    }
}

int64_t weft__store_lease_left(const weft_store *store) {
    if (!store->lease_ms)
        return INT64_MAX;
    if (atomic_load(&store->trouble) == -ESTALE)
        return 0;
    int64_t left = atomic_load(&store->confirmed_ms) + store->lease_ms - weft__lease_now();
    return left > 0 ? left : 0;
}

void weft__store_resign(weft_store *store) {
    store->resigned = true;
}

int weft__store_reach(weft_store *store, const char *reach) {
    return store->kind->reach ? store->kind->reach(store, reach) : 0;
}
