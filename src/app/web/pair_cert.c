/* Making a certificate with OpenSSL, and looking at the one that is there. */
#include "pair_cert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "private_file.h"

#define DAY ((long) 24 * 3600)
#define CERT_DAYS 365
/* A device that is paired today should not have to be paired again next week. */
#define CERT_LEFT_DAYS 30
/* A key and a certificate of P-256 are about 1 KiB. */
#define CERT_FILE 16384

static int write_fingerprint(X509 *cert, char ret[WEFT_FINGERPRINT]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (X509_digest(cert, EVP_sha256(), digest, &len) != 1 || len != 32)
        return -EIO;
    for (size_t i = 0; i < len; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    return 0;
}

/* ---- the one that is there ---- */

static bool is_for_address(X509 *cert, const char *address) {
    time_t later = time(NULL) + CERT_LEFT_DAYS * DAY;
    return X509_check_ip_asc(cert, address, 0) == 1 && X509_cmp_time(X509_get0_notBefore(cert), NULL) < 0 &&
           X509_cmp_time(X509_get0_notAfter(cert), &later) > 0;
}

static int use_cert(const char *path, const char *address, char ret[WEFT_FINGERPRINT]) {
    char text[CERT_FILE];
    int r = weft__private_read(path, text, sizeof text);
    if (r < 0)
        return r;
    BIO *bio = BIO_new_mem_buf(text, r);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    r = cert && is_for_address(cert, address) ? write_fingerprint(cert, ret) : -ENOENT;
    X509_free(cert);
    BIO_free(bio);
    OPENSSL_cleanse(text, sizeof text);
    return r;
}

/* ---- a new one ---- */

static bool add_extension(X509 *cert, int nid, const char *value) {
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool added = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

/* The host's name is for people who look at the certificate. */
static bool add_names(X509 *cert, const char *address) {
    char host[65] = "", common[80], names[128];
    X509_NAME *name = X509_get_subject_name(cert);
    gethostname(host, sizeof host - 1);
    snprintf(common, sizeof common, "weft %.56s", host);
    snprintf(names, sizeof names, "IP:%s", address);
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *) common, -1, -1, 0) == 1 &&
           X509_set_issuer_name(cert, name) == 1 && add_extension(cert, NID_subject_alt_name, names);
}

static bool set_serial(X509 *cert) {
    unsigned char bytes[16];
    bool made = RAND_bytes(bytes, sizeof bytes) == 1;
    bytes[0] &= 0x7f; /* positive (RFC 5280 section 4.1.2.2) */
    BIGNUM *number = made ? BN_bin2bn(bytes, sizeof bytes, NULL) : NULL;
    made = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return made;
}

static bool fill_cert(X509 *cert, EVP_PKEY *key, const char *address) {
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
           X509_gmtime_adj(X509_getm_notBefore(cert), -DAY) && X509_gmtime_adj(X509_getm_notAfter(cert), CERT_DAYS * DAY) &&
           X509_set_pubkey(cert, key) == 1 && add_names(cert, address) &&
           add_extension(cert, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(cert, NID_key_usage, "critical,digitalSignature") &&
           add_extension(cert, NID_ext_key_usage, "serverAuth") && X509_sign(cert, key, EVP_sha256()) > 0;
}

/* The key first, so that who reads the certificate alone finds it behind. */
static int store_cert(const char *path, X509 *cert, EVP_PKEY *key) {
    BIO *bio = BIO_new(BIO_s_secmem());
    char *text;
    bool written =
        bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 && PEM_write_bio_X509(bio, cert) == 1;
    long len = written ? BIO_get_mem_data(bio, &text) : 0;
    int r = len > 0 && len < CERT_FILE ? weft__private_replace(path, text, (size_t) len) : -EIO;
    BIO_free(bio);
    return r;
}

static int make_cert(const char *path, const char *address, char ret[WEFT_FINGERPRINT]) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    int r = key && cert && fill_cert(cert, key, address) ? store_cert(path, cert, key) : -EIO;
    if (r >= 0)
        r = write_fingerprint(cert, ret);
    X509_free(cert);
    EVP_PKEY_free(key);
    return r;
}

int weft__pair_cert(const char *path, const char *address, char ret_fingerprint[WEFT_FINGERPRINT]) {
    unsigned char bytes[16];
    if (inet_pton(AF_INET, address, bytes) != 1 && inet_pton(AF_INET6, address, bytes) != 1)
        return -EINVAL;
    int r = use_cert(path, address, ret_fingerprint);
    return r >= 0 ? r : make_cert(path, address, ret_fingerprint);
}
