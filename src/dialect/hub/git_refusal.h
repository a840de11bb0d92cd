/* Why git did not do what it was asked to, in the words of the hub's own methods. */
#ifndef WEFT_GIT_REFUSAL_H
#define WEFT_GIT_REFUSAL_H

#include "git.h"

#define WEFT_GIT_SAID 1024

typedef struct weft_git_words {
    int code;
    const char *reason;
    char message[WEFT_GIT_SAID];
} weft_git_words;

/* false: it was done. */
bool weft__git_refused(const weft_git_result *result, weft_git_words *ret);
/* The same of a call that was not even accepted. */
weft_git_words weft__git_not_asked(int r);

/* The rows of those. */
#define WEFT_ERRORS_GIT                                                                                                     \
    {403, "The repository was not trusted on this machine", "gitUntrusted"},                                                \
        {404, "There is no repository", "noRepository"}, {409, "There is nothing to commit", "nothingToCommit"},            \
        {409, "git refused", "gitRefused"}, {429, "Too many calls wait for git", "gitBusy"},                                \
        {501, "git is not served here", "gitNotServed"}, {504, "git took too long", "gitTimedOut"}, {                       \
        500, "git failed", "gitFailed"                                                                                      \
    }

#endif
