/* The file. It is written anew when it has become twice as long as what is remembered. */
#include "chat_history.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/json.h>

#include "private_file.h"
#include "trust.h"

#define NAME "chat_history"
/* A long message is not worth keeping: the arrow keys show one row. */
#define MOST_MESSAGE (64 * 1024)

static int history_path(char ret[PATH_MAX]) {
    int r = weft__trust_path(ret);
    char *slash = r >= 0 ? strrchr(ret, '/') : NULL;
    if (!slash || (size_t) (slash - ret) + sizeof NAME + 1 >= PATH_MAX)
        return -1;
    memcpy(slash + 1, NAME, sizeof NAME);
    return 0;
}

/* One line of the file; 1: it was a message. */
static int load_message(weft_line_editor *editor, const char *line, size_t len) {
    weft_doc *doc = NULL;
    if (weft_doc_parse(line, len, NULL, &doc) < 0)
        return 0;
    const char *text = weft_str_of(weft_doc_root(doc), NULL);
    if (text)
        weft__line_editor_remember(editor, text);
    weft_doc_free(doc);
    return text != NULL;
}

static void rewrite_history(const char *path, const weft_line_editor *editor) {
    weft_buf all = {0};
    int r = 0;
    for (size_t i = 0; i < editor->history_count && r >= 0; i++) {
        char *text = NULL;
        size_t len;
        r = weft_to_text(weft_str(editor->history[i]), NULL, &text, &len);
        if (r >= 0)
            r = weft__buf_put(&all, NULL, text, len);
        if (r >= 0)
            r = weft__buf_put(&all, NULL, "\n", 1);
        weft_text_free(text, NULL);
    }
    if (r >= 0)
        weft__private_replace(path, weft__buf_head(&all), weft__buf_len(&all));
    weft__buf_done(&all, NULL);
}

void weft__chat_history_load(weft_line_editor *editor) {
    char path[PATH_MAX], *line = NULL;
    size_t size = 0, count = 0;
    ssize_t len;
    int fd = history_path(path) < 0 ? -1 : weft__private_open(path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((len = getline(&line, &size, file)) > 0)
        count += (size_t) load_message(editor, line, (size_t) len);
    free(line);
    fclose(file);
    if (count > 2 * (size_t) WEFT_EDITOR_HISTORY)
        rewrite_history(path, editor);
}

void weft__chat_history_add(const char *message) {
    char path[PATH_MAX], *text = NULL;
    size_t len;
    if (!*message || strlen(message) > MOST_MESSAGE || history_path(path) < 0 ||
        weft_to_text(weft_str(message), NULL, &text, &len) < 0)
        return;
    int fd = weft__private_open(path, O_WRONLY | O_APPEND | O_CREAT);
    char *line = fd < 0 ? NULL : malloc(len + 1);
    if (line) {
        memcpy(line, text, len);
        line[len] = '\n';
        weft__private_write(fd, line, len + 1);
    }
    free(line);
    if (fd >= 0)
        close(fd);
    weft_text_free(text, NULL);
}
