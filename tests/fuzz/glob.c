/* Patterns for paths and lists of what is ignored. The first line is the path, the second a pattern, the rest a list. A
 * pattern that was accepted may say what it likes, but not take long, and the same every time; a list says the same whether
 * it comes as one text or line by line. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "glob.h"
#include "ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Owned, of exactly its size. */
static char *line_of(const char **at, const char *end) {
    const char *stop = memchr(*at, '\n', (size_t) (end - *at));
    size_t len = (size_t) ((stop ? stop : end) - *at);
    char *line = malloc(len + 1);
    require(line);
    memcpy(line, *at, len);
    line[len] = '\0';
    *at = stop ? stop + 1 : end;
    return line;
}

static void try_glob(const char *pattern, const char *path) {
    weft_glob *glob = NULL;
    weft_bytes word = {pattern, strlen(pattern)}, text = {path, strlen(path)};
    weft__glob_word(word, text);
    weft__glob_path(pattern, path);
    int r = weft__glob_new(pattern, NULL, &glob);
    require(r == 0 || r == -EINVAL || r == -E2BIG);
    if (r == 0) {
        require(weft__glob_matches(glob, path) == weft__glob_matches(glob, path));
        weft__glob_says(glob, text);
    }
    weft__glob_free(glob);
    /* What has nothing special in it means itself. */
    if (!strpbrk(path, "*?[]{}\\,"))
        require(weft__glob_word(text, text) && weft__glob_path(path, path));
}

static void try_ignore(const char *at, const char *end, const char *path) {
    weft_ignore *whole, *lines;
    require(weft__ignore_new(NULL, &whole) == 0 && weft__ignore_new(NULL, &lines) == 0);
    require(weft__ignore_add_text(whole, (weft_bytes){at, (size_t) (end - at)}) == 0);
    if (end - at >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) /* a file may begin with a byte order mark, a line does not */
        at += 3;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        require(weft__ignore_add(lines, (weft_bytes){at, (size_t) ((stop ? stop : end) - at)}) == 0);
        at = stop ? stop + 1 : end;
    }
    require(weft__ignore_says(whole, path, true) == weft__ignore_says(lines, path, true));
    require(weft__ignore_says(whole, path, false) == weft__ignore_says(lines, path, false));
    weft__ignore_free(whole);
    weft__ignore_free(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *) data, *end = at + size;
    char *path = line_of(&at, end), *pattern = line_of(&at, end);
    try_glob(pattern, path);
    try_ignore(at, end, path);
    free(path);
    free(pattern);
    return 0;
}
