#include "median.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}
