/* libpq, loaded when a journal on PostgreSQL is opened and not before: with it come Kerberos, LDAP and a dozen more
 * libraries, which no other run of the program should wait for or need. */
#ifndef WEFT_POSTGRES_LIB_H
#define WEFT_POSTGRES_LIB_H

#include <libpq-fe.h>

/* Each function that is used. */
#define WEFT_PG_FUNCTIONS(ROW)                                                                                              \
    ROW(PQbackendPID)                                                                                                       \
    ROW(PQclear)                                                                                                            \
    ROW(PQconnectdbParams)                                                                                                  \
    ROW(PQconsumeInput)                                                                                                     \
    ROW(PQenterPipelineMode)                                                                                                \
    ROW(PQerrorMessage)                                                                                                     \
    ROW(PQfinish)                                                                                                           \
    ROW(PQflush)                                                                                                            \
    ROW(PQfreemem)                                                                                                          \
    ROW(PQgetisnull)                                                                                                        \
    ROW(PQgetlength)                                                                                                        \
    ROW(PQgetResult)                                                                                                        \
    ROW(PQgetvalue)                                                                                                         \
    ROW(PQisBusy)                                                                                                           \
    ROW(PQnotifies)                                                                                                         \
    ROW(PQntuples)                                                                                                          \
    ROW(PQpipelineSync)                                                                                                     \
    ROW(PQresultErrorField)                                                                                                 \
    ROW(PQresultStatus)                                                                                                     \
    ROW(PQsendPrepare)                                                                                                      \
    ROW(PQsendQueryParams)                                                                                                  \
    ROW(PQsendQueryPrepared)                                                                                                \
    ROW(PQsetnonblocking)                                                                                                   \
    ROW(PQsetNoticeReceiver)                                                                                                \
    ROW(PQsocket)                                                                                                           \
    ROW(PQstatus)

#define WEFT_PG_POINTER(name) __typeof__(&(name)) name;
typedef struct weft_pg_lib {
    void *handle;
    WEFT_PG_FUNCTIONS(WEFT_PG_POINTER)
} weft_pg_lib;
#undef WEFT_PG_POINTER

/* -ENOPKG: it is not installed, or too old. */
int weft__pg_lib_load(weft_pg_lib *ret);
void weft__pg_lib_done(weft_pg_lib *lib);

#endif
