/* The method daemon.status: how the daemon is. The members that AIWG's clients read come first and in their spelling; what
 * is Weft's own is in "weft". */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon.h"

/* What of us is in memory now; 0: unknown. */
static int64_t memory_bytes(void) {
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static int status(weft_req *req, const weft_json *params, void *ctx) {
    const weft_daemon *daemon = ctx;
    const weft_stats *stats = weft_service_stats(weft_server_service(daemon->server));
    weft_val urls[WEFT_MAX_TEXTS + 1];
    char folder[PATH_MAX];
    size_t count = 0;
    (void) params;
    for (const char *url; count <= WEFT_MAX_TEXTS && (url = weft_server_url(daemon->server, count)); count++)
        urls[count] = weft_str(url);
    weft_val ours = WEFT_OBJ({"version", weft_str(weft_version())}, {"folder", weft_str(getcwd(folder, sizeof folder))},
                             {"urls", weft_arr(urls, count)}, {"requests", weft_uint(stats->requests)},
                             {"notifications", weft_uint(stats->notifications)}, {"errors", weft_uint(stats->errors)},
                             {"bytesIn", weft_uint(stats->bytes_in)}, {"bytesOut", weft_uint(stats->bytes_out)},
                             {"memoryBytes", weft_int(memory_bytes())});
    weft_val ipc = WEFT_OBJ({"clients", weft_uint(weft_server_clients(daemon->server))});
    return weft_reply(req, WEFT_OBJ({"pid", weft_int(getpid())},
                                    {"uptime_seconds", weft_int((weft__clock_ns() - daemon->started_ns) / 1000000000)},
                                    {"started_at", weft_str(daemon->started_at)}, {"health", weft_str("healthy")},
                                    {"subsystems", WEFT_OBJ({"ipc", ipc})}, {"weft", ours}));
}

static const weft_param none[] = {{0}};

#define COUNT "{\"type\":\"integer\",\"minimum\":0}"

const weft_method weft__daemon_status_row = {
    .name = "daemon.status",
    .handler = status,
    .params = none,
    .help = "how the daemon is: its process, how long it runs, who is connected, what it has done",
    .result = "{\"type\":\"object\",\"properties\":{\"pid\":" COUNT ",\"uptime_seconds\":" COUNT
              ",\"started_at\":{\"type\":\"string\",\"format\":\"date-time\"},\"health\":{\"enum\":[\"healthy\","
              "\"degraded\"]},\"subsystems\":{\"type\":\"object\",\"properties\":{\"ipc\":{\"type\":\"object\","
              "\"properties\":{\"clients\":" COUNT "},\"required\":[\"clients\"]}},\"required\":[\"ipc\"]},"
              "\"weft\":{\"type\":\"object\",\"properties\":{\"version\":{\"type\":\"string\"},\"folder\":{\"type\":"
              "\"string\"},\"urls\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"requests\":" COUNT
              ",\"notifications\":" COUNT ",\"errors\":" COUNT ",\"bytesIn\":" COUNT ",\"bytesOut\":" COUNT
              ",\"memoryBytes\":" COUNT "},\"required\":[\"version\",\"urls\",\"requests\"]}},\"required\":[\"pid\","
              "\"uptime_seconds\",\"started_at\",\"health\",\"subsystems\"]}",
};
