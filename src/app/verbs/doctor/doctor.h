/* The checks of "weft doctor": each a row that looks at one thing and says what it found. They change nothing, except that
 * opening the journal finishes what a crash left undone, as a daemon's start would. */
#ifndef WEFT_DOCTOR_H
#define WEFT_DOCTOR_H

#include <sys/types.h>

#include "app.h"
#include "arena.h"
#include "buf.h"
#include "config.h"

typedef enum weft_finding {
    WEFT_FINDING_OK,
    WEFT_FINDING_WARNING, /* it works, but not as it could */
    WEFT_FINDING_PROBLEM, /* something does not work */
    WEFT_FINDINGS,
} weft_finding;

typedef struct weft_doctor weft_doctor;

typedef struct weft_doctor_check {
    const char *name;
    void (*look)(weft_doctor *doctor);
} weft_doctor_check;

struct weft_doctor {
    weft_app *app;
    const weft_doctor_check *check; /* the one that looks */
    bool project;                   /* there is a .weft, and we stand beside it */
    int running;                    /* a daemon has this folder */
    pid_t pid;                      /* 0: none, or it cannot be seen */
    bool strange;                   /* there is a journal that is not on record */
    bool configured;                /* the configuration is right, and these are the settings */
    weft_serve_settings settings;
    weft_config config;
    weft_arena memory; /* the agents' */
    char chosen[128];  /* the agent for tasks that name none, as the daemon says; "" where none runs */
    bool store_failed; /* the daemon says so */
    bool overruled;    /* it was chosen with "weft agents use", not by the configuration */
    size_t counts[WEFT_FINDINGS];
    weft_buf json;
};

/* In the order in which they are told; a NULL name ends it. */
extern const weft_doctor_check weft__doctor_checks[];

/* Go to the project and see who runs there. */
void weft__doctor_begin(weft_doctor *doctor);
void weft__doctor_end(weft_doctor *doctor);
/* Say what was found; next: what to do about it, may be NULL. cmd_doctor.c. */
void weft__doctor_say(weft_doctor *doctor, weft_finding finding, const char *next, const char *text);
void weft__doctor_tell(weft_doctor *doctor, weft_finding finding, const char *next, const char *format, ...)
    WEFT_PRINTF(4, 5);

/* ---- doctor_daemon.c ---- */

void weft__doctor_home(weft_doctor *doctor);
void weft__doctor_trust(weft_doctor *doctor);
void weft__doctor_daemon(weft_doctor *doctor);
void weft__doctor_store(weft_doctor *doctor);
void weft__doctor_port(weft_doctor *doctor);

#endif
