/* What the program is made of: verbs, each one row with its options, and the frame in which a verb runs.
 *
 * A row is the only place where a verb is described. Dispatch, -h, "did you mean" and the completions of the shells all come
 * from it. Standard output is data, standard error is talk; only this folder of Weft speaks to people. */
#ifndef WEFT_APP_H
#define WEFT_APP_H

#include <weft/weft.h>

#include "layout.h"
#include "screen.h"

/* What the program ends with. Scripts depend on these numbers. */
typedef enum weft_exit {
    WEFT_DONE = 0,
    WEFT_FAILED = 1,
    WEFT_USAGE = 2,
    WEFT_UNREACHABLE = 3,  /* the daemon does not run, or the endpoint does not answer */
    WEFT_UNAUTHORISED = 4, /* no token, or the wrong one */
    WEFT_NOT_FOUND = 5,
    WEFT_BUSY = 6,
    WEFT_TOO_LATE = 7,
    WEFT_REFUSED = 8,       /* the other side answered with an error */
    WEFT_INTERRUPTED = 130, /* Ctrl-C, in the words of shells */
} weft_exit;

/* ---- options ---- */

typedef enum weft_option_kind {
    WEFT_OPTION_flag,   /* bool */
    WEFT_OPTION_text,   /* const char * */
    WEFT_OPTION_number, /* int64_t, not negative; k and M are understood */
    WEFT_OPTION_time,   /* int64_t, milliseconds: 500ms 5s 2m 1h, a bare number is seconds */
    WEFT_OPTION_list,   /* weft_texts: may be given several times */
} weft_option_kind;

/* Nobody types more of one option than this. */
#define WEFT_MAX_TEXTS 32

typedef struct weft_texts {
    const char *items[WEFT_MAX_TEXTS + 1]; /* NULL-terminated */
    size_t count;
} weft_texts;

/* One row of a table of options; a row with a NULL name ends it. */
typedef struct weft_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    weft_option_kind kind;
    const char *value; /* what stands for its value in the help; NULL for a flag */
    size_t offset;     /* of the field in the settings the table belongs to */
    const char *help;
    const char *choices; /* the only values allowed, separated by blanks; NULL: any */
} weft_option;

#define WEFT_OPTION(type_, field, kind_, name_, letter_, value_, help_)                                                     \
    {                                                                                                                       \
        .name = (name_), .letter = (letter_), .kind = WEFT_OPTION_##kind_, .value = (value_),                               \
        .offset = offsetof(type_, field), .help = (help_)                                                                   \
    }

/* What every verb takes. */
typedef struct weft_common {
    bool help;
    bool json;
    bool verbose;
} weft_common;
extern const weft_option weft__common_options[];

/* What every verb takes that connects somewhere. */
typedef struct weft_reach {
    int64_t timeout_ms; /* 0: not given */
    const char *token_file;
    const char *key_file; /* for signatures */
    const char *key_id;
    const char *cacert;
    const char *cert;
    const char *key;
    bool insecure;
    bool content_length;
    bool compress;
} weft_reach;
extern const weft_option weft__connection_options[];

/* ---- verbs ---- */

typedef struct weft_app weft_app;
typedef struct weft_log weft_log; /* daemon_log.h */

/* One of the things that a verb does: "weft task list". Dispatch, "did you mean", how many arguments there are, which of the
 * verb's options mean something here, help, manual pages and completions all come from the row. */
typedef struct weft_subcommand {
    const char *name;
    const char *takes;   /* the verb's own options that it understands, a blank around each; NULL: none */
    const char *missing; /* what to ask when there are too few arguments */
    size_t least, most;  /* arguments behind the name */
    weft_exit (*run)(weft_app *app);
    const char *usage; /* what follows the name, without [options]; NULL: nothing */
    const char *help;  /* one line */
    const char *about; /* more to know, in whole lines; NULL: nothing */
} weft_subcommand;

typedef struct weft_verb {
    const char *name;
    const char *help;   /* one line */
    const char *begins; /* the heading it stands under as the first, in the list of all; NULL: not the first */
    const char *usage;  /* what follows the name, without [options]; with subcommands: what else there may be, or NULL */
    const char *words;  /* the first argument is one of these, separated by blanks; NULL: anything, or a subcommand */
    const weft_subcommand *subcommands; /* the table ends with a NULL name; NULL: there are none */
    const char *usual;                  /* the subcommand that is meant when there is none; NULL: one must be named */
    const char *const *examples;        /* NULL-terminated: a command line, then what it does, by turns */
    const char *about;                  /* more to know, in whole lines; NULL: nothing */
    const weft_option *options;         /* its own; may be NULL */
    size_t settings_size;               /* of the struct its options are read into */
    bool reaches;                       /* it connects: the options of weft_reach are its too */
    weft_exit (*run)(weft_app *app);
} weft_verb;

/* One run of a verb. */
struct weft_app {
    const weft_verb *verb;
    const weft_subcommand *subcommand; /* which of the verb's runs; NULL: none yet */
    weft_common common;
    weft_reach reach;
    void *settings;
    char **args; /* what is left when the options are taken out; NULL-terminated */
    size_t arg_count;
    weft_screen out, err;
    weft_log *log;             /* where a daemon keeps what it says; NULL: nowhere */
    const weft_layout *layout; /* of the daemon it is about */
};

/* All of them, in the order of the help; NULL-terminated. wiring.c. */
extern const weft_verb *const weft__verbs[];
const weft_verb *weft__verb_find(const char *name);

/* Programs inside the program, which Weft starts for itself: "weft __NAME ...". Nobody types them, so no help, completion or
 * suggestion knows them, and they begin before anything is set up for people. A row with a NULL name ends it. wiring.c. */
typedef struct weft_inner {
    const char *name;
    int (*main)(int argc, char **argv); /* argv[0] is the name */
} weft_inner;
extern const weft_inner weft__inner[];

/* ---- help.c ---- */

void weft__help_all(FILE *to);
/* For "weft" alone: what it is, and the first things to type. */
void weft__help_first(FILE *to);
void weft__help_verb(FILE *to, const weft_verb *verb);
/* What belongs to this subcommand alone. */
void weft__help_subcommand(FILE *to, const weft_verb *verb, const weft_subcommand *subcommand);
/* What follows the verb's name, without [options]; everything it does when subcommand is NULL. */
#define WEFT_USAGE_TEXT 1024
void weft__usage_text(const weft_verb *verb, const weft_subcommand *subcommand, char ret[WEFT_USAGE_TEXT]);
/* What an option of the verb does, and for which subcommands when these are few. */
#define WEFT_OPTION_TEXT 512
void weft__option_text(const weft_verb *verb, const weft_option *option, char ret[WEFT_OPTION_TEXT]);
/* The options of every verb that connects. */
void weft__help_connection(FILE *to);
/* The tables of options a verb has, own first; NULL-terminated. */
#define WEFT_OPTION_TABLES 4
void weft__option_tables(const weft_verb *verb, const weft_option *ret[WEFT_OPTION_TABLES]);
/* An option of a common table that the verb has an own one for is never meant. */
bool weft__option_hidden(const weft_verb *verb, const weft_option *table, const weft_option *option);

/* ---- options.c ---- */

/* Take the options out of argv, which is permuted. 0, or an exit status after the mistake was explained. */
weft_exit weft__options_read(weft_app *app, char **argv);

/* ---- suggest.c ---- */

/* The nearest of the candidates if it is near enough to be meant, or NULL. Feed it one by one. */
typedef struct weft_suggestion {
    const char *typed;
    const char *best;
    size_t distance;
} weft_suggestion;
void weft__suggest(weft_suggestion *suggestion, const char *candidate);

#endif
