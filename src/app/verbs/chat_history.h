/* What was said in weft chat before, for the arrow keys: a file of the user's own (weft/chat_history below $XDG_STATE_HOME,
 * mode 0600), one JSON string per line. It is a convenience: where it cannot be read or written, nothing is said. */
#ifndef WEFT_CHAT_HISTORY_H
#define WEFT_CHAT_HISTORY_H

#include "line_editor.h"

void weft__chat_history_load(weft_line_editor *editor);
void weft__chat_history_add(const char *message);

#endif
