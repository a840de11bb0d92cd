/* Long output through a program that shows it page by page, if this is a terminal. */
#ifndef WEFT_PAGER_H
#define WEFT_PAGER_H

#include <sys/types.h>

#include "screen.h"

typedef struct weft_pager {
    weft_screen screen; /* where to write */
    pid_t pid;          /* 0: there is none, and the screen is the one that was given */
} weft_pager;

/* $PAGER, as words without a shell, else "less"; none if the screen is no terminal, or PAGER is empty or "cat". The program
 * is not taken from the project. Ends by weft__pager_close() in any case, which waits for it. */
void weft__pager_open(weft_pager *pager, const weft_screen *screen);
void weft__pager_close(weft_pager *pager);

#endif
