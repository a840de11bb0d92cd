/* The checks of the daemon: its folder, its lock, its socket, its journal, its port. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"
#include "doctor.h"
#include "hub_call.h"
#include "lead.h"
#include "private_file.h"
#include "time_text.h"
#include "trust_view.h"
#include "wiring.h"

/* It answers in a millisecond, or it is stuck. */
#define ANSWER_MS 5000
#define USUAL_PORT 16180
/* A hub says every few seconds that it is there. */
#define LATE_HUB_MS 60000
#define RUNNER_BEHIND 10000 /* events of a runner that are worth a word */

/* ---- the folder ---- */

static void check_mode(weft_doctor *doctor, const char *path, mode_t most, const char *why) {
    char next[256];
    struct stat info;
    if (lstat(path, &info) < 0)
        return;
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "It belongs to another user, so it is not used.",
                          "%s belongs to user %u", path, (unsigned) info.st_uid);
        return;
    }
    if ((info.st_mode & 0777 & ~most) == 0)
        return;
    snprintf(next, sizeof next, "chmod %o %s", (unsigned) most, path);
    weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, next, "%s has mode %o: %s", path, (unsigned) (info.st_mode & 0777), why);
}

/* Could a daemon begin here? */
static void check_free(weft_doctor *doctor) {
    const char *home = doctor->app->layout->home;
    struct stat info;
    if (lstat(home, &info) == 0 && S_ISDIR(info.st_mode))
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "Be the user who owns it, or go to a folder of your own.",
                          "the %s here belongs to another user", home);
    else if (lstat(home, &info) == 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "Move it away.", "the %s here is not a folder", home);
    else if (access(".", W_OK) < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "Go to a folder that you may write to.",
                          "there is no %s here or above, and none can be made: %s", home, weft_strerror(-errno));
    else
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL,
                          "there is no %s here or above; \"weft serve\" makes one where it is started", home);
}

void weft__doctor_home(weft_doctor *doctor) {
    char folder[4096];
    const weft_layout *at = doctor->app->layout;
    size_t before = doctor->counts[WEFT_FINDING_PROBLEM];
    if (!doctor->project) {
        check_free(doctor);
        return;
    }
    check_mode(doctor, at->home, 0700, "others can look into it");
    check_mode(doctor, at->token, 0600, "others can read the token");
    check_mode(doctor, at->store, 0600, "others can read what agents were told");
    if (access(at->home, W_OK) < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "%s cannot be written to: %s", at->home,
                          weft_strerror(-errno));
    if (doctor->counts[WEFT_FINDING_PROBLEM] == before)
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%s/%s", getcwd(folder, sizeof folder) ? folder : ".", at->home);
}

/* ---- trust ---- */

void weft__doctor_trust(weft_doctor *doctor) {
    static const weft_serve_settings none;
    weft_trust_view view;
    char why[WEFT_TRUST_WHY], path[PATH_MAX] = "";
    int lock = weft__trust_path(path) < 0 ? -ENOENT : weft__trust_lock(why);
    weft__trust_view(doctor->app, &none, &view);
    doctor->strange = view.strange_journal;
    bool unreadable = view.trust.failed < 0;
    if (lock < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, WEFT_TRUST_PLACE, "nothing can be recorded: %s",
                          *path ? why : "neither XDG_STATE_HOME nor HOME is set");
    else if (unreadable || !weft__trust_view_is_fine(&view)) {
        weft__trust_view_reason(&view, why);
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, unreadable ? WEFT_TRUST_PLACE : WEFT_TRUST_NEXT, "%s", why);
    } else
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%s, recorded in %s",
                          view.trust.folder == WEFT_FOLDER_KNOWN ? "this project is trusted" : "nothing here needs it",
                          path);
    if (lock >= 0)
        weft__trust_unlock(lock);
    weft__trust_view_done(&view);
}

/* ---- the daemon ---- */

/* Somebody may have chosen another default than the configured one; the daemon knows. */
static void ask_default(weft_doctor *doctor, weft_peer *peer) {
    WEFT_ANSWER answer = {0};
    int r = weft_call_with(peer, "agent.list", weft_none(), &(weft_call_opts){.timeout_ms = ANSWER_MS}, &answer);
    if (r >= 0 && !answer.error)
        snprintf(doctor->chosen, sizeof doctor->chosen, "%s", weft_get_str(answer.result, "default", ""));
    if (r >= 0 && !answer.error)
        doctor->overruled = weft_get(answer.result, "configured").text != NULL;
}

static void tell_skipped(weft_doctor *doctor, const weft_json *status) {
    weft_json skipped = weft_pointer(status, "/subsystems/store/skipped_events");
    if (skipped.text)
        weft__doctor_tell(
            doctor, WEFT_FINDING_WARNING, "\"weft logs\" names them. A newer version, or somebody else, wrote them.",
            "%lld events of the journal cannot be read and were passed over", (long long) weft_int_of(&skipped, 0));
}

/* What is the matter with each part that has something. */
static void tell_troubles(weft_doctor *doctor, const weft_json *status) {
    weft_json parts = weft_get(status, "subsystems");
    for (weft_iter it = weft_iterate(&parts); weft_next(&it);) {
        const char *error = weft_get_str(&it.value, "error", ""), *name = weft_str_of(&it.name, "");
        if (!*error || strcmp(name, "standby") == 0) /* tell_standby() does */
            continue;
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "%s: %s", name, error);
        doctor->store_failed |= strcmp(name, "store") == 0;
    }
}

/* Does it have what the files say? */
static void tell_config_age(weft_doctor *doctor, const weft_json *status) {
    weft_json config = weft_pointer(status, "/weft/config"), restart = weft_get(&config, "restart");
    const char *file = weft__config_stale_file(&config);
    if (file)
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "weft reload", "%s has changed since it was read", file);
    if (weft_count(&restart))
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "weft restart",
                          "%zu changed key%s of the configuration need%s a restart", weft_count(&restart),
                          weft_count(&restart) == 1 ? "" : "s", weft_count(&restart) == 1 ? "s" : "");
}

/* A relay serves what it knows, however long a hub is away. */
static void tell_relayed_hubs(weft_doctor *doctor, const weft_json *status) {
    weft_json hubs = weft_pointer(status, "/weft/relay/hubs");
    for (weft_iter it = weft_iterate(&hubs); weft_next(&it);) {
        char time[WEFT_TIME_TEXT];
        const char *name = weft_get_str(&it.value, "name", "");
        const char *since = weft__time_shown(time, weft_get_str(&it.value, "since", NULL), "the start");
        if (strcmp(weft_get_str(&it.value, "state", ""), "following") == 0)
            weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "follows the hub %s since %s", name, since);
        else
            weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "It is tried again by itself; \"weft logs\" has more.",
                              "the hub %s is away since %s: %s", name, since, weft_get_str(&it.value, "trouble", ""));
    }
}

/* A standby: is its copy whole, and does it follow? */
static void tell_standby(weft_doctor *doctor, const weft_json *status) {
    weft_json standby = weft_pointer(status, "/weft/standby");
    char heard[WEFT_TIME_TEXT];
    bool whole = weft_get_bool(&standby, "whole", false);
    bool follows = strcmp(weft_get_str(&standby, "state", ""), "following") == 0;
    const char *error = weft_get_str(&standby, "error", "");
    if (!standby.text)
        return;
    follows &= !*error;
    weft__doctor_tell(doctor,
                      !whole    ? WEFT_FINDING_PROBLEM
                      : follows ? WEFT_FINDING_OK
                                : WEFT_FINDING_WARNING,
                      !whole     ? "It cannot be promoted before. \"weft status\" shows how far it is."
                      : !follows ? "If that hub is gone: \"weft promote\". Otherwise it goes on by itself."
                                 : NULL,
                      "standby of %s: %s, %lld events behind, heard %s%s%s", weft_get_str(&standby, "of", ""),
                      whole ? weft_get_str(&standby, "state", "") : "the copy is not whole yet",
                      (long long) weft_get_int(&standby, "behind", 0),
                      weft__time_shown(heard, weft_get_str(&standby, "heardAt", NULL), "never"), *error ? ": " : "", error);
}

/* Of a runner: its hub, what it offers, and what it still has to tell. */
static void tell_runner(weft_doctor *doctor, const weft_json *status) {
    weft_json runner = weft_pointer(status, "/weft/runner"), agents = weft_get(&runner, "agents");
    const char *hub = weft_get_str(&runner, "hub", ""), *why = weft_get_str(&runner, "why", "no answer yet");
    long long leases = weft_get_int(&runner, "leases", 0), behind = weft_get_int(&runner, "behind", 0);
    char names[256];
    size_t used = 0;
    if (!runner.text)
        return;
    *names = '\0';
    for (weft_iter it = weft_iterate(&agents); used < sizeof names && weft_next(&it);)
        used += (size_t) snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", weft_str_of(&it.value, ""));
    if (weft_get_bool(&runner, "connected", false))
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "runs tasks of %s as %s, with %s in this folder; it has %lld now",
                          hub, weft_get_str(&runner, "name", "?"), names, leases);
    else
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "It is tried again, and what runs goes on. \"weft logs\" says more.",
                          "its hub %s is not there: %s; %lld of its tasks are here", hub, why, leases);
    if (behind > RUNNER_BEHIND)
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING,
                          "They are kept in this folder's journal as long as retention.bytes has room for them.",
                          "the hub may not have the last %lld events here", behind);
}

/* Who asks it is handed on to the hub that has the journal. */
static bool waits_for_journal(const weft_doctor *doctor) {
    WEFT_AUTO(weft_doc) endpoint = weft__daemon_endpoint(doctor->app->layout);
    return endpoint && weft_get_str(weft_doc_root(endpoint), "waitsFor", NULL);
}

/* How it is, in its own words. The failure is ours to tell, so nothing is explained on the way. */
static void ask_daemon(weft_doctor *doctor) {
    WEFT_ANSWER answer = {0};
    weft_peer *peer = NULL;
    weft_trouble trouble = {""};
    char url[128];
    weft_connect_opts opts = {.timeout_ms = ANSWER_MS, .same_user = true};
    snprintf(url, sizeof url, "unix:%s", doctor->app->layout->socket);
    int r = weft_connect_with(url, &opts, &peer, &trouble);
    if (r >= 0)
        r = weft_call_with(peer, "daemon.status", weft_none(), &(weft_call_opts){.timeout_ms = ANSWER_MS}, &answer);
    if (r < 0 && waits_for_journal(doctor))
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "\"weft logs\" says why it does not take the journal.",
                          "waits for its journal, pid %ld, and no hub that has it answers: %s", (long) doctor->pid,
                          *trouble.text ? trouble.text : weft_strerror(r));
    else if (r < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, "It may be stuck: \"weft logs\", then \"weft restart\".",
                          "runs, pid %ld, but does not answer: %s", (long) doctor->pid,
                          *trouble.text ? trouble.text : weft_strerror(r));
    else if (answer.error)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "answers daemon.status with an error: %s",
                          answer.error->message);
    else {
        const char *health = weft_get_str(answer.result, "health", "healthy");
        bool well = strcmp(health, "healthy") == 0;
        weft_json version = weft_pointer(answer.result, "/weft/version");
        weft__doctor_tell(doctor, well ? WEFT_FINDING_OK : WEFT_FINDING_PROBLEM,
                          well ? NULL : "\"weft status\" and \"weft logs\" say why.", "runs, pid %lld, %s",
                          (long long) weft_get_int(answer.result, "pid", 0), health);
        tell_troubles(doctor, answer.result);
        tell_standby(doctor, answer.result);
        tell_runner(doctor, answer.result);
        if (strcmp(weft_str_of(&version, weft_version()), weft_version()) != 0)
            weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "weft restart", "it is version %s, this program is %s",
                              weft_str_of(&version, "?"), weft_version());
        tell_skipped(doctor, answer.result);
        tell_relayed_hubs(doctor, answer.result);
        tell_config_age(doctor, answer.result);
        ask_default(doctor, peer);
    }
    weft_peer_free(peer);
}

static bool pid_file_says(const weft_layout *at, pid_t pid) {
    char text[32];
    return weft__private_read(at->pid, text, sizeof text) > 0 && strtol(text, NULL, 10) == (long) pid;
}

void weft__doctor_daemon(weft_doctor *doctor) {
    const weft_layout *at = doctor->app->layout;
    if (doctor->running < 0) {
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "whether one runs cannot be seen: %s",
                          weft__private_why(doctor->running));
        return;
    }
    if (!doctor->running) {
        bool left = doctor->project && (access(at->socket, F_OK) == 0 || access(at->pid, F_OK) == 0);
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "none runs%s",
                          left ? "; an earlier one was killed; what it left does no harm" : "");
        return;
    }
    if (doctor->pid && !pid_file_says(at, doctor->pid))
        weft__doctor_tell(doctor, WEFT_FINDING_WARNING, "It is starting or stopping, or the file was changed by hand.",
                          "%s does not say %ld, which has the lock", at->pid, (long) doctor->pid);
    ask_daemon(doctor);
}

/* ---- the journal ---- */

static const char *checked_store_path(const weft_doctor *doctor) {
    const char *path = doctor->configured ? doctor->settings.store_path : NULL;
    return path ? path : doctor->app->layout->store;
}

/* What is kept nowhere cannot be checked; an earlier journal that lies there can. */
static const weft_store_kind *store_kind(const weft_doctor *doctor) {
    const weft_store_kind *kind = doctor->configured ? weft__store_named(doctor->settings.store_kind) : NULL;
    return kind && weft__store_has_files(kind) ? kind : weft__store_first(true);
}

static void check_store(weft_doctor *doctor) {
    char why[WEFT_STORE_WHY] = "";
    weft_store *store = NULL;
    weft_store_opts opts = {.path = checked_store_path(doctor), .check = WEFT_CHECK_ALWAYS, .on_damage = WEFT_DAMAGE_REFUSE};
    const weft_layout *at = doctor->app->layout;
    char expected[WEFT_EPOCH + 1], trouble[WEFT_TRUST_WHY] = "";
    int r = weft__trust_open_begin(at, opts.path, expected, trouble);
    if (r < 0) {
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, r == -EKEYREJECTED ? WEFT_TRUST_NEXT : WEFT_TRUST_PLACE,
                          "not opened: %s", trouble);
        return;
    }
    opts.expect = expected;
    r = weft__store_open(store_kind(doctor), &opts, &store, why);
    weft__trust_open_end(at, opts.path, r < 0 ? NULL : weft__store_epoch(store), trouble);
    if (r < 0) {
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM,
                          r == -EUCLEAN ? "Nothing was changed. Move it and its neighbours away, or put a copy back; a hub "
                                          "begins a new one where there is none."
                                        : NULL,
                          "%s", *why ? why : weft_strerror(r));
        return;
    }
    weft__doctor_tell(doctor, *why ? WEFT_FINDING_WARNING : WEFT_FINDING_OK, NULL,
                      "checked in full, %llu events so far, epoch %s%s%s", (unsigned long long) weft__store_head(store),
                      weft__store_epoch(store), *why ? "; " : "", why);
    weft__store_close(store);
}

/* One that is not in files here. Whoever has it keeps it; nothing but a line that we looked is written. */
static void check_database(weft_doctor *doctor, const weft_store_kind *kind) {
    char why[WEFT_STORE_WHY] = "";
    weft_store *store = NULL;
    char mark[64], said[256] = "";
    snprintf(mark, sizeof mark, "%s/%s", doctor->app->layout->home, kind->name);
    weft_store_opts opts = {.url = doctor->settings.store_url,
                            .standbys = (int) doctor->settings.store_standbys,
                            .mark = doctor->project ? mark : NULL};
    int r = weft__store_open(kind, &opts, &store, why);
    if (r < 0) {
        weft__doctor_tell(doctor, r == -EBUSY ? WEFT_FINDING_WARNING : WEFT_FINDING_PROBLEM, NULL, "%s: %s", kind->name,
                          *why ? why : weft_strerror(r));
        return;
    }
    bool old = weft__store_about(store, said, sizeof said) > 0;
    weft__doctor_tell(doctor, old ? WEFT_FINDING_WARNING : WEFT_FINDING_OK, old ? "PostgreSQL 15 is what is tested." : NULL,
                      "%s: %llu events so far, epoch %s; %s", kind->name, (unsigned long long) weft__store_head(store),
                      weft__store_epoch(store), said);
    weft__store_close(store);
}

/* Several hubs take turns with it: it is not taken from them for a look. */
static void tell_hubs(weft_doctor *doctor) {
    weft_lead_hub hubs[WEFT_LEAD_HUBS];
    char why[WEFT_STORE_WHY] = "";
    const char *url = doctor->settings.store_url;
    int count = url ? weft__lead_list(url, hubs, why) : -EINVAL;
    if (count < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "the hubs of the journal: %s",
                          url ? why : "store.url says where the database is, and there is none");
    if (count == 0)
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "no hub has had the journal yet");
    for (int i = 0; i < count; i++) {
        bool late = hubs[i].seen_ms > LATE_HUB_MS;
        weft__doctor_tell(doctor, late && hubs[i].leads ? WEFT_FINDING_WARNING : WEFT_FINDING_OK, NULL,
                          "%s %s, seen %lld s ago", hubs[i].name,
                          late            ? "is away"
                          : hubs[i].leads ? "has the journal"
                                          : "waits for it",
                          (long long) hubs[i].seen_ms / 1000);
    }
}

static bool takes_turns(const weft_doctor *doctor, const weft_store_kind *kind) {
    return kind && doctor->settings.store_wait && weft__store_lasts(kind) && !weft__store_has_files(kind);
}

/* The lock is held meanwhile, so that no daemon begins to write under our eyes. */
void weft__doctor_store(weft_doctor *doctor) {
    int lock;
    if (doctor->running && doctor->store_failed) {
        weft__doctor_tell(
            doctor, WEFT_FINDING_PROBLEM,
            "Nothing more is acknowledged. Put back what is missing, or make room on the disk; if it stays so, "
            "\"weft stop\", then \"weft doctor\" again.",
            "the hub has it and cannot store in it");
        return;
    }
    const weft_store_kind *kind = doctor->configured ? weft__store_named(doctor->settings.store_kind) : NULL;
    if (takes_turns(doctor, kind)) {
        tell_hubs(doctor);
        return;
    }
    if (doctor->running) {
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL,
                          "the hub has it, and checked it when it started; \"weft stop\" first for a full check");
        return;
    }
    if (kind && weft__store_lasts(kind) && !weft__store_has_files(kind)) {
        check_database(doctor, kind);
        return;
    }
    if (!doctor->project || !weft__store_was_here(store_kind(doctor), checked_store_path(doctor))) {
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "there is none yet");
        return;
    }
    if (doctor->strange) {
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, WEFT_TRUST_NEXT, "not opened: it is not trusted");
        return;
    }
    int r = weft__daemon_lock(doctor->app->layout, &lock);
    if (r < 0) {
        weft__doctor_tell(doctor, r == -EBUSY ? WEFT_FINDING_OK : WEFT_FINDING_PROBLEM, NULL, "not checked: %s",
                          r == -EBUSY ? "a hub has just started" : weft__private_why(r));
        return;
    }
    check_store(doctor);
    weft__daemon_unlock(lock);
}

/* ---- the port ---- */

static int try_port(unsigned short port, bool listen_there) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int r = listen_there ? bind(fd, (struct sockaddr *) &address, sizeof address)
                         : connect(fd, (struct sockaddr *) &address, sizeof address);
    r = r < 0 ? -errno : 0;
    close(fd);
    return r;
}

static void check_own_port(weft_doctor *doctor) {
    WEFT_AUTO(weft_doc) endpoint = weft__daemon_endpoint(doctor->app->layout);
    const char *http = endpoint ? weft_get_str(weft_doc_root(endpoint), "http", "") : "";
    const char *colon = strrchr(http, ':');
    unsigned port = 0;
    if (!*http || !colon || sscanf(colon, ":%u", &port) != 1 || port > 65535) {
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "it listens on no web address");
        return;
    }
    int r = strstr(http, "127.0.0.1") ? try_port((unsigned short) port, false) : 0;
    weft__doctor_tell(doctor, r < 0 ? WEFT_FINDING_PROBLEM : WEFT_FINDING_OK, NULL, "%s%s%s", http,
                      r < 0 ? " does not answer: " : "", r < 0 ? weft_strerror(r) : "");
}

void weft__doctor_port(weft_doctor *doctor) {
    if (doctor->running > 0) {
        check_own_port(doctor);
        return;
    }
    int r = try_port(USUAL_PORT, true);
    if (r == -EADDRINUSE)
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%d is taken, the next free one will be used", USUAL_PORT);
    else if (r < 0)
        weft__doctor_tell(doctor, WEFT_FINDING_PROBLEM, NULL, "%d on loopback: %s", USUAL_PORT, weft_strerror(r));
    else
        weft__doctor_tell(doctor, WEFT_FINDING_OK, NULL, "%d is free", USUAL_PORT);
}
