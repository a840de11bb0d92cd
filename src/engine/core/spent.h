/* What turns have cost, added up: tokens by kind, money by currency, and of how many turns either is not known. Unknown is
 * not zero: who shows a sum shows what is missing from it too. */
#ifndef WEFT_SPENT_H
#define WEFT_SPENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/json.h>

#include "buf.h"

#define WEFT_CURRENCY 12  /* bytes of a name, with its NUL: USD, EUR, credits */
#define WEFT_CURRENCIES 3 /* in one sum; a turn that was paid for in a fourth is one of unknown cost */
#define WEFT_MONEY_TEXT 32
#define WEFT_NANO 1000000000 /* parts of one unit of money: a token may cost a millionth of a cent */

typedef struct weft_money {
    int64_t nano;
    char currency[WEFT_CURRENCY]; /* "": there is none */
} weft_money;

typedef enum weft_token_kind {
    WEFT_TOKENS_TOTAL,
    WEFT_TOKENS_INPUT,
    WEFT_TOKENS_OUTPUT,
    WEFT_TOKENS_THOUGHT,
    WEFT_TOKENS_CACHED_READ,
    WEFT_TOKENS_CACHED_WRITE,
    WEFT_TOKEN_KINDS,
} weft_token_kind;

typedef struct weft_spent {
    int64_t turns;
    int64_t tokens_unknown, cost_unknown; /* of so many turns */
    int64_t tokens[WEFT_TOKEN_KINDS];
    uint64_t said;                    /* a bit for each kind of tokens that was reported at all */
    weft_money cost[WEFT_CURRENCIES]; /* those that are there first */
} weft_spent;

/* {amount, currency}. false: it is not that, or nobody can have spent it. */
bool weft__money_read(const weft_json *value, weft_money *ret);
/* "2.5 USD", as people write it. false: it is not that. */
bool weft__money_parse(const char *text, weft_money *ret);
/* The amount: "0.25". */
const char *weft__money_text(int64_t nano, char ret[WEFT_MONEY_TEXT]);
/* Of a sum that only grows: what came since. One that became smaller, or is in another currency, began anew. */
weft_money weft__money_since(const weft_money *now, const weft_money *before);

/* One more turn. usage is what its end says (events.h), absent if it says nothing. */
void weft__spent_turn(weft_spent *spent, const weft_json *usage);
void weft__spent_add(weft_spent *spent, const weft_spent *more);
/* In this currency; 0: nothing that is known. */
int64_t weft__spent_in(const weft_spent *spent, const char *currency);

/* {turns, tokens{total, ...}, tokensUnknown, cost[{amount, currency}], costUnknown}; tokens is null when those of no turn
 * are known, and so is each kind of them that nobody has reported. Reading what is something else gives as much of it as
 * there is. */
int weft__spent_write(const weft_spent *spent, const weft_alloc *alloc, weft_buf *out);
void weft__spent_read(weft_spent *ret, const weft_json *value);

#endif
