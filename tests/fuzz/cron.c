/* Schedules: whatever the text, it is refused with a sentence or has a next time, which lies ahead, fires by itself, and is
 * found again from anywhere in between. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cron.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One with its clock set back and forth twice a year. */
static void choose_zone(void) {
    static bool chosen;
    if (chosen)
        return;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    chosen = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_cron cron;
    const char *why = NULL;
    uint32_t when;
    int64_t next, same;
    if (size < sizeof when)
        return 0;
    choose_zone();
    memcpy(&when, data, sizeof when);
    char *text = malloc(size - sizeof when + 1);
    require(text);
    memcpy(text, data + sizeof when, size - sizeof when);
    text[size - sizeof when] = '\0';
    int r = weft__cron_parse(text, &cron, &why);
    free(text);
    require(r == 0 || (r == -EINVAL && why && *why));
    if (r < 0 || weft__cron_next(&cron, when, &next) < 0)
        return 0;
    require(next > when);
    require(weft__cron_next(&cron, next - 1, &same) == 0 && same == next);
    require(weft__cron_next(&cron, when + (next - when) / 2, &same) == 0);
    require(same == next || (next - when == 1));
    return 0;
}
