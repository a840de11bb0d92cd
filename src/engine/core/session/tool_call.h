/* What an agent asks permission for, as far as it can be compared: the kind of tool, a command as its arguments, the files
 * it is about. What cannot be read for certain is not known, and what is not known matches nothing. */
#ifndef WEFT_TOOL_CALL_H
#define WEFT_TOOL_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/json.h>

#define WEFT_TOOL_WORDS 64  /* of a command; a longer one is not known */
#define WEFT_TOOL_PATHS 32  /* likewise */
#define WEFT_TOOL_ROOM 4096 /* bytes of its words */

typedef struct weft_tool_call {
    const char *kind;  /* read, edit, delete, move, search, execute, think, fetch, ...; NULL: not said */
    const char *title; /* NULL: none */
    const char *words[WEFT_TOOL_WORDS];
    size_t word_count;                  /* 0: it is no command, or one that only a shell understands */
    const char *paths[WEFT_TOOL_PATHS]; /* as they came */
    size_t path_count;                  /* 0: none is said, or too many */
    const char *folder;                 /* where the command runs, as it came; NULL: not said */
    char room[WEFT_TOOL_ROOM];          /* of words */
} weft_tool_call;

/* detail: a tool call in the form of ACP. What ret has is borrowed from it, and from ret. */
void weft__tool_call_read(const weft_json *detail, weft_tool_call *ret);

/* The words of a command, if a shell would do nothing but run a program with these: no operators, expansions, substitutions,
 * patterns or variables. -EINVAL: there is more to it, or too much. */
int weft__tool_words(const char *text, char *room, size_t size, const char *words[WEFT_TOOL_WORDS]);

/* Is a program of this name one that runs what its further arguments say? */
bool weft__tool_runs_others(const char *program);

/* A path as the agent says it (absolute, or relative to folder, which is absolute), relative to root. NULL: it lies
 * elsewhere, in .git, .weft or .aiwg, or is not plain (.., control characters). The root itself is "". */
#define WEFT_TOOL_PATH 4096
const char *weft__tool_path(const char *root, const char *folder, const char *path, char ret[WEFT_TOOL_PATH]);
/* Does it lead there without a link? What is not there yet may be made there. */
bool weft__tool_path_is_straight(const char *root, const char *path);
/* Is a path, relative to the root, this one or beneath it? "" is everything. */
bool weft__tool_beneath(const char *path, const char *top);

#endif
