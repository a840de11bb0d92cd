/* cdev's vocabulary, for its files. The table is in cdev.c. */
#ifndef WEFT_CDEV_H
#define WEFT_CDEV_H

#include "buf.h"
#include "hub_clients.h"

/* Its errors. */
#define CDEV_BUSY (-32001)
#define CDEV_IDLE (-32002)
#define CDEV_FAILED (-32003)
#define CDEV_NO_AGENT (-32004)
#define CDEV_NO_FILE (-32010)
#define CDEV_GIT_FAILED (-32011)
#define CDEV_NO_SESSION (-32012)

/* How long a request may take: one that reads, and one that asks git. */
#define CDEV_READ_MS 10000
#define CDEV_GIT_MS 30000

/* Its variants: notifications named as in its plan, as its server names them, and the events of the time before JSON-RPC. */
enum { CDEV_PLAIN, CDEV_EVENT, CDEV_OLD };
extern const char *const weft__cdev_variants[];

/* What it remembers of a client. */
enum {
    CDEV_PARALLEL = 1 << 0,    /* its runs may go on beside each other */
    CDEV_INITIALIZED = 1 << 1, /* it speaks JSON-RPC: what it hears stays in that form */
};

/* ---- cdev_initialize.c ---- */
weft_handler weft__cdev_initialize, weft__cdev_initialized, weft__cdev_shutdown;
extern const weft_param weft__cdev_initialize_params[];
bool weft__cdev_claims(const weft_json *params);

/* ---- cdev_run.c ---- */
weft_handler weft__cdev_run, weft__cdev_stop;
extern const weft_param weft__cdev_run_params[], weft__cdev_stop_params[];

/* ---- cdev_respond.c ---- */
weft_handler weft__cdev_respond;
extern const weft_param weft__cdev_respond_params[];
/* What waits for an answer, of one session or (NULL) of all: an array of what claude_permission would say. -ENOMEM. */
int weft__cdev_write_pending(const weft_hub *hub, const char *session, weft_buf *out);

/* ---- cdev_status.c ---- */
weft_handler weft__cdev_status;
/* The session that a request without one is about: what this connection started, else what it watches, else the only one, as
 * far as it has something to do. NULL: none. Borrowed. */
const weft_session *weft__cdev_session(const weft_hub *hub, weft_peer *peer);
/* idle, starting, running or stopping: what a task does, and what all of them do. */
const char *weft__cdev_state_of(const weft_task *task);
const char *weft__cdev_state(const weft_hub *hub);
/* The project: its name, and a name for it that no other project has, also not one with the same name. */
#define CDEV_WORKSPACE 24
const char *weft__cdev_repo_name(const weft_hub *hub);
const char *weft__cdev_workspace(const weft_hub *hub, char ret[CDEV_WORKSPACE]);

/* ---- cdev_session.c ---- */
weft_handler weft__cdev_sessions, weft__cdev_session_get, weft__cdev_watch, weft__cdev_unwatch;
extern const weft_param weft__cdev_sessions_params[], weft__cdev_session_get_params[], weft__cdev_watch_params[],
    weft__cdev_unwatch_params[];
/* The answer where there is no such session. */
int weft__cdev_no_session(weft_req *req, const char *id);

/* ---- cdev_messages.c ---- */
weft_handler weft__cdev_messages, weft__cdev_elements;
extern const weft_param weft__cdev_messages_params[], weft__cdev_elements_params[];
/* ---- cdev_elements.c ---- */
struct weft_transcript_item;
/* The elements of one item, behind each other, each with a comma before it; they are added to *count. -ENOMEM. */
int weft__cdev_write_elements(const weft_alloc *alloc, const struct weft_transcript_item *item, weft_buf *out,
                              size_t *count);

/* ---- cdev_file.c ---- */
weft_handler weft__cdev_file_get, weft__cdev_file_list;
extern const weft_param weft__cdev_file_get_params[], weft__cdev_file_list_params[];
/* The answer where there is no such file, and why. */
int weft__cdev_no_file(weft_req *req, const char *path, const char *why);

/* ---- cdev_git.c ---- */
weft_handler weft__cdev_git_status, weft__cdev_git_diff;
extern const weft_param weft__cdev_git_diff_params[];
/* Is the project in a repository? */
bool weft__cdev_git_enabled(weft_hub *hub);

/* ---- cdev_events.c ---- */
void weft__cdev_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);
void weft__cdev_beat(const weft_hub *hub, weft_rendering *rendering);
/* The names of the notifications, for initialize; ends with NULL. */
extern const char *const weft__cdev_notifications[];

/* What every notification says besides its payload, as far as it is known. */
typedef struct cdev_note {
    const weft_hub *hub;
    weft_rendering *rendering;
    const char *only;            /* for those who watch this session; NULL: for all */
    const char *session, *agent; /* NULL: unknown */
    int64_t time_ms;
    uint64_t seq; /* the event's gseq; 0: there is none */
} cdev_note;
#define CDEV_PAYLOAD 12 /* members, at most */
void weft__cdev_tell(const cdev_note *note, const char *name, const weft_member *payload, size_t count);
#define CDEV_TELL(note, name, ...)                                                                                          \
    weft__cdev_tell((note), (name), (const weft_member[]){__VA_ARGS__},                                                     \
                    sizeof((const weft_member[]){__VA_ARGS__}) / sizeof(weft_member))

/* ---- cdev_log.c ---- */
/* claude_log, for what an agent says. */
void weft__cdev_tell_log(const cdev_note *note, const weft_event *event, const weft_json *data);

#endif
