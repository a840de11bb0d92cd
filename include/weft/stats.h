/* Figures about a service: how many requests of each method, how long they took, how they ended.
 *
 * A service with weft_service_opts.measure keeps them in fixed memory: one row for each method that was called, one for all
 * names that no method has, so that a caller's words never become a row. A histogram has eight buckets for each doubling: a
 * quantile read from it is at most an eighth too high. */
#ifndef WEFT_STATS_H
#define WEFT_STATS_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values below 8 have a bucket each; then eight to the doubling, up to 2^32. What is larger is in the last. */
#define WEFT_HISTOGRAM_BUCKETS 240
typedef struct weft_histogram {
    uint64_t count, sum;
    uint64_t of[WEFT_HISTOGRAM_BUCKETS];
} weft_histogram;
/* The values of a bucket are below this one; UINT64_MAX for the last. */
WEFT_API uint64_t weft_histogram_limit(size_t bucket);
/* How many values are below this one, which must be the limit of a bucket: a power of two from 8 on is. */
WEFT_API uint64_t weft_histogram_below(const weft_histogram *histogram, uint64_t limit);
/* A value that at least this part (0 to 1) of all do not exceed; 0: there is none. */
WEFT_API uint64_t weft_histogram_quantile(const weft_histogram *histogram, double part);

/* The requests of one method since the service was made. */
typedef struct weft_method_stats {
    const char *method;         /* "": names that no method has */
    uint64_t answers;           /* requests that were answered: as many as are in duration_us */
    uint64_t errors;            /* of these, with an error */
    uint64_t lost;              /* requests whose connection had gone before they were answered */
    uint64_t notifications;     /* that came */
    uint64_t bytes_in;          /* of the requests' texts, without framing */
    uint64_t bytes_out;         /* of the answers' */
    weft_histogram duration_us; /* from the message to its answer, ready to be sent: what came together with others is ready
                                   when all that was answered at once is */
} weft_method_stats;

/* Errors that were answered, also to what was no request. */
typedef struct weft_error_stats {
    int code;
    const char *reason; /* data.reason; "": there was none, or none that is a short word */
    uint64_t count;
    WEFT_ROOM(2);
} weft_error_stats;

typedef struct weft_measures {
    const weft_method_stats *const *methods;
    size_t method_count;
    const weft_error_stats *errors; /* at most WEFT_ERROR_STATS; the last is then for all others, with code 0 */
    size_t error_count;
    weft_histogram request_bytes, answer_bytes; /* of all methods */
} weft_measures;
#define WEFT_ERROR_STATS 128

#ifdef __cplusplus
}
#endif
#endif
