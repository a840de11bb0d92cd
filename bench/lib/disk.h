/* What the benchmarks of durable writes share: their options, and what the bare disk does. */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include <stddef.h>
#include <sys/types.h>

#define DISK_ROUNDS 7
#define DISK_MAX_CLIENTS 1024

struct disk_options {
    const char *url, *folder;
    const char *redis; /* -r: its socket; NULL: compare with the bare disk */
    unsigned clients;  /* -c */
    double seconds;    /* -t: of all rounds */
    pid_t pid;         /* -p: the hub's; 0: do not measure its processor time */
};

/* Options, URL and FOLDER, or die with the usage. Letters as getopt has them. */
struct disk_options disk_options_read(int argc, char **argv, const char *letters, const char *usage);

/* One round: writes of this size a second, appended to a file in FOLDER, with one fdatasync for a client's worth of them. */
double disk_rate(const struct disk_options *opt, size_t size);

#endif
