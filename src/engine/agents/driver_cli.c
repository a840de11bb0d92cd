/* Agents that are a command line: the prompt is an argument or standard input, the answer is what they print, and the exit
 * status says how it went. They ask nothing and remember nothing.
 *
 * A run is over when the guard says that nothing of it is left and everything it wrote has been read. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli_argv.h"
#include "driver_single.h"
#include "loop.h"
#include "output.h"
#include "process.h"
#include "sum.h"
#include "watch.h"
#include "write_pipe.h"

/* Who is silent for so long in the middle of a line waits for somebody to read it: a question, a progress bar. */
#define SILENCE_MS 100
/* What a person needs of a long complaint, as a rule, is its end. */
#define COMPLAINT 4096
/* One read of a pipe, which holds as much. */
#define READ_SIZE ((size_t) 64 * 1024)
/* Reads at the end. Nothing of the program is left, so this is what its pipe held; unless a stranger got hold of it. */
#define LAST_READS 32
/* As weft__process_start() has it. */
#define GRACE_MS 5000

typedef struct stream {
    weft_run *run;
    weft_run_stream which;
    int fd; /* -1: it has ended */
    weft_watch *watch;
    weft_output output;
    weft_timer silence;
} stream;

struct weft_run {
    weft_loop *loop;
    const weft_alloc *alloc;
    weft_run_host host;
    void *ctx;
    weft_process *process;
    char *program, *folder; /* for sentences */
    stream streams[2];
    int in; /* its stdin; -1: closed */
    weft_watch *in_watch;
    weft_buf prompt; /* what of it is still to be written */
    int64_t grace_ms;
    weft_timer mute; /* it closed its output: how long it may live on */
    weft_later drain;
    bool started; /* that was told, so it may be heard */
    bool paused;
    bool gone;      /* the process has; end says how */
    bool ended;     /* on_end was called */
    bool no_memory; /* for what it wrote */
    weft_process_end end;
    int calls; /* callbacks that are under way: freed within one, it is freed behind it */
    bool freed;
    char complaint[COMPLAINT + 1]; /* the end of its stderr */
    size_t complaint_len;
    bool complaint_cut;
};

/* ---- callbacks and their way back ---- */

static void enter_run(weft_run *run) {
    run->calls++;
}

static void release_run(weft_run *run) {
    for (int i = 0; i < 2; i++)
        weft__output_done(&run->streams[i].output);
    weft__free(run->alloc, run->program);
    weft__free(run->alloc, run->folder);
    weft__free(run->alloc, run);
}

static void leave_run(weft_run *run) {
    if (--run->calls == 0 && run->freed)
        release_run(run);
}

/* ---- how it ended ---- */

static void keep_complaint(weft_run *run, weft_bytes text) {
    size_t keep = text.len < COMPLAINT ? COMPLAINT - text.len : 0;
    if (text.len > COMPLAINT) {
        text = (weft_bytes){text.data + text.len - COMPLAINT, COMPLAINT};
        run->complaint_cut = true;
    }
    if (run->complaint_len > keep) {
        memmove(run->complaint, run->complaint + run->complaint_len - keep, keep);
        run->complaint_len = keep;
        run->complaint_cut = true;
    }
    memcpy(run->complaint + run->complaint_len, text.data, text.len);
    run->complaint_len += text.len;
}

/* As it was written, from the beginning of a line or at least of a character. NULL: it said nothing. */
static const char *complaint_of(weft_run *run) {
    char *text = run->complaint;
    text[run->complaint_len] = '\0';
    if (text[strspn(text, " \t\r\n")] == '\0')
        return NULL;
    if (!run->complaint_cut)
        return text;
    char *line = strchr(text, '\n');
    if (line && line[1])
        return line + 1;
    while (weft__utf8_follows((unsigned char) *text))
        text++;
    return text;
}

static bool may_go_better(int error) {
    return error == -EAGAIN || error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -ETXTBSY ||
           error == -EIO;
}

/* The sentence goes where the complaint was: of a program that did not start there is none. */
static weft_run_end not_started(weft_run *run) {
    int error = run->end.error;
    const char *why = error == -ENOENT   ? "there is no such program"
                      : error == -EACCES ? "it is there, but may not be run"
                                         : weft_strerror(error);
    if (run->end.folder)
        snprintf(run->complaint, sizeof run->complaint, "cannot work in %s: %s", run->folder, weft_strerror(error));
    else
        snprintf(run->complaint, sizeof run->complaint, "%s: %s", run->program, why);
    return (weft_run_end){
        .reason = "spawnFailed", .retryable = may_go_better(error), .error = run->complaint, .exit_code = -1};
}

static weft_run_end end_of_program(weft_run *run, char *sentence, size_t size) {
    weft_run_end end = {.exit_code = run->end.exit_code, .signal = run->end.signal};
    if (end.exit_code == 0) {
        end.ok = true;
        return end;
    }
    end.retryable = true;
    end.reason = end.signal ? "signalled" : "exited";
    end.error = complaint_of(run);
    if (!end.error && end.signal)
        snprintf(sentence, size, "ended by signal %d (%s)", end.signal, strsignal(end.signal));
    else if (!end.error)
        snprintf(sentence, size, "exited with status %d", end.exit_code);
    end.error = end.error ? end.error : sentence;
    return end;
}

static void tell_end(weft_run *run) {
    char sentence[80];
    weft_run_end end = run->end.error ? not_started(run) : end_of_program(run, sentence, sizeof sentence);
    if (run->no_memory)
        end = (weft_run_end){.reason = "outOfMemory",
                             .retryable = true,
                             .error = "there was no memory for what it wrote",
                             .exit_code = run->end.exit_code,
                             .signal = run->end.signal};
    run->ended = true;
    end.cut = run->streams[0].output.lossy;
    run->host.on_end(run->ctx, &end);
}

/* ---- its output ---- */

static void on_text(void *ctx, weft_bytes text) {
    stream *s = ctx;
    weft_run *run = s->run;
    if (s->which == WEFT_RUN_STDERR)
        keep_complaint(run, text);
    if (!run->freed && run->host.on_output)
        run->host.on_output(run->ctx, s->which, text);
}

/* What could not be kept cannot be told: it is not let go on as if nothing had happened. */
static void stop_for_memory(weft_run *run) {
    if (run->freed)
        return;
    run->no_memory = true;
    weft__process_stop(run->process, true);
}

static void close_stream(stream *s) {
    weft_run *run = s->run;
    s->watch = weft__watch_free(s->watch);
    weft__timer_stop(run->loop, &s->silence);
    close(s->fd);
    s->fd = -1;
}

/* Nobody will hear of it any more: it has the grace time to end by itself. */
static void outlive_output(weft_run *run) {
    if (!run->gone)
        weft__timer_set(run->loop, &run->mute, weft__add_ms(weft__loop_fresh_now(run->loop), run->grace_ms));
}

static void end_output_stream(stream *s) {
    weft_run *run = s->run;
    close_stream(s);
    if (weft__output_end(&s->output) < 0)
        stop_for_memory(run);
    if (!run->freed && s->which == WEFT_RUN_STDOUT)
        outlive_output(run);
}

/* One read. 1: there may be more; 0: nothing now, or it has ended. */
static int read_some(stream *s) {
    weft_run *run = s->run;
    ssize_t n = read(s->fd, run->loop->read, READ_SIZE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        end_output_stream(s);
        return 0;
    }
    if (weft__output_feed(&s->output, run->loop->read, (size_t) n) < 0)
        stop_for_memory(run);
    if (!run->freed)
        weft__timer_set(run->loop, &s->silence,
                        weft__output_holds(&s->output) ? weft_loop_now(run->loop) + SILENCE_MS : INT64_MAX);
    return 1;
}

static void on_readable(void *ctx, unsigned what) {
    stream *s = ctx;
    weft_run *run = s->run;
    (void) what;
    enter_run(run);
    read_some(s);
    if (!run->freed && run->gone)
        weft__later(run->loop, &run->drain);
    leave_run(run);
}

static void on_silence(weft_timer *timer) {
    stream *s = WEFT_CONTAINER(timer, stream, silence);
    weft_run *run = s->run;
    enter_run(run);
    weft__output_flush(&s->output);
    leave_run(run);
}

static void on_mute(weft_timer *timer) {
    weft_run *run = WEFT_CONTAINER(timer, weft_run, mute);
    weft__process_stop(run->process, false);
}

static void listen_or_not(weft_run *run) {
    for (int i = 0; i < 2; i++)
        if (run->streams[i].watch && run->started)
            weft__watch_set(run->streams[i].watch, run->paused ? 0 : WEFT_WATCH_READ);
}

/* ---- the end ---- */

/* What it wrote last lies in the pipes. When they are empty nothing more comes, also where somebody else holds them open. */
static void read_last_output(stream *s) {
    weft_run *run = s->run;
    int left = LAST_READS;
    while (!run->freed && !run->paused && s->fd >= 0 && left && read_some(s) > 0)
        left--;
    if (!run->freed && !run->paused && s->fd >= 0)
        end_output_stream(s);
}

static void on_drain(weft_later *later) {
    weft_run *run = WEFT_CONTAINER(later, weft_run, drain);
    if (!run->gone || run->ended)
        return;
    enter_run(run);
    for (int i = 0; i < 2 && !run->freed; i++)
        read_last_output(&run->streams[i]);
    if (!run->freed && run->streams[0].fd < 0 && run->streams[1].fd < 0)
        tell_end(run);
    leave_run(run);
}

static void close_input(weft_run *run) {
    run->in_watch = weft__watch_free(run->in_watch);
    weft__buf_done(&run->prompt, run->alloc);
    if (run->in >= 0)
        close(run->in);
    run->in = -1;
}

static void on_process_start(void *ctx, pid_t pid) {
    weft_run *run = ctx;
    enter_run(run);
    if (run->host.on_process)
        run->host.on_process(run->ctx, pid);
    run->started = true;
    if (!run->freed)
        listen_or_not(run);
    leave_run(run);
}

static void on_process_end(void *ctx, const weft_process_end *end) {
    weft_run *run = ctx;
    run->gone = true;
    run->end = *end;
    weft__timer_stop(run->loop, &run->mute);
    close_input(run);
    weft__later(run->loop, &run->drain);
}

/* ---- its input ---- */

static void on_writable(void *ctx, unsigned what) {
    weft_run *run = ctx;
    (void) what;
    ssize_t n = weft__write_pipe(run->in, weft__buf_head(&run->prompt), weft__buf_len(&run->prompt));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        weft__buf_take(&run->prompt, run->alloc, (size_t) n);
    if (n < 0 || !weft__buf_len(&run->prompt))
        close_input(run); /* all of it, or it does not want to know */
}

/* ---- the driver ---- */

static int start_process(weft_run *run, const weft_run_spec *spec, const weft_cli_argv *argv, int ret_fds[3]) {
    weft_process_opts opts = {
        .loop = spec->loop,
        .alloc = spec->alloc,
        .guard = spec->program,
        .argv = argv->argv,
        .env = argv->env,
        .folder = spec->folder,
        .grace_ms = run->grace_ms,
        .ctx = run,
        .on_start = on_process_start,
        .on_end = on_process_end,
    };
    return weft__process_start(&opts, &run->process, ret_fds);
}

static int watch_pipes(weft_run *run) {
    int r = 0;
    for (int i = 0; i < 2 && r >= 0; i++) {
        stream *s = &run->streams[i];
        r = weft__watch_new(run->loop, s->fd, on_readable, s, &s->watch);
    }
    if (r < 0 || !weft__buf_len(&run->prompt)) {
        close_input(run);
        return r;
    }
    r = weft__watch_new(run->loop, run->in, on_writable, run, &run->in_watch);
    return r < 0 ? r : weft__watch_set(run->in_watch, WEFT_WATCH_WRITE);
}

static int start_cli_run(weft_run *run, const weft_run_spec *spec, const weft_cli_argv *argv) {
    int fds[3];
    run->program = weft__strndup(run->alloc, argv->argv[0], strlen(argv->argv[0]));
    run->folder = weft__strndup(run->alloc, spec->folder, strlen(spec->folder));
    if (!run->program || !run->folder)
        return -ENOMEM;
    int r = argv->on_stdin ? weft__buf_put(&run->prompt, run->alloc, spec->prompt, strlen(spec->prompt)) : 0;
    if (r == 0)
        r = start_process(run, spec, argv, fds);
    if (r < 0)
        return r;
    run->in = fds[0];
    run->streams[0].fd = fds[1];
    run->streams[1].fd = fds[2];
    return watch_pipes(run);
}

static weft_run *run_new(const weft_run_spec *spec, const weft_run_host *host, void *ctx) {
    weft_run *run = weft__zalloc(spec->alloc, sizeof *run);
    if (!run)
        return NULL;
    run->loop = spec->loop;
    run->alloc = spec->alloc;
    run->host = *host;
    run->ctx = ctx;
    run->in = -1;
    run->grace_ms = spec->grace_ms > 0 ? spec->grace_ms : GRACE_MS;
    weft__timer_init(&run->mute, on_mute);
    weft__later_init(&run->drain, on_drain);
    for (int i = 0; i < 2; i++) {
        stream *s = &run->streams[i];
        s->run = run;
        s->which = i ? WEFT_RUN_STDERR : WEFT_RUN_STDOUT;
        s->fd = -1;
        weft__output_init(&s->output, spec->alloc, on_text, s);
        weft__timer_init(&s->silence, on_silence);
    }
    return run;
}

static weft_run *cli_free(weft_run *run) {
    if (!run || run->freed)
        return NULL;
    run->freed = true;
    run->process = weft__process_free(run->process);
    weft__later_cancel(&run->drain);
    weft__timer_stop(run->loop, &run->mute);
    close_input(run);
    for (int i = 0; i < 2; i++)
        if (run->streams[i].fd >= 0)
            close_stream(&run->streams[i]);
    if (!run->calls)
        release_run(run);
    return NULL;
}

static int cli_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    weft_cli_argv argv;
    int r = weft__cli_argv_init(&argv, spec);
    if (r < 0)
        return r;
    weft_run *run = run_new(spec, host, ctx);
    r = run ? start_cli_run(run, spec, &argv) : -ENOMEM;
    weft__cli_argv_done(&argv);
    if (r < 0) {
        cli_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

static int cli_answer(weft_run *run, const char *key, const char *option) {
    (void) run, (void) key, (void) option;
    return -ENOENT; /* it never asks */
}

static void cli_cancel(weft_run *run, bool force) {
    weft__process_stop(run->process, force);
}

static void cli_pause(weft_run *run, bool paused) {
    run->paused = paused;
    listen_or_not(run);
    if (!paused && run->gone)
        weft__later(run->loop, &run->drain);
}

static const weft_single cli_runs = {
    .start = cli_start,
    .answer = cli_answer,
    .cancel = cli_cancel,
    .pause = cli_pause,
    .free = cli_free,
};

static int cli_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    return weft__single_open(&cli_runs, spec, host, ctx, ret);
}

const weft_driver weft__driver_cli = {.name = "cli", .never_asks = true, .open = cli_open, WEFT_SINGLE};
