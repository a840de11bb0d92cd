/* Rows that bring a schema for their params, results that are checked, and calls that say what their result must be. */
#include "peer_kit.h"

struct order {
    const char *what;
    weft_json more;
};
static const weft_param order_params[] = {
    WEFT_MUST(struct order, what, str, "what to send"),
    WEFT_ALSO(struct order, what, str, "thing"),
    WEFT_MAY(struct order, more, obj, "anything"),
    WEFT_END(struct order),
};

#define ORDER                                                                                                               \
    "{\"type\":\"object\",\"properties\":{\"what\":{\"maxLength\":3},\"more\":{\"properties\":{\"n\":{\"type\":"            \
    "\"integer\",\"minimum\":1}},\"required\":[\"n\"]}},\"additionalProperties\":false}"

static int ran;

static int answer_what(weft_req *req, const weft_json *params, void *ctx) {
    const struct order *in = weft_req_params(req);
    (void) params, (void) ctx;
    ran++;
    return weft_reply(req, weft_str(in->what));
}

static int answer_params(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    ran++;
    return weft_reply(req, weft_copy(params));
}

static const weft_method inner = {"inner", answer_params, .params_schema = "{\"required\":[\"in\"]}",
                                  .result = "{\"minProperties\":2}"};
static const weft_method stranger = {"stranger", answer_params, .params_schema = "{\"required\":[\"strange\"]}"};
static const weft_form forms[] = {{"only", &inner}, {0}};

static int answer_routed(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_req_pass_on(req, weft_get_bool(params, "stranger", false) ? &stranger : &inner, params, NULL);
}

static const weft_method methods[] = {
    {"order", answer_what, order_params, .params_schema = ORDER, .result = "{\"enum\":[\"a\",\"abc\"]}"},
    {"bare", answer_params,
     .params_schema = "{\"type\":\"object\",\"maxProperties\":1,\"properties\":{\"a\":{\"type\":\"null\"}}}"},
    {"list", answer_params, .params_schema = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
     .result = "{\"maxItems\":2}"},
    {"routed", answer_routed, .forms = forms},
    {"slow", answer_params, .params_schema = "{\"items\":{\"pattern\":\"^(a|a)*$\"}}"},
    {0},
};

static const struct {
    const char *name, *method, *params, *says;
    bool runs;
} rows[] = {
    {"fits", "order", "{\"what\":\"abc\",\"more\":{\"n\":1}}", "\"result\":\"abc\"", true},
    {"the table comes first", "order", "{\"what\":5,\"more\":{}}", "what must be a string", false},
    {"does not fit", "order", "{\"what\":\"abcd\"}",
     "{\"code\":-32602,\"message\":\"Invalid params: /what must have at most 3 "
     "characters\",\"data\":{\"reason\":\"invalidParams\","
     "\"path\":\"/what\",\"keywordLocation\":\"/properties/what/maxLength\"}}",
     false},
    {"within", "order", "{\"what\":\"a\",\"more\":{\"n\":0}}", "\"path\":\"/more/n\"", false},
    {"several", "order", "{\"what\":\"abcd\",\"more\":{}}",
     "\"errors\":[{\"path\":\"/what\",\"keywordLocation\":\"/properties/what/maxLength\",\"message\":\"must have at most 3 "
     "characters\"},{\"path\":\"/more\",\"keywordLocation\":\"/properties/more/required\",\"message\":\"has no "
     "\\\"n\\\"\"}]",
     false},
    {"positional", "order", "[\"abc\",{\"n\":2}]", "\"result\":\"abc\"", true},
    {"positional, does not fit", "order", "[\"abcd\"]", "\"path\":\"/0\"", false},
    {"positional, within", "order", "[\"a\",{\"n\":1.5}]", "\"path\":\"/1/n\"", false},
    {"another member", "order", "{\"what\":\"a\",\"x\":1}", "\"path\":\"/x\"", false},
    {"the library's own", "order", "{\"what\":\"a\",\"_meta\":{},\"workDoneToken\":1}", "\"result\":\"a\"", true},
    {"and another", "order", "{\"what\":\"a\",\"_meta\":{},\"x\":1}", "\"reason\":\"invalidParams\"", false},
    {"without a table", "bare", "{\"a\":null}", "\"result\":{\"a\":null}", true},
    {"without a table, does not fit", "bare", "{\"a\":1}", "\"path\":\"/a\"", false},
    {"absent", "bare", NULL, "\"result\":null", true},
    {"an array where an object must be", "bare", "[null]", "Invalid params: params must be an object", false},
    {"an array", "list", "[1,2]", "\"result\":[1,2]", true},
    {"an array, does not fit", "list", "[1,\"2\"]", "\"path\":\"/1\"", false},
    {"absent where an array must be", "list", NULL, "must be an array", false},
    {"passed on", "routed", "{\"in\":1,\"b\":2}", "\"result\":{\"in\":1,\"b\":2}", true},
    {"passed on, does not fit", "routed", "{}", "has no \\\"in\\\"", false},
    {"passed on to one that was not added", "routed", "{\"stranger\":true,\"strange\":1}", "\"result\":{", true},
    {"and does not fit", "routed", "{\"stranger\":true}", "has no \\\"strange\\\"", false},
    {"too much to check", "slow", "[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"]", "\"reason\":\"paramsTooComplex\"",
     false},
};

static void ask(weft_peer *peer, const char *method, const char *params) {
    char line[512];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"%s%s}\n", method,
             params ? ",\"params\":" : "", params ? params : "");
    kit_say(peer, line, 1);
}

static int open_peer(test_memory *memory, long fail_at, bool check_results, weft_service **service, weft_peer **peer) {
    weft_service_opts opts = {.methods = methods, .alloc = &memory->alloc, .check_results = check_results};
    test_memory_init(memory, fail_at);
    *peer = NULL;
    *service = NULL;
    int r = weft_service_new(&opts, service);
    return r < 0 ? r : weft_peer_new(*service, &(weft_peer_opts){.framing = &weft_ndjson}, peer);
}

TEST(params) {
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    REQUIRE(open_peer(&memory, 0, false, &service, &peer) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        ran = 0;
        ask(peer, rows[i].method, rows[i].params);
        char *said = kit_take(peer, NULL);
        if (!CHECK(strstr(said, rows[i].says) != NULL))
            printf("%s", said);
        CHECK_INT(ran, rows[i].runs);
        free(said);
    }
    weft_peer_free(peer);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

TEST(results) {
    static const struct {
        const char *method, *params, *says;
    } checked[] = {
        {"order", "{\"what\":\"a\"}", "\"result\":\"a\""},
        {"order", "{\"what\":\"b\"}",
         "{\"code\":-32603,\"message\":\"Invalid result: result must be one of the values that are "
         "allowed\",\"data\":{\"reason\":"
         "\"invalidResult\",\"path\":\"\",\"keywordLocation\":\"/enum\"}}"},
        {"list", "[1,2]", "\"result\":[1,2]"},
        {"list", "[1,2,3]", "\"reason\":\"invalidResult\""},
        {"bare", "{}", "\"result\":{}"},
        {"routed", "{\"in\":1,\"b\":2}", "\"result\":{"},
        {"routed", "{\"in\":1}", "\"keywordLocation\":\"/minProperties\""},
    };
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    REQUIRE(open_peer(&memory, 0, true, &service, &peer) == 0);
    for (size_t i = 0; i < sizeof checked / sizeof checked[0]; i++) {
        test_row(checked[i].params);
        ask(peer, checked[i].method, checked[i].params);
        char *said = kit_take(peer, NULL);
        if (!CHECK(strstr(said, checked[i].says) != NULL))
            printf("%s", said);
        free(said);
    }
    weft_peer_free(peer);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

/* Each allocation fails once: the answer is an error, or what it should be. */
static long run_rows(long fail_at, bool check_results) {
    test_memory memory;
    weft_service *service;
    weft_peer *peer;
    int r = open_peer(&memory, fail_at, check_results, &service, &peer);
    CHECK(r == 0 || fail_at);
    for (size_t i = 0; r >= 0 && i < sizeof rows / sizeof rows[0] - 1; i++) {
        ran = 0;
        ask(peer, rows[i].method, rows[i].params);
        CHECK(rows[i].runs || !ran); /* what does not fit never comes to its handler */
        char *said = kit_take(peer, NULL);
        free(said);
    }
    weft_peer_free(peer);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
    return memory.count;
}

TEST(every_allocation) {
    for (int checked = 0; checked < 2; checked++) {
        long count = run_rows(0, checked);
        for (long i = 1; i <= count; i++)
            run_rows(i, checked);
    }
}

TEST(a_schema_that_is_none) {
    static const weft_method bad = {"bad", answer_params, .params_schema = "{\"type\":\"nothing\"}"};
    static const weft_form bad_forms[] = {{"good", &inner}, {"bad", &bad}, {0}};
    static const weft_method around = {"around", answer_routed, .params_schema = "{}", .forms = bad_forms};
    static const weft_method list[] = {{"bad", answer_params, .params_schema = "{"}, {0}};
    static const weft_method lies = {"lies", answer_params, .result = "{\"type\":1}"};
    weft_service *service = NULL;
    test_memory memory;
    test_memory_init(&memory, 0);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = list}, &service), -EINVAL);
    REQUIRE(weft_service_new(&(weft_service_opts){.alloc = &memory.alloc}, &service) == 0);
    CHECK_INT(weft_service_add(service, &bad), -EINVAL);
    CHECK_INT(weft_service_add(service, &around), -EINVAL);
    CHECK_INT(weft_service_add(service, &lies), 0); /* nobody looks at it */
    CHECK(weft_service_find(service, "bad") == NULL);
    CHECK(weft_service_find(service, "around") == NULL);
    weft_service_unref(service);
    REQUIRE(weft_service_new(&(weft_service_opts){.alloc = &memory.alloc, .check_results = true}, &service) == 0);
    CHECK_INT(weft_service_add(service, &lies), -EINVAL);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

TEST(rows_come_and_go) {
    static const weft_method one = {"one", answer_params, .params_schema = "{\"required\":[\"x\"]}"},
                             two = {"two", answer_routed, .forms = forms}, three = {"three", answer_routed, .forms = forms};
    weft_service *service = NULL;
    test_memory memory;
    test_memory_init(&memory, 0);
    REQUIRE(weft_service_new(&(weft_service_opts){.alloc = &memory.alloc}, &service) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(weft_service_add(service, &one), 0);
        CHECK_INT(weft_service_add(service, &one), -EEXIST);
        CHECK_INT(weft_service_add(service, &two), 0);
        CHECK_INT(weft_service_add(service, &three), 0);
        CHECK_INT(weft_service_remove(service, "two"), 0);
        CHECK_INT(weft_service_remove(service, "one"), 0);
        CHECK_INT(weft_service_remove(service, "one"), -ENOENT);
        CHECK_INT(weft_service_remove(service, "three"), 0);
    }
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

/* ---- calls ---- */

typedef struct heard {
    int answers, misfits, r;
    char path[64];
} heard;

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    heard *h = ctx;
    (void) peer;
    h->answers++;
    h->r = r;
    CHECK((answer == NULL) == (r < 0));
}

static void on_misfit(weft_peer *peer, const weft_schema_report *report, void *ctx) {
    heard *h = ctx;
    (void) peer;
    CHECK_INT(h->answers, 0);
    h->misfits++;
    snprintf(h->path, sizeof h->path, "%s", report->errors[0].instance);
}

TEST(calls) {
    static const struct {
        const char *name, *answer;
        bool told;
        int r, misfits;
        const char *path;
    } answers[] = {
        {"fits", "\"result\":{\"plan\":[1]}", true, 0, 0, ""},
        {"does not fit", "\"result\":{\"plan\":[1,\"x\"]}", true, -EBADMSG, 1, "/plan/1"},
        {"nobody asks why", "\"result\":{\"plan\":[1,\"x\"]}", false, -EBADMSG, 0, ""},
        {"null", "\"result\":null", true, -EBADMSG, 1, ""},
        {"an error is no result", "\"error\":{\"code\":1,\"message\":\"no\"}", true, 0, 0, ""},
    };
    static const char text[] = "{\"type\":\"object\",\"properties\":{\"plan\":{\"items\":{\"type\":\"integer\"}}}}";
    weft_schema *schema = NULL;
    REQUIRE(weft_schema_compile(text, strlen(text), NULL, &schema, NULL) == 0);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        heard h = {0};
        weft_peer *peer = NULL;
        char line[256];
        weft_call_opts opts = {
            .on_answer = on_answer, .ctx = &h, .result_schema = schema, .on_misfit = answers[i].told ? on_misfit : NULL};
        test_row(answers[i].name);
        REQUIRE(weft_peer_new(NULL, &(weft_peer_opts){.framing = &weft_ndjson}, &peer) == 0);
        CHECK_INT(weft_call_start(peer, "create_plan", weft_none(), &opts, NULL), 0);
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":1,%s}\n", answers[i].answer);
        kit_say(peer, line, 1);
        CHECK_INT(h.answers, 1);
        CHECK_INT(h.r, answers[i].r);
        CHECK_INT(h.misfits, answers[i].misfits);
        CHECK(strcmp(h.path, answers[i].path) == 0);
        weft_peer_free(peer);
    }
    weft_schema_free(schema);
}

TEST(discovery) {
    weft_service *service = NULL;
    char *text = NULL;
    size_t len = 0;
    weft_doc *doc = NULL;
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods}, &service) == 0);
    CHECK_INT(weft_service_discover(service, &text, &len), 0);
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    CHECK(memmem(text, len, "\"x-paramsSchema\":" ORDER, strlen("\"x-paramsSchema\":" ORDER)) != NULL);
    weft_doc_free(doc);
    weft_text_free(text, NULL);
    weft_service_unref(service);
}

TEST_MAIN(CASE(params) CASE(results) CASE(every_allocation) CASE(a_schema_that_is_none) CASE(rows_come_and_go) CASE(calls)
              CASE(discovery))
