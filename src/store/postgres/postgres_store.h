/* The PostgreSQL store, in parts: postgres.c opens and closes, postgres_lib.c loads libpq, postgres_conn.c sends and waits,
 * postgres_schema.c knows the tables and the statements, postgres_claim.c makes a connection the writer's and finds out what
 * became of a commit whose answer was lost, postgres_writer.c is the thread that commits, postgres_append.c,
 * postgres_documents.c and postgres_trim.c are what it commits, postgres_follow.c tells of what others wrote,
 * postgres_reader.c reads, postgres_lead.c takes turns with other hubs.
 *
 * One connection writes, one reads, and where several stores share the journal one listens; each belongs to a thread.
 *
 * A transaction of the writer first locks the one row of weft_state. So all writers stand in one line, and positions have no
 * holes. It is sent in two pipelines: what must be known, and everything else with the commit. Each transaction has a
 * number, its turn, which is stored with it in the writer's own row. When the answer to a commit is lost, or the database
 * warns that it did not wait for its standbys, nobody guesses: the next connection locks the row again, which an old
 * transaction holds until it is over, and looks at the turn. Then it is committed once more: as it was, if it is not there;
 * or, if it is, a transaction that only says so, whose commit waits for the standbys like every other and so proves all
 * before it.
 *
 * A page is handed over when everything it can have seen is known to be durable: "settled". */
#ifndef WEFT_POSTGRES_STORE_H
#define WEFT_POSTGRES_STORE_H

#include "map.h"
#include "postgres_conn.h"
#include "store_worker.h"

#define WEFT_PG_ARRAYS 8 /* of one statement */

/* The one row that every transaction locks. */
typedef struct weft_pg_state {
    int64_t version;
    char epoch[WEFT_EPOCH + 1];
    char owner[WEFT_EPOCH + 1]; /* the writer that has the journal for itself; "": several share it */
    int64_t head, trimmed;      /* the last gseq given, the highest that was removed */
    int64_t rows, bytes;
    int64_t streams; /* the last number of a stream */
    int64_t writes;  /* transactions so far */
    int standbys;    /* that a commit waits for */
} weft_pg_state;

/* What the writer knows of a stream. True as long as nobody else has written. */
typedef struct weft_pg_stream {
    weft_node node;
    int64_t id; /* 0: not known yet */
    int64_t head;
    int64_t bytes; /* that this transaction adds */
    bool changed;  /* in this transaction */
    char name[];
} weft_pg_stream;

/* What readers may rely on. */
typedef struct weft_pg_settled {
    int64_t boot;   /* of the writer's connection */
    int64_t writes; /* transactions up to this one are durable */
} weft_pg_settled;

typedef struct weft_pg {
    weft_store base;
    weft_pg_lib lib;
    char *url;
    bool shared;
    int standbys;            /* as many as there must be */
    char id[WEFT_EPOCH + 1]; /* of this writer */
    char expect[WEFT_EPOCH + 1];
    int stop; /* descriptor that is readable when the store closes */
    weft_pg_conn write, read, listen;
    weft_store_worker writer, reader;
    pthread_t listener;
    bool listening;
    /* The writer's thread only, once it runs. */
    weft_pg_state state; /* as the transaction under way found it, and will leave it */
    int64_t boot, turn;  /* of the connection; of the last transaction that is known to be durable */
    bool doubt;          /* turn + 1 may have been committed */
    bool given_up;       /* the store closes, and the database did not come back in time */
    uint64_t seen;       /* the last gseq followers are told of */
    weft_map streams;
    size_t stream_count;
    int64_t streams_at; /* what is known of them was true behind this many writes */
    weft_pg_array arrays[WEFT_PG_ARRAYS];
    weft_link missed; /* deliveries of what others wrote, until it is known to be durable */
    /* One of several hubs (lead.h). */
    char *place, *name;               /* NULL: we are not */
    int64_t owed_ms;                  /* the lease of the one before, which is waited for */
    const struct weft_store_hub *hub; /* while it opens */
    int64_t asked_ms;                 /* when it was last asked whether the journal is ours */
    int64_t turn_ms;                  /* when the transaction under way began */
    /* Between threads. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    weft_pg_settled settled;
    bool stopping;
    char *reach;
    _Atomic bool told_anew; /* reach has changed */
    _Atomic int64_t schema; /* its number: in the name of the channel, and of the lock */
} weft_pg;

/* postgres_schema.c */
enum weft_pg_role { WEFT_PG_WRITES, WEFT_PG_READS, WEFT_PG_LISTENS };
/* A session as the store needs it. */
int weft__pg_session(weft_pg *pg, weft_pg_conn *conn, enum weft_pg_role role);
/* Prepare what the role uses. The tables must be there. */
int weft__pg_statements(weft_pg_conn *conn, enum weft_pg_role role);
/* Make the tables unless they are there. -ENOTSUP of a newer version, with a sentence. */
int weft__pg_migrate(weft_pg *pg, weft_pg_conn *conn, char *ret_why);
/* Queue BEGIN and the lock of the state, and read it from the second answer. */
void weft__pg_begin(weft_pg_conn *conn);
int weft__pg_take_state(const weft_pg_conn *conn, const PGresult *result, weft_pg_state *ret);
/* How many standbys a value of synchronous_standby_names makes a commit wait for. */
int weft__pg_count_standbys(const char *names);
/* The channel of the journal. */
void weft__pg_channel(const weft_pg *pg, char ret[32]);
/* The events of an answer with the columns gseq, seq, time, type, data, stream. Borrowed from it. */
weft_event weft__pg_take_event(const weft_pg_conn *conn, const PGresult *result, int row);

/* postgres_claim.c */
/* Connect the writer and settle what was in doubt. 0; what may pass (-ENOTCONN, -EAGAIN, -ENOLINK the database does not wait
 * for the standbys it must, -EBUSY); -ECANCELED, -ETIMEDOUT at the end of patience; or what does not pass (-ESTALE, or when
 * first, what weft__store_open says), with a sentence. */
int weft__pg_claim(weft_pg *pg, bool first, bool *ret_stored, char *ret_why);
/* Readers may rely on the state as it is now. */
void weft__pg_settle(weft_pg *pg);
/* The state is what it must be for us to write. */
int weft__pg_check_state(const weft_pg *pg, const weft_pg_state *state, char *ret_why);

/* postgres_append.c */
/* Begin a transaction for these appends: everything that must be known, positions and outcomes. Nothing is stored yet. */
int weft__pg_look(weft_pg *pg, weft_link *jobs);
/* Queue what stores them. */
int weft__pg_put(weft_pg *pg, weft_link *jobs);
void weft__pg_forget_streams(weft_pg *pg);

/* postgres_documents.c */
int weft__pg_put_documents(weft_pg *pg, const weft_link *jobs);

/* postgres_trim.c: begin a transaction for one piece of a trim, and queue what removes it. job->step is how many events go;
 * *ret_more: there may be more. */
int weft__pg_trim(weft_pg *pg, weft_trim_job *job, bool *ret_more);

/* postgres_follow.c */
/* Gather what others wrote up to the state's head, in the transaction under way. */
int weft__pg_gather_missed(weft_pg *pg);
/* Likewise all there is, outside of one. */
int weft__pg_look_for_missed(weft_pg *pg);
void weft__pg_drop_missed(weft_pg *pg);
void *weft__pg_listener_main(void *ctx);

/* postgres_lead.c */
/* The table of the hubs is there. ret_made: it may be made; else *ret says whether it is. */
int weft__pg_hubs_table(weft_pg *pg, weft_pg_conn *conn, bool make, bool *ret);
/* In the transaction that takes the journal: may we, from the one who had it, and what must be waited for? -EOWNERDEAD: it
 * has not said that it is done, and keeps no lease. Queues our own row. */
int weft__pg_succeed(weft_pg *pg, char *ret_why);
/* Wait until nothing of the one before can run any more. */
int weft__pg_wait_out(weft_pg *pg, char *ret_why);
/* How long the writer may wait for jobs; -1: for ever. */
int weft__pg_confirm_wait(const weft_pg *pg);
/* Ask, if it is time to, whether the journal is still ours. */
void weft__pg_confirm(weft_pg *pg);
/* Nothing of us works for the journal any more. */
void weft__pg_sign_off(weft_pg *pg);

/* postgres_writer.c: connect again, and say how it went. */
int weft__pg_claim_again(weft_pg *pg, bool *ret_stored);
void weft__pg_say_trouble(weft_pg *pg, int r);
void weft__pg_lost(weft_pg *pg, int r, uint64_t seen);

void *weft__pg_writer_main(void *ctx);
void *weft__pg_reader_main(void *ctx);
/* Wait until it is worth trying again. -ECANCELED: the store stops, and the grace is over. */
int weft__pg_pause(weft_pg_conn *conn, int *wait_ms);

#endif
