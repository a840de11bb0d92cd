/* Automation is on its way: until then there is none, and whoever asks is told so. */
#include "automation.h"

#include <errno.h>

int weft__automation_new(weft_engine *engine, const weft_automation_opts *opts, weft_automation **ret) {
    (void) engine, (void) opts, (void) ret;
    return -EOPNOTSUPP;
}

weft_automation *weft__automation_free(weft_automation *automation) {
    (void) automation;
    return NULL;
}

int weft__automation_status(weft_automation *automation, char **ret, size_t *ret_len) {
    (void) automation, (void) ret, (void) ret_len;
    return -EOPNOTSUPP;
}

int weft__automation_switch(weft_automation *automation, const char *rule, bool enabled, void (*done)(void *ctx, int r),
                            void *ctx) {
    (void) automation, (void) rule, (void) enabled, (void) done, (void) ctx;
    return -EOPNOTSUPP;
}

weft_automation_health weft__automation_health(const weft_automation *automation) {
    (void) automation;
    return (weft_automation_health){.failed = -EOPNOTSUPP, .last_fires = "{}"};
}
