/* The configuration: what may be set, where each value came from, and what is wrong with a file.
 *
 * A key is a row. Checking, "weft config", the JSON Schema and the documentation all come from the rows; a new key is a row
 * and a field of the settings it goes to. Of five sources the strongest wins, key by key. Nothing in here prints: what
 * there is to say is handed to somebody who does. Secrets are not keys; a file may name a file that has one. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include "buf.h"
#include "fault.h"
#include "serve.h"

/* ---- keys ---- */

typedef enum weft_key_kind {
    WEFT_KEY_text,   /* const char * */
    WEFT_KEY_flag,   /* bool */
    WEFT_KEY_number, /* int64_t */
    WEFT_KEY_size,   /* size_t */
    WEFT_KEY_texts,  /* weft_texts */
    WEFT_KEY_urls,   /* weft_texts, each of them a URL */
    WEFT_KEY_named,  /* weft_json: an object whose members are objects of the row's shape */
    WEFT_KEY_list,   /* weft_json: an array of objects of the row's shape */
    WEFT_KEY_money,  /* weft_money: a text, an amount and a currency */
    WEFT_KEY_argvs,  /* weft_json: an object whose members are command lines: arrays of strings */
} weft_key_kind;

/* What a member of a structured value must be. */
typedef enum weft_shape_kind {
    WEFT_SHAPE_text,
    WEFT_SHAPE_flag,
    WEFT_SHAPE_number, /* whole, from min to max */
    WEFT_SHAPE_texts,  /* an array of strings, at least min of them */
    WEFT_SHAPE_env,    /* an object of strings */
    WEFT_SHAPE_object, /* of the members below */
    WEFT_SHAPE_list,   /* an array of such objects */
    WEFT_SHAPE_any,
} weft_shape_kind;

/* The only values that a text may have: words separated by blanks, or the names of a table's rows. Neither: any. */
typedef struct weft_choices {
    const char *words;
    const char *(*row)(size_t index); /* NULL past the end */
} weft_choices;

typedef struct weft_shape {
    const char *name; /* NULL ends the table */
    weft_shape_kind kind;
    const char *help;
    weft_choices choices; /* of a text */
    int64_t min, max;
    bool must;
    const struct weft_shape *members;
} weft_shape;

struct weft_checking;

typedef struct weft_key {
    const char *path; /* of names, with a dot between the object's and the member's; NULL ends the table */
    weft_key_kind kind;
    size_t offset;        /* of its field in weft_serve_settings */
    const char *fallback; /* JSON; NULL: it has no value unless it is given one */
    const char *help;
    const char *option; /* of "weft serve", without its value; NULL: none */
    weft_choices choices;
    int64_t min, max; /* of a number or a size */
    bool live;        /* SIGHUP changes it while the daemon runs */
    const char *door; /* "who has access", "what runs": not taken from a project's file that is not on record (trust.h);
                         NULL: it opens none */
    const char *(*refuse)(const char *text); /* of a text: what is wrong with it, without saying it; NULL: it is fine */
    const weft_shape *shape;                 /* of what a structured value is made of */
    /* What the shape cannot say about one of those objects, which has the right shape: path for people, its name (NULL in a
     * list) and where that stands. -EBADMSG after it was said. May be NULL. */
    int (*check)(const struct weft_checking *checking, const char *path, const char *name, const weft_json *at,
                 const weft_json *value);
} weft_key;

#define WEFT_MAX_KEYS 128
/* Of agents, or rules, or jobs. */
#define WEFT_MAX_ITEMS 256
extern const weft_key weft__keys[];
/* What is wrong with the URL of a database, as a sentence; NULL: nothing. It is shown and logged with the other settings, so
 * it has no password. */
const char *weft__database_refused(const char *text);
/* The flag with this path; false where there is none. */
bool weft__key_flag(const weft_serve_settings *settings, const char *path);
/* What its value must be: "a string", "a whole number from 1 to 5". */
#define WEFT_KEY_TEXT 256
void weft__key_wants(const weft_key *key, char ret[WEFT_KEY_TEXT]);
/* One of the choices, from 0 on; of length 0 past the end. */
weft_bytes weft__choice(const weft_choices *choices, size_t index);
bool weft__is_choice(const weft_choices *choices, const char *text);
/* "a" or "b". */
void weft__choices_text(const weft_choices *choices, char ret[WEFT_KEY_TEXT]);
/* The same as values; their number. */
#define WEFT_MAX_CHOICES 16
size_t weft__choices_values(const weft_choices *choices, weft_val ret[WEFT_MAX_CHOICES]);
/* The environment variable: WEFT_TLS_CERT for tls.cert. */
void weft__key_variable(const weft_key *key, char ret[WEFT_KEY_TEXT]);

/* ---- what there is to say ---- */

typedef struct weft_remark {
    bool error;        /* otherwise a warning */
    const char *where; /* a path, a variable or an option */
    weft_place place;  /* in the file; line 0: none */
    const char *text;
} weft_remark;

typedef struct weft_remarks {
    void (*say)(void *ctx, const weft_remark *remark); /* borrowed */
    void *ctx;
} weft_remarks;

/* The usual way to say it, on standard error. */
void weft__warn_about(const weft_app *app, const weft_remark *remark);

/* ---- values ---- */

typedef enum weft_source {
    WEFT_FROM_default,
    WEFT_FROM_user,
    WEFT_FROM_project,
    WEFT_FROM_environment,
    WEFT_FROM_flag,
} weft_source;
extern const char *const weft__source_names[];

typedef struct weft_config_file {
    char *path; /* owned */
    char *text; /* owned, as it was read, NUL-terminated; NULL: there is no such file */
    size_t len;
    weft_doc *doc; /* the same text without what JSON does not have */
    bool strange;  /* it is not on record as the user's own, and may have come with a clone */
    bool foreign;  /* it is AIWG's: the document is what Weft's own would say, and nothing in it has a place */
} weft_config_file;

typedef struct weft_setting {
    weft_json value; /* absent: the key has none */
    weft_source source;
    weft_doc *doc; /* owned; NULL: the value lies in a file */
} weft_setting;

typedef struct weft_config {
    weft_setting settings[WEFT_MAX_KEYS]; /* in the order of the rows */
    weft_config_file user, project;
    size_t held; /* keys of the project's file that were left out, or would have been, because it is not on record */
    const weft_alloc *alloc;
} weft_config;

/* Where to look. NULL: not there. */
typedef struct weft_config_from {
    const char *user, *project;
    char *(*variable)(const char *name);
    bool aiwg;                        /* the project's file is AIWG's; what it does not say is as AIWG has it */
    const weft_serve_settings *flags; /* zero: not given; a negative number stands for a 0 that was given */
    const struct weft_trust *trust;   /* what is on record about the project; NULL: its file is believed */
} weft_config_from;

/* Everything that is wrong is said before it fails: -EBADMSG, or -ENOMEM. The config must be done with in any case. */
int weft__config_load(weft_config *config, const weft_config_from *from, const weft_remarks *to, const weft_alloc *alloc);
void weft__config_done(weft_config *config);
/* The settings; their strings are borrowed from the config. -ENOMEM. */
int weft__config_fill(const weft_config *config, weft_serve_settings *ret);
/* Where a value of a file stands. Line 0: it is not from a file. */
weft_place weft__config_place(const weft_config *config, const weft_setting *setting);
const char *weft__config_where(const weft_config *config, const weft_setting *setting);
/* Is it the same value, however it is written? */
bool weft__config_same(const weft_setting *a, const weft_setting *b);

/* ---- config_file.c ---- */

/* Read and scan a file. 1 it is there, 0 it is not; -EBADMSG after what is wrong was said, -ENOMEM. of_project: links are
 * not followed, as they may lead anywhere; those in the user's own folder are the user's. */
int weft__config_read(weft_config_file *file, const char *path, bool of_project, const weft_remarks *to,
                      const weft_alloc *alloc);
void weft__config_file_done(weft_config_file *file, const weft_alloc *alloc);
weft_place weft__config_file_place(const weft_config_file *file, const weft_json *value);
/* The file of this user ("" without a home), and that of the nearest project from this folder upwards. */
#define WEFT_PATH_SIZE 4096
void weft__config_user_path(char ret[WEFT_PATH_SIZE]);
void weft__config_project_path(const weft_layout *layout, char ret[WEFT_PATH_SIZE]);

/* Of the files that a daemon says it has read (weft.config of daemon.status): the first that says something else now, or
 * NULL. Borrowed from it. We stand in the daemon's folder. */
const char *weft__config_stale_file(const weft_json *about);

/* ---- config_check.c ---- */

/* Is this a value for the key? -EBADMSG after what is wrong was said; -ENOMEM. file may be NULL. */
typedef struct weft_checking {
    const weft_remarks *to;
    const weft_config_file *file; /* NULL: the value is not from one */
    const char *where;
    const weft_alloc *alloc;
} weft_checking;
int weft__config_check(const weft_checking *checking, const weft_key *key, const weft_json *value);
void weft__config_say(const weft_checking *checking, const weft_json *at, bool error, const char *format, ...)
    WEFT_PRINTF(4, 5);

/* ---- config_shape.c ---- */

/* The same for a structured value. */
int weft__config_check_shape(const weft_checking *checking, const weft_key *key, const weft_json *value);
/* The same for command lines by name. */
int weft__config_check_argvs(const weft_checking *checking, const weft_key *key, const weft_json *value);
/* The members of the JSON Schema of such an object: "type", "properties" and so on. */
int weft__config_put_shape(weft_buf *out, const weft_alloc *alloc, const weft_shape *members);

/* ---- config_rules.c ---- */

/* Say which rules of a configuration that was loaded can never fire, which are switched off (a warning), and which jobs
 * never come. -EBADMSG after something was said that is not a warning; -ENOMEM. */
int weft__config_rules(const weft_config *config, const weft_remarks *to);

/* ---- config_schema.c ---- */

/* The JSON Schema of a file, in one line. Owned: weft__buf_done(). */
int weft__config_schema(weft_buf *ret, const weft_alloc *alloc);

#endif
