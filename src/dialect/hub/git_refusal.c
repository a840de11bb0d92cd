/* Why git did not do what it was asked to. */
#include "git_refusal.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    int code;
    const char *reason, *message;
} refusals[] = {
    [WEFT_GIT_NO_REPOSITORY] = {404, "noRepository", "The project's folder is in no git repository"},
    [WEFT_GIT_ELSEWHERE] = {404, "noRepository", "The project's .git leads to a repository that does not know it"},
    [WEFT_GIT_DUBIOUS] = {403, "gitUntrusted", "Somebody else owns the repository"},
    [WEFT_GIT_UNTRUSTED] = {403, "gitUntrusted",
                            "Writing to the repository runs its hooks: set git.write in the configuration to allow it"},
    [WEFT_GIT_NOTHING] = {409, "nothingToCommit", "There is nothing to commit"},
    [WEFT_GIT_REFUSED] = {409, "gitRefused", "git refused"},
};

weft_git_words weft__git_not_asked(int r) {
    weft_git_words words = {.code = 500, .reason = "gitFailed"};
    if (r == -EAGAIN)
        words = (weft_git_words){.code = 429, .reason = "gitBusy", .message = "Too many calls wait for git"};
    else if (r == -ETIMEDOUT)
        words = (weft_git_words){.code = 504, .reason = "gitTimedOut", .message = "git took too long"};
    else if (r == -ENOENT)
        snprintf(words.message, sizeof words.message, "git is not installed");
    else
        snprintf(words.message, sizeof words.message, "git failed: %s", weft_strerror(r));
    return words;
}

bool weft__git_refused(const weft_git_result *result, weft_git_words *ret) {
    if (result->r < 0) {
        *ret = weft__git_not_asked(result->r);
        return true;
    }
    if (!result->refusal)
        return false;
    bool said = result->refusal == WEFT_GIT_REFUSED && result->message && *result->message;
    *ret = (weft_git_words){.code = refusals[result->refusal].code, .reason = refusals[result->refusal].reason};
    snprintf(ret->message, sizeof ret->message, "%s%s%s", refusals[result->refusal].message, said ? ": " : "",
             said ? result->message : "");
    return true;
}
