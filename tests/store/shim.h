/* A file system for SQLite that fails or loses what was not synced, at a chosen operation.
 *
 * It stands on the system's own: every call goes through to real files, syncs excepted, and what each file would hold after
 * a crash of the machine is kept beside it in memory: the content at its last sync. Only the database and its log are kept
 * so; the shared memory of the log does not survive a crash anyway. For one store at a time, but for all of its threads. */
#ifndef STORE_SHIM_H
#define STORE_SHIM_H

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHIM_FILES 4

typedef struct shim_bytes {
    char *data;
    size_t len;
} shim_bytes;

typedef struct shim_disk {
    char path[200];
    shim_bytes now, synced;
} shim_disk;

typedef struct shim_file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    shim_disk *disk; /* NULL: not kept */
    sqlite3_file *real;
} shim_file;

typedef struct shim {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    pthread_mutex_t lock;
    long count;    /* operations so far: writes, truncations, syncs; reads too if with_reads */
    long fail_at;  /* the one that fails; 0 none */
    long fail_for; /* how many fail from then on; 0 all */
    int fail_with; /* SQLite's code */
    bool with_reads;
    int clock_off_s; /* of the times of its files */
    int cut_at;      /* the sync of a log, from now, after which somebody empties it; 0 none */
    shim_disk disks[SHIM_FILES];
} shim;

static shim shim_one;

/* Whether this operation is to fail. */
static inline bool shim_fails(void) {
    long n = ++shim_one.count;
    return shim_one.fail_at && n >= shim_one.fail_at && (!shim_one.fail_for || n < shim_one.fail_at + shim_one.fail_for);
}

static inline void shim_resize(shim_bytes *bytes, size_t len) {
    char *data = realloc(bytes->data, len + 1);
    if (!data)
        abort();
    if (len > bytes->len)
        memset(data + bytes->len, 0, len - bytes->len);
    *bytes = (shim_bytes){data, len};
}

static inline void shim_copy(shim_bytes *to, const shim_bytes *from) {
    shim_resize(to, from->len);
    if (from->len)
        memcpy(to->data, from->data, from->len);
}

static inline sqlite3_file *shim_real(sqlite3_file *file) {
    return ((shim_file *) (void *) file)->real;
}

static inline shim_disk *shim_kept(sqlite3_file *file) {
    return ((shim_file *) (void *) file)->disk;
}

static inline int shim_close(sqlite3_file *file) {
    return shim_real(file)->pMethods->xClose(shim_real(file));
}

static inline int shim_read(sqlite3_file *file, void *data, int n, sqlite3_int64 at) {
    pthread_mutex_lock(&shim_one.lock);
    bool fails = shim_one.with_reads && shim_fails();
    pthread_mutex_unlock(&shim_one.lock);
    return fails ? SQLITE_IOERR_READ : shim_real(file)->pMethods->xRead(shim_real(file), data, n, at);
}

static inline int shim_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at) {
    shim_disk *disk = shim_kept(file);
    if (!disk)
        return shim_real(file)->pMethods->xWrite(shim_real(file), data, n, at);
    pthread_mutex_lock(&shim_one.lock);
    int rc = shim_fails() ? shim_one.fail_with : SQLITE_OK;
    if (rc == SQLITE_OK) {
        if ((size_t) at + (size_t) n > disk->now.len)
            shim_resize(&disk->now, (size_t) at + (size_t) n);
        memcpy(disk->now.data + at, data, (size_t) n);
    }
    pthread_mutex_unlock(&shim_one.lock);
    return rc == SQLITE_OK ? shim_real(file)->pMethods->xWrite(shim_real(file), data, n, at) : rc;
}

static inline int shim_truncate(sqlite3_file *file, sqlite3_int64 len) {
    shim_disk *disk = shim_kept(file);
    pthread_mutex_lock(&shim_one.lock);
    int rc = disk && shim_fails() ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
    if (disk && rc == SQLITE_OK)
        shim_resize(&disk->now, (size_t) len);
    pthread_mutex_unlock(&shim_one.lock);
    return rc == SQLITE_OK ? shim_real(file)->pMethods->xTruncate(shim_real(file), len) : rc;
}

static inline void shim_set_clock(const char *path) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
    clock_gettime(CLOCK_REALTIME, &times[1]);
    times[1].tv_sec += shim_one.clock_off_s;
    if (utimensat(AT_FDCWD, path, times, 0) < 0)
        abort();
}

static inline int shim_sync(sqlite3_file *file, int flags) {
    shim_disk *disk = shim_kept(file);
    (void) flags;
    pthread_mutex_lock(&shim_one.lock);
    int rc = disk && shim_fails() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    if (disk && rc == SQLITE_OK)
        shim_copy(&disk->synced, &disk->now);
    bool cut = disk && strstr(disk->path, "-wal") && shim_one.cut_at && --shim_one.cut_at == 0;
    pthread_mutex_unlock(&shim_one.lock);
    if (disk && shim_one.clock_off_s)
        shim_set_clock(disk->path);
    if (cut && truncate(disk->path, 0) < 0)
        abort();
    return rc;
}

static inline int shim_size(sqlite3_file *file, sqlite3_int64 *ret) {
    return shim_real(file)->pMethods->xFileSize(shim_real(file), ret);
}
static inline int shim_lock_file(sqlite3_file *file, int level) {
    return shim_real(file)->pMethods->xLock(shim_real(file), level);
}
static inline int shim_unlock(sqlite3_file *file, int level) {
    return shim_real(file)->pMethods->xUnlock(shim_real(file), level);
}
static inline int shim_reserved(sqlite3_file *file, int *ret) {
    return shim_real(file)->pMethods->xCheckReservedLock(shim_real(file), ret);
}
static inline int shim_control(sqlite3_file *file, int op, void *arg) {
    return shim_real(file)->pMethods->xFileControl(shim_real(file), op, arg);
}
static inline int shim_sector(sqlite3_file *file) {
    return shim_real(file)->pMethods->xSectorSize(shim_real(file));
}
static inline int shim_traits(sqlite3_file *file) {
    return shim_real(file)->pMethods->xDeviceCharacteristics(shim_real(file));
}
static inline int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret) {
    return shim_real(file)->pMethods->xShmMap(shim_real(file), page, size, extend, ret);
}
static inline int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    return shim_real(file)->pMethods->xShmLock(shim_real(file), offset, n, flags);
}
static inline void shim_shm_barrier(sqlite3_file *file) {
    shim_real(file)->pMethods->xShmBarrier(shim_real(file));
}
static inline int shim_shm_unmap(sqlite3_file *file, int delete) {
    return shim_real(file)->pMethods->xShmUnmap(shim_real(file), delete);
}

static inline shim_disk *shim_disk_of(const char *path) {
    for (int i = 0; i < SHIM_FILES; i++) {
        shim_disk *disk = &shim_one.disks[i];
        if (!disk->path[0])
            snprintf(disk->path, sizeof disk->path, "%s", path);
        if (strcmp(disk->path, path) == 0)
            return disk;
    }
    abort();
}

static inline int shim_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags) {
    shim_file *mine = (shim_file *) (void *) file;
    (void) vfs;
    memset(mine, 0, sizeof *mine);
    mine->real = (sqlite3_file *) (void *) (mine + 1);
    int rc = shim_one.real->xOpen(shim_one.real, path, mine->real, flags, ret_flags);
    if (!mine->real->pMethods)
        return rc;
    mine->methods =
        (sqlite3_io_methods){2,           shim_close,     shim_read,     shim_write,       shim_truncate, shim_sync,
                             shim_size,   shim_lock_file, shim_unlock,   shim_reserved,    shim_control,  shim_sector,
                             shim_traits, shim_shm_map,   shim_shm_lock, shim_shm_barrier, shim_shm_unmap};
    file->pMethods = &mine->methods;
    pthread_mutex_lock(&shim_one.lock);
    if (path && flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))
        mine->disk = shim_disk_of(path);
    pthread_mutex_unlock(&shim_one.lock);
    return rc;
}

/* A log that is deleted is gone, also after a crash: the unkindest order. */
static inline int shim_delete(sqlite3_vfs *vfs, const char *path, int sync) {
    (void) vfs;
    pthread_mutex_lock(&shim_one.lock);
    bool fails = shim_fails();
    if (!fails) {
        shim_disk *disk = shim_disk_of(path);
        shim_resize(&disk->now, 0);
        shim_resize(&disk->synced, 0);
    }
    pthread_mutex_unlock(&shim_one.lock);
    return fails ? SQLITE_IOERR_DELETE : shim_one.real->xDelete(shim_one.real, path, sync);
}

/* Register it, or set it back: nothing fails, nothing is kept. */
static inline void shim_reset(void) {
    if (!shim_one.real) {
        shim_one.real = sqlite3_vfs_find(NULL);
        shim_one.vfs = *shim_one.real;
        shim_one.vfs.zName = "shim";
        shim_one.vfs.szOsFile = (int) sizeof(shim_file) + shim_one.real->szOsFile;
        shim_one.vfs.xOpen = shim_open;
        shim_one.vfs.xDelete = shim_delete;
        pthread_mutex_init(&shim_one.lock, NULL);
        sqlite3_vfs_register(&shim_one.vfs, 0);
    }
    for (int i = 0; i < SHIM_FILES; i++) {
        free(shim_one.disks[i].now.data);
        free(shim_one.disks[i].synced.data);
        memset(&shim_one.disks[i], 0, sizeof shim_one.disks[i]);
    }
    shim_one.count = shim_one.fail_at = shim_one.fail_for = 0;
    shim_one.clock_off_s = shim_one.cut_at = 0;
    shim_one.fail_with = SQLITE_IOERR_WRITE;
    shim_one.with_reads = false;
}

static inline void shim_set(long fail_at, long fail_for, int fail_with) {
    pthread_mutex_lock(&shim_one.lock);
    shim_one.count = 0;
    shim_one.fail_at = fail_at;
    shim_one.fail_for = fail_for;
    shim_one.fail_with = fail_with;
    pthread_mutex_unlock(&shim_one.lock);
}

static inline long shim_operations(void) {
    pthread_mutex_lock(&shim_one.lock);
    long count = shim_one.count;
    pthread_mutex_unlock(&shim_one.lock);
    return count;
}

/* Put on the real disk what a crash now would leave. The store must be closed. With torn, blocks that were written and not
 * synced are there or not, every second one. */
static inline void shim_crash(bool torn) {
    enum { BLOCK = 512 };
    for (int i = 0; i < SHIM_FILES; i++) {
        shim_disk *disk = &shim_one.disks[i];
        if (!disk->path[0])
            continue;
        for (size_t at = 0; torn && at < disk->now.len; at += 2 * BLOCK) {
            size_t n = disk->now.len - at < BLOCK ? disk->now.len - at : BLOCK;
            if (at + n > disk->synced.len)
                shim_resize(&disk->synced, at + n);
            memcpy(disk->synced.data + at, disk->now.data + at, n);
        }
        int fd = open(disk->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, disk->synced.data, disk->synced.len) != (ssize_t) disk->synced.len)
            abort();
        close(fd);
        char shared[220];
        snprintf(shared, sizeof shared, "%s-shm", disk->path);
        unlink(shared);
    }
}

#endif
