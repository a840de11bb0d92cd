/* What the compiler cannot know: which functions are rarely needed. They are kept out of the way of the others. */
#ifndef WEFT_HINT_H
#define WEFT_HINT_H

#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_COLD __attribute__((noinline, cold))
#define WEFT_ALWAYS_INLINE inline __attribute__((always_inline))

#endif
