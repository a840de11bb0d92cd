/* The context: entries in order, and changes one after the other.
 *
 * A change is an event and the whole document in one append. The next one starts when the one before was stored and applied,
 * because its document is made from what that left. The event has all that it changes, so it is applied from there alone; at
 * a start the document has been read, and events that are not newer change nothing. */
#include "context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "engine_private.h"
#include "write.h"

const char *const weft__context_types[WEFT_CONTEXT_TYPES] = {"file", "dependency", "state"};
const char *const weft__context_actions[WEFT_CONTEXT_ACTIONS] = {"add", "modify", "remove"};

typedef struct known_entry {
    weft_link link; /* in order */
    weft_context_entry pub;
    char text[]; /* the key, NUL, the data */
} known_entry;

typedef struct context_change {
    weft_link link;
    weft_engine *engine;
    weft_doc *doc; /* [{key, data?}] */
    weft_context_action action;
    weft_context_type type;
    bool sent;
    weft_context_done *done;
    void *ctx;
} context_change;

/* ---- names ---- */

static bool is_context_key(const char *key) {
    size_t len = strnlen(key, WEFT_CONTEXT_KEY + 1);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) key[i] < ' ' || key[i] == 0x7f)
            return false;
    return len && len <= WEFT_CONTEXT_KEY;
}

static int find_word(const char *const *words, int count, const char *word) {
    for (int i = 0; i < count; i++)
        if (word && strcmp(words[i], word) == 0)
            return i;
    return -1;
}

/* Where a last name leads that is a link is known when it is opened. */
static int open_place(int root, const char *path) {
    struct stat st;
    int fd = weft__beneath_open(root, path, O_PATH, WEFT_BENEATH_LINKS);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
        return fd;
    close(fd);
    return weft__beneath_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, WEFT_BENEATH_LINKS);
}

/* It stays open: each execute_task looks at the files that it names. */
static int open_root(weft_engine *engine) {
    if (engine->root < 0)
        engine->root = open(engine->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return engine->root < 0 ? -errno : 0;
}

/* Does it lie in the folder, also with its links? What is not there yet may. */
static int check_beneath(weft_engine *engine, const char *path) {
    char checked[PATH_MAX];
    int r = weft__beneath_check((weft_bytes){path, strlen(path)}, checked);
    if (r >= 0)
        r = open_root(engine);
    if (r < 0)
        return r == -ENOENT ? 0 : r; /* no folder, no links in it */
    int fd = open_place(engine->root, checked);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
}

int weft__context_path(weft_engine *engine, const char *path, char ret[WEFT_CONTEXT_KEY + 1]) {
    size_t root = strlen(engine->folder), len = 0;
    if (*path == '/') {
        if (strncmp(path, engine->folder, root) != 0 || (path[root] != '/' && engine->folder[root - 1] != '/'))
            return -EXDEV;
        path += root;
    }
    while (*path) {
        size_t part = strcspn(path, "/");
        if (part == 2 && memcmp(path, "..", 2) == 0)
            return -EXDEV;
        if (part && !(part == 1 && *path == '.')) {
            if (len + part + 1 > WEFT_CONTEXT_KEY)
                return -ENAMETOOLONG;
            if (len)
                ret[len++] = '/';
            memcpy(ret + len, path, part);
            len += part;
        }
        path += part;
        path += strspn(path, "/");
    }
    ret[len] = '\0';
    return !is_context_key(ret) ? -EINVAL : check_beneath(engine, ret);
}

/* ---- entries ---- */

uint64_t weft__context_version(const weft_engine *engine) {
    return engine->context_version;
}

bool weft__context_nth(const weft_engine *engine, size_t n, weft_context_entry *ret) {
    for (weft_link *link = engine->context.next; link != &engine->context; link = link->next)
        if (n-- == 0) {
            *ret = WEFT_CONTAINER(link, known_entry, link)->pub;
            return true;
        }
    return false;
}

static int compare_entry(const known_entry *entry, weft_context_type type, const char *key) {
    return entry->pub.type != type ? (entry->pub.type < type ? -1 : 1) : strcmp(entry->pub.key, key);
}

static known_entry *find_entry(const weft_engine *engine, weft_context_type type, const char *key) {
    for (weft_link *link = engine->context.next; link != &engine->context; link = link->next) {
        known_entry *entry = WEFT_CONTAINER(link, known_entry, link);
        if (compare_entry(entry, type, key) == 0)
            return entry;
    }
    return NULL;
}

static size_t entry_bytes(const known_entry *entry) {
    return strlen(entry->pub.key) + entry->pub.data.len;
}

static void drop_entry(weft_engine *engine, known_entry *entry) {
    if (!entry)
        return;
    engine->context_count--;
    engine->context_bytes -= entry_bytes(entry);
    weft__list_remove(&entry->link);
    weft__free(engine->alloc, entry);
}

static known_entry *new_entry(weft_engine *engine, weft_context_type type, const char *key, const weft_json *data,
                              uint64_t version) {
    weft_bytes text = data->text ? (weft_bytes){data->text, data->len} : (weft_bytes){"null", 4};
    size_t len = strlen(key);
    known_entry *made = weft__alloc(engine->alloc, sizeof *made + len + 1 + text.len);
    if (!made)
        return NULL;
    memcpy(made->text, key, len + 1);
    memcpy(made->text + len + 1, text.data, text.len);
    made->pub =
        (weft_context_entry){.type = type, .key = made->text, .data = {made->text + len + 1, text.len}, .version = version};
    weft__list_init(&made->link);
    return made;
}

/* In its place, and instead of what is there. */
static void put_entry(weft_engine *engine, known_entry *entry) {
    drop_entry(engine, find_entry(engine, entry->pub.type, entry->pub.key));
    weft_link *before = engine->context.next;
    while (before != &engine->context &&
           compare_entry(WEFT_CONTAINER(before, known_entry, link), entry->pub.type, entry->pub.key) < 0)
        before = before->next;
    weft__list_push(before, &entry->link);
    engine->context_count++;
    engine->context_bytes += entry_bytes(entry);
}

static void free_entries(weft_engine *engine, weft_link *list) {
    while (!weft__list_empty(list)) {
        known_entry *first = WEFT_CONTAINER(list->next, known_entry, link);
        weft__list_remove(&first->link);
        weft__free(engine->alloc, first);
    }
}

/* Those that a change brings, not in their place yet; all or none. -EBADMSG: they are not what we write. */
static int read_entries(weft_engine *engine, weft_context_type type, const weft_json *parts, uint64_t version,
                        weft_link *ret) {
    int r = 0;
    weft__list_init(ret);
    for (weft_iter it = weft_iterate(parts); r >= 0 && weft_next(&it);) {
        const char *key;
        weft_json data = weft_get(&it.value, "data");
        r = weft__member(&it.value, "key", &key);
        if (r >= 0 && (!key || !is_context_key(key)))
            r = -EBADMSG;
        known_entry *made = r < 0 ? NULL : new_entry(engine, type, key, &data, version);
        if (r >= 0 && !made)
            r = -ENOMEM;
        if (made)
            weft__list_push(ret, &made->link);
    }
    if (r < 0)
        free_entries(engine, ret);
    return r;
}

/* The entries are taken. */
static void take_change(weft_engine *engine, weft_context_action action, weft_link *entries) {
    while (!weft__list_empty(entries)) {
        known_entry *first = WEFT_CONTAINER(entries->next, known_entry, link);
        weft__list_remove(&first->link);
        if (action != WEFT_CONTEXT_REMOVE) {
            put_entry(engine, first);
            continue;
        }
        drop_entry(engine, find_entry(engine, first->pub.type, first->pub.key));
        weft__free(engine->alloc, first);
    }
}

/* ---- events and the document ---- */

int weft__context_apply(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *action, *type;
    weft_link entries;
    weft_json parts = weft_get(data, "changes");
    uint64_t version = (uint64_t) weft__int_between(data, "version", 0, 0, (int64_t) ENGINE_NUMBERS);
    (void) event;
    if (weft__member(data, "action", &action) < 0 || weft__member(data, "contextType", &type) < 0)
        return -ENOMEM;
    int what = find_word(weft__context_actions, WEFT_CONTEXT_ACTIONS, action);
    int of = find_word(weft__context_types, WEFT_CONTEXT_TYPES, type);
    if (what < 0 || of < 0 || !version || weft_typeof(&parts) != WEFT_ARRAY)
        return -EBADMSG;
    if (version <= engine->context_version)
        return 0;
    int r = read_entries(engine, (weft_context_type) of, &parts, version, &entries);
    if (r < 0)
        return r;
    take_change(engine, (weft_context_action) what, &entries);
    engine->context_version = version;
    return 0;
}

/* As an entry of the document: {type, key, version, data}. */
static int write_entry(weft_buf *out, const weft_alloc *alloc, const weft_context_entry *entry) {
    weft_val value = WEFT_OBJ({"type", weft_str(weft__context_types[entry->type])}, {"key", weft_str(entry->key)},
                              {"version", weft_uint(entry->version)}, {"data", weft_raw(entry->data.data, entry->data.len)});
    int r = weft__buf_tail(out)[-1] != '[' ? weft__buf_put(out, alloc, ",", 1) : 0;
    return r < 0 ? r : weft__write_val(out, alloc, &value);
}

/* What the context will be: what is there without those that the change replaces or removes, and those that it brings. */
static int write_context(const weft_engine *engine, const weft_link *brought, bool removes, uint64_t version,
                         weft_buf *out) {
    char head[64];
    int n = snprintf(head, sizeof head, "{\"version\":%llu,\"entries\":[", (unsigned long long) version);
    int r = weft__buf_put(out, engine->alloc, head, (size_t) n);
    for (weft_link *link = engine->context.next; r >= 0 && link != &engine->context; link = link->next) {
        const known_entry *entry = WEFT_CONTAINER(link, known_entry, link);
        bool named = false;
        for (const weft_link *at = brought->next; !named && at != brought; at = at->next) {
            const known_entry *other = WEFT_CONTAINER(at, known_entry, link);
            named = compare_entry(entry, other->pub.type, other->pub.key) == 0;
        }
        if (!named)
            r = write_entry(out, engine->alloc, &entry->pub);
    }
    for (const weft_link *at = brought->next; r >= 0 && !removes && at != brought; at = at->next)
        r = write_entry(out, engine->alloc, &WEFT_CONTAINER(at, known_entry, link)->pub);
    return r < 0 ? r : weft__buf_put(out, engine->alloc, "]}", 2);
}

int weft__context_write(const weft_engine *engine, weft_buf *out) {
    weft_link none;
    weft__list_init(&none);
    return write_context(engine, &none, false, engine->context_version, out);
}

int weft__context_restore(weft_engine *engine, const weft_json *data) {
    weft_json entries = weft_get(data, "entries");
    uint64_t version = (uint64_t) weft__int_between(data, "version", 0, 0, (int64_t) ENGINE_NUMBERS);
    if (!version || weft_typeof(&entries) != WEFT_ARRAY)
        return -EBADMSG;
    if (version <= engine->context_version)
        return 0; /* it was read before, with others for which there was no memory */
    for (weft_iter it = weft_iterate(&entries); weft_next(&it);) {
        const char *type, *key;
        weft_json value = weft_get(&it.value, "data");
        if (weft__member(&it.value, "type", &type) < 0 || weft__member(&it.value, "key", &key) < 0)
            return -ENOMEM;
        int of = find_word(weft__context_types, WEFT_CONTEXT_TYPES, type);
        if (of < 0 || !key || !is_context_key(key))
            return -EBADMSG;
        known_entry *made = new_entry(engine, (weft_context_type) of, key, &value,
                                      (uint64_t) weft__int_between(&it.value, "version", 0, 0, (int64_t) ENGINE_NUMBERS));
        if (!made)
            return -ENOMEM;
        put_entry(engine, made);
    }
    engine->context_version = version;
    return 0;
}

/* ---- in a prompt ---- */

static bool is_said(const weft_context_entry *entry) {
    return entry->data.len != 4 || memcmp(entry->data.data, "null", 4) != 0;
}

/* "- file src/a.c: {"why":"..."}", a line each. 1 written, 0 there is no room. */
static int put_context_line(weft_buf *out, const weft_alloc *alloc, const weft_context_entry *entry, size_t room) {
    const char *type = weft__context_types[entry->type];
    size_t need = strlen(type) + strlen(entry->key) + entry->data.len + sizeof "\n-  : ";
    if (need > room)
        return 0;
    int r = weft__buf_reserve(out, alloc, need);
    if (r < 0)
        return r;
    int n = snprintf(weft__buf_tail(out), need, "\n- %s %s%s%.*s", type, entry->key, is_said(entry) ? ": " : "",
                     is_said(entry) ? (int) entry->data.len : 0, entry->data.data);
    out->end += (size_t) n;
    return 1;
}

static int put_context(weft_buf *out, const weft_engine *engine) {
    char text[80];
    size_t before = weft__buf_len(out), left = 0;
    int n = snprintf(text, sizeof text, "\n\nContext of the project:");
    int r = weft__buf_put(out, engine->alloc, text, (size_t) n);
    for (weft_link *link = engine->context.next; r >= 0 && link != &engine->context; link = link->next) {
        const known_entry *entry = WEFT_CONTAINER(link, known_entry, link);
        size_t used = weft__buf_len(out) - before;
        r = put_context_line(out, engine->alloc, &entry->pub, WEFT_CONTEXT_PROMPT - used - sizeof text);
        left += r == 0;
    }
    if (r < 0 || !left)
        return r;
    n = snprintf(text, sizeof text, "\n- and %zu more, which are left out here", left);
    return weft__buf_put(out, engine->alloc, text, (size_t) n);
}

int weft__context_prompt(const weft_engine *engine, const char *prompt, char **ret) {
    weft_buf out = {0};
    *ret = NULL;
    if (weft__list_empty(&engine->context))
        return 0;
    int r = weft__buf_put(&out, engine->alloc, prompt, strlen(prompt));
    if (r >= 0)
        r = put_context(&out, engine);
    if (r >= 0 && !(*ret = weft__strndup(engine->alloc, weft__buf_head(&out), weft__buf_len(&out))))
        r = -ENOMEM;
    weft__buf_done(&out, engine->alloc);
    return r < 0 ? r : 0;
}

/* ---- changes ---- */

static void start_context_changes(weft_engine *engine);

static void finish_context_change(context_change *change, int r) {
    weft_engine *engine = change->engine;
    weft_context_done *done = change->done;
    void *ctx = change->ctx;
    weft__list_remove(&change->link);
    engine->context_changes--;
    weft_doc_free(change->doc);
    weft__free(engine->alloc, change);
    if (done)
        done(ctx, r, engine->context_version);
}

static void context_stored(void *ctx, int r) {
    context_change *change = ctx;
    weft_engine *engine = change->engine;
    finish_context_change(change, r > 0 ? -EEXIST : r);
    start_context_changes(engine);
}

/* What this change would leave, and whether it does anything. 1 it does, 0 not, <0. */
static int judge_change(const weft_engine *engine, const context_change *change, const weft_link *brought) {
    size_t count = engine->context_count, bytes = engine->context_bytes;
    bool does = change->action != WEFT_CONTEXT_REMOVE;
    for (const weft_link *at = brought->next; at != brought; at = at->next) {
        const known_entry *entry = WEFT_CONTAINER(at, known_entry, link);
        const known_entry *there = find_entry(engine, entry->pub.type, entry->pub.key);
        if (!there && change->action == WEFT_CONTEXT_MODIFY)
            return -ENOENT;
        does |= there != NULL;
        count += !there;
        bytes += entry_bytes(entry) - (there ? entry_bytes(there) : 0);
    }
    if (change->action == WEFT_CONTEXT_REMOVE)
        return does;
    return count > WEFT_CONTEXT_ENTRIES || bytes > WEFT_CONTEXT_BYTES ? -EDQUOT : 1;
}

static int append_change(context_change *change, const weft_link *brought) {
    weft_engine *engine = change->engine;
    uint64_t version = engine->context_version + 1;
    weft_buf text = {0};
    int r = write_context(engine, brought, change->action == WEFT_CONTEXT_REMOVE, version, &text);
    weft_document document = {.key = WEFT_SAVED_CONTEXT, .data = {weft__buf_head(&text), weft__buf_len(&text)}};
    struct draft draft = {.engine = engine, .document = &document, .r = r};
    weft__draft_add(&draft, WEFT_STREAM_HUB, "context.changed",
                    WEFT_OBJ({"version", weft_uint(version)}, {"action", weft_str(weft__context_actions[change->action])},
                             {"contextType", weft_str(weft__context_types[change->type])},
                             {"changes", weft_copy(weft_doc_root(change->doc))}));
    r = weft__draft_send(&draft, NULL, context_stored, change);
    weft__buf_done(&text, engine->alloc);
    return r;
}

/* 1 it is under way, 0 there was nothing to do, <0. */
static int start_context_change(context_change *change) {
    weft_engine *engine = change->engine;
    weft_link brought;
    if (engine->context_version >= ENGINE_NUMBERS)
        return -EOVERFLOW;
    int r = read_entries(engine, change->type, weft_doc_root(change->doc), engine->context_version + 1, &brought);
    if (r < 0)
        return r;
    r = judge_change(engine, change, &brought);
    if (r > 0) {
        r = append_change(change, &brought);
        r = r < 0 ? r : 1;
    }
    free_entries(engine, &brought);
    return r;
}

/* The first, unless it is under way; what is over at once makes room for the next. */
static void start_context_changes(weft_engine *engine) {
    while (!weft__list_empty(&engine->context_waiting)) {
        context_change *first = WEFT_CONTAINER(engine->context_waiting.next, context_change, link);
        if (first->sent)
            return;
        int r = engine->phase == GONE ? -ECANCELED : start_context_change(first);
        if (r > 0) {
            first->sent = true;
            return;
        }
        finish_context_change(first, r);
    }
}

static void context_due(weft_later *later) {
    start_context_changes(WEFT_CONTAINER(later, weft_engine, context_later));
}

/* ---- asking for a change ---- */

static bool is_named_before(const weft_context_change *change, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(change->parts[i].key, change->parts[n].key) == 0)
            return true;
    return false;
}

static int check_part(weft_engine *engine, const weft_context_change *change, size_t n) {
    const weft_context_part *part = &change->parts[n];
    char path[WEFT_CONTEXT_KEY + 1];
    if (!is_context_key(part->key) || is_named_before(change, n))
        return -EINVAL;
    if (part->data.len > WEFT_CONTEXT_DATA)
        return -EMSGSIZE;
    /* What is removed may be a link by now. */
    if (change->type != WEFT_CONTEXT_FILE || change->action == WEFT_CONTEXT_REMOVE)
        return 0;
    int r = weft__context_path(engine, part->key, path);
    return r < 0 ? r : strcmp(path, part->key) == 0 ? 0 : -EINVAL;
}

static int check_change(weft_engine *engine, const weft_context_change *change) {
    if (engine->phase != READY || engine->past_unread)
        return engine->phase <= READY ? -EAGAIN : -ESHUTDOWN;
    if (!change->count)
        return -EINVAL;
    if (change->count > WEFT_CONTEXT_PARTS)
        return -E2BIG;
    if (engine->context_changes >= WEFT_CONTEXT_CHANGES)
        return -EUSERS;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < change->count; i++)
        r = check_part(engine, change, i);
    return r;
}

static int keep_parts(weft_engine *engine, const weft_context_change *change, weft_doc **ret) {
    weft_buf text = {0};
    int r = weft__buf_put(&text, engine->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < change->count; i++) {
        const weft_context_part *part = &change->parts[i];
        bool has = change->action != WEFT_CONTEXT_REMOVE;
        weft_val value = WEFT_OBJ({"key", weft_str(part->key)}, {"data", has ? weft_copy(&part->data) : weft_none()});
        r = i ? weft__buf_put(&text, engine->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(&text, engine->alloc, &value);
    }
    if (r >= 0)
        r = weft__buf_put(&text, engine->alloc, "]", 1);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), engine->alloc, ret);
    weft__buf_done(&text, engine->alloc);
    return r;
}

int weft__context_change(weft_engine *engine, const weft_context_change *from, weft_context_done *done, void *ctx) {
    int r = check_change(engine, from);
    context_change *change = r < 0 ? NULL : weft__zalloc(engine->alloc, sizeof *change);
    if (r >= 0)
        r = change ? keep_parts(engine, from, &change->doc) : -ENOMEM;
    if (r < 0) {
        weft__free(engine->alloc, change);
        return r;
    }
    change->engine = engine;
    change->action = from->action;
    change->type = from->type;
    change->done = done;
    change->ctx = ctx;
    weft__list_push(&engine->context_waiting, &change->link);
    engine->context_changes++;
    weft__later(engine->loop, &engine->context_later);
    return 0;
}

/* ---- life ---- */

void weft__context_init(weft_engine *engine) {
    weft__list_init(&engine->context);
    weft__list_init(&engine->context_waiting);
    weft__later_init(&engine->context_later, context_due);
}

void weft__context_drop(weft_engine *engine) {
    weft__later_cancel(&engine->context_later);
    start_context_changes(engine); /* which fail now */
    while (!weft__list_empty(&engine->context))
        drop_entry(engine, WEFT_CONTAINER(engine->context.next, known_entry, link));
}
