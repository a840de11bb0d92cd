/* The agents of this folder, asked of nobody. */
#ifndef WEFT_AGENTS_HERE_H
#define WEFT_AGENTS_HERE_H

#include "agent.h"
#include "app.h"

/* As the result of agent.list. Whoever asks stands in the project's folder. Owned. Failures are explained. */
weft_exit weft__agents_here(weft_app *app, weft_doc **ret);

#endif
