/* Several hubs on one database, of which one has the journal: the writer's part, which takes it over, keeps asking whether
 * it is still ours, and says when it is done; and a thread that waits for our turn. See lead.h.
 *
 * weft_hub has a row for each place where a hub has run. That of the owner says how long its lease is. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "lead.h"
#include "postgres_store.h"

#define CONFIRMS 4       /* in the time of a lease */
#define LOOK_MS 250      /* between two looks of one that waits */
#define REGISTER_LOOKS 8 /* so many looks until it says again that it is there */
#define DEAD_LOOKS 20    /* and until it tries again to take what was left without a lease */
#define SIGN_OFF_MS 3000 /* closing waits so long for a database that does not answer */

/* ---- the table ---- */

static int look_for_hubs(weft_pg_conn *conn, bool *ret) {
    PGresult *results[WEFT_PG_AHEAD];
    weft__pg_send(conn,
                  "SELECT count(*) FROM pg_class WHERE relname = 'weft_hub' AND relnamespace = "
                  "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())",
                  NULL);
    int r = weft__pg_run(conn, results);
    if (r == 0)
        *ret = weft__pg_get_int(conn, results[0], 0, 0) > 0;
    weft__pg_clear(conn, results);
    return r;
}

/* Where two begin at once the second finds it. */
int weft__pg_hubs_table(weft_pg *pg, weft_pg_conn *conn, bool make, bool *ret) {
    weft_pg_params schema = {0};
    int r = look_for_hubs(conn, ret);
    if (r < 0 || *ret || !make)
        return r;
    weft__pg_int(&schema, atomic_load(&pg->schema));
    weft__pg_send(conn, "BEGIN", NULL);
    weft__pg_send(conn, "SELECT pg_advisory_xact_lock(22913, $1::int8::int4)", &schema);
    weft__pg_send(conn,
                  "CREATE TABLE IF NOT EXISTS weft_hub (place bytea PRIMARY KEY, id text NOT NULL, name bytea NOT NULL,"
                  " reach bytea NOT NULL, lease bigint NOT NULL, seen timestamptz NOT NULL DEFAULT now())"
                  " WITH (fillfactor = 10)",
                  NULL);
    weft__pg_send(conn, "COMMIT", NULL);
    r = weft__pg_do(conn);
    *ret = r == 0;
    return r;
}

/* ---- taking over ---- */

/* The one that had the journal last. */
typedef struct last_owner {
    bool known, here; /* it has a row; it ran where we do */
    int64_t lease_ms, boot;
} last_owner;

static int find_owner(weft_pg *pg, last_owner *ret) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params owner = {0};
    weft__pg_text(&owner, pg->state.owner);
    weft__pg_send(conn,
                  "SELECT h.place, h.lease, coalesce(w.boot, 0) FROM weft_hub h LEFT JOIN weft_writer w ON w.id = h.id"
                  " WHERE h.id = convert_from($1::bytea, 'UTF8')",
                  &owner);
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    ret->known = weft__pg_rows(conn, results[0]) > 0;
    if (ret->known) {
        weft_bytes place = weft__pg_get_bytes(conn, results[0], 0, 0);
        ret->here = pg->place && strlen(pg->place) == place.len && memcmp(pg->place, place.data, place.len) == 0;
        ret->lease_ms = weft__pg_get_int(conn, results[0], 0, 1);
        ret->boot = weft__pg_get_int(conn, results[0], 0, 2);
    }
    weft__pg_clear(conn, results);
    return 0;
}

/* How long it is known to be without a session: so long ago at least it was told for the last time that the journal is its
 * own. One that has come back since has another boot. */
static int64_t gone_ms(const weft_pg *pg, const last_owner *last) {
    const weft_store_hub *hub = pg->hub;
    bool same = hub && hub->free_owner && strcmp(hub->free_owner, pg->state.owner) == 0 && hub->free_boot == last->boot;
    return same ? weft__lease_now() - hub->free_since : 0;
}

/* The lease that we owe is ours too, until it is over: who takes over from us in the meantime waits for both. */
static void queue_own_row(weft_pg *pg) {
    weft_pg_params row = {0};
    weft__pg_text(&row, pg->place);
    weft__pg_text(&row, pg->id);
    weft__pg_text(&row, pg->name);
    weft__pg_text(&row, pg->reach);
    weft__pg_int(&row, pg->owed_ms > pg->base.lease_ms ? pg->owed_ms : pg->base.lease_ms);
    weft__pg_send(&pg->write,
                  "INSERT INTO weft_hub (place, id, name, reach, lease) VALUES ($1::bytea, convert_from($2::bytea, 'UTF8'),"
                  " $3::bytea, $4::bytea, $5::int8) ON CONFLICT (place) DO UPDATE SET id = excluded.id,"
                  " name = excluded.name, reach = excluded.reach, lease = excluded.lease, seen = now()",
                  &row);
    weft__pg_send(&pg->write, "DELETE FROM weft_hub WHERE seen < now() - interval '7 days'", NULL);
}

/* One whose connection broke comes back within half of its lease, and should not have lost the journal for that. */
int weft__pg_succeed(weft_pg *pg, char *ret_why) {
    bool table = pg->place != NULL;
    last_owner last = {0};
    int r = table ? 0 : look_for_hubs(&pg->write, &table);
    if (r == 0 && table && *pg->state.owner)
        r = find_owner(pg, &last);
    if (r < 0)
        return r;
    bool left = *pg->state.owner && !last.here;
    if (left && pg->place && !last.known) {
        snprintf(
            ret_why, WEFT_STORE_WHY,
            "the hub that had the journal did not say that it has ended, and keeps no lease: make sure that it has, then "
            "start a hub without store.wait once and stop it");
        return -EOWNERDEAD;
    }
    int64_t lease_ms = left && last.known ? last.lease_ms : 0, gone = gone_ms(pg, &last);
    if (pg->place && gone < lease_ms / 2)
        return -EBUSY;
    pg->owed_ms = gone < lease_ms ? lease_ms - gone : 0;
    if (pg->place)
        queue_own_row(pg);
    return 0;
}

static int ask_owner(weft_pg *pg) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params row = {0};
    pg->asked_ms = weft__lease_now();
    if (pg->place) {
        weft__pg_text(&row, pg->place);
        pthread_mutex_lock(&pg->lock);
        weft__pg_text(&row, pg->reach);
        weft__pg_send(conn, "UPDATE weft_hub SET seen = now(), reach = $2::bytea WHERE place = $1::bytea", &row);
        pthread_mutex_unlock(&pg->lock);
    }
    weft__pg_send(conn, "SELECT owner FROM weft_state", NULL);
    int last = conn->queued - 1;
    conn->warned = false;
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    weft_bytes owner = weft__pg_get_bytes(conn, results[last], 0, 0);
    bool ours =
        weft__pg_rows(conn, results[last]) == 1 && strlen(pg->id) == owner.len && memcmp(pg->id, owner.data, owner.len) == 0;
    weft__pg_clear(conn, results);
    if (!ours)
        return -ESTALE;
    if (conn->warned)
        return -EAGAIN;
    atomic_store(&pg->base.confirmed_ms, pg->asked_ms);
    return 0;
}

int weft__pg_wait_out(weft_pg *pg, char *ret_why) {
    int64_t until_ms = weft__lease_now() + pg->owed_ms, every_ms = weft__pg_confirm_wait(pg), left_ms;
    struct pollfd stop = {.fd = pg->stop, .events = POLLIN};
    int r = 0;
    while (r == 0 && (left_ms = until_ms - weft__lease_now()) > 0) {
        int64_t wait_ms = every_ms > 0 && every_ms < left_ms ? every_ms : left_ms;
        if (poll(&stop, 1, (int) wait_ms) == 1)
            r = -ECANCELED;
        else if (pg->place)
            r = ask_owner(pg);
    }
    if (r == 0 && pg->place)
        r = ask_owner(pg);
    if (r < 0) {
        snprintf(ret_why, WEFT_STORE_WHY, "the connection was lost while the lease of the hub before was waited for");
        weft__pg_disconnect(&pg->write);
    }
    return r == -ESTALE ? -EBUSY : r;
}

/* ---- having it ---- */

int weft__pg_confirm_wait(const weft_pg *pg) {
    int64_t every_ms = pg->base.lease_ms / CONFIRMS;
    return !pg->place ? -1 : every_ms ? (int) every_ms : 1;
}

/* A change of how we are reached is told at once: whoever makes one pokes the writer. */
void weft__pg_confirm(weft_pg *pg) {
    bool stored = false;
    uint64_t seen = pg->seen;
    if (!pg->place || atomic_load(&pg->base.trouble) == -ESTALE)
        return;
    /* What is in doubt belongs to a batch, which settles it. */
    if (pg->doubt || pg->given_up)
        return;
    if (!atomic_exchange(&pg->told_anew, false) && weft__lease_now() - pg->asked_ms < weft__pg_confirm_wait(pg))
        return;
    int r = pg->write.pg ? 0 : weft__pg_claim_again(pg, &stored);
    if (r == 0)
        r = ask_owner(pg);
    weft__pg_say_trouble(pg, r);
    if (r < 0 && pg->write.pg)
        weft__pg_lost(pg, r, seen);
}

void weft__pg_sign_off(weft_pg *pg) {
    weft_pg_conn *conn = &pg->write;
    weft_pg_params id = {0};
    weft__pg_text(&id, pg->id);
    conn->stop = -1;
    conn->deadline_ns = weft__clock_ns() + (int64_t) SIGN_OFF_MS * 1000000;
    weft__pg_send(conn, "ROLLBACK", NULL); /* of one that looked, and was refused */
    weft__pg_send(conn, "UPDATE weft_state SET owner = '' WHERE owner = convert_from($1::bytea, 'UTF8')", &id);
    (void) weft__pg_do(conn); /* who takes over waits for the lease, if there is one */
}

/* ---- waiting for it ---- */

struct weft_lead {
    const weft_store_kind *kind;
    weft_store_opts opts;
    weft_store_hub hub;
    int stop, changed; /* eventfds */
    weft_pg *pg;       /* only to look with: its connection that listens */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    weft_lead_view view;
    weft_store *store;
    char free_owner[WEFT_EPOCH + 1];
};

/* What a look finds. */
typedef struct leader {
    bool held;                  /* somebody has it */
    char owner[WEFT_EPOCH + 1]; /* or had it last; "": and said that it is done */
    bool here;                  /* where we are */
    int64_t lease_ms;           /* 0: it keeps none, or is not known */
    int64_t boot;
    int64_t at_ms; /* when we knew */
} leader;

static bool views_differ(const weft_lead_view *a, const weft_lead_view *b) {
    return a->state != b->state || strcmp(a->why, b->why) != 0 || strcmp(a->name, b->name) != 0 ||
           strcmp(a->reach, b->reach) != 0;
}

static void show(weft_lead *lead, const weft_lead_view *view, weft_store *store) {
    pthread_mutex_lock(&lead->lock);
    bool differs = views_differ(&lead->view, view);
    lead->view = *view;
    lead->store = store;
    pthread_mutex_unlock(&lead->lock);
    if (differs)
        (void) eventfd_write(lead->changed, 1);
}

static void take_text(const weft_pg_conn *conn, const PGresult *result, int column, char *ret, size_t size) {
    weft_bytes text = weft__pg_get_bytes(conn, result, 0, column);
    bool fits = text.len < size;
    memcpy(ret, text.data, fits ? text.len : 0);
    ret[fits ? text.len : 0] = '\0';
}

static int register_hub(weft_lead *lead) {
    weft_pg_conn *conn = &lead->pg->listen;
    weft_pg_params row = {0};
    weft__pg_text(&row, lead->hub.place);
    weft__pg_text(&row, lead->hub.name);
    weft__pg_send(conn,
                  "INSERT INTO weft_hub (place, id, name, reach, lease) VALUES ($1::bytea, '', $2::bytea, ''::bytea, 0)"
                  " ON CONFLICT (place) DO UPDATE SET name = excluded.name, seen = now()",
                  &row);
    return weft__pg_do(conn);
}

/* Who has it, and does anybody? */
static int look_at_leader(weft_lead *lead, weft_lead_view *view, leader *ret) {
    weft_pg_conn *conn = &lead->pg->listen;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params params = {0};
    *ret = (leader){0};
    weft__pg_int(&params, atomic_load(&lead->pg->schema));
    weft__pg_text(&params, lead->hub.place);
    weft__pg_send(conn,
                  "SELECT coalesce(h.name, ''), coalesce(h.reach, ''), s.owner, coalesce(h.lease, 0), coalesce(w.boot, 0),"
                  " coalesce(h.place = $2::bytea, false)::int::int8,"
                  " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database ="
                  " (SELECT oid FROM pg_database WHERE datname = current_database()) AND classid = 22912 AND objid ="
                  " $1::int8::oid) FROM weft_state s LEFT JOIN weft_hub h ON h.id = s.owner AND s.owner <> ''"
                  " LEFT JOIN weft_writer w ON w.id = s.owner",
                  &params);
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    if (weft__pg_rows(conn, results[0]) == 1) {
        take_text(conn, results[0], 2, ret->owner, sizeof ret->owner);
        ret->lease_ms = weft__pg_get_int(conn, results[0], 0, 3);
        ret->boot = weft__pg_get_int(conn, results[0], 0, 4);
        ret->here = weft__pg_get_int(conn, results[0], 0, 5) != 0;
        ret->held = weft__pg_get_int(conn, results[0], 0, 6) != 0;
        ret->at_ms = weft__lease_now();
    }
    /* One whose session is gone may come back, and is still there for those who speak to it. */
    *view->name = *view->reach = '\0';
    if (*ret->owner) {
        take_text(conn, results[0], 0, view->name, sizeof view->name);
        weft__lead_clean(view->name);
        take_text(conn, results[0], 1, view->reach, sizeof view->reach);
    }
    weft__pg_clear(conn, results);
    return 0;
}

/* Has it been gone for long enough? */
static bool is_left(weft_lead *lead, const leader *found) {
    weft_store_hub *hub = &lead->hub;
    bool same = hub->free_owner && strcmp(lead->free_owner, found->owner) == 0 && hub->free_boot == found->boot;
    if (found->held || !same) {
        memcpy(lead->free_owner, found->owner, sizeof lead->free_owner);
        hub->free_owner = found->held ? NULL : lead->free_owner;
        hub->free_boot = found->boot;
        hub->free_since = found->at_ms;
    }
    return !found->held && (!*found->owner || found->here || found->at_ms - hub->free_since >= found->lease_ms / 2);
}

static int connect_to_look(weft_lead *lead) {
    bool there;
    int r = weft__pg_session(lead->pg, &lead->pg->listen, WEFT_PG_LISTENS);
    if (r == 0)
        r = weft__pg_hubs_table(lead->pg, &lead->pg->listen, true, &there);
    return r;
}

/* false: told to stop. */
static bool rest(const weft_lead *lead) {
    struct pollfd stop = {.fd = lead->stop, .events = POLLIN};
    return poll(&stop, 1, LOOK_MS) == 0;
}

static bool is_final(int r, bool known) {
    bool passes = r == -EBUSY || r == -EOWNERDEAD;
    return !passes && (!known || r == -ENOTSUP || r == -EINVAL || r == -EKEYREJECTED || r == -ENOPKG);
}

/* Look until nobody has it, and try again then. 1 try now, 0 told to stop. */
static int wait_for_turn(weft_lead *lead, weft_lead_view *view, bool dead) {
    weft_pg_conn *conn = &lead->pg->listen;
    for (unsigned looks = 0;; looks++) {
        leader found = {.held = true};
        int r = conn->pg ? 0 : connect_to_look(lead);
        if (r == 0 && looks % REGISTER_LOOKS == 0)
            r = register_hub(lead);
        if (r == 0)
            r = look_at_leader(lead, view, &found);
        if (r < 0) {
            snprintf(view->why, sizeof view->why, "the database is away%s%s", *conn->why ? ": " : "", conn->why);
            weft__pg_disconnect(conn);
            lead->hub.free_owner = NULL;
        } else if (!dead) {
            *view->why = '\0';
        }
        view->state = WEFT_LEAD_WAITING;
        show(lead, view, NULL);
        if (r == 0 && is_left(lead, &found) && (!dead || looks >= DEAD_LOOKS))
            return 1;
        if (!rest(lead))
            return 0;
    }
}

static void *lead_main(void *ctx) {
    weft_lead *lead = ctx;
    weft_lead_view view = {.state = WEFT_LEAD_LOOKING};
    bool known = false;
    int r;
    do {
        weft_store *store = NULL;
        char why[WEFT_STORE_WHY] = "";
        r = weft__store_open(lead->kind, &lead->opts, &store, why);
        if (r == -ECANCELED)
            break;
        bool is_over = r == 0 || is_final(r, known);
        known |= !is_over;
        snprintf(view.why, sizeof view.why, "%s", r == -EBUSY ? "" : why);
        view.r = r;
        view.state = r == 0 ? WEFT_LEAD_OURS : is_over ? WEFT_LEAD_FAILED : WEFT_LEAD_WAITING;
        if (is_over) {
            show(lead, &view, store);
            break;
        }
    } while (wait_for_turn(lead, &view, r == -EOWNERDEAD) == 1);
    weft__pg_disconnect(&lead->pg->listen);
    return NULL;
}

static int make_looker(weft_lead *lead) {
    const weft_store_opts *opts = &lead->opts;
    weft_pg *pg = lead->pg = weft__zalloc(opts->alloc, sizeof *pg);
    if (!pg)
        return -ENOMEM;
    pg->base.alloc = opts->alloc;
    pg->url = weft__strndup(opts->alloc, opts->url ? opts->url : "", opts->url ? strlen(opts->url) : 0);
    pg->listen = (weft_pg_conn){.lib = &pg->lib, .stop = lead->stop};
    return pg->url ? 0 : -ENOMEM;
}

static void free_lead(weft_lead *lead) {
    const weft_alloc *alloc = lead->opts.alloc;
    if (lead->pg) {
        weft__pg_lib_done(&lead->pg->lib);
        weft__free(alloc, lead->pg->url);
        weft__free(alloc, lead->pg);
    }
    if (lead->stop >= 0)
        close(lead->stop);
    if (lead->changed >= 0)
        close(lead->changed);
    weft__free(alloc, lead);
}

int weft__lead_new(const weft_store_kind *kind, const weft_store_opts *opts, weft_lead **ret) {
    if (!kind->reach)
        return -ENOTSUP;
    weft_lead *lead = weft__zalloc(opts->alloc, sizeof *lead);
    if (!lead)
        return -ENOMEM;
    lead->kind = kind;
    lead->opts = *opts;
    lead->hub = *opts->hub;
    lead->opts.hub = &lead->hub;
    lead->stop = lead->hub.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lead->changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = lead->stop < 0 || lead->changed < 0 ? -errno : make_looker(lead);
    /* Without the library opening says so. */
    if (r == 0)
        (void) weft__pg_lib_load(&lead->pg->lib);
    if (r < 0) {
        free_lead(lead);
        return r;
    }
    pthread_mutex_init(&lead->lock, NULL);
    r = pthread_create(&lead->thread, NULL, lead_main, lead);
    if (r != 0) {
        pthread_mutex_destroy(&lead->lock);
        free_lead(lead);
        return -r;
    }
    *ret = lead;
    return 0;
}

int weft__lead_fd(const weft_lead *lead) {
    return lead->changed;
}

void weft__lead_look(weft_lead *lead, weft_lead_view *ret) {
    eventfd_t count;
    (void) eventfd_read(lead->changed, &count);
    pthread_mutex_lock(&lead->lock);
    *ret = lead->view;
    pthread_mutex_unlock(&lead->lock);
}

weft_store *weft__lead_take(weft_lead *lead) {
    pthread_mutex_lock(&lead->lock);
    weft_store *store = lead->store;
    lead->store = NULL;
    pthread_mutex_unlock(&lead->lock);
    return store;
}

weft_lead *weft__lead_free(weft_lead *lead) {
    if (!lead)
        return NULL;
    pthread_mutex_lock(&lead->lock);
    bool over = lead->view.state == WEFT_LEAD_OURS || lead->view.state == WEFT_LEAD_FAILED;
    pthread_mutex_unlock(&lead->lock);
    if (!over) /* the descriptor is the store's own by now */
        (void) eventfd_write(lead->stop, 1);
    pthread_join(lead->thread, NULL);
    if (lead->store) {
        weft__store_resign(lead->store); /* nothing has worked for it */
        weft__store_close(lead->store);
    }
    pthread_mutex_destroy(&lead->lock);
    free_lead(lead);
    return NULL;
}

/* ---- for people ---- */

static int list_hubs(weft_pg *pg, weft_lead_hub ret[WEFT_LEAD_HUBS]) {
    weft_pg_conn *conn = &pg->listen;
    PGresult *results[WEFT_PG_AHEAD];
    bool there = false;
    int r = weft__pg_session(pg, conn, WEFT_PG_LISTENS);
    if (r == 0)
        r = weft__pg_hubs_table(pg, conn, false, &there);
    if (r < 0 || !there)
        return r;
    weft__pg_send(conn,
                  "SELECT h.name, (h.id <> '' AND h.id = s.owner)::int::int8,"
                  " (extract(epoch FROM clock_timestamp() - h.seen) * 1000)::int8 FROM weft_hub h, weft_state s"
                  " ORDER BY h.seen DESC LIMIT 16",
                  NULL);
    r = weft__pg_run(conn, results);
    int count = r == 0 ? weft__pg_rows(conn, results[0]) : r;
    for (int i = 0; i < count; i++) {
        weft_bytes name = weft__pg_get_bytes(conn, results[0], i, 0);
        snprintf(ret[i].name, sizeof ret[i].name, "%.*s", (int) name.len, name.data);
        weft__lead_clean(ret[i].name);
        ret[i].leads = weft__pg_get_int(conn, results[0], i, 1) != 0;
        ret[i].seen_ms = weft__pg_get_int(conn, results[0], i, 2);
    }
    weft__pg_clear(conn, results);
    return count;
}

int weft__lead_list(const char *url, weft_lead_hub ret[WEFT_LEAD_HUBS], char *ret_why) {
    weft_pg *pg = weft__zalloc(NULL, sizeof *pg);
    if (!pg)
        return -ENOMEM;
    int r = weft__pg_lib_load(&pg->lib);
    pg->listen = (weft_pg_conn){.lib = &pg->lib, .stop = -1, .deadline_ns = weft__clock_ns() + (int64_t) 5000 * 1000000};
    pg->url = weft__strndup(NULL, url, strlen(url));
    if (r == 0)
        r = pg->url ? list_hubs(pg, ret) : -ENOMEM;
    if (r < 0)
        snprintf(ret_why, WEFT_STORE_WHY, "%s", *pg->listen.why ? pg->listen.why : weft_strerror(r));
    weft__pg_disconnect(&pg->listen);
    weft__pg_lib_done(&pg->lib);
    weft__free(NULL, pg->url);
    weft__free(NULL, pg);
    return r;
}
