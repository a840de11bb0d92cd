/* Points in a ring, the oldest first. */
#include "age.h"

#include "write.h"

#define SPACING 128                  /* of the longest age */
#define MAX_OBSERVED (INT64_MAX / 4) /* what a journal may say without overflows */

void weft__age_begin(weft_age *age, int64_t steady_ms) {
    age->begun = true;
    age->begun_ms = steady_ms;
}

int64_t weft__age_now(const weft_age *age, int64_t steady_ms) {
    int64_t here = age->begun && steady_ms > age->begun_ms ? steady_ms - age->begun_ms : 0;
    return age->before_ms + here;
}

static const weft_age_point *point_at(const weft_age *age, size_t i) {
    return &age->points[(age->first + i) % WEFT_AGE_POINTS];
}

void weft__age_note(weft_age *age, uint64_t gseq, int64_t observed_ms, int64_t keep_ms) {
    const weft_age_point *last = age->count ? point_at(age, age->count - 1) : NULL;
    if (observed_ms < 0 || observed_ms > MAX_OBSERVED)
        return;
    if (!age->begun && observed_ms > age->before_ms)
        age->before_ms = observed_ms;
    if (last && (gseq <= last->gseq || observed_ms - last->observed_ms < keep_ms / SPACING))
        return;
    if (age->count == WEFT_AGE_POINTS) {
        age->first = (age->first + 1) % WEFT_AGE_POINTS;
        age->count--;
    }
    age->points[(age->first + age->count++) % WEFT_AGE_POINTS] = (weft_age_point){observed_ms, gseq};
}

uint64_t weft__age_until(const weft_age *age, int64_t steady_ms, int64_t keep_ms) {
    int64_t now = weft__age_now(age, steady_ms);
    uint64_t until = 0;
    for (size_t i = 0; i < age->count && now - point_at(age, i)->observed_ms > keep_ms; i++)
        until = point_at(age, i)->gseq;
    return until;
}

int weft__age_write(const weft_age *age, const weft_alloc *alloc, weft_buf *out) {
    weft_val points[WEFT_AGE_POINTS], pairs[WEFT_AGE_POINTS][2];
    for (size_t i = 0; i < age->count; i++) {
        pairs[i][0] = weft_int(point_at(age, i)->observed_ms);
        pairs[i][1] = weft_uint(point_at(age, i)->gseq);
        points[i] = weft_arr(pairs[i], 2);
    }
    weft_val all = weft_arr(points, age->count);
    return weft__write_val(out, alloc, &all);
}

void weft__age_read(weft_age *age, const weft_json *points, int64_t keep_ms) {
    for (weft_iter it = weft_iterate(points); weft_next(&it);) {
        weft_json observed = weft_at(&it.value, 0), gseq = weft_at(&it.value, 1);
        int64_t at = weft_int_of(&gseq, -1);
        if (at > 0)
            weft__age_note(age, (uint64_t) at, weft_int_of(&observed, -1), keep_ms);
    }
}
