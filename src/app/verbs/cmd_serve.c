/* weft serve: a daemon in the current folder, until it is told to stop. */
#include "serve.h"

const weft_option weft__serve_options[] = {
    WEFT_OPTION(weft_serve_settings, listen, list, "listen", 'l', "URL", "serve here instead of the usual places"),
    WEFT_OPTION(weft_serve_settings, stdio, flag, "stdio", 0, NULL,
                "serve whoever started this, on standard input and output; the same as --listen stdio:"),
    {.name = "auth",
     .kind = WEFT_OPTION_text,
     .value = "HOW",
     .offset = offsetof(weft_serve_settings, auth),
     .help = "what network clients must show",
     .choices = "token none"},
    WEFT_OPTION(weft_serve_settings, token_file, text, "token-file", 0, "FILE",
                "the token (default .weft/token, made on the first start)"),
    WEFT_OPTION(weft_serve_settings, tls_cert, text, "tls-cert", 0, "FILE", "certificate for tls://, wss:// and https://"),
    WEFT_OPTION(weft_serve_settings, tls_key, text, "tls-key", 0, "FILE", "the key that belongs to it"),
    WEFT_OPTION(weft_serve_settings, tls_ca, text, "tls-ca", 0, "FILE", "clients must have a certificate signed by this"),
    WEFT_OPTION(weft_serve_settings, hosts, list, "allow-host", 0, "NAME", "a Host header to accept besides loopback's"),
    WEFT_OPTION(weft_serve_settings, origins, list, "allow-origin", 0, "ORIGIN",
                "a web page's origin to accept besides our own"),
    WEFT_OPTION(weft_serve_settings, insecure_listen, flag, "insecure-listen", 0, NULL,
                "listen beyond this machine without TLS"),
    WEFT_OPTION(weft_serve_settings, rate, number, "rate", 0, "N", "requests a minute for a network client (default 6000)"),
    WEFT_OPTION(weft_serve_settings, no_rate, flag, "no-rate", 0, NULL, "no limit of requests"),
    WEFT_OPTION(weft_serve_settings, relay, list, "relay", 0, "HUB",
                "follow this hub and serve what happens there: a name of \"weft hubs\", a URL, or NAME=URL"),
    WEFT_OPTION(weft_serve_settings, relay_token_file, text, "relay-token-file", 0, "FILE",
                "the token for hubs that are written as URLs"),
    WEFT_OPTION(weft_serve_settings, relay_ca, text, "relay-ca", 0, "FILE", "who signs the certificates of these hubs"),
    WEFT_OPTION(weft_serve_settings, standby_of, text, "standby-of", 0, "URL",
                "copy the journal of the hub there until \"weft promote\"; then be a hub"),
    WEFT_OPTION(weft_serve_settings, standby_token, text, "standby-token", 0, "FILE",
                "file with the token for it, which has the scope \"standby\""),
    WEFT_OPTION(weft_serve_settings, standby_ca, text, "standby-ca", 0, "FILE", "who signs its certificate"),
    WEFT_OPTION(weft_serve_settings, discard, flag, "discard", 0, NULL,
                "with --standby-of: move a journal aside that is here and is no copy of that hub's"),
    WEFT_OPTION(weft_serve_settings, store_wait, flag, "wait", 0, NULL,
                "wait while another hub has the journal on PostgreSQL, and take over when it is gone"),
    WEFT_OPTION(weft_serve_settings, aiwg, flag, "aiwg", 0, NULL, "be an AIWG daemon: its files in .aiwg, its agent"),
    {0},
};

static const char *const examples[] = {
    "weft serve",
    "on the Unix socket .weft/daemon.sock, and on http and ws at 127.0.0.1:16180 with a token",
    "weft serve --listen unix:/tmp/x.sock --listen tcp://127.0.0.1:4000",
    "somewhere else",
    "weft serve --listen wss://0.0.0.0:8443/ws --tls-cert c.pem --tls-key k.pem",
    "for other machines; --allow-host NAME for each name that they use for this one",
    "weft serve --relay box",
    "a relay: what happens at the hub box, for clients of its own",
    "weft serve --standby-of wss://hub.example:8443/ws --standby-token token",
    "copy that hub's journal, to take its place when it is gone",
    NULL,
};

const weft_verb weft__serve_verb = {
    .name = "serve",
    .help = "run the hub of this folder in the foreground",
    .begins = "the hub",
    .usage = "",
    .examples = examples,
    .about =
        "It runs agents, stores what happens in .weft, and answers everything \"weft methods\" lists. WEFT_DEBUG=1 logs\n"
        "every message on standard error, secrets removed. SIGINT and SIGTERM let tasks and open requests finish (10 s\n"
        "at most); a second one does not. SIGHUP reads the configuration again; \"weft config -h\" has more about that.\n",
    .options = weft__serve_options,
    .settings_size = sizeof(weft_serve_settings),
    .run = weft__serve_run,
};
