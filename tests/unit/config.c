/* The configuration: where values come from and which one wins, what is said about mistakes and where, and that its rows,
 * the library's defaults and the shipped schema agree. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "link.h"
#include "server.h"

/* ---- a world of files and variables ---- */

static struct {
    char folder[64], user[96], project[96];
    char said[4096]; /* "error|warning LINE:COLUMN TEXT" or "error WHERE TEXT", a line each */
    const char *variable, *variable_value;
} world;

static void make_world(void) {
    snprintf(world.folder, sizeof world.folder, "/tmp/weft-config-XXXXXX");
    if (!mkdtemp(world.folder))
        abort();
    snprintf(world.user, sizeof world.user, "%s/user.json", world.folder);
    snprintf(world.project, sizeof world.project, "%s/project.json", world.folder);
    world.variable = world.variable_value = NULL;
}

static void leave_world(void) {
    unlink(world.user);
    unlink(world.project);
    rmdir(world.folder);
}

static void write_file(const char *path, const char *text, size_t len) {
    umask(077); /* what decides who has access must be for our eyes only */
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text, 1, len, file) != len || fclose(file) != 0)
        abort();
}

static char *variable(const char *name) {
    return world.variable && strcmp(name, world.variable) == 0 ? (char *) (uintptr_t) world.variable_value : NULL;
}

static void say(void *ctx, const weft_remark *remark) {
    size_t used = strlen(world.said);
    char *to = world.said + used;
    size_t room = sizeof world.said - used;
    const char *kind = remark->error ? "error" : "warning";
    (void) ctx;
    if (remark->place.line)
        snprintf(to, room, "%s %zu:%zu %s\n", kind, remark->place.line, remark->place.column, remark->text);
    else
        snprintf(to, room, "%s %s %s\n", kind, remark->where, remark->text);
}

static const weft_remarks remarks = {say, NULL};

static int load(weft_config *config, const weft_serve_settings *flags, const weft_alloc *alloc) {
    world.said[0] = '\0';
    weft_config_from from = {world.user, world.project, variable, false, flags};
    return weft__config_load(config, &from, &remarks, alloc);
}

static const weft_setting *setting(const weft_config *config, const char *path) {
    for (size_t i = 0; weft__keys[i].path; i++)
        if (strcmp(weft__keys[i].path, path) == 0)
            return &config->settings[i];
    abort();
}

/* ---- the rows ---- */

TEST(defaults_are_the_librarys) {
    weft_service *service = NULL;
    weft_loop *loop = NULL;
    weft_server *server = NULL;
    weft_config config;
    weft_serve_settings s;
    make_world();
    CHECK_INT(load(&config, NULL, NULL), 0);
    CHECK_INT(weft__config_fill(&config, &s), 0);
    CHECK_STR(world.said, "");
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft_service_new(NULL, &service), 0);
    CHECK_INT(weft_server_new(loop, &(weft_server_opts){.service = service}, &server), 0);
    const weft_limits *limits = weft__service_limits(service);
#define SAME(field) CHECK_INT(s.limits.field, limits->field)
    SAME(max_body), SAME(max_body_stranger), SAME(max_batch), SAME(max_answer), SAME(out_soft), SAME(out_hard);
    SAME(max_requests), SAME(max_idempotent), SAME(idempotent_ms), SAME(ping_ms), SAME(pong_ms);
#undef SAME
#define SAME(field) CHECK_INT(s.server.field, server->opts.field)
    SAME(max_connections), SAME(max_connections_per_uid), SAME(max_strangers_per_address), SAME(max_strangers),
        SAME(max_memory), SAME(body_ms);
    SAME(auth_ms), SAME(head_ms), SAME(grace_ms);
#undef SAME
    CHECK_INT(s.limits.rate_per_minute, 6000);
    CHECK_STR(s.default_agent, "demo");
    CHECK(!s.store_path && !s.requeue && !s.quarantine && !s.paused && !s.watch && s.automation);
    CHECK_STR(s.auth, "token");
    CHECK(!s.token_file && !s.tls_cert && !s.insecure_listen);
    CHECK_INT(s.listen.count + s.hosts.count + s.origins.count, 0);
    weft_server_free(server);
    weft_loop_free(loop);
    weft_service_unref(service);
    weft__config_done(&config);
    leave_world();
}

TEST(rows_keep_their_own_rules) {
    for (const weft_key *key = weft__keys; key->path; key++) {
        weft_doc *doc = NULL;
        weft_checking checking = {.to = &remarks, .where = key->path};
        test_row(key->path);
        CHECK(key->help && *key->help);
        CHECK(key->offset < sizeof(weft_serve_settings));
        if (!key->fallback)
            continue;
        CHECK_INT(weft_doc_parse(key->fallback, strlen(key->fallback), NULL, &doc), 0);
        CHECK_INT(weft__config_check(&checking, key, weft_doc_root(doc)), 0);
        weft_doc_free(doc);
    }
}

TEST(schema) {
    weft_buf text = {0};
    weft_doc *ours = NULL, *shipped = NULL;
    size_t len = 0;
    char *file = test_file("packaging/config.schema.json", &len);
    REQUIRE(file);
    CHECK_INT(weft__config_schema(&text, NULL), 0);
    CHECK_INT(weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), NULL, &ours), 0);
    CHECK_INT(weft_doc_parse(file, len, NULL, &shipped), 0);
    weft_setting a = {.value = *weft_doc_root(ours)}, b = {.value = *weft_doc_root(shipped)};
    CHECK(weft__config_same(&a, &b));
    for (const weft_key *key = weft__keys; key->path; key++) {
        char pointer[128];
        const char *dot = strchr(key->path, '.');
        int group = dot ? (int) (dot - key->path) : 0;
        test_row(key->path);
        snprintf(pointer, sizeof pointer, "/properties/%.*s%s%s/description", group, key->path, dot ? "/properties/" : "",
                 dot ? dot + 1 : key->path);
        weft_json help = weft_pointer(weft_doc_root(shipped), pointer);
        CHECK_STR(weft_str_of(&help, ""), key->help);
    }
    weft_doc_free(ours);
    weft_doc_free(shipped);
    weft__buf_done(&text, NULL);
    free(file);
}

/* ---- who wins ---- */

TEST(the_strongest_wins) {
    static const struct {
        const char *name, *user, *project, *variable;
        int64_t flag, value;
        weft_source source;
        size_t column;
    } rows[] = {
        {"nobody", NULL, NULL, NULL, 0, 6000, WEFT_FROM_default, 0},
        {"the user", "{\"rate_per_minute\": 1}", NULL, NULL, 0, 1, WEFT_FROM_user, 21},
        {"the project", NULL, "/**/{\"rate_per_minute\":2}", NULL, 0, 2, WEFT_FROM_project, 24},
        {"project before user", "{\"rate_per_minute\":1}", "{\"rate_per_minute\":2}", NULL, 0, 2, WEFT_FROM_project, 20},
        {"environment before user", "{\"rate_per_minute\":1}", NULL, "3", 0, 3, WEFT_FROM_environment, 0},
        {"environment before project", NULL, "{\"rate_per_minute\":2}", "3", 0, 3, WEFT_FROM_environment, 0},
        {"an empty variable is none", NULL, "{\"rate_per_minute\":2}", "", 0, 2, WEFT_FROM_project, 20},
        {"an option before all", "{\"rate_per_minute\":1}", "{\"rate_per_minute\":2}", "3", 4, 4, WEFT_FROM_flag, 0},
        {"an option that says 0", NULL, "{\"rate_per_minute\":2}", "3", -1, 0, WEFT_FROM_flag, 0},
        {"a 0 in a file", "{\"rate_per_minute\":1}", "{\"rate_per_minute\":0}", NULL, 0, 0, WEFT_FROM_project, 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_config config;
        weft_serve_settings s, flags = {.rate = rows[i].flag};
        make_world();
        test_row(rows[i].name);
        if (rows[i].user)
            write_file(world.user, rows[i].user, strlen(rows[i].user));
        if (rows[i].project)
            write_file(world.project, rows[i].project, strlen(rows[i].project));
        world.variable = "WEFT_RATE_PER_MINUTE";
        world.variable_value = rows[i].variable;
        CHECK_INT(load(&config, &flags, NULL), 0);
        CHECK_INT(weft__config_fill(&config, &s), 0);
        const weft_setting *rate = setting(&config, "rate_per_minute");
        CHECK_INT(s.limits.rate_per_minute, rows[i].value);
        CHECK_INT(rate->source, rows[i].source);
        CHECK_INT(weft__config_place(&config, rate).column, rows[i].column);
        weft__config_done(&config);
        leave_world();
    }
}

TEST(all_kinds_from_all_sources) {
    static const char text[] = "{\"listen\": [\"unix:/a\", \"tcp://127.0.0.1:1\"], \"auth\": \"no\\u006ee\",\n"
                               "\"tls\": {\"cert\": \"c\", \"key\": \"k\"}, \"insecure_listen\": true,\n"
                               "\"limits\": {\"max_body\": 1e3, \"auth_ms\": 7}, \"allowed_hosts\": [\"h\"]}";
    weft_config config;
    weft_serve_settings s, flags = {.origins = {{"https://o"}, 1}, .tls_ca = "ca", .tls_key = "other"};
    make_world();
    write_file(world.project, text, strlen(text));
    CHECK_INT(load(&config, &flags, NULL), 0);
    CHECK_INT(weft__config_fill(&config, &s), 0);
    CHECK_STR(world.said, "");
    REQUIRE(s.listen.count == 2);
    CHECK_STR(s.listen.items[1], "tcp://127.0.0.1:1");
    CHECK(!s.listen.items[2]);
    CHECK_STR(s.auth, "none");
    CHECK_STR(s.tls_cert, "c");
    CHECK_STR(s.tls_key, "other");
    CHECK_STR(s.tls_ca, "ca");
    CHECK(s.insecure_listen);
    CHECK_INT(s.limits.max_body, 1000);
    CHECK_INT(s.server.auth_ms, 7);
    CHECK_STR(s.hosts.items[0], "h");
    CHECK_STR(s.origins.items[0], "https://o");
    weft__config_done(&config);
    leave_world();
}

TEST(variables) {
    static const struct {
        const char *name, *value, *path, *json, *said;
    } rows[] = {
        {"WEFT_LISTEN", " unix:/a  unix:/b ", "listen", "[\"unix:/a\",\"unix:/b\"]", ""},
        {"WEFT_LISTEN", "[\"unix:/a b\"]", "listen", "[\"unix:/a b\"]", ""},
        {"WEFT_LISTEN", "[\"unix:/a", "listen", NULL, "error WEFT_LISTEN listen must be an array of URLs\n"},
        {"WEFT_AUTH", "none", "auth", "\"none\"", ""},
        {"WEFT_AUTH", "perhaps", "auth", NULL, "error WEFT_AUTH auth must be \"token\" or \"none\"\n"},
        {"WEFT_TLS_CERT", "true", "tls.cert", "\"true\"", ""},
        {"WEFT_INSECURE_LISTEN", "1", "insecure_listen", "true", ""},
        {"WEFT_INSECURE_LISTEN", "false", "insecure_listen", "false", ""},
        {"WEFT_INSECURE_LISTEN", "2", "insecure_listen", NULL,
         "error WEFT_INSECURE_LISTEN insecure_listen must be true or false\n"},
        {"WEFT_LIMITS_MAX_BATCH", "5", "limits.max_batch", "5", ""},
        {"WEFT_AGENTS", "{\"demo\":{\"about\":\"a\"}}", "agents", "{\"demo\":{\"about\":\"a\"}}", ""},
        {"WEFT_AGENTS", "claude", "agents", NULL, "error WEFT_AGENTS agents must be an object of objects\n"},
        {"WEFT_DEFAULT_AGENT", "claude", "default_agent", "\"claude\"", ""},
        {"WEFT_DEFAULT_AGENT", "clod", "default_agent", NULL,
         "error environment there is no agent \"clod\" for default_agent\n"},
        {"WEFT_LIMITS_MAX_BATCH", "five", "limits.max_batch", NULL,
         "error WEFT_LIMITS_MAX_BATCH limits.max_batch must be a whole number from 1 to 1000000000\n"},
    };
    make_world();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_config config;
        test_row(rows[i].value);
        world.variable = rows[i].name;
        world.variable_value = rows[i].value;
        CHECK_INT(load(&config, NULL, NULL), rows[i].json ? 0 : -EBADMSG);
        CHECK_STR(world.said, rows[i].said);
        const weft_json *value = &setting(&config, rows[i].path)->value;
        if (rows[i].json)
            CHECK_TEXT(value->text, value->len, rows[i].json);
        weft__config_done(&config);
    }
    leave_world();
}

/* ---- what is said ---- */

TEST(what_is_said) {
    static const struct {
        const char *text;
        int r;
        const char *said;
    } rows[] = {
        {"{}", 0, ""},
        {"{\"$schema\": 5}", 0, ""},
        {"[]", -EBADMSG, "error 1:1 the file must be one JSON object\n"},
        {"// nothing", -EBADMSG, "error 1:11 expected a value\n"},
        {"{\n\n      \"auth\": }", -EBADMSG, "error 3:15 expected a value\n"},
        {"{\"lsten\": 1}", 0, "warning 1:2 unknown key \"lsten\"; did you mean \"listen\"?\n"},
        {"{\n  \"xyzzy\": 1,\n}", 0, "warning 2:3 unknown key \"xyzzy\"\n"},
        {"{\"token\": \"secret\"}", 0, "warning 1:2 unknown key \"token\"; did you mean \"token_file\"?\n"},
        {"{\"tls\": {\n\"crt\": 1}}", 0, "warning 2:1 unknown key \"tls.crt\"; did you mean \"tls.cert\"?\n"},
        {"{\"cert\": 1}", 0, "warning 1:2 unknown key \"cert\"; did you mean \"tls.cert\"?\n"},
        {"{\"tls.cert\": \"a\"}", 0, "warning 1:2 unknown key \"tls.cert\"; did you mean \"tls\": {\"cert\": ...}?\n"},
        {"{\"limits\": {\"limits\": {}}}", 0, "warning 1:13 unknown key \"limits.limits\"\n"},
        {"{\"auth\": \"none\", \"auth\": \"token\"}", 0, "warning 1:18 auth is there twice; this one counts\n"},
        {"{\"auth\": 5}", -EBADMSG, "error 1:10 auth must be \"token\" or \"none\"\n"},
        {"{\"auth\": \"x\"}", -EBADMSG, "error 1:10 auth must be \"token\" or \"none\"\n"},
        {"{\"token_file\":\n true}", -EBADMSG, "error 2:2 token_file must be a string\n"},
        {"{\"store\": {\"url\": \"postgres://me:word@db/weft\"}}", -EBADMSG,
         "error 1:19 store.url: a password does not belong here: put it into ~/.pgpass, or into a file that ?passfile=FILE "
         "names\n"},
        {"{\"store\": {\"url\": \"postgresql://db/weft?a=b&PassWord=word\"}}", -EBADMSG,
         "error 1:19 store.url: a password does not belong here: put it into ~/.pgpass, or into a file that ?passfile=FILE "
         "names\n"},
        {"{\"store\": {\"url\": \"host=db password=word\"}}", -EBADMSG,
         "error 1:19 store.url: it must begin with postgresql://\n"},
        {"{\"store\": {\"url\": \"postgresql://me@db:5433,other:5432/weft?sslmode=verify-full\"}}", 0, ""},
        {"{\"token_file\": null}", -EBADMSG, "error 1:16 token_file must be a string\n"},
        {"{\"token_file\": \"\"}", -EBADMSG, "error 1:16 an empty string in token_file\n"},
        {"{\"token_file\": \"a\\u0000b\"}", -EBADMSG, "error 1:16 a NUL in token_file\n"},
        {"{\"tls\": []}", -EBADMSG, "error 1:9 tls must be an object\n"},
        {"{\"insecure_listen\": 1}", -EBADMSG, "error 1:21 insecure_listen must be true or false\n"},
        {"{\"listen\": \"unix:/a\"}", -EBADMSG, "error 1:12 listen must be an array of URLs\n"},
        {"{\"listen\": [\"unix:/a\",\n 5]}", -EBADMSG, "error 2:2 listen must have only strings\n"},
        {"{\"listen\": [\"tcp://a\"]}", -EBADMSG,
         "error 1:13 tcp://a: the URL needs a port, for example tcp://127.0.0.1:4000\n"},
        {"{\"rate_per_minute\": -1}", -EBADMSG, "error 1:21 rate_per_minute must be a whole number from 0 to 1000000000\n"},
        {"{\"rate_per_minute\": 1.5}", -EBADMSG, "error 1:21 rate_per_minute must be a whole number from 0 to 1000000000\n"},
        {"{\"rate_per_minute\": \"1\"}", -EBADMSG,
         "error 1:21 rate_per_minute must be a whole number from 0 to 1000000000\n"},
        {"{\"limits\": {\"max_body\": 67108865}}", -EBADMSG,
         "error 1:25 limits.max_body must be a whole number from 1 to 67108864\n"},
        {"{\"limits\": {\"max_body\": 0}}", -EBADMSG,
         "error 1:25 limits.max_body must be a whole number from 1 to 67108864\n"},
        {"{\"limits\": {\"out_soft\": 9000000}}", -EBADMSG, "error 1:25 limits.out_soft is more than limits.out_hard\n"},
        {"{\"default_agent\":\n\"claud\"}", -EBADMSG,
         "error 2:1 there is no agent \"claud\" for default_agent; did you mean \"claude\"?\n"},
        {"{\"agents\": {\"mine\": {\"driver\": \"demo\"}}, \"default_agent\": \"mine\"}", 0, ""},
        {"{\"checkers\": {\"c\": [\"cc\", \"{file}\"], \"go\": [\"vet\"]}}", 0, ""},
        {"{\"checkers\": []}", -EBADMSG, "error 1:14 checkers must be an object of arrays of strings\n"},
        {"{\"checkers\": {\"c\": \"cc\"}}", -EBADMSG, "error 1:20 checkers.c must be an array of strings\n"},
        {"{\"checkers\": {\"c\": []}}", -EBADMSG, "error 1:20 checkers.c must be an array with at least one string\n"},
        {"{\"checkers\": {\"c\": [\"\"]}}", -EBADMSG,
         "error 1:21 checkers.c must be an array that begins with the name of a program\n"},
        {"{\"agents\": {\"mine\": {\"driver\": \"planner\", \"command\": [\"x\"]}}, \"roles\": {\"executor\": [\"mine\", "
         "\"demo\"]}}",
         0, ""},
        {"{\"roles\": {\"planner\":\n[\"claud\"]}}", -EBADMSG,
         "error 2:1 there is no agent \"claud\" for roles.planner; did you mean \"claude\"?\n"},
        {"{\"roles\": {\"executor\": [\"exec:python3 'my server.py'\", \"demo\"]}}", 0, ""},
        {"{\"roles\": {\"executor\": [\"exec:\"]}}", -EBADMSG,
         "error 1:24 roles.executor: exec: needs a program, for example exec:cat\n"},
        {"{\"roles\": {\"executor\": [\"exec:a 'b\"]}}", -EBADMSG, "error 1:24 roles.executor: a quote is not closed\n"},
        {"{\"roles\": {\"executor\": [\"unix:/x\"]}}", -EBADMSG,
         "error 1:24 there is no agent \"unix:/x\" for roles.executor\n"},
        {"{\"agents\": {\"mine\": {\"driver\": \"planner\"}}}", -EBADMSG, "error 1:21 agents.mine has no \"command\"\n"},
        {"{\"agents\": []}", -EBADMSG, "error 1:12 agents must be an object of objects\n"},
        {"{\"agents\": {\"a\": 5}}", -EBADMSG, "error 1:18 agents.a must be an object\n"},
        {"{\"agents\": {\"a\": {\"about\": \"b\"}}}", -EBADMSG,
         "error 1:18 agents.a has no \"driver\", and no agent of this name comes with Weft\n"},
        {"{\"agents\": {\"a\": {\"driver\": \"acp\"}}}", -EBADMSG, "error 1:18 agents.a has no \"command\"\n"},
        {"{\"agents\": {\"claude\": {\"driver\": \"cli\"}}}", -EBADMSG, "error 1:23 agents.claude has no \"command\"\n"},
        {"{\"agents\": {\"claude\": {\"drver\": 1}}}", 0,
         "warning 1:24 unknown member \"drver\" in agents.claude; did you mean \"driver\"?\n"},
        {"{\"agents\": {\"a b\": {\"driver\": \"demo\"}}}", -EBADMSG,
         "error 1:13 agents.a b is not a valid name for an agent: at most 64 characters, and no blanks\n"},
        {"{\"agents\": {\"demo\": {\"command\": [\"x\"]}}}", -EBADMSG,
         "error 1:33 agents.demo has a driver that brings its agent: there is no \"command\"\n"},
        {"{\"agents\": {\"claude\": {\"command\": [\"\"]}}}", -EBADMSG,
         "error 1:36 agents.claude has no program in \"command\"\n"},
        {"{\"agents\": {\"claude\": {\"command\": [\"a\",\n 7], \"env\": {\"A=\": \"b\"}, \"persona\": []}}}", -EBADMSG,
         "error 2:2 agents.claude.command must be a string\n"
         "error 2:14 \"A=\" is not a valid name for a variable in agents.claude.env\n"
         "error 2:37 agents.claude.persona must be an array with at least one string\n"},
        {"{\"agents\": {\"claude\": {\"about\": \"\", \"permission\": \"yes\", \"timeout_ms\": 1.5}}}", -EBADMSG,
         "error 1:33 an empty string in agents.claude.about\n"
         "error 1:51 agents.claude.permission must be \"ask\" or \"allow\" or \"deny\"\n"
         "error 1:72 agents.claude.timeout_ms must be a whole number from 0 to 2678400000\n"},
        {"{\"automation\": {\"rules\": [{\"id\": \"r\", \"trigger\": {}}]}}", -EBADMSG,
         "error 1:27 automation.rules[0] has no \"action\"\n"},
        {"{\"automation\": {\"rules\": [{\"id\": \"r\", \"trigger\": {},\n \"action\": {\"type\": \"agent\"}}]}}", -EBADMSG,
         "error 2:12 automation.rules[0].action has no \"prompt\"\n"},
        {"{\"automation\": {\"jobs\": [{\"id\": \"j\", \"schedule\": \"* * * * *\"}, null]}}", -EBADMSG,
         "error 1:64 automation.jobs[1] must be an object\n"},
        {"{\"auth\": 1,\n\"tls\": 2,\n\"lsten\": 3}", -EBADMSG,
         "error 1:10 auth must be \"token\" or \"none\"\nerror 2:8 tls must be an object\n"
         "warning 3:1 unknown key \"lsten\"; did you mean \"listen\"?\n"},
    };
    make_world();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_config config;
        test_row(rows[i].text);
        write_file(world.project, rows[i].text, strlen(rows[i].text));
        CHECK_INT(load(&config, NULL, NULL), rows[i].r);
        CHECK_STR(world.said, rows[i].said);
        weft__config_done(&config);
    }
    leave_world();
}

TEST(too_many_items) {
    char text[1024] = "{\"allowed_hosts\": [";
    weft_config config;
    make_world();
    size_t len = strlen(text);
    for (int i = 0; i < WEFT_MAX_TEXTS; i++, len += 4)
        memcpy(text + len, "\"h\",", 4);
    memcpy(text + len, "]}", 3);
    write_file(world.project, text, strlen(text));
    CHECK_INT(load(&config, NULL, NULL), 0);
    weft__config_done(&config);
    memcpy(text + len, "\"h\"]}", 6);
    write_file(world.project, text, strlen(text));
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    CHECK_STR(world.said, "error 1:19 allowed_hosts has more than 32 items\n");
    weft__config_done(&config);
    leave_world();
}

/* ---- files ---- */

TEST(sizes) {
    size_t limit = 1024 * 1024;
    char *text = malloc(limit + 1), want[256];
    weft_config config;
    make_world();
    REQUIRE(text);
    memset(text, '\n', limit + 1);
    memcpy(text, "{}", 2);
    write_file(world.project, text, limit);
    CHECK_INT(load(&config, NULL, NULL), 0);
    weft__config_done(&config);
    write_file(world.project, text, limit + 1);
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    snprintf(want, sizeof want, "error %s this is longer than 1 MiB\n", world.project);
    CHECK_STR(world.said, want);
    weft__config_done(&config);
    free(text);
    leave_world();
}

/* Opening one of these must not wait for somebody to write. */
TEST(not_regular_files) {
    weft_config config;
    char want[256];
    make_world();
    snprintf(want, sizeof want, "error %s this is not a regular file\n", world.project);
    CHECK_INT(mkfifo(world.project, 0600), 0);
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    CHECK_STR(world.said, want);
    weft__config_done(&config);
    unlink(world.project);
    CHECK_INT(mkdir(world.project, 0700), 0);
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    CHECK_STR(world.said, want);
    weft__config_done(&config);
    rmdir(world.project);
    leave_world();
}

TEST(somebody_elses_file) {
    weft_config config;
    char want[256];
    if (geteuid() != 0) {
        test_skip("only root can give a file away");
        return;
    }
    make_world();
    write_file(world.project, "{}", 2);
    CHECK_INT(chown(world.project, 12345, (gid_t) -1), 0);
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    snprintf(want, sizeof want, "error %s this file belongs to somebody else\n", world.project);
    CHECK_STR(world.said, want);
    weft__config_done(&config);
    leave_world();
}

TEST(everybodys_file) {
    weft_config config;
    char want[256];
    make_world();
    write_file(world.project, "{}", 2);
    CHECK_INT(chmod(world.project, 0664), 0);
    CHECK_INT(load(&config, NULL, NULL), 0);
    weft__config_done(&config);
    CHECK_INT(chmod(world.project, 0666), 0);
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    snprintf(want, sizeof want, "error %s everybody may write to this file; chmod o-w makes it yours\n", world.project);
    CHECK_STR(world.said, want);
    weft__config_done(&config);
    leave_world();
}

/* A group of one's own may write to a file, as is usual with umask 002; another may not. */
TEST(a_groups_file) {
    weft_config config;
    char want[256];
    if (geteuid() != 0) {
        test_skip("only root can give a file to any group");
        return;
    }
    make_world();
    write_file(world.user, "{}", 2);
    CHECK_INT(chown(world.user, (uid_t) -1, 12345), 0);
    CHECK_INT(chmod(world.user, 0664), 0);
    CHECK_INT(load(&config, NULL, NULL), -EBADMSG);
    snprintf(want, sizeof want, "error %s a group of others may write to this file; chmod g-w makes it yours\n", world.user);
    CHECK_STR(world.said, want);
    weft__config_done(&config);
    CHECK_INT(chmod(world.user, 0644), 0);
    CHECK_INT(load(&config, NULL, NULL), 0);
    weft__config_done(&config);
    leave_world();
}

TEST(same) {
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"1000", "1e3", true}, {"[ \"a\" ]", "[\"\\u0061\"]", true}, {"[]", "[\"a\"]", false}, {"true", "false", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_doc *a = NULL, *b = NULL;
        test_row(rows[i].a);
        CHECK_INT(weft_doc_parse(rows[i].a, strlen(rows[i].a), NULL, &a), 0);
        CHECK_INT(weft_doc_parse(rows[i].b, strlen(rows[i].b), NULL, &b), 0);
        weft_setting left = {.value = *weft_doc_root(a)}, right = {.value = *weft_doc_root(b)}, none = {0};
        CHECK_INT(weft__config_same(&left, &right), rows[i].same);
        CHECK(!weft__config_same(&left, &none) && weft__config_same(&none, &none));
        weft_doc_free(a);
        weft_doc_free(b);
    }
}

TEST(failing_allocations) {
    static const char text[] =
        "{\"listen\": [\"unix:/\\u0061\", \"tcp://127.0.0.1:1\"], \"lsten\": 1, \"tls\": {\"c\\u0065rt\": "
        "\"\\u0061\"}, \"agents\": {\"\\u0061\": {\"driver\": \"cl\\u0069\", \"command\": [\"\\u0061\"], \"env\": "
        "{\"\\u0061\": "
        "\"\\u0062\"}, \"x\": 1}}, /* a */ }";
    weft_serve_settings s, flags = {.hosts = {{"h"}, 1}};
    test_memory memory;
    int r = -ENOMEM;
    make_world();
    write_file(world.project, text, strlen(text));
    write_file(world.user, "{\"auth\":\"none\"}", 15);
    world.variable = "WEFT_ALLOWED_ORIGINS";
    world.variable_value = "a b";
    for (long fail_at = 1; r == -ENOMEM && fail_at < 1000; fail_at++) {
        weft_config config;
        test_memory_init(&memory, fail_at);
        r = load(&config, &flags, &memory.alloc);
        if (r >= 0)
            r = weft__config_fill(&config, &s);
        weft__config_done(&config);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    CHECK(memory.count > 20);
    r = -ENOMEM;
    for (long fail_at = 1; r == -ENOMEM && fail_at < 1000; fail_at++) {
        weft_buf schema = {0};
        test_memory_init(&memory, fail_at);
        r = weft__config_schema(&schema, &memory.alloc);
        weft__buf_done(&schema, &memory.alloc);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    leave_world();
}

TEST_MAIN(CASE(defaults_are_the_librarys) CASE(rows_keep_their_own_rules) CASE(schema) CASE(the_strongest_wins)
              CASE(all_kinds_from_all_sources) CASE(variables) CASE(what_is_said) CASE(too_many_items) CASE(sizes)
                  CASE(not_regular_files) CASE(somebody_elses_file) CASE(everybodys_file) CASE(a_groups_file) CASE(same)
                      CASE(failing_allocations))
