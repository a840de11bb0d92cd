/* The watcher's memory: nodes in one table, found by parent and name, and folders in another, found by watch descriptor. */
#include "tree.h"

#include <errno.h>
#include <string.h>

#include "hash.h"

#define FIRST_BUCKETS 1024

/* Over the name, begun with the parent's address. */
static uint32_t hash_of_child(const weft_entry *parent, const char *name, size_t len) {
    uint64_t seed = (uint64_t) (uintptr_t) parent >> 4;
    return weft__hash_more(WEFT_HASH ^ (uint32_t) seed ^ (uint32_t) (seed >> 32), name, len);
}

static weft_entry *find_child(const weft_tree *tree, const weft_entry *parent, const char *name, size_t len) {
    uint32_t hash = hash_of_child(parent, name, len);
    for (weft_entry *node = tree->buckets[hash & (tree->bucket_count - 1)]; node; node = node->next)
        if (node->hash == hash && node->parent == parent && strncmp(node->name, name, len) == 0 && !node->name[len])
            return node;
    return NULL;
}

/* A failure to grow costs speed, nothing else. */
static void grow_buckets(weft_tree *tree) {
    size_t count = tree->bucket_count * 2;
    weft_entry **buckets = weft__zalloc(tree->alloc, count * sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < tree->bucket_count; i++)
        for (weft_entry *node = tree->buckets[i], *next; node; node = next) {
            next = node->next;
            node->next = buckets[node->hash & (count - 1)];
            buckets[node->hash & (count - 1)] = node;
        }
    weft__free(tree->alloc, tree->buckets);
    tree->buckets = buckets;
    tree->bucket_count = count;
}

static void grow_wds(weft_tree *tree) {
    size_t count = tree->wd_buckets * 2;
    weft_folder **wds = weft__zalloc(tree->alloc, count * sizeof *wds);
    if (!wds)
        return;
    for (size_t i = 0; i < tree->wd_buckets; i++)
        for (weft_folder *folder = tree->wds[i], *next; folder; folder = next) {
            next = folder->next_wd;
            folder->next_wd = wds[(size_t) folder->wd & (count - 1)];
            wds[(size_t) folder->wd & (count - 1)] = folder;
        }
    weft__free(tree->alloc, tree->wds);
    tree->wds = wds;
    tree->wd_buckets = count;
}

/* ---- life ---- */

int weft__tree_init(weft_tree *tree, size_t max, const weft_alloc *alloc) {
    *tree = (weft_tree){.alloc = alloc, .max = max, .bucket_count = FIRST_BUCKETS, .wd_buckets = FIRST_BUCKETS};
    tree->buckets = weft__zalloc(alloc, FIRST_BUCKETS * sizeof *tree->buckets);
    tree->wds = weft__zalloc(alloc, FIRST_BUCKETS * sizeof *tree->wds);
    int r = tree->buckets && tree->wds ? weft__tree_add(tree, NULL, "", true, &tree->root) : -ENOMEM;
    if (r < 0)
        weft__tree_done(tree);
    return r;
}

static weft_entry *free_node(weft_tree *tree, weft_entry *node) {
    if (node->folder)
        weft__ignore_free(node->folder->ignore);
    weft__free(tree->alloc, node->folder);
    return weft__free(tree->alloc, node);
}

void weft__tree_done(weft_tree *tree) {
    for (size_t i = 0; tree->buckets && i < tree->bucket_count; i++)
        for (weft_entry *node = tree->buckets[i], *next; node; node = next) {
            next = node->next;
            free_node(tree, node);
        }
    weft__free(tree->alloc, tree->buckets);
    weft__free(tree->alloc, tree->wds);
    *tree = (weft_tree){0};
}

/* ---- nodes ---- */

weft_entry *weft__tree_find(const weft_tree *tree, const weft_entry *parent, const char *name) {
    return find_child(tree, parent, name, strlen(name));
}

weft_entry *weft__tree_parent(const weft_tree *tree, const char *path, const char **ret_name) {
    weft_entry *node = tree->root;
    for (const char *slash; node && node->folder && (slash = strchr(path, '/')); path = slash + 1)
        node = find_child(tree, node, path, (size_t) (slash - path));
    *ret_name = path;
    return node && node->folder ? node : NULL;
}

static weft_folder *new_folder(weft_tree *tree, weft_entry *node) {
    weft_folder *folder = weft__zalloc(tree->alloc, sizeof *folder);
    if (!folder)
        return NULL;
    folder->node = node;
    folder->wd = -1;
    weft__list_init(&folder->children);
    weft__list_init(&folder->queue);
    weft__list_init(&folder->unwatched);
    return folder;
}

int weft__tree_add(weft_tree *tree, weft_entry *parent, const char *name, bool folder, weft_entry **ret) {
    size_t len = strlen(name);
    if (tree->count >= tree->max)
        return -ENOSPC;
    weft_entry *node = weft__zalloc(tree->alloc, sizeof *node + len + 1);
    if (!node)
        return -ENOMEM;
    if (folder && !(node->folder = new_folder(tree, node))) {
        weft__free(tree->alloc, node);
        return -ENOMEM;
    }
    memcpy(node->name, name, len + 1);
    node->parent = parent;
    node->hash = hash_of_child(parent, name, len);
    weft__list_init(&node->link);
    if (parent)
        weft__list_push(&parent->folder->children, &node->link);
    if (tree->count >= tree->bucket_count)
        grow_buckets(tree);
    weft_entry **bucket = &tree->buckets[node->hash & (tree->bucket_count - 1)];
    node->next = *bucket;
    *bucket = node;
    tree->count++;
    tree->folders += folder;
    *ret = node;
    return 0;
}

void weft__tree_remove(weft_tree *tree, weft_entry *node) {
    weft_entry **at = &tree->buckets[node->hash & (tree->bucket_count - 1)];
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    weft__list_remove(&node->link);
    if (node->folder) {
        weft__tree_set_wd(tree, node->folder, -1);
        weft__list_remove(&node->folder->queue);
        weft__list_remove(&node->folder->unwatched);
        tree->folders--;
    }
    tree->count--;
    free_node(tree, node);
}

int weft__tree_path(const weft_entry *node, char ret[PATH_MAX]) {
    size_t len = 0, at;
    for (const weft_entry *n = node; n->parent; n = n->parent)
        len += strlen(n->name) + 1;
    if (len > PATH_MAX)
        return -ENAMETOOLONG;
    ret[len ? len - 1 : 0] = '\0';
    at = len;
    for (const weft_entry *n = node; n->parent; n = n->parent) {
        size_t part = strlen(n->name);
        at -= part + 1;
        memcpy(ret + at, n->name, part);
        if (n != node)
            ret[at + part] = '/';
    }
    return 0;
}

bool weft__tree_same(weft_entry *node, const struct stat *st) {
    int64_t mtime_ns = (int64_t) st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    bool same = node->mtime_ns == mtime_ns && node->size == (uint64_t) st->st_size && node->inode == st->st_ino;
    node->mtime_ns = mtime_ns;
    node->size = (uint64_t) st->st_size;
    node->inode = st->st_ino;
    return same;
}

/* ---- watch descriptors ---- */

weft_folder *weft__tree_by_wd(const weft_tree *tree, int wd) {
    weft_folder *folder = tree->wds[(size_t) wd & (tree->wd_buckets - 1)];
    while (folder && folder->wd != wd)
        folder = folder->next_wd;
    return folder;
}

static void forget_wd(weft_tree *tree, weft_folder *folder) {
    weft_folder **at = &tree->wds[(size_t) folder->wd & (tree->wd_buckets - 1)];
    while (*at != folder)
        at = &(*at)->next_wd;
    *at = folder->next_wd;
    folder->wd = -1;
    tree->watched--;
}

void weft__tree_set_wd(weft_tree *tree, weft_folder *folder, int wd) {
    if (folder->wd == wd)
        return;
    if (folder->wd >= 0)
        forget_wd(tree, folder);
    if (wd < 0)
        return;
    weft_folder *before = weft__tree_by_wd(tree, wd);
    if (before)
        forget_wd(tree, before);
    if (tree->watched >= tree->wd_buckets)
        grow_wds(tree);
    weft_folder **bucket = &tree->wds[(size_t) wd & (tree->wd_buckets - 1)];
    folder->wd = wd;
    folder->next_wd = *bucket;
    *bucket = folder;
    tree->watched++;
}
