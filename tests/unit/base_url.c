/* Endpoint URLs: every scheme, every part, and a sentence for each mistake. */
#include <errno.h>
#include <stdlib.h>

#include "harness.h"
#include "transport.h"

TEST(accepted) {
    static const struct {
        const char *text;
        const char *name, *host;
        int port;
        const char *path, *query;
    } rows[] = {
        {"unix:/run/a.sock", "unix", "", -1, "/run/a.sock", ""},
        {"unix:///run/a.sock", "unix", "", -1, "/run/a.sock", ""},
        {"unix:a.sock", "unix", "", -1, "a.sock", ""},
        {"unix://a.sock", "unix", "", -1, "a.sock", ""},
        {"unix:a b?c#d", "unix", "", -1, "a b?c#d", ""},
        {"UNIX:x", "unix", "", -1, "x", ""},
        {"/run/a.sock", "unix", "", -1, "/run/a.sock", ""},
        {"/run/a:b.sock", "unix", "", -1, "/run/a:b.sock", ""},
        {"./a.sock", "unix", "", -1, "./a.sock", ""},
        {"tcp://h:1", "tcp", "h", 1, "/", ""},
        {"tcp://h:1/", "tcp", "h", 1, "/", ""},
        {"tcp://127.0.0.1:0", "tcp", "127.0.0.1", 0, "/", ""},
        {"tcp://[::1]:65535", "tcp", "::1", 65535, "/", ""},
        {"tcp://[fe80::1%eth0]:4000", "tcp", "fe80::1%eth0", 4000, "/", ""},
        {"tls://example.org:443", "tls", "example.org", 443, "/", ""},
        {"ws://h", "ws", "h", 80, "/", ""},
        {"ws://h/", "ws", "h", 80, "/", ""},
        {"ws://h:8080/a/b?c=d", "ws", "h", 8080, "/a/b", "c=d"},
        {"ws://h/a", "ws", "h", 80, "/a", ""},
        {"ws://h//a", "ws", "h", 80, "//a", ""},
        {"ws://h?a=/b", "ws", "h", 80, "/", "a=/b"},
        {"ws://h/a?", "ws", "h", 80, "/a", ""},
        {"ws://h/a?b?c", "ws", "h", 80, "/a", "b?c"},
        {"ws://h/a?b#c", "ws", "h", 80, "/a", "b"},
        {"ws://h#/a?b", "ws", "h", 80, "/", ""},
        {"wss://h/a", "wss", "h", 443, "/a", ""},
        {"wss://[2001:db8::1]/a", "wss", "2001:db8::1", 443, "/a", ""},
        {"wss://[2001:db8::1]:8443/a?b", "wss", "2001:db8::1", 8443, "/a", "b"},
        {"http://h/rpc", "http", "h", 80, "/rpc", ""},
        {"HTTP://h/rpc", "http", "h", 80, "/rpc", ""},
        {"https://h:1/a:b@c", "https", "h", 1, "/a:b@c", ""},
        {"http://a-very-long-host-name.example.org:12345/with/a/path", "http", "a-very-long-host-name.example.org", 12345,
         "/with/a/path", ""},
        {"stdio:", "stdio", "", -1, "/", ""},
        {"stdio://", "stdio", "", -1, "/", ""},
        {"mem:a", "mem", "", -1, "a", ""},
        {"mem://a", "mem", "", -1, "a", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_url url;
        const char *why = "untouched";
        test_row(rows[i].text);
        int r = weft__transport_parse(NULL, rows[i].text, NULL, &url, &why);
        CHECK_INT(r, 0);
        if (r < 0)
            continue;
        CHECK_STR(why, "untouched");
        CHECK_STR(url.scheme->name, rows[i].name);
        CHECK_STR(url.host, rows[i].host);
        CHECK_INT(url.port, rows[i].port);
        CHECK_STR(url.path, rows[i].path);
        CHECK_STR(url.query, rows[i].query);
        CHECK(url.argv[0] == NULL);
        weft__url_done(&url, NULL);
    }
}

TEST(refused) {
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "begins with"},
        {"unix", "begins with"},
        {"foo:bar", "begins with"},
        {":", "begins with"},
        {"127.0.0.1:80", "begins with"},
        {"htt://h", "begins with"},
        {"unix:", "path of a socket"},
        {"unix://", "path of a socket"},
        {"mem:", "needs a name"},
        {"stdio:x", "nothing behind"},
        {"stdio:///x", "nothing behind"},
        {"tcp:h:1", "//host:port"},
        {"tcp:/h:1", "//host:port"},
        {"http:", "//host:port"},
        {"tcp://", "no host"},
        {"tcp://:1", "no host"},
        {"http:///a", "no host"},
        {"http://?a", "no host"},
        {"tcp://h", "needs a port"},
        {"tls://[::1]", "needs a port"},
        {"tcp://h:", "0 to 65535"},
        {"tcp://h:65536", "0 to 65535"},
        {"tcp://h:99999999999999999999999", "0 to 65535"},
        {"tcp://h:-1", "0 to 65535"},
        {"tcp://h:+1", "0 to 65535"},
        {"tcp://h:1x", "0 to 65535"},
        {"tcp://h:http", "0 to 65535"},
        {"tcp://::1:80", "no host"},
        {"tcp://1::2:80", "0 to 65535"},
        {"tcp://[::1", "[::1]:port"},
        {"tcp://[::1]x:1", "[::1]:port"},
        {"tcp://[]:1", "[::1]:port"},
        {"tcp://[localhost]:1", "[::1]:port"},
        {"tcp://[12]:1", "[::1]:port"},
        {"tcp://h:1/a", "no path"},
        {"tls://h:1?a", "no query"},
        {"http://user@h/", "user name"},
        {"http://user:secret@h/", "user name"},
        {"http://a b/", "ASCII"},
        {"http://h/a b", "ASCII"},
        {"http://h/\r\nX: y", "ASCII"},
        {"http://h/\xc3\xa4", "ASCII"},
        {"http://h/\x7f", "ASCII"},
        {"exec:", "needs a program"},
        {"exec:  ", "needs a program"},
        {"exec:'a", "not closed"},
        {"exec:a \"b", "not closed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_url url = {.port = 4711};
        const char *why = "";
        test_memory memory;
        test_memory_init(&memory, 0);
        test_row(rows[i].text);
        CHECK_INT(weft__transport_parse(NULL, rows[i].text, &memory.alloc, &url, &why), -EINVAL);
        if (!CHECK(strstr(why, rows[i].why) != NULL))
            printf("  is   %s\n", why);
        CHECK_INT(url.port, 4711);
        CHECK_INT(memory.live, 0);
        CHECK_INT(weft__transport_parse(NULL, rows[i].text, NULL, &url, NULL), -EINVAL);
    }
}

TEST(exec_words) {
    static const struct {
        const char *text;
        const char *want; /* words, each in angle brackets */
    } rows[] = {
        {"exec:cat", "<cat>"},
        {"exec: cat ", "<cat>"},
        {"exec:a b\tc", "<a><b><c>"},
        {"exec:a  'b c' d", "<a><b c><d>"},
        {"exec:a \"b c\"", "<a><b c>"},
        {"exec:a b' 'c", "<a><b c>"},
        {"exec:a ''", "<a><>"},
        {"exec:a \"\" b", "<a><><b>"},
        {"exec:a '\"' \"'\"", "<a><\"><'>"},
        {"exec:a\\ b", "<a b>"},
        {"exec:a \\\"", "<a><\">"},
        {"exec:a \"\\\"\"", "<a><\">"},
        {"exec:a '\\'", "<a><\\>"},
        {"exec:a \\\\", "<a><\\>"},
        {"exec:a b\\", "<a><b\\>"},
        {"exec:a $HOME * ~ `x`", "<a><$HOME><*><~><`x`>"},
        {"exec:./a:b?c#d", "<./a:b?c#d>"},
        {"exec:\xc3\xa4", "<\xc3\xa4>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_url url;
        char words[200] = "";
        test_row(rows[i].text);
        int r = weft__transport_parse(NULL, rows[i].text, NULL, &url, NULL);
        CHECK_INT(r, 0);
        if (r < 0)
            continue;
        for (size_t j = 0; url.argv[j]; j++) {
            strcat(words, "<");
            strcat(words, url.argv[j]);
            strcat(words, ">");
        }
        CHECK_TEXT(words, strlen(words), rows[i].want);
        weft__url_done(&url, NULL);
    }
}

TEST(exec_limit) {
    for (int count = WEFT_URL_ARGS; count <= WEFT_URL_ARGS + 1; count++) {
        char text[300] = "exec:";
        weft_url url;
        for (int i = 0; i < count; i++)
            strcat(text, "a ");
        int r = weft__transport_parse(NULL, text, NULL, &url, NULL);
        CHECK_INT(r, count == WEFT_URL_ARGS ? 0 : -EINVAL);
        if (r < 0)
            continue;
        CHECK(url.argv[WEFT_URL_ARGS - 1] && !url.argv[WEFT_URL_ARGS]);
        weft__url_done(&url, NULL);
    }
}

TEST(without_memory) {
    test_memory memory;
    test_memory_init(&memory, 1);
    weft_url url;
    const char *why;
    CHECK_INT(weft__transport_parse(NULL, "mem:a", &memory.alloc, &url, &why), -ENOMEM);
    CHECK_STR(why, "out of memory");
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(CASE(accepted) CASE(refused) CASE(exec_words) CASE(exec_limit) CASE(without_memory))
