/* A PostgreSQL of the distribution in a folder of its own, reached by a Unix socket in that folder and by nothing else. It
 * dies with the test. Everything is static and inline, as in world.h. */
#ifndef STORE_POSTGRES_SERVER_H
#define STORE_POSTGRES_SERVER_H

#include <dirent.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "postgres_conn.h"
#include "store/world.h"

typedef struct postgres_server {
    char folder[80]; /* "": there is none */
    pid_t pid;       /* 0: it does not run */
} postgres_server;

/* The folder of initdb and postgres, which is not in the PATH of Debian; the newest. NULL: not installed. */
static inline const char *postgres_bin(void) {
    static char found[64];
    int newest = 0;
    const char *told = getenv("WEFT_POSTGRES_BIN");
    if (told || *found)
        return told ? told : found;
    DIR *dir = opendir("/usr/lib/postgresql");
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        newest = atoi(entry->d_name) > newest ? atoi(entry->d_name) : newest;
    if (dir)
        closedir(dir);
    snprintf(found, sizeof found, "/usr/lib/postgresql/%d/bin", newest);
    if (access(found, X_OK) < 0)
        *found = '\0';
    return *found ? found : NULL;
}

/* The server refuses to run as root. */
static inline const struct passwd *postgres_user(void) {
    const struct passwd *user = geteuid() ? NULL : getpwnam("postgres");
    return geteuid() || user ? user : getpwnam("nobody");
}

static inline pid_t postgres_spawn(const char *program, char **argv) {
    char path[512];
    const struct passwd *user = postgres_user();
    snprintf(path, sizeof path, "%s/%s", postgres_bin(), program);
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (!getenv("WEFT_POSTGRES_SHOW"))
        dup2(null, STDERR_FILENO);
    if (chdir("/") < 0 || (user && (setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent)
        _exit(126);
    argv[0] = path; /* where they look for each other: Debian has them in no folder of PATH */
    execv(path, argv);
    _exit(127);
}

static inline bool postgres_run(const char *program, char **argv) {
    int status = -1;
    pid_t pid = postgres_spawn(program, argv);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* more: of the URL, such as "&options=..."; may be empty. */
static inline void postgres_url(const postgres_server *server, const char *more, char *ret, size_t size) {
    snprintf(ret, size, "postgresql:///postgres?host=%s&user=weft%s", server->folder, more);
}

/* Run SQL on it, each as a transaction of its own; the first value of the first answer, or "". */
static inline bool postgres_sql(const char *url, const char *sql, char *ret, size_t size) {
    static weft_pg_lib lib;
    weft_pg_conn conn = {.lib = &lib, .stop = -1};
    PGresult *results[WEFT_PG_AHEAD];
    if (!lib.handle && weft__pg_lib_load(&lib) < 0)
        return false;
    int r = weft__pg_connect(&conn, url);
    if (r == 0) {
        weft__pg_send(&conn, sql, NULL);
        r = weft__pg_run(&conn, results);
    }
    if (ret && size) {
        bool some = r == 0 && weft__pg_rows(&conn, results[0]) > 0;
        snprintf(ret, size, "%s", some ? weft__pg_get_bytes(&conn, results[0], 0, 0).data : "");
    }
    if (r == 0)
        weft__pg_clear(&conn, results);
    weft__pg_disconnect(&conn);
    return r == 0;
}

static inline void postgres_nap(void) {
    poll(NULL, 0, 20);
}

/* Run SQL until it answers with this. */
static inline bool postgres_await(const char *url, const char *sql, const char *want) {
    char answer[64];
    for (int tries = 0; tries < WORLD_PATIENCE_MS / 20; tries++) {
        if (postgres_sql(url, sql, answer, sizeof answer) && strcmp(answer, want) == 0)
            return true;
        postgres_nap();
    }
    return false;
}

/* A folder with a new database, or with a copy of another server's as its standby. */
static inline bool postgres_make(postgres_server *server, const postgres_server *of) {
    const struct passwd *user = postgres_user();
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    *server = (postgres_server){0};
    snprintf(server->folder, sizeof server->folder, "%s/weft-pg-XXXXXX", where);
    if (!mkdtemp(server->folder) || (user && chown(server->folder, user->pw_uid, user->pw_gid) < 0))
        return false;
    char data[96], url[256];
    snprintf(data, sizeof data, "%s/data", server->folder);
    if (!of) {
        char *argv[] = {"initdb", "-D", data, "-U", "weft", "-A", "trust", "-E", "UTF8", "--no-locale", "-N", "-k", NULL};
        return postgres_run("initdb", argv);
    }
    snprintf(url, sizeof url, "host=%s user=weft application_name=%s", of->folder, strrchr(server->folder, '-') + 1);
    char *argv[] = {"pg_basebackup", "-D", data, "-d", url, "-R", "-N", "-X", "stream", "-c", "fast", NULL};
    return postgres_run("pg_basebackup", argv);
}

static inline bool postgres_start(postgres_server *server) {
    char data[96], url[256];
    snprintf(data, sizeof data, "%s/data", server->folder);
    char *argv[] = {"postgres",
                    "-D",
                    data,
                    "-k",
                    server->folder,
                    "-c",
                    "listen_addresses=",
                    "-c",
                    "fsync=off",
                    "-c",
                    "dynamic_shared_memory_type=mmap",
                    "-c",
                    "shared_buffers=16MB",
                    "-c",
                    "max_connections=60",
                    "-c",
                    "wal_sender_timeout=5s",
                    "-c",
                    "wal_retrieve_retry_interval=50ms",
                    NULL};
    server->pid = postgres_spawn("postgres", argv);
    postgres_url(server, "&target_session_attrs=any", url, sizeof url);
    return server->pid > 0 && postgres_await(url, "SELECT 'up'", "up");
}

static inline void postgres_kill_children(pid_t parent, int signal) {
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[300], line[512] = "";
        int of = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (!file)
            continue;
        const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        if (end && sscanf(end + 1, " %*c %d", &of) == 1 && of == parent)
            kill(atoi(entry->d_name), signal);
        fclose(file);
    }
    if (dir)
        closedir(dir);
}

/* All of it at once, as when the machine fails: none of its processes does anything any more. */
static inline void postgres_kill(postgres_server *server) {
    if (!server->pid)
        return;
    kill(server->pid, SIGSTOP);
    postgres_kill_children(server->pid, SIGKILL);
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

/* The one piece of its shared memory that outlives a server that was killed. */
static inline void postgres_drop_memory(const postgres_server *server) {
    char path[112], line[128];
    unsigned long key;
    int id;
    snprintf(path, sizeof path, "%s/data/postmaster.pid", server->folder);
    FILE *file = fopen(path, "r");
    for (int i = 0; file && i < 7 && fgets(line, sizeof line, file); i++)
        if (i == 6 && sscanf(line, "%lu %d", &key, &id) == 2)
            shmctl(id, IPC_RMID, NULL);
    if (file)
        fclose(file);
}

static inline void postgres_done(postgres_server *server) {
    if (!*server->folder)
        return;
    if (server->pid && kill(server->pid, SIGQUIT) == 0)
        waitpid(server->pid, NULL, 0);
    else
        postgres_drop_memory(server);
    server->pid = 0;
    test_remove(server->folder);
    *server = (postgres_server){0};
}

#endif
