/* What the files of pairing share: the listener (pair_door.c), the code and who shows it (pair_code.c), the methods
 * (serve_pair.c). */
#ifndef WEFT_PAIR_PRIVATE_H
#define WEFT_PAIR_PRIVATE_H

#include "lan_address.h"
#include "loop.h"
#include "pair_cert.h"
#include "serve_pair.h"

#define WEFT_PAIR_MS (5 * 60 * 1000)
#define WEFT_PAIR_CODE 33 /* 16 random bytes as hexadecimal digits */
#define WEFT_PAIR_BASE 96 /* "https://[address]:port/" */

struct weft_serve_pair {
    weft_serve_pair_opts opts;
    weft_method methods[3]; /* the service borrows them */

    /* The listener. */
    bool open;
    int port;
    char address[WEFT_LAN_ADDRESS], base[WEFT_PAIR_BASE], fingerprint[WEFT_FINGERPRINT];
    size_t paired; /* devices since it was opened, or that it was opened for */

    /* The code. */
    bool waiting; /* nobody has shown it yet, and it counts */
    unsigned char digest[32];
    weft_timer timer; /* its end */
    int64_t until_s;  /* the same, by the wall clock */
    weft_token_row
        wanted; /* the token to make: name, "" as the device likes, scopes; expires_at is how long it is to last */

    /* The device that was paired last. */
    char device[WEFT_TOKEN_NAME + 1], device_address[64];
    int64_t device_at;
};

/* ---- pair_door.c ---- */

/* Open the listener here. port 0: the usual one, or one behind it that is free. -EBUSY: it is open at another address. */
int weft__pair_open(weft_serve_pair *self, const char *address, int port);
/* Close it, and the connections of the devices. */
void weft__pair_close(weft_serve_pair *self);
/* Where it was open last, for the next hub; forget: nowhere. */
void weft__pair_remember(const weft_serve_pair *self, bool forget);
/* -ENOENT: nowhere. */
int weft__pair_recall(const weft_serve_pair *self, char ret_address[WEFT_LAN_ADDRESS], int *ret_port);

/* ---- pair_code.c ---- */

/* Make a code; from now on it is waited for. -EIO. */
int weft__pair_code(weft_serve_pair *self, char ret[WEFT_PAIR_CODE]);
/* It counts no more. */
void weft__pair_forget_code(weft_serve_pair *self);
/* GET and POST /pair. */
int weft__pair_routes(weft_serve_pair *self);

#endif
