/* The environment of git: the user's, without what steers git from outside, and settings that go before those of any file.
 *
 * Settings come as GIT_CONFIG_KEY_n and not as "-c": a name may have a "=" in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_program.h"
#include "git_private.h"
#include "texts.h"

extern char **environ;

/* For both: git speaks English, so that its refusals are understood, and asks nobody anything. */
static const char *const for_all[] = {
    "LANGUAGE=C", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_PAGER=cat", NULL,
};

/* No lock for a refreshed index, no object fetched from a remote while reading, no transport at all. Attributes of the
 * system name filters too. */
static const char *const for_reads[] = {
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_ALLOW_PROTOCOL=",
    "GIT_ASKPASS=",
    "SSH_ASKPASS=",
    "GIT_ATTR_NOSYSTEM=1",
    NULL,
};

/* Who the user is, and which files are the user's configuration. Everything else that begins with GIT_ may come from a hook,
 * an alias or an agent that the daemon was started by, and would be about another repository. */
static const char *const kept_for_writes[] = {
    "GIT_AUTHOR_NAME=",   "GIT_AUTHOR_EMAIL=",  "GIT_COMMITTER_NAME=",  "GIT_COMMITTER_EMAIL=",
    "GIT_CONFIG_GLOBAL=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM=", NULL,
};
static const char *const kept_for_reads[] = {"GIT_CONFIG_GLOBAL=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM=", NULL};
static const char *const dropped[] = {"LANGUAGE=", "PATH=", "PAGER=", "EDITOR=", "VISUAL=", "SSH_ASKPASS=", NULL};

typedef struct setting {
    const char *key, *value;
} setting;

static const setting neutral[] = {
    {"core.fsmonitor", "false"},
    {"core.hooksPath", "/dev/null"},
    {"core.pager", "cat"},
    {"core.editor", "false"},
    {"core.askPass", ""},
    {"core.sshCommand", "false"},
    {"core.gitProxy", ""},
    {"core.alternateRefsCommand", "false"},
    {"core.quotePath", "false"},
    {"credential.helper", ""},
    {"protocol.allow", "never"},
    {"submodule.recurse", "false"},
    {"diff.submodule", "short"},
    {"diff.autoRefreshIndex", "false"}, /* GIT_OPTIONAL_LOCKS does not keep "diff" from writing the index */
    {"diff.orderFile", "/dev/null"},
    {"log.showSignature", "false"},
    {"gpg.program", "false"},
    {"gpg.ssh.program", "false"},
    {"gpg.x509.program", "false"},
    {"color.ui", "false"},
    {"i18n.logOutputEncoding", "UTF-8"},
};

/* A commit may start housekeeping in the background, which would be nobody's child. */
static const setting for_writing[] = {{"maintenance.auto", "false"}, {"gc.auto", "0"}};

/* Set for each filter that is defined anywhere. An empty "process" also keeps "clean" from being used. */
static const setting for_filter[] = {{"clean", ""}, {"smudge", ""}, {"process", ""}, {"required", "false"}};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- lists of texts ---- */

static void free_list(const weft_alloc *alloc, char **list) {
    for (size_t i = 0; list && list[i]; i++)
        weft__free(alloc, list[i]);
    weft__free(alloc, list);
}

/* A list being filled; it has room for all that is put. */
typedef struct filling {
    const weft_alloc *alloc;
    char **list;
    size_t count;
    int failed;
} filling;

static void put_variable(filling *f, const char *text) {
    if (f->failed)
        return;
    f->list[f->count] = weft__strndup(f->alloc, text, strlen(text));
    if (f->list[f->count])
        f->count++;
    else
        f->failed = -ENOMEM;
}

static void put_joined(filling *f, const char *a, const char *b, const char *c, const char *d) {
    size_t len = strlen(a) + strlen(b) + strlen(c) + strlen(d);
    char *text = f->failed ? NULL : weft__alloc(f->alloc, len + 1);
    if (!text) {
        f->failed = -ENOMEM;
        return;
    }
    stpcpy(stpcpy(stpcpy(stpcpy(text, a), b), c), d);
    f->list[f->count++] = text;
}

static void put_variables(filling *f, const char *const *list) {
    for (; *list; list++)
        put_variable(f, *list);
}

/* ---- what every program gets ---- */

static bool begins_one(const char *variable, const char *const *list) {
    for (; *list; list++)
        if (strncmp(variable, *list, strlen(*list)) == 0)
            return true;
    return false;
}

static bool passes_to_git(const char *variable, const char *const *kept) {
    if (strncmp(variable, "GIT_", 4) == 0)
        return begins_one(variable, kept);
    return !begins_one(variable, dropped);
}

/* PATH without the project's own folders: git looks for its helpers there too. */
static void put_path(filling *f, const char *folder) {
    const char *path = getenv("PATH");
    char *room = path && !f->failed ? weft__alloc(f->alloc, strlen(path) + WEFT_OUTSIDE_PATH) : NULL;
    if (!room) {
        f->failed = path ? -ENOMEM : f->failed;
        return;
    }
    weft__outside_path(room, folder);
    put_variable(f, room);
    weft__free(f->alloc, room);
}

static char **make_base(const weft_alloc *alloc, const char *folder, const char *const *kept, const char *const *own) {
    filling f = {.alloc = alloc};
    f.list = weft__zalloc(alloc, (weft__texts_count((const char *const *) environ) + 16) * sizeof *f.list);
    if (!f.list)
        return NULL;
    for (char **each = environ; *each; each++)
        if (passes_to_git(*each, kept))
            put_variable(&f, *each);
    put_path(&f, folder);
    put_variables(&f, for_all);
    put_variables(&f, own);
    if (!f.failed)
        return f.list;
    free_list(alloc, f.list);
    return NULL;
}

int weft__git_env_init(weft_git_env *env, const char *folder, const weft_alloc *alloc) {
    static const char *const nothing[] = {NULL};
    env->alloc = alloc;
    env->read = make_base(alloc, folder, kept_for_reads, for_reads);
    env->write = make_base(alloc, folder, kept_for_writes, nothing);
    return env->read && env->write ? 0 : -ENOMEM;
}

void weft__git_env_done(weft_git_env *env) {
    free_list(env->alloc, env->read);
    free_list(env->alloc, env->write);
    env->read = env->write = NULL;
}

/* ---- what one program gets ---- */

/* filter: in its section; NULL: the key is whole. */
static void put_git_setting(filling *f, size_t *number, const char *filter, const setting *s) {
    char name[64];
    snprintf(name, sizeof name, "GIT_CONFIG_KEY_%zu=%s", *number, filter ? "filter." : "");
    put_joined(f, name, filter ? filter : "", filter ? "." : "", s->key);
    snprintf(name, sizeof name, "GIT_CONFIG_VALUE_%zu=", *number);
    put_joined(f, name, s->value, "", "");
    ++*number;
}

static void put_settings(filling *f, const weft_git_settings *settings, bool write) {
    char count[48];
    size_t number = 0;
    for (size_t i = 0; write && i < COUNT(for_writing); i++)
        put_git_setting(f, &number, NULL, &for_writing[i]);
    for (size_t i = 0; !write && i < COUNT(neutral); i++)
        put_git_setting(f, &number, NULL, &neutral[i]);
    for (size_t i = 0; !write && i < settings->filter_count; i++)
        for (size_t k = 0; k < COUNT(for_filter); k++)
            put_git_setting(f, &number, settings->filters[i], &for_filter[k]);
    snprintf(count, sizeof count, "GIT_CONFIG_COUNT=%zu", number);
    put_variable(f, count);
}

/* The search ends where we found it. A core.worktree would move the files elsewhere, out of the folder. */
static void put_repository(filling *f, const weft_repository *repository, const weft_git_settings *settings) {
    char above[PATH_MAX];
    memcpy(above, repository->top, sizeof above);
    char *slash = strrchr(above, '/');
    slash[slash == above] = '\0';
    if (strcmp(repository->top, "/") != 0)
        put_joined(f, "GIT_CEILING_DIRECTORIES=", above, "", "");
    if (settings->worktree)
        put_variable(f, "GIT_WORK_TREE=.");
}

char **weft__git_env_make(const weft_git_env *env, const weft_repository *repository, const weft_git_settings *settings,
                          bool write) {
    char *const *base = write ? env->write : env->read;
    size_t most = weft__texts_count((const char *const *) base) +
                  2 * (COUNT(neutral) + COUNT(for_filter) * settings->filter_count) + 4;
    filling f = {.alloc = env->alloc, .list = weft__zalloc(env->alloc, most * sizeof *f.list)};
    if (!f.list)
        return NULL;
    for (; *base; base++)
        put_variable(&f, *base);
    put_settings(&f, settings, write);
    put_repository(&f, repository, settings);
    if (!f.failed)
        return f.list;
    return weft__git_env_free(env, f.list);
}

char **weft__git_env_free(const weft_git_env *env, char **made) {
    free_list(env->alloc, made);
    return NULL;
}
