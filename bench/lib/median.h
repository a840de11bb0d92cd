/* The middle of some figures: on a machine that others use, the best is luck and the mean is theirs. */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

#include <stddef.h>

/* Sorts them: afterwards the first is the smallest and the last the largest. */
double median(double *values, size_t count);

#endif
