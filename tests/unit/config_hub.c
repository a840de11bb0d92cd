/* What the configuration says about the hub: agents made of presets and entries, and the settings in the words of those who
 * use them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents.h"
#include "config.h"
#include "harness.h"
#include "mcp_config.h"
#include "serve.h"
#include "trust.h"

static const weft_agent *find(const weft_agents *agents, const char *name) {
    for (size_t i = 0; i < agents->count; i++)
        if (strcmp(agents->list[i].name, name) == 0)
            return &agents->list[i];
    return NULL;
}

static void ignore(void *ctx, const weft_remark *remark) {
    (void) ctx;
    (void) remark;
}

/* A configuration of one file, in what "weft serve" makes of it. */
static int fill(const char *text, weft_config *config, weft_serve_settings *ret) {
    char path[] = "/tmp/weft-hub-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
        abort();
    close(fd);
    int r = weft__config_load(config, &(weft_config_from){.project = path}, &(weft_remarks){ignore, NULL}, NULL);
    unlink(path);
    return r < 0 ? r : weft__config_fill(config, ret);
}

/* ---- agents ---- */

TEST(presets) {
    weft_arena arena = {0};
    weft_agents agents;
    CHECK_INT(weft__agents_make(&(weft_json){0}, "demo", &arena, &agents), 0);
    CHECK_STR(agents.fallback, "demo");
    CHECK_STR(agents.list[0].name, "demo");
    for (size_t i = 0; i < agents.count; i++) {
        const weft_agent *agent = &agents.list[i];
        bool demo = strcmp(agent->driver, "demo") == 0;
        test_row(agent->name);
        CHECK(agent->preset && agent->about && agent->permission == WEFT_PERMISSION_ASK);
        CHECK(demo == !agent->argv && demo == !agent->advice);
        CHECK(find(&agents, agent->name) == agent); /* no name is there twice */
        CHECK(weft__agent_preset(agent->name));
        if (demo)
            continue;
        CHECK(agent->outside && agent->login);
        CHECK(strcmp(agent->argv[0], "npx") != 0 && !strchr(agent->argv[0], '/'));
        /* Pinned, and said before it is downloaded. */
        CHECK(!agent->package || (strchr(agent->package + 1, '@') && strstr(agent->advice, agent->package)));
    }
    CHECK_STR(find(&agents, "claude")->argv[0], "claude-agent-acp");
    CHECK(!weft__agent_preset("nobody"));
    weft__arena_done(&arena);
}

TEST(entries) {
    static const char text[] =
        "{\"agents\": {\"claude\": {\"permission\": \"allow\", \"max_running\": 2},"
        "\"gemini\": {\"command\": [\"/opt/gemini\", \"\"], \"about\": \"other\"},"
        "\"mine\": {\"driver\": \"cli\", \"command\": [\"a\\u0062\", \"{prompt}\"], \"env\": {\"X\": \"1\", \"Y\": \"=\"},"
        "\"persona\": [\"--agent\", \"{agent}\"], \"prompt\": \"stdin\", \"timeout_ms\": 5},"
        "\"goose\": {\"driver\": \"demo\"}}, \"default_agent\": \"mine\"}";
    weft_arena arena = {0};
    weft_agents agents;
    weft_config config;
    weft_serve_settings s;
    REQUIRE(fill(text, &config, &s) == 0);
    CHECK_INT(weft__agents_make(&s.agent_rows, s.default_agent, &arena, &agents), 0);
    weft__config_done(&config); /* nothing is borrowed from it */
    CHECK_STR(agents.fallback, "mine");
    const weft_agent *claude = find(&agents, "claude"), *gemini = find(&agents, "gemini"), *mine = find(&agents, "mine");
    CHECK_STR(claude->driver, "acp");
    CHECK_STR(claude->argv[0], "claude-agent-acp");
    CHECK(claude->package && claude->outside && gemini->outside && !gemini->package && !gemini->login && !mine->outside);
    CHECK(claude->permission == WEFT_PERMISSION_ALLOW && claude->max_running == 2 && !claude->preset && claude->advice);
    CHECK_STR(gemini->argv[0], "/opt/gemini");
    CHECK_STR(gemini->argv[1], "");
    CHECK(!gemini->argv[2] && !gemini->advice);
    CHECK_STR(gemini->about, "other");
    CHECK_STR(mine->driver, "cli");
    CHECK_STR(mine->argv[0], "ab");
    CHECK_STR(mine->env[0], "X=1");
    CHECK_STR(mine->env[1], "Y==");
    CHECK(!mine->env[2]);
    CHECK_STR(mine->persona_argv[1], "{agent}");
    CHECK(mine->prompt_on_stdin && mine->timeout_ms == 5 && !mine->preset);
    CHECK(!find(&agents, "goose")->argv);
    weft__arena_done(&arena);
}

TEST(a_name_that_is_there_twice) {
    weft_arena arena = {0};
    weft_agents agents;
    weft_config config;
    weft_serve_settings s;
    REQUIRE(fill("{\"agents\": {\"a\": {\"driver\": \"cli\", \"command\": [\"x\"], \"prompt\": \"stdin\"},"
                 "\"a\": {\"driver\": \"cli\", \"command\": [\"y\"]}}}",
                 &config, &s) == 0);
    CHECK_INT(weft__agents_make(&s.agent_rows, "a", &arena, &agents), 0);
    CHECK_STR(find(&agents, "a")->argv[0], "y");
    CHECK(!find(&agents, "a")->prompt_on_stdin); /* of the one that counts, nothing of the other */
    weft__config_done(&config);
    weft__arena_done(&arena);
}

TEST(failing_allocations) {
    static const char text[] =
        "{\"a\": {\"driver\": \"cl\\u0069\", \"command\": [\"\\u0061\", \"b\"], \"env\": {\"A\": \"b\"}, "
        "\"persona\": [\"p\"], \"about\": \"x\"}, \"claude\": {\"timeout_ms\": 1}}";
    test_memory memory;
    int r = -ENOMEM;
    for (long fail_at = 1; r == -ENOMEM && fail_at < 1000; fail_at++) {
        weft_doc *doc = NULL;
        weft_agents agents;
        test_memory_init(&memory, fail_at);
        weft_arena arena = {.alloc = &memory.alloc};
        r = weft_doc_parse(text, strlen(text), &memory.alloc, &doc);
        if (r >= 0)
            r = weft__agents_make(weft_doc_root(doc), "a", &arena, &agents);
        weft__arena_done(&arena);
        weft_doc_free(doc);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    CHECK(memory.count > 2);
}

TEST(secrets_are_hidden) {
    static const char text[] =
        "{\"a\": {\"env\": {\"KEY\": \"secret\"}, \"about\": \"b\"}, \"b\": {\"env\": {}}, \"c\": {}}";
    weft_doc *doc = NULL, *shown = NULL;
    REQUIRE(weft_doc_parse(text, strlen(text), NULL, &doc) == 0);
    REQUIRE(weft__agents_hide(weft_doc_root(doc), NULL, &shown) == 0);
    CHECK_TEXT(weft_doc_root(shown)->text, weft_doc_root(shown)->len,
               "{\"a\":{\"env\":{\"KEY\":\"***\"},\"about\":\"b\"},\"b\":{\"env\":{}},\"c\":{}}");
    weft_doc_free(doc);
    weft_doc_free(shown);
}

TEST(is_it_there) {
    char folder[] = "/tmp/weft-path-XXXXXX", program[64], path[128];
    const char *const argv[] = {"weft-test-agent", NULL}, *const full[] = {program, NULL};
    weft_agent named = {.driver = "cli", .argv = argv}, absolute = {.driver = "cli", .argv = full};
    REQUIRE(mkdtemp(folder));
    snprintf(program, sizeof program, "%s/weft-test-agent", folder);
    snprintf(path, sizeof path, "nowhere:/nowhere:%s", folder);
    setenv("PATH", path, 1);
    CHECK(!weft__agent_found(&named) && !weft__agent_found(&absolute));
    FILE *file = fopen(program, "w");
    REQUIRE(file && fclose(file) == 0);
    CHECK(!weft__agent_found(&named)); /* nobody may run it */
    chmod(program, 0700);
    CHECK(weft__agent_found(&named) && weft__agent_found(&absolute));
    setenv("PATH", folder + 1, 1); /* relative */
    CHECK(!weft__agent_found(&named));
    CHECK(weft__agent_found(weft__agent_preset("demo")));
    unlink(program);
    rmdir(folder);
}

/* ---- settings ---- */

TEST(settings) {
    weft_config config;
    weft_serve_settings s;
    REQUIRE(fill("{\"tasks\": {\"max_running\": 7, \"max_queue\": 8, \"timeout_ms\": 0, \"grace_ms\": 9, \"on_restart\": "
                 "\"requeue\"}, \"questions\": {\"timeout_ms\": 10}, \"retention\": {\"days\": 2, \"bytes\": 2097152, "
                 "\"output_bytes\": 65536}, \"limits\": {\"grace_ms\": 11}, \"store\": {\"path\": \"a.db\", \"on_damage\": "
                 "\"quarantine\"}, \"cdev\": {\"parallel\": true}, \"automation\": {\"enabled\": false}}",
                 &config, &s) == 0);
    CHECK_INT(s.engine.max_running, 7);
    CHECK_INT(s.engine.max_queue, 8);
    CHECK_INT(s.engine.timeout_ms, -1);
    CHECK_INT(s.engine.grace_ms, 9);
    CHECK_INT(s.engine.question_ms, 10);
    CHECK_INT(s.engine.drain_ms, 11);
    CHECK_INT(s.engine.keep_ms, 2LL * 24 * 3600 * 1000);
    CHECK_INT((int64_t) s.engine.keep_bytes, 2097152);
    CHECK_INT((int64_t) s.engine.keep_output, 65536);
    CHECK(s.requeue && s.quarantine && s.cdev_parallel && !s.automation);
    CHECK_STR(s.store_path, "a.db");
    weft__config_done(&config);
}

TEST(paused) {
    weft_config config;
    weft_serve_settings s;
    REQUIRE(fill("{\"tasks\": {\"paused\": true}}", &config, &s) == 0);
    CHECK(s.engine.max_running == SIZE_MAX);
    weft__config_done(&config);
}

TEST(files_are_watched_when_a_rule_wants_them) {
#define RULE(trigger)                                                                                                       \
    "\"rules\": [{\"id\": \"r\", \"trigger\": {" trigger "}, \"action\": {\"type\": \"notify\", \"message\": \"m\"}}]"
    static const struct {
        const char *text;
        bool watch;
    } rows[] = {
        {"\"rules\": []", false},
        {RULE("\"type\": \"file.modify\""), true},
        {RULE("\"type\": \"cron.fired\""), false},
        {RULE("\"type\": \"task.*\""), false},
        {RULE("\"type\": \"file.*\""), true},
        {RULE("\"type\": \"fi*\""), true},
        {RULE("\"type\": \"*\""), true},
        {RULE("\"source\": \"watcher\""), true},
        {RULE("\"type\": \"*\", \"source\": \"queue\""), false},
        {RULE("\"pattern\": \"*.c\""), true},
        {RULE("\"schedule\": \"* * * * *\", \"type\": \"cron.fired\""), false},
        {"\"watch\": true, \"watch_paths\": [\"src\"], \"ignore\": [\"*.o\"]", true},
        {"\"watch\": false, " RULE("\"type\": \"file.modify\""), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        weft_config config;
        weft_serve_settings s;
        test_row(rows[i].text);
        snprintf(text, sizeof text, "{\"automation\": {%s}}", rows[i].text);
        REQUIRE(fill(text, &config, &s) == 0);
        weft_automation_opts opts = weft__serve_automation(&s);
        CHECK(opts.watch == rows[i].watch && opts.enabled && opts.rules);
        CHECK(!opts.watch_paths == !strstr(text, "watch_paths") && !opts.ignore == !strstr(text, "ignore"));
        weft__config_done(&config);
    }
}

/* ---- again ---- */

typedef struct heard {
    int count;
    weft_agents agents;
    size_t max_running;
    bool automation_changed;
} heard;

static void on_change(void *ctx, const weft_serve_settings *now) {
    heard *self = ctx;
    self->count++;
    self->agents = now->agents;
    self->max_running = now->engine.max_running;
    self->automation_changed = now->automation_changed;
}

/* A configuration that the user has confirmed. */
static void put_config(const char *text) {
    weft_trust_entry entry = {.confirmed = true};
    char why[WEFT_TRUST_WHY] = "";
    FILE *file = fopen(".weft/config.json", "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
    weft__trust_digest(text, strlen(text), entry.config);
    int lock = weft__trust_lock(why);
    if (lock < 0 || !getcwd(entry.path, sizeof entry.path) || weft__trust_id(".weft", entry.folder) < 0 ||
        weft__trust_put(&entry, false, why) < 0)
        abort();
    weft__trust_unlock(lock);
}

static void put_unconfirmed(const char *text) {
    FILE *file = fopen(".weft/config.json", "w");
    if (!file || fchmod(fileno(file), 0600) < 0 || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

/* A task may run on an agent of a file that is no more. */
TEST(agents_stay_when_they_are_read_again) {
    char folder[] = "/tmp/weft-again-XXXXXX";
    static const char other[] =
        "{\"agents\": {\"mine\": {\"driver\": \"cli\", \"command\": [\"two\"]}}, \"tasks\": {\"max_running\": 9}}";
    weft_serve_settings typed = {0};
    FILE *nowhere = fopen("/dev/null", "w");
    REQUIRE(nowhere && mkdtemp(folder) && chdir(folder) == 0 && mkdir(".weft", 0700) == 0);
    setenv("XDG_CONFIG_HOME", folder, 1);
    setenv("XDG_STATE_HOME", folder, 1);
    weft_app app = {
        .settings = &typed, .out = weft__screen(nowhere), .err = weft__screen(nowhere), .layout = &weft__layout_weft};
    weft_serve_config *config = NULL;
    weft_service *service = NULL;
    weft_loop *loop = NULL;
    weft_server *server = NULL;
    heard is = {0};
    put_config("{\"agents\": {\"mine\": {\"driver\": \"cli\", \"command\": [\"one\"]}}, \"default_agent\": \"mine\"}");
    REQUIRE(weft__serve_config_new(&app, &config) == WEFT_DONE);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft_service_new(NULL, &service), 0);
    CHECK_INT(weft_server_new(loop, &(weft_server_opts){.service = service}, &server), 0);
    const weft_serve_settings *first = weft__serve_config_settings(config);
    const weft_agent *mine = find(&first->agents, "mine");
    CHECK_STR(first->agents.fallback, "mine");
    weft__serve_config_hear(config, on_change, &is);
    weft__serve_config_reload(config, server, NULL);
    CHECK_INT(is.count, 1);
    CHECK(is.agents.list == first->agents.list); /* nothing has changed, and nothing is made anew */
    put_unconfirmed(other);
    weft__serve_config_reload(config, server, NULL);
    CHECK_INT(is.count, 1); /* whatever its mode, it is not the user's */
    put_config(other);
    weft__serve_config_reload(config, server, NULL);
    CHECK_INT(is.count, 2);
    CHECK_INT(is.max_running, 9);
    CHECK_STR(is.agents.fallback, "demo");
    CHECK_STR(find(&is.agents, "mine")->argv[0], "two");
    CHECK_STR(mine->argv[0], "one");
    CHECK(!is.automation_changed);
    put_config("{\"automation\": {\"ignore\": [\"*.o\"]}}");
    weft__serve_config_reload(config, server, NULL);
    CHECK(is.automation_changed);
    put_config("{\"agents\": {\"mine\": {}}}");
    weft__serve_config_reload(config, server, NULL);
    CHECK_INT(is.count, 3); /* a mistake changes nothing */
    weft_server_free(server);
    weft_loop_free(loop);
    weft_service_unref(service);
    weft__serve_config_free(config);
    fclose(nowhere);
    unlink(".weft/config.json");
    unlink("weft/trust.json");
    unlink("weft/trust.json.lock");
    rmdir("weft");
    rmdir(".weft");
    rmdir(folder);
}

/* ---- MCP servers ---- */

TEST(mcp_servers) {
    static const char text[] =
        "{\"mcp\":{\"servers\":{"
        "\"a\":{\"command\":\"prog\",\"args\":[\"x y\"],\"env\":{\"K\":\"v=w\"},\"idle_ms\":0,\"agents\":[]},"
        "\"b\":{\"url\":\"https://h.example/mcp\",\"headers\":{\"X-Key\":\"s\"},\"transport\":\"http\",\"timeout_ms\":5},"
        "\"a\":{\"command\":\"last\"}},\"sampling\":\"refuse\"}}";
    weft_config config = {0};
    weft_serve_settings settings = {0};
    weft_arena arena = {0};
    weft_mcp_specs specs;
    REQUIRE(CHECK_INT(fill(text, &config, &settings), 0));
    CHECK_STR(settings.mcp_sampling, "refuse");
    CHECK_INT(weft__mcp_config_make(&settings.mcp_rows, &arena, &specs), 0);
    CHECK_INT(specs.count, 2);
    CHECK_STR(specs.list[0].argv[0], "last");
    CHECK(!specs.list[0].argv[1] && !specs.list[0].env && !specs.list[0].agents && specs.list[0].idle_ms == 0);
    CHECK_INT(specs.list[1].transport, WEFT_MCP_HTTP);
    CHECK_STR(specs.list[1].headers[0].value, "s");
    CHECK_INT(specs.list[1].timeout_ms, 5);
    weft__arena_done(&arena);
    weft__config_done(&config);
}

TEST(mcp_servers_that_are_none) {
    static const char *const rows[] = {
        "\"a\":{}",
        "\"a\":{\"command\":\"x\",\"url\":\"http://h/\"}",
        "\"a\":{\"command\":\"\"}",
        "\"a\":{\"command\":\"x\",\"transport\":\"http\"}",
        "\"a\":{\"command\":\"x\",\"headers\":{}}",
        "\"a\":{\"url\":\"http://h/\",\"args\":[]}",
        "\"a\":{\"url\":\"http://h/\",\"transport\":\"stdio\"}",
        "\"a\":{\"url\":\"unix:/run/x\"}",
        "\"a\":{\"url\":\"http://h/\",\"headers\":{\"X\":\"a\\r\\nHost: b\"}}",
        "\"a\":{\"url\":\"http://h/\",\"headers\":{\"X Y\":\"a\"}}",
        "\"a b\":{\"command\":\"x\"}",
        "\"a\":{\"command\":\"x\",\"timeout_ms\":0}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[500];
        weft_config config = {0};
        weft_serve_settings settings = {0};
        snprintf(text, sizeof text, "{\"mcp\":{\"servers\":{%s}}}", rows[i]);
        test_row(rows[i]);
        CHECK_INT(fill(text, &config, &settings), -EBADMSG);
        weft__config_done(&config);
    }
}

TEST_MAIN(CASE(mcp_servers) CASE(mcp_servers_that_are_none) CASE(presets) CASE(entries) CASE(a_name_that_is_there_twice)
              CASE(failing_allocations) CASE(secrets_are_hidden) CASE(is_it_there) CASE(settings) CASE(paused)
                  CASE(files_are_watched_when_a_rule_wants_them) CASE(agents_stay_when_they_are_read_again))
