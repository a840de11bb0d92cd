#include "disk.h"

#include "net.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct disk_options disk_options_read(int argc, char **argv, const char *letters, const char *usage) {
    struct disk_options opt = {.clients = 1, .seconds = 2};
    int c;

    while ((c = getopt(argc, argv, letters)) >= 0)
        switch (c) {
        case 'c':
            opt.clients = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 't':
            opt.seconds = strtod(optarg, NULL);
            break;
        case 'p':
            opt.pid = (pid_t) strtol(optarg, NULL, 10);
            break;
        case 'r':
            opt.redis = optarg;
            break;
        default:
            die("%s", usage);
        }
    if (optind != argc - 2 || !opt.clients || opt.clients > DISK_MAX_CLIENTS)
        die("%s", usage);
    opt.url = argv[optind];
    opt.folder = argv[optind + 1];
    return opt;
}

double disk_rate(const struct disk_options *opt, size_t size) {
    size_t len = opt->clients * size;
    char path[512], *block = malloc(len);
    unsigned long done = 0;

    snprintf(path, sizeof path, "%s/raw", opt->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || !block)
        die("%s: %m", path);
    memset(block, 'x', len);
    uint64_t begun = now_ns(), now = begun, until = begun + (uint64_t) (opt->seconds / DISK_ROUNDS * 1e9);
    for (; now < until; now = now_ns(), done += opt->clients)
        if (write(fd, block, len) < 0 || fdatasync(fd) < 0)
            die("%s: %m", path);
    close(fd);
    free(block);
    return (double) done / ((double) (now - begun) / 1e9);
}
