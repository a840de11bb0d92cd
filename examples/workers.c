/* A pool of threads that do what takes long; the loop goes on answering others meanwhile.
 *
 *     workers unix:./workers.sock &
 *     weft call unix:./workers.sock primes below=1000000 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define THREADS 4
#define MOST_WAITING 1000

/* A request on its way: filled by the loop, worked on by a thread, answered by the loop. */
typedef struct job {
    struct job *next;
    weft_req *req;
    int64_t below, found;
    weft_errand done;
} job;

typedef struct pool {
    weft_loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t some;
    job *first, **last;
    int waiting;
    bool over;
    pthread_t threads[THREADS];
} pool;

/* ---- on the loop's thread ---- */

/* A req may only be touched here. If its connection has gone meanwhile, the answer goes nowhere. */
static void answer_job(weft_loop *loop, void *ctx) {
    job *self = ctx;
    (void) loop;
    weft_reply(self->req, weft_int(self->found));
    free(self);
}

static int primes(weft_req *req, const weft_json *params, void *ctx) {
    pool *all = ctx;
    job *self = all->waiting < MOST_WAITING ? calloc(1, sizeof *self) : NULL;
    if (!self)
        return weft_refuse(req, 503, "Too much to do", "overloaded");
    self->req = req;
    self->below = weft_get_int(params, "below", 100);
    self->done = (weft_errand){.run = answer_job, .ctx = self};
    pthread_mutex_lock(&all->lock);
    *all->last = self;
    all->last = &self->next;
    all->waiting++;
    pthread_mutex_unlock(&all->lock);
    pthread_cond_signal(&all->some);
    return 0;
}

/* ---- on the others ---- */

static job *next_job(pool *all) {
    pthread_mutex_lock(&all->lock);
    while (!all->first && !all->over)
        pthread_cond_wait(&all->some, &all->lock);
    job *self = all->first;
    if (self) {
        all->first = self->next;
        all->last = all->first ? all->last : &all->first;
        all->waiting--;
    }
    pthread_mutex_unlock(&all->lock);
    return self;
}

static bool is_prime(int64_t n) {
    for (int64_t i = 2; i * i <= n; i++)
        if (n % i == 0)
            return false;
    return n > 1;
}

static void *work(void *ctx) {
    pool *all = ctx;
    for (job *self; (self = next_job(all));) {
        for (int64_t n = 2; n < self->below; n++)
            self->found += is_prime(n);
        weft_loop_post(all->loop, &self->done); /* the only call that another thread may make */
    }
    return NULL;
}

static void end_pool(pool *all) {
    pthread_mutex_lock(&all->lock);
    all->over = true;
    pthread_mutex_unlock(&all->lock);
    pthread_cond_broadcast(&all->some);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all->threads[i], NULL);
    weft_loop_once(all->loop, false); /* what they posted last */
}

int main(int argc, char **argv) {
    static const weft_method methods[] = {
        {.name = "primes", .handler = primes, .help = "How many primes there are below a number"}, {0}};
    pool all = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};
    weft_service *service = NULL;
    weft_server *server = NULL;
    all.last = &all.first;

    int r = weft_loop_new(NULL, &all.loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods, .ctx = &all}, &service);
    if (r >= 0)
        r = weft_server_new(all.loop, &(weft_server_opts){.service = service}, &server);
    if (r >= 0 && (r = weft_server_listen(server, argc > 1 ? argv[1] : "unix:./workers.sock", NULL)) < 0)
        fprintf(stderr, "workers: %s\n", weft_server_trouble(server));
    if (r >= 0) {
        for (int i = 0; i < THREADS; i++)
            pthread_create(&all.threads[i], NULL, work, &all);
        r = weft_server_run(server);
        end_pool(&all);
    }
    weft_server_free(server);
    weft_service_unref(service);
    weft_loop_free(all.loop);
    return r < 0;
}
