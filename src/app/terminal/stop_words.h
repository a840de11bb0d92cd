/* Why an agent stopped before it was done, for people. */
#ifndef WEFT_STOP_WORDS_H
#define WEFT_STOP_WORDS_H

/* NULL: it stopped because it was done, or nobody knows why. stop_reason as ACP has it; may be NULL. */
const char *weft__stop_words(const char *stop_reason);

#endif
