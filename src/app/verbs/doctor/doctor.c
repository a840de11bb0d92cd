/* What is checked, and the checks of the machine: version, configuration, disk, limits, clock. */
#include "doctor.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "agents.h"
#include "daemon.h"
#include "time_text.h"
#include "trust.h"

/* The store keeps 1 GiB of events at most, and its log comes on top. */
#define DISK_WARNING (1024ULL * 1024 * 1024)
#define DISK_PROBLEM (100ULL * 1024 * 1024)
/* As many connections as a server takes, and what it needs besides. */
#define DESCRIPTORS 10240
/* A project of this many folders can be watched without looking again and again. */
#define WATCHES 65536
#define INSTANCES 128
/* Before this the program did not exist. */
#define OLDEST_YEAR 2025

void weft__doctor_tell(weft_doctor *doctor, weft_finding finding, const char *next, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weft__doctor_say(doctor, finding, next, text);
}

void weft__doctor_begin(weft_doctor *doctor) {
    doctor->project = weft__daemon_find(doctor->app) == 1;
    doctor->running = doctor->project ? weft__daemon_holder(doctor->app->layout, &doctor->pid) : 0;
}

void weft__doctor_end(weft_doctor *doctor) {
    weft__config_done(&doctor->config);
    weft__arena_done(&doctor->memory);
    weft__buf_done(&doctor->json, NULL);
}

static void look_at_version(weft_doctor *doctor) {
    weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "weft %s, libuv %s, %s", weft_version(), uv_version_string(),
                      OpenSSL_version(OPENSSL_VERSION));
}

/* ---- configuration ---- */

typedef struct config_remarks {
    weft_doctor *doctor;
    size_t said;
} config_remarks;

static void on_remark(void *ctx, const weft_remark *remark) {
    config_remarks *self = ctx;
    weft_finding finding = remark->error ? WEFT_FINDING_PROBLEM : WEFT_FINDING_WARNING;
    self->said++;
    if (remark->place.line)
        weft__doctor_tell(self->doctor, finding, NULL, "%s:%zu:%zu: %s", remark->where, remark->place.line,
                          remark->place.column, remark->text);
    else
        weft__doctor_tell(self->doctor, finding, NULL, "%s: %s", remark->where, remark->text);
}

/* What "weft serve" would make of it. */
static int fill_doctor_settings(weft_doctor *doctor) {
    int r = weft__config_fill(&doctor->config, &doctor->settings);
    if (r >= 0)
        r = weft__agents_make(&doctor->settings.agent_rows, doctor->settings.default_agent, &doctor->memory,
                              &doctor->settings.agents);
    return r;
}

static void look_at_configuration(weft_doctor *doctor) {
    char user[WEFT_PATH_SIZE], project[WEFT_PATH_SIZE];
    const weft_serve_settings none = {0};
    const weft_config *config = &doctor->config;
    config_remarks self = {doctor, 0};
    weft__config_user_path(user);
    weft__config_project_path(doctor->app->layout, project);
    weft_trust trust;
    weft__trust_look(doctor->app->layout, &trust);
    weft_config_from from = {user, project, getenv, doctor->app->layout->aiwg, &none, &trust};
    int r = weft__config_load(&doctor->config, &from, &(weft_remarks){on_remark, &self}, NULL);
    if (r >= 0)
        r = fill_doctor_settings(doctor);
    doctor->configured = r >= 0;
    if (r >= 0)
        r = weft__config_rules(&doctor->config, &(weft_remarks){on_remark, &self});
    if (r < 0 && r != -EBADMSG)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "%s", weft_strerror(r));
    else if (self.said == 0)
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%s%s%s", config->project.text ? project : "",
                          config->project.text && config->user.text ? ", " : "",
                          config->user.text      ? user
                          : config->project.text ? ""
                                                 : "no files; the defaults apply");
}

/* ---- agents ---- */

/* what: how it became the default. */
static void check_default(weft_doctor *doctor, const char *name, const char *what) {
    const weft_agent *usual = weft__agent_find(&doctor->settings.agents, name);
    if (!usual || !weft__agent_found(usual))
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM,
                          usual && usual->advice ? usual->advice : "Choose another: \"weft agents use NAME\".",
                          "%s, %s, is not installed", name, what);
}

static void look_at_agents(weft_doctor *doctor) {
    const weft_agents *all = &doctor->settings.agents;
    const char *chosen = *doctor->chosen ? doctor->chosen : all->fallback;
    char found[512] = "";
    size_t used = 0, count = 0;
    if (!doctor->configured) {
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "Correct the configuration first.", "not looked for");
        return;
    }
    for (size_t i = 0; i < all->count; i++) {
        if (!weft__agent_found(&all->list[i]))
            continue;
        if (used < sizeof found)
            used += (size_t) snprintf(found + used, sizeof found - used, "%s%s", count ? ", " : "", all->list[i].name);
        count++;
    }
    weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%zu of %zu installed: %s; the default is %s%s", count, all->count,
                      found, chosen, doctor->overruled ? ", chosen with \"weft agents use\"" : "");
    check_default(doctor, chosen, "which is the default agent");
    if (strcmp(chosen, all->fallback) != 0)
        check_default(doctor, all->fallback, "which is the default agent of the configuration");
}

/* ---- the machine ---- */

static void look_at_disk(weft_doctor *doctor) {
    struct statvfs info;
    static const char next[] = "Make room: events that cannot be stored are refused, and nothing runs that is not stored.";
    if (statvfs(doctor->project ? doctor->app->layout->home : ".", &info) < 0) {
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "cannot be asked: %s", weft_strerror(-errno));
        return;
    }
    unsigned long long free_bytes = (unsigned long long) info.f_bavail * info.f_frsize;
    weft_finding finding = free_bytes < DISK_PROBLEM   ? WEFT_FINDING_PROBLEM
                           : free_bytes < DISK_WARNING ? WEFT_FINDING_WARNING
                                                       : WEFT_FINDING_OK;
    bool read_only = info.f_flag & ST_RDONLY;
    weft__doctor_tell(doctor, read_only ? WEFT_FINDING_PROBLEM : finding, finding || read_only ? next : NULL,
                      "%.1f GiB free%s", (double) free_bytes / (1024 * 1024 * 1024),
                      read_only ? ", but it is mounted read-only" : "");
    if (info.f_files && info.f_favail < 1000)
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING, next, "only %llu files can still be made",
                          (unsigned long long) info.f_favail);
}

static void look_at_descriptors(weft_doctor *doctor) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    bool low = limit.rlim_max != RLIM_INFINITY && limit.rlim_max < DESCRIPTORS;
    weft__doctor_tell(
        doctor, low ? WEFT_FINDING_WARNING : WEFT_FINDING_OK,
        low ? "Fewer clients than usual can be connected. Raise the hard limit: ulimit -Hn, or LimitNOFILE= of "
              "systemd."
            : NULL,
        "up to %llu", (unsigned long long) limit.rlim_max);
}

static long read_number_file(const char *path) {
    long number = -1;
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%ld", &number) != 1)
        number = -1;
    fclose(file);
    return number;
}

static void look_at_watching(weft_doctor *doctor) {
    long watches = read_number_file("/proc/sys/fs/inotify/max_user_watches");
    long instances = read_number_file("/proc/sys/fs/inotify/max_user_instances");
    if (watches < 0 || instances < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "Files are looked at again and again instead.",
                          "inotify is not there");
    else if (watches < WATCHES || instances < INSTANCES)
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING,
                          "In a large project files are looked at again and again instead. To raise it:\n"
                          "sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512",
                          "%ld folders, %ld watchers", watches, instances);
    else
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%ld folders, %ld watchers", watches, instances);
}

static void clock_check(weft_doctor *doctor) {
    char text[WEFT_TIME_TEXT];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    bool wrong = utc.tm_year + 1900 < OLDEST_YEAR;
    weft__doctor_tell(doctor, wrong ? WEFT_FINDING_PROBLEM : WEFT_FINDING_OK,
                      wrong ? "Set it: certificates and signatures with a time are refused otherwise." : NULL, "it is %s",
                      weft__time_and_date(text, weft__time_now()));
}

const weft_doctor_check weft__doctor_checks[] = {
    {"version", look_at_version},
    {"configuration", look_at_configuration},
    {"folder", weft__doctor_home},
    {"trust", weft__doctor_trust},
    {"daemon", weft__doctor_daemon},
    {"journal", weft__doctor_store},
    {"port", weft__doctor_port},
    {"agents", look_at_agents},
    {"disk", look_at_disk},
    {"descriptors", look_at_descriptors},
    {"watching", look_at_watching},
    {"clock", clock_check},
    {0},
};
