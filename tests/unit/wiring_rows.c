/* A program that is wired with a store and a driver of its own, each with one row: these tables are linked in place of
 * wiring.c. No other file is touched, and the configuration, the schema and whoever looks for a row know them. */
#include "wiring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents.h"
#include "config.h"
#include "suites/driver.h"
#include "suites/driver_played.h"
#include "suites/store.h"

/* ---- a store of its own: the reference, which counts what is appended ---- */

static size_t shelf_appends;

static int open_shelf(const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    return weft__memory.open(opts, ret, ret_why);
}

static void append_to_shelf(weft_store *store, weft_append_job *job) {
    shelf_appends++;
    weft__memory.append(store, job);
}

static void read_shelf(weft_store *store, weft_read_job *job) {
    weft__memory.read(store, job);
}

static void trim_shelf(weft_store *store, weft_trim_job *job) {
    weft__memory.trim(store, job);
}

static void close_shelf(weft_store *store) {
    weft__memory.close(store);
}

static void free_shelf(weft_store *store) {
    weft__memory.free(store);
}

static const weft_store_kind weft__shelf = {.name = "shelf",
                                            .open = open_shelf,
                                            .append = append_to_shelf,
                                            .read = read_shelf,
                                            .trim = trim_shelf,
                                            .close = close_shelf,
                                            .free = free_shelf};

/* ---- the wiring ---- */

const weft_verb *const weft__verbs[] = {NULL};
const weft_inner weft__inner[] = {{0}};
const weft_store_kind *const weft__stores[] = {&weft__sqlite, &weft__memory, &weft__shelf, NULL};
const weft_driver *const weft__drivers[] = {&weft__driver_acp, &weft__driver_played, &weft__driver_demo, NULL};
const weft_dialect *const weft__dialect_list[] = {NULL};

/* ---- what follows from it ---- */

STORE_SUITE(shelf)

DRIVER_SUITE(played, DRIVER_PLAYED)

TEST(store_is_used) {
    CHECK(shelf_appends > 0);
    CHECK(weft__store_named("shelf") == &weft__shelf);
    CHECK(weft__store_first(true) == &weft__sqlite);
    CHECK(weft__store_first(false) == &weft__memory);
    CHECK(!weft__store_named("paper"));
    CHECK_STR(weft__store_name(2), "shelf");
    CHECK(!weft__store_name(3));
}

static char said[1024];

static void say(void *ctx, const weft_remark *remark) {
    (void) ctx;
    snprintf(said, sizeof said, "%s", remark->text);
}

static char *no_variable(const char *name) {
    (void) name;
    return NULL;
}

static const weft_remarks remarks = {say, NULL};

static int load(const char *text, weft_config *ret) {
    static const weft_serve_settings flags;
    char path[] = "/tmp/weft-wiring-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        abort();
    CHECK_INT(write(fd, text, strlen(text)), (int) strlen(text));
    close(fd);
    *said = '\0';
    weft_config_from from = {path, NULL, no_variable, false, &flags};
    int r = weft__config_load(ret, &from, &remarks, NULL);
    unlink(path);
    return r;
}

TEST(configuration_knows_the_rows) {
    static const struct {
        const char *text;
        int r;
        const char *said;
    } rows[] = {
        {"{\"store\":{\"kind\":\"shelf\"}}", 0, ""},
        {"{\"store\":{\"kind\":\"paper\"}}", -EBADMSG, "store.kind must be \"sqlite\" or \"memory\" or \"shelf\""},
        {"{\"agents\":{\"a\":{\"driver\":\"played\"}}}", 0, ""},
        {"{\"agents\":{\"a\":{\"driver\":\"played\",\"command\":[\"x\"]}}}", -EBADMSG,
         "agents.a has a driver that brings its agent: there is no \"command\""},
        {"{\"agents\":{\"a\":{\"driver\":\"cli\",\"command\":[\"x\"]}}}", -EBADMSG,
         "agents.a.driver must be \"acp\" or \"played\" or \"demo\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_config config;
        test_row(rows[i].text);
        CHECK_INT(load(rows[i].text, &config), rows[i].r);
        CHECK_TEXT(said, strlen(said), rows[i].said);
        weft__config_done(&config);
    }
    test_row(NULL);
}

TEST(schema_lists_the_rows) {
    weft_buf schema = {0};
    CHECK_INT(weft__config_schema(&schema, NULL), 0);
    CHECK_INT(weft__buf_put(&schema, NULL, "", 1), 0);
    CHECK(strstr(weft__buf_head(&schema), "\"enum\":[\"sqlite\",\"memory\",\"shelf\"]"));
    CHECK(strstr(weft__buf_head(&schema), "\"enum\":[\"acp\",\"played\",\"demo\"]"));
    weft__buf_done(&schema, NULL);
}

TEST(agent_without_a_program_is_found) {
    CHECK(weft__agent_found(&(weft_agent){.name = "a", .driver = "played"}));
    CHECK(!weft__agent_found(&(weft_agent){.name = "a", .driver = "acp"}));
}

TEST_MAIN(CASE(store_shelf) CASE(driver_played) CASE(store_is_used) CASE(configuration_knows_the_rows)
              CASE(schema_lists_the_rows) CASE(agent_without_a_program_is_found))
