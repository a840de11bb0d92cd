/* What checkers say, read by each of the parsers: whatever it is, an issue has a rule, a message of limited length without
 * control characters and without the folder, and a place that can be. The first byte says which parser and which status, the
 * second where standard output ends and standard error begins. */
#include <stdint.h>
#include <string.h>

#include "check_private.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    weft_check_parser *parse;
    const char *file;
} parsers[] = {
    {weft__parse_lines, "code.py"},   {weft__parse_compiler, "code.c"},    {weft__parse_node, "code.cjs"},
    {weft__parse_shell, "code.sh"},   {weft__parse_typescript, "code.ts"}, {weft__parse_shellcheck, "code.sh"},
    {weft__parse_eslint, "code.cjs"}, {weft__parse_ruff, "code.py"},
};

static void look_at(const weft_findings *found) {
    require(found->count <= WEFT_CHECK_ISSUES);
    for (size_t i = 0; i < found->count; i++) {
        const weft_issue *issue = &found->issues[i];
        require(*issue->rule && strlen(issue->rule) <= WEFT_CHECK_RULE);
        require(strlen(issue->message) <= 2048 && !strstr(issue->message, found->folder));
        for (const char *at = issue->message; *at; at++)
            require((unsigned char) *at >= ' ' && *at != 0x7f);
        require(issue->line >= 0 && issue->line < 1 << 24 && issue->column >= 0 && issue->column < 1 << 24);
        require(issue->severity <= WEFT_SEVERITY_INFO);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    size_t which = data[0] % (sizeof parsers / sizeof parsers[0]), split = (size_t) data[1] * (size - 2) / 255;
    weft_named_rule rules[] = {{.name = "no-console"}, {.name = "unused"}};
    weft_findings *found = calloc(1, sizeof *found);
    char *copy = malloc(size - 2); /* of exactly this size, so that a step too far is seen */
    require(found && copy);
    memcpy(copy, data + 2, size - 2);
    *found = (weft_findings){
        .arena.alloc = &counting, .file = parsers[which].file, .folder = "/p/check-1", .rules = rules, .rule_count = 2};
    parsers[which].parse(
        found,
        &(weft_check_output){.out = {copy, split}, .err = {copy + split, size - 2 - split}, .exit_code = data[0] >> 6});
    look_at(found);
    weft__arena_done(&found->arena);
    free(found);
    free(copy);
    require(live == 0);
    return 0;
}
