/* Which way to look at the bytes of a string: chosen when building, the same functions either way. */
#ifndef WEFT_PLAIN_H
#define WEFT_PLAIN_H

#include <weft/base.h>

#if defined(__SSE2__) && !defined(WEFT_PORTABLE)
#include "plain_sse2.h"
#else
#include "plain_portable.h"
#endif

#endif
