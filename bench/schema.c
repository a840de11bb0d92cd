/* bench/schema FOLDER [COMMAND...]: checking about 1 KB of params against the schema beside it, in nanoseconds; and, if a
 * command is given, the same by somebody else, in turns with ours. The command prints two figures a line: nanoseconds for
 * reading and checking, and for checking alone; it is run several times. Each figure is the best of its repeats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weft/schema.h>

#include "buf.h"
#include "scan.h"

#define REPEATS 200
#define ROUNDS 200
#define TURNS 5

typedef struct subject {
    weft_schema *schema;
    weft_doc *doc;
    const char *text; /* the params, with slack behind them */
} subject;

static double now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static char *read_whole(const char *folder, const char *name, size_t *ret_len) {
    char path[1024], *text = calloc(1, 64 * 1024);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file || !text) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    *ret_len = fread(text, 1, 64 * 1024 - 1 - WEFT_SLACK, file);
    fclose(file);
    return text;
}

static void check_only(const subject *s) {
    if (weft_schema_check(s->schema, weft_doc_root(s->doc), NULL) < 0)
        abort();
}

/* The text is validated as the peer does it, then checked. */
static void read_and_check(const subject *s) {
    weft_json value = {s->text, 0, NULL};
    const char *end = weft__scan_value(s->text, WEFT_MAX_DEPTH);
    value.len = (size_t) (end - s->text);
    if (!end || weft_schema_check(s->schema, &value, NULL) < 0)
        abort();
}

static double best(void (*once)(const subject *), const subject *s) {
    double least = 1e18;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_ns();
        for (int j = 0; j < ROUNDS; j++)
            once(s);
        double took = (now_ns() - start) / ROUNDS;
        least = took < least ? took : least;
    }
    return least;
}

/* One turn of the other's. */
static int run_other(char *const *argv, double *whole, double *check) {
    int ends[2];
    char line[128] = "";
    if (pipe(ends) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    bool got = out && fgets(line, sizeof line, out);
    if (out)
        fclose(out);
    waitpid(pid, NULL, 0);
    double a, b;
    if (!got || sscanf(line, "%lf %lf", &a, &b) != 2)
        return -1;
    *whole = a < *whole ? a : *whole;
    *check = b < *check ? b : *check;
    return 0;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "bench/schema";
    subject s = {0};
    size_t schema_len, len;
    double whole = 1e18, check = 1e18, other_whole = 1e18, other_check = 1e18;
    char *schema_text = read_whole(folder, "params.schema.json", &schema_len);
    char *text = read_whole(folder, "params.json", &len);
    s.text = text;
    if (weft_schema_compile(schema_text, schema_len, NULL, &s.schema, NULL) < 0 ||
        weft_doc_parse(text, len, NULL, &s.doc) < 0)
        abort();
    bool other = argc > 2;
    for (int i = 0; i < TURNS; i++) {
        double a = best(read_and_check, &s), b = best(check_only, &s);
        whole = a < whole ? a : whole;
        check = b < check ? b : check;
        other = other && run_other(argv + 2, &other_whole, &other_check) == 0;
    }
    printf("%zu bytes of params: checking %.0f ns, reading and checking %.0f ns\n", len - 1, check, whole);
    if (other)
        printf("the same with JSON.parse and a compiled ajv: %.0f ns, %.0f ns; %.2f times ours\n", other_check, other_whole,
               other_whole / whole);
    weft_doc_free(s.doc);
    weft_schema_free(s.schema);
    free(schema_text);
    free(text);
    return 0;
}
