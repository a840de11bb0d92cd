/* URLs of the preview: whatever is asked for, a path is relative, has no dot segments, no empty ones and no NUL, and is
 * UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "utf8_stream.h"
#include "wiggum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_path(const char *path) {
    require(*path != '/' && strlen(path) < WIGGUM_URL && weft__utf8_valid(path, strlen(path)));
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        require(len && !(len == 1 && *at == '.') && !(len == 2 && memcmp(at, "..", 2) == 0));
        at += len + (at[len] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *url = malloc(size + 1), *path = malloc(WIGGUM_URL);
    require(url && path);
    if (size)
        memcpy(url, data, size);
    url[size] = '\0';
    if (weft__wiggum_path(url, path) == 0) {
        look_at_path(path);
        require(*weft__wiggum_mime(path) != '\0');
    }
    free(url);
    free(path);
    return 0;
}
