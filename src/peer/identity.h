/* Copies of identities; private to peer/. */
#ifndef WEFT_IDENTITY_H
#define WEFT_IDENTITY_H

#include <weft/method.h>

#include "alloc.h"

/* One block, freed with weft__free(). NULL gives nobody in particular; NULL strings become "". */
weft_identity *weft__identity_copy(const weft_identity *from, const weft_alloc *alloc);

#endif
