/* What daemon.status says beyond what AIWG's clients read: its member "weft". */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon.h"
#include "relay.h"
#include "serve.h"
#include "uplink.h"

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

int weft__daemon_about(const weft_daemon *daemon, char **ret, size_t *ret_len) {
    const weft_stats *stats = weft_service_stats(weft_server_service(daemon->server));
    weft_val urls[WEFT_MAX_TEXTS + 1];
    char folder[PATH_MAX];
    char *config = NULL, *relay = NULL, *runner = NULL;
    size_t count = 0, config_len = 0, relay_len = 0, runner_len = 0;
    int r = daemon->config ? weft__serve_config_about(daemon->config, &config, &config_len) : 0;
    if (r >= 0 && daemon->relay)
        r = weft__relay_about(daemon->relay, &relay, &relay_len);
    if (r >= 0 && daemon->uplink)
        r = weft__uplink_about(daemon->uplink, &runner, &runner_len);
    if (r < 0) {
        weft_text_free(config, NULL);
        weft_text_free(relay, NULL);
        return r;
    }
    for (const char *url; count <= WEFT_MAX_TEXTS && (url = weft_server_url(daemon->server, count)); count++)
        urls[count] = weft_str(url);
    weft_val about =
        WEFT_OBJ({"version", weft_str(weft_version())}, {"folder", weft_str(getcwd(folder, sizeof folder))},
                 {"urls", weft_arr(urls, count)}, {"requests", weft_uint(stats->requests)},
                 {"notifications", weft_uint(stats->notifications)}, {"errors", weft_uint(stats->errors)},
                 {"bytesIn", weft_uint(stats->bytes_in)}, {"bytesOut", weft_uint(stats->bytes_out)},
                 {"memoryBytes", weft_int(memory_bytes())}, {"config", config ? weft_raw(config, config_len) : weft_none()},
                 {"relay", relay ? weft_raw(relay, relay_len) : weft_none()},
                 {"runner", runner ? weft_raw(runner, runner_len) : weft_none()});
    r = weft_to_text(about, NULL, ret, ret_len);
    weft_text_free(config, NULL);
    weft_text_free(relay, NULL);
    weft_text_free(runner, NULL);
    return r;
}
