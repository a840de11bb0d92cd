/* Making a connection the writer's: the journal is the one it was, nothing that was acknowledged is gone from it, the
 * database waits for the standbys it must, and what became of a commit whose answer was lost is known. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "postgres_store.h"

/* What our own row says. boot 0: there is none. */
struct own_row {
    int64_t boot, turn;
};

static void say_standbys(const weft_pg *pg, int has, char *ret_why) {
    snprintf(
        ret_why, WEFT_STORE_WHY,
        "the database does not wait for %s: synchronous_standby_names makes a commit wait for %d, and store.standbys is "
        "%d",
        has ? "enough standbys" : "a standby", has, pg->standbys);
}

int weft__pg_check_state(const weft_pg *pg, const weft_pg_state *state, char *ret_why) {
    if (strcmp(state->epoch, pg->base.epoch) != 0) {
        snprintf(ret_why, WEFT_STORE_WHY, "the database has another journal now");
        return -ESTALE;
    }
    if (strcmp(state->owner, pg->shared ? "" : pg->id) != 0) {
        snprintf(ret_why, WEFT_STORE_WHY, "another hub has taken the journal");
        return -ESTALE;
    }
    if (state->standbys < pg->standbys) {
        say_standbys(pg, state->standbys, ret_why);
        return -ENOLINK;
    }
    return 0;
}

static int check_journal(weft_pg *pg, const weft_pg_state *state, char *ret_why) {
    if (*pg->expect && strcmp(pg->expect, state->epoch) != 0) {
        snprintf(ret_why, WEFT_STORE_WHY, "this is another journal than before: its epoch is %s and was %s", state->epoch,
                 pg->expect);
        return -EKEYREJECTED;
    }
    if (state->standbys < pg->standbys) {
        say_standbys(pg, state->standbys, ret_why);
        return -ENOLINK;
    }
    memcpy(pg->base.epoch, state->epoch, sizeof pg->base.epoch);
    pg->seen = (uint64_t) state->head;
    return 0;
}

/* A standby that became the primary has everything it was waited for. One that was not waited for may not. */
static int check_lost(const weft_pg *pg, const weft_pg_state *state, const struct own_row *own, char *ret_why) {
    if (own->boot && own->turn >= pg->turn && state->writes >= pg->settled.writes && (uint64_t) state->head >= pg->seen)
        return 0;
    snprintf(ret_why, WEFT_STORE_WHY,
             "the database has lost what was acknowledged: it ends at event %lld, and %llu was the last",
             (long long) state->head, (unsigned long long) pg->seen);
    return -ESTALE;
}

static int look_at_state(weft_pg *pg, struct own_row *ret_own) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params id = {0};
    weft__pg_text(&id, pg->id);
    weft__pg_begin(conn);
    weft__pg_send_named(conn, "writer", &id);
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    r = weft__pg_take_state(conn, results[1], &pg->state);
    bool known = weft__pg_rows(conn, results[2]) == 1;
    ret_own->boot = known ? weft__pg_get_int(conn, results[2], 0, 0) : 0;
    ret_own->turn = known ? weft__pg_get_int(conn, results[2], 0, 1) : 0;
    weft__pg_clear(conn, results);
    return r;
}

/* Rows of writers that are gone: all others, or those that nobody has seen for long. */
static void queue_first(weft_pg *pg) {
    weft_pg_conn *conn = &pg->write;
    weft_pg_params made = {0}, owner = {0};
    weft__pg_text(&made, pg->id);
    weft__pg_int(&made, pg->boot);
    weft__pg_text(&owner, pg->shared ? "" : pg->id);
    weft__pg_send(conn,
                  pg->shared ? "DELETE FROM weft_writer WHERE seen < now() - interval '90 days'" : "DELETE FROM weft_writer",
                  NULL);
    weft__pg_send(conn, "INSERT INTO weft_writer (id, boot, turn) VALUES (convert_from($1::bytea, 'UTF8'), $2::int8, 0)",
                  &made);
    weft__pg_send(conn, "UPDATE weft_state SET owner = convert_from($1::bytea, 'UTF8')", &owner);
}

static void queue_again(weft_pg *pg, int64_t turn) {
    weft_pg_params params = {0};
    weft__pg_text(&params, pg->id);
    weft__pg_int(&params, pg->boot);
    weft__pg_int(&params, turn);
    weft__pg_send_named(&pg->write, "put_turn", &params);
}

/* The commit waits for the standbys, and so proves that everything before it is with them. */
static int commit_claim(weft_pg *pg, char *ret_why) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    conn->warned = false;
    weft__pg_send_named(conn, "commit", NULL);
    weft__pg_send_named(conn, "standbys", NULL);
    int last = conn->queued - 1, r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    int standbys = weft__pg_count_standbys(weft__pg_get_bytes(conn, results[last], 0, 0).data);
    weft__pg_clear(conn, results);
    if (standbys >= pg->standbys)
        return conn->warned ? -EAGAIN : 0;
    say_standbys(pg, standbys, ret_why);
    return -ENOLINK;
}

static int claim_journal(weft_pg *pg, bool first, bool *ret_stored, char *ret_why) {
    struct own_row own;
    int r = look_at_state(pg, &own);
    if (r == 0)
        r = first ? check_journal(pg, &pg->state, ret_why) : weft__pg_check_state(pg, &pg->state, ret_why);
    if (r == 0 && !first)
        r = check_lost(pg, &pg->state, &own, ret_why);
    if (r < 0)
        return r;
    /* Larger than any that a transaction of ours may have left anywhere. */
    pg->boot = (own.boot > pg->boot ? own.boot : pg->boot) + 1;
    if (first && (r = weft__pg_succeed(pg, ret_why)) < 0)
        return r;
    if (first)
        queue_first(pg);
    else
        queue_again(pg, own.turn);
    r = commit_claim(pg, ret_why);
    if (r < 0)
        return r;
    *ret_stored = pg->doubt && own.turn > pg->turn;
    pg->turn = own.turn;
    pg->doubt = false;
    /* What is stored is told first. */
    if (!*ret_stored)
        weft__pg_settle(pg);
    return 0;
}

int weft__pg_claim(weft_pg *pg, bool first, bool *ret_stored, char *ret_why) {
    weft_pg_conn *conn = &pg->write;
    bool there;
    int r = weft__pg_session(pg, conn, WEFT_PG_WRITES);
    *ret_stored = false;
    weft__pg_forget_streams(pg);
    if (r == 0 && first)
        r = weft__pg_migrate(pg, conn, ret_why);
    if (r == 0 && first && pg->place)
        r = weft__pg_hubs_table(pg, conn, true, &there);
    if (r == 0)
        r = weft__pg_statements(conn, WEFT_PG_WRITES);
    if (r == 0)
        r = claim_journal(pg, first, ret_stored, ret_why);
    if (r < 0)
        weft__pg_disconnect(conn);
    return r;
}

void weft__pg_settle(weft_pg *pg) {
    pthread_mutex_lock(&pg->lock);
    pg->settled = (weft_pg_settled){.boot = pg->boot, .writes = pg->state.writes};
    pthread_mutex_unlock(&pg->lock);
    pthread_cond_broadcast(&pg->changed);
}
