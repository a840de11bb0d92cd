/* What the compiler cannot know: which functions are rarely needed. They are kept out of the way of the others. */
#ifndef WEFT_HINT_H
#define WEFT_HINT_H

/* On the way of every message: what is rare is compiled elsewhere, so that the way is short. */
#define WEFT_LIKELY(what) __builtin_expect(!!(what), 1)
#define WEFT_RARELY(what) __builtin_expect(!!(what), 0)
#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_COLD __attribute__((noinline, cold))
#define WEFT_ALWAYS_INLINE inline __attribute__((always_inline))

#endif
