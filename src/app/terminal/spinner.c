/* The spinner is drawn by a timer's signal, because what it waits for (a name being resolved, a blocking call) has no loop
 * that could draw it. Its state is global for the same reason: a signal handler gets no argument. The handler only writes.
 */
#include "spinner.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define FIRST_US (100 * 1000)
#define EACH_US (80 * 1000)
#define MAX_LABEL 120

static const char frames[][4] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
static struct {
    volatile sig_atomic_t shown;
    bool running;
    char label[MAX_LABEL];
    size_t len;
    struct sigaction before;
} spinner;

static void put(const char *text, size_t len) {
    ssize_t n = write(STDERR_FILENO, text, len);
    (void) n; /* a terminal that has gone is no reason to stop waiting */
}

static void draw(int number) {
    int saved = errno;
    (void) number;
    put("\r", 1);
    put(frames[(size_t) spinner.shown % (sizeof frames / sizeof frames[0])], 3);
    put(spinner.label, spinner.len);
    spinner.shown = spinner.shown + 1;
    errno = saved;
}

void weft__spinner_start(const weft_app *app, const char *what) {
    struct sigaction action = {.sa_handler = draw, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_interval.tv_usec = EACH_US, .it_value.tv_usec = FIRST_US};
    const char *term = app->err.colour ? "" : NULL; /* where colours work, so does a carriage return */
    if (!term || spinner.running)
        return;
    /* Cut to the width: a line that wraps cannot be taken back. */
    int width = weft__screen_width(&app->err) - 3;
    int n = snprintf(spinner.label, sizeof spinner.label, " %.*s", width > 0 ? width : 0, what);
    spinner.len = (size_t) n < sizeof spinner.label ? (size_t) n : sizeof spinner.label - 1;
    for (size_t i = 0; i < spinner.len; i++)
        if ((unsigned char) spinner.label[i] < ' ')
            spinner.label[i] = '?';
    spinner.shown = 0;
    sigaction(SIGALRM, &action, &spinner.before);
    spinner.running = setitimer(ITIMER_REAL, &timer, NULL) == 0;
}

void weft__spinner_stop(void) {
    static const char clear[] = "\r\x1b[K";
    struct itimerval none = {0};
    if (!spinner.running)
        return;
    setitimer(ITIMER_REAL, &none, NULL);
    sigaction(SIGALRM, &spinner.before, NULL);
    spinner.running = false;
    if (spinner.shown)
        put(clear, sizeof clear - 1);
}
