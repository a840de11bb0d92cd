/* Why an agent stopped before it was done, for people. */
#ifndef WEFT_STOP_REASON_H
#define WEFT_STOP_REASON_H

/* NULL: it stopped because it was done, or nobody knows why. stop_reason as ACP has it; may be NULL. */
const char *weft__stop_reason_text(const char *stop_reason);

#endif
