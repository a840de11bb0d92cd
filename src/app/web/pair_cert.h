/* The certificate of the listener for paired devices: made here, signed by itself, for one address. Devices know it by its
 * fingerprint, which is in the code they scan; no authority vouches for it. */
#ifndef WEFT_PAIR_CERT_H
#define WEFT_PAIR_CERT_H

#include <weft/base.h>

#define WEFT_FINGERPRINT 65 /* SHA-256 of the certificate (DER) as hexadecimal digits */

/* Key and certificate are in this file (PEM, 0600). One that is there is used if it is for this address and not about to
 * end; otherwise a new one is made. -EINVAL: it is no address; -EIO: OpenSSL failed; others of the file. */
int weft__pair_cert(const char *path, const char *address, char ret_fingerprint[WEFT_FINGERPRINT]);

#endif
