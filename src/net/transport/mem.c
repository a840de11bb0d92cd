/* Endpoints inside one loop, found by name. The list hangs on the loop: there is no global registry. */
#include "mem.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static weft_mem *find(weft_loop *loop, const char *name) {
    if (!loop->mem.next)
        weft__list_init(&loop->mem);
    for (weft_link *link = loop->mem.next; link != &loop->mem; link = link->next) {
        weft_mem *mem = WEFT_CONTAINER(link, weft_mem, link);
        if (strcmp(mem->name, name) == 0)
            return mem;
    }
    return NULL;
}

int weft__mem_listen(weft_loop *loop, weft_mem *mem, const char *name) {
    if (find(loop, name))
        return -EADDRINUSE;
    mem->name = name;
    weft__list_push(&loop->mem, &mem->link);
    return 0;
}

void weft__mem_close(weft_mem *mem) {
    if (mem->link.next)
        weft__list_remove(&mem->link);
}

int weft__mem_connect(weft_loop *loop, const char *name, int *ret_fd) {
    int pair[2];
    weft_mem *mem = find(loop, name);
    if (!mem)
        return -ECONNREFUSED;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -errno;
    *ret_fd = pair[0];
    mem->on_connect(mem, pair[1]);
    return 0;
}
