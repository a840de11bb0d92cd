/* What an agent says, as a plan. Whatever is found and accepted has an order in which each step is behind what it needs, is
 * written as JSON, is accepted again, and then is written the same. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_whole(const weft_plan *plan, weft_buf *ret) {
    require(weft__buf_put(ret, &counting, "{", 1) == 0);
    require(weft__plan_write(plan, &counting, ret) == 0);
    require(weft__buf_put(ret, &counting, "}", 1) == 0);
}

static void check_order(const weft_plan *plan) {
    bool placed[WEFT_PLAN_STEPS] = {false};
    require(plan->count > 0 && plan->count <= WEFT_PLAN_STEPS);
    for (size_t i = 0; i < plan->count; i++) {
        const weft_plan_step *step = &plan->steps[plan->order[i]];
        require(plan->order[i] < plan->count && !placed[plan->order[i]]);
        for (size_t n = 0; n < step->need_count; n++)
            require(step->needs[n] < plan->count && placed[step->needs[n]]);
        placed[plan->order[i]] = true;
        require(weft__plan_is_name(step->id) && weft__plan_is_name(step->type) && *step->prompt);
    }
}

static void read_again(const weft_buf *first) {
    char why[WEFT_PLAN_WHY];
    weft_doc *doc = NULL;
    weft_plan *plan = NULL;
    weft_buf again = {0};
    require(weft_doc_parse(weft__buf_head(first), weft__buf_len(first), &counting, &doc) == 0);
    require(weft__plan_read(weft_doc_root(doc), &(weft_plan_limits){.written = true}, &counting, &plan, why) == 0);
    write_whole(plan, &again);
    require(weft__buf_len(&again) == weft__buf_len(first) &&
            memcmp(weft__buf_head(&again), weft__buf_head(first), weft__buf_len(first)) == 0);
    weft__buf_done(&again, &counting);
    weft__plan_free(plan);
    weft_doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[WEFT_PLAN_WHY] = "";
    weft_doc *doc = NULL;
    weft_plan *plan = NULL;
    weft_buf out = {0};
    int r = weft__plan_find((weft_bytes){(const char *) data, size}, &counting, &doc);
    require(r == 0 || r == -ENOENT);
    if (doc)
        r = weft__plan_read(weft_doc_root(doc), &(weft_plan_limits){.request = "a wish"}, &counting, &plan, why);
    require(!doc || r == 0 || (r == -EINVAL && *why && strlen(why) < sizeof why));
    if (plan) {
        check_order(plan);
        write_whole(plan, &out);
        read_again(&out);
    }
    weft__buf_done(&out, &counting);
    weft__plan_free(plan);
    weft_doc_free(doc);
    require(live == 0);
    return 0;
}
