/* Sentences for the errors this library returns. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <weft/base.h>

static const struct {
    int r;
    const char *text;
} texts[] = {
    {-ETIMEDOUT, "timed out"},
    {-ECANCELED, "cancelled"},
    {-ECONNRESET, "the connection was lost"},
    {-ECONNREFUSED, "nobody is listening there"},
    {-EPIPE, "the other side has gone"},
    {-EBADMSG, "not valid JSON"},
    {-EPROTO, "the other side broke the protocol"},
    {-EMSGSIZE, "the message is too large"},
    {-ENOBUFS, "too much is waiting to be sent"},
    {-EADDRINUSE, "somebody is already listening there"},
    {-EACCES, "not permitted"},
    {-ENOMEM, "out of memory"},
    {-EUCLEAN, "it is damaged"},
    {-EXFULL, "too much is waiting to be stored"},
    {-ESTALE, "its files were deleted, replaced or changed by somebody else"},
    {-ENOTRECOVERABLE, "its files were deleted, replaced or changed by somebody else"},
    {-ENOLCK, "another program has locked it"},
    {-ETIME, "the database did not answer in time"},
};

const char *weft_strerror(int r) {
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].r == r)
            return texts[i].text;
    const char *text = strerrordesc_np(r < 0 && r != INT_MIN ? -r : r);
    return text ? text : "unknown error";
}

const char *weft_version(void) {
    return WEFT_VERSION;
}
