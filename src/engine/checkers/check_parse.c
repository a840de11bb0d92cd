/* Reading what checkers say. All of it comes from programs that read a stranger's text, so nothing is believed but its form:
 * numbers have limits, a message is cut, and the folder of the copy is taken out of it. What does not look like an issue is
 * passed over; whether a program failed is seen from its status (checkers.c). */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weft/json.h>

#include "check_lines.h"
#include "check_private.h"
#include "utf8.h"

#define MESSAGE 2048 /* bytes of one that are shown */

const char *const weft__severities[] = {"error", "warning", "info"};

/* ---- findings ---- */

/* Without the folder, control characters and an end that is half a character. */
static char *clean_message(weft_findings *findings, weft_bytes from) {
    size_t hidden = findings->folder ? strlen(findings->folder) : 0;
    size_t room = from.len <= MESSAGE ? from.len : MESSAGE + 1; /* one more, to see where a character ends */
    char *made = weft__arena_alloc(&findings->arena, room + 1), *to = made;
    if (!made)
        return NULL;
    for (size_t i = 0; i < from.len && to < made + room;) {
        if (hidden && from.len - i >= hidden && memcmp(from.data + i, findings->folder, hidden) == 0) {
            i += hidden + (from.len - i > hidden && from.data[i + hidden] == '/');
            continue;
        }
        unsigned char c = (unsigned char) from.data[i++];
        *to++ = (char) (c < ' ' || c == 0x7f ? ' ' : c);
    }
    size_t len = weft__utf8_fit(made, (size_t) (to - made), MESSAGE);
    made[len] = '\0';
    /* What is left may make the folder anew: nobody writes that by accident. */
    if (hidden && strstr(made, findings->folder))
        *made = '\0';
    return made;
}

static char *copy_text(weft_findings *findings, const char *text, size_t len) {
    char *made = weft__arena_alloc(&findings->arena, len + 1);
    if (!made)
        return NULL;
    if (len)
        memcpy(made, text, len);
    made[len] = '\0';
    return made;
}

/* A name as programs have them: what can be seen, of ASCII. */
static bool is_plain(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f)
            return false;
    return true;
}

void weft__findings_add(weft_findings *findings, const weft_found *found) {
    findings->error |= found->severity == WEFT_SEVERITY_ERROR;
    if (findings->count == WEFT_CHECK_ISSUES) {
        findings->truncated = true;
        return;
    }
    size_t rule_len = found->rule ? found->rule_len : 0;
    bool plain = rule_len && rule_len <= WEFT_CHECK_RULE && is_plain(found->rule, rule_len);
    weft_issue issue = {
        .rule = plain ? copy_text(findings, found->rule, rule_len) : "syntax",
        .message = clean_message(findings, found->message),
        .severity = found->severity,
        .line = found->line > 0 && found->line < WEFT_LINE_PLACES ? found->line : 0,
        .column = found->column > 0 && found->column < WEFT_LINE_PLACES ? found->column : 0,
    };
    if (!issue.rule || !issue.message) {
        findings->no_memory = true;
        return;
    }
    findings->issues[findings->count++] = issue;
}

/* The program does not know this rule. */
static void refuse_rule(weft_findings *findings, const char *name, size_t len) {
    for (size_t i = 0; i < findings->rule_count; i++) {
        weft_named_rule *rule = &findings->rules[i];
        if (rule->refused || strlen(rule->name) != len || memcmp(rule->name, name, len) != 0)
            continue;
        rule->refused = true;
        findings->refused++;
    }
}

/* ---- lines ---- */

/* The name of the copy at the beginning, whatever folder is in front of it. */
static bool take_file(const weft_findings *findings, weft_bytes *line) {
    size_t len = strlen(findings->file);
    const char *at = memmem(line->data, line->len, findings->file, len);
    size_t before = at ? (size_t) (at - line->data) : 0;
    if (!at || (before && (at[-1] != '/' || memchr(line->data, ' ', before))))
        return false;
    weft__line_skip(line, before + len);
    return true;
}

/* What is behind the name of the file. */
static bool read_place(weft_bytes *rest, weft_found *found) {
    if (!weft__line_word(rest, ":") || !weft__line_number(rest, &found->line))
        return false;
    if (weft__line_word(rest, ":") && weft__line_number(rest, &found->column))
        weft__line_word(rest, ":");
    weft__line_blanks(rest);
    return true;
}

/* gcc says "-Wformat=" of what "-Wformat" asked for. */
static void read_rule(weft_bytes *line, weft_found *found) {
    weft_bytes rule = {0};
    if (!weft__line_rule(line, &rule))
        return;
    found->rule = rule.data;
    found->rule_len = rule.len > 1 && rule.data[rule.len - 1] == '=' ? rule.len - 1 : rule.len;
}

/* usual: how grave it is when it does not say. */
static void read_issue_line(weft_findings *findings, weft_bytes line, weft_severity usual) {
    weft_found found = {.severity = usual};
    if (!take_file(findings, &line) || !read_place(&line, &found) || !line.len)
        return;
    weft__line_severity(&line, &found.severity);
    read_rule(&line, &found);
    found.message = line;
    weft__findings_add(findings, &found);
}

void weft__parse_lines(weft_findings *findings, const weft_check_output *output) {
    const weft_bytes texts[] = {output->out, output->err};
    for (int i = 0; i < 2; i++) {
        weft_bytes rest = texts[i], line;
        while (weft__line_next(&rest, &line))
            read_issue_line(findings, line, WEFT_SEVERITY_WARNING);
    }
}

/* ---- compilers ---- */

/* -H: dots, a blank and a path for each file that was read. */
static bool take_header(weft_findings *findings, weft_bytes line) {
    char path[PATH_MAX];
    size_t dots = 0;
    while (dots < line.len && line.data[dots] == '.')
        dots++;
    if (!dots || dots == line.len || line.data[dots] != ' ')
        return false;
    weft__line_skip(&line, dots + 1);
    if (line.len >= sizeof path)
        findings->foreign = true;
    else {
        memcpy(path, line.data, line.len);
        path[line.len] = '\0';
        /* The copy may include itself; there is nothing else in its folder. */
        findings->foreign |= strcmp(path, findings->file) != 0 && !weft__check_is_system(path);
    }
    return true;
}

/* The text in the first quotes, which are typographic with some locales. */
static bool find_quoted(weft_bytes line, weft_bytes *ret) {
    static const char *const quotes[][2] = {{"'", "'"}, {"\xE2\x80\x98", "\xE2\x80\x99"}, {"\"", "\""}};
    for (size_t i = 0; i < sizeof quotes / sizeof quotes[0]; i++) {
        const char *at = memmem(line.data, line.len, quotes[i][0], strlen(quotes[i][0]));
        if (!at)
            continue;
        at += strlen(quotes[i][0]);
        size_t left = line.len - (size_t) (at - line.data);
        const char *end = memmem(at, left, quotes[i][1], strlen(quotes[i][1]));
        if (!end)
            continue;
        *ret = (weft_bytes){at, (size_t) (end - at)};
        return true;
    }
    return false;
}

static bool has_text(weft_bytes line, const char *text) {
    return memmem(line.data, line.len, text, strlen(text)) != NULL;
}

static bool take_unknown_warning(weft_findings *findings, weft_bytes line) {
    weft_bytes option;
    if (!has_text(line, "unrecognized command-line option") && !has_text(line, "unrecognized command line option") &&
        !has_text(line, "unknown warning option") && !has_text(line, "but not for C"))
        return false;
    if (!find_quoted(line, &option) || !weft__line_word(&option, "-W"))
        return false;
    refuse_rule(findings, option.data, option.len);
    return true;
}

/* That a file is there which the code may not read is not said. It can still be found out, by what __has_include does. */
static weft_bytes hide_denied(weft_findings *findings, weft_bytes line) {
    static const char denied[] = ": Permission denied", absent[] = ": No such file or directory";
    if (line.len < sizeof denied || memcmp(line.data + line.len - (sizeof denied - 1), denied, sizeof denied - 1) != 0)
        return line;
    size_t keep = line.len - (sizeof denied - 1);
    char *text = weft__arena_alloc(&findings->arena, keep + sizeof absent);
    if (!text) {
        findings->no_memory = true;
        return line;
    }
    memcpy(text, line.data, keep);
    memcpy(text + keep, absent, sizeof absent);
    return (weft_bytes){text, keep + sizeof absent - 1};
}

/* "cc1: fatal error: ...": of the whole, without a place. */
static bool take_fatal(weft_findings *findings, weft_bytes line) {
    static const char fatal[] = ": fatal error: ";
    const char *at = memmem(line.data, line.len, fatal, sizeof fatal - 1);
    if (!at || memchr(line.data, ':', (size_t) (at - line.data)))
        return false;
    weft__line_skip(&line, (size_t) (at - line.data) + sizeof fatal - 1);
    weft__findings_add(findings, &(weft_found){.severity = WEFT_SEVERITY_ERROR, .message = hide_denied(findings, line)});
    return true;
}

/* "FILE:LINE:COLUMN: " at the front, up to the severity. */
static bool skip_place(weft_bytes *line) {
    int64_t number;
    for (size_t i = 1; i < line->len; i++) {
        weft_bytes rest = {line->data + i, line->len - i};
        if (!weft__line_word(&rest, ":") || !weft__line_number(&rest, &number))
            continue;
        if (weft__line_word(&rest, ":") && weft__line_number(&rest, &number))
            weft__line_word(&rest, ":");
        weft__line_blanks(&rest);
        *line = rest;
        return true;
    }
    return false;
}

/* What a template of the library says about the code that uses it, and what the code says of itself under another name
 * (#line, as yacc writes it). The place stays in the message, because it is none in the copy; from is the one in the copy
 * that leads there. */
static void read_line_elsewhere(weft_findings *findings, weft_bytes line, const weft_found *from) {
    weft_bytes rest = line;
    weft_found found = {.line = from->line, .column = from->column};
    if (!skip_place(&rest))
        return;
    size_t place = (size_t) (rest.data - line.data);
    if (!weft__line_severity(&rest, &found.severity) || found.severity == WEFT_SEVERITY_INFO)
        return;
    read_rule(&rest, &found);
    char *text = weft__arena_alloc(&findings->arena, place + rest.len + 1);
    if (!text) {
        findings->no_memory = true;
        return;
    }
    memcpy(text, line.data, place);
    memcpy(text + place, rest.data, rest.len);
    found.message = (weft_bytes){text, place + rest.len};
    weft__findings_add(findings, &found);
}

/* "code.cc:2:19:   required from here": the place that the errors behind it come from. gcc says it once for all of them. */
static bool take_origin(const weft_findings *findings, weft_bytes line, weft_found *from) {
    if (has_text(line, ": In ") || has_text(line, "In file included from ") || has_text(line, ": At global scope:"))
        *from = (weft_found){0};
    weft_found found = {0};
    return take_file(findings, &line) && read_place(&line, &found) && weft__line_word(&line, "required from ") &&
           (*from = found, true);
}

static void read_compiler_line(weft_findings *findings, weft_bytes line, weft_found *from) {
    if (take_header(findings, line) || take_unknown_warning(findings, line) || take_fatal(findings, line) ||
        take_origin(findings, line, from))
        return;
    weft_bytes here = line;
    line = hide_denied(findings, line);
    if (take_file(findings, &here))
        read_issue_line(findings, line, WEFT_SEVERITY_INFO);
    else
        read_line_elsewhere(findings, line, from);
}

void weft__parse_compiler(weft_findings *findings, const weft_check_output *output) {
    static const char outside[] =
        "It includes a file that is none of the compiler's own, so nothing that the compiler said is shown.";
    weft_bytes rest = output->err, line;
    weft_found from = {0};
    size_t before = findings->count;
    while (weft__line_next(&rest, &line))
        read_compiler_line(findings, line, &from);
    if (!findings->foreign)
        return;
    findings->count = before;
    findings->truncated = false;
    weft__findings_add(findings, &(weft_found){.rule = "include",
                                               .rule_len = sizeof "include" - 1,
                                               .severity = WEFT_SEVERITY_ERROR,
                                               .message = {outside, sizeof outside - 1}});
}

/* ---- node ---- */

/* FILE:LINE, the line itself, a row of blanks and carets, and later "SyntaxError: message". */
void weft__parse_node(weft_findings *findings, const weft_check_output *output) {
    weft_found found = {.severity = WEFT_SEVERITY_ERROR};
    weft_bytes rest = output->err, line;
    if (output->exit_code == 0)
        return;
    while (weft__line_next(&rest, &line)) {
        weft_bytes at = line;
        size_t blanks = 0;
        while (blanks < line.len && (line.data[blanks] == ' ' || line.data[blanks] == '\t'))
            blanks++;
        if (!found.line && take_file(findings, &at) && weft__line_word(&at, ":") && weft__line_number(&at, &found.line))
            continue;
        if (found.line && !found.column && blanks < line.len && line.data[blanks] == '^')
            found.column = (int64_t) blanks + 1;
        else if (found.line && weft__line_word(&line, "SyntaxError: ")) {
            found.message = line;
            weft__findings_add(findings, &found);
            return;
        }
    }
}

/* ---- shells ---- */

/* "code.sh: line 3: syntax error ..." (bash) or "code.sh: 3: Syntax error: ..." (dash). bash shows the line behind that,
 * in the same form and in quotes. */
void weft__parse_shell(weft_findings *findings, const weft_check_output *output) {
    weft_bytes rest = output->err, line;
    while (weft__line_next(&rest, &line)) {
        weft_found found = {.severity = output->exit_code == 0 ? WEFT_SEVERITY_WARNING : WEFT_SEVERITY_ERROR};
        if (!take_file(findings, &line) || !weft__line_word(&line, ": "))
            continue;
        weft__line_word(&line, "line ");
        if (!weft__line_number(&line, &found.line) || !weft__line_word(&line, ": ") || !line.len || *line.data == '`')
            continue;
        found.message = line;
        weft__findings_add(findings, &found);
    }
}

/* ---- tsc ---- */

/* What is told of an import that could not be followed: none was to be. */
static bool is_about_imports(weft_bytes rule) {
    static const char *const codes[] = {"TS2307", "TS2792", "TS2306", "TS7016", "TS2503", "TS6053", "TS2688", "TS5107"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (rule.len == strlen(codes[i]) && memcmp(rule.data, codes[i], rule.len) == 0)
            return true;
    return false;
}

/* code.ts(1,7): error TS2322: message */
static void read_typescript_line(weft_findings *findings, weft_bytes line) {
    weft_found found = {0};
    if (!take_file(findings, &line) || !weft__line_word(&line, "(") || !weft__line_number(&line, &found.line) ||
        !weft__line_word(&line, ",") || !weft__line_number(&line, &found.column) || !weft__line_word(&line, "): "))
        return;
    found.severity = weft__line_word(&line, "error ") ? WEFT_SEVERITY_ERROR : WEFT_SEVERITY_WARNING;
    if (found.severity == WEFT_SEVERITY_WARNING)
        weft__line_word(&line, "warning ");
    const char *colon = memchr(line.data, ':', line.len);
    if (!colon)
        return;
    weft_bytes rule = {line.data, (size_t) (colon - line.data)};
    if (is_about_imports(rule))
        return;
    found.rule = rule.data;
    found.rule_len = rule.len;
    weft__line_skip(&line, rule.len + 1);
    weft__line_blanks(&line);
    found.message = line;
    weft__findings_add(findings, &found);
}

void weft__parse_typescript(weft_findings *findings, const weft_check_output *output) {
    weft_bytes rest = output->out, line;
    while (weft__line_next(&rest, &line))
        read_typescript_line(findings, line);
}

/* ---- JSON ---- */

static weft_doc *read_json(weft_findings *findings, weft_bytes text) {
    weft_doc *doc = NULL;
    if (text.len && weft_doc_parse(text.data, text.len, findings->arena.alloc, &doc) == -ENOMEM)
        findings->no_memory = true;
    return doc;
}

static void add_json_issue(weft_findings *findings, const weft_json *message, weft_found found) {
    if (weft_bytes_of(message, &found.message) < 0)
        found.message = (weft_bytes){"", 0};
    weft__findings_add(findings, &found);
}

void weft__parse_shellcheck(weft_findings *findings, const weft_check_output *output) {
    weft_doc *doc = read_json(findings, output->out);
    if (!doc)
        return;
    weft_json comments = weft_get(weft_doc_root(doc), "comments");
    for (weft_iter it = weft_iterate(&comments); weft_typeof(&comments) == WEFT_ARRAY && weft_next(&it);) {
        const char *level = weft_get_str(&it.value, "level", "");
        char rule[32];
        int len = snprintf(rule, sizeof rule, "SC%04d", (int) (weft_get_int(&it.value, "code", 0) % 100000));
        weft_json message = weft_get(&it.value, "message");
        add_json_issue(findings, &message,
                       (weft_found){.rule = rule,
                                    .rule_len = (size_t) len,
                                    .severity = strcmp(level, "error") == 0     ? WEFT_SEVERITY_ERROR
                                                : strcmp(level, "warning") == 0 ? WEFT_SEVERITY_WARNING
                                                                                : WEFT_SEVERITY_INFO,
                                    .line = weft_get_int(&it.value, "line", 0),
                                    .column = weft_get_int(&it.value, "column", 0)});
    }
    weft_doc_free(doc);
}

void weft__parse_ruff(weft_findings *findings, const weft_check_output *output) {
    weft_doc *doc = read_json(findings, output->out);
    weft_bytes quoted;
    if (output->exit_code == 2 && has_text(output->err, "--select") && find_quoted(output->err, &quoted))
        refuse_rule(findings, quoted.data, quoted.len);
    weft_json list = doc ? *weft_doc_root(doc) : (weft_json){0};
    for (weft_iter it = weft_iterate(&list); weft_typeof(&list) == WEFT_ARRAY && weft_next(&it);) {
        const char *rule = weft_get_str(&it.value, "code", "");
        weft_json place = weft_get(&it.value, "location"), message = weft_get(&it.value, "message");
        add_json_issue(findings, &message,
                       (weft_found){.rule = rule,
                                    .rule_len = strlen(rule),
                                    .severity = *rule && strcmp(rule, "invalid-syntax") != 0 ? WEFT_SEVERITY_WARNING
                                                                                             : WEFT_SEVERITY_ERROR,
                                    .line = weft_get_int(&place, "row", 0),
                                    .column = weft_get_int(&place, "column", 0)});
    }
    weft_doc_free(doc);
}

static void read_eslint_message(weft_findings *findings, const weft_json *one) {
    const char *rule = weft_get_str(one, "ruleId", "");
    weft_json message = weft_get(one, "message");
    weft_bytes text;
    if (weft_bytes_of(&message, &text) >= 0 && has_text(text, "Definition for rule")) {
        refuse_rule(findings, rule, strlen(rule));
        return;
    }
    add_json_issue(
        findings, &message,
        (weft_found){.rule = rule,
                     .rule_len = strlen(rule),
                     .severity = weft_get_int(one, "severity", 2) >= 2 ? WEFT_SEVERITY_ERROR : WEFT_SEVERITY_WARNING,
                     .line = weft_get_int(one, "line", 0),
                     .column = weft_get_int(one, "column", 0)});
}

void weft__parse_eslint(weft_findings *findings, const weft_check_output *output) {
    weft_doc *doc = read_json(findings, output->out);
    const char *unknown = memmem(output->err.data, output->err.len, "Could not find \"", 16);
    weft_bytes quoted;
    if (unknown && find_quoted((weft_bytes){unknown, output->err.len - (size_t) (unknown - output->err.data)}, &quoted))
        refuse_rule(findings, quoted.data, quoted.len);
    weft_json first = doc ? weft_at(weft_doc_root(doc), 0) : (weft_json){0}, messages = weft_get(&first, "messages");
    for (weft_iter it = weft_iterate(&messages); weft_typeof(&messages) == WEFT_ARRAY && weft_next(&it);)
        read_eslint_message(findings, &it.value);
    weft_doc_free(doc);
}
