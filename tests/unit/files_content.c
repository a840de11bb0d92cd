/* What is in files, and writing them: lines and limits, lists, permissions; on threads, with short memory and long queues.
 */
#include "files.h"

#include "file_world.h"
#include "workers.h"

/* ---- content ---- */

static const struct {
    const char *name, *file;
    uint64_t line, limit;
    size_t max;
    const char *content;
    bool truncated;
} parts[] = {
    {"all", "1\n2\n3\n", 0, 0, 0, "1\n2\n3\n", false},
    {"from the first", "1\n2\n3\n", 1, 0, 0, "1\n2\n3\n", false},
    {"one line", "1\n2\n3\n", 2, 1, 0, "2\n", false},
    {"from the second", "1\n2\n3\n", 2, 0, 0, "2\n3\n", false},
    {"the last has no end", "1\n2\n3", 3, 5, 0, "3", false},
    {"behind the end", "1\n2\n3\n", 4, 1, 0, "", false},
    {"far behind the end", "1\n2\n3", UINT64_MAX, UINT64_MAX, 0, "", false},
    {"empty", "", 1, 1, 0, "", false},
    {"exactly as much", "1234", 0, 0, 4, "1234", false},
    {"one byte less", "1234", 0, 0, 3, "123", true},
    {"within a line", "1\n2222\n", 2, 1, 2, "22", true},
    {"a limit that is met", "1\n2\n3\n", 1, 2, 4, "1\n2\n", false},
    {"within a character", "1\xC3\xA4", 0, 0, 2, "1", true},
    {"within a long character", "1\xF0\x9F\x98\x80", 0, 0, 4, "1", true},
};

TEST(lines_and_limits) {
    place p;
    begin(&p);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        weft_file_content content;
        test_row(parts[i].name);
        put(&p, "f", parts[i].file);
        weft_file_read what = {bytes("f"), parts[i].max, parts[i].line, parts[i].limit};
        if (!CHECK_INT(weft__file_read(p.root, &what, 0, NULL, &content), 0))
            continue;
        CHECK_TEXT(weft__buf_len(&content.content) ? weft__buf_head(&content.content) : "", weft__buf_len(&content.content),
                   parts[i].content);
        CHECK_INT(content.truncated, parts[i].truncated);
        CHECK(content.text);
        CHECK_INT(content.size, strlen(parts[i].file));
        CHECK_INT(content.mode, 0644);
        CHECK(content.mtime_ms > 1600000000000);
        weft__file_content_done(&content, NULL);
    }
    test_row(NULL);
    end(&p);
}

TEST(what_is_a_text) {
    static const struct {
        const char *data;
        size_t len;
        bool text;
    } rows[] = {{"a\xC3\xA4", 3, true}, {"a\xC3", 2, false}, {"a\0b", 3, false}, {"\xff", 1, false}, {"", 0, true}};
    place p;
    char full[PATH_MAX];
    begin(&p);
    full_path(&p, "f", full);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_file_content content;
        int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        CHECK_INT(write(fd, rows[i].data, rows[i].len), rows[i].len);
        close(fd);
        CHECK_INT(weft__file_read(p.root, &(weft_file_read){.path = bytes("f")}, 0, NULL, &content), 0);
        CHECK_INT(content.text, rows[i].text);
        CHECK_INT(weft__buf_len(&content.content), rows[i].len);
        weft__file_content_done(&content, NULL);
    }
    end(&p);
}

/* A file of zeros without an end, nearly: it takes no more memory than was asked for, and no more reading than allowed. */
TEST(large_files) {
    place p;
    char full[PATH_MAX];
    weft_file_content content;
    begin(&p);
    put(&p, "large", "");
    full_path(&p, "large", full);
    CHECK_INT(truncate(full, (off_t) 1 << 40), 0);
    CHECK_INT(weft__file_read(p.root, &(weft_file_read){.path = bytes("large")}, 0, NULL, &content), 0);
    CHECK_INT(weft__buf_len(&content.content), WEFT_FILE_READ);
    CHECK(content.truncated && !content.text);
    CHECK_INT(content.size, (int64_t) 1 << 40);
    weft__file_content_done(&content, NULL);
    CHECK_INT(weft__file_read(p.root, &(weft_file_read){.path = bytes("large"), .max = SIZE_MAX}, 0, NULL, &content), 0);
    CHECK_INT(weft__buf_len(&content.content), WEFT_FILE_READ_MAX);
    weft__file_content_done(&content, NULL);
    CHECK_INT(weft__file_read(p.root, &(weft_file_read){.path = bytes("large"), .line = 2}, 0, NULL, &content), 0);
    CHECK_INT(weft__buf_len(&content.content), 0);
    CHECK(content.truncated);
    weft__file_content_done(&content, NULL);
    end(&p);
}

/* ---- listing ---- */

static void list_as(const place *p, const char *path, size_t max, unsigned how, char *ret, size_t size) {
    static const char marks[] = "-/@?";
    weft_file_list list;
    size_t len = 0;
    ret[0] = '\0';
    if (!CHECK_INT(weft__file_list(p->root, bytes(path), max, how, NULL, &list), 0))
        return;
    for (size_t i = 0; i < list.count; i++)
        len += (size_t) snprintf(ret + len, size - len, "%s%c%llu ", list.entries[i].name, marks[list.entries[i].type],
                                 (unsigned long long) list.entries[i].size);
    snprintf(ret + len, size - len, "%s", list.truncated ? "..." : "");
    weft__file_list_done(&list, NULL);
}

TEST(lists) {
    place p;
    char text[1024];
    make_readable(&p);
    for (unsigned how = WEFT_BENEATH_LINKS; how < 4; how += WEFT_BENEATH_WALK) {
        weft_file_list list;
        list_as(&p, "d", 0, how, text, sizeof text);
        CHECK_TEXT(text, strlen(text), "b-1 e/0 to-a@0 up@0 ");
        list_as(&p, "to-d", 0, how, text, sizeof text);
        CHECK_TEXT(text, strlen(text), "b-1 e/0 to-a@0 up@0 ");
        list_as(&p, ".", 0, how, text, sizeof text);
        CHECK(strncmp(text, "-rf-1 .aiwg/0 .gitignore-1 a-1 d/0 daemon-1 hard-1 pipe?0 socket?0 ", 66) == 0);
        CHECK(strstr(text, "\xff\xfe-1 ") != NULL);
        list_as(&p, "d/e", 0, how, text, sizeof text);
        CHECK_TEXT(text, strlen(text), "");
        CHECK_INT(weft__file_list(p.root, bytes("a"), 0, how, NULL, &list), -ENOTDIR);
        CHECK_INT(weft__file_list(p.root, bytes("to-outside"), 0, how, NULL, &list), -EXDEV);
        CHECK_INT(weft__file_list(p.root, bytes("d/.weft"), 0, how, NULL, &list), -EACCES);
        CHECK_INT(weft__file_list(p.root, bytes("to-git"), 0, how, NULL, &list), -EACCES);
        CHECK_INT(weft__file_list(p.root, bytes("pipe"), 0, how, NULL, &list), -ENOTDIR);
    }
    end(&p);
}

TEST(lists_have_a_limit) {
    place p;
    weft_file_list list;
    char name[32];
    begin(&p);
    for (int i = 0; i <= WEFT_FILE_ENTRIES; i++) {
        snprintf(name, sizeof name, "%05d", i);
        put(&p, name, "");
    }
    CHECK_INT(weft__file_list(p.root, bytes("."), 0, 0, NULL, &list), 0);
    CHECK_INT(list.count, WEFT_FILE_ENTRIES);
    CHECK(list.truncated);
    for (size_t i = 1; i < list.count; i++)
        CHECK(strcmp(list.entries[i - 1].name, list.entries[i].name) < 0);
    weft__file_list_done(&list, NULL);
    CHECK_INT(weft__file_list(p.root, bytes("."), 3, 0, NULL, &list), 0);
    CHECK_INT(list.count, 3);
    weft__file_list_done(&list, NULL);
    end(&p);
}

/* ---- writing ---- */

static void check_writes(unsigned how) {
    static const struct {
        const char *path;
        int r;
    } refused[] = {
        {"../outside/secret", -EXDEV},
        {"to-a", -ELOOP},
        {"to-d/b", -ELOOP},
        {"to-outside/new", -ELOOP},
        {"to-nothing", -ELOOP},
        {"d", -EISDIR},
        {"d/", -EINVAL},
        {".", -EINVAL},
        {"d/..", -EINVAL},
        {"pipe", -EINVAL},
        {"/tmp/x", -EXDEV},
        {"", -EINVAL},
        {"a/x", -ENOTDIR},
        {"missing/x", -ENOENT},
        {".git/hooks", -EACCES},
        {".git", -EACCES},
        {"d/.GIT/config", -EACCES},
        {"d/.weft/token", -EACCES},
        {"to-git/config", -ELOOP},
        {"d/../.git/x", -EACCES},
    };
    place p;
    struct stat st;
    char full[PATH_MAX];
    bool created;
    make_readable(&p);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        test_row(refused[i].path);
        CHECK_INT(write_path(&p, refused[i].path, "bad", how), refused[i].r);
        CHECK_INT(write_path(&p, refused[i].path, "bad", how | WEFT_BENEATH_LINKS), refused[i].r);
    }
    test_row(NULL);
    CHECK(has(&p, "../outside/secret", "outside") && has(&p, "a", "A") && has(&p, ".git/config", "hidden"));
    CHECK_INT(count_of(&p, "../outside"), 1);

    /* A file that is there keeps its permissions; another name of it keeps the content. */
    full_path(&p, "a", full);
    CHECK_INT(chmod(full, 0751), 0);
    CHECK_INT(weft__file_write(p.root, &(weft_file_write){bytes("a"), bytes("new"), false, 022}, how, &created), 0);
    CHECK(!created && has(&p, "a", "new") && has(&p, "hard", "A"));
    CHECK(stat(full, &st) == 0 && (st.st_mode & 07777) == 0751);
    CHECK_INT(weft__file_write(p.root, &(weft_file_write){bytes("d/n"), {"", 0}, false, 027}, how, &created), 0);
    full_path(&p, "d/n", full);
    CHECK(created && has(&p, "d/n", "") && stat(full, &st) == 0 && (st.st_mode & 07777) == 0640);

    CHECK_INT(weft__file_write(p.root, &(weft_file_write){bytes("x/./y//z/../w/f"), bytes("F"), true, 027}, how, &created),
              0);
    full_path(&p, "x/y/w", full);
    CHECK(created && has(&p, "x/y/w/f", "F") && stat(full, &st) == 0 && (st.st_mode & 07777) == 0750);
    CHECK_INT(weft__file_write(p.root, &(weft_file_write){bytes("q/.git/hooks/f"), bytes("F"), true, 022}, how, &created),
              -EACCES);
    CHECK_INT(weft__file_write(p.root, &(weft_file_write){bytes("q/../../x/f"), bytes("F"), true, 022}, how, &created),
              -EXDEV);
    CHECK_INT(weft__file_write(p.root, &(weft_file_write){bytes("to-outside/n/f"), bytes("F"), true, 022}, how, &created),
              -ELOOP);
    CHECK_INT(count_of(&p, "../outside"), 1);
    CHECK_INT(count_of(&p, "x/y/w"), 1); /* nothing of ours is left beside it */
    end(&p);
}

TEST(writes_by_the_kernel) {
    check_writes(0);
}

TEST(writes_by_walking) {
    check_writes(WEFT_BENEATH_WALK);
}

TEST(write_respects_permissions) {
    place p;
    char full[PATH_MAX];
    if (geteuid() == 0) {
        test_skip("root may write everything");
        return;
    }
    begin(&p);
    put(&p, "a", "A");
    full_path(&p, "a", full);
    CHECK_INT(chmod(full, 0444), 0);
    CHECK_INT(write_path(&p, "a", "new", 0), -EACCES);
    CHECK(has(&p, "a", "A"));
    end(&p);
}

/* ---- on threads ---- */

typedef struct answers {
    int count, r;
    char text[64];
    size_t entries;
    bool created;
    weft_files *files;
} answers;

static void on_done(void *ctx, const weft_file_result *result) {
    answers *a = ctx;
    a->count++;
    a->r = result->r;
    a->created = result->created;
    a->entries = result->list ? result->list->count : 0;
    if (result->content)
        snprintf(a->text, sizeof a->text, "%.*s", (int) weft__buf_len(&result->content->content),
                 weft__buf_head(&result->content->content));
}

static void until(weft_loop *loop, const int *count, int want) {
    int64_t end_at = world_ms() + WORLD_PATIENCE_MS;
    while (*count < want && world_ms() < end_at) {
        struct pollfd p = {.fd = weft_loop_fd(loop), .events = POLLIN};
        poll(&p, 1, 50);
        weft_loop_once(loop, false);
    }
    CHECK_INT(*count, want);
}

static void threads_scene(const place *p, long fail_at, long *ret_count) {
    test_memory memory;
    test_memory_init(&memory, fail_at);
    weft_loop *loop = NULL;
    weft_files *files = NULL;
    answers a = {0};
    char full[PATH_MAX];
    full_path(p, "", full);
    int accepted = 0, r = weft_loop_new(NULL, &loop);
    if (r == 0)
        r = weft__files_new(&(weft_files_opts){.loop = loop, .alloc = &memory.alloc, .folder = full, .umask = 022}, &files);
    if (r == 0) {
        r = weft__files_write(files, &(weft_file_write){.path = bytes("t"), .content = bytes("T")}, on_done, &a);
        accepted += r == 0;
        CHECK(a.count == 0);
        until(loop, &a.count, accepted);
        if (!fail_at)
            CHECK(a.r == 0);
        accepted += weft__files_read(files, &(weft_file_read){.path = bytes("t")}, on_done, &a) == 0;
        until(loop, &a.count, accepted);
        if (!fail_at)
            CHECK_STR(a.text, "T");
        accepted += weft__files_list(files, bytes("."), 0, on_done, &a) == 0;
        until(loop, &a.count, accepted);
        if (!fail_at)
            CHECK_INT(a.entries, 1);
        else if (a.count < 3 || a.r < 0)
            CHECK(a.r == -ENOMEM || a.r == 0);
    } else
        CHECK_INT(r, -ENOMEM);
    weft__files_free(files);
    weft_loop_free(loop);
    CHECK_INT(memory.live, 0);
    *ret_count = memory.count;
}

TEST(on_threads_with_every_allocation_failing) {
    place p;
    long count = 0, ignored;
    begin(&p);
    threads_scene(&p, 0, &count);
    CHECK(count > 5);
    for (long n = 1; n <= count; n++)
        threads_scene(&p, n, &ignored);
    end(&p);
}

/* What waits has a limit, in number and in bytes. Two pieces of work hold the threads, so that everything else waits. */
TEST(limits_of_waiting) {
    place p;
    weft_loop *loop;
    weft_files *files;
    answers a = {0};
    char full[PATH_MAX];
    int accepted = 0, r = 0;
    begin(&p);
    full_path(&p, "", full);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__files_new(&(weft_files_opts){.loop = loop, .folder = full}, &files), 0);
    /* More bytes than may wait: nothing is finished before the loop runs. */
    char *large = calloc(1, WEFT_FILE_WRITE_MAX + 1);
    weft_file_write what = {.path = bytes("a"), .content = {large, WEFT_FILE_WRITE_MAX + 1}};
    CHECK_INT(weft__files_write(files, &what, on_done, &a), -EFBIG);
    what.content.len = WEFT_FILE_WRITE_MAX;
    while ((r = weft__files_write(files, &what, on_done, &a)) == 0)
        accepted++;
    CHECK_INT(r, -EAGAIN);
    CHECK_INT(accepted, WEFT_FILES_BYTES / WEFT_FILE_WRITE_MAX);
    until(loop, &a.count, accepted);
    CHECK_INT(a.r, 0);
    free(large);
    CHECK_INT(weft__files_read(files, &(weft_file_read){.path = bytes("../x")}, on_done, &a), 0);
    until(loop, &a.count, accepted + 1);
    CHECK_INT(a.r, -EXDEV);
    CHECK_INT(weft__files_read(files, &(weft_file_read){.path = bytes("/x")}, on_done, &a), -EXDEV);
    /* Freed with work under way: nothing is told, nothing is lost. */
    for (int i = 0; i < 20; i++)
        CHECK_INT(weft__files_list(files, bytes("."), 0, on_done, &a), 0);
    weft__files_free(files);
    weft_loop_free(loop);
    CHECK_INT(a.count, accepted + 1);
    end(&p);
}

typedef struct waiting_work {
    weft_work work;
    pthread_mutex_t *gate;
    int *done, *lost;
} waiting_work;

static void run_waiting(weft_work *work) {
    waiting_work *w = WEFT_CONTAINER(work, waiting_work, work);
    pthread_mutex_lock(w->gate);
    pthread_mutex_unlock(w->gate);
}

static void waiting_done(weft_work *work, bool lost) {
    waiting_work *w = WEFT_CONTAINER(work, waiting_work, work);
    ++*(lost ? w->lost : w->done);
}

TEST(workers) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    waiting_work work[12];
    weft_loop *loop;
    weft_workers *workers;
    int done = 0, lost = 0, given = 0;
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__workers_new(&(weft_workers_opts){.loop = loop, .threads = 1, .max_waiting = 4}, &workers), 0);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 12; i++) {
        work[i] = (waiting_work){.work = {.run = run_waiting, .done = waiting_done}, .gate = &gate, &done, &lost};
        given += weft__workers_give(workers, &work[given].work) == 0;
    }
    CHECK(given == 4 || given == 5); /* the thread has taken the first, or not yet */
    pthread_mutex_unlock(&gate);
    until(loop, &done, given);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 3; i++)
        CHECK_INT(weft__workers_give(workers, &work[i].work), 0);
    pthread_mutex_unlock(&gate);
    weft__workers_free(workers);
    CHECK_INT(lost, 3);
    CHECK_INT(done, given);
    weft_loop_free(loop);
}

TEST_MAIN(CASE(lines_and_limits) CASE(what_is_a_text) CASE(large_files) CASE(lists) CASE(lists_have_a_limit)
              CASE(writes_by_the_kernel) CASE(writes_by_walking) CASE(write_respects_permissions)
                  CASE(on_threads_with_every_allocation_failing) CASE(limits_of_waiting) CASE(workers))
