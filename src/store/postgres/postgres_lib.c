/* Loading libpq. */
#include "postgres_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libpq.so.5"

#define NAMED(name) {#name, offsetof(weft_pg_lib, name)},
static const struct {
    const char *name;
    size_t offset;
} functions[] = {WEFT_PG_FUNCTIONS(NAMED)};
#undef NAMED

int weft__pg_lib_load(weft_pg_lib *ret) {
    weft_pg_lib lib = {0};
    /* It stays: what it brings along does not all survive being unloaded. */
    lib.handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib.handle)
        return -ENOPKG;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(lib.handle, functions[i].name);
        if (!found) {
            dlclose(lib.handle);
            return -ENOPKG;
        }
        memcpy((char *) &lib + functions[i].offset, &found, sizeof found);
    }
    *ret = lib;
    return 0;
}

void weft__pg_lib_done(weft_pg_lib *lib) {
    if (lib->handle)
        dlclose(lib->handle);
    lib->handle = NULL;
}
