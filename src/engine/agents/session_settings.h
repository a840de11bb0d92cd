/* What was chosen for a session, as JSON: {"mode":ID,"model":ID,"options":{ID:VALUE}}. Whoever chooses gives one of them at
 * a time; all of them are set again when the session is opened in another process. */
#ifndef WEFT_SESSION_SETTINGS_H
#define WEFT_SESSION_SETTINGS_H

#include <weft/json.h>

/* Of all of them together: what people choose are words. */
#define WEFT_SETTINGS_BYTES 16384

/* Borrowed. */
typedef struct weft_session_setting {
    const char *name;   /* "mode", "model" or "option" */
    const char *option; /* which option; otherwise NULL */
    weft_json value;    /* a string; of an option also a boolean */
} weft_session_setting;

/* 0; -EINVAL: it is none; -ENOMEM. */
int weft__setting_check(const weft_session_setting *setting);
/* Each of them, model first, because modes and options may depend on it. Ends when each() returns <0, and returns that;
 * -EINVAL: settings is no such object; -ENOMEM. */
int weft__settings_each(const weft_json *settings, int (*each)(void *ctx, const weft_session_setting *setting), void *ctx);
/* The same settings with this one in its place. ret is owned. -EINVAL it is none; -EMSGSIZE there would be too many;
 * -ENOMEM. old may be NULL: none. */
int weft__settings_put(const char *old, const weft_session_setting *setting, const weft_alloc *alloc, char **ret);

#endif
