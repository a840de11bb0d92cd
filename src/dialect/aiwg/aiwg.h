/* The AIWG daemon's vocabulary, for its files. The table is in aiwg.c. */
#ifndef WEFT_AIWG_H
#define WEFT_AIWG_H

#include "hub_clients.h"

/* Its errors. */
#define AIWG_TASK_NOT_FOUND (-32000)
#define AIWG_TASK_NOT_CANCELLABLE (-32001)
#define AIWG_QUEUE_FULL (-32002)
#define AIWG_UNAVAILABLE (-32003)

/* ---- aiwg_daemon.c ---- */
weft_handler weft__aiwg_ping, weft__aiwg_status, weft__aiwg_stop;
extern const weft_param weft__aiwg_stop_params[];

/* ---- aiwg_task.c ---- */
weft_handler weft__aiwg_submit, weft__aiwg_chat, weft__aiwg_cancel, weft__aiwg_list, weft__aiwg_get, weft__aiwg_stats;
extern const struct weft_aiwg_chat weft__aiwg_chat_defaults;
extern const weft_param weft__aiwg_submit_params[], weft__aiwg_chat_params[], weft__aiwg_id_params[],
    weft__aiwg_list_params[];

/* A task as task.list shows it, with so many bytes of the end of its output. */
int weft__aiwg_write_task(weft_buf *out, const weft_alloc *alloc, const weft_task *task, size_t most);

/* ---- aiwg_automation.c ---- */
weft_handler weft__aiwg_automation_status, weft__aiwg_enable, weft__aiwg_disable;
extern const weft_param weft__aiwg_rule_params[];

/* ---- aiwg_ops.c ---- */
weft_handler weft__aiwg_processes, weft__aiwg_kill, weft__aiwg_resources, weft__aiwg_circuit_status, weft__aiwg_queue,
    weft__aiwg_history, weft__aiwg_budget, weft__aiwg_schedule;
extern const weft_param weft__aiwg_processes_params[], weft__aiwg_kill_params[], weft__aiwg_history_params[];
extern const struct weft_aiwg_history_defaults weft__aiwg_history_defaults;

/* ---- aiwg_absent.c ---- */
weft_handler weft__aiwg_rooms, weft__aiwg_autonomous;

/* ---- aiwg_events.c ---- */
void weft__aiwg_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);

#endif
