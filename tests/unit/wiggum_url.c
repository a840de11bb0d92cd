/* URLs of the preview: which are, what file they are, and what a file is. */
#include <errno.h>

#include "harness.h"
#include "wiggum.h"

static const struct {
    const char *url, *path; /* NULL: refused */
    int r;
} rows[] = {
    {"/", "", 0},
    {"", "", 0},
    {"/index.html", "index.html", 0},
    {"app.js", "app.js", 0},
    {"/a/b.js?v=1#x", "a/b.js", 0},
    {"?x=//y", "", 0},
    {"#/route", "", 0},
    {"/a/", "a/", 0},
    {"/a//b", "a/b", 0},
    {"/./a/./b", "a/b", 0},
    {"/a/../b", "b", 0},
    {"/../../etc/passwd", "etc/passwd", 0},
    {"/a/..", "", 0},
    {"/%2e%2e/%2E%2E/x", "x", 0},
    {"/a/.%2e/b", "b", 0},
    {"/sp%20ace/%C3%A9", "sp ace/\xC3\xA9", 0},
    {"/a%2Fb", NULL, -EINVAL},
    {"/a%5cb", NULL, -EINVAL},
    {"/%00", NULL, -EINVAL},
    {"/%", NULL, -EINVAL},
    {"/%4", NULL, -EINVAL},
    {"/%zz", NULL, -EINVAL},
    {"/%ff", NULL, -EINVAL},
    {"/a b", NULL, -EINVAL},
    {"/a\nb", NULL, -EINVAL},
    {"\\\\host\\x", NULL, -EINVAL},
    {"/\xff", NULL, -EINVAL},
    {"//host/x", NULL, -EXDEV},
    {"http://localhost/", NULL, -EXDEV},
    {"HTTPS:x", NULL, -EXDEV},
    {"javascript:alert(1)", NULL, -EXDEV},
    {"data:text/html,x", NULL, -EXDEV},
    {"file:///etc/passwd", NULL, -EXDEV},
    {"/a:b", "a:b", 0},
};

TEST(urls) {
    char path[WIGGUM_URL];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].url);
        snprintf(path, sizeof path, "untouched");
        CHECK_INT(weft__wiggum_path(rows[i].url, path), rows[i].r);
        CHECK_TEXT(path, strlen(path), rows[i].path ? rows[i].path : "untouched");
    }
    test_row(NULL);
}

TEST(long_ones) {
    static char url[WIGGUM_URL + 8], path[WIGGUM_URL];
    memset(url, 'a', sizeof url - 1);
    CHECK_INT(weft__wiggum_path(url, path), -EINVAL);
    url[WIGGUM_URL - 1] = '\0';
    CHECK_INT(weft__wiggum_path(url, path), 0);
    CHECK_INT(strlen(path), WIGGUM_URL - 1);
    for (size_t i = 0; i + 1 < WIGGUM_URL; i++)
        url[i] = i % 2 ? 'a' : '/';
    CHECK_INT(weft__wiggum_path(url, path), 0);
}

TEST(types) {
    CHECK_STR(weft__wiggum_mime("a/b.HTML"), "text/html; charset=utf-8");
    CHECK_STR(weft__wiggum_mime("b.mjs"), "text/javascript; charset=utf-8");
    CHECK_STR(weft__wiggum_mime("x.wasm"), "application/wasm");
    CHECK_STR(weft__wiggum_mime("a.b/c"), "application/octet-stream");
    CHECK_STR(weft__wiggum_mime(".env"), "application/octet-stream");
    CHECK(weft__wiggum_has_extension("a/b.js") && !weft__wiggum_has_extension("a.b/c") &&
          !weft__wiggum_has_extension(".env"));
}

TEST_MAIN(CASE(urls) CASE(long_ones) CASE(types))
