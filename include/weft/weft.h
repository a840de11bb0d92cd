/* Weft: one JSON-RPC 2.0 peer for every message boundary. This header is all of it. */
#ifndef WEFT_H
#define WEFT_H

/* In reading order. */
/* clang-format off */
#include <weft/base.h>   /* bytes, allocator, errors */
#include <weft/json.h>   /* reading and writing JSON */
#include <weft/schema.h> /* JSON Schema */
#include <weft/method.h> /* methods as rows, requests, answers */
#include <weft/gate.h>   /* what stands before a method */
#include <weft/sign.h>   /* signed requests */
#include <weft/stats.h>  /* figures about a service */
#include <weft/peer.h>   /* the peer without I/O */
#include <weft/loop.h>   /* the loop, timers, signals, work from threads */
#include <weft/net.h>    /* transports, server, client */
#include <weft/subscribe.h> /* streams that outlive a connection */
/* clang-format on */

#endif
