/* Random damage to the files of a journal, at different moments of its life (F5, F16).
 *
 * Whatever happens to one of the files, or to two, the next start says that something is wrong, or has every acknowledged
 * event. Refusing changes nothing, and setting aside keeps every byte. WEFT_STORE_DAMAGES or the first argument says how
 * many damages; a failing one is printed with its seed and number. */
#include <time.h>

#include "store/world.h"

#define DAMAGES 700
#define STEP_EVENTS 40

enum { DATABASE, LOG, SHARED, MARK, FILES };
static const char *const suffixes[FILES] = {"", "-wal", "-shm", "-mark"};

typedef struct image {
    char *data; /* NULL: there is no such file */
    size_t len;
} image;

/* The files at one moment, and how many events were acknowledged by then. */
typedef struct moment {
    const char *name;
    image files[FILES];
    uint64_t events;
    char epoch[WEFT_EPOCH + 1];
} moment;

enum { MOMENTS = 7 };
static moment moments[MOMENTS];
static long damages_wanted = DAMAGES;
static unsigned long long seed;

static unsigned dice(unsigned sides) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned) (seed >> 33) % sides;
}

static void file_name(const store_world *world, int which, char ret[160]) {
    snprintf(ret, 160, "%s%s", world->path, suffixes[which]);
}

static image load_file(const char *name) {
    image file = {0};
    if (access(name, F_OK) == 0)
        file.data = test_file(name, &file.len);
    return file;
}

static void save_file(const char *name, const image *file) {
    unlink(name);
    if (!file->data)
        return;
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, file->data, file->len) != (ssize_t) file->len)
        abort();
    close(fd);
}

/* ---- a life ---- */

static void take_moment(const store_world *world, int which, const char *name, uint64_t events) {
    moment *now = &moments[which];
    char path[160];
    now->name = name;
    now->events = events;
    if (world->store)
        memcpy(now->epoch, weft__store_epoch(world->store), sizeof now->epoch);
    else
        memcpy(now->epoch, moments[which - 1].epoch, sizeof now->epoch);
    for (int i = 0; i < FILES; i++) {
        file_name(world, i, path);
        now->files[i] = load_file(path);
    }
    /* Most of the log is room for what comes. One moment has it; in the others damage meets what was written. */
    if (which > 0 && now->files[LOG].data)
        now->files[LOG].len = world_log_end(now->files[LOG].data, now->files[LOG].len);
}

/* Event n says n, in stream a or b; some are large. */
static void append_events(store_world *world, uint64_t *events) {
    static char data[6000];
    for (int i = 0; i < STEP_EVENTS; i++) {
        uint64_t n = ++*events;
        snprintf(data, sizeof data, "%llu:%0*d", (unsigned long long) n, n % 15 == 0 ? 5000 : 20, 0);
        CHECK_INT(world_append(world, n % 2 ? "a" : "b", data), 0);
    }
}

/* Copied while it is open: as a killed process leaves it. With a small log it is copied back in the midst of work. */
static void live(store_world *world) {
    uint64_t events = 0;
    REQUIRE(world_open(world));
    append_events(world, &events);
    take_moment(world, 0, "killed before the first checkpoint", events);
    append_events(world, &events);
    take_moment(world, 1, "killed later, still before it", events);
    world->store = weft__store_close(world->store);
    take_moment(world, 2, "stopped", events);
    REQUIRE(world_open(world));
    append_events(world, &events);
    take_moment(world, 3, "killed in the second run", events);
    world->store = weft__store_close(world->store);
    world->opts.max_log = (size_t) 64 * 4096;
    REQUIRE(world_open(world));
    append_events(world, &events);
    append_events(world, &events);
    take_moment(world, 4, "killed after a checkpoint", events);
    append_events(world, &events);
    take_moment(world, 5, "killed after some", events);
    world->store = weft__store_close(world->store);
    take_moment(world, 6, "stopped again", events);
}

/* ---- damage ---- */

static image copy_of(const image *file) {
    image copy = {file->data ? malloc(file->len + 1) : NULL, file->len};
    if (file->data)
        memcpy(copy.data, file->data, file->len);
    return copy;
}

static void flip_bit(image *file, size_t within) {
    size_t at = dice((unsigned) (within < file->len ? within : file->len));
    file->data[at] = (char) (file->data[at] ^ 1 << dice(8));
}

static void zero_some(image *file) {
    size_t at = dice((unsigned) file->len), n = 1 + dice(8192);
    memset(file->data + at, 0, n < file->len - at ? n : file->len - at);
}

/* At the border of a frame a log that is cut looks whole. */
static void cut(image *file, bool at_frame) {
    size_t len = dice((unsigned) file->len);
    file->len = at_frame && len > 32 ? len - (len - 32) % 4120 : len;
}

static void drop_file(image *file) {
    free(file->data);
    *file = (image){0};
}

static void replace(image *file, const image *by) {
    drop_file(file);
    *file = copy_of(by);
}

/* What was done, for the message. */
static const char *damage_one(image files[FILES], int target, const moment *now) {
    image *file = &files[target];
    const moment *other = &moments[dice((unsigned) (now - moments) + 1)];
    switch (file->data && file->len ? dice(9) : 7) {
    case 0:
        return flip_bit(file, SIZE_MAX), "a bit flipped";
    case 1:
        return flip_bit(file, 100), "a bit of the header flipped";
    case 2:
        return cut(file, false), "cut off";
    case 3:
        return cut(file, true), "cut off between frames";
    case 4:
        return file->len = 0, "emptied";
    case 5:
        return zero_some(file), "overwritten with zeros";
    case 6:
        return drop_file(file), "deleted";
    case 7:
        return replace(file, &other->files[target]), "replaced by an older copy";
    default: {
        int with = (target + 1 + (int) dice(FILES - 1)) % FILES;
        image swapped = *file;
        *file = files[with];
        files[with] = swapped;
        return "swapped with another";
    }
    }
}

/* ---- the next start ---- */

typedef struct scan {
    int times, r;
    uint64_t after, next;
    bool wrong, more;
} scan;

static void scanned(void *ctx, int r, const weft_page *page) {
    scan *s = ctx;
    s->times++;
    s->r = r;
    s->more = r == 0 && page->more;
    for (size_t i = 0; r == 0 && i < page->count; i++) {
        const weft_event *event = &page->events[i];
        s->wrong |= event->gseq != s->next || strtoull(event->data.data, NULL, 10) != s->next;
        s->next++;
    }
    if (r == 0)
        s->after = page->last;
}

/* Every acknowledged event, as it was. What was not acknowledged may be there too. */
static bool has_everything(store_world *world, uint64_t events) {
    scan s = {.next = 1, .more = true};
    while (s.more && s.r == 0) {
        int before = s.times;
        if (weft__store_read(world->store, &(weft_query){.after = s.after}, scanned, &s) < 0)
            return false;
        world_wait(world, &s.times, before + 1);
    }
    /* Without a full check at the start, damage is found when it is read. */
    if (s.r == -EUCLEAN && world->opts.check == WEFT_CHECK_LAZY)
        return !s.wrong;
    return s.r == 0 && !s.wrong && s.next > events;
}

static bool all_bytes_kept(const store_world *world, const image files[FILES]) {
    for (int i = 0; i < FILES; i++) {
        char path[160], aside[180];
        if (i == SHARED || !files[i].data || !files[i].len) /* the shared memory is made anew from the log */
            continue;
        file_name(world, i, path);
        snprintf(aside, sizeof aside, "%s.damaged-1%s", world->path, suffixes[i]);
        image kept = load_file(access(aside, F_OK) == 0 ? aside : path);
        size_t len = i == MARK && files[i].len > 4096 ? 4096 : files[i].len;
        bool same = kept.data && kept.len >= len && memcmp(kept.data, files[i].data, len) == 0;
        free(kept.data);
        if (!same) {
            printf("  %s was %zu bytes and is %zu\n", suffixes[i], files[i].len, kept.len);
            return false;
        }
    }
    return true;
}

/* Refused in words and nothing changed, or everything is there. With quarantine, a new epoch and everything kept. */
static bool outcome_is_right(store_world *world, const moment *now, const image files[FILES]) {
    int r = weft__store_open(world->kind, &world->opts, &world->store, world->why);
    if (r < 0)
        return *world->why && (r == -EUCLEAN || r == -EINVAL || r == -ENOTSUP) && all_bytes_kept(world, files);
    bool same = strcmp(weft__store_epoch(world->store), now->epoch) == 0;
    bool aside = strstr(world->why, ".damaged-") != NULL;
    bool right = aside ? !same && all_bytes_kept(world, files) : has_everything(world, now->events) && (same || *world->why);
    world->store = weft__store_close(world->store);
    return right;
}

static void try_one(store_world *world, long number) {
    const moment *now = &moments[dice(MOMENTS)];
    image files[FILES];
    char path[160];
    int target = (int) dice(8);
    const char *what;
    target = target < 3 ? DATABASE : target < 6 ? LOG : target < 7 ? MARK : SHARED;
    for (int i = 0; i < FILES; i++)
        files[i] = copy_of(&now->files[i]);
    what = damage_one(files, target, now);
    /* Sometimes the shared memory too: it is made anew, so whatever it holds does no harm. */
    bool shared = dice(4) == 0 && files[SHARED].len;
    if (shared)
        zero_some(&files[SHARED]);
    world_empty(world->folder);
    for (int i = 0; i < FILES; i++) {
        file_name(world, i, path);
        save_file(path, &files[i]);
    }
    world->opts.check = dice(2) ? WEFT_CHECK_AUTO : WEFT_CHECK_LAZY;
    world->opts.on_damage = dice(3) ? WEFT_DAMAGE_REFUSE : WEFT_DAMAGE_QUARANTINE;
    if (!CHECK(outcome_is_right(world, now, files)))
        printf("  damage %ld: %s: weft.db%s %s%s: \"%s\"\n", number, now->name, suffixes[target], what,
               shared ? ", weft.db-shm too" : "", world->why);
    for (int i = 0; i < FILES; i++)
        free(files[i].data);
}

TEST(damage_is_told_or_does_no_harm) {
    store_world world;
    const char *told = getenv("WEFT_STORE_SEED");
    world_init(&world, &weft__sqlite);
    live(&world);
    REQUIRE(moments[MOMENTS - 1].name);
    seed = told ? strtoull(told, NULL, 10) : (unsigned long long) time(NULL);
    printf("seed %llu, %ld damages\n", seed, damages_wanted);
    for (long i = 0; i < damages_wanted; i++)
        try_one(&world, i);
    for (int i = 0; i < MOMENTS * FILES; i++)
        free(moments[i / FILES].files[i % FILES].data);
    world_done(&world);
}

/* Without the mark only the log can say that it goes on behind a damaged place. At its very end, that is what a crash leaves
 * of a transaction that nobody was told of, and no damage. */
TEST(without_the_mark_the_log_speaks) {
    store_world world;
    world_init(&world, &weft__sqlite);
    live(&world);
    REQUIRE(moments[1].name && world_log_end(moments[1].files[LOG].data, moments[1].files[LOG].len) > 20 * 4120);
    for (int i = 0; i < 60; i++) {
        image files[FILES];
        char path[160];
        world_empty(world.folder);
        for (int f = 0; f < FILES; f++)
            files[f] = copy_of(&moments[1].files[f]);
        drop_file(&files[MARK]);
        image *log = &files[LOG];
        size_t end = world_log_end(log->data, log->len);
        size_t last = end - 4120 + 24, at = i == 0 ? last : 32 + (end - 10 * 4120) / 60 * (size_t) i;
        log->data[at] = (char) (log->data[at] ^ 0x10);
        for (int f = 0; f < FILES; f++) {
            file_name(&world, f, path);
            save_file(path, &files[f]);
        }
        int r = weft__store_open(world.kind, &world.opts, &world.store, world.why);
        if (!CHECK_INT(r, i == 0 ? 0 : -EUCLEAN))
            printf("  byte %zu of %zu: %s\n", at, log->len, world.why);
        CHECK(*world.why);
        world.store = weft__store_close(world.store);
        for (int f = 0; f < FILES; f++)
            free(files[f].data);
    }
    for (int i = 0; i < MOMENTS * FILES; i++)
        free(moments[i / FILES].files[i % FILES].data);
    world_done(&world);
}

/* The bytes of the header that say who may write: SQLite would only say that it is read-only. */
TEST(a_damaged_header_is_not_called_a_read_only_disk) {
    store_world world;
    char path[160];
    world_init(&world, &weft__sqlite);
    live(&world);
    REQUIRE(moments[2].files[DATABASE].len > 100);
    for (int bit = 0; bit < 16; bit++) {
        image file = copy_of(&moments[2].files[DATABASE]);
        file.data[18 + bit / 8] = (char) (file.data[18 + bit / 8] ^ 1 << bit % 8);
        world_empty(world.folder);
        file_name(&world, DATABASE, path);
        save_file(path, &file);
        file_name(&world, MARK, path);
        save_file(path, &moments[2].files[MARK]);
        CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EUCLEAN);
        CHECK(strstr(world.why, "damaged") != NULL);
        free(file.data);
    }
    for (int i = 0; i < MOMENTS * FILES; i++)
        free(moments[i / FILES].files[i % FILES].data);
    world_done(&world);
}

int main(int argc, char **argv) {
    static const test_case cases[] = {CASE(damage_is_told_or_does_no_harm) CASE(without_the_mark_the_log_speaks)
                                          CASE(a_damaged_header_is_not_called_a_read_only_disk)};
    const char *wanted = argc > 1 ? argv[1] : getenv("WEFT_STORE_DAMAGES");
    if (wanted && strtol(wanted, NULL, 10) > 0)
        damages_wanted = strtol(wanted, NULL, 10);
    return test_main(1, argv, cases, 3);
}
