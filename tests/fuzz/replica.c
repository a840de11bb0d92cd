/* What a hub says to a standby: pages and changes of its journal, as lines. The first byte of a line says what it is: 0 to 3
 * a page of that part, "c" changes, "b" the end of a transaction that is kept, "r" of one that is not.
 *
 * The first byte of all chooses whether something true was copied before. What must hold: nothing is stored that does not
 * follow, so whatever was kept opens as a journal that is checked in full. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "change_log.h"
#include "fuzz_memory.h"
#include "replica.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const beginning[] = {
    "0{\"rows\":[{\"gseq\":1,\"seq\":1,\"stream\":\"a\",\"type\":\"t\",\"time\":1,\"data\":\"{}\",\"key\":\"k\"},"
    "{\"gseq\":2,\"seq\":1,\"stream\":\"b\",\"type\":\"t\",\"time\":2,\"data\":\"{}\"}],\"last\":2,\"more\":false,\"head\":"
    "2,"
    "\"trimmed\":0}",
    "3{\"rows\":[{\"place\":1,\"key\":\"x\",\"data\":\"1\"},{\"place\":2,\"key\":\"y\",\"data\":\"2\"}],\"last\":2,\"more\":"
    "false}",
    "c[{\"number\":1,\"events\":[{\"gseq\":3,\"seq\":2,\"stream\":\"a\",\"type\":\"t\",\"time\":3,\"data\":\"{}\"}],"
    "\"documents\":"
    "[{\"key\":\"x\",\"data\":null},{\"key\":\"z\",\"data\":\"3\"}],\"removed\":[1]}]",
    "b",
};

static char path[64];

static void clear_files(void) {
    static const char *const ends[] = {"", "-wal", "-shm", "-mark"};
    char name[80];
    snprintf(path, sizeof path, "/dev/shm/weft-fuzz-replica-%ld.db", (long) getpid());
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* false: the transaction is over. */
static bool take_line(weft_replica *copy, uint64_t at[WEFT_COPY_PARTS], const char *line, size_t len) {
    weft_doc *doc = NULL;
    bool more;
    int r = 0;
    if (!len)
        return true;
    if (*line == 'b' || *line == 'r') {
        if (*line == 'b')
            require(weft__replica_commit(copy) == 0);
        else
            weft__replica_rollback(copy);
        return false;
    }
    if (weft_doc_parse(line + 1, len - 1, NULL, &doc) < 0)
        return true;
    if (*line >= '0' && *line < '0' + WEFT_COPY_PARTS) {
        int part = *line - '0';
        uint64_t last = 0;
        r = weft__replica_take_page(copy, part, at[part], weft_doc_root(doc), &last, &more);
        if (r == 0)
            at[part] = last;
    } else if (*line == 'c')
        r = weft__replica_take_changes(copy, weft_doc_root(doc));
    weft_doc_free(doc);
    require(r == 0 || (r == -EPROTO && *weft__replica_why(copy)));
    if (r < 0)
        weft__replica_rollback(copy);
    return r == 0;
}

static void check_journal(void) {
    char why[WEFT_STORE_WHY];
    weft_store *store;
    int r = weft__store_open(&weft__sqlite, &(weft_store_opts){.path = path, .check = WEFT_CHECK_ALWAYS}, &store, why);
    if (r < 0)
        fprintf(stderr, "%s\n", why);
    require(r == 0);
    weft__store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[WEFT_STORE_WHY];
    weft_replica *copy = NULL;
    uint64_t at[WEFT_COPY_PARTS] = {0};
    if (!size)
        return 0;
    clear_files();
    require(weft__replica_open(&counting, path, NULL, &copy, why) == 0);
    snprintf(weft__replica_state(copy)->epoch, WEFT_EPOCH + 1, "0123456789abcdef0123456789abcdef");
    require(weft__replica_begin(copy) == 0 && weft__replica_commit(copy) == 0);
    require(weft__replica_begin(copy) == 0);
    for (size_t i = 0; data[0] % 2 && i < sizeof beginning / sizeof beginning[0]; i++)
        if (!take_line(copy, at, beginning[i], strlen(beginning[i])))
            require(weft__replica_begin(copy) == 0);
    for (const char *line = (const char *) data + 1, *end = (const char *) data + size; line < end;) {
        const char *stop = memchr(line, '\n', (size_t) (end - line));
        size_t len = (size_t) ((stop ? stop : end) - line);
        if (!take_line(copy, at, line, len))
            require(weft__replica_begin(copy) == 0);
        line += len + 1;
    }
    require(weft__replica_commit(copy) == 0);
    weft__replica_close(copy);
    require(live == 0);
    check_journal();
    clear_files();
    return 0;
}
