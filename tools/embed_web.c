/* embed_web OUT ROOT FILE...: write the files of the dashboard, each compressed with gzip, as tables of C into OUT. The
 * build runs it; it is not installed. FILEs are relative to ROOT and are served under the same names.
 *
 * The tables are the same for the same files: the gzip header has no time in it. The version is a digest of all names and
 * contents. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* One file; the whole dashboard has a budget of 150 KB. */
#define MAX_FILE ((size_t) 8 << 20)
#define VERSION_BYTES 8

static unsigned char content[MAX_FILE + 1], packed[MAX_FILE + MAX_FILE / 1000 + 1024];

static void fail(const char *what, const char *why) {
    fprintf(stderr, "embed_web: %s: %s\n", what, why);
    exit(1);
}

static size_t read_whole(const char *root, const char *name) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", root, name);
    if (n < 0 || (size_t) n >= sizeof path)
        fail(name, strerror(ENAMETOOLONG));
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, strerror(errno));
    size_t len = fread(content, 1, sizeof content, file);
    if (ferror(file))
        fail(path, strerror(errno));
    fclose(file);
    if (len > MAX_FILE)
        fail(path, "larger than 8 MiB");
    return len;
}

/* ---- leaving out what only people read ---- */

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static bool line_is(const unsigned char *line, size_t len, const char *begin) {
    return len >= strlen(begin) && memcmp(line, begin, strlen(begin)) == 0;
}

/* A literal that goes over several lines would lose its blanks. There is none, and a new one stops the build. */
static void check_literals(const char *name, const unsigned char *line, size_t len) {
    size_t ticks = 0;
    for (size_t i = 0; i < len; i++)
        ticks += line[i] == '`';
    if (ticks % 2)
        fail(name, "a template literal goes over several lines, or a line has a single backtick: write \\x60");
}

/* Modules and styles without indentation and without comments that have lines of their own. Lines keep their numbers, so
 * that an error's line is that of the source. */
static size_t trim_lines(const char *name, size_t len) {
    size_t used = 0;
    bool comment = false;
    if (!ends_with(name, ".js") && !ends_with(name, ".css"))
        return len;
    for (size_t at = 0; at < len;) {
        const unsigned char *newline = memchr(content + at, '\n', len - at);
        size_t end = newline ? (size_t) (newline - content) : len, begin = at;
        at = end + 1;
        while (begin < end && (content[begin] == ' ' || content[begin] == '\t'))
            begin++;
        comment = comment || line_is(content + begin, end - begin, "/*");
        if (!comment) {
            check_literals(name, content + begin, end - begin);
            memmove(content + used, content + begin, end - begin);
            used += end - begin;
        } else if (end - begin >= 2 && memcmp(content + end - 2, "*/", 2) == 0) {
            comment = false;
        }
        content[used++] = '\n';
    }
    return used;
}

static size_t pack(const char *name, size_t len) {
    z_stream z = {.next_in = content, .avail_in = (uInt) len, .next_out = packed, .avail_out = (uInt) sizeof packed};
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK || deflate(&z, Z_FINISH) != Z_STREAM_END)
        fail(name, "zlib failed");
    size_t used = z.total_out;
    deflateEnd(&z);
    return used;
}

static void write_bytes(FILE *out, size_t index, size_t len) {
    fprintf(out, "static const unsigned char file_%zu[] = {", index);
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%s%u,", i % 32 == 0 ? "\n    " : "", packed[i]);
    fputs("\n};\n", out);
}

static void digest_file(EVP_MD_CTX *digest, const char *name, size_t len) {
    char size[32];
    int n = snprintf(size, sizeof size, "%zu\n", len);
    EVP_DigestUpdate(digest, name, strlen(name) + 1);
    EVP_DigestUpdate(digest, size, (size_t) n);
    EVP_DigestUpdate(digest, content, len);
}

static void write_version(FILE *out, EVP_MD_CTX *digest) {
    unsigned char bytes[EVP_MAX_MD_SIZE] = {0};
    EVP_DigestFinal_ex(digest, bytes, NULL);
    fputs("const char weft__web_version[] = \"", out);
    for (size_t i = 0; i < VERSION_BYTES; i++)
        fprintf(out, "%02x", bytes[i]);
    fputs("\";\n", out);
}

int main(int argc, char **argv) {
    if (argc < 3)
        fail("usage", "embed_web OUT ROOT FILE...");
    size_t count = (size_t) argc - 3;
    size_t *sizes = calloc(count + 1, sizeof *sizes);
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    FILE *out = fopen(argv[1], "w");
    if (!out || !sizes || !digest || EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1)
        fail(argv[1], strerror(errno));
    fputs("/* Made by tools/embed_web.c. */\n#include \"web_files.h\"\n\n", out);
    for (size_t i = 0; i < count; i++) {
        sizes[i] = trim_lines(argv[i + 3], read_whole(argv[2], argv[i + 3]));
        digest_file(digest, argv[i + 3], sizes[i]);
        write_bytes(out, i, pack(argv[i + 3], sizes[i]));
    }
    fputs("const weft_web_file weft__web_files[] = {\n", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "    {\"%s\", file_%zu, sizeof file_%zu, %zu},\n", argv[i + 3], i, i, sizes[i]);
    fputs("    {0},\n};\n", out);
    write_version(out, digest);
    EVP_MD_CTX_free(digest);
    free(sizes);
    if (fclose(out) != 0)
        fail(argv[1], strerror(errno));
    return 0;
}
