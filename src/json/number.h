/* The value of a number's text, which the scanner has accepted. */
#ifndef WEFT_NUMBER_H
#define WEFT_NUMBER_H

#include <weft/base.h>

/* -ERANGE: not an integer (1.0 and 1e3 are), or outside int64. */
int weft__number_int(const char *text, size_t len, int64_t *ret);
/* The nearest double, ties to even. -ERANGE: beyond the largest one. */
int weft__number_double(const char *text, size_t len, double *ret);

#endif
