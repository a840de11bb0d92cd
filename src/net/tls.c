/* TLS by OpenSSL over two memory BIOs. Everything that can go wrong ends as a negative errno and a sentence. */
#include "tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

struct weft_tls_ctx {
    const weft_alloc *alloc;
    SSL_CTX *ssl;
    char *server_name;
    size_t refs;
    bool client, insecure, http;
};

struct weft_tls {
    SSL *ssl;
    BIO *in, *out; /* both belong to ssl */
    weft_tls_ctx *ctx;
    char *why;
};

static const unsigned char alpn_http[] = "\x08http/1.1";

/* The oldest error in OpenSSL's queue is the cause, the later ones only say who passed it on. The queue is left empty: what
 * stays there would be taken for the reason of the next failure. */
static void openssl_why(const char *what, char *why) {
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    if (code && ERR_SYSTEM_ERROR(code))
        reason = weft_strerror(-ERR_GET_REASON(code)); /* OpenSSL has no words for these */
    if (why)
        snprintf(why, WEFT_TLS_WHY, "%s: %s", what, reason ? reason : "unknown reason");
    ERR_clear_error();
}

/* ---- contexts ---- */

static int file_error(const char *path, char *why) {
    unsigned long code = ERR_peek_error();
    int r = code && ERR_SYSTEM_ERROR(code) ? -ERR_GET_REASON(code) : -EINVAL;
    openssl_why(path, why);
    return r;
}

/* Where it finds no key OpenSSL only says "unsupported". */
static int key_error(const char *path, char *why) {
    bool none = ERR_GET_REASON(ERR_peek_error()) == ERR_R_UNSUPPORTED;
    int r = file_error(path, why);
    if (none && why)
        snprintf(why, WEFT_TLS_WHY, "%s: there is no private key in it", path);
    return r;
}

/* OpenSSL would ask for a password on the terminal of whoever runs the program, and the loop would wait for it. */
static int no_password(char *buf, int size, int writing, void *ctx) {
    (void) buf, (void) size, (void) writing, (void) ctx;
    return -1;
}

static int load_identity(SSL_CTX *ssl, const weft_tls_opts *opts, char *why) {
    if (!opts->cert)
        return 0;
    const char *key = opts->key ? opts->key : opts->cert;
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    if (SSL_CTX_use_certificate_chain_file(ssl, opts->cert) != 1)
        return file_error(opts->cert, why);
    if (SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ssl) != 1)
        return key_error(key, why);
    return 0;
}

static int load_roots(weft_tls_ctx *ctx, const weft_tls_opts *opts, char *why) {
    if (opts->ca) {
        if (SSL_CTX_load_verify_file(ctx->ssl, opts->ca) != 1)
            return file_error(opts->ca, why);
        if (!ctx->client)
            SSL_CTX_set_client_CA_list(ctx->ssl, SSL_load_client_CA_file(opts->ca));
    } else if (ctx->client && SSL_CTX_set_default_verify_paths(ctx->ssl) != 1)
        return file_error("the system's certificates", why);
    bool verify = ctx->client ? !opts->insecure : opts->ca != NULL;
    SSL_CTX_set_verify(ctx->ssl, verify ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE, NULL);
    return 0;
}

/* A client that offers protocols none of which is ours does not want this server (RFC 7301 section 3.2). */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned in_len,
                       void *arg) {
    (void) ssl;
    (void) arg;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, alpn_http, sizeof alpn_http - 1, in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int set_rules(weft_tls_ctx *ctx, bool http) {
    static const unsigned char session[] = "weft";
    SSL_CTX_set_min_proto_version(ctx->ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx->ssl,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Resumed sessions would skip the client certificate's check unless bound to a context. */
    if (SSL_CTX_set_session_id_context(ctx->ssl, session, sizeof session - 1) != 1)
        return -ENOMEM;
    if (http && ctx->client && SSL_CTX_set_alpn_protos(ctx->ssl, alpn_http, sizeof alpn_http - 1) != 0)
        return -ENOMEM;
    if (http && !ctx->client)
        SSL_CTX_set_alpn_select_cb(ctx->ssl, choose_alpn, NULL);
    return 0;
}

static int fill_ctx(weft_tls_ctx *ctx, const weft_tls_opts *opts, bool http, char *why) {
    ctx->ssl = SSL_CTX_new(ctx->client ? TLS_client_method() : TLS_server_method());
    if (!ctx->ssl)
        return -ENOMEM;
    if (opts->server_name && !(ctx->server_name = weft__strndup(ctx->alloc, opts->server_name, strlen(opts->server_name))))
        return -ENOMEM;
    int r = set_rules(ctx, http);
    if (r >= 0)
        r = load_identity(ctx->ssl, opts, why);
    return r < 0 ? r : load_roots(ctx, opts, why);
}

static int new_ctx(const weft_tls_opts *opts, bool client, bool http, const weft_alloc *alloc, weft_tls_ctx **ret,
                   char *why) {
    weft_tls_ctx *ctx = weft__zalloc(alloc, sizeof *ctx);
    if (why)
        snprintf(why, WEFT_TLS_WHY, "out of memory");
    if (!ctx)
        return -ENOMEM;
    *ctx = (weft_tls_ctx){.alloc = alloc, .refs = 1, .client = client, .http = http, .insecure = opts->insecure};
    ERR_clear_error();
    int r = fill_ctx(ctx, opts, http, why);
    if (r < 0) {
        ERR_clear_error();
        weft__tls_ctx_unref(ctx);
        return r;
    }
    if (why)
        *why = '\0';
    *ret = ctx;
    return 0;
}

int weft__tls_server(const weft_tls_opts *opts, bool http, const weft_alloc *alloc, weft_tls_ctx **ret, char *why) {
    if (!opts->cert) {
        if (why)
            snprintf(why, WEFT_TLS_WHY, "a TLS server needs a certificate and its key");
        return -EINVAL;
    }
    return new_ctx(opts, false, http, alloc, ret, why);
}

int weft__tls_client(const weft_tls_opts *opts, bool http, const weft_alloc *alloc, weft_tls_ctx **ret, char *why) {
    return new_ctx(opts, true, http, alloc, ret, why);
}

weft_tls_ctx *weft__tls_ctx_ref(weft_tls_ctx *ctx) {
    if (ctx)
        ctx->refs++;
    return ctx;
}

weft_tls_ctx *weft__tls_ctx_unref(weft_tls_ctx *ctx) {
    if (!ctx || --ctx->refs)
        return NULL;
    SSL_CTX_free(ctx->ssl);
    weft__free(ctx->alloc, ctx->server_name);
    return weft__free(ctx->alloc, ctx);
}

/* ---- one connection ---- */

static bool is_address(const char *host) {
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Whom the certificate must be for. An address is no name: it is looked for among the certificate's addresses and never
 * sent as SNI (RFC 6066 section 3). */
static int expect_host(weft_tls *tls, const char *host) {
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
    const char *expected = tls->ctx->server_name ? tls->ctx->server_name : host;
    if (!is_address(expected) && SSL_set_tlsext_host_name(tls->ssl, expected) != 1)
        return -ENOMEM;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    int ok = is_address(expected) ? X509_VERIFY_PARAM_set1_ip_asc(param, expected)
                                  : X509_VERIFY_PARAM_set1_host(param, expected, strlen(expected));
    return ok == 1 ? 0 : -ENOMEM;
}

static int start_ssl(weft_tls *tls, const char *host) {
    tls->ssl = SSL_new(tls->ctx->ssl);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        return -ENOMEM;
    }
    /* An empty BIO means "not yet", not "the end". */
    BIO_set_mem_eof_return(tls->in, -1);
    BIO_set_mem_eof_return(tls->out, -1);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    if (!tls->ctx->client) {
        SSL_set_accept_state(tls->ssl);
        return 0;
    }
    SSL_set_connect_state(tls->ssl);
    return expect_host(tls, host);
}

int weft__tls_new(weft_tls_ctx *ctx, const char *host, weft_tls **ret) {
    weft_tls *tls = weft__zalloc(ctx->alloc, sizeof *tls);
    if (!tls)
        return -ENOMEM;
    tls->ctx = weft__tls_ctx_ref(ctx);
    int r = start_ssl(tls, host);
    ERR_clear_error();
    if (r < 0) {
        weft__tls_free(tls);
        return r;
    }
    *ret = tls;
    return 0;
}

weft_tls *weft__tls_free(weft_tls *tls) {
    if (!tls)
        return NULL;
    weft_tls_ctx *ctx = tls->ctx;
    const weft_alloc *alloc = ctx->alloc;
    SSL_free(tls->ssl);
    weft__free(alloc, tls->why);
    weft__free(alloc, tls);
    weft__tls_ctx_unref(ctx);
    return NULL;
}

/* The certificate's own verdict says more than "certificate verify failed". */
static int tls_broken(weft_tls *tls) {
    char why[WEFT_TLS_WHY];
    long verdict = SSL_get_verify_result(tls->ssl);
    if (verdict != X509_V_OK)
        snprintf(why, sizeof why, "the other side's certificate: %s", X509_verify_cert_error_string(verdict));
    else
        openssl_why("TLS", why);
    ERR_clear_error();
    if (!tls->why)
        tls->why = weft__strndup(tls->ctx->alloc, why, strlen(why));
    return -EPROTO;
}

int weft__tls_put(weft_tls *tls, const char *data, size_t len) {
    assert(len <= INT_MAX);
    ERR_clear_error();
    return BIO_write(tls->in, data, (int) len) == (int) len ? 0 : -ENOMEM;
}

int weft__tls_handshake(weft_tls *tls) {
    ERR_clear_error();
    int done = SSL_do_handshake(tls->ssl);
    if (done == 1)
        return 1;
    int error = SSL_get_error(tls->ssl, done);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : tls_broken(tls);
}

int weft__tls_read(weft_tls *tls, char *data, size_t size) {
    ERR_clear_error();
    int n = SSL_read(tls->ssl, data, size > INT_MAX ? INT_MAX : (int) size);
    if (n > 0)
        return n;
    switch (SSL_get_error(tls->ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return -ECONNRESET;
    default:
        return tls_broken(tls);
    }
}

int weft__tls_write(weft_tls *tls, const char *data, size_t len) {
    ERR_clear_error();
    int n = SSL_write(tls->ssl, data, len > INT_MAX ? INT_MAX : (int) len);
    return n > 0 ? n : tls_broken(tls);
}

void weft__tls_close(weft_tls *tls) {
    ERR_clear_error();
    if (SSL_is_init_finished(tls->ssl) && !(SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN))
        SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

weft_bytes weft__tls_output(weft_tls *tls) {
    char *data;
    long len = BIO_get_mem_data(tls->out, &data);
    return (weft_bytes){data, len > 0 ? (size_t) len : 0};
}

/* A memory BIO has no way to skip, but reading from it is only a copy into a small piece of stack. */
void weft__tls_sent(weft_tls *tls, size_t n) {
    char skipped[4096];
    weft_bytes all = weft__tls_output(tls);
    if (n == all.len) {
        (void) BIO_reset(tls->out);
        return;
    }
    while (n) {
        int step = BIO_read(tls->out, skipped, n < sizeof skipped ? (int) n : (int) sizeof skipped);
        assert(step > 0);
        n -= (size_t) step;
    }
}

const char *weft__tls_why(const weft_tls *tls) {
    return tls->why ? tls->why : "";
}

int weft__tls_subject(const weft_tls *tls, char *ret, size_t size) {
    X509 *cert = SSL_get0_peer_certificate(tls->ssl);
    if (!cert || SSL_get_verify_mode(tls->ssl) == SSL_VERIFY_NONE)
        return 0;
    X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *text = NULL;
    int len = at < 0 ? -1 : ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    /* A name with a NUL inside is somebody trying to look like somebody else. */
    if (len > 0 && !memchr(text, 0, (size_t) len))
        snprintf(ret, size, "%.*s", len, (const char *) text);
    else
        X509_NAME_oneline(subject, ret, (int) size);
    OPENSSL_free(text);
    ERR_clear_error();
    return 1;
}
