/* The query of a URL, pair by pair. */
#ifndef WEFT_HTTP_QUERY_H
#define WEFT_HTTP_QUERY_H

#include <stdbool.h>

/* The next "name=value" of *rest, which is changed: both are decoded where they lie. A NUL would hide what is behind it, so
 * %00 stays as it is written. What has no "=" is passed over. false: there is none. */
bool weft__query_next(char **rest, const char **ret_name, char **ret_value);

#endif
