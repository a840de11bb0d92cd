/* The progress bar. */
#include "progress.h"

#include <string.h>

#define BAR_WIDTH 30

void weft__progress_draw(const weft_app *app, double done, int64_t elapsed_ms, const char *note) {
    static const char full[] = "==============================", empty[] = "                              ";
    char line[160];
    if (!app->err.colour)
        return;
    done = done < 0 ? 0 : done > 1 ? 1 : done;
    int width = (int) (done * BAR_WIDTH);
    int64_t left = done > 0 ? (int64_t) ((double) elapsed_ms * (1 - done) / done / 1000 + 0.5) : 0;
    int n = snprintf(line, sizeof line, "[%.*s%.*s] %3d %%  %s  %llds left", width, full, BAR_WIDTH - width, empty,
                     (int) (done * 100), note, (long long) left);
    int room = weft__screen_width(&app->err) - 1;
    fprintf(app->err.file, "\r%.*s\x1b[K", n < room ? n : room, line);
    fflush(app->err.file);
}

void weft__progress_clear(const weft_app *app) {
    if (!app->err.colour)
        return;
    fputs("\r\x1b[K", app->err.file);
    fflush(app->err.file);
}
