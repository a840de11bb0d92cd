#include "tool_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"

/* ---- a command's words ---- */

/* What stands for itself in a shell, without quotes. */
static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_./:,+@%=", c);
}

static bool is_quoted_plain(char c, char quote) {
    return (unsigned char) c >= ' ' && c != 0x7f && c != quote && (quote == '\'' || !strchr("$`\\!", c));
}

/* One word at *at into room; its length, or -EINVAL. */
static int take_word(const char **at, char *room, size_t size) {
    size_t len = 0;
    const char *p = *at;
    while (*p && *p != ' ') {
        char quote = *p == '\'' || *p == '"' ? *p++ : '\0';
        while (*p && (quote ? is_quoted_plain(*p, quote) : is_plain(*p))) {
            if (len + 1 >= size)
                return -EINVAL;
            room[len++] = *p++;
        }
        if (quote && *p++ != quote)
            return -EINVAL;
        if (!quote && *p && *p != ' ' && *p != '\'' && *p != '"')
            return -EINVAL;
    }
    room[len] = '\0';
    *at = p;
    return (int) len;
}

int weft__tool_words(const char *text, char *room, size_t size, const char *words[WEFT_TOOL_WORDS]) {
    size_t used = 0;
    int count = 0;
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        if (count == WEFT_TOOL_WORDS)
            return -EINVAL;
        int len = take_word(&at, room + used, size - used);
        if (len < 0)
            return -EINVAL;
        words[count++] = room + used;
        used += (size_t) len + 1;
        if (used >= size)
            return -EINVAL;
    }
    /* NAME=value before a program changes what it does. */
    return count == 0 || strchr(words[0], '=') ? -EINVAL : count;
}

bool weft__tool_runs_others(const char *program) {
    static const char names[] =
        " sh bash dash zsh ksh fish ash csh tcsh pwsh busybox env sudo doas su runuser pkexec exec eval command nice ionice "
        "taskset chrt nohup time timeout setsid setpriv stdbuf unshare nsenter chroot script strace ltrace gdb watch xargs "
        "parallel find fd awk gawk mawk sed ssh python pypy node nodejs ts-node tsx deno bun bunx perl ruby php lua tclsh "
        "expect npx pipx uvx flock systemd-run ";
    char word[32];
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    size_t len = strlen(name);
    while (len > 1 && strchr("0123456789.", name[len - 1]))
        len--; /* python3.11 */
    int n = snprintf(word, sizeof word, " %.*s ", len < sizeof word ? (int) len : (int) sizeof word, name);
    return n > 2 && (size_t) n < sizeof word && strstr(names, word);
}

/* ---- reading one ---- */

/* One of the system's, or the one that is found first. Another may do anything. */
static bool is_shell(const char *program) {
    static const char *const folders[] = {"/bin/", "/usr/bin/", "/usr/local/bin/"};
    static const char *const names[] = {"sh", "bash", "dash", "zsh", "ksh"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (strncmp(program, folders[i], strlen(folders[i])) == 0) {
            program += strlen(folders[i]);
            break;
        }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(program, names[i]) == 0)
            return true;
    return false;
}

/* A list of words is one already; that of a shell with one command is that command's. */
static void read_words(const weft_json *list, weft_tool_call *ret) {
    size_t count = 0;
    for (weft_iter it = weft_iterate(list); weft_next(&it); count++) {
        const char *word = weft_str_of(&it.value, NULL);
        if (!word || count == WEFT_TOOL_WORDS)
            return;
        ret->words[count] = word;
    }
    bool shell =
        count == 3 && is_shell(ret->words[0]) && (strcmp(ret->words[1], "-c") == 0 || strcmp(ret->words[1], "-lc") == 0);
    if (shell) {
        int n = weft__tool_words(ret->words[2], ret->room, sizeof ret->room, ret->words);
        count = n < 0 ? 0 : (size_t) n;
    }
    ret->word_count = count;
}

static void read_text(const char *command, const weft_json *args, weft_tool_call *ret) {
    int n = weft__tool_words(command, ret->room, sizeof ret->room, ret->words);
    size_t count = n < 0 ? 0 : (size_t) n;
    if (!count || (args->text && weft_typeof(args) != WEFT_ARRAY))
        return;
    for (weft_iter it = weft_iterate(args); weft_next(&it); count++) {
        const char *word = weft_str_of(&it.value, NULL);
        if (!word || count == WEFT_TOOL_WORDS)
            return;
        ret->words[count] = word;
    }
    ret->word_count = count;
}

/* What a command does depends on where it runs, and on its variables. false: it cannot be compared. */
static bool read_surroundings(const weft_json *input, weft_tool_call *ret) {
    static const char *const folders[] = {"cwd",       "workdir",    "working_directory", "workingDirectory",
                                          "directory", "workingDir", "work_dir"};
    static const char *const variables[] = {"env", "environment"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        weft_json folder = weft_get(input, folders[i]);
        if (!folder.text || weft_typeof(&folder) == WEFT_NULL)
            continue;
        const char *text = weft_str_of(&folder, NULL);
        if (!text || ret->folder)
            return false;
        ret->folder = *text ? text : NULL;
    }
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        weft_json value = weft_get(input, variables[i]);
        if (value.text && weft_typeof(&value) != WEFT_NULL && weft_count(&value))
            return false;
    }
    return true;
}

static void read_command(const weft_json *input, weft_tool_call *ret) {
    weft_json command = weft_get(input, "command"), args = weft_get(input, "args");
    const char *text = weft_str_of(&command, NULL);
    if (!read_surroundings(input, ret))
        return;
    if (weft_typeof(&command) == WEFT_ARRAY && !args.text)
        read_words(&command, ret);
    else if (text)
        read_text(text, &args, ret);
}

/* false: there are more than can be looked at. */
static bool add_paths(const weft_json *list, weft_tool_call *ret) {
    for (weft_iter it = weft_iterate(list); weft_next(&it);) {
        weft_json path = weft_get(&it.value, "path");
        if (!path.text)
            continue;
        const char *text = weft_str_of(&path, NULL);
        if (!text || ret->path_count == WEFT_TOOL_PATHS)
            return false;
        ret->paths[ret->path_count++] = text;
    }
    return true;
}

/* What tools call a file they work on. */
static bool add_input_paths(const weft_json *input, weft_tool_call *ret) {
    static const char *const names[] = {"path", "file_path", "filePath", "abs_path", "absolute_path", "notebook_path"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        weft_json path = weft_get(input, names[i]);
        if (weft_typeof(&path) != WEFT_STRING)
            continue;
        const char *text = weft_str_of(&path, NULL);
        if (!text || ret->path_count == WEFT_TOOL_PATHS)
            return false;
        ret->paths[ret->path_count++] = text;
    }
    return true;
}

void weft__tool_call_read(const weft_json *detail, weft_tool_call *ret) {
    weft_json input = weft_get(detail, "rawInput"), locations = weft_get(detail, "locations"),
              content = weft_get(detail, "content");
    ret->kind = weft_get_str(detail, "kind", NULL);
    ret->title = weft_get_str(detail, "title", NULL);
    ret->word_count = ret->path_count = 0;
    ret->folder = NULL;
    if (weft_typeof(&input) == WEFT_OBJECT)
        read_command(&input, ret);
    if (!add_paths(&locations, ret) || !add_paths(&content, ret) || !add_input_paths(&input, ret))
        ret->path_count = 0;
}

/* ---- paths ---- */

/* What git or the hub acts upon is no file like others: who may edit these may run what he likes. */
static bool is_closed(const char *name, size_t len) {
    static const char *const closed[] = {".git", ".weft", ".aiwg"};
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        if (strlen(closed[i]) == len && strncasecmp(closed[i], name, len) == 0)
            return true;
    return false;
}

static bool is_plain_path(const char *path) {
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        if (is_closed(at, len) || (len == 1 && *at == '.') || (len == 2 && at[0] == '.' && at[1] == '.') || len == 0)
            return false;
        at += len;
        at += *at == '/';
    }
    for (const char *at = path; *at; at++)
        if ((unsigned char) *at < ' ' || *at == 0x7f)
            return false;
    return true;
}

/* Behind the folder's name and a slash; "" for the folder itself; NULL: it is not in there. */
static const char *behind(const char *path, const char *folder) {
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/')
        len--;
    if (strncmp(path, folder, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return path[len] ? path + len + 1 : "";
}

const char *weft__tool_path(const char *root, const char *folder, const char *path, char ret[WEFT_TOOL_PATH]) {
    char whole[WEFT_TOOL_PATH];
    size_t before = *path == '/' ? 0 : strlen(folder) + 1, len = strlen(path);
    if (before >= sizeof whole || len >= sizeof whole - before)
        return NULL;
    if (before) {
        memcpy(whole, folder, before - 1);
        whole[before - 1] = '/';
    }
    memcpy(whole + before, path, len + 1);
    const char *rest = behind(whole, root);
    if (!rest || !is_plain_path(rest))
        return NULL;
    memcpy(ret, rest, strlen(rest) + 1);
    return ret;
}

bool weft__tool_path_is_straight(const char *root, const char *path) {
    struct stat st;
    int folder = *path ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int fd = folder < 0 ? -errno : weft__beneath_open(folder, path, O_PATH, 0);
    bool straight = !*path || fd == -ENOENT || (fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode));
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return straight;
}

bool weft__tool_beneath(const char *path, const char *top) {
    return !*top || behind(path, top) != NULL;
}
