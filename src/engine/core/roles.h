/* Roles: planner and executor. Who holds one does the tasks that were submitted for it (weft_task_spec.role), whichever
 * holder is the least busy when the task starts.
 *
 * A holder is an agent: one of those that the configuration names for the role, or somebody connected who registered. Where
 * the configuration names nobody and nobody registered, the default agent holds every role. */
#ifndef WEFT_ROLES_H
#define WEFT_ROLES_H

#include "engine.h"

#define WEFT_ROLE_PLANNER "planner"
#define WEFT_ROLE_EXECUTOR "executor"

/* Registered at a time, over all connections. */
#define WEFT_GUESTS 256
/* Types of tasks that one names, and bytes of each. */
#define WEFT_TASK_TYPES 64
#define WEFT_TASK_TYPE 64

/* Is there such a role? */
bool weft__role_exists(const char *role);

typedef struct weft_holder {
    const weft_agent *agent;
    const char *const *task_types; /* NULL: all */
    size_t busy, concurrency;      /* tasks that it has, and may have; 0: as many as the engine allows */
    bool guest;                    /* it registered */
} weft_holder;
/* false: there are fewer. Borrowed until the next turn of the loop. */
bool weft__role_holder(const weft_engine *engine, const char *role, size_t n, weft_holder *ret);

/* Ask a holder something that is no task, by its agent's name: update_context, validate_code. done as in driver.h. -ENOENT
 * there is no such holder; -EOPNOTSUPP it does not speak the planner's protocol; -EUSERS too much is being asked. */
int weft__role_ask(weft_engine *engine, const char *agent, const char *method, const weft_json *params,
                   weft_driver_done *done, void *ctx);

/* ---- who registers ---- */

typedef struct weft_guest weft_guest;

typedef struct weft_guest_spec {
    const char *role;
    size_t concurrency;             /* tasks at a time; 0: 1 */
    const char *const *task_types;  /* ends with NULL; NULL: all */
    struct weft_planner_wire *wire; /* how it is spoken to (driver_planner.h); borrowed until weft__role_leave() */
} weft_guest_spec;
/* Its name is an agent's, which no other has or had: "executor@1". -EINVAL no such role; -ENOSPC too many have registered;
 * -E2BIG too many types, or one that is too long; -ESHUTDOWN. */
int weft__role_join(weft_engine *engine, const weft_guest_spec *spec, weft_guest **ret);
/* It gets no more tasks. What it does now goes on; when its connection is closed, those tasks fail and are tried elsewhere.
 * The guest is gone for its owner. Returns NULL. */
weft_guest *weft__role_leave(weft_guest *guest);
const char *weft__guest_name(const weft_guest *guest);
const char *weft__guest_role(const weft_guest *guest);

#endif
