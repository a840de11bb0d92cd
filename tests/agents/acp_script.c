/* An ACP agent that does exactly what its arguments say, one after the other, and so can do everything wrong.
 *
 *     hear=TEXT    read a line, which must contain TEXT     until=TEXT  read lines until one contains TEXT
 *     reply=JSON   answer the last request with a result    error=JSON  with an error
 *     say=TEXT     write a line                             err=TEXT    write a line to standard error
 *     chunk=TEXT   send TEXT as a message chunk of session s1
 *     huge=MIB     write a line of so many MiB              close       close standard output
 *     eof          read until the end of the input          linger      stay, whatever happens at the input
 *     deaf         ignore SIGTERM                           exit=N, crash
 *
 * It exits with 99 when it hears something else than it should, and with 98 at an unexpected end of its input. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char *line;
static size_t size;
static char last_id[64] = "null";

/* The id of a request stands before its method; the text is our own side's, so that looking for it is enough. */
static void note_id(void) {
    const char *id = strstr(line, "\"id\":");
    if (!id || !strstr(line, "\"method\":"))
        return;
    snprintf(last_id, sizeof last_id, "%.*s", (int) strcspn(id + 5, ",}"), id + 5);
}

static int hear(void) {
    if (getline(&line, &size, stdin) < 0)
        return 0;
    note_id();
    return 1;
}

static void expect(const char *text) {
    if (!hear())
        exit(98);
    if (strstr(line, text))
        return;
    fprintf(stderr, "expected %s, heard %s", text, line);
    exit(99);
}

static void until(const char *text) {
    do
        if (!hear())
            exit(98);
    while (!strstr(line, text));
}

static void huge(int mebibytes) {
    char *text = malloc(1 << 20);
    memset(text, 'x', 1 << 20);
    printf("{\"jsonrpc\":\"2.0\",\"method\":\"_huge\",\"params\":{\"text\":\"");
    for (int i = 0; i < mebibytes; i++)
        fwrite(text, 1, 1 << 20, stdout);
    printf("\"}}\n");
    free(text);
}

static _Noreturn void linger(void) {
    for (;;)
        pause();
}

static _Noreturn void crash(void) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    abort();
}

static void act(const char *verb, const char *text) {
    if (strcmp(verb, "hear") == 0)
        expect(text);
    else if (strcmp(verb, "until") == 0)
        until(text);
    else if (strcmp(verb, "reply") == 0)
        printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", last_id, text);
    else if (strcmp(verb, "error") == 0)
        printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}\n", last_id, text);
    else if (strcmp(verb, "say") == 0)
        printf("%s\n", text);
    else if (strcmp(verb, "err") == 0)
        fprintf(stderr, "%s\n", text);
    else if (strcmp(verb, "chunk") == 0)
        printf("{\"jsonrpc\":\"2.0\",\"method\":\"session/"
               "update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":"
               "\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%s\"}}}}\n",
               text);
    else if (strcmp(verb, "huge") == 0)
        huge(atoi(text));
    else if (strcmp(verb, "close") == 0)
        fclose(stdout);
    else if (strcmp(verb, "eof") == 0)
        while (hear())
            ;
    else if (strcmp(verb, "deaf") == 0)
        signal(SIGTERM, SIG_IGN);
    else if (strcmp(verb, "linger") == 0)
        linger();
    else if (strcmp(verb, "crash") == 0)
        crash();
    else if (strcmp(verb, "exit") == 0)
        exit(atoi(text));
    else
        exit(97);
    if (strcmp(verb, "close") != 0)
        fflush(stdout);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char verb[16];
        size_t len = strcspn(argv[i], "=");
        snprintf(verb, sizeof verb, "%.*s", (int) len, argv[i]);
        act(verb, argv[i][len] ? argv[i] + len + 1 : "");
    }
    free(line);
    return 0;
}
