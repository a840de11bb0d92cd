/* What AIWG 2026.5.1 has besides, and a hub has not: chat rooms, and a mode in which it thinks of tasks by itself. Its
 * programs ask after them; they are told, as by its own daemon without these parts, that there are none. */
#include "aiwg.h"
#include "reply.h"

int weft__aiwg_rooms(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(
        req, WEFT_OBJ({"totalRooms", weft_int(0)}, {"totalBindings", weft_int(0)}, {"platforms", weft_raw("{}", 2)}));
}

int weft__aiwg_autonomous(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_OBJ({"enabled", weft_bool(false)}));
}
